//! What a decider answers about a call.

use super::agreed::Possible;
use crate::account::Cause;
use crate::collective::Collective;
use crate::record::Probability;

/// A sampled call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    pub collective: Collective,
    pub chosen: Chosen,
    pub start_ns: u64,
    /// That of the decider, which looks no further meanwhile.
    pub(super) tuned_from: u64,
}

/// What is to be done about a call, which has been counted but where it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// The library's own choice, and nothing more.
    Default,
    /// The ranks agree on their abilities in one reduction. Then [`super::Decider::set_up`] decides.
    SetUp,
    /// The call's cell is to be made first: [`super::Decider::prepare`] does so, and decides. No other rank is
    /// involved, but it computes with floating-point numbers, which must mean the same on all ranks.
    Prepare,
    /// All members tell each other how long the blocks of the calls before were ([`super::Decider::block_words`]); then
    /// [`super::Decider::measure`] decides.
    Measure(Measured),
    Chosen(Chosen),
    /// With this call begins or ends an epoch by which the job's gain is measured: [`super::Decider::next_epoch`] takes the
    /// time. Then it is to be decided anew: the call is not counted yet, and no other rank is involved.
    NextEpoch,
    /// The sampled call before this one has not returned, and the other ranks have taken its time into account. So
    /// must this one ([`super::Decider::observe`]), and then decide anew: the present call is not counted yet.
    Unobserved(UnderWay),
    /// This rank has no memory for what the others are about to do.
    NoMemory,
}

/// A call at which the members agree on the size of such calls. It goes by the size that held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub(super) collective: Collective,
    /// Its cell and its number there; none where a model leaves its size out, or the size is 0.
    pub(super) at: Option<(usize, u64)>,
}

/// Whether a job on a site folder was switched off, as far as a rank knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// What a call in its cell runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The place of the cell among the collective's on this communicator.
    pub place: usize,
    /// The call's number in the cell.
    pub index: u64,
    /// What the cell asked for.
    pub wish: u16,
    /// What all ranks run: the wish where it applies. Before it runs, the ranks agree on what it needs.
    pub variant: u16,
    /// Whether it is timed, on all ranks.
    pub sampled: bool,
    /// Why the wish does not apply, unless that holds for the whole cell.
    pub refused: Option<Cause>,
    /// With which the variant was drawn, where it is sampled and known.
    pub probability: Option<Probability>,
    /// Flags of its class, where it is sampled.
    pub(super) class: u8,
    pub(super) arm: Option<usize>,
}

/// What a rank tells the others in a review, beside its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnState {
    pub now_ns: u64,
    /// What agreements have cost it so far on all communicators ([`crate::review::spent_ppm`]).
    pub spent_ppm: u64,
    /// What made our own families possible in the set-up may have changed.
    pub own_families: Possible,
    pub switch: Switch,
}

/// What follows a sampled call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum AfterSample {
    Nothing,
    /// All members combine the words of [`super::Decider::review`], and conclude.
    Review,
}
