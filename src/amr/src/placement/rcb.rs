//! Recursive coordinate bisection, by the prime factors of the number of ranks.
//!
//! Each step sorts the blocks of a group of ranks by their centres along one axis, ties by the next axis and then the
//! third. It cuts them into as many groups as the factor says. The axis follows from the process grid, as in miniAMR,
//! or is the one along which the group is longest. Source: Vaughan & Barrett 2015, section III; Berger & Bokhari,
//! IEEE ToC 36(5), 1987.

use crate::leaf::{Grid, Leaf};
use crate::placement::{Question, cut, factors};

/// How the axis of a cut is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axes {
    /// The axis that has most ranks left in this grid of processes, if the factor divides it.
    ByProcesses([usize; 3]),
    /// z first, then y, then x.
    Natural([usize; 3]),
    /// The longest extent of the group's centres.
    Longest,
}

/// What happens to blocks whose centres tie along the axis of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// Cut along the other axes.
    ByOtherAxes,
    /// They stay together, on the side that the greater part would go to.
    Together,
}

#[derive(Clone, Copy, Debug)]
pub struct Rcb {
    pub axes: Axes,
    pub ties: Ties,
}

/// One cut of a group of ranks, as far as the calls that miniAMR makes for it depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub depth: usize,
    pub first_rank: usize,
    pub n_ranks: usize,
    pub axis: usize,
    /// Axes along which tied blocks were counted again, over all cuts of the step.
    pub tie_axes: Vec<usize>,
}

/// Centre in units of half the finest block: below 2^20.
pub fn centre(grid: Grid, leaf: Leaf) -> [u32; 3] {
    leaf.at.map(|c| (2 * c + 1) << (grid.depth - leaf.level))
}

/// Ranks `first..first + n` and the leaves that they share.
struct Group {
    first: usize,
    n_ranks: usize,
    leaves: Vec<u32>,
}

impl Rcb {
    /// A rank for each leaf.
    pub fn place(&self, question: Question) -> Vec<u32> {
        self.place_stepwise(question).0
    }

    /// The owners, and the cuts that led to them.
    pub fn place_stepwise(&self, question: Question) -> (Vec<u32>, Vec<Step>) {
        let mesh = question.mesh;
        let centres: Vec<[u32; 3]> = mesh
            .leaves()
            .iter()
            .map(|&leaf| centre(mesh.grid, leaf))
            .collect();
        let mut groups = vec![Group {
            first: 0,
            n_ranks: question.n_ranks,
            leaves: (0..mesh.len() as u32).collect(),
        }];
        let mut steps = Vec::new();
        let mut processes = match self.axes {
            Axes::ByProcesses(grid) | Axes::Natural(grid) => grid,
            Axes::Longest => [1; 3],
        };
        for (depth, factor) in factors(question.n_ranks).into_iter().enumerate() {
            let shared = match self.axes {
                Axes::ByProcesses(_) => Some(busiest_axis(processes, factor)),
                Axes::Natural(_) => Some(natural_axis(processes, factor)),
                Axes::Longest => None,
            };
            if let Some(axis) = shared {
                processes[axis] = (processes[axis] / factor).max(1);
            }
            let mut parts = Vec::with_capacity(groups.len() * factor);
            for group in groups {
                let axis = shared.unwrap_or_else(|| longest(&group.leaves, &centres));
                let cutter = Cutter {
                    centres: &centres,
                    costs: question.costs,
                    axis,
                    ties: self.ties,
                };
                let mut step = Step {
                    depth,
                    first_rank: group.first,
                    n_ranks: group.n_ranks,
                    axis,
                    tie_axes: Vec::new(),
                };
                parts.extend(cutter.cut(group, factor, &mut step.tie_axes));
                steps.push(step);
            }
            groups = parts;
        }
        let mut owners = vec![0; mesh.len()];
        for group in groups {
            for i in group.leaves {
                owners[i as usize] = group.first as u32;
            }
        }
        (owners, steps)
    }
}

struct Cutter<'a> {
    centres: &'a [[u32; 3]],
    costs: &'a [f64],
    axis: usize,
    ties: Ties,
}

