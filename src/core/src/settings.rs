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

use std::collections::BTreeMap;
use std::ops::Range as Span;
use std::time::Duration;

use bincode::{Decode, Encode};
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::collective::Collective;
use crate::library::Library;
use crate::prior::simulated::Simulated;
use crate::space::{Block, Hole, Space};
use crate::variant::{Family, VariantName};

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceTable {
    collective: Spanned<String>,
    bytes: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    nodes: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    ppn: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    exclude: Option<Spanned<toml::Value>>,
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
        settings.space = read_space(file.space, &at)?;
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

fn name(value: &toml::Value) -> Result<String, String> {
    let plain = |text: &&str| {
        !text.is_empty()
            && text.len() <= 64
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match value {
        toml::Value::Integer(number) => Ok(number.to_string()),
        _ => value
            .as_str()
            .filter(plain)
            .map(str::to_owned)
            .ok_or_else(|| {
                format!("{value} is not a name of 1 to 64 letters, digits, '-', '_' or '.'")
            }),
    }
}

fn variant_names(value: &toml::Value) -> Result<Vec<String>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("{value} is not a list such as [\"native:linear\"]"))?;
    let read = |item: &toml::Value| {
        let text = item
            .as_str()
            .ok_or_else(|| format!("{item} is not the name of a variant"))?;
        let variant = text
            .parse::<VariantName>()
            .map_err(|error| error.to_string())?;
        if variant == VariantName::default_choice() {
            return Err(
                "\"default\" cannot be excluded: it is what remains when nothing else applies"
                    .to_owned(),
            );
        }
        Ok(text.to_owned())
    };
    list.iter().map(read).collect()
}

/// Sorted, each once. An empty list is allowed: then nothing but `default` is drawn.
fn families(value: &toml::Value) -> Result<Vec<Family>, String> {
    let known = || {
        FAMILIES
            .map(|family| format!("{:?}", family.name()))
            .join(", ")
    };
    let list = value
        .as_array()
        .ok_or_else(|| format!("{value} is not a list such as [\"native\", \"p2p\"]"))?;
    let read = |item: &toml::Value| {
        let named = |family: &Family| item.as_str() == Some(family.name());
        FAMILIES
            .into_iter()
            .find(named)
            .ok_or_else(|| format!("{item} is not one of {}", known()))
    };
    let mut families = list.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    families.sort_unstable();
    families.dedup();
    Ok(families)
}

fn whole(value: &toml::Value, least: u64, most: u64) -> Result<u64, String> {
    let number = value
        .as_integer()
        .and_then(|number| u64::try_from(number).ok());
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("{value} is not a whole number from {least} to {most}"))
}

fn share(value: &toml::Value) -> Result<f64, String> {
    let number = value
        .as_float()
        .or_else(|| value.as_integer().map(|number| number as f64));
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| format!("{value} is not a share from 0 to 1"))
}

fn factor(value: &toml::Value) -> Result<f64, String> {
    let number = value
        .as_float()
        .or_else(|| value.as_integer().map(|number| number as f64));
    number
        .filter(|number| *number > 1.0)
        .ok_or_else(|| format!("{value} is not a factor above 1"))
}

/// Reads a length of time such as `10s`, `500ms`, `1h`, or a number of seconds.
///
/// Errors: a sentence that names the value and what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let value = text.parse().map_or_else(
        |_| toml::Value::String(text.to_owned()),
        toml::Value::Integer,
    );
    duration(&value)
}

fn duration(value: &toml::Value) -> Result<Duration, String> {
    if let Some(seconds) = value
        .as_integer()
        .and_then(|number| u64::try_from(number).ok())
    {
        return Ok(Duration::from_secs(seconds));
    }
    let units = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
    ];
    let read = |text: &str| {
        units.iter().find_map(|&(unit, ms)| {
            let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            number.checked_mul(ms).map(Duration::from_millis)
        })
    };
    value
        .as_str()
        .and_then(read)
        .ok_or_else(|| format!("{value} is not a time such as \"10s\", \"500ms\", \"1h\""))
}

