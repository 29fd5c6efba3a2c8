//! Traces: what is in them, how they survive, and that they never disturb the program.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, SystemTime};

use colltune_core::collective::Collective;
use colltune_tests::{
    Job, Mpi, colltune, folder, job, on_a_library, on_each_library, open_traces, read_log,
    read_trace, tool, traces,
};

fn exploring(mpi: Mpi, n_ranks: u32, db: &std::path::Path) -> Job {
    job(n_ranks)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode("explore")
        .seed(6)
}

/// Two ranks on one of several processors: those that the machine has are not those that the job has.
#[test]
fn ranks_that_a_cpuset_puts_on_one_processor_know_that_they_share_it() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let processors = |prefix: &[&str]| {
        let db = folder();
        // Open MPI would bind its ranks past the prefix.
        let job = exploring(mpi, 2, db.path()).prefix(prefix);
        let outcome = job
            .launcher_argument("--bind-to")
            .launcher_argument("none")
            .run("left", &[]);
        outcome.succeeds().prints("ok\n");
        let header = traces(db.path()).remove(0).header;
        let mut columns = header.context.into_iter();
        columns
            .find(|(name, _)| name == "processors")
            .expect("a column")
            .1
    };
    assert_eq!(
        processors(&["taskset", "-c", "0"]),
        "shared, 1 of this rank"
    );
}

