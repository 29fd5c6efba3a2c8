//! Synthetic machines whose truth is known: calls with run effects, noise and stalls, drawn as a model says.

use std::collections::BTreeMap;

use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::settings::Settings;
use colltune_models::belief::{Belief, Measured, believe};
use colltune_models::choice::{Choice, choose};
use colltune_models::evidence::{Call, Evidence, Shape, reduce};
use colltune_models::predict::{Gaussian, Place};
use colltune_models::watching;
use colltune_models::{Context, Learned, learn};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

pub const LIBRARY: Library = Library {
    product: colltune_core::library::Product::OpenMpi,
    version: (4, 1, 4),
};

/// One cell's truth: by variant the mean cost beside the default's.
#[derive(Clone)]
pub struct Truth {
    pub shape: Shape,
    pub costs: Vec<f64>,
}

#[derive(Clone, Copy)]
pub struct Machine {
    /// Standard deviations of logarithms: of a variant in a run, of one call.
    pub run_effect: f64,
    pub noise: f64,
    /// A variant, its rate of stalls, and how many times as long they take.
    pub stalls: Option<(u16, f64, f64)>,
}

pub const USUAL: Machine = Machine {
    run_effect: 0.05,
    noise: 0.2,
    stalls: None,
};

pub fn shape(bytes: u64) -> Shape {
    Shape {
        collective: Collective::Allreduce,
        message_bytes: bytes,
        nodes: 2,
        ppn: 4,
        n_ranks: 8,
    }
}

pub fn normal(random: &mut impl Rng) -> f64 {
    StandardNormal.sample(random)
}

impl Machine {
    /// The calls of one run; `shares` are the probabilities by variant.
    pub fn run(
        &self,
        run: u32,
        truth: &Truth,
        shares: &[f64],
        n_calls: u64,
        random: &mut StdRng,
    ) -> Vec<Call> {
        let level = 2e4 * (0.5 * normal(random)).exp();
        let effects: Vec<f64> = truth
            .costs
            .iter()
            .map(|cost| cost * (self.run_effect * normal(random)).exp())
            .collect();
        (0..n_calls)
            .map(|index| {
                let mut left: f64 = random.random();
                let variant = shares.iter().position(|share| {
                    left -= share;
                    left < 0.0
                });
                let variant = variant.unwrap_or(0) as u16;
                let noise = (self.noise * normal(random) - self.noise * self.noise / 2.0).exp();
                let stalled = self.stalls.is_some_and(|(which, rate, _)| {
                    which == variant && random.random::<f64>() < rate
                });
                let stall = if stalled {
                    self.stalls.map_or(1.0, |(.., times)| times)
                } else {
                    1.0
                };
                let time_ns = level * effects[usize::from(variant)] * noise * stall;
                Call {
                    run,
                    shape: truth.shape,
                    ..call_at(index, variant, time_ns)
                }
            })
            .collect()
    }

    /// Evidence of so many runs with uniform draws.
    pub fn evidence(&self, seed: u64, truths: &[Truth], runs: u32, n_calls: u64) -> Vec<Evidence> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut calls = Vec::new();
        for run in 0..runs {
            for truth in truths {
                let n = truth.costs.len();
                calls.extend(self.run(run, truth, &vec![1.0 / n as f64; n], n_calls, &mut random));
            }
        }
        reduce(calls)
    }
}

/// What comes behind calls.
pub struct Behind<'a> {
    /// By variant what its calls shift there, in times of the default.
    pub shifts: &'a [f64],
    /// The share of calls behind which the program waits for fifty such times more, whatever ran.
    pub tails: f64,
}

impl Behind<'_> {
    /// Lets it follow the calls of one run.
    pub fn follow(&self, calls: &mut [Call], random: &mut StdRng) {
        let of_default = calls.iter().filter(|call| call.variant == 0);
        let times: Vec<f64> = of_default.map(|call| call.time_ns).collect();
        let level = times.iter().sum::<f64>() / times.len() as f64;
        for call in calls {
            let waits = random.random::<f64>() < self.tails;
            let tail = if waits { 50.0 } else { 0.0 };
            let own = 3.0 + self.shifts[usize::from(call.variant)] + 0.1 * normal(random);
            call.shift_ns = Some(level * (own + tail));
        }
    }
}

/// Settings under which the first `n` variants of allreduce may be drawn, whatever the prior says.
pub fn settings(extra: &str) -> Settings {
    Settings::from_toml(&format!(
        "families = [\"native\", \"p2p\"]\nhopeless_factor = 1000.0\n{extra}"
    ))
    .unwrap()
}

pub fn trained(evidence: &[Evidence], settings: &Settings) -> Learned {
    let context = Context::first(settings, LIBRARY, "test");
    learn(evidence, context).unwrap()
}

/// A variant's name in the catalogue.
pub fn name(variant: usize) -> String {
    colltune_core::catalogue::variants(LIBRARY, Collective::Allreduce)[variant]
        .name
        .to_string()
}

/// Beliefs and choices where every shape is a cell, whose variants may all be drawn.
pub fn decide(
    evidence: &[Evidence],
    n_variants: usize,
    before: Option<u16>,
) -> (Vec<Belief>, Vec<Choice>) {
    let mut by_shape: BTreeMap<Shape, Vec<&Evidence>> = BTreeMap::new();
    evidence
        .iter()
        .for_each(|row| by_shape.entry(row.shape).or_default().push(row));
    let cells: Vec<Measured> = by_shape
        .into_iter()
        .enumerate()
        .map(|(cell, (shape, rows))| {
            let place = Place {
                bytes: (shape.message_bytes as f64 + 1.0).log2(),
                nodes: f64::from(shape.nodes).log2(),
                ppn: f64::from(shape.ppn).log2(),
                simulated: 0.0,
            };
            Measured {
                cell,
                collective: shape.collective,
                weights: watching::watch(&rows).weights,
                rows,
                variants: (1..n_variants as u16)
                    .map(|variant| (variant, place))
                    .collect(),
            }
        })
        .collect();
    let (beliefs, _) = believe(&cells, &[], &Gaussian);
    let allowed: Vec<Vec<bool>> = cells
        .iter()
        .map(|cell| vec![true; cell.variants.len()])
        .collect();
    let choices = choose(&beliefs, &allowed, &vec![before; cells.len()]);
    (beliefs, choices)
}

/// A call in a row on one communicator.
pub fn call_at(k: u64, variant: u16, time_ns: f64) -> Call {
    Call {
        run: 0,
        comm: 1,
        index: k,
        shape: shape(8),
        variant,
        probability: 0.0,
        class: 0,
        start_ns: 100_000 * k,
        time_ns,
        shift_ns: None,
        after_ns: None,
        work_ns: 0.8 * time_ns,
    }
}
