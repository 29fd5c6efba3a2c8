//! What the study measures.

use super::times::{Fitted, Times};

/// Cores of figs 6 to 8.
pub const CORES: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// All times that the figures need; by cores where there are several.
pub struct Results {
    pub fitted: Fitted,
    /// Symmetric on four cores: none, round robin.
    pub fig_3: [Times; 2],
    /// Asymmetric on four cores: none, weighted random.
    pub fig_5: [Times; 2],
    /// Symmetric: none, weighted random.
    pub fig_6: [Vec<Times>; 2],
    /// Asymmetric: none, then from levels 4, 3, 2 and 1 on.
    pub fig_7: [Vec<Times>; 5],
    /// Symmetric: the model.
    pub fig_8: Vec<Times>,
}
