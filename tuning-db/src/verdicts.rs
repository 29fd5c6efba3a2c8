//! What whole programs said of the choices: the verdicts of `colltune tune` and `compare`, and what those veto.
//!
//! `DB/KEY/verdicts.json` holds them. Per-call measurements cannot see everything that a program loses, so a program that
//! is slower with what was chosen has the last word: of each choice that it ran, evidence from before that verdict no
//! longer counts, unless a program gained by it since. The choice is tried anew, and earned by newer evidence alone. Who
//! removes the file lets all verdicts be forgotten.

use std::collections::BTreeMap;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::context::DataKey;
use colltune_core::library::Library;
use colltune_core::space::Cell;
use colltune_models::Veto;
use colltune_models::evidence::Evidence;
use serde::{Deserialize, Serialize};

use crate::database::{Database, DbError, read_versioned};
use crate::lock::Lock;
use crate::write;

const SCHEMA: u32 = 1;
pub(crate) const FILE: &str = "verdicts.json";
/// The newest verdicts are kept.
const VERDICTS_MAX: usize = 256;

/// The verdicts of one library, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdicts {
    schema: u32,
    pub verdicts: Vec<ProgramVerdict>,
}

/// What one comparison of a whole program with and without colltune found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramVerdict {
    pub at_unix_ms: u64,
    /// The first job with what was chosen, by which the comparison is known.
    #[serde(default)]
    pub first_job: String,
    /// The name of the program's file, without folder and arguments.
    pub program: String,
    pub arguments_hash: String,
    pub label: String,
    pub nodes: u64,
    pub ppn: u64,
    pub ranks: u64,
    /// What was in force.
    pub generation: u64,
    pub pairs: u64,
    /// Whole time without colltune over whole time with it, and its 95 % interval; `None`: without bound.
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// What the program ran other than the default.
    pub choices: Vec<CellChoice>,
}

/// A variant other than the default that was chosen in a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CellChoice {
    pub cell: Cell,
    pub variant: String,
}

impl ProgramVerdict {
    pub fn is_same_comparison(&self, other: &ProgramVerdict) -> bool {
        let identity = (self.generation, &self.first_job);
        !self.first_job.is_empty() && identity == (other.generation, &other.first_job)
    }

    pub fn is_slower(&self) -> bool {
        self.high.is_some_and(|high| high < 1.0)
    }

    pub fn is_faster(&self) -> bool {
        self.low.is_some_and(|low| low > 1.0)
    }
}

impl Default for Verdicts {
    fn default() -> Verdicts {
        Verdicts {
            schema: SCHEMA,
            verdicts: Vec::new(),
        }
    }
}

impl Verdicts {
    /// Errors: `Io` and `Owners` for a file that cannot be used: what is vetoed must not come back by that.
    pub fn of(db: &Database, key: &DataKey) -> Result<Verdicts, DbError> {
        let path = db.library(key).join(FILE);
        let hint = "; without the file what programs refuted is chosen again";
        read_versioned(&path, SCHEMA, |found: &Verdicts| found.schema, hint)
    }

    /// Adds a verdict to those of a library. The same comparison again takes the place of what it said, as of then: what
    /// was earned since counts.
    ///
    /// Errors: `Lock` while a training runs; those of [`Verdicts::of`].
    pub fn add(db: &Database, key: &DataKey, verdict: ProgramVerdict) -> Result<(), DbError> {
        let _lock = Lock::take(&db.lock_path())?;
        let mut all = Verdicts::of(db, key)?;
        let mut known = all.verdicts.iter_mut();
        match known.find(|known| known.is_same_comparison(&verdict)) {
            Some(known) => {
                *known = ProgramVerdict {
                    at_unix_ms: known.at_unix_ms,
                    ..verdict
                }
            }
            None => all.verdicts.push(verdict),
        }
        let n_old = all.verdicts.len().saturating_sub(VERDICTS_MAX);
        all.verdicts.drain(..n_old);
        let text = serde_json::to_string_pretty(&all).expect("numbers and names");
        let folder = db.folder(&db.library(key))?;
        write::atomically(&folder, FILE, text.as_bytes())
    }

    /// What shapes a training: choices that stand refuted, and when they last were.
    fn refuted(&self) -> BTreeMap<&CellChoice, u64> {
        let mut found: BTreeMap<&CellChoice, u64> = BTreeMap::new();
        for verdict in &self.verdicts {
            for chosen in &verdict.choices {
                if verdict.is_faster() {
                    found.remove(chosen);
                } else if verdict.is_slower() {
                    let at_unix_ms = found.entry(chosen).or_default();
                    *at_unix_ms = verdict.at_unix_ms.max(*at_unix_ms);
                }
            }
        }
        found
    }

