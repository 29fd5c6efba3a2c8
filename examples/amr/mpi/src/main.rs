//! `colltune-amr`: the adaptive-mesh-refinement mini-app on MPI.
//!
//! ```text
//! $ mpirun -n 4 colltune-amr --num_refine 3 --num_tsteps 20 --object 2 0 .5 .5 .5 0 0 0 .1 .1 .1 .01 .01 .01
//! ```
//! Only rank 0 writes to the terminal. Every rank ends with the same exit code: 0 done, 1 failed,
//! 2 wrong usage.

mod tuner;

mod mpi;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use colltune_amr::options::{self, Refusal};
use colltune_amr::output::publish::publish;
use colltune_amr::ranks::Ranks;
use colltune_amr::report::Summary;
use colltune_amr::run;
use colltune_amr::settings::Settings;

fn main() -> ExitCode {
    let started = Instant::now();
    let world = mpi::init();
    let code = work(&world, started);
    mpi::finalize(world);
    ExitCode::from(code)
}

fn work(world: &dyn Ranks, started: Instant) -> u8 {
    let is_first = world.rank() == 0;
    let settings = options::parse(std::env::args())
        .and_then(|options| Settings::new(options, world.n_ranks()));
    let settings = match settings {
        Ok(settings) => settings,
        Err(refusal) => {
            if is_first {
                say(&refusal);
            }
            return refusal.status;
        }
    };
    let mut tell = |line: &str| println!("{line}");
    match run::run(world, &settings, started, &mut tell) {
        Ok((summary, blocks_max)) => tell_summary(world, &settings, &summary, blocks_max),
        Err(broken) => {
            if is_first {
                eprintln!("error: {broken}");
            }
            1
        }
    }
}

/// Rank 0 prints the summary and writes it where `--json` says; every rank ends as that went.
fn tell_summary(world: &dyn Ranks, settings: &Settings, summary: &Summary, blocks_max: i64) -> u8 {
    let mut failed = [0];
    let is_first = world.rank() == 0;
    if is_first && settings.options.report_perf & 4 != 0 {
        println!("{}", summary.text(blocks_max));
    }
    let Some(path) = &settings.options.json else {
        return 0;
    };
    if is_first {
        let text = serde_json::to_string_pretty(summary).expect("plain data");
        if let Err(error) = publish(path, |file| writeln!(file, "{text}")) {
            eprintln!("error: {error}");
            failed = [1];
        }
    }
    world.broadcast_i32(0, &mut failed);
    failed[0] as u8
}

fn say(refusal: &Refusal) {
    match refusal.status {
        0 => println!("{}", refusal.text),
        _ => eprintln!("{}", refusal.text),
    }
}
