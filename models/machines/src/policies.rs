//! Every policy that is compared.

mod cells;

mod oracle;
mod product;
mod uniform;

use crate::policy::Policy;

/// The product's own, which alone says what it knows.
pub const PRODUCT: &dyn Policy = &product::Product;
/// The reference: it knows the truth.
pub const ORACLE: &dyn Policy = &oracle::Oracle;

/// Every policy that is compared: the product's first, the reference last.
pub fn policies() -> Vec<&'static dyn Policy> {
    vec![PRODUCT, &uniform::Uniform, ORACLE]
}
