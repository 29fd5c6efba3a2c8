//! Where a job's time went: what a job says of itself when it ends, in every mode, and that it costs nothing.

use std::path::Path;

use colltune_core::account::{Exit, JobSummary, OfCollective};
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, Mpi, folder, job, on_a_library, on_each_library, open_to_all, tool, traces,
};

const MODES: [&str; 4] = ["explore", "exploit", "record", "off"];
const RANKS: u64 = 2;
/// What `frequent` calls on each rank, the last sum included.
const ALLREDUCES: u64 = 3_000 + 1;
const BCASTS: u64 = 20;
const ARGUMENTS: [&str; 2] = ["3000", "20"];

fn shimmed(mpi: Mpi) -> Job {
    job(RANKS as u32).mpi(mpi).preload()
}

/// The lines of a file, each one object.
fn lines(file: &Path) -> Vec<JobSummary> {
    let text = std::fs::read_to_string(file).expect("the file is there");
    assert!(text.ends_with('\n'), "{text}");
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

fn only_line(file: &Path) -> JobSummary {
    let lines = lines(file);
    assert_eq!(lines.len(), 1);
    lines.into_iter().next().expect("one")
}

/// The files of a database's ledger.
fn ledger(db: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(db.join("incoming")).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut runs: Vec<_> = paths
        .filter(|path| !path.to_string_lossy().ends_with(".trace"))
        .collect();
    runs.sort();
    runs
}

fn part(summary: &JobSummary, collective: Collective) -> &OfCollective {
    let of = |one: &&OfCollective| one.collective == collective;
    summary
        .by_collective
        .iter()
        .find(of)
        .expect("it was called")
}

/// Whether two times are the same, but for rounding.
fn is_about(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(1.0)
}

fn adds_up(summary: &JobSummary) {
    let parts = &summary.by_collective;
    assert_eq!(
        summary.calls,
        parts.iter().map(|one| one.calls).sum::<u64>()
    );
    let seconds: f64 = parts.iter().map(|one| one.seconds.mean).sum();
    assert!(is_about(summary.collectives_s.mean, seconds), "{summary:?}");
    for one in parts {
        assert_eq!(
            one.calls,
            one.by_size.iter().map(|size| size.calls).sum::<u64>()
        );
        let seconds: f64 = one.by_size.iter().map(|size| size.seconds).sum();
        assert!(is_about(one.seconds.mean, seconds), "{one:?}");
        assert!(one.seconds.mean > 0.0 && one.seconds.max >= one.seconds.mean * (1.0 - 1e-9));
    }
    let whole = summary.collectives_s;
    assert!(
        whole.mean <= whole.max * (1.0 + 1e-9) && whole.max <= summary.wall_s,
        "{summary:?}"
    );
    assert!(summary.best_possible_gain >= 1.0);
    assert!(
        summary
            .waiting_share
            .is_none_or(|share| (0.0..=1.0).contains(&share))
    );
}

on_each_library! {
    fn every_call_is_counted_in_every_mode_and_the_times_add_up(mpi: Mpi) {
        for mode in MODES {
            let (db, file) = (folder(), folder());
            let file = file.path().join("runs.jsonl");
            let outcome = shimmed(mpi).db(db.path()).mode(mode).seed(3).env("COLLTUNE_SUMMARY", &file).run("frequent", &ARGUMENTS);
            outcome.succeeds().prints("ok\n").is_silent();
            let summary = only_line(&file);
            adds_up(&summary);
            assert_eq!((summary.schema, summary.mode.as_str(), summary.ranks, summary.nodes), (2, mode, RANKS, 1));
            assert_eq!((summary.program.as_str(), summary.generation, summary.passed), ("frequent", 0, 0));
            assert_eq!(summary.library, mpi.library().to_string());
            assert_eq!(summary.calls, RANKS * (ALLREDUCES + BCASTS), "{mode}");
            let allreduce = part(&summary, Collective::Allreduce);
            // Of 8 bytes, and of 4.
            assert_eq!((allreduce.calls, allreduce.by_size.len(), allreduce.by_size[0].bytes), (RANKS * ALLREDUCES, 1, 4));
            let bcast = part(&summary, Collective::Bcast);
            assert_eq!((bcast.calls, bcast.by_size[0].bytes), (RANKS * BCASTS, 65_536));
            assert_eq!(summary.tuned_share > 0.0, mode == "explore", "{mode}");
            assert!(summary.waiting_share.is_none() || ["explore", "record"].contains(&mode));
            assert_eq!(traces(db.path()).len() as u64, if ["explore", "record"].contains(&mode) { RANKS } else { 0 });
            // The ledger has the same.
            let runs = ledger(db.path());
            assert_eq!(runs.len(), 1, "{mode}: {runs:?}");
            assert_eq!(runs[0].file_name().and_then(|name| name.to_str()), Some(format!("{}.run", summary.job).as_str()));
            let of_run = lines(&runs[0]);
            assert_eq!(of_run.len(), 2, "as it began, and as it ended");
            assert_eq!((of_run[0].exit, &of_run[0].job), (Exit::Missing, &summary.job));
            assert_eq!(of_run[1], summary);
            assert_eq!((summary.exit, summary.ppn, summary.seed > 0), (Exit::Finalized, RANKS, true));
            assert_eq!(summary.sampled > 0, ["explore", "record"].contains(&mode), "{mode}");
            assert_eq!(summary.overhead_s.mean > 0.0, mode != "off", "{mode}: {:?}", summary.overhead_s);
            assert!(summary.overhead_s.max <= summary.wall_s);
        }
    }

    /// In the environment alone `off` does nothing; `colltune run --mode off --db DIR` asks for it.
    fn a_job_that_is_off_is_in_the_ledger_where_that_is_asked_for(mpi: Mpi) {
        let db = folder();
        let off = || shimmed(mpi).db(db.path()).mode("off");
        off().run("frequent", &ARGUMENTS).succeeds().prints("ok\n").is_silent();
        assert!(ledger(db.path()).is_empty());
        off().env("COLLTUNE_LEDGER", "1").run("frequent", &ARGUMENTS).succeeds().prints("ok\n").is_silent();
        let run = lines(&ledger(db.path())[0]).pop().expect("its end");
        assert_eq!((run.mode.as_str(), run.exit, run.calls), ("off", Exit::Finalized, RANKS * (ALLREDUCES + BCASTS)));
        assert_eq!((run.tuned_share, run.sampled), (0.0, 0));
    }

    /// Without a database, too; and nothing else of what the environment asks for is done.
    fn a_job_that_is_off_is_counted_where_a_summary_is_asked_for_and_nothing_is_steered(mpi: Mpi) {
        let folder = folder();
        let (file, log) = (folder.path().join("runs.jsonl"), folder.path().join("log"));
        let off = || shimmed(mpi).mode("off").force("allreduce=p2p:recursive_doubling").log(&log);
        off().run("frequent", &ARGUMENTS).succeeds().prints("ok\n").is_silent();
        assert!(!file.exists() && !log.exists());
        off().env("COLLTUNE_SUMMARY", &file).run("frequent", &ARGUMENTS).succeeds().prints("ok\n").is_silent();
        let summary = only_line(&file);
        assert_eq!((summary.mode.as_str(), summary.tuned_share, summary.calls), ("off", 0.0, RANKS * (ALLREDUCES + BCASTS)));
        let [refused] = &summary.refused[..] else { panic!("{:?}", summary.refused) };
        assert_eq!((refused.cause.as_str(), refused.calls), ("mode", summary.calls));
        assert!(!log.exists());
        // A summary alone steers nothing either.
        shimmed(mpi).env("COLLTUNE_SUMMARY", &file).run("frequent", &ARGUMENTS).succeeds().prints("ok\n").is_silent();
        let [_, alone] = &lines(&file)[..] else { panic!("two jobs") };
        assert_eq!((alone.mode.as_str(), alone.calls), ("off", summary.calls));
    }

    fn what_runs_another_variant_is_counted_by_call(mpi: Mpi) {
        let native = if mpi.is_openmpi() { "native:basic_linear" } else { "native:recursive_doubling" };
        for variant in ["p2p:recursive_doubling", "node:shm", native] {
            let folder = folder();
            let file = folder.path().join("runs.jsonl");
            let forced = shimmed(mpi).force(&format!("allreduce={variant}")).env("COLLTUNE_SUMMARY", &file);
            forced.run("frequent", &ARGUMENTS).succeeds().prints("ok\n").is_silent();
            let summary = only_line(&file);
            adds_up(&summary);
            assert_eq!(part(&summary, Collective::Allreduce).tuned_share, 1.0, "{variant}");
            assert_eq!(part(&summary, Collective::Bcast).tuned_share, 0.0);
            assert_eq!(summary.calls, RANKS * (ALLREDUCES + BCASTS), "{variant}");
        }
    }

    fn calls_that_pass_through_stand_apart_whatever_the_threads(mpi: Mpi) {
        for (arguments, threads) in [(&["4"][..], 1), (&["4", "threads"], 3)] {
            let folder = folder();
            let file = folder.path().join("runs.jsonl");
            let outcome = shimmed(mpi).env("COLLTUNE_SUMMARY", &file).run("passing", arguments);
            outcome.succeeds().prints("ok\n").is_silent();
            let summary = only_line(&file);
            // In each round nonblocking ones, on neighbours both ways; before, persistent ones are made.
            assert_eq!(summary.passed, RANKS * threads * (4 * (22 + 5) + 22));
            assert_eq!(summary.calls, RANKS, "the program's one blocking call");
        }
    }

    fn jobs_at_once_append_whole_lines(mpi: Mpi) {
        let folder = folder();
        let file = folder.path().join("runs.jsonl");
        let run = || {
            let job = shimmed(mpi).env("COLLTUNE_SUMMARY", &file);
            job.run("frequent", &["100", "10"]).succeeds().prints("ok\n").is_silent();
        };
        std::thread::scope(|scope| {
            (0..3).for_each(|_| { scope.spawn(run); });
        });
        run();
        let mut jobs: Vec<_> = lines(&file).into_iter().map(|summary| summary.job).collect();
        jobs.sort();
        jobs.dedup();
        assert_eq!(jobs.len(), 4);
    }

    /// One number is shorter than a segment.
    fn calls_that_a_variant_does_not_apply_to_are_counted_with_the_reason(mpi: Mpi) {
        let folder = folder();
        let file = folder.path().join("runs.jsonl");
        let forced = || shimmed(mpi).force("allreduce=p2p:segmented_ring:segsize=16KiB");
        let outcome = forced().env("COLLTUNE_SUMMARY", "1").run("frequent", &["100", "10"]);
        outcome.succeeds().prints("ok\n");
        let sentence = "202 calls of allreduce: they lack what the variant needs";
        let messages = outcome.messages();
        assert!(messages.iter().any(|one| one.contains(sentence)), "{messages:?}");
        forced().env("COLLTUNE_SUMMARY", &file).run("frequent", &["100", "10"]).succeeds();
        let summary = only_line(&file);
        let needs: Vec<_> = summary.refused.iter().filter(|one| one.was_meant()).collect();
        let [refused] = needs[..] else { panic!("{:?}", summary.refused) };
        assert_eq!((refused.calls, &*refused.cause), (RANKS * 101, "needs"));
        assert_eq!(summary.tuned_share, 0.0);
    }

    /// Where the bound says little, that is said, too.
    fn a_run_says_whether_its_ranks_share_processors(mpi: Mpi) {
        let processors = std::fs::read_to_string("/proc/cpuinfo").expect("the system tells");
        let processors = processors.lines().filter(|line| line.starts_with("processor")).count();
        for ranks in [1, 5] {
            let shares = ranks as usize > processors;
            let folder = folder();
            let file = folder.path().join("runs.jsonl");
            let run = |summary: &std::path::Path| {
                let job = job(ranks).mpi(mpi).preload().mode("off");
                job.env("COLLTUNE_SUMMARY", summary).run("frequent", &["100", "10"])
            };
            run(&file).succeeds();
            assert_eq!(only_line(&file).shares_processors, shares, "{ranks} ranks on {processors} processors");
            let said = run(std::path::Path::new("1")).messages().concat();
            assert_eq!(said.contains("far less where ranks share processors"), shares, "{said}");
        }
    }

    /// Ranks may be gone there: no rank waits for them, whatever becomes of a rank's environment meanwhile.
    fn jobs_that_go_on_without_dead_ranks_have_no_summary(mpi: Mpi) {
        let folder = folder();
        let file = folder.path().join("runs.jsonl");
        let job = shimmed(mpi).env("COLLTUNE_SUMMARY", &file);
        // Each library's own switch; MPICH itself fails with it.
        let (tolerant, switch) = match mpi.is_openmpi() {
            true => (job.env("OMPI_MCA_mpi_ft_enable", "1"), "OMPI_MCA_mpi_ft_enable"),
            false => {
                let switch = "MPIR_CVAR_ENABLE_FT";
                (job.preload_tool(tool(mpi, "late_switch")).env("LATE_SWITCH", switch), switch)
            }
        };
        let outcome = tolerant.run("ends", &["forget", switch]);
        outcome.succeeds().prints(&format!("sum {RANKS}\n")).says(&["no summary"]);
        assert!(!file.exists());
    }

    /// Memory that is shared with neighbours takes as long as hundreds of calls: who makes a communicator for a few calls,
    /// time after time, gets the library's own choice there as soon as the job has paid enough.
    fn communicators_of_few_calls_are_tuned_as_long_as_that_can_be_paid(mpi: Mpi) {
        let db = colltune_tests::learned(mpi, Collective::Allreduce, "node:shm", None);
        let file = db.path().join("runs.jsonl");
        let share = |arguments: &[&str]| {
            let _ = std::fs::remove_file(&file);
            let job = shimmed(mpi).db(db.path()).mode("exploit").env("COLLTUNE_SUMMARY", &file);
            job.run("many", arguments).succeeds().prints("ok\n");
            only_line(&file).tuned_share
        };
        let lasting = share(&["loop", "1", "40000"]);
        let short = share(&["loop", "2000", "128"]);
        assert!(lasting > 0.0 && short > 0.0, "{short} and {lasting}: the first are set up, behind half of their calls");
        assert!(short < lasting / 4.0, "{short} and {lasting}");
        assert_eq!(share(&["loop", "4000", "40"]), 0.0, "none is worth its set-up");
    }

    fn a_job_that_ends_early_leaves_no_half_of_a_summary(mpi: Mpi) {
        for how in [&["abort", "3"][..], &["kill", "100"]] {
            let db = folder();
            let file = db.path().join("runs.jsonl");
            let outcome = shimmed(mpi).db(db.path()).env("COLLTUNE_SUMMARY", &file).run("ends", how);
            outcome.ends().claim(outcome.code != Some(0), "a rank ended early");
            assert!(!file.exists());
            let left = ledger(db.path());
            assert!(left.iter().all(|path| path.to_string_lossy().ends_with(".open")), "{left:?}");
            // That it has been is known, and that it has no end.
            let runs: Vec<_> = left.iter().filter(|path| path.to_string_lossy().ends_with(".run.open")).collect();
            let [run] = &runs[..] else { panic!("one run: {left:?}") };
            assert_eq!(only_line(run).exit, Exit::Missing);
        }
    }

    fn a_job_that_exploits_says_what_it_gained_by_what_was_learned(mpi: Mpi) {
        let db = folder();
        let run = |mode: &str| last_run(shimmed(mpi).mode(mode), db.path(), "frequent", &ARGUMENTS);
        assert_eq!(run("explore").estimated_gain, None);
        assert_eq!(run("exploit").estimated_gain, None, "nothing was learned yet");
        train(db.path());
        // Let it have learned that one of the library's algorithms is twice as fast.
        learned(db.path(), mpi, |_| Some(2.0));
        let summary = run("exploit");
        let gain = summary.estimated_gain.expect("it exploits");
        // All allreduces but those before the set-up, which may be the longest, would have taken twice as long.
        let most = part(&summary, Collective::Allreduce).seconds.mean / summary.wall_s;
        assert!(gain > 1.0 && gain <= 1.0 + 1.000_001 * most, "{most}: {summary:?}");
    }

    /// Half of the calls are on all four ranks, half on two.
    fn what_was_gained_counts_on_each_communicator_by_its_own_shape(mpi: Mpi) {
        let db = folder();
        let run = |mode: &str| last_run(job(4).mpi(mpi).preload().mode(mode), db.path(), "halves", &["500"]);
        run("explore");
        train(db.path());
        // Only two ranks have something faster.
        learned(db.path(), mpi, |ppn| (ppn == 2).then_some(4.0));
        let of_halves = run("exploit");
        let share = part(&of_halves, Collective::Allreduce).tuned_share;
        assert!((0.4..0.5).contains(&share), "{of_halves:?}");
        let most = 3.0 * of_halves.collectives_s.mean / of_halves.wall_s;
        let gained = of_halves.estimated_gain.expect("it exploits") - 1.0;
        assert!(gained > 0.0 && gained < most, "{most}: {of_halves:?}");
        // Where there is nothing faster nothing is gained, whatever the world's cell says.
        learned(db.path(), mpi, |ppn| (ppn == 2).then_some(1.0));
        let nothing = run("exploit");
        assert!(part(&nothing, Collective::Allreduce).tuned_share > 0.4, "{nothing:?}");
        assert_eq!(nothing.estimated_gain, Some(1.0), "{nothing:?}");
    }
}

on_a_library! {
    fn runs_with_the_same_arguments_are_known_by_a_hash_and_labels_are_kept(mpi: Mpi) {
        let db = folder();
        let run = |arguments: &[&str], label: &str| {
            let job = shimmed(mpi).db(db.path()).mode("exploit").env("COLLTUNE_LABEL", label);
            job.run("frequent", arguments).succeeds().prints("ok\n").is_silent();
        };
        run(&["100", "10"], "");
        run(&["100", "10"], "<b>night</b>");
        run(&["100", "11"], "night");
        let mut runs: Vec<JobSummary> = ledger(db.path()).iter().filter_map(|file| lines(file).pop()).collect();
        runs.sort_by_key(|run| run.started_unix_ms);
        let [a, b, c] = &runs[..] else { panic!("three runs: {runs:?}") };
        assert_eq!(a.arguments_hash, b.arguments_hash);
        assert_ne!(a.arguments_hash, c.arguments_hash);
        assert_eq!([a, b, c].map(|run| run.label.as_str()), ["", "<b>night</b>", "night"]);
    }

    fn a_file_that_cannot_be_written_is_one_warning(mpi: Mpi) {
        let folder = folder();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        for file in [folder.path().join("no such folder/runs.jsonl"), "/dev/full".into(), pipe, folder.path().to_owned()] {
            let outcome = shimmed(mpi).env("COLLTUNE_SUMMARY", &file).run("frequent", &["100", "10"]);
            outcome.succeeds().prints("ok\n").says(&["summary", &file.to_string_lossy(), "complete"]);
        }
    }

    fn a_sentence_is_said_where_it_is_asked_for(mpi: Mpi) {
        let run = |value| shimmed(mpi).mode("off").env("COLLTUNE_SUMMARY", value).run("frequent", &["100", "10"]);
        for yes in ["1", "true"] {
            run(yes).succeeds().prints("ok\n").says(&["2 ranks", "in collectives", "222 calls", "0.0 % of them tuned", "at most"]);
        }
        for no in ["0", "false"] {
            run(no).succeeds().prints("ok\n").is_silent();
        }
    }

    fn the_command_line_is_nobodys_business(mpi: Mpi) {
        let db = folder();
        shimmed(mpi).db(db.path()).run("frequent", &["100", "10", "passw0rd"]).succeeds().prints("ok\n").is_silent();
        let text = std::fs::read_to_string(&ledger(db.path())[0]).expect("one run");
        assert!(!text.contains("passw0rd"), "{text}");
    }

    fn a_database_that_may_only_be_read_is_no_error_where_nothing_is_recorded(mpi: Mpi) {
        let db = folder();
        let shared = folder();
        let [shim, program] = open_to_all([&mpi.shim(), &colltune_tests::program(mpi, "frequent")], shared.path());
        let Some(nobody) = job(2).mpi(mpi).preload_shim(shim).as_nobody() else { return };
        let program = program.to_str().expect("a name in UTF-8");
        nobody.db(db.path()).mode("exploit").run(program, &["100", "10"]).succeeds().prints("ok\n").is_silent();
        assert!(ledger(db.path()).is_empty());
    }
}

/// Runs a job and gives what it said of itself.
fn last_run(job: Job, db: &Path, program: &str, arguments: &[&str]) -> JobSummary {
    let job = job.db(db).env("COLLTUNE_LEDGER", "1");
    // An invented choice may be given up, and said to be slower.
    let outcome = job.run(program, arguments);
    outcome.succeeds().prints("ok\n");
    let runs = ledger(db);
    let all = runs.iter().flat_map(|file| lines(file));
    let ended = all.filter(|run| run.exit == Exit::Finalized);
    ended.max_by_key(|run| run.started_unix_ms).expect("a run")
}

fn train(db: &Path) {
    let output = std::process::Command::new(colltune_tests::colltune())
        .args(["train", "--db"])
        .arg(db)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
}

/// Changes what the first generation says of allreduces: for so many ranks on a node one of the library's algorithms is
/// so many times as fast; `None`: the default is the fastest.
fn learned(db: &Path, mpi: Mpi, gain: impl Fn(u64) -> Option<f64>) {
    let file = db
        .join(mpi.library().to_string())
        .join("generations/000001/probabilities.json");
    let text = std::fs::read_to_string(&file).expect("a generation");
    let mut model: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for cell in model["cells"].as_array_mut().expect("cells") {
        let most = cell["ppn"][1].as_u64().map_or(u64::MAX, |end| end - 1);
        if cell["collective"] == "allreduce" {
            // Applies to an element, too.
            let best = gain(most).map_or("default", |_| "native:recursive_doubling");
            // Of the default nothing is gained, whatever stands there.
            (cell["best"], cell["gain"]) = (best.into(), gain(most).unwrap_or(9.0).into());
        }
    }
    std::fs::write(&file, model.to_string()).expect("written");
}
