//! Variables of the environment that belong to colltune, and what may be wrong with them.

use std::ffi::OsStr;

use colltune_core::environment;
use colltune_core::request::{self, Mode};
use colltune_core::settings::Settings;
use thiserror::Error;

/// What is wrong with a variable of ours.
#[derive(Debug, Error)]
pub enum Wrong {
    #[error("{0}: it is not valid UTF-8")]
    NoText(String),
    #[error("{name}: colltune has no such variable{near}")]
    Unknown { name: String, near: String },
    #[error("{name}: failed to {problem}")]
    Value { name: String, problem: String },
}

impl Wrong {
    /// What is wrong with one; paths are not checked.
    pub fn find(name: &str, value: &OsStr) -> Option<Wrong> {
        if !name.starts_with(environment::PREFIX) {
            return None;
        }
        let name = name.to_owned();
        let Some(value) = value.to_str() else {
            return Some(Wrong::NoText(name));
        };
        if !environment::is_known(&name) {
            let near = environment::meant_by(&name)
                .map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return Some(Wrong::Unknown { name, near });
        }
        let problem = match name.as_str() {
            _ if value.is_empty() => None,
            environment::MODE => value.parse::<Mode>().err().map(|error| error.to_string()),
            environment::FORCE => request::parse_force(value)
                .err()
                .map(|error| error.to_string()),
            environment::LOG => request::parse_log(value)
                .err()
                .map(|error| error.to_string()),
            _ => {
                let set = Settings::default().override_with(&name, value);
                set.err().map(|error| error.to_string())
            }
        };
        problem.map(|problem| Wrong::Value { name, problem })
    }

    /// All that are set and wrong.
    pub fn all() -> impl Iterator<Item = Wrong> {
        std::env::vars_os().filter_map(|(name, value)| Wrong::find(&name.to_string_lossy(), &value))
    }

    pub fn name(&self) -> &str {
        match self {
            Wrong::NoText(name) | Wrong::Unknown { name, .. } | Wrong::Value { name, .. } => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_that_make_no_sense_are_told_and_empty_ones_count_as_not_set() {
        let found = |name: &str, value: &str| {
            let wrong = Wrong::find(name, OsStr::new(value));
            wrong.map(|wrong| wrong.to_string())
        };
        let mistyped = format!("{}EXPLORE_BUDGT", environment::PREFIX);
        let typed = found(&mistyped, "1").expect("there is none");
        assert!(
            typed.contains("did you mean COLLTUNE_EXPLORE_BUDGET?"),
            "{typed}"
        );
        for (name, value) in [
            (environment::MODE, "exploid"),
            (environment::FORCE, "bcast"),
            (environment::LOG, "here"),
            ("COLLTUNE_EXPLORE_BUDGET", "many"),
        ] {
            let wrong = found(name, value).expect("it makes no sense");
            assert!(wrong.starts_with(name), "{wrong}");
            assert_eq!(found(name, ""), None);
        }
        assert_eq!(found(environment::MODE, "exploit"), None);
        assert_eq!(found(environment::DB, "anywhere"), None);
        assert_eq!(found("MPIR_CVAR_NONE", "1"), None);
    }
}
