//! Synthetic ranks that exchange messages, of whose times everything is known: for tests.

use crate::rows::{Round, Window};
use crate::windows::Run;

/// What a rank does first: hand over its messages, or copy between its own blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    SendsFirst,
    CopiesFirst,
}

/// At least two ranks, and how often they exchange messages before they meet, once a step.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub n_ranks: u32,
    pub n_rounds: u32,
    pub n_steps: u64,
    pub order: Order,
    /// Machines of one seed do the same work, in whatever order.
    pub seed: u64,
}

const PACK: i64 = 10_000;
const UNPACK: i64 = 5_000;
/// Work before each round, own copies and a message's way are at most so long, in nanoseconds.
const WORK: i64 = 300_000;
const COPIES: i64 = 400_000;
const TRANSIT: i64 = 50_000;

impl Machine {
    /// What would be recorded of it.
    pub fn run(&self) -> Run {
        let (mut windows, mut rounds, mut now) = (Vec::new(), Vec::new(), 0);
        for step in 1..=self.n_steps {
            let of_step = self.step(step, now, &mut rounds);
            now = of_step.iter().map(|w| w.arrive).max().unwrap_or(now) + 20_000;
            windows.extend(of_step.into_iter().map(|w| Window { leave: now, ..w }));
        }
        Run::of(windows, rounds, Vec::new())
    }

    fn step(&self, step: u64, begin: i64, rounds: &mut Vec<Round>) -> Vec<Window> {
        let mut windows: Vec<Window> = (0..self.n_ranks)
            .map(|rank| Window {
                step,
                rank,
                begin,
                arrive: begin,
                rounds: self.n_rounds,
                ..Window::default()
            })
            .collect();
        for k in 0..self.n_rounds {
            let draw = |what: u64, rank: u32, end: i64| {
                let place = [step, k.into(), rank.into(), what];
                (hash(
                    place
                        .into_iter()
                        .fold(self.seed, |sum, one| hash(sum) ^ one),
                ) % end as u64) as i64
            };
            let begun: Vec<i64> = windows
                .iter()
                .map(|w| w.arrive + draw(0, w.rank, WORK))
                .collect();
            let copies: Vec<i64> = windows.iter().map(|w| draw(1, w.rank, COPIES)).collect();
            let posted = |rank: usize| match self.order {
                Order::SendsFirst => begun[rank] + PACK,
                Order::CopiesFirst => begun[rank] + copies[rank] + PACK,
            };
            for window in &mut windows {
                let rank = window.rank as usize;
                let others = i64::from(self.n_ranks - 1);
                let from = (window.rank + 1 + draw(2, window.rank, others) as u32) % self.n_ranks;
                let served = begun[rank] + copies[rank] + PACK;
                let arrived = posted(from as usize) + draw(3, window.rank, TRANSIT);
                let last = served.max(arrived);
                rounds.push(Round {
                    step,
                    window: 0,
                    round: k,
                    rank: window.rank,
                    begin: begun[rank],
                    posted: posted(rank),
                    served,
                    last,
                    last_from: Some(from),
                    done: last + UNPACK,
                    messages: 1,
                    bytes: 1 << 10,
                });
                window.compute += begun[rank] - window.arrive;
                window.copy += copies[rank];
                window.pack += PACK;
                window.unpack += UNPACK;
                window.wait += last - served;
                window.arrive = last + UNPACK;
                window.cpu = window.arrive - window.begin - window.wait;
            }
        }
        windows
    }
}

/// splitmix64 (Steele and others, 2014).
fn hash(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
