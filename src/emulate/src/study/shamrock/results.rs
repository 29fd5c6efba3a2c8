//! What the study measures.

use super::times::{Fitted, Times};

/// Cores of figs 6 to 8.
pub const CORES: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
pub type Vary = fn(&mut colltune_core::algorithm::simulate::Link);

/// Start-up times and times of bytes, halved and doubled.
pub const VARIATIONS: [(&str, Vary); 4] = [
    ("t_s halved", |link| link.latency_ns *= 0.5),
    ("t_s doubled", |link| link.latency_ns *= 2.0),
    ("t_c halved", |link| link.per_byte_ns *= 0.5),
    ("t_c doubled", |link| link.per_byte_ns *= 2.0),
];

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
