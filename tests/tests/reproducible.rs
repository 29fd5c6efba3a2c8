//! What `reproducible` promises about the bits of results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use colltune_tests::{
    Job, LoggedCall, Mpi, assert_ranks_agree, folder, is_long, job, on_each_library, read_log,
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

on_each_library! {
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
