//! What a calibration leaves: what was measured, and what the simulator finds from that, part by part, so that nothing is
//! measured or simulated twice where it is cut short.
//!
//! `DB/LIBRARY/prior.parts.json` is there from the measuring on until the simulation is finished.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use colltune_core::calibration::{self, Calibration};
use colltune_core::library::Library;
use colltune_core::prior::ratios;
use colltune_core::prior::simulated::{Compared, Simulated, Work};
use colltune_core::settings::Settings;
use colltune_files::{MODEL_BYTES_MAX, read_text};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::check_word::check_word;
use crate::database::{Database, DbError};
use crate::folder::Folder;
use crate::lock::Lock;
use crate::write;

pub(crate) const FILE: &str = "prior.parts.json";
/// Version 1 did not say when it was begun, so its parts are simulated anew.
const SCHEMA: u32 = 2;
/// Parts are written no more often.
const PAUSE: Duration = Duration::from_secs(1);

/// What was begun longer ago is measured anew: the machine may be another one by then.
const RESUMED_WITHIN: Duration = Duration::from_secs(24 * 3600);

/// The parts of the work that are done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Parts {
    schema: u32,
    /// A check word over all that the parts depend on.
    of: String,
    /// The [`line_word`] of what was measured.
    line: String,
    begun_unix_ms: u64,
    done: BTreeMap<usize, Vec<Compared>>,
}

/// A check word of the line that starts the measuring job, and of what else decides what it measures: library, host, nodes.
pub fn line_word(line: &[impl AsRef<OsStr>], place: &[String]) -> String {
    let words = line.iter().map(|word| word.as_ref().to_string_lossy());
    let mut words: Vec<_> = words.collect();
    // No word of a line can be this one.
    words.push("\0".into());
    words.extend(place.iter().map(|word| word.as_str().into()));
    format!("{:016x}", check_word(words.join("\0").as_bytes()))
}

fn now_unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis() as u64
}

impl Parts {
    /// Those of an earlier try with the same calibration and settings, or none yet.
    pub fn of(
        db: &Database,
        library: Library,
        calibration: &Calibration,
        settings: &Settings,
        line: &str,
    ) -> Parts {
        let names = colltune_core::catalogue::all(library);
        let names: Vec<String> = names.iter().map(|one| one.name.to_string()).collect();
        let all = [
            env!("CARGO_PKG_VERSION").to_owned(),
            calibration.to_toml(),
            format!("{:?}", settings.space),
            names.join(" "),
        ];
        let of = format!("{:016x}", check_word(all.join("\n").as_bytes()));
        let found = read(db, library).filter(|found| found.of == of);
        found.unwrap_or_else(|| Parts {
            schema: SCHEMA,
            of,
            line: line.to_owned(),
            begun_unix_ms: now_unix_ms(),
            done: BTreeMap::new(),
        })
    }

    pub fn save(&self, folder: &Folder) -> Result<(), DbError> {
        let text = serde_json::to_string(self).expect("numbers and names");
        write::atomically(folder, FILE, text.as_bytes())
    }

    pub fn has(&self, part: usize) -> bool {
        self.done.contains_key(&part)
    }

    pub fn into_done(self) -> impl Iterator<Item = Vec<Compared>> {
        self.done.into_values()
    }
}

/// Collects parts from all threads and writes them now and then. What cannot be written is simulated again by the next.
pub(crate) struct Collector<'a> {
    folder: &'a Folder,
    state: Mutex<(Parts, Instant)>,
}

impl<'a> Collector<'a> {
    pub fn new(parts: Parts, folder: &'a Folder) -> Collector<'a> {
        Collector {
            folder,
            state: Mutex::new((parts, Instant::now())),
        }
    }

    pub fn add(&self, part: usize, found: Vec<Compared>) {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        state.0.done.insert(part, found);
        if state.1.elapsed() >= PAUSE {
            let _ = state.0.save(self.folder);
            state.1 = Instant::now();
        }
    }

    pub fn into_parts(self) -> Parts {
        let state = self.state.into_inner();
        state.unwrap_or_else(|broken| broken.into_inner()).0
    }
}

fn read(db: &Database, library: Library) -> Option<Parts> {
    let path = db.library(library).join(FILE);
    let found: Parts = serde_json::from_str(&read_text(&path, MODEL_BYTES_MAX).ok()?).ok()?;
    (found.schema == SCHEMA).then_some(found)
}

impl Database {
    /// Publishes a calibration that was measured with a line (its word), and what the simulator finds from it in the cells
    /// of the settings. Where an earlier call with the same calibration was cut short, its findings count.
    ///
    /// Errors: `Lock` while a training runs; `Io` naming what cannot be written.
    pub fn calibrate(
        &self,
        library: Library,
        calibration: &Calibration,
        settings: &Settings,
        line: &str,
    ) -> Result<Simulated, DbError> {
        let _lock = Lock::take(&self.lock_path())?;
        let folder = self.library(library);
        let folder = self.make_folder(&folder)?;
        let file = calibration::FILE;
        write::atomically(&folder, file, calibration.to_toml().as_bytes())?;
        let parts = Parts::of(self, library, calibration, settings, line);
        parts.save(&folder)?;
        let machine = calibration.machine();
        let work = Work::new(&settings.space, library, &machine);
        // One part at a time: the first take longest.
        let left: Vec<usize> = (0..work.n_parts())
            .filter(|part| !parts.has(*part))
            .collect();
        let collector = Collector::new(parts, &folder);
        let left = left.into_par_iter().with_max_len(1);
        left.for_each(|part| collector.add(part, work.part(part)));
        let found = Simulated::new(library, collector.into_parts().into_done());
        write::atomically(&folder, ratios::FILE, found.ratios_to_json().as_bytes())?;
        // Last, since who finds it there does not calibrate again.
        let file = colltune_core::prior::simulated::FILE;
        write::atomically(&folder, file, found.to_json().as_bytes())?;
        let _ = write::remove(&folder, OsStr::new(FILE));
        Ok(found)
    }

