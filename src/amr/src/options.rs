//! The command line: miniAMR's options under their names, and what this app adds.
//!
//! Values are checked here, so that every rank refuses the same line and one of them says why.

pub use crate::command_line::parse;

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Parser, ValueEnum, value_parser};

use crate::exchange::Order;

/// The most rings that `--refine_buffer` may ask for.
pub const REFINE_BUFFER_MAX: u32 = 64;

/// An adaptive-mesh-refinement mini-app: miniAMR's problem, and more.
///
/// Options of miniAMR keep their names and defaults. The root grid has npx*init_x by npy*init_y by
/// npz*init_z blocks; any number of ranks can run it.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "colltune-amr",
    version,
    args_override_self = true,
    rename_all = "snake_case"
)]
#[command(allow_negative_numbers = true)]
pub struct Options {
    /// Cells of a block in x: even.
    #[arg(long, default_value_t = 10)]
    pub nx: usize,
    /// Cells of a block in y: even.
    #[arg(long, default_value_t = 10)]
    pub ny: usize,
    /// Cells of a block in z: even.
    #[arg(long, default_value_t = 10)]
    pub nz: usize,
    /// Root blocks of each process of the process grid in x.
    #[arg(long, default_value_t = 1, value_parser = roots())]
    pub init_x: u32,
    /// The same in y.
    #[arg(long, default_value_t = 1, value_parser = roots())]
    pub init_y: u32,
    /// The same in z.
    #[arg(long, default_value_t = 1, value_parser = roots())]
    pub init_z: u32,
    /// Processes in x; all three are derived from the number of ranks when absent.
    #[arg(long, value_parser = roots())]
    pub npx: Option<u32>,
    /// Processes in y.
    #[arg(long, value_parser = roots())]
    pub npy: Option<u32>,
    /// Processes in z.
    #[arg(long, value_parser = roots())]
    pub npz: Option<u32>,
    /// 1: order the processes of the grid by bisection; 0: naturally [default: 1 for rcb].
    #[arg(long, value_parser = value_parser!(u8).range(..=1))]
    pub reorder: Option<u8>,
    /// Place blocks by recursive coordinate bisection (default).
    #[arg(long)]
    pub rcb: bool,
    /// Place blocks along the Morton curve.
    #[arg(long)]
    pub morton: bool,
    /// Place blocks along the Hilbert curve.
    #[arg(long)]
    pub hilbert: bool,
    /// The same as --hilbert: the curve is cut out of a cube for any root grid.
    #[arg(long)]
    pub trunc_hilbert: bool,
    /// The placement policy by name: rcb, morton, hilbert, or one of the placement library (cplx:50,
    /// lpt-swap, contiguous-optimal, ...); tuned[:NAME,...] lets colltune choose, for 5 to 20 steps at a time.
    #[arg(long)]
    pub placement: Option<String>,
    /// When blocks are placed anew: refinement (as --lb_opt and --inbalance say; default), never, every:N, mesh-change,
    /// imbalance:SHARE or break-even; tuned[:NAME,...] lets colltune choose.
    #[arg(long)]
    pub balance_when: Option<String>,
    /// What messages cost on this machine, for policies that weigh it (model, cplx:auto) and for --balance_when
    /// break-even: calibration.toml as `colltune calibrate` writes it.
    #[arg(long, value_name = "FILE")]
    pub machine: Option<std::path::PathBuf>,
    /// So many ranks at a time are taken to share a node [default: those on one host].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,
    /// What balance means: equal numbers of blocks, or equal measured times.
    #[arg(long, value_enum, default_value_t = WeighName::Equal)]
    pub weigh: WeighName,
    /// Extra work per block: uniform, level, shock (with euler) or random:SEED.
    #[arg(long, default_value = "uniform")]
    pub cost: String,
    /// Most blocks of a rank. Nothing is allocated for it; the run ends with an error beyond it.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub max_blocks: Option<usize>,
    /// Refinement levels.
    #[arg(long, default_value_t = 5)]
    pub num_refine: u8,
    /// Levels that a block can change in one refinement [default: 0, which means num_refine].
    #[arg(long, default_value_t = 0)]
    pub block_change: u8,
    /// 1: refine everything to the last level before the first step.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u8).range(..=1))]
    pub uniform_refine: u8,
    /// Steps between refinements; 0 for none.
    #[arg(long, default_value_t = 5)]
    pub refine_freq: u64,
    /// Percentage of imbalance above which blocks are placed anew.
    #[arg(long, default_value_t = 0)]
    pub inbalance: u32,
    /// 0: never balance; 1: after each refinement; 2: after each of its passes.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u8).range(..=2))]
    pub lb_opt: u8,
    /// Variables of a cell.
    #[arg(long, default_value_t = 40, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1 << 20))]
    pub num_vars: usize,
    /// Variables that are exchanged together; 0 for all.
    #[arg(long, default_value_t = 0)]
    pub comm_vars: usize,
    /// Time steps [default: 20].
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    pub num_tsteps: Option<u64>,
    /// Time to simulate; a step is as long as objects need to move by a smallest cell, or as the
    /// gas allows.
    #[arg(long)]
    pub time: Option<f64>,
    /// Stages of exchange and stencil in a step.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u64).range(1..))]
    pub stages_per_ts: u64,
    /// Take the axes of the exchange in another order each stage.
    #[arg(long)]
    pub permute: bool,
    /// Use blocking sends.
    #[arg(long)]
    pub blocking_send: bool,
    /// What messages carry. 0: what is needed. 1: the ghosts beside the faces, too, and all cells of
    /// finer blocks, which the receiver adds up. 2: the ghosts of 1, the sums of 0.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u8).range(..=2))]
    pub code: u8,
    /// Stages between checksums; 0 for none.
    #[arg(long, default_value_t = 5)]
    pub checksum_freq: u64,
    /// Points of the stencil: 7 or 27.
    #[arg(long, default_value_t = 7)]
    pub stencil: u8,
    /// Checksums may differ by 10^-error_tol from one to the next [default: 8; 12 for euler].
    #[arg(long)]
    pub error_tol: Option<u32>,
    /// Print each checksum.
    #[arg(long)]
    pub report_diffusion: bool,
    /// Bits: 4 summary on stdout, 8 blocks of each level at every refinement.
    #[arg(long, default_value_t = 4)]
    pub report_perf: u32,
    /// Steps between pictures of the mesh; 0 for none.
    #[arg(long, default_value_t = 0)]
    pub plot_freq: u64,
    /// Ask objects about blocks with their ghost cells.
    #[arg(long, alias = "refine_ghosts")]
    pub refine_ghost: bool,
    /// Send each face by itself.
    #[arg(long)]
    pub send_faces: bool,
    /// Let bisection choose the longest axis each time.
    #[arg(long)]
    pub change_dir: bool,
    /// Let bisection keep blocks with the same centre along the cut together.
    #[arg(long)]
    pub group_blocks: bool,
    /// Let bisection cut through blocks that tie along the axis (the default does, by other axes).
    #[arg(long)]
    pub break_ties: bool,
    /// Most blocks that a rank may give away when balancing, in percent of its blocks; 0 for no limit.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u32).range(..=100))]
    pub limit_move: u32,
    /// Number of objects [default: as many as --object says].
    #[arg(long)]
    pub num_objects: Option<usize>,
    /// An object: type, bounce, centre, movement, size, growth (14 numbers; three each but the first two).
    #[arg(long, num_args = 14, action = clap::ArgAction::Append, allow_hyphen_values = true)]
    pub object: Vec<f64>,

