//! Ranks that share cores: each core serves one at a time, first come first served, in slices of the scheduler's.
//!
//! Rank `i` is on core `i` modulo the cores of its node, as test clusters pin them; where nodes share cores, modulo all
//! of them.

use crate::machine::Machine;

/// The round-robin real-time scheduler's slice.
const SLICE_NS: f64 = 100e6;

#[derive(Clone, Debug)]
pub struct Cores {
    of_rank: Vec<u32>,
    ranks: Vec<Vec<u32>>,
    free: Vec<f64>,
    last: Vec<Option<u32>>,
    switch_ns: f64,
}

/// A stretch of work of one rank.
#[derive(Clone, Copy)]
struct Burst {
    rank: u32,
    ready: f64,
    left: f64,
}

impl Cores {
    /// `None` where no ranks share a core.
    pub fn new(machine: &Machine, n_ranks: usize) -> Option<Cores> {
        let node_of = machine.node_of(n_ranks);
        let per_node = machine.shape.cores_per_node;
        let of_rank: Vec<u32> = if per_node < 1.0 {
            // All nodes share the cores of one machine, those without ranks too.
            let n_nodes = node_of.last().map_or(1, |node| node + 1);
            let n_nodes = n_nodes.max(machine.shape.nodes);
            let n_cores = (per_node * f64::from(n_nodes)).round().max(1.0) as u32;
            (0..n_ranks as u32).map(|rank| rank % n_cores).collect()
        } else {
            let per_node = per_node as u32;
            let ppn = machine.shape.ppn;
            let core = |rank: u32| machine.node(rank) * per_node + rank % ppn % per_node;
            (0..n_ranks as u32).map(core).collect()
        };
        let n_cores = of_rank.iter().max().map_or(0, |core| core + 1) as usize;
        let mut ranks = vec![Vec::new(); n_cores];
        for (rank, &core) in (0..).zip(&of_rank) {
            ranks[core as usize].push(rank);
        }
        ranks.iter().any(|of| of.len() > 1).then(|| Cores {
            of_rank,
            ranks,
            free: vec![0.0; n_cores],
            last: vec![None; n_cores],
            switch_ns: machine.shape.switch_ns,
        })
    }

    pub fn core(&self, rank: usize) -> u32 {
        self.of_rank[rank]
    }

    /// When each rank has done what would keep an unshared core from `ready` to `end`.
    pub fn serve(&mut self, ready: &[f64], ends: &[f64]) -> Vec<f64> {
        let mut served = ends.to_vec();
        for core in 0..self.ranks.len() {
            self.serve_core(core, ready, ends, &mut served);
        }
        served
    }

    fn serve_core(&mut self, core: usize, ready: &[f64], ends: &[f64], served: &mut [f64]) {
        let burst = |&rank: &u32| {
            let (ready, end) = (ready[rank as usize], ends[rank as usize]);
            let left = end - ready;
            (left > 0.0).then_some(Burst { rank, ready, left })
        };
        let mut queue: Vec<Burst> = self.ranks[core].iter().filter_map(burst).collect();
        let mut now = self.free[core];
        while !queue.is_empty() {
            // First come first served; who came together goes by rank.
            let order =
                |a: &&Burst, b: &&Burst| a.ready.total_cmp(&b.ready).then(a.rank.cmp(&b.rank));
            let next = *queue.iter().min_by(order).expect("not empty");
            let switches = self.last[core].is_some_and(|last| last != next.rank);
            now = now.max(next.ready) + if switches { self.switch_ns } else { 0.0 };
            self.last[core] = Some(next.rank);
            let others = queue
                .iter()
                .any(|other| other.rank != next.rank && other.ready < now + next.left);
            let runs = if others {
                next.left.min(SLICE_NS)
            } else {
                next.left
            };
            now += runs;
            let place = queue.iter().position(|burst| burst.rank == next.rank);
            let place = place.expect("it is in the queue");
            if runs < next.left {
                queue[place].left -= runs;
                queue[place].ready = now;
            } else {
                served[next.rank as usize] = now;
                queue.swap_remove(place);
            }
        }
        self.free[core] = self.free[core].max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(ppn: u32, cores_per_node: f64) -> Machine {
        let mut machine = crate::machine::preset("hera").unwrap();
        machine.shape.ppn = ppn;
        machine.shape.cores_per_node = cores_per_node;
        machine
    }

    #[test]
    fn as_many_cores_as_ranks_are_no_sharing() {
        assert!(Cores::new(&machine(4, 4.0), 16).is_none());
        assert!(Cores::new(&machine(4, 4.0), 3).is_none());
        assert!(Cores::new(&machine(4, 2.0), 3).is_some());
    }

    #[test]
    fn nodes_that_share_cores_share_those_of_nodes_without_ranks_too() {
        let mut cluster = machine(2, 0.5);
        for (nodes, expected) in [(1, [0; 4]), (4, [0, 1, 0, 1])] {
            cluster.shape.nodes = nodes;
            let cores = Cores::new(&cluster, 4).unwrap();
            assert_eq!([0, 1, 2, 3].map(|rank| cores.core(rank)), expected);
        }
    }

    #[test]
    fn ranks_of_a_core_follow_one_another_and_long_ones_take_turns() {
        let mut cores = Cores::new(&machine(4, 2.0), 4).unwrap();
        assert_eq!([0, 1, 2, 3].map(|rank| cores.core(rank)), [0, 1, 0, 1]);
        let served = cores.serve(&[0.0, 0.0, 10.0, 0.0], &[50.0, 20.0, 40.0, 30.0]);
        // Rank 2 is ready at 10 and waits for rank 0 until 50; rank 3 for rank 1 until 20.
        assert_eq!(served, [50.0, 20.0, 80.0, 50.0]);
        let mut cores = Cores::new(&machine(2, 1.0), 2).unwrap();
        let served = cores.serve(&[0.0, 0.0], &[250e6, 60e6]);
        // 100 ms of the first, 60 of the second, 150 of the first.
        assert_eq!(served, [310e6, 160e6]);
    }

    #[test]
    fn nodes_on_one_machine_share_its_cores() {
        let cores = Cores::new(&machine(2, 0.5), 8).unwrap();
        assert_eq!((0..8).map(|rank| cores.core(rank)).max(), Some(1));
    }
}
