//! What a site decided: `colltune.toml` and the `COLLTUNE_<KEY>` variables that override it.
//!
//! ```toml
//! machine = "hydra"
//! explore_total = 0.15
//! exclude = ["native:basic_linear"]
//! families = ["native", "node"]
//! [[space]]
//! collective = "allreduce"
//! bytes = [0, 8, 64, 512, "inf"]
//! nodes = [1, 2, 5, "inf"]
//! ppn = [1, "inf"]
//! ```

mod fields;
mod values;

mod keys;
mod tables;

use std::collections::BTreeMap;
use std::ops::Range as Span;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

pub use fields::{
    FAMILIES, Gpu, HOPELESS_BY_SHAPE, LearnerKind, Predicting, Reproducible, Settings, SummaryTo,
};
pub use keys::{KEYS, Key, Shown, explained, find, renamed};
pub use values::parse_duration;

use tables::SpaceTable;

#[derive(Clone, Debug, PartialEq, Error)]
pub enum SettingsError {
    /// `line` counts from 1.
    #[error("read colltune.toml, line {line}: {problem}")]
    File { line: usize, problem: String },
    #[error("read {variable}={value:?}: {problem}")]
    Variable {
        variable: String,
        value: String,
        problem: String,
    },
}

/// The tables of the file; its single values are read by name.
#[derive(Deserialize)]
struct Tables {
    #[serde(default)]
    space: Vec<Spanned<SpaceTable>>,
}

impl Settings {
    /// Reads the text of `colltune.toml`.
    ///
    /// Errors: `File` for text that is no TOML, unknown keys, values out of range, and a tuning space with a gap, an
    /// overlap, an empty range or too many cells. Each names the line and the value.
    pub fn from_toml(text: &str) -> Result<Settings, SettingsError> {
        Settings::default().with_toml(text)
    }

    /// The same over these settings: what the text does not speak of stays.
    ///
    /// Errors: as of [`Settings::from_toml`].
    pub fn with_toml(mut self, text: &str) -> Result<Settings, SettingsError> {
        let at = |(span, problem): (Span<usize>, String)| SettingsError::File {
            line: text[..span.start.min(text.len())].matches('\n').count() + 1,
            problem,
        };
        let no_toml =
            |error: toml::de::Error| at((error.span().unwrap_or(0..0), error.message().to_owned()));
        let values: BTreeMap<Spanned<String>, Spanned<toml::Value>> =
            toml::from_str(text).map_err(no_toml)?;
        for (name, value) in &values {
            if name.get_ref() == "space" {
                continue;
            }
            let key =
                find(name.get_ref()).ok_or_else(|| at((name.span(), unknown(name.get_ref()))))?;
            key.set(&mut self, value.get_ref())
                .map_err(|problem| at((value.span(), format!("{}: {problem}", key.name))))?;
        }
        let tables: Tables = toml::from_str(text).map_err(no_toml)?;
        if !tables.space.is_empty() {
            self.space = tables::read(tables.space).map_err(at)?;
        }
        Ok(self)
    }

    /// Applies one `COLLTUNE_<KEY>` variable. Variables that name no setting are left alone.
    ///
    /// Errors: `Variable` for a value that the setting cannot take.
    pub fn override_with(&mut self, variable: &str, value: &str) -> Result<(), SettingsError> {
        let name = variable.strip_prefix("COLLTUNE_").unwrap_or("");
        let Some(key) = find(&name.to_ascii_lowercase()) else {
            return Ok(());
        };
        key.set(self, &key.value_of(value))
            .map_err(|problem| SettingsError::Variable {
                variable: variable.to_owned(),
                value: value.to_owned(),
                problem,
            })
    }
}

