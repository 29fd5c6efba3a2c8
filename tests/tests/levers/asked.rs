//! `colltune_choose` and `colltune_done`: all ranks get one arm, whatever is wrong; what epochs tell is learned and run.

use std::path::Path;
use std::process::Command;

use colltune_tests::{Job, Mpi, Outcome, colltune, folder, job, on_each_library};
use serde_json::Value;

const REFUSED: &str = "the lever pause stays at its first arm on a communicator";

fn asking(mpi: Mpi, scratch: &Path) -> Job {
    let db = scratch.join("db");
    std::fs::create_dir_all(&db).expect("a folder of our own");
    job(4)
        .mpi(mpi)
        .preload()
        .db(db)
        .env("COLLTUNE_MISMATCH_TIMEOUT", "3s")
}

fn run(job: Job, scratch: &Path, epochs: u32, fault: &str) -> (Outcome, Vec<String>) {
    let log = scratch.join("log");
    let _ = std::fs::remove_file(&log);
    let name = log.display().to_string();
    let outcome = job.run("asked", &[&epochs.to_string(), &name, fault]);
    let arms = std::fs::read_to_string(log).unwrap_or_default();
    (outcome, arms.lines().map(str::to_owned).collect())
}

/// The epochs that the newest account of each job in `incoming` holds.
fn epochs(scratch: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(scratch.join("db/incoming")).expect("it is there");
    let files = files.map(|entry| entry.expect("it is readable").path());
    let runs = files.filter(|path| path.to_string_lossy().contains(".run"));
    let last = |path| {
        let text = std::fs::read_to_string(path).expect("it is text");
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        last["asked"].as_array().cloned().unwrap_or_default()
    };
    let epochs = |asked: &Value| asked["epochs"].as_array().cloned().unwrap_or_default();
    runs.flat_map(last)
        .flat_map(|asked| epochs(&asked))
        .collect()
}

/// What a command says of the database.
fn told_by(command: &[&str], scratch: &Path) -> String {
    let mut started = Command::new(colltune());
    let started = started
        .args(command)
        .arg("--db")
        .arg(scratch.join("db"))
        .output()
        .expect("it starts");
    assert!(started.status.success(), "{started:?}");
    String::from_utf8_lossy(&started.stdout).into_owned()
}

