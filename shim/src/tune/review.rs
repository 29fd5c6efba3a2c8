//! Review: now and then the ranks compare what they saw of a cell, and conclude alike.

use colltune_core::collective::Collective;
use colltune_core::request::Mode;
use colltune_core::review::{self, Observed, Progress};
use colltune_core::select::Chooser;
use colltune_core::thin::next_sampled;

use super::{DEFAULT, Tuner};
use crate::clock;
use crate::communicator::{CellState, Sample, State, Ticks};
use crate::floating;

/// A review comes after so many samples at the latest, and more only after failed calls.
const FRESH_MOST: usize = 64;

impl Tuner {
    /// Takes a sample of a variant into its cell's account, and reviews the cell where that is due.
    #[inline]
    pub(super) fn take(
        &self,
        sample: Sample,
        state: &mut State,
        collective: Collective,
        place: usize,
        variant: u16,
    ) {
        let cell = &mut state.cells[collective.index()][place];
        if cell.samples == 0 {
            cell.first_ticks = sample.start_ticks;
            state.cells_in_use += 1;
            // Most cells never see a sample.
            cell.fresh.reserve_exact(FRESH_MOST);
        }
        cell.samples += 1;
        cell.fresh.push(sample);
        cell.observed[usize::from(variant)].add(sample.end_ticks.wrapping_sub(sample.start_ticks));
        if review::due(cell.samples) {
            floating::by_default(|| self.review(state, collective, place));
            if let Some(recorder) = &self.recorder {
                recorder.keep();
            }
        }
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
        let drawn: Vec<Ticks> = cell
            .weights
            .iter()
            .map(|(variant, _)| cell.observed[usize::from(*variant)])
            .collect();
        let mut seen: Vec<u64> = drawn
            .iter()
            .flat_map(|seen| {
                [
                    self.clock.span_ns(seen.fastest),
                    self.clock.span_ns(seen.total),
                ]
            })
            .collect();
        // A runtime for devices may have been loaded since.
        seen.push(u64::from(self.may_have_device_memory()));
        seen.push(elapsed_ns);
        let own = seen.len();
        // Ranks of one node read one clock, so the last start and the last end can be found. Where ranks
        // share processors, most of the work is done before the last one starts.
        if state.layout.nodes == 1 {
            let both = |sample: &Sample| {
                let [start, end] = self.moments(sample);
                let shares = self.shares_processors;
                [
                    start,
                    if shares {
                        end.saturating_sub(start)
                    } else {
                        end
                    },
                ]
            };
            seen.extend(cell.fresh.iter().flat_map(both));
        }
        let known = self.largest(state.comm, &mut seen);
        if known {
            self.correct_records(&cell.fresh, &seen[own..]);
        }
        cell.fresh.clear();
        if !known {
            return;
        }
        let [.., device_memory, elapsed_ns] = seen[..own] else {
            unreachable!("both were pushed");
        };
        if device_memory != 0 {
            state.abilities.own = false;
            state.again = None;
        }
        let reference = cell
            .weights
            .iter()
            .position(|(variant, _)| *variant == DEFAULT);
        if reference.is_none_or(|place| drawn[place].samples > 0) {
            for seen in cell.observed.iter_mut().filter(|seen| seen.samples > 0) {
                seen.judged = true;
            }
        }
        if self.handout.mode != Mode::Explore {
            return;
        }
        let observed: Vec<Observed> = drawn
            .iter()
            .zip(seen[..own].chunks_exact(2))
            .map(|(own, all)| Observed {
                samples: own.samples,
                fastest_ns: all[0],
                total_ns: all[1],
            })
            .collect();
        let budget_ppm = self.handout.settings.explore_budget_ppm() / cells_in_use;
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
    /// ones wait, to the end of the last rank; where ranks share processors the slowest rank's time.
    /// `whole` holds for each sample the last start, and the last end or the longest time, or nothing.
    fn correct_records(&self, samples: &[Sample], whole: &[u64]) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        for (sample, times) in samples.iter().zip(whole.chunks_exact(2)) {
            let Some(place) = sample.record else {
                continue;
            };
            if self.shares_processors {
                recorder.correct(place, self.moments(sample)[0], times[1]);
            } else {
                recorder.correct(place, times[0], times[1].saturating_sub(times[0]));
            }
        }
    }

    /// When a call began and ended on this rank, in nanoseconds of the node's clock.
    fn moments(&self, sample: &Sample) -> [u64; 2] {
        [sample.start_ticks, sample.end_ticks].map(|ticks| self.clock.at_ns(ticks))
    }
}

impl Ticks {
    #[inline]
    pub(super) fn may_be_drawn(&self) -> bool {
        review::may_be_drawn(self.samples, self.judged)
    }

    #[inline]
    fn add(&mut self, ticks: u64) {
        self.fastest = match self.samples {
            0 => ticks,
            _ => self.fastest.min(ticks),
        };
        self.samples += 1;
        self.total = self.total.wrapping_add(ticks);
    }
}

impl CellState {
    /// Says which call is sampled next, after call `index` was.
    #[inline]
    pub(super) fn plan_next_sample(&mut self, index: u64, samples_per_cell: u32) {
        self.next_sample = next_sampled(
            self.key,
            index,
            self.rehearsals,
            samples_per_cell,
            self.gap_least,
        );
        self.next_drawn = self.next_sample.saturating_sub(self.rehearsals);
    }
}
