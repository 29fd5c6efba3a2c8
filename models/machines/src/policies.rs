//! Every policy that is compared.

mod cells;

mod baseline;
mod oracle;
mod paper;
mod uniform;

use crate::policy::Policy;

/// All of them, the reference last.
pub const POLICIES: [&dyn Policy; 4] = [
    &baseline::Baseline,
    &paper::Paper,
    &uniform::Uniform,
    &oracle::Oracle,
];
