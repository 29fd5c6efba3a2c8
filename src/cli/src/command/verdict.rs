//! What a comparison leaves in the database: the whole program's verdict on what is chosen, which is the last word.
//!
//! Choices other than the default lose force where the program is slower and the time in them can explain that. The
//! next generation, published at once, leaves them out. Jobs that explore try them anew, and only what they find from
//! then on counts.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use colltune_core::account::{JobSummary, SIZES, least_bytes};
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::space::{Cell, Range};
use colltune_db::{CellChoice, DataKey, Database, Generation, ProgramVerdict, Verdicts};
use serde::Serialize;

use crate::command::train::{counted, train_in_turn};
use crate::comparison::{Comparison, Verdict, seconds};

/// A cell with less time than this share of the program's loss cost it nothing.
const MATTERS: f64 = 0.01;

/// What a comparison leaves.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    pub vetoed: Vec<Vetoed>,
    /// A sentence: why nothing is recorded, or why nothing is withdrawn though the program is slower.
    pub why_not: Option<String>,
}

impl Judged {
    fn not(why_not: String) -> Judged {
        Judged {
            vetoed: Vec::new(),
            why_not: Some(why_not),
        }
    }

    /// That of a database which could not be written.
    pub fn failed(error: &anyhow::Error) -> Judged {
        Judged::not(format!(
            "The database does not learn of this comparison, and what is chosen stays: failed to {error:#}."
        ))
    }

    /// A line for each library, and the reason.
    pub fn text(&self) -> String {
        let vetoed: String = self.vetoed.iter().map(Vetoed::sentence).collect();
        let why_not = self.why_not.as_ref();
        vetoed + &why_not.map_or_else(String::new, |why| format!("{why}\n"))
    }
}

/// What is withdrawn by a verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Vetoed {
    pub library: String,
    /// The one that runs the default in these cells.
    pub generation: u64,
    /// What the program ran there, the cells in which it spent most time first.
    pub choices: Vec<CellChoice>,
}

impl Vetoed {
    fn sentence(&self) -> String {
        format!(
            "The variants chosen in {} of this program are withdrawn: generation {} of {} runs the default there, and jobs \
             that try variants measure them again.\n",
            counted(self.choices.len() as u64, "cell"),
            self.generation,
            self.library
        )
    }
}

