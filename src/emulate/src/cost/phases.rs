//! What a rank's phases cost, from their times and from what it had to do.

use colltune_amr::settings::Work as Kernel;
use colltune_amr::telemetry::{Kind, Phase};

use super::least_squares::non_negative;
use super::model::PhaseCosts;

/// What a rank had to do in a step, and what its phases took.
#[derive(Clone, Debug, Default)]
pub struct Day {
    pub time_ns: [f64; Phase::ALL.len()],
    pub messages: [u64; Kind::ALL.len()],
    pub bytes: [u64; Kind::ALL.len()],
    /// Bytes that were read to pack what was sent, from the dearest memory.
    pub read_bytes: f64,
    pub received_messages: f64,
    pub received_bytes: f64,
    /// Cells' variables of own blocks, times the checks of the step.
    pub summed: f64,
    /// Where a refinement followed the step: leaves that its passes and the making of exchanges went over, and those
    /// that were placed.
    pub refined_leaves: f64,
    pub placed_leaves: f64,
    pub refinements: f64,
    /// Values of own blocks that were split or joined then.
    pub refined_values: f64,
    /// Bytes of blocks that came or left.
    pub migrated_bytes: f64,
}

impl Day {
    fn took(&self, phase: Phase) -> f64 {
        self.time_ns[phase as usize]
    }

    /// Messages that were packed, and what was read for them.
    fn packed(&self) -> [f64; 2] {
        let ghosts = [
            Kind::GhostSame,
            Kind::GhostToFiner,
            Kind::GhostToCoarser,
            Kind::GhostMixed,
            Kind::Flux,
        ];
        let messages = ghosts.iter().map(|&kind| self.messages[kind as usize]);
        [messages.sum::<u64>() as f64, self.read_bytes]
    }
}

/// The costs under which the phases of `days` would have taken most nearly what they took. What messages are made for
/// counts on days of uniform runs, too: each run alike, and all together as much as the others.
pub fn phases(kernel: Kernel, days: &[Day], uniform: &[Vec<Day>]) -> PhaseCosts {
    let weight = |run: &Vec<Day>| days.len() as f64 / (uniform.len() * run.len()) as f64;
    let of_run = |run| {
        std::iter::repeat(weight(run))
            .zip(run)
            .map(|(weight, day)| (day, weight))
    };
    let all = days.iter().map(|day| (day, 1.0));
    let exchanging: Vec<(&Day, f64)> = all.chain(uniform.iter().flat_map(of_run)).collect();
    let pack = solve(&exchanging, Phase::Pack, |day| day.packed().to_vec());
    // Stencils of seven points take ghosts in as they compute: a block's own time holds it.
    let unpack = match kernel {
        Kernel::Seven => vec![0.0; 2],
        _ => solve(&exchanging, Phase::Unpack, |day| {
            vec![day.received_messages, day.received_bytes]
        }),
    };
    let local = |of: &[u64]| of[Kind::Local as usize] as f64;
    let alike: Vec<(&Day, f64)> = days.iter().map(|day| (day, 1.0)).collect();
    let copy = solve(&alike, Phase::Copy, |day| {
        vec![local(&day.messages), local(&day.bytes)]
    });
    let sum = solve(&alike, Phase::Sum, |day| vec![day.summed]);
    let refined = alike.iter().filter(|(day, _)| day.refinements > 0.0);
    let refined: Vec<(&Day, f64)> = refined.copied().collect();
    let refine = solve(&refined, Phase::Refine, |day| {
        vec![day.refinements, day.refined_leaves, day.refined_values]
    });
    let place = solve(&refined, Phase::Place, |day| vec![day.placed_leaves]);
    let migrate = solve(&refined, Phase::Migrate, |day| vec![day.migrated_bytes]);
    let n = days.len().max(1) as f64;
    let besides = days
        .iter()
        .map(|day| day.took(Phase::Other) + day.took(Phase::Output));
    let [pack_message_ns, pack_byte_ns] = pair(&pack);
    let [unpack_message_ns, unpack_byte_ns] = pair(&unpack);
    let [copy_link_ns, copy_byte_ns] = pair(&copy);
    PhaseCosts {
        pack_message_ns,
        pack_byte_ns,
        unpack_message_ns,
        unpack_byte_ns,
        copy_link_ns,
        copy_byte_ns,
        sum_cell_ns: first(&sum),
        refine_ns: first(&refine),
        refine_leaf_ns: refine.get(1).copied().unwrap_or(0.0),
        refine_value_ns: refine.get(2).copied().unwrap_or(0.0),
        place_leaf_ns: first(&place),
        migrate_byte_ns: first(&migrate),
        step_ns: besides.sum::<f64>() / n,
    }
}

fn first(x: &[f64]) -> f64 {
    x.first().copied().unwrap_or(0.0)
}

fn pair(x: &[f64]) -> [f64; 2] {
    [first(x), x.get(1).copied().unwrap_or(0.0)]
}

/// Rows count by their weight, and by one over the root of their times: a long one is as far off as it is long.
fn solve(days: &[(&Day, f64)], phase: Phase, regressors: impl Fn(&Day) -> Vec<f64>) -> Vec<f64> {
    let rows = days.iter().filter(|(day, _)| day.took(phase) > 0.0);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (day, weight) in rows {
        let weight = (weight / day.took(phase)).sqrt();
        a.push(regressors(day).iter().map(|x| x * weight).collect());
        b.push(day.took(phase) * weight);
    }
    non_negative(&a, &b)
}
