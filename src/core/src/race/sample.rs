//! What a race learns from.

/// One sampled call: the means over all ranks, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Its place among the cell's arms.
    pub arm: usize,
    /// Its number among the cell's calls.
    pub call: u64,
    /// What else all ranks know of it, a bit each: to calls of some classes some arms do not apply.
    pub class: u8,
    pub time_ns: f64,
    /// From this call's end to the next entry into a tuned function, where that is known.
    pub shift_ns: Option<f64>,
}

impl Sample {
    /// That of no call.
    pub const NONE: Sample = Sample {
        arm: 0,
        call: 0,
        class: 0,
        time_ns: 0.0,
        shift_ns: None,
    };
}
