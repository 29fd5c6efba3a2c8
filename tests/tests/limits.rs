//! The shim keeps to its memory limit on every rank, gives back what it does not need, and runs the library's own
//! choice on all ranks where there is no room.

use std::collections::BTreeSet;
use std::time::Duration;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::variant::Family;
use colltune_tests::{
    Mpi, Outcome, assert_ranks_agree, between_nodes, folder, is_long, job, on_each_library,
    on_nodes, read_log, tool,
};

const LIMIT: &str = "COLLTUNE_MEMORY_PER_RANK_MAX";
/// What an object that is loaded, its model and buffers take beside it, in KiB.
const OBJECT_KIB: i64 = 10 << 10;
/// What a rank among 64 has of its own buffers, 0.8 MiB, of all cells of the others, 4 MiB, and of the shim, in KiB.
const ENDS_KIB: i64 = 8 << 10;
/// What a launcher takes, in KiB.
const LAUNCHER_KIB: i64 = 48 << 10;

/// The numbers that the ranks printed behind a word.
#[track_caller]
fn numbers(outcome: &Outcome, word: &str, n_ranks: usize) -> Vec<i64> {
    let lines = outcome.stderr.lines();
    let found = lines.filter_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    let found: Vec<i64> = found.collect();
    outcome.claim(
        found.len() == n_ranks,
        &format!("not every rank says {word}"),
    );
    found
}

/// Every variant of an alltoall, by its name, that runs on one node, and on two.
fn alltoalls(mpi: Mpi, nodes: &str) -> Vec<String> {
    let families = [Family::P2p, Family::Node];
    let on_one = catalogue::all(mpi.library()).into_iter().filter(|variant| {
        families.contains(&variant.name.family) && variant.possible(nodes.len() as u32, 1, u64::MAX)
    });
    let all = match nodes.contains('B') {
        true => between_nodes(mpi),
        false => on_one.collect(),
    };
    let all = all
        .into_iter()
        .filter(|one| one.collective == Collective::Alltoall);
    let mut names: Vec<_> = all.map(|one| one.name.to_string()).collect();
    // One of each kind, but for the long test.
    let mut kinds = BTreeSet::new();
    let kind = |name: &str| {
        name.split([':', '='])
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    names.retain(|name| is_long() || kinds.insert(kind(name)));
    names
}

/// An alltoall of so many MiB by every variant, in 1.3 times the memory that the job takes without the shim.
fn long_alltoalls_fit(mpi: Mpi, nodes: &str, mib: u64, limit: u64) {
    let n = nodes.len();
    let bare = job(n as u32)
        .mpi(mpi)
        .run("memory", &["peak", &mib.to_string()]);
    let need = numbers(bare.succeeds(), "peak ", n);
    let bytes = (need.iter().sum::<i64>() * 13 / 10 + LAUNCHER_KIB) as u64 * 1024;
    for name in alltoalls(mpi, nodes) {
        let tuned = on_nodes(mpi, nodes)
            .force(&format!("alltoall={name}"))
            .env(LIMIT, limit.to_string());
        let tuned = match tuned.clone().within_memory(bytes) {
            Some(limited) => limited,
            None => tuned,
        };
        let outcome = tuned.run("memory", &["peak", &mib.to_string()]);
        outcome.succeeds().prints("ok\n");
        let most = numbers(&outcome, "peak ", n).into_iter().max();
        let allowed = need
            .iter()
            .max()
            .map(|kib| kib + (limit as i64 >> 10) + OBJECT_KIB);
        outcome.claim(
            most <= allowed,
            &format!("a rank had {most:?} KiB, and {need:?} without the shim"),
        );
    }
}

on_each_library! {
    fn long_messages_of_every_own_family_fit_into_little_more_than_the_program_needs(mpi: Mpi) {
        if is_long() {
            long_alltoalls_fit(mpi, "AA", 512, 64 << 20);
        } else {
            long_alltoalls_fit(mpi, "AA", 64, 16 << 20);
        }
    }

    fn long_messages_between_nodes_fit_into_little_more_than_the_program_needs(mpi: Mpi) {
        long_alltoalls_fit(mpi, "AABB", if is_long() { 256 } else { 32 }, 8 << 20);
    }

    fn communicators_hold_no_more_than_the_limit_together_and_give_it_back(mpi: Mpi) {
        let limit = 6 << 20;
        let program = |kib| ["held", "60", kib].map(str::to_owned);
        for (name, kib) in [("node:shm", "64"), ("p2p:bruck:radix=2", "512")] {
            let arguments = program(kib);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let log = folder();
            let bare = job(2).mpi(mpi).run("memory", &arguments);
            bare.succeeds().prints("ok\n");
            let tuned = job(2).mpi(mpi).preload().force(&format!("alltoall={name}")).env(LIMIT, limit.to_string())
                .log(log.path()).run("memory", &arguments);
            tuned.succeeds().prints("ok\n").claim(tuned.messages().is_empty(), "the shim has a message");
            let most = |outcome: &Outcome, word| numbers(outcome, word, 2).into_iter().max().unwrap();
            let alive = most(&tuned, "alive ") - most(&bare, "alive ");
            tuned.claim(alive < (limit >> 10) + 3072, &format!("{name}: {alive} KiB while all are alive"));
            let freed = most(&tuned, "freed ") - most(&bare, "freed ");
            tuned.claim(freed < 3072, &format!("{name}: {freed} KiB once they are freed"));
            let log = read_log(log.path(), 2);
            assert_ranks_agree(&log);
            // The first communicators have room, and the last, which comes when the others are gone.
            let calls: Vec<_> = log[0].iter().filter(|call| call.collective == "alltoall").collect();
            assert_eq!(calls[1].variant, name);
            assert_eq!(calls[calls.len() - 1].variant, name, "behind the freed ones");
            if name == "node:shm" {
                assert_eq!(calls[calls.len() - 4].variant, "default", "the last of many at once");
            }
        }
    }

    fn without_memory_all_ranks_run_the_librarys_own_choice(mpi: Mpi) {
        let forced = ["allreduce=node:shm;bcast=p2p:binomial;allgather=node:shm;alltoall=p2p:bruck:radix=2;alltoallv=p2p:pairwise;\
                      gatherv=p2p:linear:window=4;reduce=p2p:binomial", "allreduce=p2p:ring;bcast=node:shm;alltoall=p2p:pairwise"];
        for forced in forced {
            let log = folder();
            let outcome = job(3).mpi(mpi).preload().force(forced).env(LIMIT, "0").log(log.path()).run("collectives", &["1"]);
            outcome.succeeds().prints("ok\n");
            let log = read_log(log.path(), 3);
            assert_ranks_agree(&log);
            log.iter().flatten().for_each(|call| assert_eq!(call.variant, "default", "{call:?}"));
        }
    }
}

/// Open MPI cuts a bcast by the elements of each rank, and in an alltoall it takes the send type for the receive
/// type. So such calls run as bytes, whether or not that takes more than the ranks may have.
#[test]
fn a_rank_whose_types_need_more_than_its_limit_does_not_run_another_call_than_the_others() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let program = ["mixed_types", "20"];
    job(3)
        .mpi(mpi)
        .run(program[0], &program[1..])
        .succeeds()
        .prints("ok\n");
    for forced in [
        "bcast=native:pipeline:segsize=32KiB",
        "alltoall=native:modified_bruck",
    ] {
        let log = folder();
        let tuned = job(3)
            .mpi(mpi)
            .preload()
            .force(forced)
            .env(LIMIT, "256KiB")
            .log(log.path());
        tuned
            .run(program[0], &program[1..])
            .succeeds()
            .prints("ok\n");
        let log = read_log(log.path(), 3);
        assert_ranks_agree(&log);
        let native = log[1]
            .iter()
            .filter(|call| call.variant.starts_with("native:"));
        assert!(native.count() > 5, "{forced}");
    }
}

