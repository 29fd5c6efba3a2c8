//! Running the stages of all ranks.

use std::collections::VecDeque;

use super::across::{Origin, acrosses};
use super::memory::{Case, Found, Rank};
use super::node::{Shared, Together};
use crate::collective::Collective;
use crate::node::map::NodeMap;
use crate::node::stage::{Inside, Stage, overlapping, spare_units, stages};

/// Runs the stages of all ranks. `change` may change what a rank does.
pub fn run(case: &Case, change: &dyn Fn(usize, &mut VecDeque<Stage>)) -> Found<Vec<Origin>> {
    let n = case.n_ranks();
    let maps: Vec<NodeMap> = (0..n)
        .map(|rank| NodeMap::new(case.nodes_of_ranks, rank).expect("a rank of it"))
        .collect();
    let (sent, received) = match case.collective {
        Collective::Allgather => (1, n as u64),
        Collective::Alltoall => (n as u64, n as u64),
        _ => (1, 1),
    };
    let mut ranks: Vec<Rank> = (0..n)
        .map(|rank| {
            let call = case.call(rank);
            let mut left = VecDeque::new();
            let mut note = |stage| {
                left.push_back(stage);
                Ok::<(), std::convert::Infallible>(())
            };
            if case.overlaps {
                let parts = overlapping(&call, &maps[rank]);
                let stages = [
                    parts.combining.map(Stage::Inside),
                    parts.across.map(Stage::Across),
                    parts.giving.map(Stage::Inside),
                ];
                left.extend(stages.into_iter().flatten());
            } else {
                let Ok(()) = stages(&call, &maps[rank], &mut note);
            }
            change(rank, &mut left);
            let spare = spare_units(&call, &maps[rank]) as usize;
            let mut made = Rank {
                map: &maps[rank],
                left,
                input: vec![None; (sent * case.block) as usize],
                output: vec![None; (received * case.block) as usize],
                spare: vec![None; spare],
                within: case.within(rank),
            };
            let bcast = case.collective == Collective::Bcast;
            for unit in 0..sent * case.block {
                let content = Some(vec![(rank, unit)]);
                match (bcast, made.within) {
                    (true, _) if rank != case.root => {}
                    (true, _) => made.output[unit as usize] = content,
                    (false, Some(within)) => made.output[(within + unit) as usize] = content,
                    (false, None) => made.input[unit as usize] = content,
                }
            }
            made
        })
        .collect();
    let mut shared: Vec<Shared> = maps[0]
        .nodes
        .iter()
        .map(|ranks| Shared::new(ranks.len()))
        .collect();
    loop {
        let copied = copies(&mut ranks)?;
        let inside = insides(case, &mut ranks, &mut shared)?;
        let across = acrosses(case, &mut ranks)?;
        if !(copied || inside || across) {
            break;
        }
    }
    match ranks.iter().position(|rank| !rank.left.is_empty()) {
        Some(rank) => Err(format!("rank {rank} waits for ever")),
        None => Ok(ranks.into_iter().map(|rank| rank.output).collect()),
    }
}

fn copies(ranks: &mut [Rank]) -> Found<bool> {
    let mut any = false;
    for rank in ranks {
        while let Some(&Stage::Copy { from, to, units }) = rank.left.front() {
            let contents: Found<Vec<_>> = (0..units).map(|unit| rank.read(from, unit)).collect();
            for (unit, content) in (0..).zip(contents?) {
                if rank.read(to, unit)? != content {
                    rank.write(to, unit, content)?;
                }
            }
            rank.left.pop_front();
            any = true;
        }
    }
    Ok(any)
}

fn insides(case: &Case, ranks: &mut [Rank], shared: &mut [Shared]) -> Found<bool> {
    let mut any = false;
    for (node, shared) in shared.iter_mut().enumerate() {
        let here = &ranks[0].map.nodes[node];
        let next = here.iter().map(|rank| match ranks[*rank].left.front() {
            Some(Stage::Inside(inside)) => Some(*inside),
            _ => None,
        });
        let Some(insides) = next.collect::<Option<Vec<_>>>() else {
            continue;
        };
        let cut = insides[0].blocks.cut(insides[0].units, case.unit_bytes);
        let alike = |inside: &Inside| {
            let own = inside.blocks.cut(inside.units, case.unit_bytes);
            inside.kind == insides[0].kind && own == cut
        };
        if !insides.iter().all(alike) {
            return Err(format!("the ranks of node {node} do different things"));
        }
        // A rank that is alone on its node has nobody to do anything with.
        if here.len() > 1 {
            let mut together = Together {
                here,
                ranks,
                insides: &insides,
                shared,
                cut,
            };
            together.run(case.highest)?;
        }
        for rank in here {
            ranks[*rank].left.pop_front();
        }
        any = true;
    }
    Ok(any)
}