    /// All of them that shapes a training, as a text; empty where nothing stands refuted.
    pub(crate) fn shapes(&self) -> String {
        let refuted = self.refuted().into_iter();
        let lines = refuted.map(|(chosen, at)| format!("{} {} {at}", chosen.cell, chosen.variant));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The choices that programs refuted, for the learner.
    pub(crate) fn vetoes(&self) -> Vec<Veto> {
        let refuted = self.refuted().into_keys();
        refuted
            .map(|chosen| Veto {
                cell: chosen.cell,
                variant: chosen.variant.clone(),
            })
            .collect()
    }

    /// Drops evidence of refuted choices that is older than the verdict. `started_unix_ms` says when a run began; of a run
    /// that does not say, nothing newer is known.
    pub(crate) fn filter(
        &self,
        evidence: &mut Vec<Evidence>,
        library: Library,
        started_unix_ms: impl Fn(u32) -> Option<u64>,
    ) {
        let mut old: BTreeMap<(Collective, u16), Vec<(Cell, u64)>> = BTreeMap::new();
        for (chosen, at_unix_ms) in self.refuted() {
            let collective = chosen.cell.collective;
            let variants = catalogue::variants(library, collective);
            let place = variants
                .iter()
                .position(|one| one.name.to_string() == chosen.variant);
            if let Some(place) = place {
                let of_variant = old.entry((collective, place as u16)).or_default();
                of_variant.push((chosen.cell, at_unix_ms));
            }
        }
        if old.is_empty() {
            return;
        }
        evidence.retain(|row| {
            let shape = row.shape;
            let Some(cells) = old.get(&(shape.collective, row.variant)) else {
                return true;
            };
            let started = started_unix_ms(row.run).unwrap_or(0);
            let (nodes, ppn) = (shape.nodes.into(), shape.ppn.into());
            !cells.iter().any(|(cell, at_unix_ms)| {
                cell.contains(shape.collective, shape.message_bytes, nodes, ppn)
                    && started <= *at_unix_ms
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::space::Range;
    use colltune_models::evidence::Shape;

    use super::*;
    use crate::test_support::LIBRARY;

    fn chosen(variant: &str) -> CellChoice {
        let all = Range { lo: 0, hi: None };
        CellChoice {
            cell: Cell {
                collective: Collective::Allreduce,
                bytes: all,
                nodes: all,
                ppn: all,
            },
            variant: variant.to_owned(),
        }
    }

    fn verdict(at_unix_ms: u64, (low, high): (f64, f64), variant: &str) -> ProgramVerdict {
        ProgramVerdict {
            at_unix_ms,
            low: Some(low),
            high: Some(high),
            choices: vec![chosen(variant)],
            ..ProgramVerdict::default()
        }
    }

    #[test]
    fn a_comparison_counts_once_as_of_its_first_time_and_a_gain_lifts_what_it_refuted() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let key: DataKey = LIBRARY.into();
        db.make_folder(&db.library(&key)).unwrap();
        let (slower, faster, equal) = ((0.8, 0.9), (1.1, 1.2), (0.9, 1.1));
        for (at, interval, first_job, expected) in [
            (1, equal, "a", None),
            (2, slower, "b", Some(2)),
            (3, equal, "c", Some(2)),
            (4, slower, "b", Some(2)),
            (5, faster, "d", None),
            (6, slower, "e", Some(6)),
            (7, slower, "e", Some(6)),
            (8, slower, "f", Some(8)),
        ] {
            let verdict = ProgramVerdict {
                first_job: first_job.to_owned(),
                ..verdict(at, interval, "node:shm")
            };
            Verdicts::add(&db, &key, verdict).unwrap();
            let found = Verdicts::of(&db, &key).unwrap();
            assert_eq!(found.refuted().into_values().next(), expected, "{at}");
            assert_eq!(found.vetoes().len(), usize::from(expected.is_some()));
        }
        assert_eq!(Verdicts::of(&db, &key).unwrap().verdicts.len(), 6);
        // Who removes the file forgets them.
        std::fs::remove_file(db.library(&key).join(FILE)).unwrap();
        assert_eq!(Verdicts::of(&db, &key).unwrap(), Verdicts::default());
        // A file that cannot be used is refused, for what it vetoes must not come back.
        std::fs::write(db.library(&key).join(FILE), r#"{"schema":9,"verdicts":[]}"#).unwrap();
        let error = Verdicts::of(&db, &key).unwrap_err().to_string();
        assert!(error.contains("version 9"), "{error}");
    }

    #[test]
    fn evidence_of_a_refuted_choice_counts_from_the_verdict_on() {
        let variants = catalogue::variants(LIBRARY, Collective::Allreduce);
        let names: Vec<String> = variants.iter().map(|one| one.name.to_string()).collect();
        let shape = Shape {
            collective: Collective::Allreduce,
            message_bytes: 8,
            nodes: 1,
            ppn: 2,
            n_ranks: 2,
        };
        let row = |run, variant| Evidence::nothing(run, shape, variant);
        let rows = vec![row(0, 0), row(0, 1), row(0, 2), row(1, 1)];
        let all = Verdicts {
            verdicts: vec![verdict(100, (0.8, 0.9), &names[1])],
            ..Verdicts::default()
        };
        let mut left = rows.clone();
        all.filter(&mut left, LIBRARY, |run| Some(50 + 100 * u64::from(run)));
        assert_eq!(left, [rows[0], rows[2], rows[3]]);
    }
}
