//! What is to be placed: a [`Problem`] is valid by construction.

use crate::curve::{LEVEL_MAX, Octant};
use crate::error::PlacementError;

/// Blocks in curve order, the ranks that wait for them, and whatever else is known about both.
///
/// Shape: everything per block is as long as the costs and in the same (curve) order.
/// Units: costs, latencies and times per byte share one unit, usually seconds; the library never
/// looks at which one. The costs may all be zero; there may be fewer blocks than ranks, or none.
/// Errors: each `with_` function refuses invalid input, so that a policy never has to.
///
/// ```
/// use colltune_placement::{PlacementError, Problem};
/// let refused = Problem::new(&[1.0, f64::NAN], 4).unwrap_err();
/// assert!(matches!(refused, PlacementError::CostNotFinite { block: 1, .. }));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    costs: &'a [f64],
    total: f64,
    ranks: u32,
    ranks_per_node: u32,
    mesh: Option<Mesh<'a>>,
    graph: Option<Graph<'a>>,
    owners: Option<&'a [u32]>,
    limits: Limits,
    machine: Option<Machine>,
    matching: Matching,
    speeds: Option<&'a [f64]>,
    total_speed: f64,
    memory: Option<Memory<'a>>,
}

/// More ranks than any machine has: what policies hold for each rank must fit into memory.
pub const RANKS_MAX: u32 = 1 << 26;

/// Where the blocks are: the leaves of a quadtree or octree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mesh<'a> {
    /// 2 or 3; in two dimensions every `z` is 0.
    pub dimensions: u8,
    /// The level of a block that is not refined. With a root grid of 4 x 2 x 2 blocks it is 2: the
    /// grid stands in a corner of a cube of 4 x 4 x 4.
    pub root_level: u8,
    /// One leaf per block.
    pub octants: &'a [Octant],
}

/// Who talks to whom: a graph in compressed rows, one row per block.
///
/// Entry `e` in `offsets[b]..offsets[b + 1]` is a message of `bytes[e]` bytes that block `b` sends
/// to block `neighbours[e]` in every exchange. A symmetric exchange has both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Graph<'a> {
    pub offsets: &'a [u64],
    pub neighbours: &'a [u32],
    pub bytes: &'a [u64],
}

impl<'a> Graph<'a> {
    /// The neighbours of `block` with the bytes of the message to each.
    pub fn row(&self, block: usize) -> impl Iterator<Item = (u32, u64)> + 'a {
        let (from, to) = (
            self.offsets[block] as usize,
            self.offsets[block + 1] as usize,
        );
        let (neighbours, bytes) = (&self.neighbours[from..to], &self.bytes[from..to]);
        neighbours.iter().copied().zip(bytes.iter().copied())
    }
}

/// What a placement has to keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// The most blocks that one rank can hold.
    pub blocks_per_rank: Option<u32>,
    /// The size of a block, for the bytes that a migration moves.
    pub bytes_per_block: u64,
}

/// The time of a message of `b` bytes is `latency + b * per_byte`, in the unit of the costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Link {
    pub latency: f64,
    pub per_byte: f64,
}

/// What messages cost on this machine; a message within one rank costs nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Machine {
    pub same_node: Link,
    pub remote: Link,
}

/// How much a renumbering of the ranks may do so that little moves; see [`crate::match_owners`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matching {
    /// Ranks have the numbers that the policy gave them.
    Off,
    /// Ranks are renumbered, but blocks that follow each other from rank to rank along the curve go on doing so.
    #[default]
    KeepOrder,
    /// Ranks are renumbered in any case.
    Free,
}

/// What the blocks need and the ranks have of something that is no time, such as bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory<'a> {
    /// One per block.
    pub of_blocks: &'a [u64],
    /// One per rank.
    pub of_ranks: &'a [u64],
}

impl<'a> Problem<'a> {
    /// `costs[b]` is the time that block `b` takes; blocks are numbered along the curve.
    pub fn new(costs: &'a [f64], ranks: u32) -> Result<Self, PlacementError> {
        if ranks == 0 {
            return Err(PlacementError::NoRanks);
        }
        if ranks > RANKS_MAX {
            return Err(PlacementError::TooManyRanks(ranks));
        }
        if costs.len() >= u32::MAX as usize {
            return Err(PlacementError::TooManyBlocks(costs.len()));
        }
        let total: f64 = costs.iter().sum();
        // One comparison per block finds every kind of bad cost; which kind is asked only then.
        if let Some(block) = costs
            .iter()
            .position(|&c| !(0.0..f64::INFINITY).contains(&c))
        {
            let cost = costs[block];
            return Err(match cost.is_finite() {
                true => PlacementError::CostNegative { block, cost },
                false => PlacementError::CostNotFinite { block, cost },
            });
        }
        // Twice the total bounds every sum that a policy forms.
        if !(2.0 * total).is_finite() {
            return Err(PlacementError::CostsOverflow);
        }
        Ok(Problem {
            costs,
            total,
            ranks,
            ranks_per_node: 1,
            mesh: None,
            graph: None,
            owners: None,
            limits: Limits::default(),
            machine: None,
            matching: Matching::default(),
            speeds: None,
            total_speed: f64::from(ranks),
            memory: None,
        })
    }

