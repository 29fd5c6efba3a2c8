//! How long the blocks of calls are whose counts each rank knows for itself, as far as the ranks have agreed.
//!
//! Every variant of such calls is right for any counts; the agreed size only decides which one runs. So it may be
//! that of earlier calls. At the first call of a collective, the fourth, the sixteenth and so on the ranks agree on
//! the largest that any saw since the last time. Calls go by that from the next one on, without exchanges.

/// The blocks of one call, or of several, as one rank sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The bytes of the mean block, empty ones counted.
    pub mean: u64,
    /// Those of the longest.
    pub longest: u64,
}

/// Words of which the largest is wanted.
pub const BLOCK_WORDS: usize = 2;

/// The most calls between two agreements.
const MOST: u64 = 1024;

/// What is known of the calls of one collective on one communicator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Calls so far.
    calls: u64,
    /// The last one's number among all calls on the communicator.
    last: u64,
    /// The number of the next call at which the ranks agree, while they need to at all.
    next: Option<u64>,
    agreed: Option<Blocks>,
    /// What was agreed before; it holds for calls below number `from`, of which one may be taken back.
    before: Option<Blocks>,
    from: u64,
    seen: Seen,
}

/// What this rank saw since the last agreement.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    calls: u64,
    means: u64,
    longest: u64,
}

impl Sizes {
    /// Those of calls whose size decides something.
    pub fn wanted() -> Sizes {
        Sizes {
            next: Some(0),
            ..Sizes::default()
        }
    }

    pub fn is_wanted(&self) -> bool {
        self.next.is_some()
    }

    /// What holds for call number `number`; nothing before the ranks have agreed for the first time.
    fn of_call(&self, number: u64) -> Option<Blocks> {
        match number < self.from {
            true => self.before,
            false => self.agreed,
        }
    }

    /// What holds for the next call.
    #[inline]
    pub fn of_next(&self) -> Option<Blocks> {
        self.of_call(self.calls)
    }

    /// What holds for the present call.
    #[inline]
    pub fn of_present(&self) -> Option<Blocks> {
        self.of_call(self.calls.saturating_sub(1))
    }

    /// Counts a call, which has a number among all calls on the communicator. Says whether the ranks agree in it.
    #[inline]
    pub fn count(&mut self, of_all: u64) -> bool {
        let number = self.calls;
        self.calls += 1;
        self.last = of_all;
        self.next.is_some_and(|next| number >= next)
    }

    /// Undoes the counting of a call, if it was counted here at all.
    pub fn take_back(&mut self, of_all: u64) {
        if self.last == of_all {
            self.calls = self.calls.saturating_sub(1);
            self.last = 0;
        }
    }

    /// Takes what this rank alone knows of a call.
    #[inline]
    pub fn see(&mut self, blocks: Blocks) {
        self.seen.calls += 1;
        self.seen.means = self.seen.means.saturating_add(blocks.mean);
        self.seen.longest = self.seen.longest.max(blocks.longest);
    }

    /// What this rank tells the others.
    pub fn words(&self) -> [u64; BLOCK_WORDS] {
        let Seen {
            calls,
            means,
            longest,
        } = self.seen;
        [means.div_ceil(calls.max(1)), longest]
    }

    /// Takes the largest of what the ranks exchanged in the present call.
    pub fn agree(&mut self, [mean, longest]: [u64; BLOCK_WORDS]) {
        let present = self.calls.saturating_sub(1);
        self.before = self.of_call(present);
        self.agreed = Some(Blocks { mean, longest });
        self.from = self.calls;
        self.next = Some(present.saturating_add((3 * (present + 1)).min(MOST)));
        self.seen = Seen::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(mean: u64) -> Blocks {
        let longest = 2 * mean;
        Blocks { mean, longest }
    }

    #[test]
    fn before_the_first_agreement_no_call_has_a_size() {
        let mut sizes = Sizes::wanted();
        assert_eq!(sizes.of_next(), None);
        assert!(sizes.count(1));
        sizes.agree([8, 16]);
        assert_eq!(sizes.of_present(), None);
        sizes.take_back(1);
        assert_eq!(sizes.of_next(), None, "the others went without one");
        assert!(!sizes.count(1));
        assert_eq!(sizes.of_next(), Some(blocks(8)));
    }

    #[test]
    fn ranks_agree_ever_more_seldom_and_an_agreement_holds_from_the_next_call_on() {
        let mut sizes = Sizes::wanted();
        let mut agreed_at = Vec::new();
        for number in 0..5000u64 {
            let before = sizes.of_next();
            if sizes.count(number + 1) {
                sizes.agree([number, 2 * number]);
                agreed_at.push(number);
                assert_eq!(sizes.of_next(), Some(blocks(number)));
            }
            assert_eq!(sizes.of_present(), before);
            sizes.see(blocks(7));
        }
        assert_eq!(agreed_at[..6], [0, 3, 15, 63, 255, 1023]);
        assert!(agreed_at.windows(2).all(|pair| pair[1] - pair[0] <= MOST));
    }

    #[test]
    fn a_call_that_was_taken_back_finds_what_the_others_found() {
        let mut sizes = Sizes::wanted();
        sizes.count(4);
        sizes.agree([16, 32]);
        for call in [5, 7, 9] {
            sizes.count(call);
        }
        let found = sizes.of_present();
        assert_eq!(found, Some(blocks(16)));
        sizes.agree([64, 64]);
        sizes.take_back(9);
        assert_eq!(sizes.of_next(), found);
        sizes.take_back(9);
        assert_eq!(sizes.of_next(), found, "it is taken back once");
        assert!(!sizes.count(9), "the others do not agree again");
        assert_eq!(sizes.of_present(), found);
    }

    #[test]
    fn a_rank_tells_the_mean_of_its_calls_and_the_longest_block_of_all() {
        let mut sizes = Sizes::wanted();
        for mean in [10, 30, 21] {
            sizes.see(blocks(mean));
        }
        assert_eq!(sizes.words(), [21, 60]);
        sizes.agree([21, 60]);
        assert_eq!(sizes.words(), [0, 0]);
    }

    #[test]
    fn where_no_size_decides_nothing_is_agreed() {
        let mut sizes = Sizes::default();
        assert!(!sizes.is_wanted());
        assert!((1..5000).all(|call| !sizes.count(call)));
    }
}