fn read_space(
    tables: Vec<Spanned<SpaceTable>>,
    at: &impl Fn(Span<usize>, String) -> SettingsError,
) -> Result<Space, SettingsError> {
    let mut space = Space { blocks: Vec::new() };
    let mut spans = Vec::new();
    for table in tables {
        let span = table.span();
        let table = table.into_inner();
        let collective = Collective::from_name(table.collective.get_ref()).ok_or_else(|| {
            let known: Vec<_> = Collective::ALL.into_iter().map(Collective::name).collect();
            let problem = format!(
                "unknown collective {:?} (known: {})",
                table.collective.get_ref(),
                known.join(", ")
            );
            at(table.collective.span(), problem)
        })?;
        let usual = Space::default_block(collective);
        let exclude = match table.exclude {
            None => Vec::new(),
            Some(value) => variant_names(value.get_ref())
                .map_err(|problem| at(value.span(), format!("exclude: {problem}")))?,
        };
        space.blocks.push(Block {
            collective,
            bytes: read_bounds("bytes", table.bytes, usual.bytes, 0, at)?,
            nodes: read_bounds("nodes", table.nodes, usual.nodes, 1, at)?,
            ppn: read_bounds("ppn", table.ppn, usual.ppn, 1, at)?,
            exclude,
        });
        spans.push(span);
    }
    for collective in Collective::ALL {
        if space
            .blocks
            .iter()
            .all(|block| block.collective != collective)
        {
            space.blocks.push(Space::default_block(collective));
        }
    }
    space.check().map_err(|hole| match hole {
        Hole::Gap(cell) => {
            let first = space
                .blocks
                .iter()
                .position(|block| block.collective == cell.collective)
                .unwrap_or(0);
            let span = spans.get(first).cloned().unwrap_or(0..0);
            at(
                span,
                format!("gap: no [[space]] of {} covers {cell}", cell.collective),
            )
        }
        Hole::Overlap(cell, first, second) => {
            let span = spans
                .get(second)
                .or(spans.get(first))
                .cloned()
                .unwrap_or(0..0);
            at(span, format!("overlap: two [[space]] tables cover {cell}"))
        }
    })?;
    Ok(space)
}

fn read_bounds(
    axis: &str,
    list: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    usual: Vec<Option<u64>>,
    least: u64,
    at: &impl Fn(Span<usize>, String) -> SettingsError,
) -> Result<Vec<Option<u64>>, SettingsError> {
    let Some(list) = list else { return Ok(usual) };
    let span = list.span();
    let mut bounds = Vec::new();
    for value in list.into_inner() {
        let problem = |text: String| at(value.span(), format!("{axis}: {text}"));
        let bound = match value.get_ref() {
            toml::Value::Integer(number) => Some(
                u64::try_from(*number)
                    .ok()
                    .filter(|number| *number >= least)
                    .ok_or_else(|| problem(format!("{number} is below {least}")))?,
            ),
            toml::Value::String(text) if text == "inf" => None,
            toml::Value::Float(number) if *number == f64::INFINITY => None,
            other => {
                return Err(problem(format!(
                    "{other} is neither a whole number nor \"inf\""
                )));
            }
        };
        if let Some(&previous) = bounds.last() {
            let empty = match (previous, bound) {
                (None, _) => true,
                (Some(a), Some(b)) => a >= b,
                (Some(_), None) => false,
            };
            if empty {
                return Err(problem(format!(
                    "{} after a bound that is not below it: the range is empty",
                    value.get_ref()
                )));
            }
        }
        bounds.push(bound);
    }
    if bounds.len() < 2 {
        return Err(at(
            span,
            format!("{axis}: a list of bounds needs at least two, as in [{least}, \"inf\"]"),
        ));
    }
    Ok(bounds)
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
