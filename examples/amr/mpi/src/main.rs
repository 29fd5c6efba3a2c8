//! `colltune-amr`: the adaptive-mesh-refinement mini-app on MPI.
//!
//! ```text
//! $ mpirun -n 4 colltune-amr --num_refine 3 --num_tsteps 20 --object 2 0 .5 .5 .5 0 0 0 .1 .1 .1 .01 .01 .01
//! ```
//! Only rank 0 writes to the terminal. Every rank ends with the same exit code: 0 done, 1 failed,
//! 2 wrong usage.

mod mpi;

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use colltune_amr::options::{self, Refusal};
use colltune_amr::output::publish::publish;
use colltune_amr::ranks::Ranks;
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
        Ok((summary, blocks_max)) => {
            if !is_first {
                return 0;
            }
            if settings.options.report_perf & 4 != 0 {
                println!("{}", summary.text(blocks_max));
            }
            let Some(path) = &settings.options.json else {
                return 0;
            };
            let text = serde_json::to_string_pretty(&summary).expect("plain data");
            let written = publish(path, |file| writeln!(file, "{text}"));
            match written {
                Ok(()) => 0,
                Err(error) => {
                    eprintln!("error: {error}");
                    1
                }
            }
        }
        Err(broken) => {
            if is_first {
                eprintln!("error: {broken}");
            }
            1
        }
    }
}

fn say(refusal: &Refusal) {
    match refusal.status {
        0 => println!("{}", refusal.text),
        _ => eprintln!("{}", refusal.text),
    }
}
