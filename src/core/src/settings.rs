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

mod tables;
mod values;

use std::collections::BTreeMap;
use std::ops::Range as Span;
use std::time::Duration;

use bincode::{Decode, Encode};
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

pub use values::parse_duration;

use crate::library::Library;
use crate::prior::simulated::Simulated;
use crate::space::Space;
use crate::variant::Family;
use tables::SpaceTable;
use values::{duration, factor, families, name, share, variant_names, whole};

/// Whether tuning may change the rounding of floating-point reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Encode, Decode)]
#[serde(rename_all = "lowercase")]
pub enum Reproducible {
    /// Any variant at any call.
    #[default]
    Off,
    /// One draw per cell and run.
    Run,
    /// Only reductions whose result cannot depend on order are tuned.
    Strict,
}

/// Every setting of a database, with its default.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The machine that the database serves; `None`: found from the environment.
    pub machine: Option<String>,
    pub space: Space,
    /// Variants that are never drawn in any cell.
    pub exclude: Vec<String>,
    /// The families whose variants are drawn beside `default`, sorted; `None`: the usual ones.
    pub families: Option<Vec<Family>>,
    /// The most calls that one rank records in one run.
    pub records_per_run: u64,
    pub recording_ranks_per_node: u32,
    /// The most recording ranks of a run.
    pub recording_ranks: u32,
    /// Calls of a cell on one communicator that are sampled before sampling thins out.
    pub samples_per_cell: u32,
    /// The most that exploring may take of a cell's calls after the first training, as a share.
    pub explore_total: f64,
    /// The most that exploring may cost the time spent in a communicator's collectives, as a share.
    pub explore_budget: f64,
    /// Before any training a variant is not drawn where the prior finds it slower than another one
    /// by more than this factor; `None`: the usual one.
    pub hopeless_factor: Option<f64>,
    /// What the simulator found for a library; it lies in the library's folder, not among the keys.
    pub simulated: BTreeMap<Library, Simulated>,
    pub reproducible: Reproducible,
    /// The tuned call of a communicator at which it is set up.
    pub setup_after: u32,
    /// How old the trace of a running job must be to count as abandoned.
    pub stale_after: Duration,
    /// Seed of every draw; `None`: a new one for each job.
    pub seed: Option<u64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            machine: None,
            space: Space::default(),
            exclude: Vec::new(),
            families: None,
            records_per_run: 10_000,
            recording_ranks_per_node: 2,
            recording_ranks: 32,
            samples_per_cell: 256,
            explore_total: 0.15,
            explore_budget: 0.02,
            hopeless_factor: None,
            simulated: BTreeMap::new(),
            reproducible: Reproducible::Off,
            setup_after: 8,
            stale_after: Duration::from_secs(3600),
            seed: None,
        }
    }
}

/// What the simulator finds so many times as slow as another variant is hopeless.
pub const HOPELESS_SIMULATED: f64 = 2.0;
/// The same of what is known by the shapes of schedules alone.
pub const HOPELESS_BY_SHAPE: f64 = 10.0;

/// The families that `families` can name, sorted.
pub const FAMILIES: [Family; 4] = [Family::Native, Family::Mockup, Family::P2p, Family::Node];

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

/// The keys whose values are single, and so can be overridden by `COLLTUNE_<KEY>`.
pub const KEYS: [&str; 14] = [
    "machine",
    "exclude",
    "families",
    "records_per_run",
    "recording_ranks_per_node",
    "recording_ranks",
    "samples_per_cell",
    "explore_total",
    "explore_budget",
    "hopeless_factor",
    "reproducible",
    "setup_after",
    "stale_after",
    "seed",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    machine: Option<Spanned<toml::Value>>,
    exclude: Option<Spanned<toml::Value>>,
    families: Option<Spanned<toml::Value>>,
    records_per_run: Option<Spanned<toml::Value>>,
    recording_ranks_per_node: Option<Spanned<toml::Value>>,
    recording_ranks: Option<Spanned<toml::Value>>,
    samples_per_cell: Option<Spanned<toml::Value>>,
    explore_total: Option<Spanned<toml::Value>>,
    explore_budget: Option<Spanned<toml::Value>>,
    hopeless_factor: Option<Spanned<toml::Value>>,
    reproducible: Option<Spanned<toml::Value>>,
    setup_after: Option<Spanned<toml::Value>>,
    stale_after: Option<Spanned<toml::Value>>,
    seed: Option<Spanned<toml::Value>>,
    #[serde(default)]
    space: Vec<Spanned<SpaceTable>>,
}

impl Settings {
    /// Reads the text of `colltune.toml`.
    ///
    /// Errors: `File` for text that is no TOML, unknown keys, values out of range, and a tuning
    /// space with a gap, an overlap or an empty range; each names the line and the value.
    pub fn from_toml(text: &str) -> Result<Settings, SettingsError> {
        let line_of =
            |span: Span<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
        let at = |span: Span<usize>, problem: String| SettingsError::File {
            line: line_of(span),
            problem,
        };
        let file: File = toml::from_str(text)
            .map_err(|error| at(error.span().unwrap_or(0..0), error.message().to_owned()))?;
        let mut settings = Settings::default();
        let values = [
            file.machine,
            file.exclude,
            file.families,
            file.records_per_run,
            file.recording_ranks_per_node,
            file.recording_ranks,
            file.samples_per_cell,
            file.explore_total,
            file.explore_budget,
            file.hopeless_factor,
            file.reproducible,
            file.setup_after,
            file.stale_after,
            file.seed,
        ];
        for (key, value) in KEYS.into_iter().zip(values) {
            if let Some(value) = value {
                let span = value.span();
                settings
                    .set(key, value.into_inner())
                    .map_err(|problem| at(span, format!("{key}: {problem}")))?;
            }
        }
        settings.space = tables::read(file.space, &at)?;
        Ok(settings)
    }

