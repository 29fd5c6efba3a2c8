//! What is learned inside one job: a long one ends with a faster variant, and a choice that became slow is left.
//!
//! One way to an allreduce is made slower by far (`slow_tool`), so no verdict hangs on what a machine is like.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use colltune_core::collective::Collective;
use colltune_tests::{
    Job, LoggedCall, Mpi, Trace, assert_ranks_agree, folder, job, learned, on_each_library,
    read_log, tool, traces,
};

const RANKS: u32 = 2;
/// What sends messages of ours.
const MESSAGES: &str = "p2p:recursive_doubling";

/// Thousands of slow calls take minutes where ranks wait for processors that others have.
const MORE: Duration = Duration::from_secs(180);

/// Two jobs at once would wait for each other's processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// So many allreduces of 8 bytes, where one way is slow; the calls, on all ranks alike.
fn allreduces(job: Job, mpi: Mpi, slow: &str, calls: u32, db: &Path) -> (Vec<LoggedCall>, String) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let log = db.join("log");
    let job = job
        .mpi(mpi)
        .preload()
        .preload_tool(tool(mpi, "slow_tool"))
        .env("SLOW", slow)
        .db(db)
        .seed(1)
        .log(&log)
        .more_time(MORE);
    let outcome = job.run("frequent", &[&calls.to_string(), "1"]);
    outcome.succeeds().prints("ok\n");
    let said = outcome.messages().join("\n");
    let mut log = read_log(&log, RANKS);
    assert_ranks_agree(&log);
    let calls = log.swap_remove(0).into_iter();
    let reduced = calls.filter(|call| call.collective == "allreduce");
    (reduced.collect(), said)
}

/// What calls run that are not sampled, the last `n` of them.
fn last(calls: &[LoggedCall], n: usize) -> Vec<&str> {
    let unsampled = calls.iter().rev().filter(|call| !call.sampled).take(n);
    unsampled.map(|call| call.variant.as_str()).collect()
}

/// A database in whose generation 1 `best` is the choice for every allreduce.
fn database(mpi: Mpi, best: &str) -> tempfile::TempDir {
    learned(mpi, Collective::Allreduce, best, None)
}

