//! Buffers in a device's memory are the library's alone: no load or store of ours touches them.

use std::path::Path;

use colltune_tests::{Job, LoggedCall, Mpi, folder, job, on_each_library, read_log, skip, tool};

const N_RANKS: u32 = 4;

/// A job beside a library that takes device memory, and a runtime for devices.
fn on_devices(mpi: Mpi) -> Job {
    let job = job(N_RANKS).mpi(mpi).preload();
    job.preload_tool(tool(mpi, "device_memory"))
        .env("COLLTUNE_SETUP_AFTER", "1")
}

/// Runs the program; every call of every rank, whose ranks ran the same.
#[track_caller]
fn logged(job: Job, log: &Path, arguments: &[&str]) -> Vec<Vec<LoggedCall>> {
    let outcome = job.log(log).run("on_device", arguments);
    outcome.succeeds().prints("ok\n");
    read_log(log, N_RANKS)
}

fn is_own(call: &LoggedCall) -> bool {
    ["p2p:", "node:"]
        .iter()
        .any(|family| call.variant.starts_with(family))
}

on_each_library! {
    fn device_memory_is_left_to_the_library(mpi: Mpi) {
        let db = folder();
        std::fs::write(db.path().join("colltune.toml"), "families = [\"native\", \"node\", \"p2p\"]\n").unwrap();
        let explore = on_devices(mpi).db(db.path()).mode("explore").seed(5);
        let forced = ["node:shm", "p2p:binomial"]
            .map(|variant| on_devices(mpi).force(&format!("allreduce=node:shm;bcast={variant};alltoall=p2p:bruck:radix=2")));
        for job in forced.into_iter().chain([explore]) {
            let log = folder();
            let all = logged(job, log.path(), &["40"]);
            assert!(!all.iter().flatten().any(is_own));
        }
    }

    fn host_only_says_that_no_buffer_is_on_a_device(mpi: Mpi) {
        let log = folder();
        let forced = on_devices(mpi).env("COLLTUNE_GPU", "host-only").force("allreduce=node:shm");
        let runtime = tool(mpi, "device_memory");
        let all = logged(forced, log.path(), &["10", &runtime.to_string_lossy()]);
        assert!(all.iter().all(|rank| rank.iter().any(is_own)));
    }

    /// One rank's is enough: the ranks say so when they review what they saw.
    fn a_runtime_that_one_rank_loads_later_counts_from_the_next_review_on(mpi: Mpi) {
        let (db, log) = (folder(), folder());
        let runtime = tool(mpi, "device_memory");
        let explore = job(N_RANKS).mpi(mpi).preload().db(db.path()).mode("explore").seed(7);
        let explore = explore.env("COLLTUNE_SETUP_AFTER", "1");
        let all = logged(explore, log.path(), &["600", &runtime.to_string_lossy()]);
        for rank in &all {
            let (before, after) = rank.split_at(rank.len() / 2);
            assert!(before.iter().any(is_own));
            assert!(!after[after.len() / 2..].iter().any(is_own));
        }
    }
}

/// A real device and a real library that takes its memory; elsewhere a tool plays both (above).
#[test]
fn a_real_device_s_memory_is_left_to_the_library() {
    if !Path::new("/dev/nvidiactl").exists() {
        return skip("this machine has no device of NVIDIA's").unwrap_or_default();
    }
    let Some(mpi) = Mpi::Intel.installed() else {
        return;
    };
    let on_gpu = |job: Job| job.mpi(mpi).env("I_MPI_OFFLOAD", "1");
    let bare = on_gpu(job(N_RANKS)).run("on_gpu", &["10"]);
    if !bare.stdout.contains("ok") {
        return skip(&format!("the library itself: {}", bare.stdout.trim())).unwrap_or_default();
    }
    let db = folder();
    let tuned = || on_gpu(job(N_RANKS).preload().env("COLLTUNE_SETUP_AFTER", "1"));
    let forced = tuned().force("allreduce=node:shm;bcast=p2p:binomial;alltoall=p2p:bruck:radix=2");
    for job in [tuned().db(db.path()).mode("explore").seed(5), forced] {
        let log = folder();
        let outcome = job.log(log.path()).run("on_gpu", &["40"]);
        outcome.succeeds().prints("ok\n");
        let all = read_log(log.path(), N_RANKS);
        assert!(!all.iter().flatten().any(is_own));
    }
}
