//! New owners matched to present ones: which part of a placement goes to which rank, so that little moves.
//!
//! A policy says which blocks belong together; which rank has them is mostly chance. Ranks that are alike can be
//! renumbered: no load changes, so the makespan does not, and what a rank has already it need not be sent. Where
//! that would send more than 1 % more messages, or bytes, between nodes, only whole nodes are exchanged, and ranks
//! inside each. Ranks of unequal speed or memory are exchanged with their like alone.
//!
//! Up to 128 ranks (or nodes, and ranks of a node) the permutation keeps as much as any. Beyond that it is found
//! greedily and improved, and never moves more than the policy's own numbers would. Source: the idea is Zoltan's
//! REMAP; Oliker & Biswas, J. Parallel Distrib. Comput. 52(2), 1998.

mod assign;
mod exact;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::certificate;
use crate::error::PlacementError;
use crate::problem::Problem;
use assign::{EXACT_MAX, NONE, Overlaps, Pairs, complete, pairs, permutation};

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
    let rank_of_part = among_alike(problem, &overlaps, &Farther::new(problem, proposed))
        .unwrap_or_else(|| node_by_node(problem, &overlaps));
    // A long search that is cut short need not find what the policy's numbers keep by chance.
    let rank_of = |part: u32| rank_of_part[part as usize];
    match overlaps.kept(rank_of) > overlaps.kept(|part| part) {
        true => Ok(proposed.iter().map(|&part| rank_of(part)).collect()),
        false => Ok(proposed.to_vec()),
    }
}

/// Whether renumbered ranks send clearly more between nodes than the policy's own numbers.
struct Farther<'a> {
    problem: &'a Problem<'a>,
    proposed: &'a [u32],
    /// The node of each rank, where nodes matter, and what goes between them by the policy's numbers.
    by_numbers: Option<(Vec<u32>, certificate::Traffic)>,
}

impl<'a> Farther<'a> {
    fn new(problem: &'a Problem<'a>, proposed: &'a [u32]) -> Self {
        let nodes_matter = (2..problem.ranks()).contains(&problem.n_nodes());
        let by_numbers = nodes_matter.then(|| {
            let nodes: Vec<u32> = (0..problem.ranks())
                .map(|rank| problem.node(rank))
                .collect();
            let traffic = certificate::remote_traffic(problem, proposed, &nodes);
            (nodes, traffic)
        });
        Farther {
            problem,
            proposed,
            by_numbers,
        }
    }

    fn is_sent_by(&self, rank_of_part: &[u32]) -> bool {
        const MORE: f64 = 1.01;
        let Some((nodes, before)) = &self.by_numbers else {
            return false;
        };
        let of_parts: Vec<u32> = rank_of_part
            .iter()
            .map(|&rank| nodes[rank as usize])
            .collect();
        let after = certificate::remote_traffic(self.problem, self.proposed, &of_parts);
        let grows = |before: u64, after: u64| after as f64 > MORE * before as f64;
        grows(before.messages, after.messages) || grows(before.bytes, after.bytes)
    }
}

/// What each part has in common with what each rank has now, in the order of the parts and ranks.
fn overlaps(problem: &Problem, before: &[u32], proposed: &[u32]) -> Overlaps {
    let mut next = vec![0u32; problem.ranks() as usize + 1];
    proposed
        .iter()
        .for_each(|&part| next[part as usize + 1] += 1);
    (1..next.len()).for_each(|part| next[part] += next[part - 1]);
    // Afterwards `next` says where each part's blocks end.
    match problem.memory() {
        None => {
            let mut by_part = vec![0u32; proposed.len()];
            for (&slot, &part) in before.iter().zip(proposed) {
                let place = &mut next[part as usize];
                by_part[*place as usize] = slot;
                *place += 1;
            }
            gathered(&next, &mut by_part, |&slot| (slot, 1))
        }
        Some(_) => {
            let mut by_part = vec![(0u32, 0u64); proposed.len()];
            for (block, (&slot, &part)) in before.iter().zip(proposed).enumerate() {
                let place = &mut next[part as usize];
                by_part[*place as usize] = (slot, problem.weight_to_move(block));
                *place += 1;
            }
            gathered(&next, &mut by_part, |&one| one)
        }
    }
}

