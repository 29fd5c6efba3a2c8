//! Every policy that is compared.

mod cells;

mod baseline;
mod oracle;
mod paper;
mod product;
mod uniform;

use crate::policy::Policy;

/// Those that publish what they know and not only what they choose; the first in the list of all.
pub const LEARNERS: [&str; 2] = ["learner", "baseline"];
/// All of them: the product's own first, then what it is to beat, the reference last.
pub const POLICIES: [&dyn Policy; 5] = [
    &product::Product,
    &baseline::Baseline,
    &paper::Paper,
    &uniform::Uniform,
    &oracle::Oracle,
];
