//! What `reproducible` promises about the bits of results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use colltune_tests::{
    Job, LoggedCall, Mpi, assert_ranks_agree, folder, is_long, job, on_each_library, on_nodes,
    read_log,
};

/// The order of additions shows from three ranks on.
const RANKS: u32 = 3;
const SEEDS: std::ops::Range<u64> = 1..4;

fn exploring(mpi: Mpi, reproducible: &str, seed: u64, db: &Path) -> Job {
    job(RANKS)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode("explore")
        .seed(seed)
        .env("COLLTUNE_SETUP_AFTER", "1")
        .env("COLLTUNE_REPRODUCIBLE", reproducible)
        .log(db.join("log"))
}

/// What `rounding` prints: a hash of the bits of every floating-point sum.
fn sums(job: Job) -> String {
    let outcome = job.run("rounding", &["20", "1", "600", "5000"]);
    outcome.succeeds().is_silent();
    outcome.stdout.clone()
}

fn calls(mpi: Mpi, reproducible: &str, seed: u64) -> Vec<LoggedCall> {
    let db = folder();
    let outcome = exploring(mpi, reproducible, seed, db.path()).run("draws", &["12", "10", "1000"]);
    outcome.succeeds().prints("ok\n").is_silent();
    let mut log = read_log(&db.path().join("log"), RANKS);
    assert_ranks_agree(&log);
    log.swap_remove(0)
}

fn variants_of_cells(calls: &[LoggedCall]) -> BTreeMap<(String, u64), BTreeSet<String>> {
    let mut variants: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for call in calls {
        let Some(cell) = call.cell else {
            assert_eq!(call.variant, "default", "{call:?} falls into no cell");
            continue;
        };
        variants
            .entry((call.collective.clone(), cell))
            .or_default()
            .insert(call.variant.clone());
    }
    variants
}

/// Whether variants of few ranks round differently: MPICH's all add in one order.
fn may_differ(mpi: Mpi) -> bool {
    mpi != Mpi::Mpich
}

/// Explores `fixed_order`, which holds every result against the fixed order, on ranks of these nodes.
fn held_against_the_order(mpi: Mpi, nodes: &str, reproducible: &str, log: &Path) -> String {
    let db = folder();
    let job = on_nodes(mpi, nodes)
        .db(db.path())
        .mode("explore")
        .seed(5)
        .log(log);
    let job = job
        .env("COLLTUNE_SETUP_AFTER", "3")
        .env("COLLTUNE_REPRODUCIBLE", reproducible);
    let rounds = if is_long() { "40" } else { "10" };
    let outcome = job.run("fixed_order", &[rounds, "1", "7", "100", "3000", "40000"]);
    outcome.succeeds().is_silent();
    let calls = read_log(log, nodes.len() as u32);
    assert_ranks_agree(&calls);
    outcome.stdout.clone()
}

