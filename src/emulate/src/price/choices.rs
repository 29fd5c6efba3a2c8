//! Which variant each collective runs, by name.

use std::collections::BTreeMap;

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::registry::{self, Row, Values};

use super::rules;
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
            find(pattern, variant)?;
        }
        self.0.insert(pattern.name(), variant.to_owned());
        Ok(())
    }

    /// Chooses a variant that may have no schedule here, as long as the machine has measured it.
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

/// The row of a variant's name.
pub(super) fn find(
    pattern: Pattern,
    variant: &str,
) -> Result<(&'static Row, Values), EmulateError> {
    let ours = rules::twin(pattern, variant).unwrap_or(variant);
    let all =
        || registry::rows(pattern).flat_map(|row| row.values().into_iter().map(move |v| (row, v)));
    let name = |(row, values): &(&'static Row, Values)| row.variant(*values).to_string();
    let whole = all().find(|found| name(found) == ours);
    // Without its parameters a name means the first of them.
    let begun = || {
        all().find(|found| {
            name(found).split_once(ours).is_some_and(|(before, rest)| {
                before.is_empty() && rest.starts_with(':') && ours.contains(':')
            })
        })
    };
    whole.or_else(begun).ok_or_else(|| {
        let mut known: Vec<String> = all().map(|(row, v)| row.variant(v).to_string()).collect();
        known.extend(rules::twins(pattern).map(str::to_owned));
        EmulateError::UnknownVariant {
            collective: pattern.name(),
            name: variant.to_owned(),
            known: format!("default, {}", known.join(", ")),
        }
    })
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