    /// Node `k` has the ranks `k * ranks_per_node ..`; without this every rank is a node.
    pub fn with_ranks_per_node(mut self, ranks_per_node: u32) -> Result<Self, PlacementError> {
        if ranks_per_node == 0 {
            return Err(PlacementError::Value {
                what: "the ranks per node",
                value: 0.0,
                reason: "is not positive",
            });
        }
        self.ranks_per_node = ranks_per_node;
        Ok(self)
    }

    /// Gives the blocks a place in space.
    pub fn with_mesh(mut self, mesh: Mesh<'a>) -> Result<Self, PlacementError> {
        if !matches!(mesh.dimensions, 2 | 3) {
            return Err(PlacementError::Value {
                what: "the mesh's dimensions",
                value: f64::from(mesh.dimensions),
                reason: "is neither 2 nor 3",
            });
        }
        let blocks = self.costs.len();
        length("the mesh's octants", blocks, mesh.octants.len())?;
        for (block, octant) in mesh.octants.iter().enumerate() {
            let refuse = |reason| Err(PlacementError::Mesh { block, reason });
            if octant.level > LEVEL_MAX {
                return refuse("is refined beyond level 21");
            }
            if octant.level < mesh.root_level {
                return refuse("is coarser than the root level");
            }
            if !octant.is_valid() {
                return refuse("is outside the cube or not aligned to its level");
            }
            if mesh.dimensions == 2 && octant.z != 0 {
                return refuse("has a third coordinate in two dimensions");
            }
        }
        self.mesh = Some(mesh);
        Ok(self)
    }

    /// Tells which blocks exchange messages.
    pub fn with_graph(mut self, graph: Graph<'a>) -> Result<Self, PlacementError> {
        let blocks = self.costs.len();
        length("the graph's offsets", blocks + 1, graph.offsets.len())?;
        let edges = graph.neighbours.len();
        length("the graph's bytes", edges, graph.bytes.len())?;
        let first_and_last = (graph.offsets[0], graph.offsets[blocks]);
        if first_and_last.0 != 0 {
            return Err(PlacementError::Graph {
                block: 0,
                reason: "does not start at offset 0",
            });
        }
        length("the graph's neighbours", first_and_last.1 as usize, edges)?;
        for block in 0..blocks {
            let refuse = |reason| Err(PlacementError::Graph { block, reason });
            let (from, to) = (graph.offsets[block], graph.offsets[block + 1]);
            if from > to || to > edges as u64 {
                return refuse("ends before it starts");
            }
            let row = &graph.neighbours[from as usize..to as usize];
            if row.iter().any(|&n| n as usize >= blocks) {
                return refuse("names a block that does not exist");
            }
            if row.contains(&(block as u32)) {
                return refuse("names the block itself");
            }
        }
        self.graph = Some(graph);
        Ok(self)
    }

    /// Tells where the blocks are now.
    pub fn with_owners(mut self, owners: &'a [u32]) -> Result<Self, PlacementError> {
        self.check_owners(owners)?;
        self.owners = Some(owners);
        Ok(self)
    }

    /// Sets what the placement has to keep to.
    pub fn with_limits(mut self, limits: Limits) -> Result<Self, PlacementError> {
        if let Some(blocks_per_rank) = limits.blocks_per_rank {
            let room = u64::from(blocks_per_rank) * u64::from(self.ranks);
            if room < self.costs.len() as u64 {
                return Err(PlacementError::LimitTooTight {
                    blocks: self.costs.len(),
                    ranks: self.ranks,
                    blocks_per_rank,
                });
            }
        }
        self.limits = limits;
        Ok(self)
    }