on_each_library! {
    fn a_long_job_ends_with_a_faster_variant_than_a_slow_default(mpi: Mpi) {
        // Where others take the processors, the other variants may be slower than forty barriers.
        let of_last_300 = [1, 2, 3].map(|_| {
            let db = folder();
            // Whatever agreements cost in so short a job.
            let exploring = job(RANKS).mode("explore").env("COLLTUNE_EXPLORE_BUDGET", "1");
            let (calls, _) = allreduces(exploring, mpi, "default", 3000, db.path());
            assert_eq!(calls[0].variant, "default", "it begins with the default");
            let last = last(&calls, 300);
            last.iter().filter(|variant| **variant == "default").count()
        });
        // Warm-up calls of a sampled default call run it, too.
        assert!(of_last_300.iter().any(|n| *n < 60), "{of_last_300:?} of the last calls ran the default");
    }

    fn with_one_choice_per_run_nothing_changes_in_a_run(mpi: Mpi) {
        let db = folder();
        let exploring = job(RANKS).mode("explore").env("COLLTUNE_REPRODUCIBLE", "run");
        let (calls, _) = allreduces(exploring, mpi, "default", 1000, db.path());
        let ran = &calls[calls.len() - 1].variant;
        assert!(calls.iter().all(|call| call.variant == *ran), "the choice changed");
    }

    /// What a timed call would have taken with the library's choice is reckoned at its end.
    fn a_tuned_call_leaves_no_floating_point_flags_behind(mpi: Mpi) {
        job(RANKS).mpi(mpi).run("inexact", &["400"]).succeeds().prints("ok\n");
        let db = database(mpi, MESSAGES);
        // The first sixteen calls of a kind are timed, of the next one in sixteen.
        let exploiting = job(RANKS).mpi(mpi).preload().mode("exploit").db(db.path()).env("COLLTUNE_WATCH", "0");
        exploiting.run("inexact", &["400"]).succeeds().prints("ok\n");
    }

    fn exploiting_leaves_a_choice_that_became_slow_and_says_so(mpi: Mpi) {
        let db = database(mpi, MESSAGES);
        let (calls, said) = allreduces(job(RANKS).mode("exploit"), mpi, "messages", 4000, db.path());
        let mut behind_set_up = calls.iter().filter(|call| call.cell.is_some());
        assert_eq!(behind_set_up.next().unwrap().variant, MESSAGES);
        assert!(last(&calls, 300).iter().all(|variant| *variant == "default"), "the choice stayed");
        assert!(said.contains("slower than the library's own"), "{said}");
    }

    fn the_next_training_gets_both_of_each_pair_that_watched_a_choice(mpi: Mpi) {
        let db = database(mpi, MESSAGES);
        allreduces(job(RANKS).mode("exploit"), mpi, "messages", 2000, db.path());
        let traces = traces(db.path());
        assert!(!traces.is_empty(), "nothing was recorded");
        let ran = |variant: &str| {
            let of = |trace: &Trace| {
                let records = trace.records.iter().filter(|record| record.drawn && record.agreed.is_some());
                records.filter(|record| trace.variant(record) == variant).count()
            };
            traces.iter().map(of).sum::<usize>()
        };
        let (default, choice) = (ran("default"), ran(MESSAGES));
        assert!(choice > 0 && default.abs_diff(choice) <= 2, "{default} and {choice}");
    }

    fn a_job_that_may_not_record_what_it_watches_says_nothing(mpi: Mpi) {
        let db = database(mpi, MESSAGES);
        fs::write(db.path().join("incoming"), "").unwrap();
        let (calls, said) = allreduces(job(RANKS).mode("exploit"), mpi, "default", 1000, db.path());
        assert!(calls.iter().any(|call| call.sampled), "nothing was watched");
        assert_eq!(said, "");
    }

    fn exploiting_keeps_a_choice_that_is_faster_and_can_be_told_not_to_watch(mpi: Mpi) {
        for (watch, slow, watched) in [("0.005", "default", true), ("0", "messages", false)] {
            let db = database(mpi, MESSAGES);
            let exploiting = job(RANKS).mode("exploit").env("COLLTUNE_WATCH", watch);
            let (calls, said) = allreduces(exploiting, mpi, slow, 3000, db.path());
            // Warm-up calls of a watched default call run it, too.
            let others = last(&calls, 300).iter().filter(|variant| **variant != MESSAGES).count();
            assert!(others < 60, "the choice was left: {others} of the last 300 calls ran another");
            assert_eq!(calls.iter().any(|call| call.sampled), watched, "watch = {watch}");
            assert_eq!(said, "");
        }
    }
}

/// Nor is what was learned with that one used where no transport is named.
#[test]
fn what_was_learned_with_one_transport_is_not_used_with_another() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let transport = [("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_btl", "self,vader")];
    for (learned_with, is_named) in [
        ("", false),
        ("", true),
        ("@ob1+vader", true),
        ("@ob1+vader", false),
    ] {
        let db = database(mpi, MESSAGES);
        let library = db.path().join(mpi.library().to_string());
        let key = format!("{}{learned_with}", mpi.library());
        fs::rename(library, db.path().join(key)).unwrap();
        let exploiting = job(RANKS).mode("exploit").env("COLLTUNE_WATCH", "0");
        let named = transport.iter().filter(|_| is_named);
        let exploiting = named.fold(exploiting, |job, (name, value)| job.env(name, value));
        let (calls, _) = allreduces(exploiting, mpi, "nothing", 1000, db.path());
        let ran = last(&calls, 300);
        let told = format!("learned with {learned_with:?}, named: {is_named}");
        if is_named == learned_with.is_empty() {
            assert!(calls.iter().all(|call| call.variant == "default"), "{told}");
        } else {
            assert!(ran.iter().all(|variant| *variant == MESSAGES), "{told}");
        }
    }
}
