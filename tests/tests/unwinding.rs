//! Error handlers and operations that leave a call by an exception or a longjmp, and handlers that call collectives: the
//! program goes on as without the shim, and where ranks have lost each other they get an error and do not hang.

use colltune_tests::{Job, Mpi, Outcome, folder, job, on_each_library, read_log, tool, untabled};

const N_RANKS: u32 = 2;
const ROUNDS: &str = "40";
/// How a call is left.
const BOTH: [&str; 2] = ["throw", "jump"];

/// What each rank says, in the order of ranks.
fn told(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stdout.lines();
    let mut lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    lines
}

/// The program ends as it does without the shim, under each of `jobs`.
fn goes_on_as_without_the_shim(mpi: Mpi, ways: &[&str], what: &str, jobs: &[&dyn Fn(Job) -> Job]) {
    for &way in ways {
        let arguments = [way, what, ROUNDS];
        let bare = job(N_RANKS).mpi(mpi).run("unwinding", &arguments);
        bare.succeeds();
        assert!(bare.stdout.contains("ok\n"), "{}", bare.stdout);
        for with in jobs {
            let tuned = with(job(N_RANKS).mpi(mpi).preload()).run("unwinding", &arguments);
            tuned.succeeds();
            assert_eq!(told(&tuned), told(&bare), "{}", tuned.command);
        }
    }
}

/// Ways in which a call that is refused may be found by the tuner: before a set-up that comes soon behind such calls,
/// at which ranks that had counted otherwise would meet in other calls, in cells, drawn and forced. Without records
/// or reports: `publish`.
fn is_as_if_the_call_was_never_made(mpi: Mpi, ways: &[&str], what: &str) {
    let dbs: Vec<_> = (0..3).map(|_| folder()).collect();
    let record = |job: Job, db: usize, after: &str| {
        let job = job.db(dbs[db].path()).mode("record");
        job.env("COLLTUNE_SETUP_AFTER", after)
    };
    goes_on_as_without_the_shim(
        mpi,
        ways,
        what,
        &[
            &|job| record(job, 0, "7"),
            &|job| record(job, 1, "1"),
            &|job| {
                job.db(dbs[2].path())
                    .mode("explore")
                    .seed(5)
                    .env("COLLTUNE_SETUP_AFTER", "1")
            },
            &|job| job.force("allreduce=p2p:recursive_doubling;bcast=node:shm"),
        ],
    );
}

