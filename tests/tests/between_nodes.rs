//! The library's own algorithms between the nodes: what runs is what the name says, rightly, or `default`.

use std::collections::BTreeSet;

use colltune_core::catalogue::{self, Crossing, Facts, OnNodes, Own, Variant};
use colltune_core::collective::Collective;
use colltune_tests::{
    Mpi, all_right_on, assert_ranks_agree, between_nodes, count_nodes, fingerprint_of, folder,
    is_long, job, on_each_library, on_nodes, own_forcing, read_log, runs_long, tool,
};

/// Those that can run on these nodes with messages of so many bytes. In short tests one of each algorithm for
/// leaders, and one for lanes, which run the same.
fn by_library(mpi: Mpi, nodes: &str, bytes: u64) -> Vec<Variant> {
    let mut variants = between_nodes(mpi);
    let (n_ranks, n_nodes) = (nodes.len() as u32, count_nodes(nodes));
    variants.retain(|variant| variant.is_steered() && variant.possible(n_ranks, n_nodes, bytes));
    if !is_long() {
        let mut seen = BTreeSet::new();
        variants.retain(|variant| {
            let algorithm = match variant.own {
                Some(Own::Node(OnNodes::Lanes(_))) => "lanes",
                _ => &variant.name.algorithm,
            };
            seen.insert((variant.collective, algorithm.to_owned()))
        });
    }
    variants
}

/// What the library runs between the nodes.
fn between(mpi: Mpi, variant: &Variant) -> Option<Variant> {
    let Crossing::Library(place) = variant.own.as_ref()?.crossing()? else {
        return None;
    };
    let known = catalogue::variants(mpi.library(), variant.collective);
    known.into_iter().nth(usize::from(place))
}

/// Rows of messages, one of each rank.
fn rows(messages: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(messages).expect("a list of each rank's messages")
}

