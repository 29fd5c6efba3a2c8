//! Our own algorithms give what the library gives, whatever is thrown at them, and leave nothing.

use std::collections::BTreeSet;
use std::path::Path;

use colltune_core::catalogue::{self, Need, Own, Variant};
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, LoggedCall, Mpi, assert_ranks_agree, folder, is_long, job, on_each_library, read_log,
    runs_long, tool,
};

/// Those of one node; what needs several has tests of its own.
fn own_variants(mpi: Mpi, collective: Collective) -> Vec<Variant> {
    let all = catalogue::variants(mpi.library(), collective);
    all.into_iter()
        .filter(|variant| variant.own.is_some() && !variant.needs.contains(&Need::Hierarchy))
        .collect()
}

/// Lists of forced variants that together name every algorithm of our own.
fn every_own(mpi: Mpi) -> Vec<String> {
    let variants = Collective::ALL.map(|collective| own_variants(mpi, collective));
    let longest = variants.iter().map(Vec::len).max().unwrap_or(0);
    let list = |place: usize| {
        let some = variants.iter().filter_map(|of| of.get(place));
        let parts = some.map(|variant| format!("{}={}", variant.collective, variant.name));
        parts.collect::<Vec<_>>().join(";")
    };
    (0..longest).map(list).collect()
}

fn forced(mpi: Mpi, n_ranks: u32, force: &str, log: &Path) -> Job {
    job(n_ranks).mpi(mpi).preload().force(force).log(log)
}

/// Runs a program with every variant of ours; those that ran, by collective and name.
fn run_all(
    mpi: Mpi,
    n_ranks: u32,
    program: &str,
    arguments: &[&str],
) -> BTreeSet<(String, String)> {
    let mut ran = BTreeSet::new();
    for force in every_own(mpi) {
        let log = folder();
        let outcome = forced(mpi, n_ranks, &force, log.path()).run(program, arguments);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), n_ranks);
        assert_ranks_agree(&log);
        let calls = log.into_iter().next().unwrap_or_default();
        ran.extend(
            calls
                .into_iter()
                .map(|call| (call.collective, call.variant)),
        );
    }
    ran
}

/// The shapes of `own_algorithms.c` with usual counts, and with one that every segment size cuts.
fn hard_shapes(mpi: Mpi, n_ranks: u32) {
    // One MiB for each rank and a little more, in elements of eight bytes.
    let long = (n_ranks * (1 << 17) + 12_345).to_string();
    let counts = ["0", "1", "2", "3", "5", "17", "1000", "3001", &long];
    let ran = run_all(mpi, n_ranks, "own_algorithms", &counts);
    for collective in Collective::ALL {
        for variant in own_variants(mpi, collective) {
            let possible = variant.possible(n_ranks, 1, u64::from(n_ranks) << 20 | 1);
            let seen = ran.contains(&(collective.to_string(), variant.name.to_string()));
            assert_eq!(
                seen, possible,
                "{n_ranks} ranks: {collective}={}",
                variant.name
            );
        }
    }
}

fn ran(log: &[Vec<LoggedCall>], family: &str) -> usize {
    let of_family = |call: &&LoggedCall| call.variant.starts_with(family);
    log[0].iter().filter(of_family).count()
}

