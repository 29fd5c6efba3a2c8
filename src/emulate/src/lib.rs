//! Runs an adaptive-mesh-refinement program's time axes: what each rank does when, from costs of blocks, real
//! placement policies, the program's own messages and priced collectives.
//!
//! A pure function of (program, mesh history, machine, policy, collectives, costs, seed): no cell is computed and no
//! message sent. Times are nanoseconds inside and seconds in what is written.
//!
//! Data flow: [`machine`], [`cost`] and [`mesh`] say what there is, [`traffic`] and [`place`] which rank gives what
//! to which. [`program`] lists what ranks do. [`axes`] lets it happen, with [`price`] for collectives and [`cores`]
//! where ranks share processors. [`outcome`] is what came of it.
#![forbid(unsafe_code)]

pub mod error;

pub mod clock;

mod counting;

pub mod machine;

pub mod cost;

pub mod mesh;

pub mod traffic;

pub mod place;

pub mod program;

pub mod cores;

pub mod axes;

pub mod price;

pub mod noise;

pub mod outcome;

pub mod run;

pub mod whatif;

pub mod study;

pub use error::EmulateError;
