//! Databases that hold what a test wants to have been learned.

use std::fs;

use colltune_core::collective::Collective;
use colltune_core::model::{Model, Native};
use colltune_core::settings::Settings;
use tempfile::TempDir;

use crate::{Mpi, folder};

/// A database in whose generation 1 `best` is the choice for every call of a collective, and `native` what tables hold
/// instead.
pub fn learned(mpi: Mpi, collective: Collective, best: &str, native: Option<&str>) -> TempDir {
    let mut model = Model::initial(&Settings::default(), mpi.library(), "test");
    model.generation = 1;
    let cells = model.cells.iter_mut();
    for entry in cells.filter(|entry| entry.cell.collective == collective) {
        best.clone_into(&mut entry.best);
        entry.gain = 1.37;
        entry.native = native.map(|name| Native {
            name: name.to_owned(),
            gain: 1.2,
        });
    }
    let db = folder();
    let library = db.path().join(mpi.library().to_string());
    let generation = library.join("generations/000001");
    fs::create_dir_all(&generation).unwrap();
    fs::write(generation.join("probabilities.json"), model.to_json()).unwrap();
    fs::write(library.join("CURRENT"), "000001\n").unwrap();
    db
}