on_each_library! {
    fn records_are_the_sampled_calls_and_alike_on_all_recording_ranks(mpi: Mpi) {
        for mode in ["explore", "record"] {
            let db = folder();
            let log = db.path().join("log");
            let outcome = exploring(mpi, 2, db.path()).mode(mode).log(&log).run("left", &[]);
            outcome.succeeds().prints("ok\n").is_silent();
            let (log, traces) = (read_log(&log, 2), traces(db.path()));
            assert_eq!(traces.len(), 2);
            for (rank, trace) in traces.iter().enumerate() {
                let header = &trace.header;
                assert_eq!((header.rank as usize, header.world_ranks, header.generation), (rank, 2, 0));
                assert_eq!(header.library, mpi.library().to_string());
                assert_eq!(header.clock, traces[0].header.clock, "ranks of one node share a clock");
                let records: Vec<_> = trace
                    .records
                    .iter()
                    .map(|record| (Some(record.comm), record.call, record.collective.name().to_owned(), record.message_bytes, trace.variant(record).to_owned()))
                    .collect();
                let sampled: Vec<_> = log[rank]
                    .iter()
                    .filter(|call| call.sampled)
                    .map(|call| (call.comm, call.index, call.collective.clone(), call.bytes, call.variant.clone()))
                    .collect();
                assert!(!sampled.is_empty());
                assert_eq!(records, sampled, "{mode}, rank {rank}");
                assert!(trace.records.iter().all(|record| record.drawn == (mode == "explore")));
                assert!(trace.records.iter().all(|record| record.duration_ns > 0 && record.n_ranks == record.ppn && record.nodes == 1));
                let ordered = trace.records.windows(2).all(|pair| pair[0].start_ns + pair[0].duration_ns <= pair[1].start_ns + 2);
                assert!(ordered, "calls of one rank follow each other");
            }
            // What both took part in overlaps in time on the common clock.
            let ends: BTreeMap<_, _> = traces[1].records.iter().map(|record| ((record.comm, record.call), (record.start_ns, record.start_ns + record.duration_ns))).collect();
            for record in traces[0].records.iter().filter(|record| record.collective == Collective::Allreduce) {
                let (start, end) = ends[&(record.comm, record.call)];
                let slack = 1_000_000;
                assert!(record.start_ns <= end + slack && start <= record.start_ns + record.duration_ns + slack, "an allreduce ended before the other rank began it");
            }
        }
    }

    fn a_killed_job_leaves_everything_before_its_last_review(mpi: Mpi) {
        let db = folder();
        let outcome = exploring(mpi, 2, db.path()).env("COLLTUNE_SETUP_AFTER", "1").run("ends", &["kill", "100"]);
        outcome.ends().claim(outcome.code != Some(0), "a rank was killed");
        outcome.claim(outcome.messages().is_empty() && outcome.stdout.lines().all(|line| !line.starts_with("colltune")), "the shim has a message");
        let open = open_traces(db.path());
        assert_eq!(open.len(), 2, "the traces of both ranks stay .open");
        for file in open {
            let trace = read_trace(&file);
            // A cell is reviewed first when it has eight samples.
            let mut of_cells = BTreeMap::new();
            trace.records.iter().for_each(|record| *of_cells.entry((record.collective, record.message_bytes)).or_insert(0) += 1);
            assert!(of_cells.values().any(|records| *records >= 8), "{} holds {of_cells:?}", file.display());
        }
    }

    fn a_full_trace_drops_records_and_changes_nothing_else(mpi: Mpi) {
        let db = folder();
        let outcome = exploring(mpi, 2, db.path()).env("COLLTUNE_RECORDS_PER_RUN", "7").run("left", &[]);
        outcome.succeeds().prints("ok\n").is_silent();
        let full = traces(db.path());
        assert_eq!(full.iter().map(|trace| trace.records.len()).collect::<Vec<_>>(), [7, 7]);
        let (db, log) = (folder(), folder());
        let log = log.path().join("log");
        let outcome = exploring(mpi, 2, db.path()).env("COLLTUNE_RECORDS_PER_RUN", "0").log(&log).run("left", &[]);
        outcome.succeeds().prints("ok\n").is_silent();
        assert!(read_log(&log, 2)[0].iter().any(|call| call.sampled), "drawing goes on");
        assert!(traces(db.path()).is_empty() && open_traces(db.path()).is_empty());
    }

    fn a_frequent_cell_leaves_room_for_a_rare_one(mpi: Mpi) {
        let db = folder();
        // In this mode the number of calls alone thins samples out, no measured time.
        let outcome = exploring(mpi, 2, db.path()).mode("record").run("frequent", &["200000", "40"]);
        outcome.succeeds().prints("ok\n").is_silent();
        for trace in traces(db.path()) {
            let rare = trace.records.iter().filter(|record| record.collective == Collective::Bcast).count();
            let frequent = trace.records.len() - rare;
            assert!((30..=40).contains(&rare), "{rare} records of 40 rare calls, less those before the set-up");
            assert!(frequent < 10_000 * 3 / 4, "{frequent} records of one cell");
        }
    }

    fn a_disk_that_fills_up_later_harms_nobody(mpi: Mpi) {
        let (db, kept) = (folder(), folder());
        let Some(job) = exploring(mpi, 2, db.path()).with_tmpfs(db.path(), "size=4m", kept.path()) else { return };
        let filler = db.path().join("filler");
        let outcome = job.env("COLLTUNE_SETUP_AFTER", "1").run("ends", &["fill", &filler.to_string_lossy()]);
        outcome.succeeds().claim(outcome.messages().is_empty(), "the shim has a message");
        outcome.prints("sum 2\n");
        let traces = traces(kept.path());
        assert_eq!(traces.len(), 2);
        for trace in traces {
            assert!(trace.records.len() >= 8 * 5, "{} records", trace.records.len());
        }
    }

    /// It holds for shared memory as well, in which MPI_Init of MPICH itself dies of it.
    fn a_file_size_limit_costs_records_and_nothing_else(mpi: Mpi) {
        // The header alone is longer than the second.
        for bytes in [400_000, 8 << 10] {
            let db = folder();
            let job = exploring(mpi, 2, db.path()).env("COLLTUNE_SETUP_AFTER", "1").env("OMPI_MCA_btl", "self,tcp");
            let (bytes, late) = (bytes.to_string(), ["limit", &bytes.to_string(), "late"]);
            let arguments = if mpi == Mpi::Mpich { &late[..] } else { &late[..2] };
            let outcome = job.run("ends", arguments);
            outcome.succeeds().prints("sum 2\n");
            if bytes == "400000" {
                outcome.is_silent();
                assert_eq!(traces(db.path()).len(), 2);
            } else {
                outcome.says(&["failed to write", "File too large"]);
                assert!(traces(db.path()).is_empty() && (mpi == Mpi::Mpich || open_traces(db.path()).is_empty()));
            }
        }
    }

    /// A program that closes all descriptors gets their numbers for files of its own.
    fn a_program_that_closes_the_descriptors_of_trace_and_log_keeps_its_own_file(mpi: Mpi) {
        let db = folder();
        let (own, log) = (db.path().join("own"), db.path().join("log"));
        let job = exploring(mpi, 2, db.path()).env("COLLTUNE_SETUP_AFTER", "1").log(&log);
        let outcome = job.run("ends", &["reuse", &own.to_string_lossy()]);
        outcome.succeeds().prints("sum 2\n").says(&["failed to write", "descriptor"]);
        assert_eq!(std::fs::read(own).unwrap(), b"mine");
        assert_eq!(traces(db.path()).len(), 2, "what was written before is kept");
        let lines = |rank: u32| std::fs::read_to_string(log.join(format!("rank-{rank}.jsonl"))).unwrap().lines().count();
        assert!((1..lines(1)).contains(&lines(0)), "rank 0 logs no more from there on");
    }

    fn thirty_jobs_write_to_one_database_at_once(mpi: Mpi) {
        let db = folder();
        // Singletons: what matters is thirty processes that create traces together.
        let program = colltune_tests::program(mpi, "ends");
        let script = format!(
            "processes=; for k in $(seq 30); do {} exit 3 & processes=\"$processes $!\"; done; \
             for process in $processes; do wait $process; test $? = 3 || exit 1; done",
            program.display()
        );
        let outcome = job(1).mpi(mpi).preload().db(db.path()).env("COLLTUNE_SETUP_AFTER", "1").run_command(&["sh", "-c", &script]);
        outcome.succeeds().prints(&"sum 1\n".repeat(30)).claim(outcome.messages().is_empty(), "the shim has a message");
        let traces = traces(db.path());
        let jobs: std::collections::BTreeSet<_> = traces.iter().map(|trace| trace.header.job.clone()).collect();
        assert_eq!((traces.len(), jobs.len()), (30, 30));
        assert!(traces.iter().all(|trace| !trace.records.is_empty()));
    }

    fn a_trainers_clock_that_is_ahead_takes_no_running_job_for_a_dead_one(mpi: Mpi) {
        let db = folder();
        exploring(mpi, 2, db.path()).run("left", &[]).succeeds();
        for trace in std::fs::read_dir(db.path().join("incoming")).unwrap() {
            // As they are while the job runs.
            let trace = trace.unwrap().path();
            std::fs::rename(&trace, format!("{}.open", trace.display())).unwrap();
        }
        let trains = || {
            let mut train = Command::new(colltune());
            train.args(["train", "--db"]).arg(db.path()).env("LD_PRELOAD", tool(mpi, "clock_ahead"));
            let output = train.output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        trains();
        let open = open_traces(db.path());
        assert_eq!(open.len(), 2, "they are left to the job");
        let hours_ago = SystemTime::now() - Duration::from_secs(2 * 3600);
        for trace in open {
            let file = std::fs::File::options().write(true).open(trace).unwrap();
            file.set_modified(hours_ago).unwrap();
        }
        trains();
        assert!(open_traces(db.path()).is_empty(), "a job that wrote nothing for two hours is gone");
    }

    /// As where nothing was sampled for long, or a file server was slow.
    fn a_training_that_takes_a_running_job_for_a_dead_one_costs_no_record(mpi: Mpi) {
        let (db, log) = (folder(), folder());
        let log = log.path().join("log");
        let train = format!(
            "touch -d '2 hours ago' $COLLTUNE_DB/incoming/*.trace.open && \
             env -u LD_PRELOAD {} train --db $COLLTUNE_DB --json >$COLLTUNE_DB/first",
            colltune().display()
        );
        let job = exploring(mpi, 2, db.path()).env("COLLTUNE_SETUP_AFTER", "1").log(&log);
        job.run("ends", &["shell", &train]).succeeds().prints("sum 2\n").is_silent();
        let trained = |text: &[u8]| {
            let report: serde_json::Value = serde_json::from_slice(text).expect("JSON");
            (report["records"].as_u64().unwrap(), report["libraries"][0]["records"].as_u64().unwrap())
        };
        let (before, _) = trained(&std::fs::read(db.path().join("first")).unwrap());
        let all = read_log(&log, 2).iter().flatten().filter(|call| call.sampled).count() as u64;
        assert!(0 < before && before < all, "{before} of {all} were taken while the job ran");
        let output = Command::new(colltune()).args(["train", "--json", "--db"]).arg(db.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(trained(&output.stdout), (all - before, all), "the others, and all of them once");
    }
}

on_a_library! {
    fn only_so_many_ranks_record(mpi: Mpi) {
        for (limit, per_node, expected) in [("1", "2", 1), ("32", "1", 1), ("32", "2", 2), ("0", "2", 0)] {
            let db = folder();
            let outcome = exploring(mpi, 3, db.path())
                .env("COLLTUNE_RECORDING_RANKS", limit)
                .env("COLLTUNE_RECORDING_RANKS_PER_NODE", per_node)
                .run("ends", &["exit", "0"]);
            outcome.succeeds().prints("sum 3\n").is_silent();
            let ranks: std::collections::BTreeSet<_> = traces(db.path()).iter().map(|trace| trace.header.rank).collect();
            assert_eq!(ranks.len(), expected, "recording_ranks = {limit}, recording_ranks_per_node = {per_node}");
        }
    }

    fn a_full_disk_at_the_start_is_said_once(mpi: Mpi) {
        let (db, kept) = (folder(), folder());
        let Some(job) = exploring(mpi, 2, db.path()).with_tmpfs(db.path(), "size=64k", kept.path()) else { return };
        let outcome = job.run("ends", &["exit", "0"]);
        outcome.succeeds().prints("sum 2\n").says(&["failed to write traces to", "No space left"]);
        assert!(traces(kept.path()).is_empty() && open_traces(kept.path()).is_empty(), "a trace without space is removed");
    }

    fn whatever_becomes_of_a_traces_file_the_program_goes_on(mpi: Mpi) {
        let faults = [
            ("truncate -s 0 $COLLTUNE_DB/incoming/*.open", "truncated"),
            ("rm -r $COLLTUNE_DB/incoming", "No such file"),
            ("mv $COLLTUNE_DB/incoming $COLLTUNE_DB/elsewhere; ln -s /dev/null $COLLTUNE_DB/incoming", "Not a directory"),
        ];
        for (fault, said) in faults {
            let db = folder();
            let outcome = exploring(mpi, 2, db.path()).env("COLLTUNE_SETUP_AFTER", "1").run("ends", &["shell", fault]);
            outcome.succeeds().prints("sum 2\n").says(&["failed to write", said]);
            assert!(traces(db.path()).is_empty(), "{fault}");
        }
    }

    fn a_read_only_database_is_said_once(mpi: Mpi) {
        let (db, kept) = (folder(), folder());
        let Some(job) = exploring(mpi, 2, db.path()).with_tmpfs(db.path(), "ro", kept.path()) else { return };
        let outcome = job.run("ends", &["exit", "0"]);
        outcome.succeeds().prints("sum 2\n").says(&["incoming", "Read-only file system", "nothing is recorded"]);
    }
}
