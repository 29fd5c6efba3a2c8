//! For which reductions `reproducible = "fixed"` does not hold.

use std::sync::Once;

use crate::warn::say;
use crate::world::World;

/// Reductions whose order is the library's all the same.
#[derive(Clone, Copy)]
pub enum Unheld {
    Passing,
    BetweenGroups,
    UnknownType,
    NoMessages,
}

/// Says so, once for each kind.
#[cold]
pub fn does_not_hold(world: &World, which: Unheld) {
    static SAID: [Once; 4] = [const { Once::new() }; 4];
    let which_ones = match which {
        Unheld::Passing => "that are nonblocking or persistent",
        Unheld::BetweenGroups => "between two groups",
        Unheld::UnknownType => "of types that the standard does not name",
        Unheld::NoMessages => "where no communicator of ours could be made",
    };
    if world.rank == 0 {
        SAID[which as usize].call_once(|| {
            say(&format!(
                "reproducible = \"fixed\" does not hold for reductions {which_ones}: their order is the library's"
            ));
        });
    }
}
