//! Single calls out of the raw records, for those who want to see how their times are spread.

use std::collections::BTreeMap;

use colltune_core::context::DataKey;
use colltune_core::record::Manner;
use colltune_models::evidence::Shape;

use crate::database::{Database, DbError};
use crate::partition;
use crate::reduce::{Names, Observation, Reader, calls};

/// So many records are looked at, the newest: raw records may be without number.
pub const RECORDS_MAX: u64 = 1 << 20;

/// One tuned call, as its recording ranks saw it together.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    pub job: String,
    pub shape: Shape,
    pub variant: String,
    /// With which it was drawn; 0 where that is unknown.
    pub probability: f64,
    /// Mean over the ranks.
    pub time_ns: f64,
}

/// The calls of some shapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    pub calls: Vec<RecordedCall>,
    /// Records that were not looked at, because they are older than the most that are.
    pub records_left_out: u64,
}

/// Reads the calls of the shapes that are wanted. A partition that cannot be read is left out, with a warning.
///
/// Errors: `Io` for a folder that cannot be read.
pub fn recorded(
    db: &Database,
    key: &DataKey,
    wanted: impl Fn(&Shape) -> bool,
    warnings: &mut Vec<String>,
) -> Result<Recorded, DbError> {
    let mut names = Names::new(key.library);
    let mut by_job: BTreeMap<String, Vec<Observation>> = BTreeMap::new();
    let mut found = Recorded::default();
    let mut looked_at = 0;
    for (path, held) in partition::standing(&db.data(key), warnings)?.iter().rev() {
        let records: u64 = held.iter().map(|one| one.count).sum();
        if looked_at > 0 && looked_at + records > RECORDS_MAX {
            found.records_left_out += records;
            continue;
        }
        looked_at += records;
        let (held, columns) = match partition::read(path) {
            Ok(read) => read,
            Err(error) => {
                warnings.push(format!("failed to {error}; it is left out"));
                continue;
            }
        };
        let mut reader = Reader::new(&columns, &mut names);
        let mut row = 0;
        for one in held {
            let observations = by_job.entry(one.job).or_default();
            let rows = row..row + one.count as usize;
            row = rows.end;
            let seen = rows.filter_map(|row| reader.observation(row));
            observations
                .extend(seen.filter(|seen| seen.manner == Manner::Blocking && wanted(&seen.shape)));
        }
    }
    for (job, observations) in by_job {
        found
            .calls
            .extend(calls(observations).into_iter().map(|call| RecordedCall {
                job: job.clone(),
                shape: call.shape,
                variant: names.name(call.shape.collective, call.variant).to_owned(),
                probability: call.probability,
                time_ns: call.time_ns,
            }));
    }
    Ok(found)
}
