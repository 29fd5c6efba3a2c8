//! The shim pulls nothing in: it lives in processes without MPI, and wakes up only when asked.

use std::process::Command;

use colltune_tests::{folder, job, on_each_library};

/// Tuned, beside MPI_Barrier, which has no counts.
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
/// On the neighbours of a topology; they pass through.
const NEIGHBORS: [&str; 5] = [
    "MPI_Neighbor_allgather",
    "MPI_Neighbor_allgatherv",
    "MPI_Neighbor_alltoall",
    "MPI_Neighbor_alltoallv",
    "MPI_Neighbor_alltoallw",
];
/// What starts and completes requests.
const REQUESTS: [&str; 11] = [
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Start",
    "MPI_Startall",
    "MPI_Request_free",
];
/// Functions without counts.
const OTHERS: [&str; 9] = [
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Barrier",
    "MPI_Intercomm_merge",
    "MPI_Comm_free",
    "MPI_Comm_disconnect",
    "MPI_Comm_idup",
    "MPI_Comm_idup_with_info",
];

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

/// The nonblocking and the persistent function of a blocking one.
fn passing(mpi: colltune_tests::Mpi, name: &str) -> [String; 2] {
    let rest = name.strip_prefix("MPI_").unwrap_or(name);
    // Open MPI 4.1 has persistent collectives as an extension.
    let prefix = if mpi.is_openmpi() { "MPIX_" } else { "MPI_" };
    [
        format!("MPI_I{}", rest.to_lowercase()),
        format!("{prefix}{rest}_init"),
    ]
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
        let moving = [&TUNED[..], &NEIGHBORS].concat();
        let mut counted: Vec<String> = moving.iter().flat_map(|name| passing(mpi, name)).collect();
        counted.extend([&TUNED[..], &NEIGHBORS].concat().into_iter().map(str::to_owned));
        documented.extend(passing(mpi, "MPI_Barrier"));
        documented.extend(REQUESTS.map(str::to_owned));
        // Open MPI 4.1 has no large counts.
        if mpi == colltune_tests::Mpi::Mpich {
            documented.extend(counted.iter().map(|name| format!("{name}_c")));
            // Functions of mpi_f08 without buffers.
            let without = [&OTHERS[..], &REQUESTS].concat().into_iter().map(str::to_owned);
            let fortran = without.chain(passing(mpi, "MPI_Barrier"));
            documented.extend(fortran.map(|name| format!("{}_f08_", name.to_lowercase())));
        }
        documented.extend(counted);
        if mpi == colltune_tests::Mpi::OpenMpi {
            // Its Fortran goes past the C functions.
            let fortran: Vec<String> = documented.iter().map(|name| name.to_lowercase()).collect();
            documented.extend(fortran.iter().flat_map(|name| [format!("{name}_"), format!("{name}_f08_")]));
            let agreements = ["MPIX_Comm_iagree", "mpix_comm_iagree_", "mpix_comm_iagree_f08_"];
            documented.extend(agreements.map(str::to_owned));
        }
        // What `colltune.h` finds.
        documented.extend(["colltune_choose", "colltune_done"].map(str::to_owned));
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
