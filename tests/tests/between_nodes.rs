//! The library's communicators between the nodes: all ranks have them or none, and they go with the program's.

use std::time::Duration;

use colltune_tests::{
    Outcome, assert_ranks_agree, folder, job, on_each_library, on_nodes, read_log, runs_long, skip,
    tool,
};

const LONG: Duration = Duration::from_secs(900);

on_each_library! {
    fn a_communicator_between_nodes_that_fails_on_one_rank_means_default_on_all(mpi: Mpi) {
        let forced = ["allreduce=node:shm+default;bcast=node:lanes+default;reduce=node:lanes+default"];
        for force in forced {
            let log = folder();
            let outcome = on_nodes(mpi, "ABA")
                .force(force)
                .preload_tool(tool(mpi, "failing_split"))
                .log(log.path())
                .run("collectives", &["1"]);
            outcome.succeeds().prints("ok\n");
            let calls = read_log(log.path(), 3);
            assert_ranks_agree(&calls);
            let world: Vec<_> = calls.iter().flatten().filter(|call| (call.nodes, call.ppn) == (2, 2)).collect();
            assert!(world.len() > 100);
            world.iter().for_each(|call| assert_eq!(call.variant, "default", "{call:?}"));
        }
    }

    fn freed_communicators_leave_none_of_those_between_nodes(mpi: Mpi) {
        // Three ranks that spin on two cores would need minutes.
        if !mpi.is_openmpi() && !runs_long() {
            return;
        }
        // Far more than can be alive at once.
        let log = folder();
        let force = "allreduce=node:shm+default;reduce=node:shm+default;bcast=node:shm+default";
        let outcome = on_nodes(mpi, "ABA").force(force).log(log.path()).run("patterns", &["short", "3", "12000"]);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), 3);
        assert!(assert_ranks_agree(&log) > 2000);
        let all = log[0].len();
        let last: Vec<_> = log[0][all - all / 10..].iter().filter(|call| call.nodes > 1 && call.ppn > 1 && call.bytes > 0).collect();
        let own = last.iter().filter(|call| call.variant.starts_with("node")).count();
        assert!(own * 8 > last.len(), "{own} of the last {} calls ran over the nodes", last.len());
    }

    /// Open MPI makes none of a higher number beside a copy in which another thread waits for the other ranks.
    fn none_is_made_beside_a_copy_that_another_thread_makes(mpi: Mpi) {
        job(3).mpi(mpi).run("surroundings", &["meanwhile"]).succeeds().prints("ok\n");
        let tuned = on_nodes(mpi, "ABA").force("allreduce=node:shm+default").env("COLLTUNE_SETUP_AFTER", "1");
        tuned.run("surroundings", &["meanwhile"]).succeeds().prints("ok\n");
    }

    /// MPICH has some 2,000 ids for all communicators of a process.
    fn communicators_between_nodes_leave_nearly_all_ids_to_the_program(mpi: Mpi) {
        if mpi.is_openmpi() {
            return skip("Open MPI has more ids than a program takes").unwrap_or(());
        }
        // Three ranks that spin on two cores need minutes.
        if !runs_long() {
            return;
        }
        let program = ["alive", "3000", "9"];
        let alive = |outcome: &Outcome| outcome.stdout.strip_suffix(" alive\nok\n").and_then(|n| n.parse::<u64>().ok());
        let bare = job(3).mpi(mpi).deadline(LONG).run("many", &program);
        let tuned = on_nodes(mpi, "AAB").force("allreduce=node:shm+default").deadline(LONG).run("many", &program);
        let (without, with) = (alive(bare.succeeds()), alive(tuned.succeeds()));
        tuned.claim(without.is_some() && with.map(|with| with + 140) >= without, &format!("{with:?} alive, {without:?} without the shim"));
    }
}
