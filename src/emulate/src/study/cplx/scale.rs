//! A run of table I under all policies, by a sample of its epochs.

use std::borrow::Borrow;

use colltune_placement::published::Published;
use colltune_statistics::median;

use super::deck::Deck;
use super::epoch::{self, BlockCosts, Epoch, Setting, Times};
use crate::EmulateError;
use crate::axes::Network;
use crate::clock::Timer;
use crate::machine::Machine;
use crate::noise::Noise;
use crate::price::{Choices, Prices};
use crate::traffic::Locality;

/// The baseline, and CPLX with X = 0, 25, 50, 75, 100, as their published code behaves.
pub const POLICIES: [Published; 6] = [
    Published::Baseline,
    Published::Cplx(0),
    Published::Cplx(25),
    Published::Cplx(50),
    Published::Cplx(75),
    Published::Cplx(100),
];
pub const BASELINE: usize = 0;
pub const LPT: usize = 5;
/// X of each policy; the baseline has none.
pub const PERCENT: [u8; 5] = [0, 25, 50, 75, 100];

/// What a step at 512 ranks computes on the average: 55 % of 250 ms, as the paper says of its steps.
const COMPUTE_S: f64 = 0.55 * 0.250;

/// How often a policy is timed.
const TIMED: usize = 3;

/// Costs, machine and noise of a whole study.
#[derive(Clone)]
pub struct Model<'a> {
    pub costs: BlockCosts,
    pub block_ns: f64,
    pub machine: &'a Machine,
    pub noise: Noise,
    pub network: Network,
}

/// One policy on one number of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Of a step, on the average.
    pub times: Times,
    /// Standard error of the mean step, as a share of it.
    pub error: f64,
    pub locality: Locality,
    pub moved_blocks: u64,
}

/// The sampled epochs of a run.
pub struct Sample {
    pub deck: Deck,
    pub epochs: Vec<Epoch>,
}

impl Sample {
    pub fn new(deck: &Deck, n: u64) -> Sample {
        Sample {
            deck: *deck,
            epochs: deck
                .sample(n)
                .into_iter()
                .map(|i| Epoch::new(deck, i))
                .collect(),
        }
    }
}

/// Nanoseconds of a block without shock, so that a step at 512 ranks computes what it did.
pub fn block_ns(sample: &Sample, costs: &BlockCosts, noise: &Noise) -> f64 {
    let works = sample.epochs.iter().map(|epoch| {
        let work: f64 = epoch.takes(costs, noise).iter().sum();
        work / sample.deck.n_ranks as f64
    });
    let mean = works.sum::<f64>() / sample.epochs.len() as f64;
    1e9 * COMPUTE_S / mean
}

