//! New owners matched to present ones: which part of a placement goes to which rank, so that little moves.
//!
//! A policy says which blocks belong together; which rank has them is mostly chance. Ranks that are alike can be
//! renumbered: no load changes, so the makespan does not, and what a rank has already it need not be sent. Where
//! that would send more than 1 % more messages, or bytes, between nodes, only whole nodes are exchanged, and ranks
//! inside each. Ranks of unequal speed or memory are exchanged with their like alone.
//!
//! Up to 128 ranks (or nodes, and ranks of a node) the permutation keeps as much as any; beyond that it is found
//! greedily and improved, and never moves more than the policy's own numbers would.
//! Source: the idea is Zoltan's REMAP; Oliker & Biswas, J. Parallel Distrib. Comput. 52(2), 1998.

mod assign;
mod exact;

use std::collections::BTreeMap;

use crate::certificate;
use crate::error::PlacementError;
use crate::problem::Problem;
use assign::{Overlap, improved_pairs, pairs, permutation};

/// On more ranks than this what two nodes have in common is not found exactly, for the time.
const EXACT_NODES_MAX: u32 = 4096;

/// `proposed` with its ranks renumbered so that little moves from the present owners.
///
/// The loads are those of `proposed` on ranks that are alike, and so are the makespan and the blocks per rank; messages
/// and bytes between nodes grow by 1 % at most. Never more moves than without.
/// Errors: no present owners, or a proposal that is not valid.
pub fn match_owners(problem: &Problem, proposed: &[u32]) -> Result<Vec<u32>, PlacementError> {
    problem.check_owners(proposed)?;
    let before = problem.owners().ok_or(PlacementError::Needs {
        policy: "matching",
        need: "the present owners",
    })?;
    let overlaps = overlaps(problem, before, proposed);
    let free = among_alike(problem, &overlaps);
    let nodes_matter = (2..problem.ranks()).contains(&problem.n_nodes());
    let rank_of_part = match nodes_matter && sends_farther(problem, proposed, &free) {
        true => node_by_node(problem, &overlaps),
        false => free,
    };
    let kept = |rank_of: &dyn Fn(u32) -> u32| -> u64 {
        let stays = overlaps.iter().filter(|o| rank_of(o.part) == o.slot);
        stays.map(|overlap| overlap.weight).sum()
    };
    // A long search that is cut short need not find what the policy's numbers keep by chance.
    match kept(&|part| rank_of_part[part as usize]) > kept(&|part| part) {
        true => Ok(proposed
            .iter()
            .map(|&part| rank_of_part[part as usize])
            .collect()),
        false => Ok(proposed.to_vec()),
    }
}

/// Whether renumbered ranks send clearly more between nodes than the policy's own numbers.
fn sends_farther(problem: &Problem, proposed: &[u32], rank_of_part: &[u32]) -> bool {
    const MORE: f64 = 1.01;
    let renamed: Vec<u32> = proposed
        .iter()
        .map(|&part| rank_of_part[part as usize])
        .collect();
    let [before, after] =
        [proposed, &renamed].map(|owners| certificate::remote_traffic(problem, owners));
    let grows = |before: u64, after: u64| after as f64 > MORE * before as f64;
    grows(before.messages, after.messages) || grows(before.bytes, after.bytes)
}

/// What each part has in common with what each rank has now, in the order of the parts and ranks.
fn overlaps(problem: &Problem, before: &[u32], proposed: &[u32]) -> Vec<Overlap> {
    let mut ends = vec![0usize; problem.ranks() as usize + 1];
    proposed
        .iter()
        .for_each(|&part| ends[part as usize + 1] += 1);
    (1..ends.len()).for_each(|part| ends[part] += ends[part - 1]);
    let mut next = ends.clone();
    let mut by_part = vec![(0u32, 0u64); proposed.len()];
    for (block, (&slot, &part)) in before.iter().zip(proposed).enumerate() {
        by_part[next[part as usize]] = (slot, problem.weight_to_move(block));
        next[part as usize] += 1;
    }
    let mut overlaps: Vec<Overlap> = Vec::with_capacity(proposed.len());
    for part in 0..problem.ranks() {
        let blocks = &mut by_part[ends[part as usize]..ends[part as usize + 1]];
        blocks.sort_unstable();
        for same in blocks.chunk_by(|a, b| a.0 == b.0) {
            overlaps.push(Overlap {
                part,
                slot: same[0].0,
                weight: same.iter().map(|block| block.1).sum(),
            });
        }
    }
    overlaps
}

/// What a rank is like: ranks of one class can stand for each other.
type Class = (u64, u64);

fn class(problem: &Problem, rank: u32) -> Class {
    let speed = problem.speed(rank).to_bits();
    (speed, problem.memory_of_rank(rank).unwrap_or(u64::MAX))
}

/// The number of each of `n` things among those of its class, and how many there are of each class.
fn numbered<C: Ord>(classes: impl Iterator<Item = C>) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut members: BTreeMap<C, Vec<u32>> = BTreeMap::new();
    let mut all = 0u32;
    for class in classes {
        members.entry(class).or_default().push(all);
        all += 1;
    }
    let members: Vec<Vec<u32>> = members.into_values().collect();
    let mut class_of = vec![0; all as usize];
    for (class, members) in (0u32..).zip(&members) {
        members
            .iter()
            .for_each(|&one| class_of[one as usize] = class);
    }
    (class_of, members)
}

/// The rank of each part, where any two ranks of a class may be exchanged.
fn among_alike(problem: &Problem, overlaps: &[Overlap]) -> Vec<u32> {
    let n = problem.ranks() as usize;
    if problem.is_uniform() {
        return permutation(n, overlaps);
    }
    let (class_of, members) = numbered((0..problem.ranks()).map(|rank| class(problem, rank)));
    permutation_within(n, &class_of, &members, overlaps)
}