on_each_library! {
    /// Before the first message: nothing is lost, whatever the variant.
    fn a_handler_that_leaves_a_wrong_call_leaves_the_tuner_usable(mpi: Mpi) {
        let db = folder();
        let native = "bcast=native:binomial";
        goes_on_as_without_the_shim(mpi, &BOTH, "handler", &[
            &|job| job.db(db.path()).mode("explore").seed(3).env("COLLTUNE_SETUP_AFTER", "1"),
            &|job| job.db(db.path()).mode("record"),
            &|job| job.force(native),
            &|job| job.force("bcast=node:shm"),
            &|job| job.force("bcast=p2p:binomial"),
        ]);
    }

    /// The other rank has counted and reviewed the call; this one does so before its next.
    fn ranks_agree_on_samples_behind_a_call_that_one_of_them_left(mpi: Mpi) {
        let db = folder();
        let native = "bcast=native:binomial";
        goes_on_as_without_the_shim(mpi, &BOTH, "alone", &[
            &|job| job.db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1"),
            &|job| job.force(native),
        ]);
    }

    /// Its samples count no more, and its state may be the next one's.
    fn a_handler_that_frees_the_communicator_of_a_call_leaves_the_tuner_usable(mpi: Mpi) {
        let db = folder();
        // In MPICH an error of a message of ours reaches the world's handler as well.
        let forced = if mpi == Mpi::Mpich { "bcast=native:binomial" } else { "bcast=p2p:binomial" };
        goes_on_as_without_the_shim(mpi, &["free"], "alone", &[
            &|job| job.db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1"),
            &|job| job.force(forced).env("COLLTUNE_SETUP_AFTER", "1"),
        ]);
    }

    /// It has made no call at all, whatever its tuner had counted by then.
    fn a_handler_that_leaves_a_wrong_call_of_one_rank_alone_leaves_the_ranks_agreed(mpi: Mpi) {
        is_as_if_the_call_was_never_made(mpi, &BOTH, "lone");
    }

    /// What it calls there is the communicator's next call, on this rank as on the others.
    fn a_handler_that_calls_collectives_on_the_wrong_calls_communicator_leaves_the_ranks_agreed(mpi: Mpi) {
        is_as_if_the_call_was_never_made(mpi, &["call"], "lone");
        is_as_if_the_call_was_never_made(mpi, &["call"], "handler");
    }

    /// Ranks agree while a communicator's state is borrowed: what the handler calls there is none of ours.
    fn a_handler_that_an_agreement_calls_may_call_collectives_at_every_level_of_threads(mpi: Mpi) {
        for level in ["single", "multiple"] {
            // In a set-up, and in a review.
            for from in ["1", "4"] {
                let db = folder();
                let job = job(3).mpi(mpi).preload().preload_tool(tool(mpi, "failing_agreement"));
                let job = job.db(db.path()).mode("explore").seed(4).env("COLLTUNE_SETUP_AFTER", "1");
                job.env("FAILING_FROM", from).run("handler_calls", &[level]).succeeds().prints("ok\n");
            }
        }
    }

    /// Behind it some ranks call from far below, where the stack of what was left may look untouched.
    fn a_handler_that_leaves_a_call_is_noticed_where_the_stack_cannot_be_followed(mpi: Mpi) {
        let db = folder();
        let program = untabled(mpi, "left_deeper");
        let run = |job: Job| {
            let outcome = job.run_command(&[program.to_str().expect("it is text"), "6"]);
            outcome.succeeds().prints("ok\n");
        };
        let job = || job(N_RANKS).mpi(mpi);
        run(job());
        run(job().preload().db(db.path()).mode("explore").seed(2).env("COLLTUNE_SETUP_AFTER", "1"));
        for family in ["native:recursive_doubling", "p2p:recursive_doubling", "node:shm"] {
            run(job().preload().force(&format!("allreduce={family}")));
        }
    }

    /// The others review the samples of the call that was left, while this one calls something else.
    fn a_call_that_is_left_is_accounted_for_before_another_communicators(mpi: Mpi) {
        let db = folder();
        goes_on_as_without_the_shim(mpi, &["throw"], "apart", &[
            &|job| job.db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1"),
        ]);
    }

    fn an_operation_that_leaves_the_librarys_reductions_leaves_the_tuner_usable(mpi: Mpi) {
        let db = folder();
        let native = "allreduce=native:recursive_doubling";
        goes_on_as_without_the_shim(mpi, &BOTH, "op", &[
            &|job| job.db(db.path()).mode("record").env("COLLTUNE_SETUP_AFTER", "1"),
            &|job| job.force(native),
        ]);
    }

    fn an_operation_that_throws_in_a_schedule_leaves_it_usable(mpi: Mpi) {
        let bare = job(N_RANKS).mpi(mpi).run("unwinding", &["throw", "op", ROUNDS]);
        let tuned = job(N_RANKS).mpi(mpi).preload().force("allreduce=p2p:recursive_doubling");
        let tuned = tuned.run("unwinding", &["throw", "op", ROUNDS]);
        tuned.succeeds();
        assert_eq!(told(&tuned), told(&bare));
    }

    /// Its messages cannot be distinguished from later ones.
    fn an_operation_that_jumps_out_of_a_schedule_ends_the_job_with_a_message(mpi: Mpi) {
        let tuned = job(N_RANKS).mpi(mpi).preload().force("allreduce=p2p:recursive_doubling");
        let outcome = tuned.run("unwinding", &["jump", "op", "3"]);
        outcome.ends();
        outcome.claim(outcome.code != Some(0), "the job went on");
        outcome.claim(outcome.stderr.contains("cannot go on in MPI_Allreduce"), "no rank says why");
    }

    /// How far the ranks are in their node's memory is unknown: later calls there are errors on all of them.
    fn an_operation_that_leaves_a_nodes_memory_makes_errors_of_later_calls(mpi: Mpi) {
        for way in ["throw", "jump"] {
            let tuned = job(N_RANKS).mpi(mpi).preload().force("allreduce=node:shm");
            let outcome = tuned.run("unwinding", &[way, "op", "3"]);
            outcome.ends();
            outcome.claim(outcome.stderr.contains("left a collective in the middle"), "no rank says so");
            for rank in told(&outcome).iter().filter(|line| line.starts_with("rank")) {
                outcome.claim(!rank.ends_with("errors 0"), "a rank was not told");
            }
        }
    }

    /// What is found on the stack is not tuned inside a tuned call; nothing else stops it.
    fn a_tools_collective_inside_a_call_is_none_of_ours(mpi: Mpi) {
        let log = folder();
        let job = job(N_RANKS).mpi(mpi).preload().preload_tool(tool(mpi, "calling_tool"));
        job.force("barrier=node:shm").log(log.path()).run("lied_to", &[]).succeeds();
        for calls in read_log(log.path(), N_RANKS) {
            let of = |name: &str| calls.iter().filter(|call| call.collective == name).count();
            assert_eq!([of("barrier"), of("allreduce")], [1, 10]);
        }
    }
}
