//! Ranks that die: where the launcher lets the others go on, none of them waits in shared memory for ever.

use colltune_tests::{Job, Mpi, folder, job, on_each_library, part, program, read_log, skip, tool};

const ENDS_ALL: &str = "MPICH's launcher ends such a job by itself";

on_each_library! {
    fn the_others_of_a_node_are_told_that_a_rank_is_gone(mpi: Mpi) {
        if !mpi.is_openmpi() {
            return skip(ENDS_ALL).unwrap_or(());
        }
        for variant in ["node:shm", "node:cma"] {
            let outcome = job(4)
                .mpi(mpi)
                .preload()
                .launcher_argument("--enable-recovery")
                .force(&format!("allreduce={variant}"))
                .run("killed", &[]);
            outcome.ends();
            for rank in 0..3 {
                let told = format!("rank {rank} was told\n");
                outcome.claim(outcome.stdout.contains(&told), "a rank was not told");
            }
        }
    }

    fn whoever_waits_long_says_so_once(mpi: Mpi) {
        if !mpi.is_openmpi() {
            return skip(ENDS_ALL).unwrap_or(());
        }
        let outcome = job(4)
            .mpi(mpi)
            .preload()
            .launcher_argument("--enable-recovery")
            .env("COLLTUNE_WAIT_WARNING_AFTER", "0s")
            .force("allreduce=node:shm")
            .run("killed", &[]);
        outcome.ends();
        let words = outcome.stderr.matches("in MPI_Allreduce for ranks of its node").count();
        outcome.claim((1..=3).contains(&words), "not every rank that waits says so, and once");
    }

    fn where_ranks_may_die_own_families_stand_aside(mpi: Mpi) {
        let log = folder();
        let tolerant = job(2).mpi(mpi).preload();
        // Each library's own switch; MPICH itself fails with it.
        let tolerant = match mpi.is_openmpi() {
            true => tolerant.env("OMPI_MCA_mpi_ft_enable", "1"),
            false => tolerant.preload_tool(tool(mpi, "late_switch")).env("LATE_SWITCH", "MPIR_CVAR_ENABLE_FT"),
        };
        let forced = tolerant.force("allreduce=node:shm;bcast=native:binomial").log(log.path());
        forced.run("collectives", &["1"]).succeeds().prints("ok\n");
        let all = read_log(log.path(), 2);
        assert!(all.iter().flatten().all(|call| call.variant == "default"));
    }
}

/// There a process has another number than here, which may be free here or another process's.
#[test]
fn a_late_neighbour_in_another_pid_namespace_is_not_taken_for_dead() {
    let probe = std::process::Command::new("unshare")
        .args(["--pid", "--fork", "true"])
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        return skip("nobody may make a namespace of processes here").unwrap_or(());
    }
    let mpi = Mpi::OpenMpi;
    let log = folder();
    let late = program(mpi, "late");
    let late = late.to_str().expect("a path in UTF-8");
    let elsewhere = ["--pid", "--fork", late, "3"];
    // Of Open MPI's own copies from process to process the same is true.
    let job = job(2)
        .mpi(mpi)
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    let job = job.preload().force("allreduce=node:shm").log(log.path());
    let outcome = job.run_parts(&[
        part(1, "late", &["3"]),
        part(1, "/usr/bin/unshare", &elsewhere),
    ]);
    outcome.succeeds();
    for rank in 0..2 {
        let right = format!("rank {rank} is right\n");
        outcome.claim(outcome.stdout.contains(&right), "a rank is not right");
    }
    let all = read_log(log.path(), 2);
    assert!(
        all.iter()
            .all(|calls| calls[20..].iter().all(|call| call.variant == "node:shm"))
    );
}

/// Open MPI 5.0 lets the others go on.
#[test]
fn a_job_goes_on_without_a_dead_rank_as_the_library_does() {
    let Some(mpi) = Mpi::OpenMpi5.installed() else {
        return;
    };
    let go_on = |job: Job| {
        let tolerant = job
            .mpi(mpi)
            .launcher_argument("--with-ft")
            .launcher_argument("ulfm");
        let outcome = tolerant.run("survivors", &[]);
        outcome.ends();
        let says = outcome.stdout.contains("3 are left, right 200 times\n");
        outcome.claim(says, "the others do not go on");
    };
    go_on(job(4));
    for force in ["allreduce=node:shm", "allreduce=native:ring", ""] {
        let log = folder();
        let shimmed = job(4).preload().log(log.path());
        let shimmed = match force {
            "" => shimmed.mode("explore"),
            force => shimmed.force(force),
        };
        go_on(shimmed.env("COLLTUNE_SETUP_AFTER", "1"));
        let all = read_log(log.path(), 3);
        assert!(all.iter().flatten().count() > 3 * 200);
        assert!(
            all.iter().flatten().all(|call| call.variant == "default"),
            "{force}"
        );
    }
}
