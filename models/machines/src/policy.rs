//! Learners, behind one trait.

use colltune_core::model::Model;

use crate::job::Sample;
use crate::site::Site;

/// A way to learn; it knows a site's settings, not its truth.
pub trait Policy: Sync {
    fn name(&self) -> &'static str;

    /// A database without any run.
    fn begin<'a>(&self, site: &'a Site) -> Box<dyn Learner + 'a>;
}

/// One database.
pub trait Learner {
    /// Takes the samples of the runs since the last training, and publishes.
    fn train(&mut self, fresh: &[Sample], truth: &Site) -> Published;
}

/// What a training leaves behind.
#[derive(Clone, Debug)]
pub struct Published {
    pub model: Model,
    /// What it says of variants.
    pub claims: Vec<Claim>,
    /// Whether it says that nothing can be gained.
    pub nothing_to_gain: bool,
}

/// What a training says of one variant in one cell: the default's time over its own, with the 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    pub cell: usize,
    pub variant: usize,
    pub samples: u64,
    pub gain: f64,
    pub lo: f64,
    pub hi: f64,
}
