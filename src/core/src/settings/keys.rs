//! The keys of `colltune.toml`, in one table: what each is called, takes, is without being set, and decides.
//!
//! A new setting is a field with its default (`fields.rs`) and a row here. The reader of the file, the variables
//! `COLLTUNE_<KEY>`, their errors and the file that explains every key follow from the rows.

use std::fmt;
use std::time::Duration;

use super::fields::{FAMILIES, Gpu, LearnerKind, Predicting, Reproducible, Settings, SummaryTo};
use super::values;
use crate::variant::Family;

/// A key with a single value, which `COLLTUNE_<KEY>` overrides for one job.
pub struct Key {
    pub name: &'static str,
    takes: Takes,
    pub shown: Shown,
    /// What it decides, for the person who sets it; broken into lines for a comment.
    pub doc: &'static str,
}

/// The value that the file shows behind a key, as the file writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Default(&'static str),
    /// The default is no single value; the doc says what it is.
    Example(&'static str),
}

impl Shown {
    pub const fn text(self) -> &'static str {
        match self {
            Shown::Default(text) | Shown::Example(text) => text,
        }
    }
}

/// What a key takes, and the field that it sets.
enum Takes {
    Name(fn(&mut Settings, String)),
    Hosts(fn(&mut Settings, Vec<String>)),
    Programs(fn(&mut Settings, Vec<String>)),
    Variants(fn(&mut Settings, Vec<String>)),
    Families(fn(&mut Settings, Vec<Family>)),
    /// The least and the most.
    Whole(u64, u64, fn(&mut Settings, u64)),
    Share(fn(&mut Settings, f64)),
    Factor(fn(&mut Settings, f64)),
    Time(fn(&mut Settings, Duration)),
    /// A time, or for ever.
    Age(fn(&mut Settings, Option<Duration>)),
    Bytes(fn(&mut Settings, u64)),
    Summary(fn(&mut Settings, SummaryTo)),
    Word(&'static [Word]),
}

/// A word that a key takes, and what it does.
type Word = (&'static str, fn(&mut Settings));

impl fmt::Display for Takes {
    /// As in "it is not ...".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |names: &mut dyn Iterator<Item = &'static str>| {
            let quoted: Vec<_> = names.map(|name| format!("{name:?}")).collect();
            quoted.join(", ")
        };
        match self {
            Takes::Name(_) => f.write_str("a name of 1 to 64 letters, digits, '-', '_' or '.'"),
            Takes::Hosts(_) => f.write_str("a list of hosts such as [\"n17\", \"n18.hydra\"]"),
            Takes::Programs(_) => {
                f.write_str("a list of programs such as [\"gmx*\", \"/apps/*/lmp\"]")
            }
            Takes::Variants(_) => f.write_str("a list such as [\"native:linear\"]"),
            Takes::Families(_) => {
                let names = listed(&mut FAMILIES.iter().map(|family| family.name()));
                write!(f, "a list of some of {names}")
            }
            Takes::Whole(least, most, _) => write!(f, "a whole number from {least} to {most}"),
            Takes::Share(_) => f.write_str("a share from 0 to 1"),
            Takes::Factor(_) => f.write_str("a factor above 1"),
            Takes::Time(_) => f.write_str("a time such as \"10s\", \"500ms\", \"1h\""),
            Takes::Summary(_) => f.write_str("true, false or the path of a file"),
            Takes::Age(_) => f.write_str("a time such as \"90d\", \"0\" or \"inf\""),
            Takes::Bytes(_) => f.write_str("a number of bytes such as 4096, \"64MiB\", \"1GiB\""),
            Takes::Word(words) => {
                let names = listed(&mut words.iter().map(|(word, _)| *word));
                write!(f, "one of {names}")
            }
        }
    }
}

impl Key {
    /// What it takes, as in "it is not ...".
    pub fn allowed(&self) -> String {
        self.takes.to_string()
    }

