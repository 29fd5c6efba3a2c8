//! Errors in the middle of our own algorithms: they reach the program's handler as the library's own do,
//! and no rank beside waits for ever.

use colltune_tests::{
    Job, Mpi, assert_ranks_agree, folder, job, on_each_library, on_nodes, read_log, tool,
};

/// What each rank says of the errors that it got, in the order of ranks.
#[track_caller]
fn told(job: Job, arguments: &[&str]) -> Vec<String> {
    let outcome = job.run("faults", arguments);
    outcome.succeeds();
    // MPICH's transport may say there that a message was left.
    let lines = outcome
        .stdout
        .lines()
        .filter(|line| line.starts_with("rank "));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

/// How often a handler is called that counts.
const HANDLERS: [(&str, u32); 2] = [("return", 0), ("handler", 2)];

on_each_library! {
    fn a_rank_that_cannot_go_on_lets_the_others_of_its_node_return_an_error(mpi: Mpi) {
        for (handler, handled) in HANDLERS {
            let job = job(3)
                .mpi(mpi)
                .preload()
                .preload_tool(tool(mpi, "failing_pack"))
                .force("allgather=node:shm");
            let all = told(job, &[handler, "packed", "100"]);
            let wanted = (0..3).map(|rank| format!("rank {rank}: first no_mem second no_mem handled {handled}"));
            assert_eq!(all, wanted.collect::<Vec<_>>());
        }
    }

    fn a_leader_whose_call_between_nodes_fails_lets_its_node_return_an_error(mpi: Mpi) {
        for (handler, handled) in HANDLERS {
            let job = on_nodes(mpi, "ABB")
                .preload_tool(tool(mpi, "failing_bcast"))
                .force("bcast=node:shm+default");
            let all = told(job, &[handler, "truncated", "4"]);
            // Rank 1 leads ranks 1 and 2.
            let failed = |rank| format!("rank {rank}: first other second other handled {handled}");
            let right = "rank 0: first success second success handled 0".to_owned();
            assert_eq!(all, [right, failed(1), failed(2)]);
        }
    }

    fn messages_that_are_too_long_end_as_the_librarys_own_do(mpi: Mpi) {
        for (handler, _) in HANDLERS {
            // Short ones, and such as ask the receiver first.
            for longs in ["1000", "100000"] {
                let arguments = [handler, "truncated", longs];
                let bare = told(job(2).mpi(mpi), &arguments);
                assert!(bare[1].contains("first truncate"), "{bare:?}");
                let forced = job(2).mpi(mpi).preload().force("bcast=p2p:binomial");
                let mut forced = told(forced, &arguments);
                if mpi == Mpi::Mpich {
                    // There a receive's error goes to the world's handler from MPI_Wait, whatever the
                    // handler of its own communicator, and once more from the call.
                    forced[1] = forced[1].replace("handled 4", "handled 2");
                }
                assert_eq!(forced, bare, "{longs} longs");
            }
        }
    }

    fn room_that_one_rank_lacks_means_default_on_all(mpi: Mpi) {
        for variant in ["node:shm", "p2p:binomial"] {
            let log = folder();
            let job = job(3).mpi(mpi).preload().force(&format!("bcast={variant}")).log(log.path());
            let all = told(job, &["handler", "memory", "4000000"]);
            let wanted = (0..3).map(|rank| format!("rank {rank}: first success second success handled 0"));
            assert_eq!(all, wanted.collect::<Vec<_>>());
            let log = read_log(log.path(), 3);
            assert_ranks_agree(&log);
            let ran: Vec<_> = log[1].iter().filter(|call| call.collective == "bcast").collect();
            let names: Vec<_> = ran.iter().map(|call| call.variant.as_str()).collect();
            assert_eq!(names, [variant, "default", "default"]);
        }
    }
}
