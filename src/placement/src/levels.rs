//! How evenly the blocks of each level are spread: what codes that synchronise level by level wait for.

use crate::problem::Problem;

/// The load balance of one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelBalance {
    /// 0 for blocks that are not refined.
    pub level: u8,
    /// The mean time of all ranks over that of the slowest one, at this level alone: 1 is perfect, 1 / ranks the worst.
    pub ratio: f64,
}

/// The load balance ratio of each level with any cost, the coarsest first; none where levels are not known.
///
/// Shape:  `owners` has a rank below the problem's for each block.
/// Source: Wu et al., CLUSTER 2011, section VI.
pub fn balance_by_level(problem: &Problem, owners: &[u32]) -> Option<Vec<LevelBalance>> {
    let mesh = problem.mesh()?;
    let deepest = mesh.octants.iter().map(|octant| octant.level).max();
    let n_levels = deepest.map_or(0, |level| usize::from(level - mesh.root_level) + 1);
    let ranks = problem.ranks() as usize;
    let mut loads = vec![vec![0.0; ranks]; n_levels];
    for ((octant, &owner), cost) in mesh.octants.iter().zip(owners).zip(problem.costs()) {
        let of_level = &mut loads[usize::from(octant.level - mesh.root_level)];
        of_level[owner as usize] += cost;
    }
    let balance = |(level, loads): (u8, &Vec<f64>)| {
        let times = loads
            .iter()
            .zip(0..)
            .map(|(load, rank)| load / problem.speed(rank));
        let slowest = times.fold(0.0, f64::max);
        let mean = loads.iter().sum::<f64>() / problem.total_speed();
        (slowest > 0.0).then_some(LevelBalance {
            level,
            ratio: mean / slowest,
        })
    };
    Some((0..).zip(&loads).filter_map(balance).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Octant;
    use crate::problem::Mesh;

    #[test]
    fn each_level_is_judged_by_itself_and_by_the_speeds_of_ranks() {
        // Two root blocks side by side, the second one refined into eight.
        let edge = 1 << 20;
        let mut octants = vec![Octant::new(0, 0, 0, 1)];
        for child in 0..8u32 {
            let at = [0, 1, 2].map(|d| (child >> d & 1) * edge / 2);
            octants.push(Octant::new(edge + at[0], at[1], at[2], 2));
        }
        let mesh = Mesh {
            dimensions: 3,
            root_level: 1,
            octants: &octants,
        };
        let costs = [1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.0];
        let problem = Problem::new(&costs, 2)
            .and_then(|p| p.with_mesh(mesh))
            .unwrap();
        let owners = [0, 0, 0, 1, 1, 1, 1, 1, 1];
        let of = |problem: &Problem| -> Vec<(u8, f64)> {
            let found = balance_by_level(problem, &owners).unwrap();
            found.iter().map(|b| (b.level, b.ratio)).collect()
        };
        assert_eq!(of(&problem), [(0, 0.5), (1, 0.7)]);
        let speeds = [1.0, 2.5];
        let uneven = problem.with_speeds(&speeds).unwrap();
        assert_eq!(of(&uneven), [(0, 1.0 / 3.5), (1, 1.0)]);
        assert_eq!(
            balance_by_level(&Problem::new(&costs, 2).unwrap(), &owners),
            None
        );
    }
}
