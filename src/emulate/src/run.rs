//! One run from its beginning to its end.

mod slow_node;

mod spans;

use std::collections::BTreeMap;

use colltune_amr::compat::Compat;
use colltune_amr::settings::{Settings, Work as Kernel};
use colltune_amr::telemetry::Traffic;

use crate::EmulateError;
use crate::axes::{Axes, Network};
use crate::clock::Timer;
use crate::cost::Costs;
use crate::machine::Machine;
use crate::noise::Noise;
use crate::outcome::{Outcome, Tally};
use crate::place::Placer;
use crate::price::{Choices, Prices};
use crate::program::{Calls, Given, History, Operation, Program, count};

pub use slow_node::SlowNode;
pub use spans::Span;

/// What is emulated.
#[derive(Clone)]
pub struct Scenario<'a> {
    pub settings: &'a Settings,
    pub n_ranks: usize,
    pub costs: &'a Costs,
    pub machine: &'a Machine,
    pub history: History<'a>,
    /// The policy's name, and the policy; none: that of the settings.
    pub placer: Option<(String, Placer)>,
    /// Who times `placer`: what it takes, by the machine's scale, passes on every rank. None: the costs say it, for each
    /// leaf.
    pub timer: Option<Timer<'a>>,
    pub choices: Choices,
    pub network: Network,
    pub slow: Option<SlowNode>,
    pub noise: Option<Noise>,
}

/// A run, and what telemetry would have counted.
pub struct Emulated {
    pub outcome: Outcome,
    /// By step, from the first, and rank: what each sent in the step; empty if not kept.
    pub traffic: Vec<Vec<Traffic>>,
    /// By sender and receiver; empty if not kept.
    pub pairs: BTreeMap<(u32, u32), Sent>,
    /// Of the steps whose time axes were kept, operation by operation and rank by rank.
    pub spans: Vec<Span>,
    /// By rank: seconds by phase.
    pub spent_ns: Vec<[f64; crate::program::Phase::ALL.len()]>,
    pub clocks_ns: Vec<f64>,
}

/// What one rank sent another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub messages: u64,
    pub bytes: u64,
}

/// What is kept of a run beside its outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Each step's traffic.
    pub traffic: bool,
    /// What each two ranks sent.
    pub pairs: bool,
    /// The time axes of these steps, the first and the last, counted from 1.
    pub steps: Option<(u64, u64)>,
}

impl Keep {
    /// The outcome alone.
    pub const SUMS: Keep = Keep {
        traffic: false,
        pairs: false,
        steps: None,
    };
    pub const TRAFFIC: Keep = Keep {
        traffic: true,
        ..Keep::SUMS
    };

    fn axes_of(self, step: u64) -> bool {
        self.steps
            .is_some_and(|(first, last)| (first..=last).contains(&step))
    }
}

/// Runs a scenario once with each seed of its noise, from the one it has on, and sorts what `run` makes of them by
/// `total_s`: what is in the middle is a typical run.
///
/// Errors: those of `run`.
pub fn replicas<T>(
    scenario: &Scenario,
    n: u64,
    mut run: impl FnMut(&Scenario) -> Result<T, EmulateError>,
    total_s: impl Fn(&T) -> f64,
) -> Result<Vec<(Option<Noise>, T)>, EmulateError> {
    let mut all = Vec::new();
    for nth in 0..n {
        let noise = scenario.noise.map(|noise| Noise {
            seed: noise.seed.wrapping_add(nth),
            ..noise
        });
        let found = run(&Scenario {
            noise,
            ..scenario.clone()
        })?;
        all.push((noise, found));
    }
    all.sort_by(|(_, a), (_, b)| total_s(a).total_cmp(&total_s(b)));
    Ok(all)
}