on_each_library! {
    fn ranks_get_one_arm_which_is_drawn_and_each_epoch_is_in_the_ledger(mpi: Mpi) {
        let scratch = folder();
        let (outcome, arms) = run(asking(mpi, scratch.path()).seed(3), scratch.path(), 24, "");
        outcome.succeeds().is_silent();
        for arm in ["20", "0", "5"] {
            let drawn = arms.iter().filter(|one| *one == arm).count();
            outcome.claim((1..22).contains(&drawn), "an arm was drawn never, or always");
        }
        let told = epochs(scratch.path());
        let of_log = arms.iter().map(|arm| ["20", "0", "5"].iter().position(|one| one == arm).unwrap());
        let of_ledger = told.iter().map(|epoch| epoch[0].as_u64().unwrap() as usize);
        outcome.claim(of_log.eq(of_ledger), "the ledger tells of other arms");
        outcome.claim(told.iter().all(|epoch| epoch[2] == 4.0), "the ranks' work is not added up");
    }

    fn where_ranks_do_not_ask_alike_the_first_arm_stays_on_all_and_nobody_waits_for_ever(mpi: Mpi) {
        for fault in ["missing", "arms", "half"] {
            let scratch = folder();
            // All of it is waited for.
            let job = asking(mpi, scratch.path()).seed(3).env("COLLTUNE_MISMATCH_TIMEOUT", "1s");
            let (outcome, arms) = run(job, scratch.path(), 8, fault);
            outcome.succeeds().says(&[REFUSED]);
            outcome.claim(outcome.stderr.matches(REFUSED).count() == 1, "it is said more than once");
            let from = usize::from(fault == "half");
            assert!(arms.len() == 8 && arms[from..].iter().all(|arm| arm == "20"), "{fault}: {arms:?}");
        }
    }

    fn what_is_no_epoch_is_said_once_and_costs_no_more_than_itself(mpi: Mpi) {
        for (fault, sentence, kept) in [
            ("unchosen", "without colltune_choose before it", 8),
            ("undone", "never calls colltune_done", 0),
            ("work", "has no work that can be compared", 0),
            ("nothing", "has no work that can be compared", 0),
            ("many", "has 10000 arms, and at most 64", 8),
            ("named", "\"a=b\" has = in its name", 8),
            ("one", "", 8),
            ("size", "", 8),
            ("changes", "", 8),
            ("freed", "", 0),
        ] {
            let scratch = folder();
            let (outcome, arms) = run(asking(mpi, scratch.path()), scratch.path(), 8, fault);
            outcome.succeeds();
            assert_eq!(arms.len(), 8, "{fault}");
            match sentence {
                "" => _ = outcome.is_silent(),
                sentence => outcome.claim(outcome.stderr.matches(sentence).count() == 1, sentence),
            }
            assert_eq!(epochs(scratch.path()).len(), kept, "{fault}");
        }
    }

    fn a_job_that_dies_in_an_epoch_has_told_of_those_before(mpi: Mpi) {
        let scratch = folder();
        let (outcome, arms) = run(asking(mpi, scratch.path()), scratch.path(), 12, "dies");
        outcome.ends();
        // Rank 0 may have been ended before it wrote the last one.
        assert!([9, 10].contains(&arms.len()), "{arms:?}");
        assert_eq!(epochs(scratch.path()).len(), 8);
    }

    fn what_jobs_tell_is_learned_and_the_next_ones_run_it(mpi: Mpi) {
        let scratch = folder();
        for seed in 0..3 {
            let (outcome, _) = run(asking(mpi, scratch.path()).seed(seed), scratch.path(), 24, "");
            outcome.succeeds();
        }
        told_by(&["train"], scratch.path());
        let known: Value = serde_json::from_str(&told_by(&["status", "--json"], scratch.path())).expect("JSON");
        let one = &known["levers"][0];
        assert_eq!((&one["program"], &one["best"], &one["epochs"]), (&"asked".into(), &"0".into(), &72.into()), "{known}");
        let gain = &one["arms"][1]["gain"];
        assert!(gain[1].as_f64().unwrap() > 1.2 && one["is_settled"] == true, "{one}");
        for (mode, expected) in [("exploit", "0"), ("record", "20"), ("off", "20")] {
            let (outcome, arms) = run(asking(mpi, scratch.path()).mode(mode), scratch.path(), 6, "");
            outcome.succeeds().is_silent();
            assert!(arms.iter().all(|arm| arm == expected), "{mode}: {arms:?}");
        }
        // What the user says counts, with the tuner and without it.
        let told = |job: Job| job.env("COLLTUNE_LEVERS", "pause=5");
        for job in [told(asking(mpi, scratch.path()).mode("exploit")), told(job(4).mpi(mpi))] {
            let (outcome, arms) = run(job, scratch.path(), 6, "");
            outcome.succeeds().is_silent();
            assert!(arms.iter().all(|arm| arm == "5"), "{arms:?}");
        }
        // It has become the slowest one: a job that goes on for long enough finds that out, unless it wants the same bits.
        let sentence = "the lever pause: 0, which was learned to be fastest, takes longer in this job than 20";
        let watched = || asking(mpi, scratch.path()).mode("exploit").seed(5).env("COLLTUNE_WATCH", "1");
        let (outcome, arms) = run(watched(), scratch.path(), 240, "turned");
        outcome.succeeds().says(&[sentence]);
        assert!(arms[..20].iter().all(|arm| arm == "0") && arms[230..].iter().all(|arm| arm == "20"), "{arms:?}");
        let (outcome, arms) = run(watched().env("COLLTUNE_REPRODUCIBLE", "run"), scratch.path(), 60, "turned");
        outcome.succeeds().is_silent();
        assert!(arms.iter().all(|arm| arm == "0"), "{arms:?}");
        let text = told_by(&["status"], scratch.path());
        assert!(text.contains("levers that programs ask about:") && text.contains(" pause "), "{text}");
        // A file that is none: the first arm runs, and rank 0 says why.
        std::fs::write(scratch.path().join("db/levers.json"), "{").unwrap();
        let (outcome, arms) = run(asking(mpi, scratch.path()).mode("exploit"), scratch.path(), 3, "");
        outcome.succeeds().says(&["programs that ask get their first arms"]);
        assert!(arms.iter().all(|arm| arm == "20"), "{arms:?}");
    }
}
