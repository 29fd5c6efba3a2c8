//! What a comparison leaves in the database: the whole program's verdict on what is chosen, which is the last word.
//!
//! Where the program is slower the choices that it ran are out of force by the next generation, published at once; jobs
//! that explore try them anew, and only what they find from then on counts.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use colltune_core::account::{JobSummary, SIZES, least_bytes};
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::space::Range;
use colltune_db::{
    CellChoice, DataKey, Database, Generation, ProgramVerdict, TrainOptions, Verdicts, train,
};
use serde::Serialize;

use crate::command::train::counted;
use crate::comparison::{Comparison, Verdict};

/// What is out of force by a verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Vetoed {
    pub library: String,
    /// The one that runs the default in these cells.
    pub generation: u64,
    /// What the program ran there, the cells in which it spent most time first.
    pub choices: Vec<CellChoice>,
}

impl Vetoed {
    pub fn sentence(&self) -> String {
        format!(
            "What was chosen in {} that this program uses is out of force: generation {} of {} runs the default there, and \
             jobs that try variants try them anew.\n",
            counted(self.choices.len() as u64, "cell"),
            self.generation,
            self.library
        )
    }
}

/// Records a comparison of `n_pairs` pairs with what is chosen, whose jobs said `with`; where the program is slower, what
/// that puts out of force.
///
/// Errors: a database that cannot be written, or does not train.
pub fn record(
    db: &Database,
    comparison: &Comparison,
    n_pairs: usize,
    with: &[JobSummary],
) -> anyhow::Result<Vec<Vetoed>> {
    let Some(job) = with.last() else {
        return Ok(Vec::new());
    };
    let mut refuted: Vec<(DataKey, Vec<CellChoice>)> = Vec::new();
    for key in db.keys()? {
        let generation = Generation::load(db, key.clone())?;
        let ran = key.library.to_string() == job.library && generation.number == job.generation;
        if !ran || generation.number == 0 {
            continue;
        }
        let choices = choices(&generation, with);
        let verdict = verdict(comparison, n_pairs, job, choices.clone());
        Verdicts::add(db, &key, verdict)?;
        if comparison.verdict == Verdict::Slower && !choices.is_empty() {
            refuted.push((key, choices));
        }
    }
    if refuted.is_empty() {
        return Ok(Vec::new());
    }
    let report = train(db, TrainOptions::default(), &|_| ())?;
    let vetoed = |(key, choices): (DataKey, Vec<CellChoice>)| {
        let mut libraries = report.libraries.iter();
        let of = libraries.find(|one| one.library == key)?;
        Some(Vetoed {
            library: key.to_string(),
            generation: of.generation,
            choices,
        })
    };
    Ok(refuted.into_iter().filter_map(vetoed).collect())
}

fn verdict(
    comparison: &Comparison,
    n_pairs: usize,
    job: &JobSummary,
    choices: Vec<CellChoice>,
) -> ProgramVerdict {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let bound = |bound: f64| bound.is_finite().then_some(bound);
    ProgramVerdict {
        at_unix_ms: now.unwrap_or_default().as_millis() as u64,
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
        choices,
    }
}

/// What jobs ran other than the default, by what they said of collectives and sizes: the cells with most time first.
fn choices(generation: &Generation, jobs: &[JobSummary]) -> Vec<CellChoice> {
    let mut tuned: BTreeMap<(Collective, u64), f64> = BTreeMap::new();
    for of in jobs.iter().flat_map(|job| &job.by_collective) {
        for size in of.by_size.iter().filter(|size| size.tuned_share > 0.0) {
            *tuned.entry((of.collective, size.bytes)).or_default() += size.seconds;
        }
    }
    let (nodes, ppn) = jobs.iter().fold((0, 0), |most, job| {
        (most.0.max(job.nodes), most.1.max(job.ppn))
    });
    let mut found = Vec::new();
    for one in &generation.cells {
        let cell = one.cell;
        if catalogue::is_default(&one.best) || cell.nodes.lo > nodes || cell.ppn.lo > ppn {
            continue;
        }
        let sizes = tuned.iter().filter(|((collective, bytes), _)| {
            *collective == cell.collective && sizes_from(*bytes).overlaps(cell.bytes)
        });
        let seconds: Vec<f64> = sizes.map(|(_, seconds)| *seconds).collect();
        if !seconds.is_empty() {
            let variant = one.best.clone();
            found.push((seconds.iter().sum::<f64>(), CellChoice { cell, variant }));
        }
    }
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found.into_iter().map(|(_, chosen)| chosen).collect()
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
    use super::*;

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
}
