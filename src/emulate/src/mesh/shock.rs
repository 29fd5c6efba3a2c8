//! The mesh of the mini-app's blast without its gas: it is fine where the exact shock is.

use colltune_amr::leaf::Leaf;
use colltune_amr::options::ProblemName;
use colltune_amr::physics::Domain;
use colltune_amr::settings::{Settings, Work};

use super::front::Front;
use super::shell::shock_radius;
use crate::EmulateError;

/// How far the fine mesh reaches inwards and outwards, in cells of the block that is asked.
const MARGINS: [f64; 2] = [1.0, 3.0];

/// Where the shock of a run is, step after step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shock {
    centre: [f64; 3],
    /// Of the shock before the first step, and behind the last one.
    radii: [f64; 2],
    n_steps: u64,
    domain: Domain,
    roots: [u32; 3],
    depth: u8,
    /// The most cells along an edge of a block.
    cells: f64,
}

impl Shock {
    /// The shock of a run of `--problem sedov`, which begins where its energy is at first and ends at `--time`. Its
    /// radius grows evenly: the faster it is, the shorter steps are.
    ///
    /// Errors: `Program` for another problem, for a run whose steps or end are not given, and for one that ends before
    /// its shock has gone anywhere.
    pub fn new(settings: &Settings) -> Result<Shock, EmulateError> {
        let refuse = |what: &str| Err(EmulateError::Program(what.to_owned()));
        let options = &settings.options;
        if settings.work != Work::Euler || options.problem != ProblemName::Sedov {
            return refuse("it has no shock: shell: goes with --physics euler --problem sedov");
        }
        let Some(time) = options.time else {
            return refuse("where its shock ends is not said: give --time");
        };
        let Some(n_steps) = settings.n_steps else {
            return refuse("in how many steps its shock gets there is not said: give --num_tsteps");
        };
        let domain = settings.domain();
        let edges = domain.edges();
        let cells = settings.shape.cells;
        let finest = |d: usize| {
            edges[d] / (f64::from(settings.grid.roots[d] << settings.grid.depth) * cells[d] as f64)
        };
        // Without a ball it is a box of four finest cells.
        let boxed = 2.0 * finest(0).max(finest(1)).max(finest(2));
        let first = options.sedov_radius.unwrap_or(boxed);
        let last = shock_radius(options.gamma, options.sedov_energy, time);
        if last <= first {
            return refuse(&format!(
                "at --time {time} its shock would be {last:.3} from the centre, and it begins at {first:.3}: give a later time"
            ));
        }
        Ok(Shock {
            centre: settings.sedov_centre(),
            radii: [first, last],
            n_steps,
            domain,
            roots: settings.grid.roots,
            depth: settings.grid.depth,
            cells: cells.into_iter().max().expect("three axes") as f64,
        })
    }

    /// Where it is before `step`, counted from 1.
    fn front(&self, step: u64) -> Front {
        let [first, last] = self.radii;
        let share = step.saturating_sub(1) as f64 / self.n_steps.max(1) as f64;
        Front {
            centre: self.centre,
            radius: first + share.min(1.0) * (last - first),
        }
    }

    /// Whether it passes through a leaf in `step`.
    pub fn is_in(&self, leaf: Leaf, step: u64) -> bool {
        let corners = self.domain.corners(leaf, self.roots);
        self.front(step).reaches(corners, [0.0; 2])
    }

    /// The leaves that a step wants, before levels of neighbours are asked.
    pub fn leaves(&self, step: u64) -> Vec<Leaf> {
        let front = self.front(step);
        let [nx, ny, nz] = self.roots;
        let roots =
            (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
        let mut open: Vec<Leaf> = roots.map(|at| Leaf { level: 0, at }).collect();
        let mut leaves = Vec::new();
        while let Some(leaf) = open.pop() {
            let corners = self.domain.corners(leaf, self.roots);
            let edge = (0..3).map(|d| corners[1][d] - corners[0][d]);
            let cell = edge.fold(f64::INFINITY, f64::min) / self.cells;
            match leaf.level < self.depth && front.reaches(corners, MARGINS.map(|n| n * cell)) {
                true => open.extend((0..8).map(|octant| leaf.child(octant))),
                false => leaves.push(leaf),
            }
        }
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::settings;

    fn of(line: &str) -> Result<Shock, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let settings = settings(&words, 8, 8).unwrap();
        Shock::new(&settings).map_err(|error| error.to_string())
    }

    const BLAST: &str = "--physics euler --problem sedov --boundary periodic --domain -1 -1 -1 1 1 1 \
        --gamma 1.6666666666666667 --sedov_energy 0.01 --sedov_radius 0.1 --nx 16 --ny 16 --nz 16 \
        --npx 8 --npy 8 --npz 8 --num_refine 2";

    #[test]
    fn what_cannot_be_followed_says_what_is_missing() {
        for (line, hint) in [
            ("--num_tsteps 10", "--time"),
            ("--time 0.5", "--num_tsteps"),
            ("--time 1e-9 --num_tsteps 10", "a later time"),
        ] {
            let error = of(&format!("{BLAST} {line}")).unwrap_err();
            assert!(error.contains(hint), "{line}: {error}");
        }
        let stencil = of("--npx 2 --npy 2 --npz 2 --num_tsteps 10").unwrap_err();
        assert!(stencil.contains("--problem sedov"), "{stencil}");
    }
}
