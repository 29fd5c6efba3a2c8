//! Who is who in a world: which node a rank is on, and which ranks record.

use std::collections::HashMap;

use crate::select::mix;

/// A hash of bytes that does not depend on the machine, for comparing what ranks have.
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(mix(seed, bytes.len() as u64), |hash, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(hash, u64::from_le_bytes(word))
        })
}

/// Salt of the choice of recording ranks.
const FIRST: u64 = 0x7265_636f_7264_7273;

/// For each rank the number of its node, counted in the order of first appearance.
///
/// Shape: `hosts` has one entry per rank, alike for ranks of one node; the result is as long.
pub fn number_nodes(hosts: impl Iterator<Item = u64>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    hosts
        .map(|host| {
            let next = numbers.len() as u32;
            *numbers.entry(host).or_insert(next)
        })
        .collect()
}

/// How many nodes there are, and how many ranks the fullest of them has.
pub fn extent(node_of_rank: &[u32]) -> (u64, u64) {
    let n_nodes = node_of_rank.iter().max().map_or(0, |last| last + 1);
    let mut ranks_on = vec![0u64; n_nodes as usize];
    for node in node_of_rank {
        ranks_on[*node as usize] += 1;
    }
    let fullest = ranks_on.iter().copied().max().unwrap_or(0);
    (n_nodes.into(), fullest)
}

/// How many ranks share the node of `rank`, itself included.
pub fn ranks_beside(rank: u32, node_of_rank: &[u32]) -> u64 {
    let node = node_of_rank[rank as usize];
    node_of_rank.iter().filter(|other| **other == node).count() as u64
}

/// Whether a rank records: some ranks of a node (`per_node` at most) at even distances, on as many nodes as the limit
/// over all ranks (`in_all`) allows, evenly spread. Which of a node comes first is anybody: roots, leaders of nodes
/// and the ends of pipelines do more or less than the others, and are to be among the recording ranks as often as they
/// are among all.
pub fn records(rank: u32, node_of_rank: &[u32], per_node: u32, in_all: u32) -> bool {
    let node = node_of_rank[rank as usize];
    let before = &node_of_rank[..rank as usize];
    let place = before.iter().filter(|other| **other == node).count() as u64;
    let ranks = ranks_beside(rank, node_of_rank);
    let per_node = u64::from(per_node.min(in_all)).min(ranks);
    let (nodes, _) = extent(node_of_rank);
    let recording_nodes = (u64::from(in_all) / per_node.max(1)).min(nodes);
    let first = mix(FIRST, node.into()) % ranks;
    let behind_first = (place + ranks - first) % ranks;
    let records = (0..per_node).any(|step| step * ranks / per_node == behind_first);
    records && is_spread(node.into(), nodes, recording_nodes)
}

/// Whether place `place` of `n` is among `k` places at even distances, the first and last included.
fn is_spread(place: u64, n: u64, k: u64) -> bool {
    match k {
        0 => false,
        1 => place == 0,
        _ => (0..k).any(|step| step * (n - 1) / (k - 1) == place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_depends_on_every_byte_and_on_the_length() {
        let whole = hash_bytes(1, b"colltune 0.1.0");
        assert_eq!(whole, hash_bytes(1, b"colltune 0.1.0"));
        for other in [
            &b"colltune 0.1.1"[..],
            b"colltune 0.1.0\0",
            b"colltune 0.1.",
        ] {
            assert_ne!(whole, hash_bytes(1, other), "{other:?}");
        }
        assert_ne!(whole, hash_bytes(2, b"colltune 0.1.0"));
    }

    #[test]
    fn nodes_are_numbered_as_they_first_appear() {
        let nodes = number_nodes([70, 5, 70, 9, 5].into_iter());
        assert_eq!(nodes, [0, 1, 0, 2, 1]);
        assert_eq!(extent(&nodes), (3, 2));
        assert_eq!(extent(&[]), (0, 0));
        assert_eq!([0, 1, 3].map(|rank| ranks_beside(rank, &nodes)), [2, 2, 1]);
    }

    #[test]
    fn every_place_on_a_node_records_as_often_as_the_others() {
        let (nodes, ppn) = (4000, 8);
        let node_of_rank: Vec<u32> = (0..nodes * ppn).map(|rank| rank / ppn).collect();
        let mut by_place = [0; 8];
        for node in 0..nodes {
            // Places of one node are all that the choice looks at.
            let here = &node_of_rank[..((node + 1) * ppn) as usize];
            if node % 40 == 0 {
                let ranks = node * ppn..(node + 1) * ppn;
                let chosen: Vec<u32> = ranks
                    .filter(|&rank| records(rank, here, 2, u32::MAX))
                    .collect();
                assert_eq!(chosen.len(), 2);
                assert_eq!(chosen[1] - chosen[0], 4, "at even distances");
                chosen
                    .iter()
                    .for_each(|rank| by_place[(rank % ppn) as usize] += 1);
            }
        }
        assert!(
            by_place.iter().all(|n| (12..=38).contains(n)),
            "25 each but for chance: {by_place:?}"
        );
    }

    #[test]
    fn the_limit_over_all_ranks_holds_whatever_the_shape() {
        for ppn in 1..=9 {
            let nodes: Vec<u32> = (0..40).map(|rank| rank / ppn).collect();
            for (per_node, in_all) in [(1, 1), (2, 7), (3, 8), (9, 5), (2, 64)] {
                let all = 0..nodes.len() as u32;
                let n = all
                    .filter(|&rank| records(rank, &nodes, per_node, in_all))
                    .count();
                assert!(
                    n <= in_all as usize && n > 0,
                    "{ppn} {per_node} {in_all}: {n}"
                );
            }
        }
    }
}
