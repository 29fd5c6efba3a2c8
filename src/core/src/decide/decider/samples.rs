//! Sampled calls of a communicator: timed, compared in reviews, concluded from.

use crate::account::Cause;
use crate::collective::Collective;
use crate::record::CallTimes;

use super::Decider;
use crate::decide::agreed::Possible;
use crate::decide::cell::{Budget, Choice};
use crate::decide::decision::{AfterSample, Chosen, OwnState, Switch, UnderWay};
use crate::decide::hopeless::KnownHopeless;
use crate::decide::rules::Rules;
use crate::decide::times::{GapPart, Timing, Words};

impl Decider {
    /// A sampled call begins. Until it is observed every other decision waits for that.
    #[inline]
    pub fn begin_sample(&mut self, collective: Collective, chosen: Chosen, start_ns: u64) {
        self.under_way = Some(UnderWay {
            collective,
            chosen,
            start_ns,
            tuned_from: self.tuned_from,
        });
        self.tuned_from = u64::MAX;
    }

    /// The sampled call that is under way.
    pub fn under_way(&self) -> Option<UnderWay> {
        self.under_way
    }

    #[inline]
    pub(super) fn end_sample(&mut self) {
        if let Some(ended) = self.under_way.take() {
            self.tuned_from = ended.tuned_from;
        }
    }

    /// Takes the time of a sampled call, of one that failed, too: all ranks must count the same samples.
    #[inline]
    pub fn observe(
        &mut self,
        rules: &Rules,
        collective: Collective,
        chosen: &Chosen,
        timing: Timing,
    ) -> AfterSample {
        self.end_sample();
        let alone = self
            .membership
            .is_some_and(|members| members.layout.n_ranks == 1);
        let cell = self.cells.cell_mut(collective, chosen.place);
        self.cells_in_use += u64::from(cell.samples == 0);
        self.samples += 1;
        let due = cell.add(chosen, timing);
        if due && !alone {
            return AfterSample::Review;
        }
        if due {
            // There is no other rank to compare with, and nothing but `default` to draw.
            cell.forget();
        }
        self.plan(rules, collective, chosen);
        AfterSample::Nothing
    }

    /// Says which call of a cell is sampled next, if any.
    #[inline]
    fn plan(&mut self, rules: &Rules, collective: Collective, chosen: &Chosen) {
        let cell = self.cells.cell_mut(collective, chosen.place);
        match self.samples < rules.samples_max() {
            true => cell.plan(chosen.index, rules.samples_per_cell()),
            false => cell.end_samples(),
        }
    }

    /// Takes how long something behind a cell's last sample took this rank; its next call may be on any communicator.
    /// False where it is not kept: the next call was one of the same cell, and has it in its own time.
    #[cold]
    pub fn close_gap(
        &mut self,
        collective: Collective,
        place: usize,
        part: GapPart,
        ns: u64,
    ) -> bool {
        let cell = self.cells.cell_mut(collective, place);
        cell.close_gap(part, ns)
    }

    /// What this rank tells the others of a cell, to be replaced by the largest and by the sums of all before they are
    /// concluded from. `hopeless` is what it knows from other communicators.
    #[cold]
    pub fn review(
        &mut self,
        collective: Collective,
        chosen: &Chosen,
        own: OwnState,
        hopeless: &KnownHopeless,
    ) -> Words {
        let mut words = std::mem::take(&mut self.words);
        words.largest.clear();
        words.sums.clear();
        words.largest.push(own.own_families.word());
        words.largest.push(own.spent_ppm);
        words.largest.push((own.switch == Switch::Off).into());
        let cell = self.cells.cell(collective, chosen.place);
        cell.tell(own.now_ns, hopeless, &mut words);
        words
    }

    /// Concludes from the words of all ranks, and says what became of the cell's choice. `correct` gets the places of
    /// this rank's records of the samples, with what is agreed on them; `hopeless` keeps what later communicators
    /// leave out.
    #[cold]
    pub fn conclude(
        &mut self,
        rules: &Rules,
        collective: Collective,
        chosen: &Chosen,
        words: Words,
        hopeless: &KnownHopeless,
        correct: impl FnMut(usize, CallTimes),
    ) -> Choice {
        let Some(members) = self.membership else {
            unreachable!("calls are sampled only behind the set-up");
        };
        let settings = &rules.terms.settings;
        let &[without_own, spent_ppm, off, elapsed_ns, told, ..] = &words.largest[..] else {
            unreachable!("a review has these words");
        };
        let job_ppm = settings.explore_budget_ppm();
        let budget = Budget {
            explore_ppm: job_ppm / self.cells_in_use.max(1),
            watch_ppm: settings.watch_ppm(),
            job_ppm,
            spent_ppm,
        };
        if without_own != 0 {
            self.agreed.own_families = Possible::of(without_own);
        }
        let cell = self.cells.cell_mut(collective, chosen.place);
        cell.hear(&words, &members, &mut self.window, correct);
        let comm = self.agreed.id;
        let found = |cell, variant| hopeless.add(cell, variant, comm);
        let choice = match off {
            0 => cell.conclude((elapsed_ns, told), budget, found),
            _ => Choice::SwitchedOff,
        };
        match choice {
            Choice::Stays => self.plan(rules, collective, chosen),
            Choice::Demoted => cell.end_samples(),
            Choice::SwitchedOff => self.stand_aside(Cause::Switch),
        }
        self.words = words;
        choice
    }

    /// What the cell of a call runs when nothing is sampled.
    #[cfg(test)]
    pub(in crate::decide) fn choice(&self, collective: Collective, chosen: &Chosen) -> u16 {
        self.cells.cell(collective, chosen.place).best
    }
}
