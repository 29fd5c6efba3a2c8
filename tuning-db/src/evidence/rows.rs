//! Rows of evidence as a training reads them.

use std::collections::BTreeMap;
use std::path::Path;

use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::record::Manner;
use colltune_models::evidence::{COPY, COPY_NAME, Evidence, Shape};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::columns::lacks;
use super::run::{Run, Said};
use crate::passed::{self, Passed};
use crate::reduce::Names;
use crate::table::Table;

/// Calls that passed through: the collective, how it was called, the size from which it counts, nodes and ppn.
type PassedAs = (Collective, Manner, u64, u32, u32);

/// What was read so far.
#[derive(Default)]
pub(super) struct Gathering {
    evidence: Vec<Evidence>,
    copies: Vec<Evidence>,
    /// Median time and number of records, run by run.
    passed: BTreeMap<PassedAs, Vec<(u64, u64)>>,
    seconds: f64,
    unknown: u64,
}

impl Gathering {
    /// Reads a file column by column, so that no more than one stands in memory beside the evidence.
    pub fn add(
        &mut self,
        path: &Path,
        wanted: &[Option<u32>],
        library: Library,
    ) -> Result<(), ParquetError> {
        let table = Table::open(path)?;
        let variants = variants(&table, library)?;
        let manners = table.words("manner")?;
        let manners: Vec<Option<Manner>> = manners.iter().map(manner).collect();
        let runs = table.ints("run")?;
        let mut rows: Vec<Evidence> = Vec::with_capacity(runs.len());
        for (&run, variant) in runs.iter().zip(&variants) {
            let collective = variant.map_or(Collective::ALL[0], |(collective, _)| collective);
            rows.push(Evidence {
                run,
                variant: variant.and_then(|(_, variant)| variant).unwrap_or(u16::MAX),
                ..nothing(collective)
            });
        }
        fill(&table, &mut rows)?;
        let seconds = table.floats("seconds")?;
        for (index, mut row) in rows.into_iter().enumerate() {
            let run = wanted.get(row.run as usize).copied().flatten();
            let (Some(run), Some((collective, variant))) = (run, variants[index]) else {
                self.unknown += u64::from(run.is_some());
                continue;
            };
            row.run = run;
            match (manners[index], variant) {
                (Some(Manner::Blocking), Some(_)) if is_sound(&row) => {
                    self.seconds += seconds[index];
                    match row.variant {
                        COPY => self.copies.push(row),
                        _ => self.evidence.push(row),
                    }
                }
                (Some(manner), _) if manner != Manner::Blocking => {
                    let Shape {
                        message_bytes,
                        nodes,
                        ppn,
                        ..
                    } = row.shape;
                    let key = (collective, manner, message_bytes, nodes, ppn);
                    let seen = (row.level_ns as u64, row.calls);
                    self.passed.entry(key).or_default().push(seen);
                }
                _ => self.unknown += 1,
            }
        }
        Ok(())
    }

    pub fn finish(self, (runs, jobs): (Vec<Run>, Vec<String>), sequences: Vec<u64>) -> Said {
        let passed =
            self.passed
                .into_iter()
                .map(|((collective, manner, bytes, nodes, ppn), mut seen)| {
                    seen.sort_unstable();
                    let records = seen.iter().map(|(_, records)| records).sum();
                    Passed {
                        collective,
                        manner: manner.name().to_owned(),
                        bytes: passed::bounds(bytes),
                        nodes,
                        ppn,
                        records,
                        median_ns: weighted_median(&seen, records),
                    }
                });
        let passed = passed.collect();
        let mut evidence = self.evidence;
        // However the files were cut.
        evidence.sort_unstable_by_key(|row| {
            let parts = (row.calls, row.level_ns.to_bits());
            (row.run, row.shape, row.variant, row.component, parts)
        });
        Said {
            runs,
            jobs,
            sequences,
            evidence,
            copies: self.copies,
            passed,
            seconds: self.seconds,
            unknown: self.unknown,
        }
    }
}

/// Numbers that a training can reckon with, whatever a file says.
fn is_sound(row: &Evidence) -> bool {
    let moments = [row.time, row.shift, row.total, row.after, row.whole];
    let finite = moments
        .iter()
        .all(|one| one.mean.is_finite() && one.m2.is_finite());
    finite
        && row.calls > 0
        && row.level_ns.is_finite()
        && row.level_ns > 0.0
        && row.stall_excess.is_finite()
        && row.work.is_finite()
}

/// Of sorted values with their weights.
fn weighted_median(sorted: &[(u64, u64)], total: u64) -> u64 {
    let mut below = 0;
    let middle = sorted.iter().find(|(_, weight)| {
        below += weight;
        2 * below >= total
    });
    middle.map_or(0, |(value, _)| *value)
}