impl Cutter<'_> {
    /// The group in `factor` parts, in the order of ranks.
    fn cut(&self, mut group: Group, factor: usize, tie_axes: &mut Vec<usize>) -> Vec<Group> {
        let order = [self.axis, (self.axis + 1) % 3, (self.axis + 2) % 3];
        let key = |i: u32| order.map(|d| self.centres[i as usize][d]);
        // 21 bits are enough for a centre: one word to compare instead of three to look up.
        let word = |i: u32| key(i).into_iter().fold(0, |w, c| w << 21 | u64::from(c));
        let mut keyed: Vec<(u64, u32)> = group.leaves.iter().map(|&i| (word(i), i)).collect();
        keyed.sort_unstable();
        group.leaves = keyed.into_iter().map(|(_, i)| i).collect();
        let costs: Vec<f64> = group
            .leaves
            .iter()
            .map(|&i| self.costs[i as usize])
            .collect();
        let mut ends = cut(&costs, factor);
        for end in &mut ends[..factor - 1] {
            if self.ties == Ties::Together {
                *end = self.untied(&group.leaves, *end);
            } else if *end > 0 && *end < group.leaves.len() {
                let (below, above) = (key(group.leaves[*end - 1]), key(group.leaves[*end]));
                if below[0] == above[0] {
                    tie_axes.push(order[1]);
                    if below[1] == above[1] {
                        tie_axes.push(order[2]);
                    }
                }
            }
        }
        let n_ranks = group.n_ranks / factor;
        let mut start = 0;
        ends.into_iter()
            .enumerate()
            .map(|(part, end)| {
                let leaves = group.leaves[start..end.max(start)].to_vec();
                start = end.max(start);
                Group {
                    first: group.first + part * n_ranks,
                    n_ranks,
                    leaves,
                }
            })
            .collect()
    }

    /// Moves a cut out of a plane of tied centres, to its nearer side.
    fn untied(&self, leaves: &[u32], end: usize) -> usize {
        if end == 0 || end >= leaves.len() {
            return end;
        }
        let at = |i: usize| self.centres[leaves[i] as usize][self.axis];
        let plane = at(end - 1);
        let low = leaves.partition_point(|&i| self.centres[i as usize][self.axis] < plane);
        let high = leaves.partition_point(|&i| self.centres[i as usize][self.axis] <= plane);
        let (extra, size) = (high - end, high - low);
        if extra > size / 2 { low } else { high }
    }
}

fn longest(leaves: &[u32], centres: &[[u32; 3]]) -> usize {
    let extent = |d: usize| {
        let along = leaves.iter().map(|&i| centres[i as usize][d]);
        along.clone().max().unwrap_or(0) - along.min().unwrap_or(0)
    };
    let extents = [extent(0), extent(1), extent(2)];
    if extents[1] > extents[0] {
        if extents[2] > extents[1] { 2 } else { 1 }
    } else if extents[2] > extents[0] {
        2
    } else {
        0
    }
}

/// The axis with most processes among those that `factor` divides; all where it divides none.
fn busiest_axis(processes: [usize; 3], factor: usize) -> usize {
    let divides = |d: &usize| factor == 2 || processes[*d].is_multiple_of(factor);
    let fits: Vec<usize> = (0..3).filter(divides).collect();
    let candidates = if fits.is_empty() { vec![2] } else { fits };
    let best = candidates
        .iter()
        .copied()
        .rev()
        .max_by_key(|&d| processes[d]);
    best.expect("there is a candidate")
}

fn natural_axis(processes: [usize; 3], factor: usize) -> usize {
    let fits = |d: usize| match factor {
        2 => processes[d] > 1,
        _ => processes[d].is_multiple_of(factor),
    };
    [2, 1].into_iter().find(|&d| fits(d)).unwrap_or(0)
}

/// Where each rank stands in the grid of processes, by the same cuts.
pub fn positions(axes: Axes, n_ranks: usize) -> Vec<[usize; 3]> {
    let (Axes::ByProcesses(mut left) | Axes::Natural(mut left)) = axes else {
        return vec![[0; 3]; n_ranks];
    };
    let mut positions = vec![[0; 3]; n_ranks];
    let mut size = n_ranks;
    for factor in factors(n_ranks) {
        let axis = match axes {
            Axes::Natural(_) => natural_axis(left, factor),
            _ => busiest_axis(left, factor),
        };
        left[axis] = (left[axis] / factor).max(1);
        let part = size / factor;
        for (rank, position) in positions.iter_mut().enumerate() {
            position[axis] = position[axis] * factor + (rank % size) / part;
        }
        size = part;
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Mesh;

    #[test]
    fn each_rank_gets_its_share_of_a_uniform_grid() {
        let grid = Grid {
            roots: [6, 5, 4],
            depth: 0,
            periodic: false,
        };
        let mesh = Mesh::roots(grid, vec![0; 120]);
        let costs = vec![1.0; 120];
        for n_ranks in 1..=13 {
            let question = Question {
                mesh: &mesh,
                costs: &costs,
                n_ranks,
            };
            let rcb = Rcb {
                axes: Axes::Longest,
                ties: Ties::ByOtherAxes,
            };
            let mut counts = vec![0usize; n_ranks];
            for owner in rcb.place(question) {
                counts[owner as usize] += 1;
            }
            assert_eq!(counts.iter().sum::<usize>(), 120);
            // Each step rounds up once, and there are at most three for up to 13 ranks.
            assert!(
                counts.iter().all(|&n| n <= 120usize.div_ceil(n_ranks) + 2),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn every_rank_has_its_own_position() {
        for processes in [[2, 2, 2], [3, 2, 1], [1, 1, 6], [4, 1, 3]] {
            let n = processes.iter().product();
            for axes in [Axes::ByProcesses(processes), Axes::Natural(processes)] {
                let mut positions = positions(axes, n);
                positions.sort_unstable();
                positions.dedup();
                assert_eq!(positions.len(), n, "{axes:?}");
                let inside = |p: &[usize; 3]| (0..3).all(|d| p[d] < processes[d]);
                assert!(positions.iter().all(inside), "{axes:?}");
            }
        }
    }
}
