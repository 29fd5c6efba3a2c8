//! Callers of every language find the library as it was: Fortran through its three interfaces, Python
//! through mpi4py's own test suite, and programs whose calls are wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_core::record::{Manner, Record};
use colltune_tests::{
    Mpi, assert_ranks_agree, folder, job, on_each_library, read_log, skip, traces,
};

/// The three interfaces of Fortran, by the macro that chooses one in `fortran_caller.F90`.
const INTERFACES: [&str; 3] = ["MPIFH", "MODULE_MPI", "MODULE_MPI_F08"];

/// Variants that both libraries have, our own and theirs.
const OWN: &str = "allreduce=p2p:ring;bcast=p2p:binomial;allgather=p2p:ring;alltoall=p2p:pairwise;reduce=p2p:binomial";
const NATIVE: &str = "allreduce=native:recursive_doubling;allgather=native:ring;alltoall=native:pairwise;\
    allgatherv=native:ring;reduce_scatter=native:recursive_halving;scan=native:recursive_doubling;\
    reduce_scatter_block=native:recursive_halving";

/// Nonblocking calls of the Fortran program on each rank.
const NONBLOCKING: usize = 3 * 5 * 4;

/// Builds the Fortran program for one interface; `None` without a Fortran compiler.
fn fortran_caller(mpi: Mpi, interface: &str, folder: &Path) -> Option<PathBuf> {
    let compiler = format!("mpifort.{}", mpi.name());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("mpi/fortran_caller.F90");
    let program = folder.join(interface);
    // mpif.h has no interfaces, so that buffers of several types look like a mistake to the compiler.
    let flags = ["-O1", "-w", "-fallow-argument-mismatch"];
    let output = Command::new(&compiler)
        .args(flags)
        .arg(format!("-D{interface}"))
        .arg("-o")
        .args([&program, &source])
        .output();
    let Ok(output) = output else {
        return skip(&format!("{compiler} is not installed"));
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} failed:\n{text}");
    Some(program)
}

/// Runs a Fortran program on `n_ranks` ranks, drawing; how many calls ran another variant than `default`.
fn draws(mpi: Mpi, n_ranks: u32, program: &Path) -> usize {
    let program = program.to_string_lossy();
    job(n_ranks)
        .mpi(mpi)
        .run(&program, &[])
        .succeeds()
        .prints("ok\n");
    let db = folder();
    let log = db.path().join("log");
    let tuned = job(n_ranks)
        .mpi(mpi)
        .preload()
        .db(db.path())
        .seed(3)
        .env("COLLTUNE_SETUP_AFTER", "1")
        .log(&log)
        .run(&program, &[]);
    tuned.succeeds().prints("ok\n").is_silent();
    for trace in traces(db.path()) {
        let passed = |record: &&Record| record.manner == Manner::Nonblocking;
        let recorded = trace.records.iter().filter(passed).count();
        assert_eq!(recorded, NONBLOCKING, "{program}: nonblocking calls");
    }
    let log = read_log(&log, n_ranks);
    assert_ranks_agree(&log);
    log[0]
        .iter()
        .filter(|call| call.variant != "default")
        .count()
}

/// Runs part of mpi4py's suite as `make conformance` does; the last line of its report.
fn mpi4py(mpi: Mpi, variant: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/conformance");
    let modules = "^test_cco_(buf|obj|vec)";
    let output = Command::new(script)
        .args([
            "--library",
            mpi.name(),
            "--variant",
            variant,
            "--modules",
            modules,
        ])
        .args(["--ranks", "2", "--forced-ranks", "", "--again"])
        .output()
        .expect("the script starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or("").to_owned();
    if last.starts_with("0 passed, 0 failed") {
        return skip(text.lines().next().unwrap_or("mpi4py cannot be installed"));
    }
    assert!(output.status.success(), "{text}\n{errors}");
    Some(last)
}

on_each_library! {
    fn fortran_programs_compute_the_same(mpi: Mpi) {
        let programs = folder();
        for interface in INTERFACES {
            let Some(program) = fortran_caller(mpi, interface, programs.path()) else { return };
            let drawn = draws(mpi, 2, &program);
            assert!(drawn > 50, "{interface}: only {drawn} calls were steered");
        }
    }

    fn mpi4py_passes_the_same_tests(mpi: Mpi) {
        let Some(summary) = mpi4py(mpi, "explore") else { return };
        let passed: u32 = summary.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        assert!(passed > 100 && summary.contains(" 0 failed"), "{summary}");
    }

    fn wrong_calls_are_answered_as_without_the_shim(mpi: Mpi) {
        // Some mistakes kill the libraries by themselves: Open MPI dies of null buffers and freed
        // communicators, MPICH of negative counts in reductions. MPICH recycles the handle of a freed
        // communicator for the next one, which may be the shim's: such calls are left out, too.
        let survived: &[[&str; 2]] = match mpi {
            Mpi::OpenMpi => &[["1", "13"], ["15", "15"], ["21", "30"], ["35", "85"]],
            _ => &[["3", "15"], ["21", "81"]],
        };
        for mistakes in survived {
            let bare = job(2).mpi(mpi).run("wrong_calls", mistakes);
            bare.succeeds();
            assert!(bare.stdout.contains("that is right"), "{}", bare.stdout);
            for force in ["", OWN, NATIVE] {
                let db = folder();
                let tuned = job(2).mpi(mpi).preload().env("COLLTUNE_SETUP_AFTER", "1");
                let tuned = match force {
                    "" => tuned.db(db.path()).mode("explore").seed(4),
                    _ => tuned.force(force),
                };
                let tuned = tuned.run("wrong_calls", mistakes);
                tuned.succeeds().prints(&bare.stdout);
            }
        }
    }
}
