//! A job that hangs, or that the shim ends, leaves word of which rank is in which call.

use std::path::Path;
use std::process::Command;

use colltune_tests::{Job, Mpi, colltune, folder, job, on_each_library};
use serde_json::Value;

/// A job of `hanging.c`, whose rank 2 leaves out an allreduce.
fn hanging(mpi: Mpi, flight: &Path) -> Job {
    job(4)
        .mpi(mpi)
        .preload()
        .force("allreduce=node:shm")
        .env("COLLTUNE_FLIGHT", flight)
}

fn explain(arguments: &[&str], flight: &Path) -> String {
    let output = Command::new(colltune())
        .arg("explain")
        .args(arguments)
        .arg(flight)
        .output()
        .expect("the command starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

on_each_library! {
    fn explain_names_the_call_that_hangs_and_the_rank_that_is_missing(mpi: Mpi) {
        let flight = folder();
        let outcome = hanging(mpi, flight.path()).run("hanging", &[]);
        outcome.ends().prints("");
        let words = explain(&[], flight.path());
        let lines: Vec<_> = words.lines().collect();
        let [waiting, missing, outside] = lines[..] else { panic!("{words}") };
        // An allgather came first, then 20 calls of the same kind.
        assert!(waiting.starts_with("Ranks 0, 1, 3 are in call 21 of communicator 1 of 4 ranks for "), "{words}");
        assert!(waiting.ends_with(" s: allreduce of 8 bytes with node:shm"), "{words}");
        assert_eq!(missing, "Rank 2 lags behind there: the last call was 20, allreduce of 8 bytes with node:shm");
        assert_eq!(outside, "Rank 2 is in no blocking collective");
        let json: Value = serde_json::from_str(&explain(&["--json"], flight.path())).expect("JSON");
        let comm = &json["communicators"][0];
        assert_eq!(comm["under_way"][0]["ranks"], serde_json::json!([0, 1, 3]), "{json}");
        assert_eq!(comm["lagging"][0]["ranks"], serde_json::json!([2]), "{json}");
    }

    /// Before its first broadcast on a communicator the ranks agree on what that needs: room, or a communicator of ours.
    fn explain_names_a_rank_that_waits_in_an_agreement(mpi: Mpi) {
        for variant in ["p2p:binomial", "native:binomial"] {
            let flight = folder();
            let tuned = job(3).mpi(mpi).preload().force(&format!("bcast={variant}"));
            tuned.env("COLLTUNE_FLIGHT", flight.path()).run("hanging", &["first"]).ends().prints("");
            let words = explain(&[], flight.path());
            let lines: Vec<_> = words.lines().collect();
            let [waiting, missing, outside] = lines[..] else { panic!("{variant}: {words}") };
            assert!(waiting.starts_with("Ranks 1, 2 are in call 21 of communicator 1 of 3 ranks for "), "{words}");
            assert!(waiting.ends_with(&format!(" s: bcast of 4 bytes with {variant}")), "{words}");
            assert_eq!(missing, "Rank 0 lags behind there: the last call was 20, allreduce of 8 bytes with default");
            assert_eq!(outside, "Rank 0 is in no blocking collective");
        }
    }

    /// Rank 0 alone has nothing to send, waits a second for others with as little, and ends the job.
    fn a_rank_that_ends_the_job_writes_before_it_does(mpi: Mpi) {
        let flight = folder();
        let tuned = job(3).mpi(mpi).preload().force("allgather=p2p:ring");
        let tuned = tuned.env("COLLTUNE_SETUP_AFTER", "1").env("COLLTUNE_MISMATCH_TIMEOUT", "1s");
        let outcome = tuned.env("COLLTUNE_FLIGHT", flight.path()).run("one_rank", &["3", "less"]);
        outcome.ends().claim(outcome.code != Some(0), "it went on");
        outcome.says(&["rank 0 cannot go on in allgather"]);
        assert!(flight.path().join("rank-0.flight").is_file(), "{outcome:?}");
        let json: Value = serde_json::from_str(&explain(&["--json"], flight.path())).expect("JSON");
        let call = &json["communicators"][0]["under_way"][0];
        assert_eq!(call["ranks"], serde_json::json!([0]), "{json}");
        assert_eq!(call["collective"], "allgather", "{json}");
        assert_eq!(call["variant"], "p2p:ring", "{json}");
    }

    fn a_program_keeps_its_own_handler(mpi: Mpi) {
        let flight = folder();
        hanging(mpi, flight.path()).run("hanging", &["own"]).succeeds().prints("ok\n").is_silent();
        let written = std::fs::read_dir(flight.path()).expect("a folder").count();
        assert_eq!(written, 0, "a recording although the signal was the program's");
    }

    fn without_a_folder_the_signal_ends_the_job_as_ever(mpi: Mpi) {
        let outcome = job(4).mpi(mpi).preload().force("allreduce=node:shm").run("hanging", &[]);
        // Hydra prints on standard output.
        outcome.ends();
        assert_ne!(outcome.code, Some(0), "{outcome:?}");
        assert_ne!(outcome.code, Some(3), "the signal was swallowed: {outcome:?}");
    }
}
