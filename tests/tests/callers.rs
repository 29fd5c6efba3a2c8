//! Callers of every language find the library as it was: Fortran through its three interfaces, and Python
//! through mpi4py's own test suite.

use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_core::record::{Manner, Record};
use colltune_tests::{
    FORTRAN_INTERFACES, Job, Mpi, assert_ranks_agree, folder, fortran, job, on_each_library,
    read_log, skip, tool, traces,
};

/// Nonblocking calls of the Fortran program on each rank.
const NONBLOCKING: usize = 3 * 5 * 4;

/// Builds the Fortran program for one interface; `None` without a Fortran compiler.
fn fortran_caller(mpi: Mpi, interface: &str, folder: &Path) -> Option<PathBuf> {
    let program = folder.join(interface);
    let macros = [format!("-D{interface}")];
    fortran(mpi, "fortran_caller", &macros, &program).map(|()| program)
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

/// Drawing, forced and with nothing tuned; the sentence says why.
#[test]
fn fortran_programs_with_integers_of_eight_bytes_run_untuned_and_get_whole_codes() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let played = |job: Job| job.preload_tool(tool(mpi, "wide_fortran"));
    let runs = |job: Job| {
        let outcome = played(job).run("wide_integers", &[]);
        outcome.succeeds().prints("ok\n");
        outcome
    };
    runs(job(2).mpi(mpi)).is_silent();
    runs(job(2).mpi(mpi).preload().mode("off")).is_silent();
    let db = folder();
    let explored = job(2).mpi(mpi).preload().db(db.path()).seed(3);
    let reason = "the INTEGERs of Fortran have 8 bytes in this build of openmpi-";
    runs(explored.env("COLLTUNE_SETUP_AFTER", "1")).says(&[reason]);
    let forced = job(2).mpi(mpi).preload();
    runs(forced.force("allgatherv=p2p:ring")).says(&[reason]);
}

on_each_library! {
    fn fortran_programs_compute_the_same(mpi: Mpi) {
        let programs = folder();
        for interface in FORTRAN_INTERFACES {
            let Some(program) = fortran_caller(mpi, interface, programs.path()) else { return };
            let drawn = draws(mpi, 2, &program);
            assert!(drawn > 50, "{interface}: only {drawn} calls were steered");
        }
    }

    /// Its functions, and what stands for MPI_IN_PLACE in it, are in no other object's sight.
    fn fortran_code_that_a_host_loads_for_itself_computes_the_same(mpi: Mpi) {
        let libraries = folder();
        for interface in FORTRAN_INTERFACES {
            let library = libraries.path().join(format!("lib{interface}.so"));
            let flags = [format!("-D{interface}"), "-shared".to_owned(), "-fPIC".to_owned()];
            let Some(()) = fortran(mpi, "fortran_library", &flags, &library) else { return };
            let library = library.to_string_lossy();
            job(2).mpi(mpi).run("fortran_host", &[&library]).succeeds().prints("ok\n");
            job(2).mpi(mpi).preload().mode("off").run("fortran_host", &[&library]).succeeds().prints("ok\n");
            let db = folder();
            let log = db.path().join("log");
            let tuned = job(2).mpi(mpi).preload().db(db.path()).seed(3).env("COLLTUNE_SETUP_AFTER", "1");
            let tuned = tuned.env("COLLTUNE_EXPLORE_BUDGET", "1").log(&log);
            tuned.run("fortran_host", &[&library]).succeeds().prints("ok\n").is_silent();
            let log = read_log(&log, 2);
            assert_ranks_agree(&log);
            let drawn = log[0].iter().filter(|call| call.variant != "default").count();
            assert!(drawn > 20, "{interface}: only {drawn} calls were steered");
        }
    }

    fn mpi4py_passes_the_same_tests(mpi: Mpi) {
        let Some(summary) = mpi4py(mpi, "explore") else { return };
        let passed: u32 = summary.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
        assert!(passed > 100 && summary.contains(" 0 failed"), "{summary}");
    }

    fn large_counts_of_fortran_are_tuned(mpi: Mpi) {
        if mpi.is_openmpi() {
            let _: Option<()> = skip("Open MPI 4 has none");
            return;
        }
        let scratch = folder();
        let program = scratch.path().join("large_counts");
        let Some(()) = fortran(mpi, "large_counts", &[], &program) else { return };
        let program = program.to_string_lossy();
        job(2).mpi(mpi).run(&program, &[]).succeeds().prints("ok\n");
        let db = folder();
        let log = db.path().join("log");
        let tuned = job(2).mpi(mpi).preload().db(db.path()).seed(3).env("COLLTUNE_SETUP_AFTER", "1").log(&log);
        tuned.run(&program, &[]).succeeds().prints("ok\n").is_silent();
        let log = read_log(&log, 2);
        assert_ranks_agree(&log);
        let tuned = |collective: &str| log[0].iter().filter(|call| call.collective == collective && call.variant != "default").count();
        for collective in ["allreduce", "reduce", "scan", "bcast", "allgather", "alltoall", "allgatherv"] {
            assert!(tuned(collective) > 0, "{collective}: {} calls were tuned", tuned(collective));
        }
    }
}
