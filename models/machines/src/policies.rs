//! Every policy that is compared.

mod cells;

mod oracle;
mod paper;
mod product;
mod uniform;

use colltune_models::predict::XgBoost;

use crate::policy::Policy;

/// The product's own, which alone says what it knows.
pub const PRODUCT: &dyn Policy = &product::Product;
/// The reference: it knows the truth.
pub const ORACLE: &dyn Policy = &oracle::Oracle;

/// Every policy that can be had here (the paper's needs XGBoost): the product's first, the reference last.
pub fn policies() -> Vec<&'static dyn Policy> {
    let mut all = vec![PRODUCT, &uniform::Uniform, ORACLE];
    let paper = XgBoost::loaded().ok().map(|_| &paper::Paper as &dyn Policy);
    all.splice(1..1, paper);
    all
}