    /// Sets it; the error names the value and what is allowed.
    pub(super) fn set(&self, settings: &mut Settings, value: &toml::Value) -> Result<(), String> {
        let refused = || format!("{value} is not {}", self.takes);
        match self.takes {
            Takes::Name(set) => set(settings, values::name(value).ok_or_else(refused)?),
            Takes::Hosts(set) => {
                let list = value.as_array().ok_or_else(refused)?;
                let names: Option<Vec<String>> = list.iter().map(values::name).collect();
                set(settings, names.ok_or_else(refused)?);
            }
            Takes::Programs(set) => {
                let list = value.as_array().ok_or_else(refused)?;
                let patterns: Option<Vec<String>> = list.iter().map(values::pattern).collect();
                set(settings, patterns.ok_or_else(refused)?);
            }
            Takes::Variants(set) => {
                let list = value.as_array().ok_or_else(refused)?;
                set(settings, values::variant_names(list)?);
            }
            Takes::Families(set) => {
                let read = |list: &Vec<toml::Value>| values::families(list, &FAMILIES);
                set(
                    settings,
                    value.as_array().and_then(read).ok_or_else(refused)?,
                );
            }
            Takes::Whole(least, most, set) => {
                let number = values::whole(value).filter(|number| (least..=most).contains(number));
                set(settings, number.ok_or_else(refused)?);
            }
            Takes::Share(set) => {
                let number = values::number(value).filter(|number| (0.0..=1.0).contains(number));
                set(settings, number.ok_or_else(refused)?);
            }
            Takes::Factor(set) => {
                let number = values::number(value).filter(|number| *number > 1.0);
                set(settings, number.ok_or_else(refused)?);
            }
            Takes::Time(set) => set(settings, values::duration(value).ok_or_else(refused)?),
            Takes::Age(set) => set(settings, values::age(value).ok_or_else(refused)?),
            Takes::Bytes(set) => set(settings, values::bytes(value).ok_or_else(refused)?),
            Takes::Summary(set) => set(settings, values::summary(value).ok_or_else(refused)?),
            Takes::Word(words) => {
                let named = |(word, _): &&Word| value.as_str() == Some(*word);
                let (_, set) = words.iter().find(named).ok_or_else(refused)?;
                set(settings);
            }
        }
        Ok(())
    }

    /// The value of a variable as the file would have it.
    pub(super) fn value_of(&self, text: &str) -> toml::Value {
        match self.takes {
            // "inf" is a number, too.
            Takes::Age(_) => toml::Value::String(text.to_owned()),
            Takes::Hosts(_) | Takes::Programs(_) | Takes::Variants(_) | Takes::Families(_) => {
                toml::Value::Array(
                    // As in the file, too: ["native", "node"].
                    text.split([',', '[', ']'])
                        .map(|name| name.trim().trim_matches('"'))
                        .filter(|name| !name.is_empty())
                        .map(toml::Value::from)
                        .collect(),
                )
            }
            _ => text
                .parse::<i64>()
                .map(toml::Value::Integer)
                .or_else(|_| text.parse::<f64>().map(toml::Value::Float))
                .unwrap_or_else(|_| toml::Value::String(text.to_owned())),
        }
    }
}

/// Former names of keys, which files and variables may still use, and today's.
const FORMER: [(&str, &str); 3] = [
    ("alone_after", "mismatch_timeout"),
    ("heed_every", "switch_poll_interval"),
    ("wait_word_after", "wait_warning_after"),
];

/// The key of that name, or of that former name.
pub fn find(name: &str) -> Option<&'static Key> {
    let name = renamed(name).unwrap_or(name);
    KEYS.iter().find(|key| key.name == name)
}

/// Today's name of the key that had this one.
pub fn renamed(former: &str) -> Option<&'static str> {
    let row = FORMER.iter().find(|(name, _)| *name == former);
    row.map(|(_, name)| *name)
}

const fn key(name: &'static str, takes: Takes, shown: Shown, doc: &'static str) -> Key {
    Key {
        name,
        takes,
        shown,
        doc,
    }
}

