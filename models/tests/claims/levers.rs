//! Machines with a known truth: a program with arms of its own whose collectives are tuned in the same jobs.
//!
//! `cargo test --release -p colltune-models --test claims levers -- --nocapture` prints the figures.

use colltune_models::levers::{
    Epoch, Epochs, Lever, LeverJudged, Row, drawn, first_shares, judge, rows_of_epochs,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, StandardNormal};

const SEEDS: u64 = 200;
const JOBS: usize = 10;

/// Logarithms of how much longer a job takes.
struct Machine {
    arms: Vec<f64>,
    variants: Vec<f64>,
    /// By arm and variant.
    together: Vec<Vec<f64>>,
    noise: f64,
    /// Standard deviation of a step of the level from job to job.
    drift: f64,
    /// What all jobs have in common as far as an epoch is from their beginning, by arm and epoch.
    moments: Vec<Vec<f64>>,
}

/// The most epochs of a job.
const EPOCHS: usize = 12;

impl Machine {
    fn new(effect: f64, together: f64, uneven: f64, random: &mut StdRng) -> Machine {
        let mut normal = |deviation: f64| -> f64 {
            let value: f64 = StandardNormal.sample(random);
            deviation * value
        };
        let mut some = |n: usize, deviation: f64| (0..n).map(|_| normal(deviation)).collect();
        Machine {
            arms: some(5, effect),
            variants: some(4, 0.05),
            together: (0..5).map(|_| some(4, together)).collect(),
            noise: 0.01,
            drift: 0.005,
            moments: {
                let common: Vec<f64> = some(EPOCHS, uneven);
                let arm = |_| -> Vec<f64> {
                    let own: Vec<f64> = some(EPOCHS, 0.5 * uneven);
                    common
                        .iter()
                        .zip(own)
                        .map(|(common, own)| common + own)
                        .collect()
                };
                (0..5).map(arm).collect()
            },
        }
    }

    /// What an arm takes over all epochs, beside one that is the same in all of them.
    fn over_all(&self, arm: usize) -> f64 {
        let epochs = self.moments[arm].iter().map(|epoch| epoch.exp());
        (epochs.sum::<f64>() / EPOCHS as f64).ln()
    }

    fn log_time(&self, arm: usize, variant: usize) -> f64 {
        self.arms[arm] + self.over_all(arm) + self.variants[variant] + self.together[arm][variant]
    }

    /// How much longer than with the best pair a job takes.
    fn loss(&self, arm: usize, variant: usize) -> f64 {
        let all = (0..self.arms.len()).flat_map(|arm| (0..4).map(move |variant| (arm, variant)));
        let least = all.map(|(arm, variant)| self.log_time(arm, variant));
        (self.log_time(arm, variant) - least.fold(f64::INFINITY, f64::min)).exp() - 1.0
    }
}

/// What ten jobs taught: of the lever, and which variant their calls found to be the fastest.
///
/// A job draws one arm, or one for each of its epochs, and its calls draw variants: at first all of them, later mostly those that were fast with the
/// arms that ran (a split plot). Their times are of many calls, so only the interaction keeps them from the truth.
fn tuned(machine: &Machine, epochs: usize, seed: u64) -> (LeverJudged, usize) {
    let mut random = StdRng::seed_from_u64(seed);
    let lever = Lever {
        n_arms: machine.arms.len(),
        n_offered: machine.arms.len(),
        before: None,
    };
    let (mut rows, mut level, mut judged) = (Vec::new(), 0.0, judge(&[lever], &[], seed));
    let mut runs = Vec::new();
    let mut calls = [(0.0, 0.0); 4];
    let mut shares = vec![0.25; 4];
    for job in 0..JOBS {
        let mut told = Vec::new();
        for epoch in 0..epochs {
            let arm = match (job, epochs) {
                (0, 1) => 0, // It says how long a job takes.
                (_, 1) => drawn(&judged[0].shares, random.random()),
                _ => drawn(&judged[0].shares_of_epochs(), random.random()),
            };
            let mut time = 0.0;
            for variant in 0..4 {
                time += shares[variant] * machine.log_time(arm, variant).exp();
                let noise: f64 = StandardNormal.sample(&mut random);
                calls[variant].0 += shares[variant]
                    * (machine.variants[variant] + machine.together[arm][variant] + 0.003 * noise);
                calls[variant].1 += shares[variant];
            }
            let (step, noise): (f64, f64) = (
                StandardNormal.sample(&mut random),
                StandardNormal.sample(&mut random),
            );
            // A job may run on slower nodes as a whole.
            let of_job = if epoch == 0 && epochs > 1 { 5.0 } else { 1.0 };
            level += of_job * machine.drift * step;
            let moment = machine.moments[arm][epoch] - machine.over_all(arm);
            told.push((arm, time.ln() + level + moment + machine.noise * noise));
        }
        match epochs {
            1 => rows.extend(told.iter().map(|&(arm, log_time)| Row {
                block: usize::from(job > 0),
                arms: vec![arm],
                moment: None,
                work: 1.0,
                log_time,
            })),
            _ => {
                runs.push(Epochs {
                    way: 0,
                    arguments: 0,
                    epochs: (0..)
                        .zip(told)
                        .map(|(number, (arm, log_time))| Epoch {
                            number,
                            arm,
                            work: 1.0,
                            log_time,
                        })
                        .collect(),
                });
                rows = rows_of_epochs(&runs);
            }
        }
        judged = judge(&[lever], &rows, seed);
        let found = |variant: usize| calls[variant].0 / calls[variant].1;
        let fastest = (0..4)
            .min_by(|&a, &b| found(a).total_cmp(&found(b)))
            .unwrap();
        shares = (0..4)
            .map(|variant| if variant == fastest { 0.7 } else { 0.1 })
            .collect();
    }
    let variant = (0..4)
        .max_by(|&a, &b| shares[a].total_cmp(&shares[b]))
        .unwrap();
    (judged.remove(0), variant)
}

