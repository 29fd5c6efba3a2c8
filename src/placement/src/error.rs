//! What can be wrong with a placement problem or with a policy's name.

/// Why a problem was refused or a policy could not place it. Every message reads after "failed to".
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    #[error("place blocks on 0 ranks: at least one is needed")]
    NoRanks,
    #[error("place blocks on {0} ranks: at most {max} fit", max = crate::problem::RANKS_MAX)]
    TooManyRanks(u32),
    #[error("run policy {policy}: it does not heed that ranks have unequal speeds; {heed} do")]
    Speeds { policy: String, heed: &'static str },
    #[error("place block {block}: no rank has room for the {need} of memory that it needs")]
    Memory { block: u32, need: u64 },
    #[error("place blocks that need {needed} of memory: all ranks together have {there}")]
    MemoryTooSmall { needed: u128, there: u128 },
    #[error("place {0} blocks: at most {max} can be numbered", max = u32::MAX)]
    TooManyBlocks(usize),
    #[error("use the cost of block {block}: {cost} is not finite")]
    CostNotFinite { block: usize, cost: f64 },
    #[error("use the cost of block {block}: {cost} is negative")]
    CostNegative { block: usize, cost: f64 },
    #[error("add up the costs: their sum is not finite")]
    CostsOverflow,
    #[error("use {what}: {found} entries where {expected} belong")]
    Length {
        what: &'static str,
        expected: usize,
        found: usize,
    },
    #[error("use the mesh: block {block} {reason}")]
    Mesh { block: usize, reason: &'static str },
    #[error("use the neighbour graph: row {block} {reason}")]
    Graph { block: usize, reason: &'static str },
    #[error("use the owner of block {block}: rank {owner} is not below {ranks}")]
    Owner {
        block: usize,
        owner: u32,
        ranks: u32,
    },
    #[error("place {blocks} blocks on {ranks} ranks with at most {blocks_per_rank} on each")]
    LimitTooTight {
        blocks: usize,
        ranks: u32,
        blocks_per_rank: u32,
    },
    #[error("use {what}: {value} {reason}")]
    Value {
        what: &'static str,
        value: f64,
        reason: &'static str,
    },
    #[error("use policy \"{name}\": the policies are {allowed}")]
    UnknownPolicy { name: String, allowed: String },
    #[error("use curve \"{0}\": the curves are morton, hilbert")]
    UnknownCurve(String),
    #[error(
        "use trigger \"{0}\": triggers are never, every:STEPS, mesh-change, imbalance:SHARE, break-even"
    )]
    UnknownTrigger(String),
    #[error("use distribution \"{0}\": distributions are exponential, gaussian, power-law")]
    UnknownDistribution(String),
    #[error("read \"{argument}\" of policy {policy}: {allowed}")]
    PolicyArgument {
        policy: &'static str,
        argument: String,
        allowed: &'static str,
    },
    #[error("run policy {policy}: it needs {need}")]
    Needs {
        policy: &'static str,
        need: &'static str,
    },
    #[error("run policy {policy}: {reason}")]
    Policy {
        policy: &'static str,
        reason: String,
    },
}
