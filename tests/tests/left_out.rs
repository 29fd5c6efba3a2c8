//! What a job says of the variants that it leaves out: for how many calls, why, and what is to be done.

use std::path::Path;
use std::process::Command;

use colltune_core::account::{Cause, JobSummary, Refused};
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, Mpi, colltune, folder, job, learned, on_each_library, said_by_colltune, tool,
};

const RANKS: u64 = 4;
/// The sums of one rank, but for the last one in which all agree that they were right.
const SUMS: u64 = 200;

fn explores(mpi: Mpi, db: &Path) -> Job {
    let job = job(RANKS as u32).mpi(mpi).preload().db(db).mode("explore");
    job.seed(3).env("COLLTUNE_SETUP_AFTER", "1")
}

/// The same where a training has chosen a variant for sums.
fn exploits(mpi: Mpi, db: &Path) -> Job {
    explores(mpi, db)
        .mode("exploit")
        .env("COLLTUNE_LEDGER", "1")
}

/// What the job says of what it left out.
#[track_caller]
fn refused(job: Job, sums: u64, how: &str) -> Vec<Refused> {
    let folder = folder();
    let file = folder.path().join("runs.jsonl");
    let job = job.env("COLLTUNE_SUMMARY", &file);
    let outcome = job.run("left_out", &[&sums.to_string(), how]);
    outcome.succeeds().prints("ok\n");
    let text = std::fs::read_to_string(&file).expect("a summary");
    serde_json::from_str::<JobSummary>(&text)
        .expect("one job")
        .refused
}

/// Calls of all ranks that a cause concerns, of sums and of whole communicators.
fn calls(refused: &[Refused], cause: Cause) -> [u64; 2] {
    [Some(Collective::Allreduce), None].map(|collective| {
        let mut all = refused.iter();
        let of = |one: &&Refused| one.known() == Some(cause) && one.collective == collective;
        all.find(of).map_or(0, |one| one.calls)
    })
}

const ALL: u64 = RANKS * (SUMS + 1);

