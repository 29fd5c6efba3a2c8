//! Prints what matching new owners to present ones takes and saves: `matching RANKS BLOCKS_PER_RANK RANKS_PER_NODE [POLICY...]`.
//!
//! The costs drift by some percent between two placements by the same policy, which is all that happens.

use std::time::Instant;

use colltune_placement::generate::{Distribution, Random, costs};
use colltune_placement::{Matching, Policy, Problem, match_owners, place};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ranks, blocks_per_rank, per_node, policies @ ..] = &arguments[..] else {
        return Err("usage: matching RANKS BLOCKS_PER_RANK RANKS_PER_NODE [POLICY...]".into());
    };
    let (ranks, per_node): (u32, u32) = (ranks.parse()?, per_node.parse()?);
    let blocks = (f64::from(ranks) * blocks_per_rank.parse::<f64>()?) as usize;
    let before = costs(Distribution::Exponential, 1, blocks);
    let mut random = Random::new(2);
    let after: Vec<f64> = before
        .iter()
        .map(|cost| cost * (0.98 + 0.04 * random.unit()))
        .collect();
    let some = ["contiguous-optimal", "lpt", "cplx:25", "cplx:100"];
    let names: Vec<&str> = match policies {
        [] => some.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    for name in names {
        let policy: Policy = name.parse()?;
        let present = place(&policy, &Problem::new(&before, ranks)?)?.owners;
        let problem = Problem::new(&after, ranks)?
            .with_ranks_per_node(per_node)?
            .with_owners(&present)?;
        let proposed = place(&policy, &problem.with_matching(Matching::Off))?.owners;
        let mut times: Vec<f64> = Vec::new();
        let mut matched = Vec::new();
        for _ in 0..9 {
            let start = Instant::now();
            matched = match_owners(&problem, &proposed)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let moved = |owners: &[u32]| {
            let moves = present.iter().zip(owners).filter(|(b, a)| b != a);
            100.0 * moves.count() as f64 / blocks as f64
        };
        println!(
            "{name:20} {ranks:7} ranks {blocks:8} blocks {per_node:3} per node: {:8.3} {:8.3} {:8.3} ms, moved {:6.2} % without, {:6.2} % with",
            times[0],
            times[times.len() / 2],
            times[times.len() - 1],
            moved(&proposed),
            moved(&matched)
        );
    }
    Ok(())
}
