//! A command line that has been checked, in the terms of the other modules.

use colltune_placement::policy::Need;
use colltune_placement::{Policy, Trigger};

use crate::cost::CostModel;
use crate::exchange::plan::Sweeps;
use crate::exchange::{Bundling, Manner, Order, Sending};
use crate::leaf::Grid;
use crate::object::{ARGUMENTS, Object, Objects};
use crate::options::{
    BoundaryName, ExchangeName, Options, OrderName, PhysicsName, Refusal, WeighName,
};
use crate::physics;
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
    /// The Euler equations instead of a stencil.
    Euler,
}

/// Who places blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum PlacementName {
    Rcb,
    Morton,
    Hilbert,
    Library(Policy),
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
    pub trigger: Option<Trigger>,
    pub cost: CostModel,
    pub rcb: Rcb,
    pub n_steps: Option<u64>,
    pub stages: u64,
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
        let work = work(&options);
        if work == Work::Euler {
            check_euler(&options)?;
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
                    Work::TwentySeven | Work::Mixed => 1,
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
            n_objects: objects.as_slice().len(),
            objects,
            trigger: trigger(&options)?,
            cost: cost(&options, work)?,
            rcb: rcb(&options, &placement, processes),
            placement,
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
            options,
        })
    }

    /// The policy of this app that places blocks; Morton where the library does, for the root blocks.
    pub fn policy(&self) -> Box<dyn Placement> {
        match self.placement {
            PlacementName::Rcb => Box::new(self.rcb),
            PlacementName::Morton | PlacementName::Library(_) => Box::new(Curve::Morton),
            PlacementName::Hilbert => Box::new(Curve::Hilbert),
        }
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
            // Mass and energy; walls push on the momenta, and an open face lets all out.
            Work::Euler => {
                [0, 4].contains(&var) && self.options.boundary == BoundaryName::Reflecting
            }
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

fn work(options: &Options) -> Work {
    match (options.physics, options.stencil) {
        (PhysicsName::Euler, _) => Work::Euler,
        (_, 7) => Work::Seven,
        (_, 27) => Work::TwentySeven,
        _ => Work::Mixed,
    }
}

fn check_euler(options: &Options) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::new(format!("--physics euler: {text}")));
    if [options.nx, options.ny, options.nz].iter().any(|&n| n < 4) {
        return refuse("a block has at least 4 cells in each direction");
    }
    if options.compat || !options.object.is_empty() || options.permute {
        return refuse("--compat, --object and --permute belong to the stencils");
    }
    if options.send_faces || options.blocking_send || options.exchange.is_some() {
        return refuse("--send_faces, --blocking_send and --exchange belong to the stencils");
    }
    if !(options.cfl > 0.0 && options.cfl <= 0.8) {
        return refuse("--cfl is above 0 and at most 0.8");
    }
    if !(options.sedov_energy > 0.0 && options.sedov_energy.is_finite()) {
        return refuse("--sedov_energy is positive");
    }
    let centre = options.sedov_centre.iter();
    if centre.clone().any(|x| !(0.0..=1.0).contains(x)) {
        return refuse("--sedov_centre lies in the unit cube");
    }
    let thresholds = [options.join_below, options.refine_above];
    if !(0.0 <= thresholds[0] && thresholds[0] <= thresholds[1] && thresholds[1] <= 1.0) {
        return refuse("0 <= join_below <= refine_above <= 1");
    }
    Ok(())
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
    let files = [
        &options.checkpoint,
        &options.restart,
        &options.telemetry,
        &options.vtk,
    ];
    if options.compat && files.iter().any(|folder| folder.is_some()) {
        return Err(Refusal::new(
            "--checkpoint, --restart, --telemetry and --vtk make calls that --compat must not",
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
    let mut named = Vec::new();
    if let Some(name) = &options.placement {
        named.push(named_placement(name)?);
    }
    let flags = [
        (options.rcb, PlacementName::Rcb),
        (options.morton, PlacementName::Morton),
        (
            options.hilbert || options.trunc_hilbert,
            PlacementName::Hilbert,
        ),
    ];
    named.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, n)| n));
    named.dedup();
    match (named.pop(), named.is_empty()) {
        (None, _) => Ok(PlacementName::Rcb),
        (Some(PlacementName::Library(_)), true) if options.compat => Err(Refusal::new(
            "--compat goes with miniAMR's placements only: rcb, morton and hilbert",
        )),
        (Some(name), true) => Ok(name),
        _ => Err(Refusal::new("several placements are named; give one")),
    }
}

fn named_placement(name: &str) -> Result<PlacementName, Refusal> {
    match name {
        "rcb" => return Ok(PlacementName::Rcb),
        "morton" => return Ok(PlacementName::Morton),
        "hilbert" => return Ok(PlacementName::Hilbert),
        _ => {}
    }
    let refuse = |what: &dyn std::fmt::Display| Refusal::new(format!("--placement {name}: {what}"));
    let policy: Policy = name.parse().map_err(|error| refuse(&error))?;
    if policy.row().needs.contains(&Need::Machine) || name == "cplx:auto" {
        return Err(refuse(
            &"this policy needs latencies of the machine, which the app does not have",
        ));
    }
    Ok(PlacementName::Library(policy))
}

fn trigger(options: &Options) -> Result<Option<Trigger>, Refusal> {
    let Some(name) = &options.balance_when else {
        return Ok(None);
    };
    let refuse = |what: String| Refusal::new(format!("--balance_when {name}: {what}"));
    if options.compat {
        return Err(refuse("--compat balances when miniAMR does".into()));
    }
    match name.parse().map_err(|error| refuse(format!("{error}")))? {
        Trigger::BreakEven => Err(refuse("break-even is not available yet".into())),
        trigger => Ok(Some(trigger)),
    }
}

fn cost(options: &Options, work: Work) -> Result<CostModel, Refusal> {
    let refuse = |what: String| Refusal::new(format!("--cost {}: {what}", options.cost));
    let cost = options.cost.parse().map_err(refuse)?;
    if cost == CostModel::Shock && work != Work::Euler {
        return Err(refuse("there are shocks with --physics euler only".into()));
    }
    if options.compat && options.weigh == WeighName::Measured {
        return Err(Refusal::new(
            "--weigh measured makes calls that --compat must not",
        ));
    }
    Ok(cost)
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
    let by_axis =
        matches!(work, Work::TwentySeven | Work::Mixed) || options.compat || options.permute;
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

fn rcb(options: &Options, placement: &PlacementName, processes: Option<[usize; 3]>) -> Rcb {
    let default = u8::from(*placement == PlacementName::Rcb);
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
