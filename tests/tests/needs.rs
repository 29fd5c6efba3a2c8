//! The shim pulls nothing in: it lives in processes without MPI, and wakes up only when asked.

use std::process::Command;

use colltune_tests::{folder, job, on_each_library};

/// Beside MPI_Barrier, which has no counts.
const TUNED: [&str; 16] = [
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Allgather",
    "MPI_Alltoall",
    "MPI_Reduce",
    "MPI_Allgatherv",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Exscan",
];
/// Functions without counts.
const OTHERS: [&str; 4] = ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Barrier"];

fn tool_output(tool: &str, arguments: &[&str], file: &std::path::Path) -> String {
    let output = Command::new(tool)
        .args(arguments)
        .arg(file)
        .output()
        .unwrap_or_else(|error| panic!("failed to start {tool}: {error}"));
    assert!(
        output.status.success(),
        "{tool}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

on_each_library! {
    fn the_shim_needs_no_mpi_library(mpi: Mpi) {
        let needs = tool_output("readelf", &["-d"], &mpi.shim());
        let needed: Vec<_> = needs.lines().filter(|line| line.contains("(NEEDED)")).collect();
        assert!(!needed.is_empty());
        for line in needed {
            let allowed = ["libc.so", "libgcc_s.so", "libm.so", "libdl.so", "libpthread.so", "ld-linux"];
            assert!(allowed.iter().any(|name| line.contains(name)), "{line}");
        }
        for line in tool_output("nm", &["-D", "--undefined-only"], &mpi.shim()).lines() {
            let symbol = line.split_whitespace().last().unwrap_or("");
            let foreign = ["MPI_", "PMPI_", "MPIX_", "MPIR_", "ompi_", "opal_", "mca_", "PMI"].iter().any(|prefix| symbol.starts_with(prefix));
            assert!(!foreign, "{symbol} is undefined in {}", mpi.shim().display());
        }
    }

    fn exactly_the_documented_symbols_are_exported(mpi: Mpi) {
        let text = tool_output("nm", &["-D", "--defined-only"], &mpi.shim());
        let mut exported: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
        exported.sort_unstable();
        let mut documented: Vec<_> = OTHERS.map(str::to_owned).into();
        documented.extend(TUNED.map(str::to_owned));
        // Open MPI 4.1 has no large counts.
        if mpi == colltune_tests::Mpi::Mpich {
            documented.extend(TUNED.map(|name| format!("{name}_c")));
        } else {
            // Its Fortran goes past the C functions.
            let fortran = [&OTHERS[..], &TUNED].concat();
            for name in fortran.into_iter().map(str::to_lowercase) {
                documented.extend([format!("{name}_"), format!("{name}_f08_")]);
            }
        }
        documented.sort_unstable();
        assert_eq!(exported, documented);
    }

    fn processes_without_mpi_live_under_the_preload(mpi: Mpi) {
        let db = folder();
        for (command, output) in [
            (&["true"][..], ""),
            (&["sh", "-c", "echo one; (echo two)"], "one\ntwo\n"),
            (&["python3", "-c", "import ctypes, subprocess; subprocess.run(['true'], check=True); print('py')"], "py\n"),
        ] {
            let outcome = job(1).mpi(mpi).preload().db(db.path()).mode("explore").run_command(command);
            outcome.succeeds().prints(output).is_silent();
        }
        assert_eq!(std::fs::read_dir(db.path()).unwrap().count(), 0, "nothing may be written");
    }

    fn without_settings_nothing_happens(mpi: Mpi) {
        // No handshake either: it would wait for the rank without the shim.
        let ranks = [colltune_tests::part(1, "collectives", &["1"]), colltune_tests::part(1, "collectives", &["1"]).without_shim()];
        let outcome = job(2).mpi(mpi).preload().env("COLLTUNE_HANDSHAKE_TIMEOUT", "1h").run_parts(&ranks);
        outcome.succeeds().prints("ok\n").is_silent();
        let db = folder();
        let outcome = job(2).mpi(mpi).preload().db(db.path()).mode("off").run_parts(&ranks);
        outcome.succeeds().prints("ok\n").is_silent();
        assert_eq!(std::fs::read_dir(db.path()).unwrap().count(), 0, "off writes nothing");
    }
}