on_each_library! {
    fn hard_shapes_are_right_on_two_and_three_ranks(mpi: Mpi) {
        // Each library with as many ranks as it takes without spinning against itself.
        let (all, few) = if mpi.is_openmpi() { (3, 2) } else { (2, 3) };
        hard_shapes(mpi, all);
        run_all(mpi, few, "own_algorithms", &["2", "17"]);
        if is_long() {
            hard_shapes(mpi, few);
        }
    }

    fn a_message_that_is_pending_arrives_during_every_collective(mpi: Mpi) {
        run_all(mpi, 2, "pending", &["3", "40000"]);
        if mpi == Mpi::OpenMpi || is_long() {
            run_all(mpi, 3, "pending", &["1000"]);
        }
    }

    fn a_message_goes_on_though_its_sender_waits_in_no_call(mpi: Mpi) {
        for (place, collective) in Collective::ALL.into_iter().enumerate() {
            let variants = own_variants(mpi, collective).into_iter();
            for variant in variants.filter(|variant| matches!(variant.own, Some(Own::Node(_)))) {
                let (log, place) = (folder(), place.to_string());
                let force = format!("{collective}={}", variant.name);
                let job = forced(mpi, 2, &force, log.path());
                // So that the receiver does not fetch it by itself; Open MPI then has no windows for the barrier's part.
                let copying = match collective {
                    Collective::Barrier => "cma",
                    _ => "none",
                };
                let job = job.env("OMPI_MCA_btl_vader_single_copy_mechanism", copying).env("UCX_TLS", "posix,self");
                job.run("unwaited", &[&place, "2", "3000"]).succeeds().prints("ok\n").is_silent();
            }
        }
    }

    fn families_are_drawn_as_the_settings_say_and_ranks_agree(mpi: Mpi) {
        for (families, seed) in [("native,p2p", 31), ("p2p", 32), ("native", 33), ("p2p,node", 34)] {
            let n_ranks = if mpi == Mpi::OpenMpi { 4 } else { 2 };
            let db = folder();
            let outcome = job(n_ranks)
                .mpi(mpi)
                .preload()
                .db(db.path())
                .seed(seed)
                .env("COLLTUNE_FAMILIES", families)
                .env("COLLTUNE_SETUP_AFTER", "1")
                // On a busy machine what agreements cost would leave too few draws.
                .env("COLLTUNE_EXPLORE_BUDGET", "1")
                .log(db.path().join("log"))
                .run("patterns", &["random", &seed.to_string(), "500"]);
            outcome.succeeds().prints("ok\n").is_silent();
            let log = read_log(&db.path().join("log"), n_ranks);
            assert_ranks_agree(&log);
            for family in ["native", "p2p", "node"] {
                let wanted = families.contains(family);
                assert_eq!(ran(&log, family) > 5, wanted, "{family}, drawn from {families}");
                assert_eq!(ran(&log, family) > 0, wanted, "{family}, drawn from {families}");
            }
        }
    }

    fn freed_communicators_leave_their_places_to_later_ones(mpi: Mpi) {
        // Far more than can be alive at once: what a freed one kept would be missing in the end.
        let log = folder();
        let force = "allreduce=p2p:recursive_doubling;bcast=p2p:binomial;reduce=p2p:binomial;\
                     allgather=p2p:ring;alltoall=p2p:pairwise";
        let outcome = forced(mpi, 2, force, log.path()).run("patterns", &["short", "3", "3000"]);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), 2);
        assert!(assert_ranks_agree(&log) > 2000);
        let all = log[0].len();
        let last: Vec<_> = log[0][all - all / 10..].iter().filter(|call| call.nodes > 0 && call.bytes > 0).collect();
        let own = last.iter().filter(|call| call.variant.starts_with("p2p")).count();
        // Of a communicator of one rank, and on MPI_COMM_SELF, there is nothing to run.
        assert!(own * 4 > last.len(), "{own} of the last {} calls ran an algorithm of ours", last.len());
    }

    fn a_private_communicator_that_fails_on_one_rank_means_default_on_all(mpi: Mpi) {
        let log = folder();
        let outcome = forced(mpi, 3, "allreduce=p2p:ring;bcast=p2p:binomial", log.path())
            .preload_tool(tool(mpi, "failing_create"))
            .run("collectives", &["1"]);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), 3);
        assert_ranks_agree(&log);
        assert!(log[0].len() > 100);
        // Communicators without a rank 1 of three have theirs: the tool fails on the others.
        let world = log.iter().flatten().filter(|call| call.ppn == 3);
        world.for_each(|call| assert_eq!(call.variant, "default", "{call:?}"));
    }

    fn wrong_arguments_are_the_librarys_to_report(mpi: Mpi) {
        let bare = job(2).mpi(mpi).run("wrong_arguments", &[]);
        bare.succeeds();
        assert!(bare.stdout.lines().filter(|line| !line.ends_with(" 0")).count() >= 10, "{}", bare.stdout);
        for force in every_own(mpi).iter().take(4) {
            let own = job(2).mpi(mpi).preload().force(force).run("wrong_arguments", &[]);
            own.succeeds().prints(&bare.stdout);
        }
    }
}

#[test]
fn hard_and_plain_shapes_are_right_on_five_ranks_of_openmpi() {
    if let Some(mpi) = Mpi::OpenMpi.installed()
        && runs_long()
    {
        hard_shapes(mpi, 5);
        run_all(mpi, 5, "collectives", &["1"]);
    }
}