on_each_library! {
    fn several_threads_leave_out_the_librarys_algorithms(mpi: Mpi) {
        let db = folder();
        let with = refused(explores(mpi, db.path()), SUMS, "multiple");
        assert_eq!(calls(&with, Cause::Threads), [ALL, 0], "{with:?}");
        let without = refused(explores(mpi, db.path()), SUMS, "world");
        assert_eq!(calls(&without, Cause::Threads), [0, 0], "{without:?}");
        // A user who asks why finds it, once there is a training.
        let trained = said_by_colltune(&["train", "--db", &db.path().to_string_lossy()]);
        assert!(trained.status.success(), "{trained:?}");
        let mut why = Command::new(colltune());
        why.args(["status", "--why", "native:recursive_doubling", "--collective", "allreduce", "--db"]).arg(db.path());
        let told = why.output().expect("it starts");
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let expected = Refused::new(Cause::Threads, Some(Collective::Allreduce), ALL).sentence();
        assert!(told.contains(&expected), "{expected}\n{told}");
        why.args(["--json"]);
        let json = why.output().expect("it starts");
        let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        let of = json["left_out"].as_array().expect("a list").iter().find(|one| one["cause"] == "threads");
        assert_eq!(of.expect("it is told")["jobs"], 1, "{json}");
        // It is nothing to what is ours.
        let mut why = Command::new(colltune());
        why.args(["status", "--why", "node:shm", "--collective", "allreduce", "--db"]).arg(db.path());
        let told = why.output().expect("it starts");
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.contains("allreduce") && !told.contains("MPI_THREAD_MULTIPLE"), "{told}");
    }

    fn calls_between_two_groups_are_the_librarys(mpi: Mpi) {
        let db = folder();
        let told = refused(explores(mpi, db.path()), SUMS, "between");
        assert_eq!(calls(&told, Cause::Intercommunicator), [0, RANKS * SUMS], "{told:?}");
    }

    /// Half of the communicators are freed, half live to the end.
    fn communicators_of_few_calls_are_not_set_up(mpi: Mpi) {
        let db = folder();
        let few = explores(mpi, db.path()).env("COLLTUNE_SETUP_AFTER", "300");
        let told = refused(few, SUMS, "short");
        assert_eq!(calls(&told, Cause::FewCalls), [0, RANKS * (4 * SUMS + 1)], "{told:?}");
        // Where the ranks agree at once none is too short.
        let told = refused(explores(mpi, db.path()), SUMS, "short");
        assert_eq!(calls(&told, Cause::FewCalls), [0, 0], "{told:?}");
    }

    fn buffers_that_may_be_on_a_device_are_the_librarys(mpi: Mpi) {
        let db = folder();
        let devices = || explores(mpi, db.path()).preload_tool(tool(mpi, "device_memory"));
        let told = refused(devices(), SUMS, "world");
        assert_eq!(calls(&told, Cause::Device), [ALL, 0], "{told:?}");
        let told = refused(devices().env("COLLTUNE_GPU", "host-only"), SUMS, "world");
        assert_eq!(calls(&told, Cause::Device), [0, 0], "{told:?}");
    }

    fn families_that_a_job_does_not_have_are_left_out_of_draws_and_choices(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, "node:shm", None);
        for job in [explores(mpi, db.path()), exploits(mpi, db.path())] {
            let told = refused(job.env("COLLTUNE_FAMILIES", "native"), SUMS, "world");
            assert_eq!(calls(&told, Cause::Families), [ALL, 0], "{told:?}");
        }
        let told = refused(exploits(mpi, db.path()), SUMS, "world");
        assert_eq!(calls(&told, Cause::Families), [0, 0], "{told:?}");
    }

    fn a_rank_without_memory_for_decisions_is_told(mpi: Mpi) {
        let db = folder();
        let poor = explores(mpi, db.path()).env("COLLTUNE_MEMORY_PER_RANK_MAX", "1KiB");
        let told = refused(poor, SUMS, "world");
        assert_eq!(calls(&told, Cause::Room), [0, ALL], "{told:?}");
    }

    fn a_job_without_a_training_has_nothing_to_exploit(mpi: Mpi) {
        let new = folder();
        let told = refused(exploits(mpi, new.path()), SUMS, "world");
        assert_eq!(calls(&told, Cause::Unlearned), [ALL, 0], "{told:?}");
        let db = learned(mpi, Collective::Allreduce, "node:shm", None);
        let told = refused(exploits(mpi, db.path()), SUMS, "world");
        assert_eq!(calls(&told, Cause::Unlearned), [0, 0], "{told:?}");
        // That the library's own choice is the best is no want of learning.
        let db = learned(mpi, Collective::Allreduce, "default", None);
        let told = refused(exploits(mpi, db.path()), SUMS, "world");
        assert_eq!([Cause::Kept, Cause::Unlearned].map(|cause| calls(&told, cause)[0]), [ALL, 0], "{told:?}");
    }

    fn strict_jobs_and_recording_ones_say_so(mpi: Mpi) {
        let db = learned(mpi, Collective::Allreduce, "node:shm", None);
        let strict = exploits(mpi, db.path()).env("COLLTUNE_REPRODUCIBLE", "strict");
        let told = refused(strict, SUMS, "world");
        // The last one is of whole numbers.
        assert_eq!(calls(&told, Cause::Strict), [RANKS * SUMS, 0], "{told:?}");
        let told = refused(explores(mpi, db.path()).mode("record"), SUMS, "world");
        assert_eq!(calls(&told, Cause::Mode), [0, ALL], "{told:?}");
        assert_eq!(told.len(), 1);
    }

    fn a_rank_alone_has_nobody_to_be_fast_with(mpi: Mpi) {
        let db = folder();
        let told = refused(explores(mpi, db.path()), SUMS, "alone");
        assert_eq!(calls(&told, Cause::OneRank), [RANKS * SUMS, 0], "{told:?}");
    }
}

/// A user's rules file stays in force: no algorithm can be forced beside it.
#[test]
fn a_rules_file_of_the_users_is_told() {
    if Mpi::OpenMpi.installed().is_none() {
        return;
    }
    let db = folder();
    let rules = db.path().join("rules");
    std::fs::write(&rules, "1\n2\n1\n4\n1\n0 4 0 0\n").expect("written");
    let job = explores(Mpi::OpenMpi, db.path())
        .env("OMPI_MCA_coll_tuned_use_dynamic_rules", "1")
        .env("OMPI_MCA_coll_tuned_dynamic_rules_filename", &rules);
    let told = refused(job, SUMS, "world");
    assert_eq!(calls(&told, Cause::Steering), [ALL, 0], "{told:?}");
}