    /// Tells what messages cost, for the policies that weigh them against imbalance.
    pub fn with_machine(mut self, machine: Machine) -> Result<Self, PlacementError> {
        let Machine { same_node, remote } = machine;
        for value in [
            same_node.latency,
            same_node.per_byte,
            remote.latency,
            remote.per_byte,
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(PlacementError::Value {
                    what: "the machine's message times",
                    value,
                    reason: "is not a finite number of at least 0",
                });
            }
        }
        self.machine = Some(machine);
        Ok(self)
    }

    /// Sets whether new owners are matched to the present ones.
    pub fn with_matching(mut self, matching: Matching) -> Self {
        self.matching = matching;
        self
    }

    /// Tells how fast the ranks are, as numbers of which only the ratios count: a block of cost 1 takes a rank
    /// 1 / speed. Without this all have speed 1.
    pub fn with_speeds(mut self, speeds: &'a [f64]) -> Result<Self, PlacementError> {
        length("the speeds", self.ranks as usize, speeds.len())?;
        let usable = |speed: f64| speed.is_finite() && speed > 0.0;
        if let Some(&value) = speeds.iter().find(|&&speed| !usable(speed)) {
            return Err(PlacementError::Value {
                what: "the speed of a rank",
                value,
                reason: "is not a finite number above 0",
            });
        }
        let slowest = speeds.iter().copied().fold(f64::INFINITY, f64::min);
        let total: f64 = speeds.iter().sum();
        if !(total.is_finite() && (2.0 * self.total / slowest).is_finite()) {
            return Err(PlacementError::CostsOverflow);
        }
        self.total_speed = total;
        self.speeds = Some(speeds).filter(|speeds| speeds.iter().any(|&speed| speed != 1.0));
        Ok(self)
    }

    /// Tells what the blocks need and the ranks have of memory, or of anything else that is no time.
    ///
    /// Errors: more than all ranks have together, or a block that no rank can hold.
    pub fn with_memory(mut self, memory: Memory<'a>) -> Result<Self, PlacementError> {
        length(
            "the memory of the blocks",
            self.costs.len(),
            memory.of_blocks.len(),
        )?;
        length(
            "the memory of the ranks",
            self.ranks as usize,
            memory.of_ranks.len(),
        )?;
        let sum = |parts: &[u64]| parts.iter().map(|&part| u128::from(part)).sum::<u128>();
        let (needed, there) = (sum(memory.of_blocks), sum(memory.of_ranks));
        if needed > there || needed > u128::from(u64::MAX) {
            return Err(PlacementError::MemoryTooSmall { needed, there });
        }
        let largest = memory.of_ranks.iter().copied().max().unwrap_or(0);
        if let Some(block) = memory.of_blocks.iter().position(|&need| need > largest) {
            return Err(PlacementError::Memory {
                block: block as u32,
                need: memory.of_blocks[block],
            });
        }
        self.memory = Some(memory);
        Ok(self)
    }

    /// Checks that `owners` has one rank for each block.
    pub fn check_owners(&self, owners: &[u32]) -> Result<(), PlacementError> {
        length("the owners", self.costs.len(), owners.len())?;
        // Which one is wrong is asked only where one is.
        if owners.iter().fold(0, |most, &owner| most.max(owner)) < self.ranks {
            return Ok(());
        }
        match owners.iter().position(|&owner| owner >= self.ranks) {
            None => Ok(()),
            Some(block) => Err(PlacementError::Owner {
                block,
                owner: owners[block],
                ranks: self.ranks,
            }),
        }
    }

    pub fn costs(&self) -> &'a [f64] {
        self.costs
    }

    pub fn n_blocks(&self) -> usize {
        self.costs.len()
    }

    /// The sum of all costs, added up in curve order.
    pub fn total(&self) -> f64 {
        self.total
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub fn ranks_per_node(&self) -> u32 {
        self.ranks_per_node
    }

    /// The node that `rank` is on.
    pub fn node(&self, rank: u32) -> u32 {
        rank / self.ranks_per_node
    }

    /// Nodes in use; the last one may be smaller.
    pub fn n_nodes(&self) -> u32 {
        self.ranks.div_ceil(self.ranks_per_node)
    }

    pub fn mesh(&self) -> Option<Mesh<'a>> {
        self.mesh
    }

    pub fn graph(&self) -> Option<Graph<'a>> {
        self.graph
    }

    /// Where the blocks are now, if that is known.
    pub fn owners(&self) -> Option<&'a [u32]> {
        self.owners
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn machine(&self) -> Option<Machine> {
        self.machine
    }

    pub fn matching(&self) -> Matching {
        self.matching
    }

    /// How fast `rank` is: a block of cost 1 takes it 1 / speed.
    pub fn speed(&self, rank: u32) -> f64 {
        self.speeds.map_or(1.0, |speeds| speeds[rank as usize])
    }

    /// The speeds of all ranks together.
    pub fn total_speed(&self) -> f64 {
        self.total_speed
    }

    /// The speeds, where they are not all 1.
    pub fn speeds(&self) -> Option<&'a [f64]> {
        self.speeds
    }

    pub fn memory(&self) -> Option<Memory<'a>> {
        self.memory
    }

    /// What `rank` has of the second weight, if that is given.
    pub fn memory_of_rank(&self, rank: u32) -> Option<u64> {
        self.memory.map(|memory| memory.of_ranks[rank as usize])
    }

    /// Whether no rank differs from another.
    pub fn is_uniform(&self) -> bool {
        self.speeds.is_none() && self.memory.is_none()
    }

    /// What `block` needs of memory; 0 where that is not known.
    pub fn memory_of_block(&self, block: usize) -> u64 {
        self.memory.map_or(0, |memory| memory.of_blocks[block])
    }

    /// What it takes to move `block`, for comparison: its memory, or 1.
    pub fn weight_to_move(&self, block: usize) -> u64 {
        self.memory.map_or(1, |memory| memory.of_blocks[block])
    }
}