    /// The families whose variants are drawn beside `default` in jobs on `library`, sorted.
    ///
    /// Each further variant takes samples from the others. So schedules are among the usual ones only
    /// where the simulator, told of this machine, leaves few of them.
    pub fn families_on(&self, library: Library) -> Vec<Family> {
        self.families.clone().unwrap_or_else(|| {
            let mut usual = vec![Family::Native, Family::Node];
            if self.simulated.contains_key(&library) {
                usual.push(Family::P2p);
            }
            usual.sort_unstable();
            usual
        })
    }

    /// How many times as slow as another variant a hopeless one is on `library`.
    pub fn hopeless_factor_on(&self, library: Library) -> f64 {
        self.hopeless_factor
            .unwrap_or(if self.simulated.contains_key(&library) {
                HOPELESS_SIMULATED
            } else {
                HOPELESS_BY_SHAPE
            })
    }

    /// Applies one `COLLTUNE_<KEY>` variable. Variables that name no setting are left alone.
    ///
    /// Errors: `Variable` for a value that the setting cannot take.
    pub fn override_with(&mut self, variable: &str, value: &str) -> Result<(), SettingsError> {
        let key = variable
            .strip_prefix("COLLTUNE_")
            .unwrap_or("")
            .to_ascii_lowercase();
        if !KEYS.contains(&key.as_str()) {
            return Ok(());
        }
        let parsed = match key.as_str() {
            "exclude" | "families" => toml::Value::Array(
                value
                    .split(',')
                    .filter(|name| !name.is_empty())
                    .map(|name| name.trim().into())
                    .collect(),
            ),
            _ => value
                .parse::<i64>()
                .map(toml::Value::Integer)
                .or_else(|_| value.parse::<f64>().map(toml::Value::Float))
                .unwrap_or_else(|_| toml::Value::String(value.to_owned())),
        };
        self.set(&key, parsed)
            .map_err(|problem| SettingsError::Variable {
                variable: variable.to_owned(),
                value: value.to_owned(),
                problem,
            })
    }

    /// Sets one key; the error says what is allowed.
    fn set(&mut self, key: &str, value: toml::Value) -> Result<(), String> {
        match key {
            "machine" => self.machine = Some(name(&value)?),
            "exclude" => self.exclude = variant_names(&value)?,
            "families" => self.families = Some(families(&value)?),
            "records_per_run" => self.records_per_run = whole(&value, 0, 1 << 32)?,
            "recording_ranks_per_node" => {
                self.recording_ranks_per_node = whole(&value, 0, 1 << 20)? as u32
            }
            "recording_ranks" => self.recording_ranks = whole(&value, 0, 1 << 20)? as u32,
            "samples_per_cell" => self.samples_per_cell = whole(&value, 1, 1 << 30)? as u32,
            "explore_total" => self.explore_total = share(&value)?,
            "explore_budget" => self.explore_budget = share(&value)?,
            "hopeless_factor" => self.hopeless_factor = Some(factor(&value)?),
            "setup_after" => self.setup_after = whole(&value, 1, 1 << 30)? as u32,
            "stale_after" => self.stale_after = duration(&value)?,
            "seed" => self.seed = Some(whole(&value, 0, i64::MAX as u64)?),
            "reproducible" => {
                self.reproducible = match value.as_str() {
                    Some("off") => Reproducible::Off,
                    Some("run") => Reproducible::Run,
                    Some("strict") => Reproducible::Strict,
                    _ => {
                        return Err(format!(
                            "{value} is not one of \"off\", \"run\", \"strict\""
                        ));
                    }
                }
            }
            _ => {
                return Err(format!(
                    "unknown key; the known ones are {}",
                    KEYS.join(", ")
                ));
            }
        }
        Ok(())
    }
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

    #[test]
    fn every_key_can_be_set_in_the_file_and_by_variable() {
        let text = "machine = \"hydra\"\nexclude = [\"native:linear\"]\nfamilies = [\"p2p\"]\nrecords_per_run = 5\n\
            recording_ranks_per_node = 1\nrecording_ranks = 4\nsamples_per_cell = 9\nexplore_total = 0.1\n\
            explore_budget = 0.5\nhopeless_factor = 4.5\nreproducible = \"strict\"\nsetup_after = 1\nstale_after = \"2h\"\nseed = 7\n";
        let from_file = Settings::from_toml(text).unwrap();
        let mut from_variables = Settings::default();
        for (variable, value) in [
            ("MACHINE", "hydra"),
            ("EXCLUDE", "native:linear"),
            ("FAMILIES", "p2p"),
            ("RECORDS_PER_RUN", "5"),
            ("RECORDING_RANKS_PER_NODE", "1"),
            ("RECORDING_RANKS", "4"),
            ("SAMPLES_PER_CELL", "9"),
            ("EXPLORE_TOTAL", "0.1"),
            ("EXPLORE_BUDGET", "0.5"),
            ("HOPELESS_FACTOR", "4.5"),
            ("REPRODUCIBLE", "strict"),
            ("SETUP_AFTER", "1"),
            ("STALE_AFTER", "2h"),
            ("SEED", "7"),
            ("DB", "/x"),
        ] {
            from_variables
                .override_with(&format!("COLLTUNE_{variable}"), value)
                .unwrap();
        }
        assert_eq!(from_file, from_variables);
        assert_ne!(from_file, Settings::default());
        assert!(
            from_variables
                .override_with("COLLTUNE_EXPLORE_TOTAL", "2")
                .unwrap_err()
                .to_string()
                .contains("\"2\"")
        );
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
        assert!(problem("nonsense").0 == 1);
    }
}
