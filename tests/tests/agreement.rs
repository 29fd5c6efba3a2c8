//! All ranks of a communicator run the same variant in the same call, whatever they do elsewhere.

use std::collections::BTreeMap;

use colltune_core::catalogue::{self, Facts};
use colltune_core::classify::{CellsBySize, Layout};
use colltune_core::collective::{Collective, MessageSize};
use colltune_core::model::Model;
use colltune_core::settings::Settings;
use colltune_core::thin::{WARMUPS, warmups};
use colltune_tests::{
    Job, LoggedCall, Mpi, assert_ranks_agree, folder, is_long, job, on_each_library, part, read_log,
};

/// Exploring whatever agreements cost: jobs that do little but make communicators would soon explore no more on a
/// machine where agreements take long.
fn exploring(mpi: Mpi, n_ranks: u32, db: &std::path::Path, seed: u64) -> Job {
    job(n_ranks)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode("explore")
        .env("COLLTUNE_EXPLORE_BUDGET", "1")
        .seed(seed)
        .log(db.join("log"))
}

/// Runs a pattern of communicators; the log that its ranks agree on.
fn pattern(mpi: Mpi, n_ranks: u32, name: &str, seed: u64, events: u32) -> Vec<Vec<LoggedCall>> {
    let db = folder();
    let outcome = exploring(mpi, n_ranks, db.path(), seed)
        .env(
            "COLLTUNE_SETUP_AFTER",
            if seed.is_multiple_of(2) { "1" } else { "8" },
        )
        .run("patterns", &[name, &seed.to_string(), &events.to_string()]);
    outcome.succeeds().prints("ok\n").is_silent();
    let log = read_log(&db.path().join("log"), n_ranks);
    let n_comms = assert_ranks_agree(&log);
    outcome.claim(n_comms > 0, "no call was logged with a communicator");
    log
}

fn ran_natively(log: &[Vec<LoggedCall>]) -> usize {
    log[0]
        .iter()
        .filter(|call| call.variant != "default")
        .count()
}

/// Four ranks where the library yields, two where it spins.
fn ranks(mpi: Mpi) -> u32 {
    if mpi == Mpi::OpenMpi { 4 } else { 2 }
}

