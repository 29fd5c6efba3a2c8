//! Other tools in the chain see what they would see without the shim.

use std::collections::BTreeMap;
use std::path::Path;

use colltune_core::collective::Collective;
use colltune_tests::{Job, Mpi, folder, job, on_each_library, read_log, tool};

type Counts = BTreeMap<String, u64>;

const N_RANKS: u32 = 2;

/// Runs the job; what the tool counted on each rank.
fn counted(job: Job, scratch: &Path) -> Vec<Counts> {
    let log = scratch.join("tool");
    let outcome = job.env("TOOL_LOG", &log).run("left", &[]);
    outcome.succeeds().prints("ok\n").is_silent();
    let read = |rank: u32| {
        let text =
            std::fs::read_to_string(scratch.join(format!("tool.{rank}"))).unwrap_or_default();
        outcome.claim(!text.is_empty(), "the tool saw no MPI_Finalize");
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, count)| (name.to_owned(), count.parse().unwrap()))
            .collect()
    };
    (0..N_RANKS).map(read).collect()
}

fn tool_of(mpi: Mpi) -> std::path::PathBuf {
    tool(mpi, "counting_tool")
}

on_each_library! {
    fn a_tool_behind_us_sees_every_default_call_and_nothing_else(mpi: Mpi) {
        let scratch = folder();
        let bare = counted(job(N_RANKS).mpi(mpi).preload_tool(tool_of(mpi)), scratch.path());
        assert_eq!((bare[0]["init"], bare[0]["finalize"]), (1, 1));
        for mode in ["off", "record", "exploit", "explore"] {
            let db = folder();
            let log = db.path().join("log");
            let behind = job(N_RANKS).mpi(mpi).preload().preload_tool(tool_of(mpi)).db(db.path()).mode(mode).seed(1);
            let logged = mode == "explore";
            let behind = if logged { behind.log(&log) } else { behind };
            let mut wanted = bare.clone();
            if logged {
                for (rank, calls) in read_after(|| counted(behind, scratch.path()), &log, &mut wanted) {
                    assert_eq!(calls, wanted[rank], "explore, rank {rank}");
                }
            } else {
                assert_eq!(counted(behind, scratch.path()), wanted, "{mode}");
            }
        }
    }

    /// Which of the calls that it makes are counted does not hang on what a rank times for itself.
    fn a_tool_behind_us_may_call_collectives_in_its_wrappers(mpi: Mpi) {
        let run = |job: Job| {
            let outcome = job.preload_tool(tool(mpi, "calling_tool")).run("draws", &["60", "12", "9"]);
            outcome.succeeds().prints("ok\n");
        };
        run(job(N_RANKS).mpi(mpi));
        for mode in ["off", "record", "exploit", "explore"] {
            let db = folder();
            run(job(N_RANKS).mpi(mpi).preload().db(db.path()).mode(mode).seed(1));
        }
    }

    fn a_tool_before_us_sees_every_call(mpi: Mpi) {
        let scratch = folder();
        let bare = counted(job(N_RANKS).mpi(mpi).preload_tool(tool_of(mpi)), scratch.path());
        for mode in ["off", "record", "explore"] {
            let db = folder();
            let before = job(N_RANKS).mpi(mpi).preload_tool(tool_of(mpi)).preload().db(db.path()).mode(mode).seed(1);
            assert_eq!(counted(before, scratch.path()), bare, "{mode}");
            assert_eq!(db.path().join("incoming").exists(), mode != "off", "the shim is behind a tool that forwards");
        }
    }

    /// It calls the library's PMPI_ functions, past us: then there is nothing to tune, and no harm.
    fn a_tool_before_us_may_go_past_us(mpi: Mpi) {
        let scratch = folder();
        let bare = counted(job(N_RANKS).mpi(mpi).preload_tool(tool_of(mpi)).env("TOOL_PLAIN", "1"), scratch.path());
        let db = folder();
        let past = job(N_RANKS).mpi(mpi).preload_tool(tool_of(mpi)).preload().env("TOOL_PLAIN", "1").db(db.path());
        assert_eq!(counted(past, scratch.path()), bare);
    }
}

/// Runs `count`, then lowers in `wanted` each collective's number to the calls logged as `default`.
fn read_after(
    count: impl FnOnce() -> Vec<Counts>,
    log: &Path,
    wanted: &mut [Counts],
) -> Vec<(usize, Counts)> {
    let counts = count();
    let logs = read_log(log, N_RANKS);
    let mut native = 0;
    for (wanted, calls) in wanted.iter_mut().zip(&logs) {
        for collective in Collective::ALL {
            let of_collective = || {
                calls
                    .iter()
                    .filter(|call| call.collective == collective.name())
            };
            assert_eq!(
                of_collective().count() as u64,
                wanted[collective.name()],
                "the log holds every call"
            );
            let default = of_collective()
                .filter(|call| call.variant == "default")
                .count() as u64;
            native += wanted[collective.name()] - default;
            wanted.insert(collective.name().to_owned(), default);
        }
    }
    assert!(native > 0, "nothing but default ran");
    counts.into_iter().enumerate().collect()
}