    /// Options from a deck, before those of the command line: a name or a TOML file.
    #[arg(long, value_name = "NAME or FILE")]
    pub deck: Option<String>,
    /// What is computed: miniAMR's stencils, or the compressible Euler equations.
    #[arg(long, value_enum, default_value_t = PhysicsName::Stencil)]
    pub physics: PhysicsName,
    /// Where the gas starts: a Sedov blast wave, a density wave that crosses a refined part and is known exactly, or two
    /// halves that part along x and leave next to nothing between them.
    #[arg(long, value_enum, default_value_t = ProblemName::Sedov)]
    pub problem: ProblemName,
    /// The gas's domain: its lower corner, then its upper one [default: the unit cube].
    #[arg(long, num_args = 6, default_values_t = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], allow_hyphen_values = true)]
    pub domain: Vec<f64>,
    /// Ratio of the gas's specific heats.
    #[arg(long, default_value_t = crate::physics::GAMMA)]
    pub gamma: f64,
    /// Energy of the blast, in a gas of density 1.
    #[arg(long, default_value_t = 1.0)]
    pub sedov_energy: f64,
    /// Centre of the blast [default: the domain's]; with reflecting walls a corner gives an octant of the problem.
    #[arg(long, num_args = 3, allow_hyphen_values = true)]
    pub sedov_centre: Vec<f64>,
    /// Radius of the ball that holds the blast's energy at first [default: a box of four finest cells].
    #[arg(long)]
    pub sedov_radius: Option<f64>,
    /// Speed of each half of --problem rarefaction; gases of density 1 and pressure 0.4.
    #[arg(long, default_value_t = 2.0)]
    pub rarefaction_speed: f64,
    /// Courant number, at most 0.8.
    #[arg(long, default_value_t = 0.8)]
    pub cfl: f64,
    /// What the gas meets at the domain's faces. Sums are not checked where it flows out: it is lost to them.
    #[arg(long, value_enum, default_value_t = BoundaryName::Reflecting)]
    pub boundary: BoundaryName,
    /// Rings of blocks that are refined along with each block that is, so that what was found there is still on fine
    /// cells at the next refinement [default: 0; with euler as many as hold --cfl times --refine_freq cells].
    #[arg(long, value_name = "RINGS", value_parser = value_parser!(u32).range(..=i64::from(REFINE_BUFFER_MAX)))]
    pub refine_buffer: Option<u32>,
    /// Blocks of a gas split where its pressure jumps by more than this between cells.
    #[arg(long, default_value_t = 0.3)]
    pub refine_above: f64,
    /// Blocks may be joined where it jumps by less than this.
    #[arg(long, default_value_t = 0.1)]
    pub join_below: f64,
    /// Leave out the flux correction between levels, so that a test sees the check find it.
    #[arg(long, hide = true)]
    pub break_flux: bool,
    /// Where --plot_freq puts its pictures.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub plot_folder: std::path::PathBuf,
    /// Write the time of each phase, and messages and bytes of each kind, by step and rank as Parquet into
    /// this folder.
    #[arg(long, value_name = "FOLDER")]
    pub telemetry: Option<std::path::PathBuf>,
    /// Ranks whose telemetry goes into one file.
    #[arg(long, value_name = "RANKS", default_value_t = 64, value_parser = value_parser!(u32).range(1..))]
    pub telemetry_group: u32,
    /// Also write what each block took in each step.
    #[arg(long, requires = "telemetry")]
    pub telemetry_blocks: bool,
    /// Also write each exchange of messages: when it began, who was waited for.
    #[arg(long, requires = "telemetry")]
    pub telemetry_rounds: bool,
    /// Also write when each stretch of a phase was, for `colltune trace`.
    #[arg(long, requires = "telemetry")]
    pub telemetry_spans: bool,
    /// Make the computation of ranks slower in some steps: RANK[-RANK]:FACTOR[:FIRST-LAST], so that a test sees it
    /// found.
    #[arg(long, hide = true, value_name = "SLOW", action = clap::ArgAction::Append)]
    pub slow: Vec<crate::cost::Slow>,
    /// Write VTK files of the mesh, which ParaView opens, into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub vtk: Option<std::path::PathBuf>,
    /// Steps between VTK files.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..))]
    pub vtk_freq: u64,
    /// Write checkpoints into this folder; the last one stays.
    #[arg(long, value_name = "FOLDER")]
    pub checkpoint: Option<std::path::PathBuf>,
    /// Steps between checkpoints.
    #[arg(long, default_value_t = 10, value_parser = value_parser!(u64).range(1..))]
    pub checkpoint_freq: u64,
    /// Go on from the checkpoint in this folder, on any number of ranks.
    #[arg(long, value_name = "FOLDER")]
    pub restart: Option<std::path::PathBuf>,
    /// Make miniAMR's collective calls: the same kinds, sizes and counts.
    #[arg(long)]
    pub compat: bool,
    /// How an exchange is waited for: axis by axis or all at once, before anything is computed [default: at_once; by_axis for
    /// stencil 27 and --compat]. With euler, overlapped (default): blocks that need nothing from other ranks are computed
    /// before it is waited for; or blocking.
    #[arg(long, value_enum)]
    pub exchange: Option<ExchangeName>,
    /// What comes first, messages or copies between blocks of a rank.
    #[arg(long, value_enum, default_value_t = Order::SendsFirst)]
    pub exchange_order: Order,
    /// Seed of the cells' first values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the summary as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<std::path::PathBuf>,
    /// Measure the memory's bandwidth at the end, and report the run's updates as a share of it.
    #[arg(long, conflicts_with = "compat")]
    pub bandwidth: bool,
    /// Check every invariant of mesh and blocks after each refinement.
    #[arg(long)]
    pub validate: bool,
    /// The words that these options were read from, those of decks in their places.
    #[arg(skip)]
    pub words: Vec<String>,
}

/// Numbers of root blocks, or of processes, along an axis.
fn roots() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..1 << 19)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhysicsName {
    Stencil,
    Euler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProblemName {
    Sedov,
    Wave,
    /// A double rarefaction.
    Rarefaction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BoundaryName {
    Reflecting,
    Outflow,
    /// The gas comes back in at the opposite face.
    Periodic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeighName {
    Equal,
    Measured,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ExchangeName {
    ByAxis,
    AtOnce,
    Overlapped,
    Blocking,
}

/// Why a command line is refused, or the text that it asked for.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub text: String,
    /// 0 for `--help` and `--version`, 2 otherwise.
    pub status: u8,
}

impl Refusal {
    pub fn new(text: impl Into<String>) -> Refusal {
        Refusal {
            text: format!("error: {}", text.into()),
            status: 2,
        }
    }
}
