//! A random mesh that stays as it is: the octree of the placement library's generator, as leaves of a run.

use colltune_amr::leaf::Leaf;
use colltune_amr::settings::Settings;
use colltune_placement::curve::LEVEL_MAX;
use colltune_placement::generate::octree;

use crate::EmulateError;

/// So many leaves for each root block, where levels suffice.
const LEAVES_PER_ROOT: usize = 4;
/// The generator's longest edge of a root grid is `2^10`.
const ROOTS_MAX: u32 = 1 << 10;

/// The leaves that a seed draws on a run's root grid, no deeper than its levels; those that share a face differ by one
/// level at most.
///
/// Errors: `Program` for a root grid that is no cube whose edge is a power of two.
pub fn random_leaves(seed: u64, settings: &Settings) -> Result<Vec<Leaf>, EmulateError> {
    let grid = settings.grid;
    let [edge, y, z] = grid.roots;
    if [y, z] != [edge; 2] || !edge.is_power_of_two() || edge > ROOTS_MAX {
        return Err(EmulateError::Program(format!(
            "an octree fills a cube, and its root grid is {edge} x {y} x {z}: give --npx, --npy and --npz the same \
             power of two, {ROOTS_MAX} at most"
        )));
    }
    let root_level = edge.trailing_zeros() as u8;
    let n_leaves = LEAVES_PER_ROOT * grid.n_roots();
    let drawn = octree(seed, 3, root_level, root_level + grid.depth, n_leaves);
    let leaves = drawn.octants.iter().map(|octant| Leaf {
        level: octant.level - root_level,
        at: [octant.x, octant.y, octant.z].map(|c| c >> (LEVEL_MAX - octant.level)),
    });
    Ok(leaves.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Costs;
    use crate::mesh::settings;
    use crate::program::{Given, History, Program};

    fn of(line: &str) -> Settings {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        settings(&words, 8, 8).unwrap()
    }

    #[test]
    fn a_program_runs_on_the_leaves_that_a_seed_draws_from_its_first_step_to_its_last() {
        let line = "--nx 4 --ny 4 --nz 4 --npx 4 --npy 4 --npz 4 --num_refine 3 --refine_freq 2 --num_tsteps 6";
        for more in ["", "--physics euler"] {
            let settings = of(&format!("{line} {more}"));
            let mut leaves = random_leaves(7, &settings).unwrap();
            assert_ne!(leaves, random_leaves(8, &settings).unwrap());
            leaves.sort_by_key(|&leaf| settings.grid.key(leaf));
            assert!(leaves.len() >= 4 * 64, "{}", leaves.len());
            assert!(leaves.iter().any(|leaf| leaf.level == 3));
            let costs = Costs::uniform(settings.work, 1.0);
            let mut program = Program::new(Given {
                settings: &settings,
                n_ranks: 8,
                costs: &costs,
                scale: 1.0,
                noise: None,
                history: History::Still(&leaves),
                choose: None,
                timer: None,
                compat: None,
            })
            .unwrap();
            assert_eq!(program.mesh().leaves(), leaves);
            while program.next_step(&mut |_| {}).unwrap() {
                assert_eq!(program.mesh().leaves(), leaves);
            }
            assert_eq!(program.step(), 6);
        }
    }

    #[test]
    fn a_root_grid_that_is_no_cube_of_a_power_of_two_is_refused() {
        for (line, grid) in [
            ("--npx 4 --npy 2 --npz 1", "4 x 2 x 1"),
            ("--npx 3 --npy 3 --npz 3", "3 x 3 x 3"),
        ] {
            let error = random_leaves(1, &of(line)).unwrap_err().to_string();
            assert!(error.contains(grid) && error.contains("--npx"), "{error}");
        }
    }
}