fn unknown(name: &str) -> String {
    let known: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    format!(
        "unknown key {name:?}; the known ones are {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> (usize, String) {
        match Settings::from_toml(text) {
            Err(SettingsError::File { line, problem }) => (line, problem),
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(Settings::from_toml("").unwrap(), Settings::default());
    }

    /// Keys, values as the file has them, and as variables do.
    const VALUES: &[(&str, &str, &str)] = &[
        ("machine", "\"hydra\"", "hydra"),
        ("exclude", "[\"native:linear\"]", "native:linear"),
        ("families", "[\"p2p\", \"native\"]", "native, p2p"),
        ("records_per_run", "5", "5"),
        ("recording_ranks_per_node", "1", "1"),
        ("recording_ranks", "4", "4"),
        ("samples_per_cell", "9", "9"),
        ("explore_total", "0.1", "0.1"),
        ("explore_budget", "0.5", "0.5"),
        ("watch", "0.5", "0.5"),
        ("hopeless_factor", "4.5", "4.5"),
        ("learner", "\"ompicolltune\"", "ompicolltune"),
        ("probability_min", "0.05", "0.05"),
        ("probability_max", "0.5", "0.5"),
        ("predictor", "\"xgboost\"", "xgboost"),
        ("reproducible", "\"strict\"", "strict"),
        ("gpu", "\"host-only\"", "host-only"),
        ("memory_per_rank_max", "\"32MiB\"", "33554432"),
        ("setup_after", "1", "1"),
        ("wait_warning_after", "\"5s\"", "5"),
        ("mismatch_timeout", "\"5s\"", "5"),
        ("keep_raw", "\"inf\"", "inf"),
        ("stale_after", "\"2h\"", "2h"),
        ("summary", "true", "1"),
        ("seed", "7", "7"),
        (
            "exclude_hosts",
            "[\"n17\", \"n18.hydra\"]",
            "n17, n18.hydra",
        ),
        ("programs_allow", "[\"gmx*\", \"lmp\"]", "gmx*, lmp"),
        ("programs_deny", "[\"/apps/*/a?\"]", "/apps/*/a?"),
        ("switch_poll_interval", "\"1m\"", "60"),
    ];

    #[test]
    fn every_key_sets_a_field_of_its_own_in_the_file_and_by_variable() {
        let mut seen = vec![Settings::default()];
        for key in KEYS {
            let of_key = VALUES.iter().find(|(name, ..)| *name == key.name);
            let (name, value, text) = of_key.unwrap_or_else(|| panic!("no value of {}", key.name));
            let from_file = Settings::from_toml(&format!("{name} = {value}\n")).unwrap();
            let mut from_variable = Settings::default();
            for (variable, value) in [(name.to_ascii_uppercase(), *text), ("DB".to_owned(), "/x")] {
                let variable = format!("COLLTUNE_{variable}");
                from_variable.override_with(&variable, value).unwrap();
            }
            assert_eq!(from_file, from_variable, "{name}");
            if value.starts_with('[') {
                let mut as_in_file = Settings::default();
                let variable = format!("COLLTUNE_{}", name.to_ascii_uppercase());
                as_in_file.override_with(&variable, value).unwrap();
                assert_eq!(as_in_file, from_file, "{name} as the file has it");
            }
            assert!(
                !seen.contains(&from_file),
                "{name} sets no field of its own"
            );
            seen.push(from_file);
        }
        let error = Settings::default().override_with("COLLTUNE_EXPLORE_TOTAL", "2");
        assert!(error.unwrap_err().to_string().contains("\"2\""));
    }

    #[test]
    fn former_names_of_keys_set_what_todays_names_set() {
        for (former, name) in [
            ("alone_after", "mismatch_timeout"),
            ("heed_every", "switch_poll_interval"),
            ("wait_word_after", "wait_warning_after"),
        ] {
            let of = |name: &str| Settings::from_toml(&format!("{name} = \"7s\"\n")).unwrap();
            assert_eq!(of(former), of(name), "{former}");
            assert_ne!(of(former), Settings::default(), "{former}");
            assert_eq!(renamed(former), Some(name));
            let mut by_variable = Settings::default();
            let variable = format!("COLLTUNE_{}", former.to_ascii_uppercase());
            by_variable.override_with(&variable, "7s").unwrap();
            assert_eq!(by_variable, of(name), "{variable}");
            assert!(crate::environment::is_known(&variable));
        }
        assert_eq!(renamed("watch"), None);
    }

    #[test]
    fn a_second_file_changes_what_it_speaks_of_and_nothing_else() {
        let space = "[[space]]\ncollective = \"bcast\"\nbytes = [0, \"inf\"]\n";
        let first = Settings::from_toml(&format!("watch = 0.5\nseed = 7\n{space}")).unwrap();
        let both = first.clone().with_toml("watch = 0.25\n").unwrap();
        let expected = Settings {
            watch: 0.25,
            ..first.clone()
        };
        assert_eq!(both, expected);
        assert!(first.with_toml("whach = 1").is_err());
    }

    #[test]
    fn bad_files_name_the_line_and_the_value() {
        assert_eq!(problem("\nexplore_total = 3\n").0, 2);
        assert!(problem("\nexplore_total = 3\n").1.contains('3'));
        let (line, text) = problem("machine = \"a\"\nexplore_totl = 1\n");
        assert_eq!(line, 2);
        assert!(text.contains("explore_totl"));
        let (line, text) =
            problem("[[space]]\ncollective = \"allreduce\"\nbytes = [0, 64,\n 64, \"inf\"]\n");
        assert_eq!(line, 4);
        assert!(text.contains("64") && text.contains("empty"), "{text}");
        let (line, text) = problem("\n[[space]]\ncollective = \"bcast\"\nbytes = [0, 512]\n");
        assert_eq!(line, 2);
        assert!(text.contains("gap") && text.contains("512"), "{text}");
        let two = "[[space]]\ncollective = \"bcast\"\nbytes = [0, 512]\n\n[[space]]\ncollective = \"bcast\"\nbytes = [500, \"inf\"]\n";
        let (line, text) = problem(two);
        assert_eq!(line, 5);
        assert!(
            text.contains("overlap") && text.contains("[500, 512)"),
            "{text}"
        );
        let bounds: Vec<String> = (1..400).map(|bound| bound.to_string()).collect();
        let bounds = bounds.join(", ");
        let (line, text) = problem(&format!(
            "\n[[space]]\ncollective = \"bcast\"\nnodes = [{bounds}, \"inf\"]\nppn = [{bounds}, \"inf\"]\n"
        ));
        assert_eq!(line, 2);
        assert!(
            text.contains("bcast into too many cells") && text.contains("at most 262144"),
            "{text}"
        );
        assert!(
            problem("[[space]]\ncollective = \"alreduce\"\n")
                .1
                .contains("alreduce")
        );
        assert!(problem("reproducible = \"yes\"").1.contains("strict"));
        assert!(problem("exclude = [\"default\"]").1.contains("default"));
        let (line, text) = problem("\nfamilies = [\"native\", \"smoke\"]");
        assert_eq!(line, 2);
        assert!(text.contains("smoke") && text.contains("\"p2p\""), "{text}");
        assert!(problem("families = \"p2p\"").1.contains("list"));
        let (line, text) = problem("gpu = \"off\"\nmemory_per_rank_max = \"64 pages\"");
        assert_eq!(line, 2);
        assert!(
            text.contains("64 pages") && text.contains("64MiB"),
            "{text}"
        );
        assert!(problem("summary = 2").1.contains("a file"));
        assert!(problem("gpu = \"on\"").1.contains("\"host-only\""));
        assert!(problem("programs_deny = [\"\"]").1.contains("gmx*"));
        let (line, text) = problem("seed = 1\nspace = 3");
        assert_eq!(line, 2, "{text}");
        assert_eq!(problem("seed = 1\nseed = 2").0, 2);
        assert!(problem("nonsense").0 == 1);
    }
}
