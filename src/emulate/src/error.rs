//! What cannot be emulated, and why; messages read after "failed to".

use colltune_placement::PlacementError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum EmulateError {
    #[error("use the machine: {0}")]
    Machine(String),
    #[error("find a machine called {name:?}: there are {known}, and files")]
    UnknownMachine { name: String, known: String },
    #[error("use the costs: {0}")]
    Costs(String),
    #[error("fit costs on {rows} rows of {what}: at least {least} are needed; record more steps")]
    TooFewRows {
        what: String,
        rows: usize,
        least: usize,
    },
    #[error("use the mesh history: {0}")]
    Mesh(String),
    #[error("place {blocks} blocks on {ranks} ranks in step {step}: give at most {blocks} ranks")]
    MoreRanksThanBlocks {
        blocks: usize,
        ranks: usize,
        step: u64,
    },
    #[error(transparent)]
    Placement(#[from] PlacementError),
    #[error("place blocks with {policy}: {reason}")]
    Policy { policy: String, reason: String },
    #[error("use variant {name:?} for {collective}: there are {known}")]
    UnknownVariant {
        collective: &'static str,
        name: String,
        known: String,
    },
    #[error("run {variant} on {ranks} ranks: {reason}")]
    Variant {
        variant: String,
        ranks: usize,
        reason: String,
    },
    #[error("run the program: {0}")]
    Program(String),
}
