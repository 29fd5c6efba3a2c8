//! What came of a run: times by phase, balance, messages.

use serde::Serialize;

use crate::axes::Axes;
use crate::machine::Machine;
use crate::program::{Exchange, Operation, Phase};
use crate::traffic::Locality;

/// One policy and one choice of collectives. Seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub policy: String,
    pub collective: String,
    pub ranks: usize,
    pub steps: u64,
    /// The time loop, until its last rank is done.
    pub total_s: f64,
    /// Means over the ranks, in the order of [`Phase::ALL`].
    pub phases_s: Vec<(String, f64)>,
    /// Computing of the rank that computes most, over the mean.
    pub makespan_over_mean: f64,
    /// Load balance ratio, percent: mean over most computing.
    pub lbr: f64,
    /// By level: means over steps with blocks of it.
    pub lbr_by_level: Vec<f64>,
    /// The share of all ranks' time that is waiting for others.
    pub sync_share: f64,
    pub messages: Locality,
    pub moved_blocks: u64,
    /// The share of the priced time by each source.
    pub priced: Priced,
}

/// Shares of the time of collectives by where their prices come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Priced {
    pub measured: f64,
    pub regression: f64,
    pub simulated: f64,
}

/// Load balance ratio of loads, percent.
pub fn lbr(loads: &[f64]) -> f64 {
    let most = loads.iter().copied().fold(0.0, f64::max);
    let mean = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
    if most > 0.0 {
        100.0 * mean / most
    } else {
        100.0
    }
}

/// What is added up while a run goes on.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub locality: Locality,
    pub moved_blocks: u64,
    level_lbr: Vec<(f64, u64)>,
}

impl Tally {
    /// Counts an operation's messages.
    pub fn add(&mut self, machine: &Machine, operation: &Operation) {
        if let Operation::Exchange(exchange) = operation {
            self.add_exchange(machine, exchange);
        }
    }

    fn add_exchange(&mut self, machine: &Machine, exchange: &Exchange) {
        let to = &mut self.locality;
        for message in &exchange.messages {
            let on_one_node = machine.node(message.from) == machine.node(message.to);
            to.send(on_one_node, message.bytes);
        }
        to.same_rank += exchange.links.iter().sum::<u64>();
        to.same_rank_bytes += exchange.copied_bytes.iter().sum::<u64>();
        self.moved_blocks += exchange.moved_blocks;
    }

    /// Books a step's loads by level and rank.
    pub fn add_loads(&mut self, loads: &[Vec<f64>]) {
        self.level_lbr
            .resize(loads.len().max(self.level_lbr.len()), (0.0, 0));
        for (sum, loads) in self.level_lbr.iter_mut().zip(loads) {
            if loads.iter().any(|&load| load > 0.0) {
                *sum = (sum.0 + lbr(loads), sum.1 + 1);
            }
        }
    }
}

impl Outcome {
    pub fn new(
        (policy, collective): (String, String),
        steps: u64,
        axes: &Axes,
        tally: &Tally,
        priced: Priced,
    ) -> Outcome {
        let n = axes.n_ranks() as f64;
        let mean = |phase: Phase| axes.spent.iter().map(|s| s[phase as usize]).sum::<f64>() / n;
        let compute: Vec<f64> = axes
            .spent
            .iter()
            .map(|spent| spent[Phase::Compute as usize])
            .collect();
        let total: f64 = axes.clocks.iter().sum();
        let waits = [Phase::Late, Phase::Sync].map(|phase| n * mean(phase));
        let balance = lbr(&compute);
        Outcome {
            policy,
            collective,
            ranks: axes.n_ranks(),
            steps,
            total_s: 1e-9 * axes.makespan(),
            phases_s: Phase::ALL
                .map(|phase| (phase.name().to_owned(), 1e-9 * mean(phase)))
                .to_vec(),
            makespan_over_mean: 100.0 / balance,
            lbr: balance,
            lbr_by_level: tally
                .level_lbr
                .iter()
                .map(|&(sum, n)| if n > 0 { sum / n as f64 } else { 100.0 })
                .collect(),
            sync_share: if total > 0.0 {
                waits.iter().sum::<f64>() / total
            } else {
                0.0
            },
            messages: tally.locality,
            moved_blocks: tally.moved_blocks,
            priced,
        }
    }

    /// Seconds of a phase, mean over the ranks.
    pub fn phase_s(&self, phase: Phase) -> f64 {
        let mut named = self
            .phases_s
            .iter()
            .filter(|(name, _)| name == phase.name());
        named.next().map_or(0.0, |(_, seconds)| *seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_balance_of_hand_made_loads() {
        assert_eq!(lbr(&[1.0, 1.0, 1.0, 1.0]), 100.0);
        assert_eq!(lbr(&[4.0, 0.0, 0.0, 0.0]), 25.0);
        assert_eq!(lbr(&[3.0, 1.0]), 100.0 * 2.0 / 3.0);
        assert_eq!(lbr(&[0.0, 0.0]), 100.0);
    }
}
