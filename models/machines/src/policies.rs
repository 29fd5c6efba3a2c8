//! Every policy that is compared.

mod cells;

mod oracle;
#[cfg(feature = "xgboost")]
mod paper;
mod product;
mod uniform;

use crate::policy::Policy;

/// All of them: the product's own, which alone says what it knows, first, the reference last.
pub const POLICIES: &[&dyn Policy] = &[
    &product::Product,
    #[cfg(feature = "xgboost")]
    &paper::Paper,
    &uniform::Uniform,
    &oracle::Oracle,
];