fn length(what: &'static str, expected: usize, found: usize) -> Result<(), PlacementError> {
    match expected == found {
        true => Ok(()),
        false => Err(PlacementError::Length {
            what,
            expected,
            found,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_cost_is_named_by_its_block() {
        for (bad, negative) in [
            (f64::NAN, false),
            (f64::INFINITY, false),
            (f64::NEG_INFINITY, false),
            (-1e-300, true),
        ] {
            let error = Problem::new(&[1.0, 2.0, bad], 2).unwrap_err();
            match error {
                PlacementError::CostNegative { block, .. } => assert!(block == 2 && negative),
                PlacementError::CostNotFinite { block, .. } => assert!(block == 2 && !negative),
                other => panic!("{other}"),
            }
        }
        assert!(Problem::new(&[-0.0, 0.0], 1).is_ok());
        let error = Problem::new(&[f64::MAX, f64::MAX], 1).unwrap_err();
        assert_eq!(error, PlacementError::CostsOverflow);
    }

    #[test]
    fn wrong_lengths_and_ranges_are_refused() {
        assert_eq!(
            Problem::new(&[1.0], 0).unwrap_err(),
            PlacementError::NoRanks
        );
        assert_eq!(
            Problem::new(&[1.0], u32::MAX).unwrap_err(),
            PlacementError::TooManyRanks(u32::MAX)
        );
        let problem = Problem::new(&[1.0, 2.0], 3).unwrap();
        assert!(problem.with_ranks_per_node(0).is_err());
        assert!(problem.with_owners(&[0]).is_err());
        assert!(problem.with_owners(&[0, 3]).is_err());
        assert!(problem.with_owners(&[0, 2]).is_ok());
        let of = |blocks_per_rank| Limits {
            blocks_per_rank: Some(blocks_per_rank),
            bytes_per_block: 0,
        };
        assert!(problem.with_limits(of(0)).is_err());
        assert!(problem.with_limits(of(1)).is_ok());
    }

    #[test]
    fn a_broken_graph_is_refused() {
        let problem = Problem::new(&[1.0, 2.0], 3).unwrap();
        let graph = |offsets, neighbours, bytes| Graph {
            offsets,
            neighbours,
            bytes,
        };
        assert!(
            problem
                .with_graph(graph(&[0, 1, 2], &[1, 0], &[8, 8]))
                .is_ok()
        );
        assert!(
            problem
                .with_graph(graph(&[0, 1], &[1, 0], &[8, 8]))
                .is_err()
        );
        assert!(
            problem
                .with_graph(graph(&[0, 1, 2], &[1, 0], &[8]))
                .is_err()
        );
        assert!(
            problem
                .with_graph(graph(&[1, 1, 2], &[1, 0], &[8, 8]))
                .is_err()
        );
        assert!(
            problem
                .with_graph(graph(&[0, 3, 2], &[1, 0], &[8, 8]))
                .is_err()
        );
        assert!(
            problem
                .with_graph(graph(&[0, 1, 2], &[2, 0], &[8, 8]))
                .is_err()
        );
        assert!(
            problem
                .with_graph(graph(&[0, 1, 2], &[0, 0], &[8, 8]))
                .is_err()
        );
    }

    #[test]
    fn a_broken_mesh_is_refused() {
        let problem = Problem::new(&[1.0], 1).unwrap();
        let half = 1 << (LEVEL_MAX - 1);
        let accepted = |dimensions, root_level, octant: Octant| {
            let octants = [octant];
            problem
                .with_mesh(Mesh {
                    dimensions,
                    root_level,
                    octants: &octants,
                })
                .is_ok()
        };
        assert!(accepted(3, 1, Octant::new(half, 0, half, 1)));
        assert!(!accepted(2, 1, Octant::new(half, 0, half, 1)));
        assert!(!accepted(3, 2, Octant::new(half, 0, half, 1)));
        assert!(!accepted(3, 0, Octant::new(half / 2, 0, half, 1)));
        assert!(!accepted(3, 0, Octant::new(2 * half, 0, 0, 1)));
        assert!(!accepted(3, 0, Octant::new(0, 0, 0, 22)));
        assert!(!accepted(4, 0, Octant::new(0, 0, 0, 0)));
    }
}