fn manner(name: &ByteArray) -> Option<Manner> {
    Manner::from_name(&String::from_utf8_lossy(name.data()))
}

fn nothing(collective: Collective) -> Evidence {
    let shape = Shape {
        collective,
        message_bytes: 0,
        nodes: 0,
        ppn: 0,
        n_ranks: 0,
    };
    Evidence::nothing(0, shape, 0)
}

/// Sets a number of each row; where a file lacks them as those of earlier versions do, none.
fn set<T>(
    rows: &mut [Evidence],
    values: Option<Result<Vec<T>, ParquetError>>,
    set: fn(&mut Evidence, T),
) -> Result<(), ParquetError> {
    let values = values.transpose()?.unwrap_or_default();
    let both = rows.iter_mut().zip(values);
    both.for_each(|(row, value)| set(row, value));
    Ok(())
}

fn fill(table: &Table, rows: &mut [Evidence]) -> Result<(), ParquetError> {
    let has = |name: &&str| !lacks(table, name);
    let mut long = |name: &str, to: fn(&mut Evidence, u64)| {
        set(
            rows,
            Some(name).filter(has).map(|name| table.longs(name)),
            to,
        )
    };
    long("message_bytes", |row, value| {
        row.shape.message_bytes = value
    })?;
    long("calls", |row, value| row.calls = value)?;
    long("time_n", |row, value| row.time.n = value)?;
    long("shift_n", |row, value| row.shift.n = value)?;
    long("total_n", |row, value| row.total.n = value)?;
    long("after_n", |row, value| {
        (row.after.n, row.whole.n) = (value, value)
    })?;
    long("stalls", |row, value| row.stalls = value)?;
    let mut int = |name: &str, to: fn(&mut Evidence, u32)| set(rows, Some(table.ints(name)), to);
    int("nodes", |row, value| row.shape.nodes = value)?;
    int("ppn", |row, value| row.shape.ppn = value)?;
    int("n_ranks", |row, value| row.shape.n_ranks = value)?;
    int("component", |row, value| row.component = value as u16)?;
    let mut float = |name: &str, to: fn(&mut Evidence, f64)| {
        set(
            rows,
            Some(name).filter(has).map(|name| table.floats(name)),
            to,
        )
    };
    float("level_ns", |row, value| row.level_ns = value)?;
    float("time_mean", |row, value| row.time.mean = value)?;
    float("time_m2", |row, value| row.time.m2 = value)?;
    float("shift_mean", |row, value| row.shift.mean = value)?;
    float("shift_m2", |row, value| row.shift.m2 = value)?;
    float("total_mean", |row, value| row.total.mean = value)?;
    float("total_m2", |row, value| row.total.m2 = value)?;
    float("after_mean", |row, value| row.after.mean = value)?;
    float("after_m2", |row, value| row.after.m2 = value)?;
    float("whole_mean", |row, value| row.whole.mean = value)?;
    float("whole_m2", |row, value| row.whole.m2 = value)?;
    float("stall_excess", |row, value| row.stall_excess = value)?;
    float("work", |row, value| row.work = value)
}

/// What the names of a row stand for: a collective, and a place in its catalogue where it has one.
type Known = Option<(Collective, Option<u16>)>;

fn variants(table: &Table, library: Library) -> Result<Vec<Known>, ParquetError> {
    let mut names = Names::new(library);
    let known = names.lengths();
    let collectives = table.words("collective")?;
    let collectives: Vec<Option<Collective>> = collectives
        .iter()
        .map(|name| Collective::from_name(&String::from_utf8_lossy(name.data())))
        .collect();
    let words = table.words("variant")?;
    let mut last: Option<(Collective, &ByteArray, Option<u16>)> = None;
    let found = collectives
        .into_iter()
        .zip(&words)
        .map(|(collective, word)| {
            let collective = collective?;
            if let Some((same, name, found)) = last
                && (same, name) == (collective, word)
            {
                return Some((collective, found));
            }
            if word.data() == COPY_NAME.as_bytes() {
                return Some((collective, Some(COPY)));
            }
            let number = names.number(collective, &String::from_utf8_lossy(word.data()));
            let found = number.filter(|&number| usize::from(number) < known[collective.index()]);
            last = Some((collective, word, found));
            Some((collective, found))
        });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_no_calls_is_nothing_to_reckon_with() {
        let row = |calls: u64| Evidence {
            calls,
            level_ns: 1e4,
            ..nothing(Collective::Allreduce)
        };
        assert!(is_sound(&row(1)));
        assert!(!is_sound(&row(0)));
    }
}
