//! The columns of evidence: how they are written, and how files of them are joined.

use colltune_core::context::{COLUMNS, DataKey};
use colltune_core::library::{Library, Product};
use colltune_models::evidence::Evidence;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use super::run::{Fresh, Run, Stored};
use crate::reduce::{Names, Row};
use crate::table::{Column, Kind, Table, Values};

/// The columns of what was reduced, in order. `run` is a place in the footer's list.
pub(super) fn columns<'a>(
    key: &'a DataKey,
    names: &'a Names,
    fresh: &'a [Fresh],
) -> Vec<Column<'a>> {
    let rows = move || {
        let places = fresh.iter().zip(0u32..);
        places.flat_map(|(one, place)| one.rows.iter().map(move |row| (place, &one.run, row)))
    };
    let word = move |name, value: Box<dyn Fn(&'a Run, &'a Row) -> &'a str + 'a>| {
        Column::new(name, Kind::Word, move || {
            let all = rows().map(|(_, run, row)| ByteArray::from(value(run, row)));
            Values::Word(all.collect())
        })
    };
    let long = move |name, value: fn(&Run, &Evidence) -> u64| {
        Column::new(name, Kind::Long, move || {
            let all = rows().map(|(_, run, row)| value(run, &row.evidence));
            Values::Long(all.collect())
        })
    };
    let int = move |name, value: fn(u32, &Evidence) -> u32| {
        Column::new(name, Kind::Int, move || {
            let all = rows().map(|(place, _, row)| value(place, &row.evidence));
            Values::Int(all.collect())
        })
    };
    let float = move |name, value: fn(&Row) -> f64| {
        Column::new(name, Kind::Float, move || {
            let all = rows().map(|(.., row)| value(row));
            Values::Float(all.collect())
        })
    };
    let mut columns = vec![
        int("run", |place, _| place),
        word("job", Box::new(|run, _| run.job.as_str())),
        long("started_unix_ms", |run, _| run.started_unix_ms),
        long("generation", |run, _| run.generation),
        word("transport", Box::new(|_, _| key.transport.name())),
    ];
    for (place, name) in COLUMNS.into_iter().enumerate() {
        columns.push(word(
            name,
            Box::new(move |run, _| run.context[place].as_str()),
        ));
    }
    columns.extend([
        word("manner", Box::new(|_, row| row.manner.name())),
        word(
            "collective",
            Box::new(|_, row| row.evidence.shape.collective.name()),
        ),
        word(
            "variant",
            Box::new(|_, row| names.name(row.evidence.shape.collective, row.evidence.variant)),
        ),
        long("message_bytes", |_, row| row.shape.message_bytes),
        int("nodes", |_, row| row.shape.nodes),
        int("ppn", |_, row| row.shape.ppn),
        int("n_ranks", |_, row| row.shape.n_ranks),
        int("component", |_, row| row.component.into()),
        long("calls", |_, row| row.calls),
        float("level_ns", |row| row.evidence.level_ns),
        long("time_n", |_, row| row.time.n),
        float("time_mean", |row| row.evidence.time.mean),
        float("time_m2", |row| row.evidence.time.m2),
        long("shift_n", |_, row| row.shift.n),
        float("shift_mean", |row| row.evidence.shift.mean),
        float("shift_m2", |row| row.evidence.shift.m2),
        long("total_n", |_, row| row.total.n),
        float("total_mean", |row| row.evidence.total.mean),
        float("total_m2", |row| row.evidence.total.m2),
        long("after_n", |_, row| row.after.n),
        float("after_mean", |row| row.evidence.after.mean),
        float("after_m2", |row| row.evidence.after.m2),
        float("whole_mean", |row| row.evidence.whole.mean),
        float("whole_m2", |row| row.evidence.whole.m2),
        long("stalls", |_, row| row.stalls),
        float("stall_excess", |row| row.evidence.stall_excess),
        float("work", |row| row.evidence.work),
        float("seconds", |row| row.seconds),
    ]);
    columns
}

/// Columns that files of earlier versions lack: of no call there.
const LATER: [&str; 5] = [
    "after_n",
    "after_mean",
    "after_m2",
    "whole_mean",
    "whole_m2",
];

/// Whether a file lacks a column as those of earlier versions do.
pub(super) fn lacks(table: &Table, name: &str) -> bool {
    LATER.contains(&name) && !table.has(name)
}

/// The names and kinds of the columns.
pub(super) fn layout() -> Vec<(&'static str, Kind)> {
    let key = DataKey::from(Library {
        product: Product::OpenMpi,
        version: (0, 0, 0),
    });
    let names = Names::empty();
    let columns = columns(&key, &names, &[]);
    columns
        .iter()
        .map(|column| (column.name, column.kind))
        .collect()
}

