//! What a communicator has of the levers that its program asks about.

use std::ffi::c_int;

use colltune_core::levers::accord::Tree;
use colltune_core::levers::asked::LeverPlace;
use colltune_core::levers::watched::Watched;

use crate::limits::Reservation;

/// Those of one communicator.
#[derive(Default)]
pub struct Levers {
    /// `None` before the first one is asked about, and where there is no agreement on it, which holds for good.
    pub team: Option<Team>,
    pub is_refused: bool,
    pub known: Vec<Lever>,
    pub memory: Reservation,
}

/// The members, as a tree.
pub struct Team {
    pub tree: Tree,
    /// By place in the tree the rank in the world.
    pub world_ranks: Vec<c_int>,
    pub identity: u64,
    pub nodes: u64,
    pub ppn: u64,
}

/// One lever of a communicator.
pub struct Lever {
    pub name: String,
    /// Of the members and the name.
    pub identity: u64,
    pub arms: Vec<String>,
    /// How many times it was asked about.
    pub asked: u64,
    /// This rank could not do its part of the last epoch, and tells the others at the next one.
    pub is_failing: bool,
    pub running: Option<Running>,
    /// Where an arm is exploited, on the rank that decides.
    pub watching: Option<Watching>,
    pub written_ns: u64,
}

/// The watch over an arm, for one class of sizes.
pub struct Watching {
    pub class: i32,
    pub best: usize,
    pub watched: Watched,
}

impl Lever {
    /// The arm of the epoch that begins, where `best` is exploited, and watched by `make`: the first one while a check is
    /// on. The newest class of sizes is watched; of others what was seen is forgotten.
    pub fn watched(
        &mut self,
        class: i32,
        best: usize,
        make: impl FnOnce() -> Option<Watched>,
    ) -> usize {
        let watching = self.watching.take();
        let watching = watching.filter(|one| (one.class, one.best) == (class, best));
        self.watching = watching.or_else(|| {
            let watched = make()?;
            Some(Watching {
                class,
                best,
                watched,
            })
        });
        let watching = self.watching.as_mut();
        match watching.is_some_and(|watching| watching.watched.begin()) {
            true => 0,
            false => best,
        }
    }
}

/// An epoch that is under way.
pub struct Running {
    pub arm: usize,
    pub class: i32,
    /// The arm comes of [`Lever::watched`].
    pub is_watched: bool,
    pub began: u64,
}

impl Team {
    pub fn place(&self, lever: &str, class: i32) -> LeverPlace {
        LeverPlace {
            lever: lever.to_owned(),
            class,
            nodes: self.nodes,
            ppn: self.ppn,
            ranks: self.world_ranks.len() as u64,
        }
    }
}
