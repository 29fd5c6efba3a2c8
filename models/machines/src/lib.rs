//! Synthetic machines with known truth, on which learners are compared.
//!
//! Modules stand in the order of the data: a machine's [`recipe`] becomes true costs of variants ([`field`],
//! [`cost`], or as they were measured [`recorded`], [`site`]). Its [`weather`] and its ranks' lateness ([`arrival`])
//! turn these into what ranks see. A job ([`ranks`], [`job`]) draws variants with the product's own decisions and
//! yields its sampled calls. Learners ([`policy`]) turn them into the next model, and a [`campaign`] goes round this
//! loop. What came of it is held against the truth ([`score`]) and written down ([`report`], [`trial`], [`bench`]).
//!
//! All random numbers follow from a seed by `ChaCha8`, whatever the number of threads.
#![forbid(unsafe_code)]

pub mod recipe;
pub mod recorded;

pub mod field;

pub mod cost;

pub mod site;

pub mod arrival;
pub mod weather;

pub mod ranks;

pub mod job;

pub mod policy;

pub mod policies;

pub mod campaign;

pub mod score;

pub mod report;

pub mod trial;

pub mod bench;
