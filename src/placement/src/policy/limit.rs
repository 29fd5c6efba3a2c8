//! Keeps any policy's placement within the limit of blocks per rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::certificate;
use crate::problem::Problem;

/// Moves the cheapest blocks of ranks that have too many to the least loaded ranks with room.
///
/// The total room suffices: a [`Problem`] with a tighter limit does not exist.
pub(super) fn keep(problem: &Problem, owners: &mut [u32]) {
    let Some(most) = problem.limits().blocks_per_rank else {
        return;
    };
    let mut counts = vec![0u32; problem.ranks() as usize];
    owners.iter().for_each(|&owner| counts[owner as usize] += 1);
    if counts.iter().all(|&count| count <= most) {
        return;
    }
    let costs = problem.costs();
    let mut blocks: Vec<u32> = (0..owners.len() as u32)
        .filter(|&block| counts[owners[block as usize] as usize] > most)
        .collect();
    blocks.sort_by(|&a, &b| costs[a as usize].total_cmp(&costs[b as usize]));
    blocks.retain(|&block| {
        let count = &mut counts[owners[block as usize] as usize];
        let leaves = *count > most;
        *count -= u32::from(leaves);
        leaves
    });
    let mut loads = certificate::times(problem, owners);
    for &block in &blocks {
        let owner = owners[block as usize];
        let load = &mut loads[owner as usize];
        *load = (*load - costs[block as usize] / problem.speed(owner)).max(0.0);
    }
    // Loads are not negative, so their bits order like they do.
    let mut room: BinaryHeap<Reverse<(u64, u32)>> = (0..problem.ranks())
        .filter(|&rank| counts[rank as usize] < most)
        .map(|rank| Reverse((loads[rank as usize].to_bits(), rank)))
        .collect();
    for &block in blocks.iter().rev() {
        let Reverse((load, rank)) = room.pop().expect("the limit leaves room for every block");
        owners[block as usize] = rank;
        counts[rank as usize] += 1;
        if counts[rank as usize] < most {
            let load = f64::from_bits(load) + costs[block as usize] / problem.speed(rank);
            room.push(Reverse((load.to_bits(), rank)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Limits;

    #[test]
    fn only_the_cheapest_blocks_of_full_ranks_move() {
        let costs = [5.0, 1.0, 2.0, 4.0, 9.0];
        let limits = Limits {
            blocks_per_rank: Some(2),
            bytes_per_block: 0,
        };
        let problem = Problem::new(&costs, 3)
            .and_then(|p| p.with_limits(limits))
            .unwrap();
        let mut owners = [0, 0, 0, 0, 2];
        keep(&problem, &mut owners);
        assert_eq!(owners, [0, 1, 1, 0, 2]);
        let before = owners;
        keep(&problem, &mut owners);
        assert_eq!(owners, before);
    }
}
