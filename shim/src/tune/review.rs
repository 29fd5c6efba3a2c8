//! Review: now and then the ranks compare what they saw of a cell, and conclude alike.

use std::ffi::c_int;

use colltune_core::collective::Collective;
use colltune_core::request::Mode;
use colltune_core::review::{self, Observed, Progress};
use colltune_core::select::Chooser;
use colltune_core::thin::next_sampled;

use super::{DEFAULT, Tuner};
use crate::abi::{self, Comm};
use crate::clock;
use crate::communicator::{CellState, Sample, State};
use crate::floating;

impl Tuner {
    #[inline]
    pub(super) fn observe(&self, cell: &mut CellState, variant: u16, sample: Sample) {
        cell.fresh.push(sample);
        let Some(which) = cell.weights.iter().position(|(other, _)| *other == variant) else {
            return;
        };
        let ticks = sample.end_ticks.wrapping_sub(sample.start_ticks);
        let seen = &mut cell.observed[which];
        seen.fastest = if seen.samples == 0 {
            ticks
        } else {
            seen.fastest.min(ticks)
        };
        seen.samples += 1;
        seen.total = seen.total.wrapping_add(ticks);
    }

    pub(super) fn plan_next_sample(
        &self,
        state: &mut State,
        collective: Collective,
        place: usize,
        index: u64,
    ) {
        let cell = &mut state.cells[collective.index()][place];
        if cell.samples == 0 {
            cell.first_ticks = clock::ticks();
            state.cells_in_use += 1;
        }
        cell.samples += 1;
        if review::due(cell.samples) {
            floating::by_default(|| self.review(state, collective, place));
        }
        let cell = &mut state.cells[collective.index()][place];
        cell.next_sample = next_sampled(
            cell.key,
            index,
            cell.rehearsals,
            self.handout.samples_per_cell,
            cell.gap_least,
        );
        cell.next_drawn = cell.next_sample.saturating_sub(cell.rehearsals);
    }

    /// Combines what the ranks saw of a cell; all conclude the same (see `colltune_core::review`).
    /// A collective of the library on the program's own communicator, at a call of all its ranks.
    #[cold]
    fn review(&self, state: &mut State, collective: Collective, place: usize) {
        if state.layout.n_ranks == 1 {
            // There is nobody to compare with, and nothing but `default` to draw.
            state.cells[collective.index()][place].fresh.clear();
            return;
        }
        let cells_in_use = state.cells_in_use.max(1);
        let cell = &mut state.cells[collective.index()][place];
        let elapsed_ns = self
            .clock
            .span_ns(clock::ticks().wrapping_sub(cell.first_ticks));
        let mut seen: Vec<u64> = cell
            .observed
            .iter()
            .flat_map(|seen| {
                [
                    self.clock.span_ns(seen.fastest),
                    self.clock.span_ns(seen.total),
                ]
            })
            .collect();
        seen.push(elapsed_ns);
        let own = seen.len();
        // Ranks of one node read one clock, so the last start and the last end can be found.
        if state.layout.nodes == 1 {
            let both = |sample: &Sample| {
                [
                    self.clock.at_ns(sample.start_ticks),
                    self.clock.at_ns(sample.end_ticks),
                ]
            };
            seen.extend(cell.fresh.iter().flat_map(both));
        }
        if !self.largest(state.comm, &mut seen) {
            return;
        }
        self.correct_records(&cell.fresh, &seen[own..]);
        cell.fresh.clear();
        if self.handout.mode != Mode::Explore {
            return;
        }
        let elapsed_ns = seen[own - 1];
        let observed: Vec<Observed> = cell
            .observed
            .iter()
            .zip(seen[..own].chunks_exact(2))
            .map(|(own, all)| Observed {
                samples: own.samples,
                fastest_ns: all[0],
                total_ns: all[1],
            })
            .collect();
        let reference = cell
            .weights
            .iter()
            .position(|(variant, _)| *variant == DEFAULT);
        let budget_ppm = self.handout.explore_budget_ppm / cells_in_use;
        let progress = Progress {
            calls: cell.calls,
            calls_per_sample: cell.rehearsals + 1,
            elapsed_ns,
            budget_ppm,
        };
        let verdict = review::review(&observed, reference, progress);
        for ((variant, weight), dropped) in cell.weights.iter_mut().zip(verdict.dropped) {
            if dropped && *variant != DEFAULT {
                *weight = 0.0;
            }
        }
        cell.gap_least = verdict.gap_least;
        cell.chooser = Chooser::new(&cell.weights);
    }

    /// Gives records the time of the whole call: from the start of the last rank, for which early
    /// ones wait, to the end of the last rank. `whole` holds both for each sample, or nothing.
    fn correct_records(&self, samples: &[Sample], whole: &[u64]) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        for (sample, times) in samples.iter().zip(whole.chunks_exact(2)) {
            if let Some(place) = sample.record {
                recorder.correct(place, times[0], times[1].saturating_sub(times[0]));
            }
        }
    }

    /// Replaces each number by the largest over the communicator's ranks; false on an error.
    pub fn largest(&self, comm: Comm, numbers: &mut [u64]) -> bool {
        let mut result = vec![0u64; numbers.len()];
        let (send, recv) = (numbers.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: both buffers hold as many 64-bit numbers as are announced.
        let code = unsafe {
            (self.pmpi.allreduce)(
                send,
                recv,
                numbers.len() as c_int,
                self.handles.uint64,
                self.handles.max,
                comm,
            )
        };
        numbers.copy_from_slice(&result);
        code == abi::SUCCESS
    }
}
