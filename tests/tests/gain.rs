//! What a job's choices gain it is measured in the job itself; and what a site excludes runs in no job from then on.

use std::fs;

use colltune_core::account::JobSummary;
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, LoggedCall, Mpi, assert_ranks_agree, folder, job, learned, on_each_library, read_log, tool,
};

const RANKS: u32 = 2;
/// Enough for ten pairs of epochs, and for a few.
const MANY: &str = "150000";
const SOME: &str = "60000";
/// Four times the usual `watch`.
const OFTEN: &str = "0.02";
const BEST: &str = "node:shm";
/// Calls of an epoch with those before it.
const EPOCH: usize = 144;

/// A job that exploits a database in which an allreduce in shared memory is the best. What stands for a slow network is
/// that the library's own choice sleeps for ten milliseconds first.
fn exploiting(mpi: Mpi, db: &std::path::Path, watch: &str) -> Job {
    let job = job(RANKS).mpi(mpi).preload().mode("exploit").seed(1).db(db);
    let job = job.env("COLLTUNE_WATCH", watch);
    let tool = tool(job.library(), "slow_tool");
    job.preload_tool(tool).env("SLOW", "asleep")
}

fn summary(job: Job) -> JobSummary {
    let folder = folder();
    let file = folder.path().join("summary");
    let outcome = job
        .env("COLLTUNE_SUMMARY", &file)
        .run("frequent", &[MANY, "1"]);
    outcome.succeeds().prints("ok\n");
    let text = fs::read_to_string(file).unwrap();
    let line = text.lines().next().expect("there is one line");
    serde_json::from_str(line).unwrap()
}

/// Unsampled allreduces behind the set-up, on all ranks alike.
fn allreduces(job: Job, calls: &str) -> Vec<LoggedCall> {
    let log = folder();
    let outcome = job.log(log.path()).run("frequent", &[calls, "1"]);
    outcome.succeeds().prints("ok\n");
    let mut log = read_log(log.path(), RANKS);
    assert_ranks_agree(&log);
    let calls = log.swap_remove(0).into_iter();
    let reduced = calls.filter(|call| call.collective == "allreduce");
    let reduced = reduced.filter(|call| call.cell.is_some() && !call.sampled);
    reduced.collect()
}

on_each_library! {
    fn one_job_says_what_its_choices_gained_it(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, BEST, None);
        let summary = summary(exploiting(mpi, db.path(), OFTEN));
        let gain = summary.measured_gain.expect("so many calls are enough");
        assert!(gain.pairs >= 10, "{gain:?}");
        // Ten milliseconds in each of the calls: whatever the machine does, they gain.
        assert!(gain.low <= gain.gain && gain.gain <= gain.high && gain.gain > 1.5, "{gain:?}");
        assert!(summary.sentence().contains("pairs of epochs"), "{}", summary.sentence());
    }

    fn all_ranks_run_the_librarys_own_choices_in_the_same_calls_and_seldom(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, BEST, None);
        let calls = allreduces(exploiting(mpi, db.path(), OFTEN), SOME);
        // In rows, but for sampled calls between them and for warm-up calls of those.
        let mut rows = vec![0];
        for call in &calls {
            match call.variant.as_str() {
                "default" => *rows.last_mut().unwrap() += 1,
                _ => rows.push(0),
            }
        }
        let long: usize = rows.into_iter().filter(|row| *row > EPOCH / 2).sum();
        assert!(long >= EPOCH, "{long}");
        assert!(long < calls.len() / 25, "{long} of {}", calls.len());
    }

    fn without_a_watch_nothing_is_measured(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, BEST, None);
        let job = || exploiting(mpi, db.path(), "0");
        assert_eq!(summary(job()).measured_gain, None);
        let calls = allreduces(job(), SOME);
        assert!(calls.iter().all(|call| call.variant == BEST) && calls.len() > 50_000);
    }

    fn what_is_excluded_after_a_training_runs_in_no_job(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, BEST, None);
        let job = || exploiting(mpi, db.path(), OFTEN).env("SLOW", "");
        assert!(allreduces(job(), "2000").iter().any(|call| call.variant == BEST));
        let by_variable = job().env("COLLTUNE_EXCLUDE", BEST);
        assert!(allreduces(by_variable, "2000").iter().all(|call| call.variant == "default"));
        fs::write(db.path().join("colltune.toml"), format!("exclude = [\"{BEST}\"]\n")).unwrap();
        assert!(allreduces(job(), "2000").iter().all(|call| call.variant == "default"));
        let other = "exclude = [\"native:ring\"]\n";
        fs::write(db.path().join("colltune.toml"), other).unwrap();
        assert!(allreduces(job(), "2000").iter().any(|call| call.variant == BEST));
        fs::write(db.path().join("colltune.toml"), format!("exclude = [\"{BEST}\"]\n")).unwrap();
        let exploring = allreduces(job().mode("explore"), "2000");
        assert!(exploring.iter().all(|call| call.variant != BEST));
    }
}
