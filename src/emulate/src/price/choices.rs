//! Which variant each collective runs, by name.

use std::collections::BTreeMap;

use colltune_core::algorithm::pattern::Pattern;

use super::schedules;
use crate::EmulateError;

/// Variants by collective; `default` for those that are not named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices(BTreeMap<&'static str, String>);

impl Choices {
    /// Reads `allreduce=p2p:ring,bcast=default`; empty: all default.
    ///
    /// Errors: `UnknownVariant` naming it and what there is.
    pub fn from_text(text: &str) -> Result<Choices, EmulateError> {
        let mut choices = Choices::default();
        for pair in text
            .split(',')
            .filter(|pair| !pair.is_empty() && *pair != "default")
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
            choices.set(pattern, variant)?;
        }
        Ok(choices)
    }

    /// Chooses a variant of one collective.
    ///
    /// Errors: `UnknownVariant`.
    pub fn set(&mut self, pattern: Pattern, variant: &str) -> Result<(), EmulateError> {
        if variant != "default" {
            schedules::check(pattern, variant)?;
        }
        self.0.insert(pattern.name(), variant.to_owned());
        Ok(())
    }

    /// Chooses a variant that may have no schedule here, as long as the machine knows its price.
    pub fn set_measured(&mut self, pattern: Pattern, variant: &str) {
        self.0.insert(pattern.name(), variant.to_owned());
    }

    pub(super) fn of(&self, pattern: Pattern) -> &str {
        self.0.get(pattern.name()).map_or("default", String::as_str)
    }

    /// As text that reads back.
    pub fn text(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(c, v)| format!("{c}={v}")).collect();
        match pairs.is_empty() {
            true => "default".to_owned(),
            false => pairs.join(","),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variant_is_named_with_what_there_is() {
        for (text, words) in [
            ("allreduce=p2p:rings", ["p2p:rings", "p2p:ring,"]),
            ("allreduces=p2p:ring", ["allreduces", "allreduce,"]),
            ("bcast=", ["\"\"", "native:binomial"]),
        ] {
            let error = Choices::from_text(text).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        let choices = Choices::from_text("bcast=native:binomial,allreduce=p2p:ring").unwrap();
        assert_eq!(Choices::from_text(&choices.text()).unwrap(), choices);
    }
}