/// Records a comparison, and of how many pairs, with what is chosen, whose jobs said `with`; where the program is slower, what
/// that puts out of force. The same comparison again changes nothing. `goes_on`: see [`train_in_turn`].
///
/// Errors: a database that cannot be written, or does not train.
pub fn record(
    db: &Database,
    (comparison, n_pairs): (&Comparison, usize),
    with: &[JobSummary],
    goes_on: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<Judged> {
    let Some(job) = with.last() else {
        return Ok(Judged::not(
            "No run told what it ran, so no verdict is recorded.".to_owned(),
        ));
    };
    if let Some(why_not) = not_one_generation(with) {
        return Ok(Judged::not(why_not));
    }
    let is_slower = comparison.verdict == Verdict::Slower;
    let mut why_not = match job.generation {
        0 => Ran::default().to_blame(0.0).1,
        number => Some(format!(
            "Generation {number} of {}, which these runs had, is not in force any more, so no verdict is recorded.",
            job.library
        )),
    };
    let mut refuted: Vec<(DataKey, Vec<CellChoice>)> = Vec::new();
    for key in db.keys()? {
        if key.library.to_string() != job.library || job.generation == 0 {
            continue;
        }
        let verdict = verdict(comparison, n_pairs, with, job);
        let Some((choices, why)) = record_of(db, &key, verdict, (comparison, with))? else {
            continue;
        };
        why_not = why;
        if is_slower && !choices.is_empty() {
            refuted.push((key, choices));
        }
    }
    if refuted.is_empty() {
        // That the default is not faster than itself is no news.
        why_not = why_not.filter(|_| is_slower || job.generation > 0);
        return Ok(Judged {
            vetoed: Vec::new(),
            why_not,
        });
    }
    let report = train_in_turn(db, goes_on)?;
    let vetoed = |(key, choices): (DataKey, Vec<CellChoice>)| {
        let mut libraries = report.libraries.iter();
        let of = libraries.find(|one| one.library == key)?;
        Some(Vetoed {
            library: key.to_string(),
            generation: of.generation,
            choices,
        })
    };
    Ok(Judged {
        vetoed: refuted.into_iter().filter_map(vetoed).collect(),
        why_not: None,
    })
}

/// Records a verdict for one key, with the choices that it is on; these, and why a program that is slower puts none out of
/// force. `None` where the key's generation is another one.
fn record_of(
    db: &Database,
    key: &DataKey,
    mut verdict: ProgramVerdict,
    (comparison, with): (&Comparison, &[JobSummary]),
) -> anyhow::Result<Option<(Vec<CellChoice>, Option<String>)>> {
    let generation = Generation::load(db, key.clone())?;
    if generation.number != verdict.generation {
        // An earlier call that was cut short may have got as far as its training.
        let all = Verdicts::of(db, key)?.verdicts;
        let known = all.into_iter().find(|one| one.is_same_comparison(&verdict));
        return Ok(known.map(|known| (known.choices, None)));
    }
    let ran = Ran::of(&generation, with);
    let loss_s = comparison.with_s.median * (1.0 - comparison.ratio.value);
    let (choices, why_not) = match comparison.verdict {
        Verdict::Slower => ran.to_blame(loss_s),
        Verdict::Faster | Verdict::NoDifference => (ran.choices(0.0), None),
    };
    verdict.choices.clone_from(&choices);
    Verdicts::add(db, key, verdict)?;
    Ok(Some((choices, why_not)))
}

/// What is wrong where the jobs did not all run the same choices.
fn not_one_generation(with: &[JobSummary]) -> Option<String> {
    let ran = |job: &JobSummary| (job.library.clone(), job.generation);
    let first = ran(with.first()?);
    let other = with.iter().map(ran).find(|other| *other != first)?;
    Some(format!(
        "The runs had generation {} of {} and generation {} of {}, since somebody trained meanwhile, so no verdict is \
         recorded.",
        first.1, first.0, other.1, other.0
    ))
}

fn verdict(
    comparison: &Comparison,
    n_pairs: usize,
    with: &[JobSummary],
    job: &JobSummary,
) -> ProgramVerdict {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let bound = |bound: f64| bound.is_finite().then_some(bound);
    ProgramVerdict {
        at_unix_ms: now.unwrap_or_default().as_millis() as u64,
        first_job: with.first().map_or_else(String::new, |job| job.job.clone()),
        program: job.program.clone(),
        arguments_hash: job.arguments_hash.clone(),
        label: job.label.clone(),
        nodes: job.nodes,
        ppn: job.ppn,
        ranks: job.ranks,
        generation: job.generation,
        pairs: n_pairs as u64,
        ratio: comparison.ratio.value,
        low: bound(comparison.ratio.low),
        high: bound(comparison.ratio.high),
        choices: Vec::new(),
    }
}

/// What jobs ran other than the default.
#[derive(Debug, Default)]
struct Ran {
    /// With the seconds of a job there, the cells with most of them first.
    cells: Vec<(f64, CellChoice)>,
    /// A job's in all of them. A range of sizes may reach into several cells, and counts once here.
    seconds: f64,
}

impl Ran {
    /// By what the jobs said of collectives and sizes, in the cells of their layout. What they ran on communicators
    /// of another layout cannot be separated, so it is not blamed.
    fn of(generation: &Generation, jobs: &[JobSummary]) -> Ran {
        let Some(job) = jobs.last() else {
            return Ran::default();
        };
        let mut tuned: BTreeMap<(Collective, u64), f64> = BTreeMap::new();
        for of in jobs.iter().flat_map(|job| &job.by_collective) {
            for size in of.by_size.iter().filter(|size| size.tuned_share > 0.0) {
                *tuned.entry((of.collective, size.bytes)).or_default() +=
                    size.seconds / jobs.len() as f64;
            }
        }
        let is_in = |cell: &Cell, (collective, bytes): (Collective, u64)| {
            collective == cell.collective && sizes_from(bytes).overlaps(cell.bytes)
        };
        let mut cells: Vec<(f64, CellChoice)> = Vec::new();
        for one in &generation.cells {
            let cell = one.cell;
            let has_layout = cell.nodes.contains(job.nodes) && cell.ppn.contains(job.ppn);
            if catalogue::is_default(&one.best) || !has_layout {
                continue;
            }
            let sizes = tuned.iter().filter(|(size, _)| is_in(&cell, **size));
            let seconds: Vec<f64> = sizes.map(|(_, seconds)| *seconds).collect();
            if !seconds.is_empty() {
                let variant = one.best.clone();
                cells.push((seconds.iter().sum(), CellChoice { cell, variant }));
            }
        }
        cells.sort_by(|one, other| other.0.total_cmp(&one.0));
        let counts = |size: (Collective, u64)| cells.iter().any(|one| is_in(&one.1.cell, size));
        let counted = tuned.iter().filter(|(size, _)| counts(**size));
        Ran {
            seconds: counted.map(|(_, seconds)| seconds).sum(),
            cells,
        }
    }

    /// The cells with so many seconds.
    fn choices(&self, seconds_least: f64) -> Vec<CellChoice> {
        let cells = self.cells.iter();
        let cells = cells.filter(|(seconds, _)| *seconds >= seconds_least);
        cells.map(|(_, chosen)| chosen.clone()).collect()
    }

    /// The choices that can have lost a program so many seconds, or why they cannot.
    fn to_blame(&self, loss_s: f64) -> (Vec<CellChoice>, Option<String>) {
        if self.cells.is_empty() {
            let why =
                "It ran no other variant than the default, so the tuner itself is what is slower.";
            return (Vec::new(), Some(why.to_owned()));
        }
        // What takes less time than is lost cannot be all of the loss, even if the default took none.
        if self.seconds <= loss_s {
            let why = format!(
                "Calls with another variant than the default took {} of a run, less than the {} that are lost. So the start \
                 or the tuner itself is what is slower, and what is chosen stays.",
                seconds(self.seconds),
                seconds(loss_s)
            );
            return (Vec::new(), Some(why));
        }
        (self.choices(MATTERS * loss_s), None)
    }
}

/// The range of sizes of an account that begins with so many bytes.
fn sizes_from(bytes: u64) -> Range {
    let next = (0..SIZES).map(least_bytes).find(|least| *least > bytes);
    Range {
        lo: bytes,
        hi: next,
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::account::{JobFacts, KINDS, Together, kind};
    use colltune_core::model::{Model, SCHEMA, Source};
    use colltune_models::statistics::CellStatistics;

    use super::*;
    use crate::comparison::{Pair, Side};

    #[test]
    fn a_range_of_an_account_ends_where_the_next_begins() {
        for size in 1..SIZES {
            let (one, next) = (least_bytes(size - 1), least_bytes(size));
            assert_eq!(
                sizes_from(one),
                Range {
                    lo: one,
                    hi: Some(next)
                }
            );
        }
        assert_eq!(sizes_from(least_bytes(SIZES - 1)).hi, None);
    }

    /// A job of generation 3 on one node with two ranks, each of which was so many seconds in calls of these kinds.
    fn job(name: &str, generation: u64, calls: &[(Collective, u64, u64, f64)]) -> JobSummary {
        let mut kinds = vec![Together::default(); KINDS];
        for &(collective, bytes, tuned, seconds) in calls {
            kinds[kind(collective, bytes)] = Together {
                calls: 100,
                tuned,
                ns: (2e9 * seconds) as u64,
                ..Together::default()
            };
        }
        let facts = JobFacts {
            job: name.to_owned(),
            library: "openmpi-4.1.4".to_owned(),
            generation,
            ranks: 2,
            nodes: 1,
            ppn: 2,
            ..JobFacts::default()
        };
        JobSummary::new(facts, &kinds)
    }

    fn cell(collective: Collective, nodes: (u64, Option<u64>), best: &str) -> CellStatistics {
        let cell = Cell {
            collective,
            bytes: (0, Some(64)).into(),
            nodes: nodes.into(),
            ppn: (1, None).into(),
        };
        CellStatistics {
            cell,
            source: Source::Measured,
            best: best.to_owned(),
            gain: 1.2,
            gain_lo: 1.1,
            gain_hi: 1.3,
            time_share: 0.5,
            waiting: 0.0,
            drift: 0.0,
            settled: String::new(),
            variants: Vec::new(),
        }
    }

    fn generation(cells: Vec<CellStatistics>) -> Generation {
        let key: DataKey = "openmpi-4.1.4".parse().unwrap();
        Generation {
            number: 3,
            library: key.library,
            model: Model {
                schema: SCHEMA,
                library: key.to_string(),
                machine: "test".to_owned(),
                generation: 3,
                learner: Default::default(),
                cells: Vec::new(),
            },
            key,
            cells,
            meta: None,
        }
    }

    #[test]
    fn blamed_is_what_the_job_ran_in_its_own_layout_where_its_time_explains_the_loss() {
        let (allreduce, bcast, gather) = (
            Collective::Allreduce,
            Collective::Bcast,
            Collective::Allgather,
        );
        let few = (1, Some(2));
        let generation = generation(vec![
            cell(allreduce, few, "node:shm"),
            cell(allreduce, (2, None), "p2p:ring"),
            cell(bcast, few, "node:shm"),
            cell(gather, few, "node:shm"),
            cell(Collective::Barrier, few, "default"),
        ]);
        let jobs = [1.5, 2.5].map(|seconds| {
            let calls = [
                (allreduce, 8, 90, seconds),
                (bcast, 8, 90, 0.001),
                // Refused, and never called with another variant.
                (gather, 8, 0, 9.0),
                (Collective::Barrier, 0, 100, 9.0),
            ];
            job("one", 3, &calls)
        });
        let ran = Ran::of(&generation, &jobs);
        let cells = |choices: &[CellChoice]| -> Vec<Cell> {
            choices.iter().map(|chosen| chosen.cell).collect()
        };
        let of = |place: usize| generation.cells[place].cell;
        assert_eq!(cells(&ran.choices(0.0)), [of(0), of(2)]);
        assert!((ran.seconds - 2.001).abs() < 1e-6, "{}", ran.seconds);
        // What takes a thousandth of the loss cost nothing.
        let (blamed, why) = ran.to_blame(1.0);
        assert_eq!((cells(&blamed), why), (vec![of(0)], None));
        let (blamed, why) = ran.to_blame(2.5);
        assert!(blamed.is_empty());
        assert!(
            why.unwrap()
                .contains("2.00 s of a run, less than the 2.50 s")
        );
        let (blamed, why) = Ran::default().to_blame(1.0);
        assert!(blamed.is_empty() && why.unwrap().contains("no other variant"));
    }

    #[test]
    fn a_verdict_is_on_one_generation_that_is_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let pair = Pair {
            first: Side::With,
            without_s: 1.0,
            with_s: 2.0,
        };
        let found = Comparison::of(&[pair; 4]).unwrap();
        let why = |jobs: &[JobSummary]| {
            let judged = record(&db, (&found, 4), jobs, &|| Ok(())).unwrap();
            assert!(judged.vetoed.is_empty());
            judged.why_not.unwrap()
        };
        let of = |generation| job("one", generation, &[]);
        let both = why(&[of(3), of(4), of(3)]);
        assert!(
            both.contains("generation 3") && both.contains("generation 4"),
            "{both}"
        );
        assert!(why(&[of(3), of(3)]).contains("not in force any more"));
        assert!(why(&[of(0), of(0)]).contains("no other variant"));
        assert!(why(&[]).contains("no verdict is recorded"));
    }
}
