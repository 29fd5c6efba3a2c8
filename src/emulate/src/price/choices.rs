//! Which variant each collective runs, by name.

use std::collections::BTreeMap;

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::variant::DEFAULT;

use super::learned::Learned;
use super::node::NodeMemory;
use super::schedules;
use crate::EmulateError;

/// Variants by collective; `default` for those that are not named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(BTreeMap<&'static str, String>);

impl Choices {
    /// Reads `allreduce=p2p:ring,bcast=default`; empty: all default. Beside what has schedules there are those of family
    /// `node` for allreduce, barrier, bcast and reduce, and variants whose times a machine's tuning database knows.
    ///
    /// Errors: `UnknownVariant` naming it and what there is.
    pub fn from_text(text: &str, learned: &Learned) -> Result<Choices, EmulateError> {
        let mut choices = Choices::default();
        for pair in text
            .split(',')
            .filter(|pair| !pair.is_empty() && *pair != DEFAULT)
        {
            let (collective, variant) = pair.split_once('=').unwrap_or((pair, ""));
            let known = || Pattern::ALL.map(Pattern::name).join(", ");
            let pattern = Pattern::ALL
                .into_iter()
                .find(|pattern| pattern.name() == collective);
            let pattern = pattern.ok_or_else(|| EmulateError::UnknownVariant {
                collective: "a collective",
                name: collective.to_owned(),
                known: known(),
            })?;
            choices.set(pattern, variant, learned)?;
        }
        Ok(choices)
    }

    /// Chooses a variant of one collective.
    ///
    /// Errors: `UnknownVariant`.
    pub fn set(
        &mut self,
        pattern: Pattern,
        variant: &str,
        learned: &Learned,
    ) -> Result<(), EmulateError> {
        let is_known = || {
            variant == DEFAULT
                || learned.has_measured(pattern, variant)
                || NodeMemory::of(pattern, variant).is_some()
        };
        if !is_known() {
            schedules::check(pattern, variant)?;
        }
        self.0.insert(pattern.name(), variant.to_owned());
        Ok(())
    }

    pub(super) fn of(&self, pattern: Pattern) -> &str {
        self.0.get(pattern.name()).map_or(DEFAULT, String::as_str)
    }

    /// As text that reads back.
    pub fn text(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(c, v)| format!("{c}={v}")).collect();
        match pairs.is_empty() {
            true => DEFAULT.to_owned(),
            false => pairs.join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variant_is_named_with_what_there_is() {
        let nothing = Learned::default();
        for (text, words) in [
            ("allreduce=p2p:rings", ["p2p:rings", "p2p:ring,"]),
            ("allreduces=p2p:ring", ["allreduces", "allreduce,"]),
            ("bcast=", ["\"\"", "native:binomial"]),
        ] {
            let error = Choices::from_text(text, &nothing).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        let read = |text| Choices::from_text(text, &nothing).unwrap();
        let choices = read("bcast=native:binomial,allreduce=p2p:ring");
        assert_eq!(read(&choices.text()), choices);
    }
}
