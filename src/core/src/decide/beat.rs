//! When the ranks of a communicator ask each other whether the job was switched off: at calls of a cell that all of them
//! count alike, about as often by the clock as the settings ask for.

/// The calls of one cell at which that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    /// The number of the next such call.
    pub next: u64,
    every_ns: u64,
    /// The last one, and when it was on this rank's clock.
    last: u64,
    last_ns: Option<u64>,
}

/// The first of a cell's calls to ask at. Until the second their rate is unknown; long messages come seldom.
const FIRST: u64 = 64;
const FIRST_LONG: u64 = 4;
const LONG_FROM: u64 = 32 << 10;
/// The most calls between two: the program may get slower.
const MOST: u64 = 1 << 16;

impl Beat {
    pub const NEVER: Beat = Beat {
        next: u64::MAX,
        every_ns: 0,
        last: 0,
        last_ns: None,
    };

    pub fn new(every_ns: u64, least_bytes: u64) -> Beat {
        Beat {
            next: match least_bytes >= LONG_FROM {
                true => FIRST_LONG,
                false => FIRST,
            },
            every_ns,
            ..Beat::NEVER
        }
    }

    /// How long it has been since the last one, on this rank; 0 where there was none.
    pub fn elapsed_ns(&self, now_ns: u64) -> u64 {
        self.last_ns
            .map_or(0, |last_ns| now_ns.saturating_sub(last_ns))
    }

    /// Says which call is the next, behind call `index`; `elapsed_ns` is what all ranks have agreed on.
    pub fn plan(&mut self, index: u64, elapsed_ns: u64, now_ns: u64) {
        let calls = (index - self.last).max(1);
        let distance = match elapsed_ns {
            0 => calls,
            _ => {
                let fitting =
                    u128::from(self.every_ns) * u128::from(calls) / u128::from(elapsed_ns);
                u64::try_from(fitting).unwrap_or(u64::MAX)
            }
        };
        self.next = index.saturating_add(distance.clamp(1, MOST));
        (self.last, self.last_ns) = (index, Some(now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_NS: u64 = 10_000_000_000;

    /// When a cell's calls, which take so long each, are asked at, in nanoseconds.
    fn asked_at(least_bytes: u64, call_ns: u64) -> Vec<u64> {
        let mut beat = Beat::new(EVERY_NS, least_bytes);
        let asks = (0..40).map(|_| {
            let (index, now_ns) = (beat.next, beat.next * call_ns);
            beat.plan(index, beat.elapsed_ns(now_ns), now_ns);
            now_ns
        });
        asks.collect()
    }

    #[test]
    fn whatever_a_call_takes_it_is_asked_about_as_often_as_the_settings_say() {
        for (bytes, call_ns) in [(8, 200_000), (8, 1_000_000_000), (1 << 20, 40_000_000)] {
            let asks = asked_at(bytes, call_ns);
            let settled = asks[3..].windows(2).map(|pair| pair[1] - pair[0]);
            for distance in settled {
                assert!(
                    distance <= EVERY_NS && distance > EVERY_NS / 2,
                    "{call_ns}: {distance}"
                );
            }
            assert!(asks[0] <= 64 * call_ns);
        }
        // Calls that are longer than the distance are all asked at, and of the shortest one in 65,536.
        assert_eq!(
            asked_at(1 << 20, EVERY_NS * 3)[..4],
            [4, 8, 9, 10].map(|call| call * EVERY_NS * 3)
        );
        let short = asked_at(8, 1_000);
        assert_eq!(short[30] - short[29], MOST * 1_000);
    }
}
