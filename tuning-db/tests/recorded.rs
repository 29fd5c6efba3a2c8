//! Evidence that real jobs left, trained anew: what it says must not depend on what disturbed a few of them.
//!
//! `recorded/NAME` is a database without its raw records. `solver-disturbed` was made by `colltune bench solver-cluster`
//! (`tests/mpi/imbalanced.c` with 20 us of compute, 8 ranks, ten explore runs), `busy` by `colltune bench --quick
//! tuned-node` (MPICH 4.0 on 2 ranks, twenty explore runs, beside other work). Which variants are fastest is known from
//! forced runs of the same benches.

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

/// Beside compilers that keep both cores busy, one call in 160 of every variant takes a scheduler's turn more, a thousand
/// times as long as the others: that is nobody's own fault, least of all of a variant that it meets more rarely.
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
