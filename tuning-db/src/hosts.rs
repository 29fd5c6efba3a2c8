//! What hosts were measured to be before jobs: `DB/hosts.parquet`, the last measurements of each.
//!
//! The file is written anew each time. Of two that measure at the same moment one is not remembered.

use std::collections::BTreeMap;

use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;

use crate::database::{Database, DbError, HOSTS};
use crate::partition::{publish_table, unreadable};
use crate::table::{self, Column, Kind, Table, Values};

/// Measurements of a host that are kept, the newest.
pub const KEPT: usize = 32;
const SCHEMA: u32 = 1;
const SCHEMA_KEY: &str = "colltune.hosts";

/// A host at one time. An unknown value is NaN, or `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRow {
    pub unix_ms: u64,
    pub host: String,
    /// Ranks that measured at once.
    pub ranks: u32,
    /// A unit of computing, the median over ranks.
    pub kernel_ns: f64,
    /// What all its ranks together read and write.
    pub memory_bytes_per_ns: f64,
    /// Half a round trip of 8 bytes, and of 1 MiB, to the nearer of its neighbours.
    pub small_ns: f64,
    pub large_ns: f64,
    /// How often it was throttled meanwhile.
    pub throttled: Option<u64>,
}

/// All measurements, the oldest first; none where there is no file.
///
/// Errors: `Parquet` for a file that cannot be read, or is of another version.
pub fn all(db: &Database) -> Result<Vec<HostRow>, DbError> {
    let path = db.hosts();
    match path.exists() {
        true => read(&path).map_err(unreadable(&path)),
        false => Ok(Vec::new()),
    }
}

/// Remembers what was measured now.
///
/// Errors: as for [`all`], and `Io` for a file that cannot be written; what was known is kept then.
pub fn remember(db: &Database, new: &[HostRow]) -> Result<(), DbError> {
    let mut rows = all(db)?;
    rows.extend_from_slice(new);
    rows.sort_by_key(|row| row.unix_ms);
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        *left.entry(row.host.clone()).or_default() += 1;
    }
    rows.retain(|row| {
        let left = left.get_mut(&row.host).expect("counted above");
        *left -= 1;
        *left < KEPT
    });
    let footer = vec![(SCHEMA_KEY, SCHEMA.to_string())];
    let folder = db.folder(db.root())?;
    publish_table(&folder, HOSTS, |file| {
        table::write(file, "host", footer, &columns(&rows))
    })
}

fn read(path: &std::path::Path) -> Result<Vec<HostRow>, ParquetError> {
    let table = Table::open(path)?;
    let schema = table.footer(SCHEMA_KEY).unwrap_or("none");
    if schema != SCHEMA.to_string() {
        let problem = format!("it has version {schema}, this colltune reads {SCHEMA}");
        return Err(ParquetError::General(problem));
    }
    let (when, host, ranks) = (
        table.longs("unix_ms")?,
        table.words("host")?,
        table.ints("ranks")?,
    );
    let (kernel, memory) = (
        table.floats("kernel_ns")?,
        table.floats("memory_bytes_per_ns")?,
    );
    let (small, large) = (table.floats("small_ns")?, table.floats("large_ns")?);
    let throttled = table.unknown("throttled")?;
    let row = |i: usize| HostRow {
        unix_ms: when[i],
        host: String::from_utf8_lossy(host[i].data()).into_owned(),
        ranks: ranks[i],
        kernel_ns: kernel[i],
        memory_bytes_per_ns: memory[i],
        small_ns: small[i],
        large_ns: large[i],
        throttled: throttled[i],
    };
    Ok((0..table.rows()).map(row).collect())
}

fn columns(rows: &[HostRow]) -> Vec<Column<'_>> {
    let float = |name, value: fn(&HostRow) -> f64| {
        Column::new(name, Kind::Float, move || {
            Values::Float(rows.iter().map(value).collect())
        })
    };
    vec![
        Column::new("unix_ms", Kind::Long, move || {
            Values::Long(rows.iter().map(|row| row.unix_ms).collect())
        }),
        Column::new("host", Kind::Word, move || {
            let hosts = rows.iter().map(|row| ByteArray::from(row.host.as_str()));
            Values::Word(hosts.collect())
        }),
        Column::new("ranks", Kind::Int, move || {
            Values::Int(rows.iter().map(|row| row.ranks).collect())
        }),
        float("kernel_ns", |row| row.kernel_ns),
        float("memory_bytes_per_ns", |row| row.memory_bytes_per_ns),
        float("small_ns", |row| row.small_ns),
        float("large_ns", |row| row.large_ns),
        Column::new("throttled", Kind::Unknown, move || {
            Values::Unknown(rows.iter().map(|row| row.throttled).collect())
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(host: &str, unix_ms: u64) -> HostRow {
        HostRow {
            unix_ms,
            host: host.to_owned(),
            ranks: 2,
            kernel_ns: 10.5,
            memory_bytes_per_ns: 8.0,
            small_ns: 30_000.0,
            large_ns: 9e6,
            throttled: unix_ms.is_multiple_of(2).then_some(unix_ms),
        }
    }

    #[test]
    fn the_last_measurements_of_each_host_are_remembered_and_a_damaged_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        assert_eq!(all(&db).unwrap(), []);
        for time in 0..KEPT as u64 + 5 {
            remember(&db, &[row("a", time)]).unwrap();
        }
        remember(&db, &[row("b", 7)]).unwrap();
        let rows = all(&db).unwrap();
        assert_eq!(rows.len(), KEPT + 1);
        assert!(rows.is_sorted_by_key(|row| row.unix_ms));
        assert_eq!(rows.iter().find(|one| one.host == "b"), Some(&row("b", 7)));
        let of_a = rows.iter().filter(|one| one.host == "a");
        assert_eq!(of_a.map(|one| one.unix_ms).min(), Some(5));
        std::fs::write(db.hosts(), "no table").unwrap();
        assert!(remember(&db, &[row("a", 1)]).is_err());
        assert_eq!(std::fs::read(db.hosts()).unwrap(), b"no table");
    }
}
