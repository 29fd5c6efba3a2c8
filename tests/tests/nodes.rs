//! The memory of a node: right on several nodes however ranks are spread over them, and gone with the
//! job however that ends.

use std::collections::BTreeSet;
use std::path::Path;

use colltune_core::collective::Collective;
use colltune_core::prior::is_ever_drawn;
use colltune_tests::{
    Job, Mpi, all_right_on, assert_ranks_agree, between_nodes, fingerprint_of, folder, is_long,
    job, on_each_library, on_nodes, read_log, tool,
};

const ALL_ON_ONE: &str = "allreduce=node:shm;bcast=node:shm;reduce=node:shm;\
                          allgather=node:shm;alltoall=node:shm;barrier=node:shm";

/// Every variant of several nodes runs the program rightly on these nodes, in short tests every one that is drawn
/// by itself.
fn right_on(mpi: Mpi, nodes: &str, program: &str, arguments: &[&str]) {
    let mut variants = between_nodes(mpi);
    variants.retain(|variant| is_long() || is_ever_drawn(variant));
    all_right_on(mpi, nodes, variants, program, arguments);
}

/// What a job leaves that is killed: segments where libraries keep theirs, files where they have their
/// folders, and processes. In file systems of its own: other jobs come and go in the machine's.
#[derive(Debug, PartialEq)]
struct Left {
    segments: usize,
    files: usize,
    processes: usize,
}

impl Left {
    /// The job is killed as `who` says. `None` where there can be no such file systems.
    fn by(job: Job, who: &str) -> Option<Left> {
        let (segments, files) = (folder(), folder());
        let job = job
            .with_tmpfs(Path::new("/dev/shm"), "size=1g", segments.path())?
            .env("TMPDIR", files.path())
            .outliving_its_launcher();
        let outcome = job.run("ends", &["kill", "40", who]);
        outcome
            .ends()
            .claim(outcome.code != Some(0), "nobody was killed");
        Some(Left {
            segments: files_in(segments.path()),
            files: files_in(files.path()),
            processes: outcome.strays,
        })
    }

    fn is_within(&self, bare: &Left) -> bool {
        self.segments <= bare.segments
            && self.files <= bare.files
            && self.processes <= bare.processes
    }
}

/// The files below a folder.
fn files_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder)
        .expect("the folder is ours")
        .flatten();
    let count = |path: &Path| if path.is_dir() { files_in(path) } else { 1 };
    entries.map(|entry| count(&entry.path())).sum()
}

/// A job that is killed leaves no more with the shim than one without.
fn leaves_no_more_than(bare: &Left, tuned: &Job, who: &str) {
    let Some(tuned) = Left::by(tuned.clone(), who) else {
        return;
    };
    assert!(
        tuned.is_within(bare),
        "{who}: {tuned:?}, of the library alone {bare:?}"
    );
}