/// How many of 100 seeds from `first` on end within 3 % of the best pair.
fn within(together: f64, epochs: usize, uneven: f64, first: u64) -> u64 {
    // Many epochs take as much longer to learn from.
    let seeds = if epochs == EPOCHS { SEEDS / 2 } else { SEEDS };
    let loss = |seed: u64| {
        let machine = Machine::new(0.1, together, uneven, &mut StdRng::seed_from_u64(seed));
        let (lever, variant) = tuned(&machine, epochs, 1000 + seed);
        machine.loss(lever.best, variant)
    };
    let mut losses: Vec<f64> = (first..first + seeds).map(loss).collect();
    losses.sort_unstable_by(f64::total_cmp);
    let within = losses.iter().filter(|loss| **loss <= 0.03).count();
    let at = |share: f64| 100.0 * losses[(share * (seeds - 1) as f64) as usize];
    println!(
        "5 arms (10 %) x 4 variants (5 %), interaction {:.0} %, {JOBS} jobs of {epochs} epochs, uneven by {:.0} %: {within} of {seeds} seeds within 3 % of the \
         best pair; loss: median {:.1} %, 95th percentile {:.1} %, most {:.1} %",
        100.0 * together,
        100.0 * uneven,
        at(0.5),
        at(0.95),
        at(1.0)
    );
    100 * within as u64 / seeds
}

#[test]
fn after_ten_jobs_the_pair_is_within_3_percent_of_the_best_in_95_of_100_seeds() {
    assert!(within(0.01, 1, 0.0, 0) >= 95);
    // Main effects are all that is learned, so a larger interaction costs more.
    assert!(within(0.02, 1, 0.0, 0) >= 85);
    // Seeds that were not looked at while this was made, and programs that ask four times a job.
    assert!(within(0.01, 1, 0.0, 50_000) >= 93);
    assert!(within(0.01, 4, 0.0, 60_000) >= 95);
    // The work of a mesh that moves is uneven, not for all arms at once, and each job goes through the same.
    assert!(within(0.01, EPOCHS, 0.15, 70_000) >= 95);
}

#[test]
fn a_lever_without_effect_keeps_its_first_arm_and_is_said_to_have_none() {
    let (mut kept, mut none) = (0, 0);
    for seed in 0..SEEDS {
        let machine = Machine::new(0.0, 0.0, 0.0, &mut StdRng::seed_from_u64(seed));
        let (lever, _) = tuned(&machine, 1, 2000 + seed);
        kept += u64::from(lever.best == 0);
        none += u64::from(lever.has_no_effect());
    }
    println!(
        "5 equal arms, {JOBS} jobs: the first is kept in {kept} of {SEEDS} seeds, and none said to differ in {none}"
    );
    assert!(kept * 100 >= 98 * SEEDS, "{kept}");
    assert!(none * 100 >= 90 * SEEDS, "{none}");
}

#[test]
fn levers_are_learned_together_and_a_wild_job_and_another_way_of_timing_change_nothing() {
    let mut random = StdRng::seed_from_u64(7);
    let levers = [3, 2].map(|n_arms| Lever {
        n_arms,
        n_offered: n_arms,
        before: None,
    });
    let truth = [vec![0.0, -0.2, 0.1], vec![0.0, 0.0]];
    let row = |job: usize, random: &mut StdRng| {
        let noise: f64 = StandardNormal.sample(random);
        let arms = vec![job % 3, (job / 3) % 2];
        let block = usize::from(job.is_multiple_of(4));
        let wild = if job == 5 { 1.0 } else { 0.0 };
        let log_time = truth[0][arms[0]] + truth[1][arms[1]] + 0.5 * block as f64 + wild;
        Row {
            log_time: log_time + 0.01 * noise,
            block,
            arms,
            moment: None,
            work: 1.0,
        }
    };
    let rows: Vec<Row> = (0..24).map(|job| row(job, &mut random)).collect();
    let judged = judge(&levers, &rows, 1);
    assert_eq!((judged[0].best, judged[1].best), (1, 0));
    assert!(judged[1].has_no_effect() && !judged[0].has_no_effect());
    let gain = judged[0].contrasts[1];
    assert!((gain.gain - 0.2f64.exp()).abs() < 0.03, "{gain:?}");
    assert!(gain.lo < 0.2f64.exp() && gain.hi > 0.2f64.exp(), "{gain:?}");
    assert!(judged[0].contrasts[2].hi < 1.0);
    assert!(judged.iter().all(|one| one.is_settled));
    assert_eq!(judge(&levers, &rows, 1), judged);
}