    /// What was measured under this [`line_word`] within a day, where the simulation behind it is not finished.
    pub fn unfinished_calibration(&self, line: &str) -> Option<(Library, Calibration)> {
        let libraries = self.libraries().unwrap_or_default().into_iter();
        let oldest = now_unix_ms().saturating_sub(RESUMED_WITHIN.as_millis() as u64);
        let goes_on = |parts: Parts| parts.line == line && parts.begun_unix_ms >= oldest;
        let mut unfinished = libraries.filter(|library| read(self, *library).is_some_and(goes_on));
        let library = unfinished.next()?;
        let text = read_text(&self.calibration(library), MODEL_BYTES_MAX).ok()?;
        Some((library, Calibration::from_toml(&text).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::algorithm::simulate::Link;

    use colltune_core::collective::Collective;

    use super::*;
    use crate::test_support::LIBRARY;

    #[test]
    fn a_calibration_that_was_cut_short_goes_on_within_a_day_for_the_same_line_and_place_alone() {
        let folder = tempfile::tempdir().unwrap();
        // One cell of each collective is enough.
        let space = |collective: Collective| {
            format!(
                "[[space]]\ncollective = \"{collective}\"\nbytes = [0, \"inf\"]\nnodes = [1, \"inf\"]\nppn = [1, 2, \"inf\"]\n"
            )
        };
        let space: String = Collective::ALL.into_iter().map(space).collect();
        std::fs::write(folder.path().join("colltune.toml"), space).unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let settings = db.settings().unwrap();
        let link = Link {
            latency_ns: 300.0,
            overhead_ns: 90.0,
            gap_ns: 100.0,
            per_byte_ns: 0.1,
            rendezvous_bytes: f64::INFINITY,
            burst_bytes: 0.0,
        };
        let calibration = Calibration {
            schema: calibration::SCHEMA,
            library: LIBRARY.to_string(),
            machine: "here".to_owned(),
            nodes: 1,
            ppn: 2,
            reduce_per_byte_ns: 0.2,
            copy_per_byte_ns: 0.1,
            loaded_per_byte_ns: None,
            inside: Some(link),
            between: None,
            cores: None,
        };
        let here = ["openmpi-4.1.4", "node1"].map(str::to_owned);
        let line = line_word(&["mpirun", "-n", "2"], &here);
        // Cut short behind the first part: it stands for another one, so that it is seen in the result.
        let library = db.make_folder(&db.library(LIBRARY)).unwrap();
        let toml = calibration.to_toml();
        write::atomically(&library, calibration::FILE, toml.as_bytes()).unwrap();
        let mut parts = Parts::of(&db, LIBRARY, &calibration, &settings, &line);
        parts.done.insert(0, Vec::new());
        parts.save(&library).unwrap();
        let elsewhere = ["openmpi-5.0.3", "node1"].map(str::to_owned);
        for other in [
            line_word(&["mpirun", "-n", "4"], &here),
            line_word(&["mpirun", "-n", "2"], &elsewhere),
            line_word(&["mpirun", "-n", "2", "openmpi-4.1.4", "node1"], &[]),
        ] {
            assert_eq!(db.unfinished_calibration(&other), None);
        }
        let begun = parts.begun_unix_ms;
        parts.begun_unix_ms -= RESUMED_WITHIN.as_millis() as u64 + 1;
        parts.save(&library).unwrap();
        assert_eq!(db.unfinished_calibration(&line), None, "too long ago");
        parts.begun_unix_ms = begun;
        parts.save(&library).unwrap();
        let found = db.unfinished_calibration(&line);
        assert_eq!(found, Some((LIBRARY, calibration.clone())));
        let machine = calibration.machine();
        let n_parts = Work::new(&settings.space, LIBRARY, &machine).n_parts();
        assert!(n_parts >= 1);
        let resumed = db
            .calibrate(LIBRARY, &calibration, &settings, &line)
            .unwrap();
        assert_eq!(db.unfinished_calibration(&line), None, "it is finished");
        let whole = db
            .calibrate(LIBRARY, &calibration, &settings, &line)
            .unwrap();
        assert_ne!(resumed, whole, "the first part was not simulated again");
    }
}
