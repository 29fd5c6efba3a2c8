//! The pure heart of colltune: no MPI, clock, file, environment, thread or `unsafe`.
//!
//! Modules stand in the order in which data flows through a job:
//! what is called ([`collective`], [`call`], [`datatype`], [`library`]), on what ([`context`], [`component`],
//! [`machine`]), and how it can be run ([`variant`], [`catalogue`]). Then what a site decided ([`settings`],
//! [`space`], [`environment`], [`programs`]) and published ([`site`]), what is worth drawing before anything is known
//! ([`prior`]), and what a training published ([`model`]). Of one job: what its user asks for ([`request`]), what
//! holds for a whole run where the library needs that ([`preset`]), its [`levers`], and how its ranks find each other
//! ([`launched`], [`rendezvous`], [`roster`], [`processors`]). Of one call: [`classify`], whether it is sampled
//! ([`thin`]), [`select`], what its ranks conclude together ([`review`], [`race`]), all that decides on one
//! communicator ([`decide`]), and [`record`]. When a job hangs, [`flight`] has the last calls.
#![forbid(unsafe_code)]

mod named;

pub mod call;
pub mod collective;
pub mod component;
pub mod context;
pub mod datatype;
pub mod library;
pub mod machine;
pub mod need;
pub mod shape;

pub mod algorithm;
pub mod catalogue;
pub mod node;
pub mod variant;

pub mod bound;
pub mod calibration;
pub mod environment;
pub mod model;
pub mod prior;
pub mod programs;
pub mod settings;
pub mod space;

pub mod launched;
pub mod levers;
pub mod processors;
pub mod rendezvous;
pub mod roster;
pub mod site;

pub mod account;
pub mod classify;
pub mod decide;
pub mod flight;
pub mod preset;
pub mod race;
pub mod record;
pub mod request;
pub mod review;
pub mod select;
pub mod spelling;
pub mod thin;