on_each_library! {
    fn the_librarys_own_algorithms_are_right_between_nodes(mpi: Mpi) {
        // Open MPI has algorithms for three ranks and more.
        let nodes = if mpi.is_openmpi() { "ABCA" } else { "ABA" };
        all_right_on(mpi, nodes, by_library(mpi, nodes, 20_000), "own_algorithms", &["1", "3001"]);
        if is_long() {
            all_right_on(mpi, "ABA", by_library(mpi, "ABA", 20_000), "pending", &["100", "3000"]);
            all_right_on(mpi, nodes, by_library(mpi, nodes, 3 << 20), "own_algorithms", &["405561"]);
        }
    }

    /// The leaders send each other what as many ranks send under that name, and nobody else sends anything.
    fn what_runs_between_nodes_is_what_the_library_runs_under_that_name(mpi: Mpi) {
        const NODES: &str = "ABCC";
        let mut different = BTreeSet::new();
        let mut variants = by_library(mpi, NODES, 65_536);
        if !is_long() {
            let mut seen = [0; Collective::ALL.len()];
            variants.retain(|variant| {
                let seen = &mut seen[variant.collective.index()];
                *seen += 1;
                *seen <= 3
            });
        }
        for variant in variants {
            let (collective, leaders) = (variant.collective, count_nodes(NODES));
            let bytes = if collective == Collective::Barrier { 0 } else { 65_536 };
            let own = between(mpi, &variant).expect("a call of the library's");
            let of_leaders = matches!(variant.own, Some(Own::Node(OnNodes::Leaders(_))));
            if !of_leaders || !own.applies(&Facts::usual(collective, bytes, leaders, leaders)) {
                continue;
            }
            let force = format!("{collective}={}", variant.name);
            let ours = fingerprint_of(on_nodes(mpi, NODES).force(&force), collective, bytes, 1);
            // What a node of two ranks has for another, or for one of two.
            let together = match collective {
                Collective::Allgather => 2 * bytes,
                Collective::Alltoall => 4 * bytes,
                _ => bytes,
            };
            let alone = own_forcing(job(leaders).mpi(mpi), &own);
            let alone = fingerprint_of(alone, collective, together, 1);
            let (mut ours, alone) = (rows(&ours.messages), rows(&alone.messages));
            let last = ours.pop();
            assert!(last.is_some_and(|row| row.as_array().is_some_and(Vec::is_empty)), "{force}: one that leads no node sends");
            assert_eq!(ours, alone, "{force} with {bytes} bytes");
            different.insert(format!("{collective}{alone:?}"));
        }
        assert!(different.len() > 4, "{different:?} show little");
    }

    fn what_does_not_apply_between_nodes_is_default_on_all_ranks(mpi: Mpi) {
        // Three ranks, of which two meet: what needs more is nothing for them.
        let needs_more = |variant: &&Variant| {
            let of_three = between(mpi, variant).is_some_and(|own| own.possible(3, 2, 1 << 20));
            variant.is_steered() && of_three && !variant.possible(3, 2, 1 << 20)
        };
        let all = between_nodes(mpi);
        let Some(variant) = all.iter().find(needs_more) else {
            assert!(!mpi.is_openmpi(), "most of its broadcasts need three ranks");
            return;
        };
        let log = folder();
        let force = format!("{}={}", variant.collective, variant.name);
        let outcome = on_nodes(mpi, "ABA").force(&force).log(log.path()).run("collectives", &["1"]);
        outcome.succeeds().prints("ok\n");
        let messages = outcome.messages();
        outcome.claim(messages.iter().any(|line| line.contains("between the nodes")), "nobody says what it needs");
        let calls = read_log(log.path(), 3);
        assert_ranks_agree(&calls);
        assert!(calls[0].len() > 100);
        calls.iter().flatten().for_each(|call| assert_eq!(call.variant, "default", "{call:?}"));
    }

    fn a_communicator_between_nodes_that_fails_on_one_rank_means_default_on_all(mpi: Mpi) {
        let forced = ["allreduce=node:shm+default;bcast=node:lanes+default;reduce=node:lanes+default"];
        for force in forced {
            let log = folder();
            // The first is that for messages of our own.
            let outcome = on_nodes(mpi, "ABA")
                .force(force)
                .preload_tool(tool(mpi, "failing_split"))
                .env("FAILING_SPLIT_AFTER", "1")
                .log(log.path())
                .run("collectives", &["1"]);
            outcome.succeeds().prints("ok\n");
            let calls = read_log(log.path(), 3);
            assert_ranks_agree(&calls);
            let world: Vec<_> = calls.iter().flatten().filter(|call| (call.nodes, call.ppn) == (2, 2)).collect();
            assert!(world.len() > 100);
            world.iter().for_each(|call| assert_eq!(call.variant, "default", "{call:?}"));
        }
    }

    fn freed_communicators_leave_none_of_those_between_nodes(mpi: Mpi) {
        // Three ranks that spin on two cores would need minutes.
        if !mpi.is_openmpi() && !runs_long() {
            return;
        }
        // Far more than can be alive at once.
        let log = folder();
        let steered = by_library(mpi, "ABA", 8).into_iter().find(|variant| variant.collective == Collective::Bcast);
        let bcast = steered.map_or("node:shm+default".to_owned(), |variant| variant.name.to_string());
        let force = format!("allreduce=node:shm+default;reduce=node:shm+default;bcast={bcast}");
        let outcome = on_nodes(mpi, "ABA").force(&force).log(log.path()).run("patterns", &["short", "3", "12000"]);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), 3);
        assert!(assert_ranks_agree(&log) > 2000);
        let all = log[0].len();
        let last: Vec<_> = log[0][all - all / 10..].iter().filter(|call| call.nodes > 1 && call.ppn > 1 && call.bytes > 0).collect();
        let own = last.iter().filter(|call| call.variant.starts_with("node")).count();
        assert!(own * 8 > last.len(), "{own} of the last {} calls ran over the nodes", last.len());
    }
}
