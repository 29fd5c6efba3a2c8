//! A command line that has been checked, in the terms of the other modules.

use crate::exchange::plan::Sweeps;
use crate::exchange::{Bundling, Manner, Order, Sending};
use crate::leaf::Grid;
use crate::object::{ARGUMENTS, Object, Objects};
use crate::options::{ExchangeName, Options, OrderName, PlacementName, Refusal};
use crate::placement::Placement;
use crate::placement::curve::Curve;
use crate::placement::rcb::{Axes, Rcb, Ties};
use crate::shape::BlockShape;

/// What is computed in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Seven,
    TwentySeven,
    Mixed,
}

/// Everything that a run is told. The same on every rank.
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
    pub objects: Objects,
    pub n_objects: usize,
    pub placement: PlacementName,
    pub rcb: Rcb,
    pub n_steps: Option<u64>,
    pub passes: u8,
}

impl Settings {
    /// Checks `options` for a job of `n_ranks` ranks.
    ///
    /// Errors: the first value that is out of range or contradicts another, with what is possible.
    pub fn new(options: Options, n_ranks: usize) -> Result<Settings, Refusal> {
        check_ranges(&options)?;
        let given = [options.npx, options.npy, options.npz];
        let (grid_of_processes, derived) = process_grid(given, n_ranks);
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
        };
        grid.check().map_err(Refusal::new)?;
        if !derived && grid.n_roots() < n_ranks {
            return Err(Refusal::new(format!(
                "{n_ranks} ranks for {} root blocks: give more root blocks (init_x, npx, ...) or fewer ranks",
                grid.n_roots()
            )));
        }
        let placement = placement_name(&options)?;
        let objects = objects(&options)?;
        let work = match options.stencil {
            7 => Work::Seven,
            27 => Work::TwentySeven,
            _ => Work::Mixed,
        };
        let sweeps = sweeps(&options, work)?;
        let processes = (product == n_ranks).then_some(grid_of_processes);
        Ok(Settings {
            grid,
            processes,
            init,
            shape: BlockShape {
                cells: [options.nx, options.ny, options.nz],
                // Seven points need no stored ghosts: see `exchange::intake`.
                ghosts: usize::from(work != Work::Seven),
                n_vars: options.num_vars,
            },
            work,
            sweeps,
            manner: manner(&options),
            n_objects: objects.as_slice().len(),
            objects,
            placement,
            rcb: rcb(&options, placement, processes),
            n_steps: steps(&options),
            passes: match options.block_change {
                0 => options.num_refine,
                n => n,
            },
            options,
        })
    }

    /// The policy that places blocks.
    pub fn policy(&self) -> Box<dyn Placement> {
        match self.placement {
            PlacementName::Rcb => Box::new(self.rcb),
            PlacementName::Morton => Box::new(Curve::Morton),
            PlacementName::Hilbert => Box::new(Curve::Hilbert),
        }
    }

    /// The shape of a block with its ghosts, stored or not.
    pub fn ghosted(&self) -> BlockShape {
        BlockShape {
            ghosts: 1,
            ..self.shape
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
            Work::Seven => true,
            Work::TwentySeven => self.options.num_refine == 0 || self.options.uniform_refine == 1,
            Work::Mixed => var == 0,
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

fn check_ranges(options: &Options) -> Result<(), Refusal> {
    let cells = [("nx", options.nx), ("ny", options.ny), ("nz", options.nz)];
    for (name, n) in cells {
        if n < 2 || n % 2 != 0 || n > 4096 {
            return Err(Refusal::new(format!(
                "--{name} {n}: a block has an even number of cells, 2 to 4096"
            )));
        }
    }
    let positive = [
        ("init_x", Some(options.init_x)),
        ("init_y", Some(options.init_y)),
        ("init_z", Some(options.init_z)),
        ("npx", options.npx),
        ("npy", options.npy),
        ("npz", options.npz),
    ];
    for (name, n) in positive {
        if n.is_some_and(|n| n == 0 || n >= 1 << 19) {
            return Err(Refusal::new(format!(
                "--{name}: 1 to {} are possible",
                (1 << 19) - 1
            )));
        }
    }
    let limited = [
        ("uniform_refine", u64::from(options.uniform_refine), 1),
        ("lb_opt", u64::from(options.lb_opt), 2),
        ("code", u64::from(options.code), 2),
        ("reorder", u64::from(options.reorder.unwrap_or(0)), 1),
        ("limit_move", u64::from(options.limit_move), 100),
        ("num_vars", options.num_vars as u64, 1 << 20),
    ];
    for (name, value, most) in limited {
        if value > most {
            return Err(Refusal::new(format!(
                "--{name} {value}: 0 to {most} are possible"
            )));
        }
    }
    if options.num_vars == 0 || options.stages_per_ts == 0 || options.num_tsteps == Some(0) {
        return Err(Refusal::new(
            "num_vars, stages_per_ts and num_tsteps are at least 1",
        ));
    }
    if ![0, 7, 27].contains(&options.stencil) {
        let n = options.stencil;
        return Err(Refusal::new(format!(
            "--stencil {n}: 7, 27 or 0 are possible"
        )));
    }
    if options.stencil == 0 && options.num_vars < 8 {
        let n = options.num_vars;
        return Err(Refusal::new(format!(
            "--stencil 0 needs at least 8 variables, not {n}"
        )));
    }
    if options
        .time
        .is_some_and(|time| !(time > 0.0 && time.is_finite()))
    {
        return Err(Refusal::new("--time is positive"));
    }
    if options.code != 0 {
        return Err(Refusal::new(
            "--code 1 and 2 are not available: only needed values are sent",
        ));
    }
    if options.stencil == 0 {
        return Err(Refusal::new(
            "--stencil 0 is not available yet: 7 and 27 are",
        ));
    }
    if options.permute && options.stencil == 27 {
        return Err(Refusal::new(
            "--permute goes with 7 points: edges and corners need x, y, z in order",
        ));
    }
    if options.group_blocks && options.break_ties {
        return Err(Refusal::new(
            "--group_blocks and --break_ties contradict each other",
        ));
    }
    Ok(())
}

/// The process grid and whether it was derived: as near to a cube as the factors of `n_ranks` allow.
fn process_grid(given: [Option<u32>; 3], n_ranks: usize) -> ([usize; 3], bool) {
    if given.iter().any(Option::is_some) {
        return (given.map(|n| n.unwrap_or(1) as usize), false);
    }
    let mut grid = [1; 3];
    for factor in crate::placement::factors(n_ranks) {
        let smallest = (0..3).min_by_key(|&d| grid[d]).expect("three axes");
        grid[smallest] *= factor;
    }
    grid.sort_unstable_by(|a, b| b.cmp(a));
    (grid, true)
}

fn placement_name(options: &Options) -> Result<PlacementName, Refusal> {
    let mut named: Vec<PlacementName> = options.placement.into_iter().collect();
    let flags = [
        (options.rcb, PlacementName::Rcb),
        (options.morton, PlacementName::Morton),
        (
            options.hilbert || options.trunc_hilbert,
            PlacementName::Hilbert,
        ),
    ];
    named.extend(flags.iter().filter(|(set, _)| *set).map(|&(_, name)| name));
    named.dedup();
    match named[..] {
        [] => Ok(PlacementName::Rcb),
        [name] => Ok(name),
        _ => Err(Refusal::new("several placements are named; give one")),
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

fn sweeps(options: &Options, work: Work) -> Result<Sweeps, Refusal> {
    let by_axis = work != Work::Seven || options.compat || options.permute;
    match options.exchange {
        None if by_axis => Ok(Sweeps::ByAxis),
        None | Some(ExchangeName::AtOnce) if !by_axis => Ok(Sweeps::AtOnce),
        Some(ExchangeName::ByAxis) => Ok(Sweeps::ByAxis),
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
        order: match options.exchange_order {
            OrderName::SendsFirst => Order::SendsFirst,
            OrderName::CopiesFirst => Order::CopiesFirst,
        },
    }
}

fn rcb(options: &Options, placement: PlacementName, processes: Option<[usize; 3]>) -> Rcb {
    let default = u8::from(placement == PlacementName::Rcb);
    let reorder = options.reorder.unwrap_or(default);
    let axes = match processes {
        Some(_) if options.change_dir => Axes::Longest,
        Some(grid) if reorder == 1 => Axes::ByProcesses(grid),
        Some(grid) => Axes::Natural(grid),
        None => Axes::Longest,
    };
    let ties = if options.group_blocks {
        Ties::Together
    } else {
        Ties::ByOtherAxes
    };
    Rcb { axes, ties }
}
