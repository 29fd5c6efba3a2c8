//! A command line that has been checked, in the terms of the other modules.

mod check;
mod lever;
mod placement;
mod work;

pub use lever::{Arms, Lever};
pub use placement::PlacementName;
pub use work::Work;

use colltune_placement::{Balancer, Costs, Inheritance, Smoothing, Trigger};

use crate::cost::CostModel;
use crate::exchange::face::{Crossing, Reach};
use crate::exchange::plan::Sweeps;
use crate::exchange::{Bundling, Manner, Sending};
use crate::leaf::Grid;
use crate::mesh::Mesh;
use crate::object::{ARGUMENTS, Object, Objects};
use crate::options::{BoundaryName, ExchangeName, Options, REFINE_BUFFER_MAX, Refusal, WeighName};
use crate::physics::{self, Domain};
use crate::placement::Question;
use crate::placement::curve::Curve;
use crate::placement::library::octants;
use crate::placement::rcb::{Axes, Rcb};
use crate::shape::BlockShape;

/// All settings of a run. The same on every rank.
pub struct Settings {
    pub options: Options,
    pub grid: Grid,
    /// The process grid, when its product is the number of ranks.
    pub processes: Option<[usize; 3]>,
    pub init: [u32; 3],
    pub shape: BlockShape,
    pub work: Work,
    pub sweeps: Sweeps,
    pub manner: Manner,
    /// Whether blocks that need nothing from other ranks are advanced while messages travel.
    pub overlaps: bool,
    pub objects: Objects,
    pub n_objects: usize,
    /// The policy of a run without a tuner.
    pub placement: PlacementName,
    pub trigger: Option<Trigger>,
    /// What a tuner may choose in the run.
    pub levers: Vec<Lever>,
    pub cost: CostModel,
    pub rcb: Rcb,
    pub n_steps: Option<u64>,
    pub stages: u64,
    pub passes: u8,
    /// Rings of blocks that are refined along with each block that is.
    pub refine_rings: u32,
}

impl Settings {
    /// Checks `options` for a job of `n_ranks` ranks.
    ///
    /// Errors: the first value that is out of range or contradicts another, with what is possible.
    pub fn new(options: Options, n_ranks: usize) -> Result<Settings, Refusal> {
        check::check_ranges(&options)?;
        let given = [options.npx, options.npy, options.npz];
        let (grid_of_processes, derived) = placement::process_grid(given, n_ranks);
        let product: usize = grid_of_processes.iter().product();
        if options.compat && product != n_ranks {
            return Err(Refusal::new(format!(
                "--compat needs npx*npy*npz = {n_ranks}, the number of ranks; it is {product}"
            )));
        }
        let init = [options.init_x, options.init_y, options.init_z];
        let roots = std::array::from_fn(|d| init[d] * grid_of_processes[d] as u32);
        let grid = Grid {
            roots,
            depth: options.num_refine,
            periodic: options.boundary == BoundaryName::Periodic,
        };
        grid.check().map_err(Refusal::new)?;
        if !derived && grid.n_roots() < n_ranks {
            return Err(Refusal::new(format!(
                "{n_ranks} ranks for {} root blocks: give more root blocks (init_x, npx, ...) or fewer ranks",
                grid.n_roots()
            )));
        }
        let (placements, is_tuned) = placement::placements(&options)?;
        let (triggers, is_tuned_too) = placement::triggers(&options)?;
        let levers = [
            is_tuned.then(|| Lever::of_placement(&placements, n_ranks)),
            is_tuned_too.then(|| Lever::of_triggers(&triggers, n_ranks)),
        ];
        let objects = objects(&options)?;
        let work = work::work(&options);
        match work {
            Work::Euler => {
                check::check_euler(&options)?;
                check::check_ball(&options, grid)?;
            }
            _ => check::check_stencil(&options)?,
        }
        let sweeps = sweeps(&options, work)?;
        let processes = (product == n_ranks).then_some(grid_of_processes);
        Ok(Settings {
            grid,
            processes,
            init,
            shape: BlockShape {
                cells: [options.nx, options.ny, options.nz],
                ghosts: match work {
                    // Seven points need no stored ghosts: see `exchange::intake`.
                    Work::Seven => 0,
                    Work::SevenWithGhosts | Work::TwentySeven => 1,
                    Work::Euler => physics::GHOSTS,
                },
                n_vars: match work {
                    Work::Euler => physics::N_VARS,
                    _ => options.num_vars,
                },
            },
            work,
            sweeps,
            manner: manner(&options),
            overlaps: work == Work::Euler && options.exchange != Some(ExchangeName::Blocking),
            n_objects: objects.as_slice().len(),
            objects,
            trigger: triggers[0],
            cost: placement::cost(&options, work)?,
            rcb: placement::rcb(&options, &placements, processes),
            placement: placements[0].clone(),
            levers: levers.into_iter().flatten().collect(),
            n_steps: steps(&options),
            stages: match work {
                Work::Euler => 2,
                _ => options.stages_per_ts,
            },
            passes: match options.block_change {
                // The gas is asked once: its ghosts are those of the mesh before.
                _ if work == Work::Euler => 1,
                0 => options.num_refine,
                n => n,
            },
            refine_rings: refine_rings(&options, work),
            options,
        })
    }