/// What systems count of a rank that are not careful: pages that ranks share in each of them.
#[test]
fn on_a_node_of_64_ranks_each_is_said_to_have_little_more_than_without_the_shim() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let n = 64;
    let job = || job(n).mpi(mpi).deadline(Duration::from_secs(300));
    let mean = |outcome: &Outcome, word| numbers(outcome, word, 64).iter().sum::<i64>() / 64;
    let program = ["resident", "256"];
    let bare = job().run("memory", &program);
    bare.succeeds().prints("ok\n");
    // Of what the library has in other transports nothing counts.
    let forced = "allreduce=node:shm;bcast=node:shm;allgather=node:shm;alltoall=node:shm";
    let tuned = job().preload().force(forced).run("memory", &program);
    tuned.succeeds().prints("ok\n");
    let begins = mean(&tuned, "begins ") - mean(&bare, "begins ");
    tuned.claim(begins < 2 << 10, &format!("{begins} KiB behind MPI_Init"));
    let ends = mean(&tuned, "ends ") - mean(&bare, "begins ");
    tuned.claim(
        ends < ENDS_KIB,
        &format!("{ends} KiB behind calls of all sizes"),
    );
}

on_each_library! {
    /// What the shim takes would not be there for the program and its library: nothing is tuned.
    fn where_address_space_is_all_but_used_up_a_program_has_it_for_itself(mpi: Mpi) {
        let job = || job(2).mpi(mpi);
        let run = |job: colltune_tests::Job, kib: u64| job.run("scarce", &[&kib.to_string(), "20"]);
        // What the library needs for itself.
        let enough = |kib: &u64| run(job(), *kib).code == Some(0);
        let kib = (9..15).map(|power| 1 << power).find(enough).expect("it ends well with 16 MiB");
        let db = folder();
        let families = "native,node,p2p";
        let explore = job().preload().db(db.path()).mode("explore").seed(3).env("COLLTUNE_FAMILIES", families);
        run(explore.env("COLLTUNE_SETUP_AFTER", "1"), kib).succeeds().prints("ok\n");
        for forced in ["allreduce=node:shm;bcast=p2p:binomial", "allreduce=native:recursive_doubling"] {
            let log = folder();
            run(job().preload().force(forced).log(log.path()), kib).succeeds().prints("ok\n");
            let calls = read_log(log.path(), 2).concat();
            assert!(calls.iter().all(|call| call.variant == "default"), "{forced} ran with {kib} KiB");
        }
    }

    fn a_thread_whose_stack_is_enough_for_the_library_is_tuned_on_it(mpi: Mpi) {
        let job = || job(2).mpi(mpi);
        let run = |job: colltune_tests::Job, kib: u64| job.run("small_stack", &[&kib.to_string(), "20"]);
        let enough = |kib: &u64| run(job(), *kib).code == Some(0);
        let kib = [16, 20, 24, 32, 64, 128, 256, 512].into_iter().find(enough).expect("it ends well with 512 KiB");
        // A rank that waits long calls the library's progress on that stack: that takes 4 KiB more.
        let kib = kib + 4;
        let db = folder();
        let families = "native,node,p2p";
        let explore = job().preload().db(db.path()).mode("explore").seed(3).env("COLLTUNE_FAMILIES", families);
        run(explore.env("COLLTUNE_SETUP_AFTER", "1"), kib).succeeds().prints("ok\n");
        for family in ["node:shm", "p2p:recursive_doubling", "native:recursive_doubling"] {
            run(job().preload().force(&format!("allreduce={family}")), kib).succeeds().prints("ok\n");
        }
    }
}