/// Every key with a single value, in the order in which the file explains them.
pub static KEYS: &[Key] = &[
    key(
        "machine",
        Takes::Name(|settings, name| settings.machine = Some(name)),
        Shown::Example("\"mycluster\""),
        "The machine that this database serves; traces of another one are quarantined. Without it the\n\
         machine is called what Slurm calls it, or its host name without trailing digits.",
    ),
    key(
        "exclude",
        Takes::Variants(|settings, names| settings.exclude = names),
        Shown::Example("[\"native:basic_linear\"]"),
        "Variants that are never drawn, in any cell.",
    ),
    key(
        "families",
        Takes::Families(|settings, families| settings.families = Some(families)),
        Shown::Example("[\"native\", \"node\"]"),
        "The families whose variants are drawn: the library's own algorithms (native), colltune's\n\
         schedules (p2p) and its shared memory inside the nodes (node).\n\
         Usual are native and node, and p2p where `colltune calibrate` has sorted out the hopeless ones.",
    ),
    key(
        "explore_total",
        Takes::Share(|settings, share| settings.explore_total = share),
        Shown::Default("0.15"),
        "The most that exploring may take of a cell's sampled calls after the first training.",
    ),
    key(
        "explore_budget",
        Takes::Share(|settings, share| settings.explore_budget = share),
        Shown::Default("0.02"),
        "The most that exploring may cost: samples, as a share of the time spent in a communicator's collectives, and\n\
         the agreements of the ranks on all communicators, as a share of the job's time. Beyond that, or 2 % where it is less,\n\
         further communicators are set up when they have lived for so long that this is no more of their life.",
    ),
    key(
        "watch",
        Takes::Share(|settings, share| settings.watch = share),
        Shown::Default("0.005"),
        "The share of a cell's calls that `exploit` times with the library's own choice, each beside one with the\n\
         tuned choice, and the most that this may cost: a choice that is no longer faster is not used for the\n\
         rest of the job. Twice as many calls, 144 in a row, run the library's own choices to measure what the choices\n\
         gain the program (`--summary`). 0 turns both off, and so does `reproducible` \"run\" and \"strict\";\n\
         then a running job does not obey a site's off-switch.",
    ),
    key(
        "hopeless_factor",
        Takes::Factor(|settings, factor| settings.hopeless_factor = Some(factor)),
        Shown::Example("10"),
        "Before any training a variant is not drawn where it is expected to be slower than another one by\n\
         more than this factor: usually 10, and 2 where `colltune calibrate` has made the expectation this\n\
         machine's own.",
    ),
    key(
        "records_per_run",
        Takes::Whole(0, 1 << 32, |settings, n| settings.records_per_run = n),
        Shown::Default("10000"),
        "The most calls that one rank records in one run, 128 bytes each; more than 131072 are not kept.",
    ),
    key(
        "recording_ranks_per_node",
        Takes::Whole(0, 1 << 20, |settings, n| {
            settings.recording_ranks_per_node = n as u32
        }),
        Shown::Default("2"),
        "How many ranks of a node record.",
    ),
    key(
        "recording_ranks",
        Takes::Whole(0, 1 << 20, |settings, n| {
            settings.recording_ranks = n as u32
        }),
        Shown::Default("32"),
        "How many ranks of a run record.",
    ),
    key(
        "samples_per_cell",
        Takes::Whole(1, 1 << 30, |settings, n| {
            settings.samples_per_cell = n as u32
        }),
        Shown::Default("256"),
        "Calls of a cell on one communicator that are sampled before sampling thins out.",
    ),
    key(
        "learner",
        Takes::Word(&[
            ("colltune", |all| all.learner = LearnerKind::Colltune),
            ("ompicolltune", |all| {
                all.learner = LearnerKind::OmpiCollTune
            }),
        ]),
        Shown::Default("\"colltune\""),
        "Who learns: \"colltune\", or \"ompicolltune\", the learner of the paper as published, which needs XGBoost. There each\n\
         recorded call draws from all of the library's own algorithms, at first alike, and regressions of their times\n\
         give the probabilities. The most probable one is the choice, also where nobody has run any.",
    ),
    key(
        "probability_min",
        Takes::Share(|settings, share| settings.probability_min = share),
        Shown::Default("0.03"),
        "The least probability of a variant, which the learner \"ompicolltune\" alone heeds; too large for all it is lowered.",
    ),
    key(
        "probability_max",
        Takes::Share(|settings, share| settings.probability_max = share),
        Shown::Default("1"),
        "The most probability of a variant; heeded as probability_min is.",
    ),
    key(
        "predictor",
        Takes::Word(&[
            ("gp", |settings| {
                settings.predictor = Predicting::GaussianProcess
            }),
            ("xgboost", |settings| {
                settings.predictor = Predicting::Xgboost
            }),
        ]),
        Shown::Default("\"gp\""),
        "Who speaks for cells and variants that nobody has measured: a Gaussian process (\"gp\") or XGBoost (\"xgboost\").",
    ),
    key(
        "reproducible",
        Takes::Word(&[
            ("off", |settings| settings.reproducible = Reproducible::Off),
            ("run", |settings| settings.reproducible = Reproducible::Run),
            ("strict", |settings| {
                settings.reproducible = Reproducible::Strict
            }),
            ("fixed", |settings| {
                settings.reproducible = Reproducible::Fixed
            }),
        ]),
        Shown::Default("\"off\""),
        "Whether tuning may change the rounding of floating-point reductions: \"off\" (any variant at any\n\
         call), \"run\" (one draw per cell and run), \"strict\" (bits equal to the library's own), \"fixed\" (one\n\
         order of operations for each number of ranks, in blocking calls, whatever the library, the nodes and the\n\
         variant).",
    ),
    key(
        "gpu",
        Takes::Word(&[
            ("off", |settings| settings.gpu = Gpu::Off),
            ("host-only", |settings| settings.gpu = Gpu::HostOnly),
        ]),
        Shown::Default("\"off\""),
        "What runs in jobs that use GPUs through a GPU-aware library: \"off\" (the library's own choice and\n\
         its own algorithms, since a buffer may lie where no processor reads it), \"host-only\" (everything:\n\
         the site knows that the buffers of collectives always lie in the host's memory).",
    ),
    key(
        "memory_per_rank_max",
        Takes::Bytes(|settings, bytes| settings.memory_per_rank_max = bytes),
        Shown::Default("\"64MiB\""),
        "The most memory that one rank takes for all that colltune runs; what does not fit runs the\n\
         library's own choice, on all ranks.",
    ),
    key(
        "setup_after",
        Takes::Whole(1, 1 << 30, |settings, n| settings.setup_after = n as u32),
        Shown::Default("8"),
        "The tuned call of a communicator at which it is set up. Sooner where its calls have moved 4 MiB\n\
         before, or the blocks of its alltoalls, allgathers, gathers and scatters 512 KiB. Where nothing is\n\
         explored, eight times as many on a communicator that the program made.",
    ),
    key(
        "wait_warning_after",
        Takes::Time(|settings, time| settings.wait_warning_after = time),
        Shown::Default("\"60s\""),
        "After so long a wait for another rank in shared memory one sentence says who waits for whom.",
    ),
    key(
        "mismatch_timeout",
        Takes::Time(|settings, time| settings.mismatch_timeout = time),
        Shown::Default("\"60s\""),
        "How long a rank whose arguments a variant cannot take, though the library accepts them, waits to learn whether\n\
         the same holds on all other ranks: then the library runs the call. If not, the rank ends the job, because the\n\
         others wait for it inside the variant.",
    ),
    key(
        "keep_raw",
        Takes::Age(|settings, age| settings.keep_raw = age),
        Shown::Default("\"90d\""),
        "How long the raw records of runs are kept (DB/LIBRARY/data). What they say of each variant is kept beside\n\
         them (DB/LIBRARY/evidence), of old runs ever less, and is all that a training reads. \"0\": no longer than\n\
         until they have been reduced to that; \"inf\": for ever.",
    ),
    key(
        "stale_after",
        Takes::Time(|settings, time| settings.stale_after = time),
        Shown::Default("\"1h\""),
        "How old the trace of a job that never ended must be to be taken.",
    ),
    key(
        "summary",
        Takes::Summary(|settings, to| settings.summary = to),
        Shown::Default("false"),
        "Whether a job says at its end how much of its time went into collectives: true (a line on the\n\
         error stream), or the path of a file to which each job adds one line of JSON.",
    ),
    key(
        "seed",
        Takes::Whole(0, i64::MAX as u64, |settings, seed| {
            settings.seed = Some(seed)
        }),
        Shown::Example("1"),
        "Goes into the seed of every draw, which each job has for itself; `--seed` and COLLTUNE_SEED are one job's seed.",
    ),
    key(
        "exclude_hosts",
        Takes::Hosts(|settings, hosts| settings.exclude_hosts = hosts),
        Shown::Example("[\"n17\"]"),
        "Hosts that `colltune doctor --nodes --write-hostfile` leaves out whatever it measures.",
    ),
    key(
        "programs_allow",
        Takes::Programs(|settings, patterns| settings.programs_allow = patterns),
        Shown::Example("[\"gmx*\"]"),
        "The programs that are tuned, by name: * stands for any characters, ? for one, and a pattern with a slash\n\
         is about the whole path. Without any all are. A job in which one program is not is not tuned at all.",
    ),
    key(
        "programs_deny",
        Takes::Programs(|settings, patterns| settings.programs_deny = patterns),
        Shown::Example("[\"python*\"]"),
        "The programs that are not tuned; goes before programs_allow.",
    ),
    key(
        "switch_poll_interval",
        Takes::Time(|settings, time| settings.switch_poll_interval = time),
        Shown::Default("\"10s\""),
        "How often rank 0 of a job that got its tables from a site folder looks whether it was switched off there\n\
         (`colltune publish --off SITE`); \"0s\": never. The job obeys when ranks next compare a choice with the default,\n\
         so never where nothing is compared: watch = 0, a forced variant, `reproducible` \"run\" and \"strict\".",
    ),
];

