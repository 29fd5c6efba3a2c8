//! The variables of the environment that belong to colltune: what each takes, who reads it, who sets it.
//!
//! Beside these there is `COLLTUNE_<KEY>` for every key of `colltune.toml` with a single value. The shim, the command,
//! `colltune doctor` and the documents name no others; `tests/tests/environment.rs` looks.

use crate::settings::{self, KEYS};
use crate::spelling;

/// What every variable of ours begins with.
pub const PREFIX: &str = "COLLTUNE_";

pub const DB: &str = "COLLTUNE_DB";
pub const FLIGHT: &str = "COLLTUNE_FLIGHT";
pub const MODE: &str = "COLLTUNE_MODE";
pub const FORCE: &str = "COLLTUNE_FORCE";
pub const LOG: &str = "COLLTUNE_LOG";
pub const HANDSHAKE: &str = "COLLTUNE_HANDSHAKE";
pub const HANDSHAKE_TIMEOUT: &str = "COLLTUNE_HANDSHAKE_TIMEOUT";
pub const PRESETS: &str = "COLLTUNE_PRESETS";
/// The variable of the setting `summary`, which alone makes the shim count calls.
pub const SUMMARY: &str = "COLLTUNE_SUMMARY";
/// The variable of the setting `learner`.
pub const LEARNER: &str = "COLLTUNE_LEARNER";
/// Makes the shim keep a run in the database's ledger though it is off.
pub const LEDGER: &str = "COLLTUNE_LEDGER";
/// Makes the shim end a job that would run untuned.
pub const STRICT: &str = "COLLTUNE_STRICT";
/// What `colltune run --messages` tells the library that records point-to-point messages.
pub const MESSAGES: &str = "COLLTUNE_MESSAGES";
pub const LABEL: &str = "COLLTUNE_LABEL";
pub const LEVERS: &str = "COLLTUNE_LEVERS";
/// What stands for the arguments of a program some of which are a lever's.
pub const ARGUMENTS: &str = "COLLTUNE_ARGUMENTS";
pub const LIB: &str = "COLLTUNE_LIB";
/// No setting: a database that others write to must not say which code is loaded.
pub const XGBOOST: &str = "COLLTUNE_XGBOOST";

/// Who reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The shim, on every rank of a job.
    Job,
    /// The command.
    Command,
    /// What `colltune export` writes.
    Tables,
    /// Build, tests and benches of this project.
    Development,
}

/// Who may set a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    User,
    /// `colltune run` or the tests; it means nothing to anybody else.
    Ourselves,
}

/// One variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    /// What it takes and does, as the documents say it.
    pub takes: &'static str,
    pub read_by: &'static [Reader],
    pub set_by: SetBy,
}

/// Every variable but the settings.
pub const VARIABLES: [Variable; 24] = [
    users(
        DB,
        "the folder of the tuning database, or a site folder to exploit",
        &[Reader::Job, Reader::Command],
    ),
    users(
        MODE,
        "`explore`, `exploit`, `tables`, `record` or `off`",
        &[Reader::Job, Reader::Command],
    ),
    users(
        FORCE,
        "`COLLECTIVE=VARIANT[;...]`, a variant for every call that it applies to",
        &[Reader::Job, Reader::Command],
    ),
    users(
        LOG,
        "`calls:DIR`, a line for each tuned call in `DIR/rank-N.jsonl`",
        &[Reader::Job],
    ),
    users(
        FLIGHT,
        "a folder, into which ranks that get SIGUSR2 or give up write their last decisions, for `colltune explain`",
        &[Reader::Job],
    ),
    users(
        HANDSHAKE,
        "`trust`: where the launcher has nothing to ask with, the ranks ask each other by messages; a rank without the shim then \
         ends the job",
        &[Reader::Job],
    ),
    users(
        HANDSHAKE_TIMEOUT,
        "the longest wait for other ranks at the start, as in `20s`; usually 10s, with `trust` 60s",
        &[Reader::Job],
    ),
    users(
        LABEL,
        "a name for runs that are alike, by which `colltune report` compares them",
        &[Reader::Job],
    ),
    users(
        LEVERS,
        "`NAME=ARM[;...]`, what the job runs with; `colltune run --lever` sets it, and programs that ask get these arms",
        &[Reader::Job],
    ),
    users(
        LIB,
        "`libcolltune.so`, or the folder with `openmpi/` and `mpich/` that hold it",
        &[Reader::Command],
    ),
    users(
        XGBOOST,
        "`libxgboost.so`, where `predictor = \"xgboost\"` and the dynamic linker does not find it",
        &[Reader::Command],
    ),
    users(
        "COLLTUNE_TABLES",
        "the folder of exported tables, where the shell cannot tell `activate.sh`",
        &[Reader::Tables],
    ),
    users(
        "COLLTUNE_TARGET_DIR",
        "where `make build` puts what it built, for the tests",
        &[Reader::Development],
    ),
    users(
        "COLLTUNE_LONG",
        "`1`: the tests run their long cases",
        &[Reader::Development],
    ),
    users(
        "COLLTUNE_BLESS",
        "`1`: tests write their golden files anew",
        &[Reader::Development],
    ),
    ours(
        PRESETS,
        "what `colltune run` told the library before the job",
        &[Reader::Job],
    ),
    ours(
        ARGUMENTS,
        "`colltune run --lever`: what stands for the arguments in the ledger, the same for all arms",
        &[Reader::Job],
    ),
    ours(
        LEDGER,
        "`colltune run --mode off --db DIR`: the run is kept in the ledger",
        &[Reader::Job],
    ),
    ours(
        MESSAGES,
        "`RUN:FOLDER`, `colltune run --messages`: each rank writes what it sent and how long it waited into the folder",
        &[Reader::Job],
    ),
    ours(
        STRICT,
        "`colltune run --strict`: a job that would run untuned ends in MPI_Init",
        &[Reader::Job],
    ),
    ours(
        "COLLTUNE_SKIP_LOG",
        "the file to which tests that a machine cannot run say why",
        &[Reader::Development],
    ),
    ours(
        "COLLTUNE_TEST_DB",
        "the database of a test's second process",
        &[Reader::Development],
    ),
    ours(
        "COLLTUNE_TEST_STEP",
        "where a test's second process ends",
        &[Reader::Development],
    ),
    ours(
        "COLLTUNE_X",
        "what the test cluster's own test passes through",
        &[Reader::Development],
    ),
];