/// MPI_Comm_split waits for nonblocking calls in the same order, so ours comes only behind as many on all ranks.
#[test]
fn ranks_whose_nonblocking_calls_differ_for_good_ask_each_other_a_few_times_only() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let calls = 500;
    let outcome = job(3)
        .mpi(mpi)
        .preload()
        .preload_tool(tool(mpi, "agreements"))
        .force("bcast=native:binomial")
        .run("unpaired", &[&calls.to_string()]);
    outcome
        .succeeds()
        .prints("ok\n")
        .claim(outcome.messages().is_empty(), "the shim has a message");
    for agreements in numbers(&outcome, "agreements ", 3) {
        outcome.claim(
            agreements < 50,
            &format!("{agreements} agreements of {calls} calls"),
        );
    }
}

/// Loops over matrices by panels broadcast each from another rank. Nothing on a node depends on who that is.
#[test]
fn ranks_of_a_node_agree_once_for_all_roots() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let agreements = |roots| {
        let outcome = job(8)
            .mpi(mpi)
            .preload()
            .preload_tool(tool(mpi, "agreements"))
            .force("bcast=node:shm;reduce=node:shm")
            .run("memory", &[roots, "40"]);
        outcome.succeeds().prints("ok\n");
        numbers(&outcome, "agreements ", 8)
    };
    assert_eq!(agreements("roots"), agreements("root"));
}

on_each_library! {
    /// A rank's program depends on the root, and takes what another rank's takes with another root.
    fn ranks_agree_once_on_a_schedule_for_its_first_root_and_once_for_all_others(mpi: Mpi) {
        let one_node = || job(8).mpi(mpi).preload();
        let jobs = [
            (one_node(), "bcast=p2p:binomial;reduce=p2p:binomial"),
            (one_node(), "bcast=p2p:binomial;reduce=p2p:in_order"),
            (on_nodes(mpi, "AABBBCCC"), "bcast=node:shm+binomial;reduce=node:shm+binomial"),
        ];
        for (job, forced) in jobs {
            let agreements = |roots| {
                let run = job.clone().preload_tool(tool(mpi, "agreements")).force(forced);
                let outcome = run.run("memory", &[roots, "40"]);
                outcome.succeeds().prints("ok\n");
                numbers(&outcome, "agreements ", 8)
            };
            // For all others they say what they need, and then whether they have it.
            let both = agreements("root").into_iter().zip(agreements("roots"));
            both.for_each(|(one, all)| assert_eq!(all, one + 2 * 2, "{forced}"));
        }
    }
}