#[test]
fn each_arm_has_its_turn_what_is_not_offered_is_never_drawn_and_what_was_chosen_stays() {
    let lever = |before| Lever {
        n_arms: 4,
        n_offered: 3,
        before,
    };
    let none = judge(&[lever(None)], &[], 1).remove(0);
    assert_eq!(none.shares, [1.0 / 3.0; 3]);
    let row = |arm: usize, log_time: f64| Row {
        block: 0,
        arms: vec![arm],
        moment: None,
        work: 1.0,
        log_time,
    };
    let two = [row(0, 0.0), row(3, -1.0)];
    assert_eq!(judge(&[lever(None)], &two, 1)[0].shares, [0.0, 0.5, 0.5]);
    // Arm 1 is as fast as arm 2, and both are faster than arm 0.
    let rows: Vec<Row> = (0..12)
        .map(|job| {
            row(
                job % 4,
                [0.0, -0.1, -0.1, -1.0][job % 4] + 0.003 * (job % 5) as f64,
            )
        })
        .collect();
    for before in [1, 2] {
        let judged = judge(&[lever(Some(before))], &rows, 1).remove(0);
        assert_eq!(judged.best, before);
        assert_eq!(judged.shares.len(), 3);
        // Next to nothing is left to find, so the best one runs.
        assert!(
            judged.is_settled && judged.shares[before] >= 0.9,
            "{:?}",
            judged.shares
        );
    }
    // One run is not enough.
    let fast = [row(0, 0.0), row(0, 0.0), row(1, -1.0)];
    assert_eq!(judge(&[lever(None)], &fast, 1)[0].best, 0);
}

#[test]
fn what_is_expected_weighs_the_first_draws_and_rules_no_arm_out() {
    let shares = first_shares(&[1.0, 1.1, 2.0, 1.0]);
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    assert!((shares[0] - shares[3]).abs() < 1e-5);
    assert!(shares[0] > shares[1] && shares[1] > shares[2]);
    assert!(
        shares[2] > 0.12,
        "an eighth of them whatever is expected: {shares:?}"
    );
    assert_eq!(first_shares(&[3.0; 4]), [0.25; 4]);
}

/// Contiguous blocks of a mesh that moves: as fast as others but for a few epochs.
#[test]
fn an_arm_that_is_slow_at_three_moments_of_twelve_is_known_to_be_slow() {
    let slow = |arm: usize, epoch: usize| match (arm, epoch) {
        (0, 3) => 1.14,
        (0, 4) => 1.2,
        (0, 5) => 1.24,
        _ => 1.0,
    };
    let truth = (0..EPOCHS).map(|epoch| slow(0, epoch)).sum::<f64>() / EPOCHS as f64;
    let lever = Lever {
        n_arms: 3,
        n_offered: 3,
        before: None,
    };
    let seeds = 60;
    let (mut left, mut covered) = (0, 0);
    for seed in 0..seeds {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut runs, mut judged) = (Vec::new(), judge(&[lever], &[], seed).remove(0));
        for _ in 0..JOBS {
            let epoch = |number: usize| {
                let arm = drawn(&judged.shares_of_epochs(), random.random());
                let noise: f64 = StandardNormal.sample(&mut random);
                Epoch {
                    number,
                    arm,
                    work: 1.0,
                    log_time: slow(arm, number).ln() + 0.01 * noise,
                }
            };
            runs.push(Epochs {
                way: 0,
                arguments: 0,
                epochs: (0..EPOCHS).map(epoch).collect(),
            });
            judged = judge(&[lever], &rows_of_epochs(&runs), seed).remove(0);
        }
        left += usize::from(judged.best != 0);
        let gain = judged.contrasts[1];
        covered += usize::from(gain.lo <= truth && truth <= gain.hi);
    }
    println!(
        "an arm that is slow at 3 of {EPOCHS} moments, {truth:.3} times in all: another one is chosen in {left} of {seeds} \
         seeds, the interval holds the truth in {covered}"
    );
    assert!(left * 100 >= 95 * seeds as usize, "{left}");
    assert!(covered * 100 >= 80 * seeds as usize, "{covered}");
}
