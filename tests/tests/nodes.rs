//! The memory of a node: right on several nodes however ranks are spread over them, and gone with the
//! job however that ends.

use std::collections::BTreeSet;
use std::path::Path;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::variant::Family;
use colltune_tests::{
    Job, Mpi, assert_ranks_agree, folder, job, on_each_library, read_log, runs_long, tool,
};

const ALL_ON_ONE: &str = "allreduce=node:shm;bcast=node:shm;reduce=node:shm;\
                          allgather=node:shm;alltoall=node:shm;barrier=node:shm";

/// A job whose ranks say that they run on the nodes of these letters.
fn on_nodes(mpi: Mpi, nodes: &str) -> Job {
    job(nodes.len() as u32)
        .mpi(mpi)
        .preload()
        .preload_tool(tool(mpi, "several_nodes"))
        .env("TESTED_NODES", nodes)
}

/// The variants of several nodes.
fn between(mpi: Mpi, collective: Collective) -> Vec<String> {
    let all = catalogue::variants(mpi.library(), collective);
    let names = all
        .into_iter()
        .filter(|variant| variant.name.family == Family::Node)
        .map(|variant| variant.name.to_string());
    names.filter(|name| name != "node:shm").collect()
}

/// Every variant of several nodes runs the program rightly on these nodes.
fn right_on(mpi: Mpi, nodes: &str, program: &str, arguments: &[&str]) {
    let variants = Collective::ALL.map(|collective| between(mpi, collective));
    let longest = variants.iter().map(Vec::len).max().unwrap_or(0);
    let (mut wanted, mut ran) = (BTreeSet::new(), BTreeSet::new());
    for place in 0..longest {
        let some = Collective::ALL
            .into_iter()
            .zip(&variants)
            .filter_map(|(collective, of)| Some((collective.to_string(), of.get(place)?.clone())));
        let some: Vec<_> = some.collect();
        let parts = some
            .iter()
            .map(|(collective, name)| format!("{collective}={name}"));
        let force = parts.collect::<Vec<_>>().join(";");
        let log = folder();
        let outcome = on_nodes(mpi, nodes)
            .force(&force)
            .log(log.path())
            .run(program, arguments);
        outcome.succeeds().prints("ok\n");
        let calls = read_log(log.path(), nodes.len() as u32);
        assert_ranks_agree(&calls);
        ran.extend(
            calls
                .into_iter()
                .flatten()
                .map(|call| (call.collective, call.variant)),
        );
        wanted.extend(some);
    }
    // Of barriers there are tests of their own; this program has none.
    wanted.retain(|(collective, _)| program != "collectives" || collective != "barrier");
    let missing: Vec<_> = wanted.difference(&ran).collect();
    assert!(missing.is_empty(), "on {nodes} {missing:?} never ran");
}

/// How many segments a job that loses a rank leaves where libraries keep theirs, in a memory file
/// system of its own: other jobs come and go in the machine's. `None` where there can be none.
fn left_by(job: Job) -> Option<usize> {
    let kept = folder();
    let job = job.with_tmpfs(Path::new("/dev/shm"), "size=1g", kept.path())?;
    let outcome = job.run("ends", &["kill", "40"]);
    assert!(
        !outcome.timed_out && outcome.code != Some(0),
        "{}",
        outcome.command
    );
    let left = std::fs::read_dir(kept.path()).expect("the folder is ours");
    Some(left.count())
}

on_each_library! {
    fn uneven_nodes_whose_ranks_do_not_stand_together_are_right(mpi: Mpi) {
        right_on(mpi, "ABA", "own_algorithms", &["0", "1", "3001"]);
        right_on(mpi, "AAB", "collectives", &["1"]);
        if runs_long() {
            right_on(mpi, "BAA", "own_algorithms", &[]);
            right_on(mpi, "ABA", "own_algorithms", &["405561"]);
        }
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

    fn a_rank_that_is_killed_leaves_no_more_than_with_the_library_alone(mpi: Mpi) {
        let Some(bare) = left_by(job(2).mpi(mpi)) else { return };
        let log = folder();
        let tuned = left_by(job(2).mpi(mpi).preload().force(ALL_ON_ONE).log(log.path())).unwrap_or(0);
        assert!(tuned <= bare, "{tuned} segments are left, of the library alone {bare}");
        let killed = read_log(log.path(), 2);
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
}

#[test]
fn two_ranks_on_each_of_three_nodes_are_right_under_openmpi() {
    if let Some(mpi) = Mpi::OpenMpi.installed() {
        right_on(mpi, "ABCCAB", "collectives", &["1"]);
        right_on(mpi, "ABBA", "own_algorithms", &["3", "3001"]);
        if runs_long() {
            right_on(mpi, "ABACAB", "own_algorithms", &[]);
        }
    }
}