/// Runs a scenario.
///
/// Errors: what program, policy or collective cannot do.
pub fn run(scenario: &Scenario, keep: Keep) -> Result<Emulated, EmulateError> {
    let Scenario {
        settings,
        n_ranks,
        costs,
        machine,
        ..
    } = *scenario;
    let calls = Calls::new(n_ranks);
    let compat = settings
        .options
        .compat
        .then(|| Compat::start(&calls, settings));
    let own = Placer::of(settings);
    let placer = scenario.placer.as_ref().map_or(&own, |(_, placer)| placer);
    let told = scenario.slow.filter(|slow| slow.is_told);
    let speeds = told.map(|slow| slow.speeds(machine, n_ranks)).transpose()?;
    let program = Program::new(Given {
        settings,
        n_ranks,
        costs,
        scale: machine.scale,
        noise: scenario.noise,
        history: scenario.history,
        choose: Some(Box::new(|question: colltune_amr::placement::Question| {
            placer.owners(settings, question, machine, speeds.as_deref())
        })),
        timer: scenario.timer,
        compat: compat.as_ref().map(|compat| (compat, &calls)),
    })?;
    go_through(scenario, program, keep)
}

fn go_through(
    scenario: &Scenario,
    mut program: Program,
    keep: Keep,
) -> Result<Emulated, EmulateError> {
    let Scenario {
        settings,
        n_ranks,
        costs,
        machine,
        ..
    } = *scenario;
    let handled = as_handled(machine, settings);
    let mut axes = Axes::new(&handled, n_ranks, &costs.phases, scenario.network);
    if let Some(slow) = scenario.slow {
        axes.slow(slow.ranks(machine, n_ranks)?, slow.factor);
    }
    if let Some(noise) = scenario.noise {
        axes.interrupt(noise);
    }
    let mut prices = Prices::new(machine, scenario.choices.clone());
    let mut tally = Tally::default();
    let mut traffic = Vec::new();
    let (mut pairs, mut spans) = (BTreeMap::new(), Vec::new());
    let mut operations = Vec::new();
    loop {
        tally.add_loads(&program.loads());
        let mut sent = vec![Traffic::default(); n_ranks];
        operations.clear();
        let goes_on = program.next_step(&mut |operation| {
            tally.add(machine, operation);
            if keep.traffic {
                count(operation, &mut sent);
            }
            if keep.pairs {
                add_pairs(operation, &mut pairs);
            }
            operations.push(operation.clone());
        })?;
        let step = program.step();
        for operation in &operations {
            let before = keep.axes_of(step).then(|| spans::Standing::of(&axes));
            act(&mut axes, &mut prices, operation)?;
            if let Some(before) = before {
                before.until(step, &axes, &mut spans);
            }
        }
        if !goes_on {
            break;
        }
        if keep.traffic {
            traffic.push(sent);
        }
    }
    axes.end();
    debug_assert!(axes.gap() < 1e-9, "phases do not add up: {}", axes.gap());
    let placer = scenario.placer.as_ref();
    let policy = placer.map_or(settings.placement.to_string(), |(name, _)| name.clone());
    let names = (policy, scenario.choices.text());
    Ok(Emulated {
        outcome: Outcome::new(names, program.step(), &axes, &tally, prices.priced()),
        traffic,
        pairs,
        spans,
        spent_ns: axes.spent,
        clocks_ns: axes.clocks,
    })
}

fn add_pairs(operation: &Operation, pairs: &mut BTreeMap<(u32, u32), Sent>) {
    if let Operation::Exchange(exchange) = operation {
        for message in &exchange.messages {
            let sent = pairs.entry((message.from, message.to)).or_default();
            sent.messages += 1;
            sent.bytes += message.bytes;
        }
    }
}

/// The machine as a kernel meets it: stencils of seven points take ghosts in as they compute, and pay for neither
/// copies nor unpacking besides.
fn as_handled(machine: &Machine, settings: &Settings) -> Machine {
    let mut machine = machine.clone();
    if let (Kernel::Seven, Some(app)) = (settings.work, &mut machine.app) {
        app.copy_byte_ns = 0.0;
        app.unpack_message_ns = 0.0;
        app.unpack_byte_ns = 0.0;
    }
    machine
}

fn act(axes: &mut Axes, prices: &mut Prices, operation: &Operation) -> Result<(), EmulateError> {
    match operation {
        Operation::Collective(call) => axes.meet(prices.call_ns(call)?),
        _ => axes.act(operation, &mut |_| unreachable!("no collective")),
    }
    Ok(())
}
