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

/// Lists of one variant of each collective at most, for one job each, that together hold all of these.
fn lists(columns: &[Vec<Variant>]) -> Vec<Vec<Variant>> {
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let list = |place: usize| {
        let some = columns.iter().filter_map(|of| of.get(place).cloned());
        some.collect::<Vec<_>>()
    };
    (0..longest).map(list).collect()
}

fn every_own(mpi: Mpi) -> Vec<Vec<Variant>> {
    lists(&Collective::ALL.map(|collective| own_variants(mpi, collective)))
}

/// The same, but of each algorithm in pieces and as a whole the first parameter alone in short tests: the hard shapes have
/// them all.
fn one_of_each(mpi: Mpi) -> Vec<Vec<Variant>> {
    let of = |collective| {
        let mut seen = BTreeSet::new();
        let mut variants = own_variants(mpi, collective);
        variants.retain(|variant| {
            let name = &variant.name;
            let kind = (name.family, name.algorithm.clone(), name.segsize.is_some());
            is_long() || seen.insert(kind)
        });
        variants
    };
    lists(&Collective::ALL.map(of))
}

fn naming(list: &[Variant]) -> String {
    let parts = list
        .iter()
        .map(|variant| format!("{}={}", variant.collective, variant.name));
    parts.collect::<Vec<_>>().join(";")
}

fn forced(mpi: Mpi, n_ranks: u32, force: &str, log: &Path) -> Job {
    job(n_ranks).mpi(mpi).preload().force(force).log(log)
}

/// Runs a program with each of these lists of variants; those that ran, by collective and name.
fn run_all(
    mpi: Mpi,
    n_ranks: u32,
    lists: &[Vec<Variant>],
    program: &str,
    arguments: &[&str],
) -> BTreeSet<(String, String)> {
    let mut ran = BTreeSet::new();
    for list in lists {
        let log = folder();
        let outcome = forced(mpi, n_ranks, &naming(list), log.path()).run(program, arguments);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), n_ranks);
        assert_ranks_agree(&log);
        let calls = log.into_iter().next().unwrap_or_default();
        let of_list: BTreeSet<_> = calls
            .into_iter()
            .map(|call| (call.collective, call.variant))
            .collect();
        for variant in list {
            let collective = variant.collective.to_string();
            let is_run = of_list.iter().any(|(run, _)| *run == collective);
            assert!(is_run, "{program} runs no {collective}");
        }
        ran.extend(of_list);
    }
    ran
}

/// The shapes of `own_algorithms.c` with usual counts, and with one that every segment size cuts; in short tests the
/// latter where segments are to be cut.
fn hard_shapes(mpi: Mpi, n_ranks: u32) {
    // One MiB for each rank and a little more, in elements of eight bytes.
    let long = (n_ranks * (1 << 17) + 12_345).to_string();
    let usual = ["0", "1", "2", "3", "5", "17", "1000", "3001"];
    let with_long = [&usual[..], &["30000", long.as_str()]].concat();
    let is_cut = |variant: &Variant| variant.name.segsize.is_some();
    let columns = Collective::ALL.map(|collective| {
        let mut variants = own_variants(mpi, collective);
        // So that few lists have any.
        variants.sort_by_key(|variant| !is_cut(variant));
        variants
    });
    let (cut, whole): (Vec<_>, Vec<_>) = lists(&columns)
        .into_iter()
        .partition(|list| is_long() || list.iter().any(is_cut));
    let mut ran = run_all(mpi, n_ranks, &cut, "own_algorithms", &with_long);
    ran.extend(run_all(mpi, n_ranks, &whole, "own_algorithms", &usual));
    for variant in columns.iter().flatten() {
        let possible = variant.possible(n_ranks, 1, u64::from(n_ranks) << 20 | 1);
        let seen = ran.contains(&(variant.collective.to_string(), variant.name.to_string()));
        assert_eq!(
            seen, possible,
            "{n_ranks} ranks: {}={}",
            variant.collective, variant.name
        );
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
        run_all(mpi, few, &one_of_each(mpi), "own_algorithms", &["2", "17"]);
        if is_long() {
            hard_shapes(mpi, few);
        }
    }

    fn a_message_that_is_pending_arrives_during_every_collective(mpi: Mpi) {
        run_all(mpi, 2, &one_of_each(mpi), "pending", &["3", "40000"]);
        if mpi == Mpi::OpenMpi || is_long() {
            run_all(mpi, 3, &one_of_each(mpi), "pending", &["1000"]);
        }
    }

    fn a_message_goes_on_though_its_sender_waits_in_no_call(mpi: Mpi) {
        // So that the receiver does not fetch it by itself; Open MPI then has no windows for the barrier's part.
        for (copying, of_barrier) in [("none", false), ("cma", true)] {
            let of_nodes = |collective| -> Vec<Variant> {
                let variants = own_variants(mpi, collective).into_iter();
                variants.filter(|variant| matches!(variant.own, Some(Own::Node(_)))).collect()
            };
            let collectives = Collective::ALL.into_iter();
            let columns: Vec<_> = collectives.filter(|&of| (of == Collective::Barrier) == of_barrier).map(of_nodes).collect();
            for list in lists(&columns) {
                let place = |variant: &Variant| Collective::ALL.iter().position(|&of| of == variant.collective);
                let places: Vec<String> = list.iter().filter_map(place).map(|place| place.to_string()).collect();
                let log = folder();
                let job = forced(mpi, 2, &naming(&list), log.path());
                let job = job.env("OMPI_MCA_btl_vader_single_copy_mechanism", copying).env("UCX_TLS", "posix,self");
                job.run("unwaited", &[&places.join(","), "2", "3000"]).succeeds().prints("ok\n").is_silent();
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
        for list in every_own(mpi).iter().take(4) {
            let own = job(2).mpi(mpi).preload().force(&naming(list)).run("wrong_arguments", &[]);
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
        run_all(mpi, 5, &every_own(mpi), "collectives", &["1"]);
    }
}
