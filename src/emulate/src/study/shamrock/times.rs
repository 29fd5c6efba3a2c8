//! One step of all ranks, and what a run of them takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use colltune_amr::telemetry::{Freight, Meeting as Kind};
use colltune_placement::{Graph, Policy, Problem, place};
use colltune_statistics::median;

use super::patches::{Contact, EDGE, Patches};
use crate::EmulateError;
use crate::axes::{Axes, Network};
use crate::cost::PhaseCosts;
use crate::machine::Machine;
use crate::price::{Choices, Prices};
use crate::program::{Call, Exchange, Message, Operation, Phase};

/// What was fitted: a cell's time in a step, and the number of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    pub cell_ns: f64,
    pub steps: f64,
}

/// A run. Seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    pub total: f64,
    /// By rank; all but computing is communication, waiting for others included.
    pub compute: Vec<f64>,
}

impl Times {
    pub fn mean_compute(&self) -> f64 {
        self.compute.iter().sum::<f64>() / self.compute.len() as f64
    }

    pub fn mean_comm(&self) -> f64 {
        self.total - self.mean_compute()
    }

    pub fn worst_comm(&self) -> f64 {
        self.total - self.compute.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Of the whole time, percent.
    pub fn comm_share(&self) -> f64 {
        100.0 * self.mean_comm() / self.total
    }
}

/// The run of median length of so many seeds of a strategy that has one; of a strategy without, the run.
///
/// Errors: the policy's.
pub fn typical(
    patches: &Patches,
    strategy: &str,
    seeds: u32,
    ranks: u32,
    machine: &Machine,
    fitted: Fitted,
) -> Result<Times, EmulateError> {
    if strategy != "weighted-random" {
        return times(patches, strategy, ranks, machine, fitted);
    }
    let runs = (1..=seeds).map(|seed| {
        let name = format!("{strategy}:{seed}");
        times(patches, &name, ranks, machine, fitted)
    });
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let middle = median(&runs.iter().map(|run| run.total).collect::<Vec<_>>());
    let off = |run: &Times| (run.total - middle).abs();
    let nearest = runs.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)));
    Ok(nearest.expect("one seed at least"))
}

/// A run under a policy.
///
/// Errors: the policy's.
pub fn times(
    patches: &Patches,
    policy: &str,
    ranks: u32,
    machine: &Machine,
    fitted: Fitted,
) -> Result<Times, EmulateError> {
    let n = ranks as usize;
    let owners = owners(patches, policy, ranks, machine, fitted)?;
    let patch_ns = fitted.cell_ns * (EDGE * EDGE) as f64;
    let mut compute = vec![0.0; n];
    for &owner in &owners {
        compute[owner as usize] += patch_ns;
    }
    let work = Operation::Work {
        phase: Phase::Compute,
        time_ns: Arc::new(compute.clone()),
    };
    let mut prices = Prices::new(machine, Choices::default());
    let reduce = Call::of_all(Kind::Allreduce, 8, n);
    let reduce_ns = prices.call_ns(&reduce)?;
    let mut axes = Axes::new(machine, n, &PhaseCosts::default(), Network::Events);
    for operation in [
        Operation::Exchange(exchange(&patches.boundary, &owners, n)),
        work,
        Operation::Exchange(exchange(&patches.transfer, &owners, n)),
        // All end together, so one step is like every other.
        Operation::Collective(reduce),
    ] {
        axes.act(&operation, &mut |_| reduce_ns);
    }
    let run = |ns: f64| 1e-9 * fitted.steps * ns;
    Ok(Times {
        total: run(axes.makespan()),
        compute: compute.into_iter().map(run).collect(),
    })
}

fn owners(
    patches: &Patches,
    policy: &str,
    ranks: u32,
    machine: &Machine,
    fitted: Fitted,
) -> Result<Vec<u32>, EmulateError> {
    let policy: Policy = policy.parse()?;
    let patch_s = 1e-9 * fitted.cell_ns * (EDGE * EDGE) as f64;
    let costs = vec![patch_s; patches.octants.len()];
    let given = given(patches);
    let graph = Graph {
        offsets: &given.0,
        neighbours: &given.1,
        bytes: &given.2,
    };
    let link = |link: &colltune_core::algorithm::simulate::Link| colltune_placement::Link {
        latency: 1e-9 * link.latency_ns,
        per_byte: 1e-9 * link.per_byte_ns,
    };
    let links = colltune_placement::Machine {
        same_node: link(&machine.network.inside),
        remote: link(&machine.network.between),
    };
    let problem = Problem::new(&costs, ranks)?
        .with_ranks_per_node(machine.shape.ppn)?
        .with_mesh(patches.mesh())?
        .with_graph(graph)?
        .with_machine(links)?;
    Ok(place(&policy, &problem)?.owners)
}

/// What each patch gives in a step, as a graph in compressed rows.
fn given(patches: &Patches) -> (Vec<u64>, Vec<u32>, Vec<u64>) {
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for contact in patches.boundary.iter().chain(&patches.transfer) {
        *pairs.entry((contact.from, contact.to)).or_default() += contact.bytes;
    }
    let mut offsets = vec![0u64; patches.octants.len() + 1];
    for &(from, _) in pairs.keys() {
        offsets[from as usize + 1] += 1;
    }
    for i in 1..offsets.len() {
        offsets[i] += offsets[i - 1];
    }
    let neighbours = pairs.keys().map(|&(_, to)| to).collect();
    (offsets, neighbours, pairs.into_values().collect())
}

/// Contacts between ranks, one message for each pair; those inside a rank are copies.
fn exchange(contacts: &[Contact], owners: &[u32], n_ranks: usize) -> Arc<Exchange> {
    let (mut links, mut copied) = (vec![0; n_ranks], vec![0; n_ranks]);
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for contact in contacts {
        let (from, to) = (owners[contact.from as usize], owners[contact.to as usize]);
        if from == to {
            links[to as usize] += 1;
            copied[to as usize] += contact.bytes;
        } else {
            *pairs.entry((from, to)).or_default() += contact.bytes;
        }
    }
    let messages = pairs.into_iter();
    let messages = messages.map(|((from, to), bytes)| Message { from, to, bytes });
    let mut exchange = Exchange::new(Freight::Ghost, n_ranks, messages.collect());
    (exchange.links, exchange.copied_bytes) = (links, copied);
    Arc::new(exchange)
}