/// Files that become one: runs of which nothing else speaks, and the rows of those that stay, column by column.
pub(super) struct Joined {
    pub runs: Vec<Run>,
    pub columns: Vec<(&'static str, Kind, Values)>,
}

impl Joined {
    pub fn new() -> Joined {
        let empty = |(name, kind): (_, Kind)| (name, kind, kind.none());
        Joined {
            runs: Vec::new(),
            columns: layout().into_iter().map(empty).collect(),
        }
    }

    /// A file of which no row stays is not opened.
    ///
    /// Errors: for a file that cannot be read; then nothing of it has been added.
    pub fn add(&mut self, file: &Stored) -> Result<(), ParquetError> {
        if file.kept_and_spare().0 > 0 {
            self.add_rows(file)?;
        }
        let entries = file.runs.iter().enumerate();
        let entries = entries.filter(|(place, _)| !file.superseded[*place]);
        self.runs.extend(entries.map(|(place, run)| Run {
            thinned: file.thinned[place],
            ..run.clone()
        }));
        Ok(())
    }

    fn add_rows(&mut self, file: &Stored) -> Result<(), ParquetError> {
        let table = Table::open(&file.path)?;
        let mut next = self.runs.len() as u32;
        let new_place = (0..file.runs.len()).map(|place| {
            let new = next;
            next += u32::from(!file.superseded[place]);
            file.keeps_rows(place).then_some(new)
        });
        let new_place: Vec<Option<u32>> = new_place.collect();
        let of_row = table.ints("run")?;
        let of_row = of_row
            .iter()
            .map(|&run| new_place.get(run as usize).copied().flatten());
        let of_row: Vec<Option<u32>> = of_row.collect();
        let mut columns = Vec::new();
        for (name, kind) in layout() {
            columns.push(match name {
                "run" => Values::Int(of_row.iter().flatten().copied().collect()),
                _ if lacks(&table, name) => kind.zeros(of_row.iter().flatten().count()),
                _ => table.values(name, kind)?.only(|row| of_row[row].is_some()),
            });
        }
        for ((.., all), new) in self.columns.iter_mut().zip(columns) {
            all.append(new);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use colltune_core::collective::Collective;
    use colltune_core::record::Manner;
    use colltune_models::evidence::{Moments, Shape};

    use super::*;
    use crate::evidence::rows::Gathering;

    const LIBRARY: &str = "openmpi-4.1.4";

    /// One run of one row, in a file that lacks what earlier versions did not know, or in a whole one.
    fn written(folder: &Path, is_earlier: bool) -> (Stored, Evidence) {
        let shape = Shape {
            collective: Collective::Bcast,
            message_bytes: 64,
            nodes: 2,
            ppn: 4,
            n_ranks: 8,
        };
        let moments = |mean| Moments {
            n: 9,
            mean,
            m2: 0.5,
        };
        let evidence = Evidence {
            calls: 9,
            level_ns: 1e4,
            time: moments(1.5),
            total: moments(1.75),
            after: moments(0.25),
            whole: moments(2.0),
            ..Evidence::nothing(0, shape, 0)
        };
        let row = Row {
            manner: Manner::Blocking,
            evidence,
            seconds: 1.0,
        };
        let (run, rows) = (Run::default(), vec![row]);
        let fresh = [Fresh { run, rows }];
        let names = Names::new(LIBRARY.parse().unwrap());
        let key: DataKey = LIBRARY.parse().unwrap();
        let mut all = columns(&key, &names, &fresh);
        all.retain(|column| !(is_earlier && LATER.contains(&column.name)));
        let path = folder.join(format!("{is_earlier}.parquet"));
        crate::table::write(
            std::fs::File::create(&path).unwrap(),
            "evidence",
            vec![],
            &all,
        )
        .unwrap();
        (Stored::new(path, vec![Run::default()]), evidence)
    }

    #[test]
    fn files_of_earlier_versions_know_nothing_of_the_next_collective_and_join_those_that_do() {
        let folder = tempfile::tempdir().unwrap();
        let mut joined = Joined::new();
        let mut gathering = Gathering::default();
        for is_earlier in [true, false] {
            let (file, _) = written(folder.path(), is_earlier);
            joined.add(&file).unwrap();
            gathering
                .add(&file.path, &[Some(0)], LIBRARY.parse().unwrap())
                .unwrap();
        }
        let column = |name| {
            joined
                .columns
                .iter()
                .find(|column| column.0 == name)
                .unwrap()
        };
        assert_eq!(column("after_n").2, Values::Long(vec![0, 9]));
        assert_eq!(column("whole_mean").2, Values::Float(vec![0.0, 2.0]));
        let (_, whole) = written(folder.path(), false);
        let earlier = Evidence {
            after: Moments::default(),
            whole: Moments::default(),
            ..whole
        };
        let said = gathering.finish((vec![], vec![]), vec![]).evidence;
        assert!(said.contains(&whole) && said.contains(&earlier) && said.len() == 2);
    }
}