/// A permutation of `n` things in which each stays in its class.
fn permutation_within(
    n: usize,
    class_of: &[u32],
    members: &[Vec<u32>],
    overlaps: &[Overlap],
) -> Vec<u32> {
    let mut place = vec![0u32; n];
    for members in members {
        (0u32..)
            .zip(members)
            .for_each(|(i, &one)| place[one as usize] = i);
    }
    let mut of_class: Vec<Vec<Overlap>> = vec![Vec::new(); members.len()];
    for overlap in overlaps {
        let class = class_of[overlap.part as usize];
        if class == class_of[overlap.slot as usize] {
            of_class[class as usize].push(Overlap {
                part: place[overlap.part as usize],
                slot: place[overlap.slot as usize],
                ..*overlap
            });
        }
    }
    let mut slots = vec![0; n];
    for (members, overlaps) in members.iter().zip(&of_class) {
        let found = permutation(members.len(), overlaps);
        for (&part, slot) in members.iter().zip(found) {
            slots[part as usize] = members[slot as usize];
        }
    }
    slots
}

/// The rank of each part, where nodes that are alike may be exchanged, and ranks that are alike inside each.
fn node_by_node(problem: &Problem, overlaps: &[Overlap]) -> Vec<u32> {
    let per_node = problem.ranks_per_node();
    let ranks =
        |node: u32| node * per_node..((node + 1).saturating_mul(per_node)).min(problem.ranks());
    let (rank_class, _) = numbered((0..problem.ranks()).map(|rank| class(problem, rank)));
    let like = |node: u32| -> Vec<u32> {
        let mut classes: Vec<u32> = ranks(node).map(|rank| rank_class[rank as usize]).collect();
        classes.sort_unstable();
        classes
    };
    let (class_of, members) = match problem.is_uniform() {
        true => numbered((0..problem.n_nodes()).map(|node| ranks(node).len() as u32)),
        false => numbered((0..problem.n_nodes()).map(like)),
    };
    // The overlaps of two nodes with each other, and how much of them can be kept at best.
    let mut by_nodes: Vec<(u64, Overlap)> = overlaps
        .iter()
        .filter(|o| rank_class[o.part as usize] == rank_class[o.slot as usize])
        .filter(|o| {
            class_of[(o.part / per_node) as usize] == class_of[(o.slot / per_node) as usize]
        })
        .map(|o| {
            let nodes = u64::from(o.part / per_node) << 32 | u64::from(o.slot / per_node);
            let local = Overlap {
                part: o.part % per_node,
                slot: o.slot % per_node,
                ..*o
            };
            (nodes, local)
        })
        .collect();
    // They stand by part, so those of a node's parts stand together.
    debug_assert!(by_nodes.is_sorted_by_key(|entry| entry.0 >> 32));
    for of_node in by_nodes.chunk_by_mut(|a, b| a.0 >> 32 == b.0 >> 32) {
        of_node.sort_by_key(|entry| entry.0);
    }
    let (mut of_nodes, mut inside, mut ends) = (Vec::new(), Vec::new(), vec![0]);
    for same in by_nodes.chunk_by(|a, b| a.0 == b.0) {
        let from = inside.len();
        match same {
            [(_, only)] => inside.push(*only),
            _ => {
                let local: Vec<Overlap> = same.iter().map(|(_, local)| *local).collect();
                inside.extend(match problem.ranks() <= EXACT_NODES_MAX {
                    true => pairs(per_node as usize, &local),
                    false => improved_pairs(per_node as usize, &local),
                });
            }
        }
        ends.push(inside.len());
        of_nodes.push(Overlap {
            part: (same[0].0 >> 32) as u32,
            slot: same[0].0 as u32,
            weight: inside[from..].iter().map(|pair| pair.weight).sum(),
        });
    }
    let nodes = permutation_within(class_of.len(), &class_of, &members, &of_nodes);
    let mut slots = vec![0; problem.ranks() as usize];
    for (part, &slot) in (0u32..).zip(&nodes) {
        let found = of_nodes.binary_search_by_key(&(part, slot), |o| (o.part, o.slot));
        let kept = found.map_or(&[][..], |i| &inside[ends[i]..ends[i + 1]]);
        complete(
            (ranks(part), ranks(slot)),
            |rank| rank_class[rank as usize],
            kept,
            &mut slots,
        );
    }
    slots
}

/// Gives the ranks of a node that have no pair a rank of their class on the other node: their own number, if it is
/// free.
fn complete(
    (parts, slots): (std::ops::Range<u32>, std::ops::Range<u32>),
    class: impl Fn(u32) -> u32,
    kept: &[Overlap],
    slot_of: &mut [u32],
) {
    let mut taken = vec![false; slots.len()];
    let mut placed = vec![false; parts.len()];
    for pair in kept {
        slot_of[(parts.start + pair.part) as usize] = slots.start + pair.slot;
        taken[pair.slot as usize] = true;
        placed[pair.part as usize] = true;
    }
    for by_number in [true, false] {
        for (i, part) in parts.clone().enumerate() {
            if placed[i] {
                continue;
            }
            let fits = |&j: &usize| !taken[j] && class(slots.start + j as u32) == class(part);
            let found = match by_number {
                true => Some(i).filter(fits),
                false => (0..taken.len()).find(fits),
            };
            if let Some(j) = found {
                slot_of[part as usize] = slots.start + j as u32;
                (taken[j], placed[i]) = (true, true);
            }
        }
    }
}

#[cfg(test)]
mod tests;
