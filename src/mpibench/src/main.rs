//! `colltune-mpibench`: times MPI collectives, and is a workload to train on.
//!
//! ```text
//! $ mpirun -n 4 colltune-mpibench collectives --collectives allreduce,bcast --sizes 8,32KiB
//! $ mpirun -n 4 colltune-mpibench mix --calls 3000 --seed 7
//! ```
//! Only rank 0 writes: one JSON object, to stdout or to the file of `--json`.

mod cells;
mod mpi;

mod random;

mod collectives;
mod mix;
mod neighbours;

mod churn;
mod overhead;

mod calibrate;
mod nodes;
mod pair;

mod check;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use colltune_core::library::Library;
use serde_json::{Value, json};

/// Times MPI collectives, and is a workload to train on.
///
/// Every rank runs the same command; rank 0 writes one JSON object.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
    /// Write the result to this file instead of stdout.
    #[arg(long, global = true)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Mode {
    /// Time each cell (collective and size) in many short blocks.
    Collectives(collectives::Arguments),
    /// Call collectives in a random order that is the same on every rank, with gaps of computing.
    Mix(mix::Arguments),
    /// Time calls on MPI_COMM_SELF, where almost nothing is left but the cost of calling.
    Overhead(overhead::Arguments),
    /// Split, call one allreduce, free, again and again.
    Churn(churn::Arguments),
    /// Exchange the messages of a plan in rounds, and count and check what arrives.
    Neighbours(neighbours::Arguments),
    /// Measure latency, overhead, gap and time per byte inside a node and between nodes.
    Calibrate(calibrate::Arguments),
    /// Measure computing, memory and messages of each node, before a job runs there.
    Nodes(nodes::Arguments),
    /// Time MPI_Init.
    Startup,
    /// Compare what collectives return with what they must return; exit with 1 if anything differs.
    ReferenceCheck(check::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (world, init) = mpi::init();
    let result = match &arguments.mode {
        Mode::Collectives(arguments) => collectives::run(arguments, world),
        Mode::Mix(arguments) => mix::run(arguments, world),
        Mode::Overhead(arguments) => overhead::run(arguments),
        Mode::Churn(arguments) => churn::run(arguments, world),
        Mode::Neighbours(arguments) => neighbours::run(arguments, world),
        Mode::Calibrate(arguments) => calibrate::run(arguments, world),
        Mode::Nodes(arguments) => nodes::run(arguments, world),
        Mode::Startup => json!({ "init_ns": world.maxima(&[init.as_nanos() as f64])[0] }),
        Mode::ReferenceCheck(arguments) => check::run(arguments, world),
    };
    let failed = result["wrong"].as_u64().is_some_and(|wrong| wrong > 0);
    let facts = facts(world);
    if world.rank == 0 {
        write(&arguments, &merge(facts, result));
    }
    mpi::finalize();
    ExitCode::from(u8::from(failed))
}

/// What every result says about the job.
fn facts(world: mpi::Comm) -> Value {
    let ppn = world.maxima(&[world.node_ranks() as f64])[0] as usize;
    let version = mpi::library_version();
    let library = Library::from_version_text(&version).map(|library| library.to_string());
    json!({ "library": library.unwrap_or(version), "n_ranks": world.n_ranks, "ppn": ppn })
}

fn merge(mut facts: Value, result: Value) -> Value {
    if let (Value::Object(facts), Value::Object(result)) = (&mut facts, result) {
        facts.extend(result);
    }
    facts
}

fn write(arguments: &Arguments, result: &Value) {
    match &arguments.json {
        None => println!("{result}"),
        Some(path) => {
            if let Err(error) = std::fs::write(path, format!("{result}\n")) {
                eprintln!(
                    "colltune-mpibench: failed to write {}: {error}",
                    path.display()
                );
                mpi::abort(1);
            }
        }
    }
}
