//! The table of studies: the command, the page of evidence and the tests go through it.

use super::finding::Study;
use super::size::Size;
use super::{art, cplx, miniamr, shamrock};
use crate::EmulateError;
use crate::clock::Timer;

/// A study: its name, its paper, and the function that runs it. Without a timer nothing is timed.
pub struct Row {
    pub name: &'static str,
    pub paper: &'static str,
    pub run: fn(Size, Option<Timer>) -> Result<Study, EmulateError>,
}

/// Every study there is.
pub static ALL: &[Row] = &[
    Row {
        name: "art",
        paper: "Wu et al., CLUSTER 2011",
        run: |size, _| art::run(size),
    },
    Row {
        name: "cplx",
        paper: "Jain et al. 2025",
        run: cplx::run,
    },
    Row {
        name: "shamrock",
        paper: "Beckingsale et al., LNCS 7587, 2013",
        run: |size, _| shamrock::run(size),
    },
    Row {
        name: "miniamr",
        paper: "Vaughan & Barrett, IEEE Cluster 2015",
        run: |size, _| miniamr::run(size),
    },
];

pub fn find(name: &str) -> Option<&'static Row> {
    ALL.iter().find(|row| row.name == name)
}
