//! Places the blocks of an adaptive mesh on ranks, and certifies how good a placement is.
//!
//! Modules stand in the order in which data flows: a mesh is ordered along a [`curve`], what is to
//! be placed becomes a [`problem`], a [`policy`] chooses the owners, and [`certificate`] judges them
//! without knowing which policy chose them. [`generate`] makes seeded problems for tests and benchmarks,
//! [`published`] has what policies are compared with.
//!
//! ```
//! use colltune_placement::{Policy, Problem, certify, place};
//!
//! let costs = [3.0, 1.0, 1.0, 1.0, 2.0, 2.0];
//! let problem = Problem::new(&costs, 2)?;
//! let placement = place(&"contiguous-optimal".parse::<Policy>()?, &problem)?;
//! assert_eq!(placement.owners, [0, 0, 0, 1, 1, 1]);
//! let certificate = certify(&problem, &placement.owners)?;
//! assert_eq!((certificate.makespan, certificate.bound), (5.0, 5.0));
//! # Ok::<(), colltune_placement::PlacementError>(())
//! ```
#![forbid(unsafe_code)]

pub mod curve;
pub mod error;
pub mod problem;
pub mod sort;

pub mod cost;
pub mod speeds;
pub mod trigger;

pub mod matching;

pub mod policy;

pub mod bound;
pub mod certificate;
pub mod levels;

pub mod migrate;

pub mod balancer;

pub mod generate;
pub mod published;

pub use balancer::{Balanced, Balancer, Loads, Prices, Proposal};
pub use certificate::{
    Certificate, Locality, MemoryUse, Migration, Proof, certify, hash, loads, makespan,
};
pub use cost::{Costs, Inheritance, Smoothing};
pub use curve::{Curve, Octant};
pub use error::PlacementError;
pub use levels::{LevelBalance, balance_by_level};
pub use matching::match_owners;
pub use migrate::{MigrationLimit, limit_migration};
pub use policy::{Placement, Policy, place};
pub use problem::{Graph, Limits, Link, Machine, Matching, Memory, Mesh, Problem};
pub use trigger::{MeshLife, Prospect, Situation, Trigger};
