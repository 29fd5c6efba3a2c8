//! Prints what one policy costs and gives on published costs: `measure POLICY RANKS BLOCKS_PER_RANK DISTRIBUTION`.

use colltune_placement::generate::{Distribution, costs};
use colltune_placement::{Policy, Problem, place};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [policies, ranks, blocks_per_rank, shape] = &arguments[..] else {
        return Err("usage: measure POLICY,.. RANKS BLOCKS_PER_RANK DISTRIBUTION".into());
    };
    let ranks: u32 = ranks.parse()?;
    let blocks = (f64::from(ranks) * blocks_per_rank.parse::<f64>()?) as usize;
    let threads = std::env::var("THREADS").map_or(1, |n| n.parse().unwrap_or(1));
    for distribution in Distribution::ALL {
        if shape != "all" && distribution.to_string() != *shape {
            continue;
        }
        for policy in policies.split(',') {
            let policy: Policy = policy.parse()?;
            let costs = costs(distribution, 1, blocks);
            let problem = Problem::new(&costs, ranks)?
                .with_ranks_per_node(16)?
                .with_threads(threads);
            let mut times = Vec::new();
            let started = Instant::now();
            while times.len() < 3 || (times.len() < 25 && started.elapsed().as_secs_f64() < 1.0) {
                let start = Instant::now();
                std::hint::black_box(place(&policy, &problem)?);
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            let placement = place(&policy, &problem)?;
            let found = placement.certify(&problem)?;
            println!(
                "{distribution:12} {policy:24} {ranks:7} ranks {blocks:8} blocks: {:9.3} {:9.3} {:9.3} ms, makespan {:8.2}, gap {:.5}, curve score {:.3}, {:?} {:?}",
                times[0],
                times[times.len() / 2],
                times[times.len() - 1],
                found.makespan,
                found.gap,
                found.locality.curve_score,
                found.contiguity,
                found.optimal
            );
        }
    }
    Ok(())
}
