//! What to do, in a sentence with its number each.

use std::collections::{BTreeMap, BTreeSet};

use colltune_placement::{Policy, Problem, certify, place};
use serde::Serialize;

use super::share::Share;
use crate::rows::Block;
use crate::text::percent;
use crate::windows::{Meeting, Run};

/// Something to do, with the share of the time that it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    pub share: f64,
    pub text: String,
}

/// Below this share of the time nothing is said.
const WORTH_SAYING: f64 = 0.05;

pub fn advice(total: &Share, run: &Run, blocks: &[Block]) -> Vec<Advice> {
    let share = |ns: i64| ns as f64 / total.whole().max(1) as f64;
    let mut advice = Vec::new();
    let mut say = |share: f64, text: String| advice.push(Advice { share, text });
    let uneven = share(uneven_work(run));
    let mut text = format!(
        "{} of the time ranks wait in collectives for the last one; uneven work explains {}",
        percent(share(total.sync)),
        percent(uneven)
    );
    if let Some(left) = left_by_lpt_swap(blocks) {
        let now = uneven_blocks(blocks);
        text += &format!(
            ", and blocks placed by `--placement lpt-swap --weigh measured` would leave {} of the {} that they cause",
            percent(left),
            percent(now)
        );
    }
    say(share(total.sync), text);
    let (late, transit) = (share(total.late), share(total.wait - total.late));
    if !run.rounds.is_empty() {
        say(
            share(total.wait),
            format!(
                "{} of the time ranks wait for messages: {} until the partner has posted them, {} until they have come; {}",
                percent(share(total.wait)),
                percent(late),
                percent(transit),
                match late > transit {
                    true => "`colltune-lab telemetry path` says who posts late",
                    false => "fewer or larger messages would help",
                }
            ),
        );
    } else {
        say(
            share(total.wait),
            format!(
                "{} of the time ranks wait for messages; `--telemetry_rounds` would say for whom",
                percent(share(total.wait))
            ),
        );
    }
    say(
        share(total.call),
        format!(
            "{} of the time goes into collectives after the last rank has come; `colltune tune` makes that shorter",
            percent(share(total.call))
        ),
    );
    say(
        share(total.off),
        format!(
            "{} of the time ranks had work but no processor: pin them, and give each a core of its own",
            percent(share(total.off))
        ),
    );
    advice.retain(|line| line.share >= WORTH_SAYING);
    advice.sort_by(|a, b| b.share.total_cmp(&a.share));
    advice
}

/// Time that ranks would have less to wait if all worked as long as their mean in each window.
fn uneven_work(run: &Run) -> i64 {
    let of_meeting = |meeting: &Meeting| {
        let work: Vec<i64> = meeting
            .ranks
            .iter()
            .map(|w| w.compute + w.pack + w.copy + w.unpack + w.sum)
            .collect();
        let most = work.iter().max().copied().unwrap_or(0);
        let gap: i64 = work.iter().map(|work| most - work).sum();
        let sync: i64 = meeting
            .ranks
            .iter()
            .map(|w| (meeting.straggler().arrive - w.arrive).max(0) + w.wait)
            .sum();
        gap.min(sync)
    };
    run.meetings.iter().map(of_meeting).sum()
}

/// Of the time of blocks: what the mean rank would wait for the most loaded one.
pub fn uneven_blocks(blocks: &[Block]) -> f64 {
    let mut by_rank: BTreeMap<(u64, u32), f64> = BTreeMap::new();
    for block in blocks {
        *by_rank.entry((block.step, block.rank)).or_default() += block.compute as f64;
    }
    let mut steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for ((step, _), load) in by_rank {
        steps.entry(step).or_default().push(load);
    }
    share_lost(steps.values().map(|loads| {
        let most = loads.iter().copied().fold(0.0, f64::max);
        (most, loads.iter().sum::<f64>() / loads.len() as f64)
    }))
}

/// The same if blocks were placed by the policy `lpt-swap` in each step that is looked at.
pub fn left_by_lpt_swap(blocks: &[Block]) -> Option<f64> {
    const STEPS: usize = 16;
    let policy: Policy = "lpt-swap".parse().ok()?;
    let ranks: BTreeSet<u32> = blocks.iter().map(|block| block.rank).collect();
    let mut steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for block in blocks {
        steps
            .entry(block.step)
            .or_default()
            .push(block.compute as f64);
    }
    let every = steps.len().div_ceil(STEPS).max(1);
    let loads = steps.values().step_by(every).map(|costs| {
        let problem = Problem::new(costs, ranks.len() as u32).ok()?;
        let placed = place(&policy, &problem).ok()?;
        let certificate = certify(&problem, &placed.owners).ok()?;
        let mean = costs.iter().sum::<f64>() / ranks.len() as f64;
        Some((certificate.makespan, mean))
    });
    let loads: Vec<(f64, f64)> = loads.collect::<Option<_>>()?;
    (!loads.is_empty()).then(|| share_lost(loads.into_iter()))
}

/// Of pairs of the largest and the mean load: the share of the time that the mean rank waits.
fn share_lost(loads: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (most, mean) = loads.fold((0.0, 0.0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
    if most > 0.0 {
        (most - mean) / most
    } else {
        0.0
    }
}