on_each_library! {
    fn uneven_nodes_whose_ranks_do_not_stand_together_are_right(mpi: Mpi) {
        right_on(mpi, "ABA", "own_algorithms", &["0", "1", "3001"]);
        right_on(mpi, "AAB", "collectives", &["1"]);
        if is_long() {
            right_on(mpi, "BAA", "own_algorithms", &[]);
            right_on(mpi, "ABA", "own_algorithms", &["405561"]);
        }
    }

    /// Containers on one machine would have all their leaders on one processor.
    fn the_second_node_is_led_by_its_second_rank(mpi: Mpi) {
        let force = "allreduce=node:shm+recursive_doubling";
        let seen = fingerprint_of(on_nodes(mpi, "ABB").force(force), Collective::Allreduce, 4096, 1);
        let sent: Vec<serde_json::Value> = serde_json::from_str(&seen.messages).expect("a list of each rank's messages");
        let sends: Vec<bool> = sent.iter().map(|row| row.as_array().is_some_and(|row| !row.is_empty())).collect();
        assert_eq!(sends, [true, false, true], "{}", seen.messages);
    }

    fn a_message_that_is_pending_arrives_during_every_call_on_several_nodes(mpi: Mpi) {
        // Short ones, and such as are cut into pieces.
        right_on(mpi, "ABA", "pending", &["100", "3000"]);
    }

    fn nobody_leaves_a_barrier_before_everybody_has_come(mpi: Mpi) {
        for (nodes, variant) in [("AAA", "node:shm"), ("ABA", "node:shm+recursive_doubling")] {
            let log = folder();
            let outcome = on_nodes(mpi, nodes)
                .force(&format!("barrier={variant}"))
                .log(log.path())
                .run("barriers", &["300"]);
            outcome.succeeds().prints("ok\n");
            let log = read_log(log.path(), 3);
            let ran = log[0].iter().filter(|call| call.variant == variant).count();
            assert_eq!(ran, 600);
        }
    }

    fn however_a_job_is_killed_it_leaves_no_more_than_with_the_library_alone(mpi: Mpi) {
        let log = folder();
        let one = job(4).mpi(mpi).preload().force(ALL_ON_ONE).log(log.path());
        let between = "allreduce=node:lanes+segmented_ring:segsize=16KiB;bcast=node:shm+chain:segsize=16KiB";
        let several = on_nodes(mpi, "ABBA").force(between);
        for who in ["rank", "launcher", "group"] {
            let Some(bare) = Left::by(job(4).mpi(mpi), who) else { return };
            leaves_no_more_than(&bare, &one, who);
            if who == "launcher" || is_long() {
                leaves_no_more_than(&bare, &several, who);
            }
        }
        let killed = read_log(log.path(), 4);
        let ran = killed[0].iter().filter(|call| call.variant == "node:shm").count();
        assert!(ran > 40, "{ran} calls ran in a segment before the kill");
    }

    fn memory_that_cannot_be_had_on_one_rank_means_default_on_all(mpi: Mpi) {
        let log = folder();
        let outcome = job(3)
            .mpi(mpi)
            .preload()
            .preload_tool(tool(mpi, "failing_reserve"))
            .force(ALL_ON_ONE)
            .log(log.path())
            .run("collectives", &["1"]);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), 3);
        assert_ranks_agree(&log);
        let world: Vec<_> = log.iter().flatten().filter(|call| call.ppn == 3).collect();
        assert!(world.len() > 100);
        world.iter().for_each(|call| assert_eq!(call.variant, "default", "{call:?}"));
    }

    /// As by a profiler's timer.
    fn memory_is_had_whatever_signals_interrupt_its_reservation(mpi: Mpi) {
        let log = folder();
        let outcome = job(3)
            .mpi(mpi)
            .preload()
            .preload_tool(tool(mpi, "interrupted_reserve"))
            .force("allreduce=node:shm")
            .log(log.path())
            .run("frequent", &["100", "1"]);
        outcome.succeeds().prints("ok\n");
        let interrupted = outcome.stderr.matches("interrupted").count();
        outcome.claim(interrupted == 6, &format!("{interrupted} reservations of 3 ranks were interrupted"));
        let log = read_log(log.path(), 3);
        assert_ranks_agree(&log);
        for calls in &log {
            let ran = calls.iter().filter(|call| call.variant == "node:shm").count();
            assert!(ran > 50, "{ran} calls ran in memory of the node");
        }
    }
}

#[test]
fn two_ranks_on_each_of_three_nodes_are_right_under_openmpi() {
    if let Some(mpi) = Mpi::OpenMpi.installed() {
        right_on(mpi, "ABCCAB", "collectives", &["1"]);
        right_on(mpi, "ABBA", "own_algorithms", &["3", "3001"]);
        if is_long() {
            right_on(mpi, "ABACAB", "own_algorithms", &[]);
        }
    }
}

/// Real ones: the test cluster's.
#[test]
fn lanes_are_right_between_several_nodes_under_mpich() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    let mut lanes = between_nodes(mpi);
    lanes.retain(|variant| variant.name.algorithm.starts_with("lanes"));
    // Our own schedules, the library's choice, and its first algorithm.
    let forces = (0..3).map(|place| {
        let of = |collective| {
            lanes
                .iter()
                .filter(move |one| one.collective == collective)
                .nth(place)
        };
        Collective::ALL
            .into_iter()
            .filter_map(of)
            .collect::<Vec<_>>()
    });
    let mut runs: Vec<_> = forces
        .map(|variants| ("collectives", "1", variants))
        .collect();
    runs.push(("own_algorithms", "3001", runs[0].2.clone()));
    let preload = format!("LD_PRELOAD={}", mpi.shim().display());
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/cluster");
    for (program, arguments, variants) in runs {
        let wanted: BTreeSet<_> = variants
            .iter()
            .map(|one| (one.collective.to_string(), one.name.to_string()))
            .collect();
        let parts = wanted
            .iter()
            .map(|(collective, name)| format!("{collective}={name}"));
        let force = parts.collect::<Vec<_>>().join(";");
        let log = folder();
        let path = colltune_tests::program(mpi, program);
        let command = format!(
            "{} run --mpi mpich --nodes 2 --slots 2 -n 4 --",
            cluster.display()
        );
        let mut command: Vec<&str> = command.split(' ').collect();
        command.extend(["env", &preload, path.to_str().unwrap(), arguments]);
        let outcome = job(4)
            .mpi(mpi)
            .force(&force)
            .log(log.path())
            .run_command(&command);
        if outcome.code == Some(77) {
            return colltune_tests::skip("needs root and tc, for the test cluster").unwrap_or(());
        }
        outcome.succeeds().prints("ok\n");
        let calls = read_log(log.path(), 4);
        assert_ranks_agree(&calls);
        let all = calls.into_iter().flatten();
        let ran: BTreeSet<_> = all.map(|call| (call.collective, call.variant)).collect();
        let missing: Vec<_> = wanted.difference(&ran).collect();
        assert!(missing.is_empty(), "{program}: {missing:?} never ran");
    }
}