    /// A rank for each leaf by a policy of this app; by Morton where the library's places them later.
    pub fn place_by_own(&self, policy: &PlacementName, question: Question) -> Vec<u32> {
        match policy {
            PlacementName::Rcb => self.rcb.place(question),
            PlacementName::Morton | PlacementName::Library(_) => Curve::Morton.place(question),
            PlacementName::Hilbert => Curve::Hilbert.place(question),
        }
    }

    /// Who places blocks anew in a run that goes on after `step` with this mesh; without a trigger, when the refinement
    /// says so.
    ///
    /// A mesh is first expected to live until the next refinement, or the run's end.
    pub fn balancer(&self, step: u64, mesh: &Mesh) -> Balancer<PlacementName> {
        let steps = match self.options.refine_freq {
            0 => self.n_steps.unwrap_or(u64::from(u32::MAX)),
            steps => steps,
        };
        let balancer = Balancer::new(self.placement.clone(), steps as f64, step)
            .with_triggers(self.trigger.into_iter().collect());
        if self.options.weigh == WeighName::Equal {
            return balancer;
        }
        let smoothing = Smoothing {
            // Blocks have the same number of cells on every level.
            inheritance: Inheritance::Repeat,
            ..Smoothing::default()
        };
        let costs = Costs::new(smoothing, 3, &octants(mesh).1);
        balancer.with_costs(costs.expect("the smoothing is in range"))
    }

    /// How far a sum may lie from the one before, relative to it.
    pub fn tolerance(&self) -> f64 {
        let default = if self.work == Work::Euler { 12 } else { 8 };
        10f64.powi(-(self.options.error_tol.unwrap_or(default) as i32))
    }

    /// The shape of a block with its ghosts, stored or not.
    pub fn ghosted(&self) -> BlockShape {
        BlockShape {
            ghosts: self.shape.ghosts.max(1),
            ..self.shape
        }
    }

    /// Where the gas's domain lies.
    pub fn domain(&self) -> Domain {
        let corner = |first: usize| std::array::from_fn(|d| self.options.domain[first + d]);
        Domain {
            lower: corner(0),
            upper: corner(3),
        }
    }

    /// Where a blast begins.
    pub fn sedov_centre(&self) -> [f64; 3] {
        match self.options.sedov_centre[..] {
            [x, y, z] => [x, y, z],
            _ => self.domain().middle(),
        }
    }

    /// Which ghosts messages carry.
    pub fn reach(&self) -> Reach {
        let any_order = self.options.permute || self.options.code != 0;
        match self.work {
            Work::Seven | Work::Euler => Reach::Faces,
            Work::TwentySeven if !any_order => Reach::Corners,
            _ => Reach::AnyOrder,
        }
    }

    /// Where values of finer blocks are added up for a coarser one on another rank.
    pub fn crossing(&self) -> Crossing {
        match self.options.code {
            1 => Crossing::SummedByReceiver,
            _ => Crossing::SummedBySender,
        }
    }

