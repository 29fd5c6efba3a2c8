//! What values options may have, alone and beside each other.

use crate::leaf::Grid;
use crate::options::{BoundaryName, ExchangeName, Options, ProblemName, Refusal};

pub(super) fn check_ranges(options: &Options) -> Result<(), Refusal> {
    let cells = [("nx", options.nx), ("ny", options.ny), ("nz", options.nz)];
    for (name, n) in cells {
        if n < 2 || n % 2 != 0 || n > 4096 {
            return Err(Refusal::new(format!(
                "--{name} {n}: a block has an even number of cells, 2 to 4096"
            )));
        }
    }
    if ![7, 27].contains(&options.stencil) {
        let n = options.stencil;
        return Err(Refusal::new(format!(
            "--stencil {n}: 7 or 27 are possible; miniAMR's mixture, 0, is not"
        )));
    }
    if options
        .time
        .is_some_and(|time| !(time > 0.0 && time.is_finite()))
    {
        return Err(Refusal::new("--time is positive"));
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
    if options.group_blocks && options.break_ties {
        return Err(Refusal::new(
            "--group_blocks and --break_ties contradict each other",
        ));
    }
    if options.compat && options.refine_buffer.is_some_and(|rings| rings > 0) {
        return Err(Refusal::new(
            "--compat goes without --refine_buffer: miniAMR knows none",
        ));
    }
    let thresholds = [options.join_below, options.refine_above];
    if !(0.0 <= thresholds[0] && thresholds[0] <= thresholds[1] && thresholds[1] <= 1.0) {
        return Err(Refusal::new("0 <= join_below <= refine_above <= 1"));
    }
    Ok(())
}

pub(super) fn check_stencil(options: &Options) -> Result<(), Refusal> {
    if options.boundary == BoundaryName::Periodic {
        return Err(Refusal::new(
            "--boundary periodic goes with --physics euler",
        ));
    }
    Ok(())
}

/// Whether the ball that holds the blast's energy is wide enough to hold a cell's middle.
pub(super) fn check_ball(options: &Options, grid: Grid) -> Result<(), Refusal> {
    let cells = [options.nx, options.ny, options.nz];
    let edge = |d: usize| {
        let n = f64::from(grid.roots[d] << grid.depth) * cells[d] as f64;
        (options.domain[3 + d] - options.domain[d]) / n
    };
    let widest = edge(0).max(edge(1)).max(edge(2));
    match options.sedov_radius {
        Some(radius) if radius < widest => Err(Refusal::new(format!(
            "--sedov_radius {radius}: a finest cell is {widest} wide, and no less is possible"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn check_euler(options: &Options) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::new(format!("--physics euler: {text}")));
    if [options.nx, options.ny, options.nz].iter().any(|&n| n < 4) {
        return refuse("a block has at least 4 cells in each direction");
    }
    if options.compat || !options.object.is_empty() || options.permute {
        return refuse("--compat, --object and --permute belong to the stencils");
    }
    let of_stencils = [ExchangeName::ByAxis, ExchangeName::AtOnce].map(Some);
    if options.send_faces || options.blocking_send || of_stencils.contains(&options.exchange) {
        return refuse(
            "--send_faces, --blocking_send, --exchange by_axis and at_once belong to the stencils",
        );
    }
    if !(options.cfl > 0.0 && options.cfl <= 0.8) {
        return refuse("--cfl is above 0 and at most 0.8");
    }
    if !(options.sedov_energy > 0.0 && options.sedov_energy.is_finite()) {
        return refuse("--sedov_energy is positive");
    }
    let domain = &options.domain;
    let is_box =
        (0..3).all(|d| domain[d] < domain[3 + d] && (domain[3 + d] - domain[d]).is_finite());
    if !is_box {
        return refuse(
            "--domain is a lower corner, then an upper one that is larger along each axis",
        );
    }
    let inside = |(d, x): (usize, &f64)| (domain[d]..=domain[3 + d]).contains(x);
    if !options.sedov_centre.iter().enumerate().all(inside) {
        return refuse("--sedov_centre lies in the domain");
    }
    // The exact solution of the blast has this form up to there.
    if !(options.gamma > 1.0 && options.gamma < 2.0) {
        return refuse("--gamma is above 1 and below 2");
    }
    if options
        .sedov_radius
        .is_some_and(|radius| !(radius > 0.0 && radius.is_finite()))
    {
        return refuse("--sedov_radius is positive");
    }
    if !(options.rarefaction_speed > 0.0 && options.rarefaction_speed.is_finite()) {
        return refuse("--rarefaction_speed is positive");
    }
    if options.problem == ProblemName::Wave {
        if options.boundary != BoundaryName::Periodic {
            return refuse("--problem wave goes with --boundary periodic");
        }
        if options.refine_freq != 0 {
            return refuse("--problem wave keeps its mesh: it goes with --refine_freq 0");
        }
        if options.domain != [0.0, 0.0, 0.0, 1.0, 1.0, 1.0] {
            return refuse("--problem wave goes with the unit cube as --domain");
        }
    }
    if options.stencil != 7 || options.code != 0 {
        return refuse("--stencil and --code belong to the stencils");
    }
    Ok(())
}