/// Runs the policies on sampled epochs, which are made one after another and dropped.
///
/// Errors: a policy's or a collective's.
pub fn run<E: Borrow<Epoch>>(
    deck: &Deck,
    epochs: impl Iterator<Item = E>,
    policies: &[Published],
    model: &Model,
    slow: Option<(usize, f64)>,
    timer: Option<Timer>,
) -> Result<Vec<Totals>, EmulateError> {
    let Model { costs, noise, .. } = model;
    let setting = Setting {
        machine: model.machine,
        n_ranks: deck.n_ranks,
        network: model.network,
        block_ns: model.block_ns,
        slow,
    };
    let steps = deck.steps_per_epoch();
    let mut prices = Prices::new(model.machine, Choices::default());
    let mut sums = vec![Totals::default(); policies.len()];
    let mut lengths = vec![Vec::new(); policies.len()];
    let mut place_s = vec![Vec::new(); policies.len()];
    for one in epochs {
        let one: &Epoch = one.borrow();
        let takes = one.takes(costs, noise);
        let beliefs = one.beliefs(costs, noise);
        for (place, &policy) in policies.iter().enumerate() {
            if let Some(timer) = timer
                && place_s[place].len() < TIMED
            {
                let seconds = timer(&mut || {
                    std::hint::black_box(policy.place(&beliefs[0], deck.n_ranks as u32));
                });
                place_s[place].push(seconds);
            }
            let owners = epoch::place(policy, deck.n_ranks, &beliefs)?;
            let run = setting.run(one, &takes, &owners, &mut prices, steps)?;
            let sum = &mut sums[place];
            sum.times.add(&run.times, 1.0);
            lengths[place].push(run.times.total());
            sum.moved_blocks += run.moved_blocks as u64;
            sum.locality.add(&run.locality);
        }
    }
    for ((sum, lengths), place_s) in sums.iter_mut().zip(&lengths).zip(&place_s) {
        let n = lengths.len() as f64;
        let mut mean = Times::default();
        mean.add(&sum.times, 1.0 / n);
        if !place_s.is_empty() {
            mean.rebalance += median(place_s) / steps;
        }
        let centre = lengths.iter().sum::<f64>() / n;
        let variance =
            lengths.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        sum.error = (variance / n).sqrt() / centre;
        sum.times = mean;
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::NoiseCosts;
    use crate::machine::preset;
    use crate::study::cplx::deck::DECKS;

    fn model(machine: &Machine) -> Model<'_> {
        Model {
            costs: BlockCosts::new(0.4, 0.2),
            block_ns: 5e7,
            machine,
            noise: Noise {
                costs: NoiseCosts::default(),
                seed: 1,
            },
            network: Network::Events,
        }
    }

    fn run_of(deck: &Deck, epochs: &[u64], policies: &[Published]) -> Vec<Totals> {
        let machine = preset("qdr-psm").unwrap();
        let epochs = epochs.iter().map(|&i| Epoch::new(deck, i));
        run(deck, epochs, policies, &model(&machine), None, None).unwrap()
    }

    #[test]
    fn a_history_sampled_at_all_its_epochs_is_the_whole_one_and_equal_inputs_give_equal_totals() {
        let deck = Deck {
            n_placements: 5,
            ..DECKS[0]
        };
        let whole = run_of(&deck, &[0, 1, 2, 3, 4], &POLICIES[2..4]);
        assert_eq!(whole, run_of(&deck, &deck.sample(5), &POLICIES[2..4]));
        assert_ne!(whole, run_of(&deck, &deck.sample(4), &POLICIES[2..4]));
        let sum = whole[0].locality;
        let one = run_of(&deck, &[2], &POLICIES[2..4])[0].locality;
        assert!(one.remote > 0 && sum.remote > 4 * one.remote.min(sum.remote / 5));
    }

    #[test]
    fn alike_blocks_that_divide_evenly_leave_no_rank_waiting_to_be_balanced() {
        // Before the shock no block is split: one block a rank.
        let deck = Deck {
            n_placements: 1,
            ..DECKS[0]
        };
        let machine = preset("qdr-psm").unwrap();
        let model = Model {
            costs: BlockCosts::new(0.0, 0.0),
            ..model(&machine)
        };
        let run = |costs| {
            let epochs = std::iter::once(Epoch::without_shock(&deck));
            let model = Model {
                costs,
                ..model.clone()
            };
            run(&deck, epochs, &POLICIES[..1], &model, None, None).unwrap()[0].times
        };
        let even = run(BlockCosts::new(0.0, 0.0));
        let uneven = run(BlockCosts::new(0.0, 0.2));
        assert!(
            (even.compute - 0.05).abs() < 1e-9,
            "a block takes 50 ms: {even:?}"
        );
        // What is left is the network's own unevenness and the collectives.
        assert!(
            even.late + even.synchronisation < 0.05 * even.compute,
            "{even:?}"
        );
        assert!(uneven.synchronisation > 0.2 * uneven.compute, "{uneven:?}");
    }

    #[test]
    fn a_slow_node_slows_all_and_nothing_else_changes() {
        let machine = preset("qdr-psm").unwrap();
        let sample = Sample::new(&DECKS[0], 2);
        let of = |slow| {
            let policies = [Published::Baseline];
            run(
                &DECKS[0],
                sample.epochs.iter(),
                &policies,
                &model(&machine),
                slow,
                None,
            )
            .unwrap()[0]
        };
        let (healthy, slow) = (of(None), of(Some((16, 4.0))));
        assert!(slow.times.total() > 2.0 * healthy.times.total());
        assert_eq!(slow.locality, healthy.locality);
        assert_eq!(of(Some((16, 1.0))), healthy);
    }

    #[test]
    fn a_long_suite_says_how_long_200_epochs_of_4096_ranks_take() {
        let n = if std::env::var_os("COLLTUNE_LONG").is_some() {
            200
        } else {
            1
        };
        for policy in POLICIES {
            let begun = std::time::Instant::now();
            let epochs = DECKS[3].sample(n);
            let found = run_of(&DECKS[3], &epochs, &[policy])[0];
            println!(
                "{policy}: {:.1} s for {n} epochs",
                begun.elapsed().as_secs_f64()
            );
            assert!(found.times.compute > 0.0);
        }
    }
}
