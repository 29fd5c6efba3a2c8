//! Evidence that real jobs left, trained anew: what it says must not depend on what disturbed a few of them.
//!
//! `recorded/NAME` is a database without its raw records, made by `colltune bench solver` (`tests/mpi/imbalanced.c` with
//! 20 us of compute, 8 ranks, ten explore runs). Which variants make the whole program fastest is known from forced runs
//! of the same bench.

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

/// The cell of the solver's allreduce, after a training on recorded evidence.
fn learned(name: &str) -> CellStatistics {
    let folder = tempfile::tempdir().unwrap();
    let recorded = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    copied(&recorded.join(name), folder.path());
    std::fs::create_dir_all(folder.path().join("incoming")).unwrap();
    let db = Database::open(folder.path()).unwrap();
    train(&db, TrainOptions::default(), &|_| ()).unwrap();
    let keys = generation::trained(&db).unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
    let generation = Generation::load(&db, keys[0].clone()).unwrap();
    let of_solver = |cell: &&CellStatistics| cell.cell.collective == Collective::Allreduce;
    let cells = generation.cells.iter().filter(of_solver);
    cells
        .max_by(|a, b| a.time_share.total_cmp(&b.time_share))
        .unwrap()
        .clone()
}

/// On the cluster, in two of ten jobs everything took three to five times as long, and twenty times as unevenly.
#[test]
fn two_disturbed_runs_do_not_hide_what_eight_calm_ones_show() {
    let cell = learned("solver-disturbed");
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
