//! What leaves do in a pass, and where those of the new mesh come from.

/// What a leaf is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum Mark {
    /// May be joined with its siblings.
    Join = -1,
    Stay = 0,
    Split = 1,
}

/// Where a leaf of the new mesh comes from; places are those of the old mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Kept(usize),
    /// One octant of a leaf that was split.
    Part(usize, usize),
    /// Eight siblings from this place on.
    Joined(usize),
}
