//! The decks, and what the study measures on them.

use super::script::{Deck, Scales, Script, Spent};

pub const RANKS: usize = 128;
/// Where the paper's weak scaling ends.
pub const LAST_RANKS: usize = 131_072;
/// Calculation, communication and refinement of miniAMR's column, percent.
pub const SPHERE_BLOCK: [f64; 3] = [35.4, 64.0, 0.6];
/// What modifies the bisection into CTH's.
pub const MODIFIED: &str = "--change_dir --group_blocks --limit_move 25";

pub const DECKS: [Deck; 2] = [
    Deck {
        name: "sphere-hits-block",
        blocks_per_rank: 248.0,
        on_ranks: 16,
    },
    Deck {
        name: "four-spheres",
        blocks_per_rank: 669.0,
        on_ranks: 128,
    },
];

/// A run on so many ranks.
pub struct Scaled {
    pub ranks: usize,
    pub blocks_per_rank: f64,
    pub spent: Spent,
}

pub struct Results {
    /// On the assumed network.
    pub own: OnNetwork,
    /// On each other one.
    pub others: Vec<OnNetwork>,
    /// Of each deck: with miniAMR's bisection, and modified.
    pub scripts: [[Script; 2]; 2],
    /// Of the first deck: the last number of ranks in the paper, or fewer, and blocks a rank on them.
    pub last_mesh: (usize, f64),
    pub depths: [u32; 2],
}

/// All times on one network, with the scales that are set on it.
pub struct OnNetwork {
    pub scales: Scales,
    /// Of each deck on [`RANKS`]: its time with miniAMR's bisection.
    pub spent: [Spent; 2],
    /// Four spheres with the modified bisection.
    pub modified: Spent,
    /// Of each deck.
    pub scaled: [Vec<Scaled>; 2],
}