/// `colltune.toml` with every key explained, and commented out at what it is without being set, but for the
/// machine's name.
pub fn explained(machine: &str) -> String {
    let mut text = "# Settings of this tuning database. Every key but [[space]] can be overridden for one job by a variable\n\
        # COLLTUNE_<KEY>, as in COLLTUNE_RECORDS_PER_RUN=1000. What is commented out is the default.\n"
        .to_owned();
    for key in KEYS {
        text.push('\n');
        for line in key.doc.lines() {
            text += &format!("# {line}\n");
        }
        let named = key.name == "machine" && values::name(&machine.into()).is_some();
        text += &match named {
            true => format!("machine = \"{machine}\"\n"),
            false => format!("#{} = {}\n", key.name, key.shown.text()),
        };
    }
    text + SPACE
}

const SPACE: &str = r#"
# The tuning space: ranges of message bytes, nodes and ranks per node, half-open, "inf" at the end.
# A collective without a [[space]] keeps the usual one. Its cells must cover everything once.
#[[space]]
#collective = "allreduce"
#bytes = [0, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, "inf"]
#nodes = [1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, "inf"]
#ppn = [1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025, "inf"]
#exclude = []
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::simulated::HOPELESS_SIMULATED;

    #[test]
    fn what_is_shown_as_the_default_is_the_default_and_every_example_is_another_value() {
        for key in KEYS {
            let line = format!("value = {}", key.shown.text());
            let mut table: toml::Table = line.parse().unwrap();
            let value = table.remove("value").unwrap();
            let mut settings = Settings::default();
            key.set(&mut settings, &value).unwrap();
            let is_default = matches!(key.shown, Shown::Default(_));
            assert_eq!(settings == Settings::default(), is_default, "{}", key.name);
        }
    }

    #[test]
    fn what_is_said_to_be_usual_is() {
        let library = "openmpi-4.1.4".parse().unwrap();
        let usual = Settings::default();
        let shown = |name| find(name).unwrap().shown.text();
        let families = usual.families_on(library);
        let names: Vec<_> = families.iter().map(|family| family.name()).collect();
        assert_eq!(shown("families"), format!("{names:?}"));
        let factor = usual.hopeless_factor_on(library).to_string();
        assert_eq!(shown("hopeless_factor"), factor);
        let doc = find("hopeless_factor").unwrap().doc;
        let said = format!("usually {factor}, and {HOPELESS_SIMULATED} where");
        assert!(doc.contains(&said), "{doc}");
    }
}
