//! How the members of a communicator ask each other whether the job was switched off.

use crate::account::Cause;
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::decision::{Decision, HEED_WORDS, Heeded, Switch};
use crate::decide::rules::Rules;

use super::Decider;

impl Decider {
    /// What this rank tells the others where they ask each other whether the job was switched off.
    #[cold]
    pub fn heed_words(&self, heeded: Heeded, switch: Switch, now_ns: u64) -> [u64; HEED_WORDS] {
        let cell = self.cells.cell(heeded.collective, heeded.place);
        [u64::from(switch == Switch::Off), cell.unheeded_ns(now_ns)]
    }

    /// What the largest of each of the members' words say.
    pub fn heard([off, _]: [u64; HEED_WORDS]) -> Switch {
        match off {
            0 => Switch::On,
            _ => Switch::Off,
        }
    }

    /// Takes these, and decides on the call that asked for them: where any member knows that the job was switched off,
    /// all run `default` from here on.
    #[cold]
    pub fn heed(
        &mut self,
        rules: &Rules,
        heeded: Heeded,
        words: [u64; HEED_WORDS],
        now_ns: u64,
        (call, details): (SharedCall, &dyn Fn() -> SharedDetails),
    ) -> Decision {
        if Decider::heard(words) == Switch::Off {
            self.stand_aside(Cause::Switch);
            return Decision::Default;
        }
        let [_, elapsed_ns] = words;
        let Heeded {
            collective,
            place,
            index,
        } = heeded;
        self.cells
            .cell_mut(collective, place)
            .heed(index, elapsed_ns, now_ns);
        self.choose(rules, call, details, (place, index))
    }
}