on_each_library! {
    fn the_fixed_order_is_one_on_any_nodes_whatever_runs(mpi: Mpi) {
        let mut ran = BTreeSet::new();
        for nodes in ["aa", "aaa", "aaaaa", "aabb", "abab", "aaab", "aabbcc"] {
            let log = folder();
            let said = held_against_the_order(mpi, nodes, "fixed", log.path());
            assert_eq!(said, "ok\n", "{nodes}");
            let calls = read_log(log.path(), nodes.len() as u32).swap_remove(0);
            ran.extend(calls.into_iter().map(|call| (call.collective, call.variant)));
        }
        // Which of each kind is drawn also hangs on times.
        for kind in ["default", "p2p:r", "p2p:direct", "node:shm", "node:shm+", "node:lanes+"] {
            let is_of_kind = |(of, variant): &(String, String)| of == "allreduce" && variant.starts_with(kind);
            assert!(ran.iter().any(is_of_kind), "no {kind} ever ran: {ran:?}");
        }
        for collective in ["reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"] {
            let own = ran.iter().any(|(of, variant)| of == collective && variant.starts_with("p2p:"));
            assert!(own, "{collective} always ran the default: {ran:?}");
        }
        let log = folder();
        let said = held_against_the_order(mpi, "aaaaa", "off", log.path());
        for collective in ["allreduce", "reduce", "reduce_scatter", "reduce_scatter_block"] {
            let wrong = said.lines().find_map(|line| line.strip_prefix(&format!("{collective}: ")));
            assert!(wrong.is_some_and(|wrong| wrong != "0"), "any order of {collective} passes: {said}");
        }
    }

    fn what_keeps_no_order_says_so_and_a_job_that_is_off_keeps_none(mpi: Mpi) {
        let fixed = || job(2).mpi(mpi).preload().env("COLLTUNE_REPRODUCIBLE", "fixed");
        let outcome = fixed().run("fixed_order", &["1"]);
        outcome.succeeds().prints("ok\n");
        outcome.says(&[
            "reproducible = \"fixed\" does not hold for reductions that are nonblocking or persistent: their order is the library's",
        ]);
        let off = fixed().mode("off").env("COLLTUNE_SUMMARY", "true").run("fixed_order", &["2", "3000"]);
        assert_ne!(off.succeeds().stdout, "ok\n", "the library has this order: this test shows nothing");
        fixed().run("fixed_order", &["2", "3000"]).succeeds().prints("ok\n").is_silent();
    }

    fn without_a_set_up_and_where_another_order_is_forced_the_fixed_one_holds(mpi: Mpi) {
        let counts = ["3", "1", "7", "3000"];
        let late = job(3).mpi(mpi).preload().env("COLLTUNE_REPRODUCIBLE", "fixed").mode("exploit");
        late.env("COLLTUNE_SETUP_AFTER", "100000").run("fixed_order", &counts).succeeds().prints("ok\n").is_silent();
        let forced = job(5).mpi(mpi).preload().env("COLLTUNE_REPRODUCIBLE", "fixed").force("allreduce=p2p:ring");
        let outcome = forced.run("fixed_order", &counts);
        outcome.succeeds().prints("ok\n");
        outcome.says(&["allreduce=p2p:ring is forced, but needs additions in any order: such calls run default"]);
    }

    fn a_seed_of_the_database_leaves_each_job_its_own_draws(mpi: Mpi) {
        let drawn = |seed: Option<u64>| {
            let db = folder();
            std::fs::write(db.path().join("colltune.toml"), "seed = 5\n").unwrap();
            let log = db.path().join("log");
            let run = job(2).mpi(mpi).preload().db(db.path()).mode("explore").env("COLLTUNE_SETUP_AFTER", "1").log(&log);
            let run = match seed {
                Some(seed) => run.seed(seed),
                None => run,
            };
            run.run("draws", &["12", "10", "1000"]).succeeds().is_silent();
            // Before eight samples no review of measured times has decided anything.
            let sampled = read_log(&log, 2).swap_remove(0).into_iter().filter(|call| call.sampled).take(8);
            sampled.map(|call| (call.index, call.variant)).collect::<Vec<_>>()
        };
        assert_ne!(drawn(None), drawn(None), "two jobs of one database");
        assert_eq!(drawn(Some(5)), drawn(Some(5)), "what COLLTUNE_SEED says is of one job");
    }

    fn strict_keeps_the_bits_of_the_bare_library_in_every_run(mpi: Mpi) {
        let bare = sums(job(RANKS).mpi(mpi));
        let mut others = 0;
        for seed in SEEDS {
            let db = folder();
            assert_eq!(sums(exploring(mpi, "strict", seed, db.path())), bare, "seed {seed}");
            let log = read_log(&db.path().join("log"), RANKS);
            assert!(log[0].iter().all(|call| call.variant == "default"), "a floating-point sum was tuned");
            if others == 0 && may_differ(mpi) {
                let db = folder();
                others += usize::from(sums(exploring(mpi, "off", seed, db.path())) != bare);
            }
        }
        assert!(others > 0 || !may_differ(mpi), "every variant rounds as the default does: this test shows nothing");
    }

    fn strict_still_tunes_what_rounding_cannot_reach(mpi: Mpi) {
        let calls = calls(mpi, "strict", 3);
        for collective in ["allreduce", "reduce", "bcast", "allgather", "alltoall"] {
            let tuned = calls.iter().any(|call| call.collective == collective && call.variant != "default");
            assert!(tuned, "{collective} of integers always ran the default");
        }
    }

    fn a_run_keeps_to_one_variant_in_each_cell(mpi: Mpi) {
        let by_seed: Vec<_> = SEEDS.map(|seed| variants_of_cells(&calls(mpi, "run", seed))).collect();
        for (seed, variants) in SEEDS.zip(&by_seed) {
            for (cell, variants) in variants {
                assert_eq!(variants.len(), 1, "seed {seed}, {cell:?}: {variants:?}");
            }
        }
        let distinct: BTreeSet<_> = by_seed.iter().map(|cells| format!("{cells:?}")).collect();
        assert!(distinct.len() > 1, "every seed chose the same variants");
        let off = variants_of_cells(&calls(mpi, "off", 1));
        assert!(off.values().any(|variants| variants.len() > 1), "without it a run would keep to one variant too");
    }

    fn a_run_keeps_the_bits_of_a_sum_from_its_first_call_on(mpi: Mpi) {
        let seeds = if is_long() { 1..9 } else { 1..5 };
        let (mut tuned, mut others) = (0, 0);
        for seed in seeds {
            let distinct = |reproducible: &str, log: &Path| {
                let db = folder();
                let exploring = job(RANKS).mpi(mpi).preload().db(db.path()).mode("explore").seed(seed).log(log);
                let sums = sums(exploring.env("COLLTUNE_REPRODUCIBLE", reproducible));
                sums.lines().map(str::to_owned).collect::<BTreeSet<_>>()
            };
            let log = folder();
            let of_run = distinct("run", log.path());
            assert_eq!(of_run.len(), 6, "seed {seed}: {of_run:?}");
            let calls = read_log(log.path(), RANKS).swap_remove(0);
            tuned += calls.iter().filter(|call| call.variant != "default").count();
            if others == 0 && may_differ(mpi) {
                others += usize::from(distinct("off", folder().path()).len() > 6);
            }
        }
        assert!(tuned > 0, "every seed chose the default everywhere: this test shows nothing");
        assert!(others > 0 || !may_differ(mpi), "without it a run would keep its bits, too");
    }
}