const fn users(name: &'static str, takes: &'static str, read_by: &'static [Reader]) -> Variable {
    let set_by = SetBy::User;
    Variable {
        name,
        takes,
        read_by,
        set_by,
    }
}

const fn ours(name: &'static str, takes: &'static str, read_by: &'static [Reader]) -> Variable {
    let set_by = SetBy::Ourselves;
    Variable {
        name,
        takes,
        read_by,
        set_by,
    }
}

/// The names of the variables that stand for settings.
fn settings() -> impl Iterator<Item = String> {
    KEYS.iter()
        .map(|key| format!("{PREFIX}{}", key.name.to_ascii_uppercase()))
}

/// Whether a variable is one of ours, or stands for a setting, by today's or a former name.
pub fn is_known(name: &str) -> bool {
    VARIABLES.iter().any(|one| one.name == name)
        || settings().any(|one| one == name)
        || renamed(name).is_some()
}

/// Today's name of a variable that stands for a setting by its former name.
pub fn renamed(former: &str) -> Option<String> {
    let key = former.strip_prefix(PREFIX)?.to_ascii_lowercase();
    settings::renamed(&key).map(|name| format!("{PREFIX}{}", name.to_ascii_uppercase()))
}

/// The variable that was meant by a name that is none: at most two letters differ.
pub fn meant_by(name: &str) -> Option<String> {
    let settings: Vec<_> = settings().collect();
    let users = VARIABLES.iter().filter(|one| one.set_by == SetBy::User);
    let known = users
        .map(|one| one.name)
        .chain(settings.iter().map(String::as_str));
    let nearest = spelling::nearest(name, known, 1).first().copied()?;
    (spelling::distance(name, nearest) <= 2).then(|| nearest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_variables_are_told_their_neighbour() {
        for (typed, meant) in [
            ("COLLTUNE_MOED", Some(MODE)),
            ("COLLTUNE_EXPLORE_TOTL", Some("COLLTUNE_EXPLORE_TOTAL")),
            ("COLLTUNE_HANDSHAK", Some(HANDSHAKE)),
            ("COLLTUNE_SOMETHING_ELSE", None),
        ] {
            assert!(!is_known(typed));
            assert_eq!(meant_by(typed).as_deref(), meant, "{typed}");
        }
    }

    #[test]
    fn a_variable_stands_once_and_no_setting_has_its_name() {
        for (place, one) in VARIABLES.iter().enumerate() {
            assert!(one.name.starts_with(PREFIX) && !one.takes.is_empty());
            assert!(
                VARIABLES[..place]
                    .iter()
                    .all(|other| other.name != one.name),
                "{}",
                one.name
            );
            assert!(
                settings().all(|setting| setting != one.name),
                "{}",
                one.name
            );
        }
        assert!(is_known(HANDSHAKE) && is_known("COLLTUNE_SEED") && !is_known("COLLTUNE_"));
    }
}