on_each_library! {
    fn split_dup_and_create_agree(mpi: Mpi) {
        for (seed, name) in [(1, "split"), (2, "dup"), (3, "create")] {
            let log = pattern(mpi, ranks(mpi), name, seed, 150);
            assert!(ran_natively(&log) > 50, "{name}: too few native calls to show anything");
        }
    }

    fn thousands_of_short_lived_communicators_agree(mpi: Mpi) {
        pattern(mpi, 2, "short", 5, if is_long() { 3000 } else { 1000 });
    }

    fn overlapping_communicators_agree_in_any_order(mpi: Mpi) {
        let log = pattern(mpi, mpi.ranks_max(), "overlap", 4, if mpi == Mpi::OpenMpi { 600 } else { 300 });
        assert!(ran_natively(&log) > 50);
    }

    fn random_programs_agree(mpi: Mpi) {
        for seed in [11, 12, 13] {
            pattern(mpi, ranks(mpi), "random", seed, 300);
        }
        pattern(mpi, 3, "random", 14, 60);
    }

    fn intercommunicators_are_left_alone(mpi: Mpi) {
        let log = pattern(mpi, mpi.ranks_max(), "inter", 7, 30);
        // The halves and the merged one are tuned.
        assert!(ran_natively(&log) > 0);
    }

    fn the_programs_of_an_mpmd_job_agree(mpi: Mpi) {
        let db = folder();
        let parts = [part(2, "left", &[]), part(mpi.ranks_max() - 2, "right", &[])];
        let outcome = exploring(mpi, 0, db.path(), 9).run_parts(&parts);
        outcome.succeeds().prints("ok\n").is_silent();
        let log = read_log(&db.path().join("log"), mpi.ranks_max());
        assert!(assert_ranks_agree(&log) >= 3);
        assert!(ran_natively(&log) > 20);
    }

    fn a_seed_decides_every_draw(mpi: Mpi) {
        // Fewer samples of a cell than a review waits for: behind that, measured times take part.
        let draws = |seed: u64| {
            let db = folder();
            let job = exploring(mpi, 2, db.path(), seed).env("COLLTUNE_SETUP_AFTER", "1");
            let outcome = job.run("draws", &["12", "4", "1000", "ready"]);
            outcome.succeeds().prints("ok\n");
            let log = read_log(&db.path().join("log"), 2);
            assert_ranks_agree(&log);
            assert!(log[0].iter().any(|call| call.sampled));
            log[0].iter().map(|call| (call.comm, call.index, call.variant.clone(), call.sampled)).collect::<Vec<_>>()
        };
        let (first, again, other) = (draws(21), draws(21), draws(22));
        assert!(first == again, "seed 21 drew differently the second time");
        assert_eq!(first.len(), other.len());
        let different = first.iter().zip(&other).filter(|(a, b)| a.2 != b.2).count();
        assert!(different > first.len() / 10, "seeds 21 and 22 drew alike but for {different} of {} calls", first.len());
    }

    fn draws_are_as_generation_0_has_them_before_any_training(mpi: Mpi) {
        const SEED: u64 = 4;
        // Below the size from which cells are reviewed early.
        const COUNT: u64 = 4_000;
        // As many samples as come before measured times take part: the first review is that of two variants, behind
        // their third sample.
        let samples_each = 3;
        // Calls before ranks have agreed on the size of those whose counts each knows for itself.
        const UNSIZED: u64 = 1;
        let calls_each = (samples_each - 1) * (WARMUPS + 1) + 1;
        let n_ranks = if mpi == Mpi::OpenMpi { 4 } else { 2 };
        let db = folder();
        let outcome = exploring(mpi, n_ranks, db.path(), SEED)
            .env("COLLTUNE_SETUP_AFTER", "1")
            .run("draws", &["80", &(calls_each + UNSIZED).to_string(), &COUNT.to_string(), "ready"]);
        outcome.succeeds().prints("ok\n").is_silent();
        let log = read_log(&db.path().join("log"), n_ranks);
        let model = Model::initial(&Settings::default(), mpi.library(), "any");
        let layout = Layout { n_ranks, nodes: 1, ppn: n_ranks };
        for collective in Collective::ALL {
            let bytes = match collective.size() {
                MessageSize::Nothing => 0,
                MessageSize::Message | MessageSize::Block => 8 * COUNT,
            };
            let of_each = log[0].chunk_by(|a, b| a.comm == b.comm).flat_map(|calls| {
                let of_size = calls.iter().filter(|call| call.collective == collective.name() && call.bytes == bytes);
                of_size.take(calls_each as usize)
            });
            let all: Vec<_> = of_each.collect();
            let calls: Vec<_> = all.iter().filter(|call| call.sampled).collect();
            let cells = CellsBySize::new(&model, collective, layout);
            let cell = &model.cells[cells.cells()[cells.position(bytes).unwrap()] as usize];
            let (drawn, expected) = expected_shares(mpi, collective, cell, n_ranks, bytes);
            let period = warmups(drawn, cell.cell.bytes.lo) + 1;
            assert_eq!(calls.len() as u64, 80 * ((calls_each - 1) / period + 1), "{collective}");
            if drawn == 1 {
                // The library has one algorithm alone.
                continue;
            }
            assert!(expected.len() > 1, "{collective}: nothing to draw from");
            let takes = all.chunk_by(|a, b| a.comm == b.comm).flat_map(|calls| {
                let (first, rest) = calls.split_at(1);
                std::iter::once(first).chain(rest.chunks(period as usize))
            });
            for take in takes {
                assert!(take.iter().all(|call| call.variant == take[0].variant), "{collective}: warmed up otherwise than run");
                assert_eq!(take.iter().position(|call| call.sampled), Some(take.len() - 1), "{collective}");
            }
            // Behind a variant's first sample nothing is drawn again until a review has judged that.
            let first: Vec<_> = all.chunk_by(|a, b| a.comm == b.comm).map(|calls| &calls[0]).collect();
            let mut square = 0.0;
            for (name, share) in &expected {
                let seen = first.iter().filter(|call| call.variant == *name).count() as f64;
                let wanted = share * first.len() as f64;
                square += (seen - wanted).powi(2) / wanted;
            }
            let freedom = (expected.len() - 1) as f64;
            // Mean and variance of chi-square are its degrees of freedom and twice that: five deviations.
            let bound = freedom + 5.0 * (2.0 * freedom).sqrt();
            assert!(square <= bound, "{collective}, seed {SEED}: chi-square {square:.1} of {freedom} degrees is above {bound:.1}");
        }
    }
}

/// How many variants are drawn, and the share of sampled calls that each should run; what does not apply to these calls
/// runs `default` instead.
fn expected_shares(
    mpi: Mpi,
    collective: Collective,
    cell: &colltune_core::model::CellModel,
    n_ranks: u32,
    bytes: u64,
) -> (usize, BTreeMap<String, f64>) {
    let facts = Facts::usual(collective, bytes, n_ranks, 1);
    let find = |name: &str| {
        catalogue::find(mpi.library(), collective, name).expect("the model names known variants")
    };
    let drawn: Vec<_> = cell
        .variants
        .iter()
        .map(|share| (find(&share.name), share.probability))
        .filter(|(variant, _)| variant.possible(n_ranks, 1, cell.cell.bytes.last()))
        .collect();
    let total: f64 = drawn.iter().map(|(_, probability)| probability).sum();
    let mut shares = BTreeMap::new();
    for (variant, probability) in &drawn {
        let name = if variant.applies(&facts) {
            variant.name.to_string()
        } else {
            "default".to_owned()
        };
        *shares.entry(name).or_insert(0.0) += probability / total;
    }
    (drawn.len(), shares)
}
