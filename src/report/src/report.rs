//! All that the page shows, and what `--json` prints.

use std::path::PathBuf;

use colltune_core::context::DataKey;
use colltune_core::levers::learned::LearnedLever;
use colltune_db::DbError;
use serde::Serialize;
use thiserror::Error;

pub use crate::cells::{Cells, Opened, Settings};
pub use crate::head::{Exploring, Head, RunsByMode};
pub use crate::history::{GenerationMark, Histories, History, Line};
pub use crate::programs::{Part, Program, ProgramCell, Ran};
pub use crate::unseen::{Distribution, Panel, Unseen};
pub use crate::whole_runs::{Clock, Gained, Kind, RunBox, RunPanel, WholeRuns};

/// The contents of `report --json`. Times are seconds, or nanoseconds where the name says so.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema: u32,
    pub head: Head,
    pub programs: Vec<Program>,
    pub cells: Cells,
    pub histories: Histories,
    pub unseen: Unseen,
    pub whole_runs: WholeRuns,
    /// What was learned of levers that programs ask about.
    pub levers: Vec<LearnedLever>,
    /// What could not be read, and what that leaves out.
    pub warnings: Vec<String>,
}

impl Report {
    pub const SCHEMA: u32 = 1;
}

/// Why there is no report; the messages read after "failed to".
#[derive(Debug, Error)]
pub enum ReportError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error("find {key} in {}: {}", path.display(), listed(found))]
    Library {
        key: DataKey,
        path: PathBuf,
        found: Vec<DataKey>,
    },
}

fn listed(keys: &[DataKey]) -> String {
    let names: Vec<String> = keys.iter().map(DataKey::to_string).collect();
    if names.is_empty() {
        "it holds no library yet".to_owned()
    } else {
        format!("it holds {}", names.join(", "))
    }
}
