//! How the members of a communicator agree on the size of calls whose counts each knows for itself.

use crate::collective::Collective;
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::decision::{Decision, Measured};
use crate::decide::rules::Rules;
use crate::decide::sizes::{BLOCK_WORDS, Blocks};

use super::Decider;

impl Decider {
    /// The next call with the size that it goes by, where each rank knows its own counts alone.
    #[inline(always)]
    pub fn sized(&self, call: SharedCall) -> SharedCall {
        if !call.collective.agrees_on_size() {
            return call;
        }
        let cells = self.cells.of(call.collective);
        let agreed = cells.and_then(|cells| cells.sizes.of_next());
        let bytes = agreed.map_or(0, |blocks| blocks.mean);
        SharedCall { bytes, ..call }
    }

    /// The longest block that the ranks agreed on, of a present call of which each knows its own counts alone.
    pub fn longest_block(&self, collective: Collective) -> u64 {
        let cells = self.cells.of(collective);
        let agreed = cells.and_then(|cells| cells.sizes.of_present());
        agreed.map_or(0, |blocks| blocks.longest)
    }

    /// Whether anybody wants to know of this rank's blocks in calls of a collective.
    #[inline(always)]
    pub fn wants_blocks(&self, collective: Collective) -> bool {
        let is_wanted = || {
            let cells = self.cells.of(collective);
            cells.is_some_and(|cells| cells.sizes.is_wanted())
        };
        collective.agrees_on_size() && !self.is_aside() && is_wanted()
    }

    /// Takes what this rank alone knows of a call.
    pub fn see_blocks(&mut self, collective: Collective, blocks: Blocks) {
        if let Some(cells) = self.cells.of_mut(collective) {
            cells.sizes.see(blocks);
        }
    }

    /// What this rank tells the others of the calls since they last agreed on their size.
    #[cold]
    pub fn block_words(&self, measured: Measured) -> [u64; BLOCK_WORDS] {
        let cells = self.cells.of(measured.collective);
        cells.map_or([0; BLOCK_WORDS], |cells| cells.sizes.words())
    }

    /// Takes the largest of these of all members, and decides on the call that asked for them, which goes by the size
    /// that held before.
    #[cold]
    pub fn measure(
        &mut self,
        rules: &Rules,
        measured: Measured,
        words: [u64; BLOCK_WORDS],
        (call, details): (SharedCall, &dyn Fn() -> SharedDetails),
    ) -> Decision {
        if let Some(cells) = self.cells.of_mut(measured.collective) {
            cells.sizes.agree(words);
        }
        match measured.at {
            Some(at) => self.decide_at(rules, call, details, at),
            None => Decision::Default,
        }
    }
}
