//! Policies: how owners are chosen.
//!
//! A policy is a row of the [`TABLE`] and an argument; it is read from, and printed as, its name, such
//! as `contiguous`, `cplx:50` or `contiguous-optimal:max=4`. A new policy is one file and one row.

mod baseline;
pub mod contiguous;
pub mod contiguous_optimal;
pub mod cplx;
mod fit;
#[cfg(feature = "metis")]
mod graphlb;
mod grouplb;
#[cfg(feature = "ilp")]
mod ilp;
mod least_loaded;
mod limit;
pub mod lpt;
pub mod lpt_swap;
mod name;
mod place;
mod placement;
mod rcb;
mod repack;
mod row;
mod sfclb;
mod shamrock;
mod table;
mod uneven;
mod units;
mod weighted_random;

pub use place::place;
pub use placement::Placement;
pub use row::{Argument, Need, Policy, Row, Syntax};
pub use table::TABLE;

#[cfg(test)]
mod tests;