/// Blocks of one part and rank in one; `ends` has one entry more than there are parts.
fn gathered<T: Ord>(ends: &[u32], by_part: &mut [T], read: impl Fn(&T) -> (u32, u64)) -> Overlaps {
    let mut overlaps = Overlaps::with_capacity(by_part.len());
    let mut from = 0;
    for (part, &end) in (0u32..).zip(&ends[..ends.len() - 1]) {
        let blocks = &mut by_part[from..end as usize];
        from = end as usize;
        blocks.sort_unstable();
        let mut blocks = blocks.iter().map(&read);
        let Some((mut slot, mut weight)) = blocks.next() else {
            continue;
        };
        for (other, more) in blocks {
            if other != slot {
                overlaps.push(part, slot, weight);
                (slot, weight) = (other, 0);
            }
            weight += more;
        }
        overlaps.push(part, slot, weight);
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

/// The rank of each part, where any two ranks of a class may be exchanged; none where that sends farther.
fn among_alike(problem: &Problem, overlaps: &Overlaps, farther: &Farther) -> Option<Vec<u32>> {
    let n = problem.ranks() as usize;
    let (mut found, mut search) = (vec![NONE; n], Pairs::default());
    if !problem.is_uniform() {
        let (class_of, members) = numbered((0..problem.ranks()).map(|rank| class(problem, rank)));
        found = permutation_within(n, &class_of, &members, overlaps);
    } else if n <= EXACT_MAX {
        found = permutation(n, overlaps);
    } else {
        search.greedy(n, overlaps);
        // What exchanges improve comes to about as far: where that is too far they are for nothing.
        if farther.by_numbers.is_some() {
            found.copy_from_slice(&search.slot_of);
            complete(&mut found);
            if farther.is_sent_by(&found) {
                return None;
            }
        }
        search.improve(overlaps);
        found.copy_from_slice(&search.slot_of);
        complete(&mut found);
    }
    (!farther.is_sent_by(&found)).then_some(found)
}

/// A permutation of `n` things in which each stays in its class.
fn permutation_within(
    n: usize,
    class_of: &[u32],
    members: &[Vec<u32>],
    overlaps: &Overlaps,
) -> Vec<u32> {
    if members.len() == 1 {
        return permutation(n, overlaps);
    }
    let mut place = vec![0u32; n];
    for members in members {
        (0u32..)
            .zip(members)
            .for_each(|(i, &one)| place[one as usize] = i);
    }
    let mut of_class = vec![Overlaps::default(); members.len()];
    for (part, slot, weight) in overlaps.iter() {
        let class = class_of[part as usize];
        if class == class_of[slot as usize] {
            let of_class = &mut of_class[class as usize];
            of_class.push(place[part as usize], place[slot as usize], weight);
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
fn node_by_node(problem: &Problem, overlaps: &Overlaps) -> Vec<u32> {
    let nodes = Nodes::new(problem);
    let inside = Inside::new(&nodes, overlaps);
    let n_nodes = nodes.class_of.len();
    let found = permutation_within(n_nodes, &nodes.class_of, &nodes.members, &inside.of_nodes);
    let mut slots = vec![NONE; problem.ranks() as usize];
    let mut taken = Vec::new();
    let mut from = 0;
    for (part, &slot) in (0u32..).zip(&found) {
        let n = inside.of_nodes.parts[from..].partition_point(|&other| other == part);
        let mut of_part = from..from + n;
        from = of_part.end;
        let kept = of_part.find(|&i| inside.of_nodes.slots[i] == slot);
        let kept = kept.map_or(&[][..], |i| inside.pairs(i));
        nodes.complete((part, slot), kept, &mut taken, &mut slots);
    }
    slots
}

/// Nodes, and which of them can stand for each other.
struct Nodes<'a> {
    problem: &'a Problem<'a>,
    /// Of each rank; none where all are alike.
    rank_class: Option<Vec<u32>>,
    class_of: Vec<u32>,
    members: Vec<Vec<u32>>,
}

impl<'a> Nodes<'a> {
    fn new(problem: &'a Problem<'a>) -> Self {
        let mut nodes = Nodes {
            problem,
            rank_class: None,
            class_of: Vec::new(),
            members: Vec::new(),
        };
        let all = 0..problem.n_nodes();
        if problem.is_uniform() {
            let sizes = all.map(|node| nodes.ranks(node).len());
            (nodes.class_of, nodes.members) = numbered(sizes);
            return nodes;
        }
        let rank_class = numbered((0..problem.ranks()).map(|rank| class(problem, rank))).0;
        let like = |node: u32| -> Vec<u32> {
            let ranks = nodes.ranks(node);
            let mut classes: Vec<u32> = ranks.map(|rank| rank_class[rank as usize]).collect();
            classes.sort_unstable();
            classes
        };
        let (class_of, members) = numbered(all.map(like));
        Nodes {
            rank_class: Some(rank_class),
            class_of,
            members,
            ..nodes
        }
    }

    fn ranks(&self, node: u32) -> Range<u32> {
        let per_node = self.problem.ranks_per_node();
        let end = (node + 1).saturating_mul(per_node);
        node * per_node..end.min(self.problem.ranks())
    }

    fn are_alike(&self, a: u32, b: u32) -> bool {
        let classes = self.rank_class.as_ref();
        classes.is_none_or(|class| class[a as usize] == class[b as usize])
    }

    /// Gives the ranks of a node that have no pair a rank of their class on the other node: their own number, if it is
    /// free.
    fn complete(
        &self,
        (part, slot): (u32, u32),
        kept: &[(u32, u32)],
        taken: &mut Vec<bool>,
        slot_of: &mut [u32],
    ) {
        let (parts, slots) = (self.ranks(part), self.ranks(slot));
        taken.clear();
        taken.resize(slots.len(), false);
        for &(part, slot) in kept {
            slot_of[(parts.start + part) as usize] = slots.start + slot;
            taken[slot as usize] = true;
        }
        for by_number in [true, false] {
            for (i, part) in parts.clone().enumerate() {
                if slot_of[part as usize] != NONE {
                    continue;
                }
                let fits = |&j: &usize| !taken[j] && self.are_alike(part, slots.start + j as u32);
                let found = match by_number {
                    true => Some(i).filter(fits),
                    false => (0..taken.len()).find(fits),
                };
                if let Some(j) = found {
                    slot_of[part as usize] = slots.start + j as u32;
                    taken[j] = true;
                }
            }
        }
    }
}

/// For each two nodes that have something in common which ranks keep it.
struct Inside {
    /// How much of it can be kept at best.
    of_nodes: Overlaps,
    /// Pairs of ranks, numbered from their nodes' first.
    pairs: Vec<(u32, u32)>,
    /// Where those of each of `of_nodes` end.
    ends: Vec<u32>,
}

impl Inside {
    fn new(nodes: &Nodes, overlaps: &Overlaps) -> Inside {
        let mut inside = Inside {
            of_nodes: Overlaps::default(),
            pairs: Vec::new(),
            ends: Vec::new(),
        };
        let mut finder = Finder::new(nodes);
        let per_node = nodes.problem.ranks_per_node();
        let mut from = 0;
        while from < overlaps.len() {
            let node = overlaps.parts[from] / per_node;
            let end = nodes.ranks(node).end;
            let n = overlaps.parts[from..].partition_point(|&part| part < end);
            finder.node(node, overlaps, from..from + n, &mut inside);
            from += n;
        }
        inside
    }

    fn pairs(&self, i: usize) -> &[(u32, u32)] {
        let from = match i {
            0 => 0,
            i => self.ends[i - 1],
        };
        &self.pairs[from as usize..self.ends[i] as usize]
    }
}

/// What one node's overlaps are sorted and searched with, used again for each.
struct Finder<'a> {
    nodes: &'a Nodes<'a>,
    /// Of each other node the last node that was compared with it, and its group then.
    seen: Vec<(u32, u32)>,
    /// The other node of each group, and where its overlaps end.
    groups: Vec<(u32, u32)>,
    group_of: Vec<u32>,
    order: Vec<u32>,
    by_group: Vec<u32>,
    local: Overlaps,
    search: Pairs,
    slots: Vec<u32>,
}

impl<'a> Finder<'a> {
    fn new(nodes: &'a Nodes<'a>) -> Self {
        Finder {
            nodes,
            seen: vec![(NONE, 0); nodes.class_of.len()],
            groups: Vec::new(),
            group_of: Vec::new(),
            order: Vec::new(),
            by_group: Vec::new(),
            local: Overlaps::default(),
            search: Pairs::default(),
            slots: Vec::new(),
        }
    }

    /// Compares `node`, of whose ranks the overlaps in `range` are, with every node that has something of it.
    fn node(&mut self, node: u32, overlaps: &Overlaps, range: Range<usize>, found: &mut Inside) {
        let per_node = self.nodes.problem.ranks_per_node();
        let class_of = &self.nodes.class_of;
        self.groups.clear();
        self.group_of.clear();
        for i in range.clone() {
            let (part, slot) = (overlaps.parts[i], overlaps.slots[i]);
            let other = slot / per_node;
            let may = class_of[node as usize] == class_of[other as usize];
            if !(may && self.nodes.are_alike(part, slot)) {
                self.group_of.push(NONE);
                continue;
            }
            let seen = &mut self.seen[other as usize];
            if seen.0 != node {
                *seen = (node, self.groups.len() as u32);
                self.groups.push((other, 0));
            }
            self.groups[seen.1 as usize].1 += 1;
            self.group_of.push(seen.1);
        }
        // In the order of the other nodes, which decides between equals.
        self.order.clear();
        self.order.extend(0..self.groups.len() as u32);
        let groups = &mut self.groups;
        self.order
            .sort_unstable_by_key(|&group| groups[group as usize].0);
        let mut all = 0;
        for &group in &self.order {
            let n = &mut groups[group as usize].1;
            all += std::mem::replace(n, all);
        }
        self.by_group.resize(all as usize, 0);
        for (i, &group) in range.zip(&self.group_of) {
            if group != NONE {
                let place = &mut groups[group as usize].1;
                self.by_group[*place as usize] = i as u32;
                *place += 1;
            }
        }
        let mut from = 0;
        for nth in 0..self.order.len() {
            let (other, end) = self.groups[self.order[nth] as usize];
            let weight = self.group(overlaps, from..end as usize, &mut found.pairs);
            from = end as usize;
            found.of_nodes.push(node, other, weight);
            found.ends.push(found.pairs.len() as u32);
        }
    }

    /// Finds which ranks of two nodes keep most, from what they have in common; says how much.
    fn group(
        &mut self,
        overlaps: &Overlaps,
        range: Range<usize>,
        found: &mut Vec<(u32, u32)>,
    ) -> u64 {
        let per_node = self.nodes.problem.ranks_per_node();
        let local = |rank: u32| rank % per_node;
        if let [only] = self.by_group[range.clone()] {
            let i = only as usize;
            found.push((local(overlaps.parts[i]), local(overlaps.slots[i])));
            return overlaps.weights[i];
        }
        self.local.clear();
        for &i in &self.by_group[range] {
            let i = i as usize;
            let (part, slot) = (local(overlaps.parts[i]), local(overlaps.slots[i]));
            self.local.push(part, slot, overlaps.weights[i]);
        }
        let n = per_node as usize;
        self.slots.resize(n, NONE);
        if self.nodes.problem.ranks() <= EXACT_NODES_MAX {
            pairs(n, &self.local, &mut self.search, &mut self.slots);
        } else {
            self.search.greedy(n, &self.local);
            self.search.improve(&self.local);
            self.slots.copy_from_slice(&self.search.slot_of);
        }
        let chosen = (0u32..).zip(&self.slots).filter(|(_, slot)| **slot != NONE);
        found.extend(chosen.map(|(part, &slot)| (part, slot)));
        self.local.kept(|part| self.slots[part as usize])
    }
}

#[cfg(test)]
mod tests;
