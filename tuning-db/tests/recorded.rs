//! Evidence that real jobs left, trained anew: what it says must not depend on what disturbed a few of them.
//!
//! `recorded/NAME` is a database without its raw records. `solver-disturbed` was made by `colltune-bench
//! solver-cluster` (`tests/mpi/imbalanced.c` with 20 us of compute, 8 ranks, ten explore runs). `busy` was made by
//! `colltune-bench --quick tuned-node` (MPICH 4.0 on 2 ranks, twenty explore runs, beside other work).
//! `cluster-shifting` was made by `colltune-bench tuned-cluster` (8 ranks on 4 nodes, twenty explore runs). Which
//! variants are fastest is known from forced runs of the same benches.

use std::path::{Path, PathBuf};

use colltune_core::collective::Collective;
use colltune_db::{Database, Generation, TrainOptions, generation, train};
use colltune_models::statistics::CellStatistics;

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copied(&from, &to),
            false => drop(std::fs::copy(from, to).unwrap()),
        }
    }
}

/// Every cell, after a training on recorded evidence.
fn learned(name: &str) -> Vec<CellStatistics> {
    let folder = tempfile::tempdir().unwrap();
    let recorded = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    copied(&recorded.join(name), folder.path());
    std::fs::create_dir_all(folder.path().join("incoming")).unwrap();
    let db = Database::open(folder.path()).unwrap();
    train(&db, TrainOptions::default(), &|_| ()).unwrap();
    let keys = generation::trained(&db).unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
    Generation::load(&db, keys[0].clone()).unwrap().cells
}

/// On the cluster, in two of ten jobs everything took three to five times as long, and twenty times as unevenly.
#[test]
fn two_disturbed_runs_do_not_hide_what_eight_calm_ones_show() {
    let cells = learned("solver-disturbed");
    let of_solver = |cell: &&CellStatistics| cell.cell.collective == Collective::Allreduce;
    let cells = cells.iter().filter(of_solver);
    let cell = cells
        .max_by(|a, b| a.time_share.total_cmp(&b.time_share))
        .unwrap();
    let reasons = cell
        .variants
        .iter()
        .map(|one| (&one.name, one.samples, one.contrast, &one.reason));
    let reasons: Vec<_> = reasons.map(|one| format!("\n{one:?}")).collect();
    assert!(
        cell.best.starts_with("node:shm"),
        "{}{}",
        cell.best,
        reasons.concat()
    );
}

/// A default that takes 1 ms beside a variant of 0.8 us, and a run of the default alone whose calls scatter by more than a
/// hundred times as much as that takes.
#[test]
fn how_much_a_slow_default_scatters_hides_no_variant_that_takes_a_thousandth() {
    let cells = learned("slow-default");
    let cell = cells
        .iter()
        .max_by(|a, b| a.time_share.total_cmp(&b.time_share))
        .unwrap();
    assert_eq!(cell.best, "native:recursive_doubling", "{cell:?}");
    assert!(cell.gain_lo > 10.0, "{cell:?}");
}

/// Beside compilers that keep both cores busy, one call in 160 of every variant takes a scheduler's turn more, a thousand
/// times as long as the others: that is no variant's fault, least of all of one that it meets more rarely.
#[test]
fn where_every_variant_stalls_as_often_those_that_are_twice_as_fast_are_found() {
    let cells = learned("busy");
    let best = |collective: Collective, bytes: u64| {
        let of_size = |cell: &&CellStatistics| {
            cell.cell.collective == collective && cell.cell.bytes.contains(bytes)
        };
        let most = cells.iter().filter(of_size);
        most.max_by(|a, b| a.time_share.total_cmp(&b.time_share))
            .map(|cell| cell.best.to_string())
    };
    for (collective, bytes) in [
        (Collective::Bcast, 8),
        (Collective::Bcast, 32 << 10),
        (Collective::Allgather, 8),
        (Collective::Reduce, 4 << 10),
    ] {
        assert_eq!(
            best(collective, bytes).as_deref(),
            Some("node:shm"),
            "{collective:?} {bytes}"
        );
    }
}

/// Behind a long bcast or reduce of the library's, ranks that leave early wait in what follows for longer than the faster
/// variants take: the default's own shift, without which those would cost less than nothing.
#[test]
fn variants_that_take_less_than_the_default_shifts_are_told_apart() {
    let cells = learned("cluster-shifting");
    for (collective, good) in [
        // 2.5 to 3.0 ms; the default takes 13.0, and node:shm+default 6.5.
        (
            Collective::Bcast,
            [
                "node:shm+chain:segsize=16KiB",
                "node:lanes+chain:segsize=16KiB",
                "native:pipeline:segsize=32KiB",
                "native:pipeline:segsize=16KiB",
                "p2p:chain:segsize=16KiB",
            ],
        ),
        // 2.5 to 2.9 ms; the default takes 5.3, and native:binomial:segsize=32KiB 4.2.
        (
            Collective::Reduce,
            [
                "node:shm+chain:segsize=16KiB",
                "node:lanes+chain:segsize=16KiB",
                "native:pipeline:segsize=32KiB",
                "p2p:chain:segsize=16KiB",
                "",
            ],
        ),
    ] {
        let of_size = |cell: &&CellStatistics| {
            cell.cell.collective == collective && cell.cell.bytes.contains(256 << 10)
        };
        let cell = cells.iter().filter(of_size);
        let cell = cell
            .max_by(|a, b| a.time_share.total_cmp(&b.time_share))
            .unwrap();
        assert!(
            good.contains(&cell.best.as_str()),
            "{collective:?}: {}",
            cell.best
        );
        let chosen = cell.variants.iter().find(|one| one.name == cell.best);
        let contrast = chosen.and_then(|one| one.contrast).unwrap();
        assert!(
            contrast.lo > 1.0 && contrast.hi < 4.0 * contrast.gain,
            "{collective:?}: {contrast:?}"
        );
    }
}
