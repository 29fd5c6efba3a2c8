//! Time axes in parts: what each rank did when, as in Wu et al., CLUSTER 2011, fig. 5.
//!
//! Parts follow from how far an operation has moved each rank's clock, and from what the rank spent in it. Where ranks
//! share a core, a rank's work stands before its waiting for the core, though it waited between.

use crate::axes::Axes;
use crate::program::Phase;

/// A part of a rank's time. Nanoseconds since the run began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// From 1.
    pub step: u64,
    pub rank: u32,
    pub phase: Phase,
    pub begin_ns: f64,
    pub end_ns: f64,
}

/// In what order a rank passes through the parts of one operation.
const ORDER: [Phase; Phase::ALL.len()] = [
    Phase::Refine,
    Phase::Place,
    Phase::Pack,
    Phase::Copy,
    Phase::Compute,
    Phase::Sum,
    Phase::Stopped,
    Phase::Queue,
    Phase::Late,
    Phase::Transit,
    Phase::Unpack,
    Phase::Migrate,
    Phase::Sync,
    Phase::Collective,
    Phase::Other,
];

/// Where all ranks stand.
pub(super) struct Standing {
    clocks: Vec<f64>,
    spent: Vec<[f64; Phase::ALL.len()]>,
}

impl Standing {
    pub(super) fn of(axes: &Axes) -> Standing {
        Standing {
            clocks: axes.clocks.clone(),
            spent: axes.spent.clone(),
        }
    }

    /// Adds what ranks did from here to where they stand now.
    pub(super) fn until(self, step: u64, now: &Axes, spans: &mut Vec<Span>) {
        let ranks = self.clocks.iter().zip(self.spent.iter().zip(&now.spent));
        for (rank, (&clock, (before, after))) in (0..).zip(ranks) {
            let mut begin_ns = clock;
            for phase in ORDER {
                let time = after[phase as usize] - before[phase as usize];
                if time > 0.0 {
                    let end_ns = begin_ns + time;
                    spans.push(Span {
                        step,
                        rank,
                        phase,
                        begin_ns,
                        end_ns,
                    });
                    begin_ns = end_ns;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_place_in_an_operation() {
        let mut all = ORDER;
        all.sort_unstable();
        let mut phases = Phase::ALL;
        phases.sort_unstable();
        assert_eq!(all, phases);
    }
}