    /// How processes are laid over the root grid at start.
    pub fn box_axes(&self, processes: [usize; 3]) -> Axes {
        match self.rcb.axes {
            Axes::Natural(_) => Axes::Natural(processes),
            _ => Axes::ByProcesses(processes),
        }
    }

    /// Whether the sum of a variable must not change.
    pub fn conserves(&self, var: usize) -> bool {
        match self.work {
            Work::Seven | Work::SevenWithGhosts => true,
            Work::TwentySeven => self.options.num_refine == 0 || self.options.uniform_refine == 1,
            // Mass and energy; walls push on the momenta, and an open face lets all out.
            Work::Euler => [0, 4].contains(&var) && self.options.boundary != BoundaryName::Outflow,
        }
    }

    /// Ranges of variables that are exchanged together.
    pub fn groups(&self) -> Vec<std::ops::Range<usize>> {
        let n = self.shape.n_vars;
        let size = match self.options.comm_vars {
            0 => n,
            size => size.min(n),
        };
        (0..n)
            .step_by(size)
            .map(|start| start..(start + size).min(n))
            .collect()
    }
}

fn objects(options: &Options) -> Result<Objects, Refusal> {
    let mut objects = Vec::new();
    for numbers in options.object.chunks(ARGUMENTS) {
        let object = Object::from_arguments(numbers);
        objects.push(object.map_err(|error| Refusal::new(format!("--object: {error}")))?);
    }
    if let Some(n) = options.num_objects
        && n != objects.len()
    {
        let given = objects.len();
        return Err(Refusal::new(format!(
            "--num_objects {n}, but {given} times --object"
        )));
    }
    let objects = Objects::new(objects);
    if options.compat {
        return Ok(objects.as_reference_moves_them());
    }
    if let Some(steps) = steps(options) {
        let delta = options.time.map_or(1.0, |time| time / steps as f64);
        let checked = objects.check_domain(steps, delta);
        checked.map_err(|error| Refusal::new(format!("--object: {error}")))?;
    }
    Ok(objects)
}

fn steps(options: &Options) -> Option<u64> {
    match (options.num_tsteps, options.time) {
        (Some(steps), _) => Some(steps),
        (None, None) => Some(20),
        (None, Some(_)) => None,
    }
}

/// As many as `--refine_buffer` says. For a gas by default those that hold the cells which a signal can pass between two
/// refinements; miniAMR's problems have none.
fn refine_rings(options: &Options, work: Work) -> u32 {
    let moving = work == Work::Euler && options.refine_freq > 0 && options.num_refine > 0;
    let rings = || {
        let cells = (options.cfl * options.refine_freq as f64).ceil();
        let edge = options.nx.min(options.ny).min(options.nz);
        (cells / edge as f64)
            .ceil()
            .min(f64::from(REFINE_BUFFER_MAX)) as u32
    };
    let default = || if moving { rings() } else { 0 };
    options.refine_buffer.unwrap_or_else(default)
}

fn sweeps(options: &Options, work: Work) -> Result<Sweeps, Refusal> {
    let by_axis = work == Work::TwentySeven || options.compat || options.permute;
    match options.exchange {
        None | Some(ExchangeName::Blocking) if by_axis => Ok(Sweeps::ByAxis),
        None | Some(ExchangeName::Blocking | ExchangeName::AtOnce) if !by_axis => {
            Ok(Sweeps::AtOnce)
        }
        Some(ExchangeName::ByAxis) => Ok(Sweeps::ByAxis),
        Some(ExchangeName::Overlapped) if work == Work::Euler => Ok(Sweeps::AtOnce),
        Some(ExchangeName::Overlapped) => Err(Refusal::new(
            "--exchange overlapped goes with --physics euler: a stencil's cells are updated variable by variable",
        )),
        _ => Err(Refusal::new(
            "--exchange at_once goes with --stencil 7, without --permute and --compat only",
        )),
    }
}

fn manner(options: &Options) -> Manner {
    Manner {
        bundling: if options.send_faces {
            Bundling::ByFace
        } else {
            Bundling::ByRank
        },
        sending: if options.blocking_send {
            Sending::Blocking
        } else {
            Sending::Nonblocking
        },
        order: options.exchange_order,
    }
}
