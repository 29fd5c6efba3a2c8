//! What is computed, as the options of physics and stencil say.

use crate::options::{Options, PhysicsName};

/// What is computed in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Seven points on blocks that store no ghosts.
    Seven,
    /// The same with ghosts, which messages of `--code` 1 and 2 carry along.
    SevenWithGhosts,
    TwentySeven,
    /// The Euler equations instead of a stencil.
    Euler,
}

pub(super) fn work(options: &Options) -> Work {
    match (options.physics, options.stencil) {
        (PhysicsName::Euler, _) => Work::Euler,
        (_, 7) if options.code == 0 => Work::Seven,
        (_, 7) => Work::SevenWithGhosts,
        _ => Work::TwentySeven,
    }
}
