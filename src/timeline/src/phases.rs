//! The time line of a run of the mini-app, from its telemetry: the phases of each rank, where their stretches were
//! recorded (`spans`), else what lies between two collectives of all ranks and these themselves (`windows`).
//!
//! Whose times compare is known from `ranks`; how the others' clocks go, from the windows' collectives.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use colltune_files::Links;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use serde::Serialize;

use colltune_statistics::clock::Meetings;

use crate::alignment::{Known, Place, places};
use crate::events::{Events, Slice, Track};
use crate::{Drawn, TimelineError};

#[derive(Serialize)]
struct Arguments {
    detail: String,
    step: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// Ranks that share a clock.
#[derive(Default)]
struct Host {
    ranks: Vec<u32>,
    meetings: Meetings,
    /// The first time that anything is known of.
    first_ns: u64,
}

/// A host's name and clock.
type HostKey = (String, u32);

/// The tracks of ranks: a host's number, and where its times are.
type Tracks<'a> = BTreeMap<u32, (u32, &'a Place)>;

const NO_SPANS: &str = "only collectives and what lies between them are in the picture; --telemetry_spans has the phases";

/// Draws what a telemetry folder holds, reading a group of steps at a time.
///
/// Errors: `Nothing` for a folder without windows, `Telemetry` for a file that cannot be read, `Write`.
pub fn draw(folder: &Path, out: impl Write) -> Result<Drawn, TimelineError> {
    let tables = ["spans", "windows", "ranks"].map(|table| files(folder, table));
    let [spans, windows, ranks] = tables;
    let (spans, windows, ranks) = (spans?, windows?, ranks?);
    if windows.is_empty() || ranks.is_empty() {
        return Err(TimelineError::Nothing {
            path: folder.to_owned(),
        });
    }
    let hosts = hosts(&ranks, &windows)?;
    let known: Vec<Known<'_>> = hosts.iter().map(known).collect();
    let places = places(&known);
    let mut events = Events::new(out)?;
    let mut drawn = Drawn::default();
    let mut tracks = Tracks::new();
    for ((process, (key, host)), place) in (1..).zip(&hosts).zip(&places) {
        events.process(process, &key.0)?;
        for &rank in &host.ranks {
            let track = Track {
                process,
                thread: rank,
            };
            events.thread(track, &format!("rank {rank}"), rank)?;
            tracks.insert(rank, (process, place));
        }
        drawn.notes.extend(place.note(&key.0, &hosts[0].0.0));
    }
    drawn.ranks = tracks.len() as u64;
    match spans.is_empty() {
        false => spans
            .iter()
            .try_for_each(|path| draw_spans(&mut events, path, &tracks))?,
        true => {
            windows
                .iter()
                .try_for_each(|path| draw_windows(&mut events, path, &tracks))?;
            drawn.notes.push(NO_SPANS.to_owned());
        }
    }
    drawn.events = events.finish(&[
        ("telemetry", folder.display().to_string()),
        ("notes", drawn.notes.join("; ")),
    ])?;
    Ok(drawn)
}

fn known((key, host): &(HostKey, Host)) -> Known<'_> {
    Known {
        clock: key.1.into(),
        first_ns: host.first_ns,
        meetings: &host.meetings,
    }
}

fn draw_spans(
    events: &mut Events<impl Write>,
    path: &Path,
    tracks: &Tracks<'_>,
) -> Result<(), TimelineError> {
    let names = ["step", "rank", "phase", "begin_ns", "time_ns"];
    rows(path, names, |row, [step, rank, phase, begin, time]| {
        let (step, rank) = (row.get_ulong(step)?, row.get_uint(rank)?);
        let times = (row.get_ulong(begin)?, row.get_ulong(time)?);
        let phase = row.get_string(phase)?;
        let arguments = Arguments {
            detail: format!("step {step}"),
            step,
            bytes: None,
        };
        slice(events, tracks, rank, phase, times, arguments)
    })
}

fn draw_windows(
    events: &mut Events<impl Write>,
    path: &Path,
    tracks: &Tracks<'_>,
) -> Result<(), TimelineError> {
    let names = [
        "step",
        "rank",
        "collective",
        "bytes",
        "begin_ns",
        "arrive_ns",
        "leave_ns",
    ];
    rows(
        path,
        names,
        |row, [step, rank, collective, bytes, begin, arrive, leave]| {
            let (step, rank) = (row.get_ulong(step)?, row.get_uint(rank)?);
            let [begin, arrive, leave] = [
                row.get_ulong(begin)?,
                row.get_ulong(arrive)?,
                row.get_ulong(leave)?,
            ];
            let bytes = row.get_ulong(bytes)?;
            let collective = row.get_string(collective)?;
            let before = Arguments {
                detail: format!("step {step}, before {collective}"),
                step,
                bytes: None,
            };
            let times = (begin, arrive.saturating_sub(begin));
            slice(events, tracks, rank, "between collectives", times, before)?;
            let call = Arguments {
                detail: format!("step {step}, {bytes} B"),
                step,
                bytes: Some(bytes),
            };
            let times = (arrive, leave.saturating_sub(arrive));
            slice(events, tracks, rank, collective, times, call)
        },
    )
}

fn slice(
    events: &mut Events<impl Write>,
    tracks: &Tracks<'_>,
    rank: u32,
    name: &str,
    (begin_ns, time_ns): (u64, u64),
    arguments: Arguments,
) -> Result<(), ParquetError> {
    let track = tracks.get(&rank);
    let missing = || ParquetError::General(format!("where rank {rank} was is not known"));
    let &(process, place) = track.ok_or_else(missing)?;
    let (begin_ns, duration_ns) = place.of(begin_ns, time_ns);
    events.slice(&Slice {
        track: Track {
            process,
            thread: rank,
        },
        name,
        category: "phase",
        begin_ns,
        duration_ns,
        arguments,
    })?;
    Ok(())
}

/// The hosts, by their first rank.
fn hosts(ranks: &[PathBuf], windows: &[PathBuf]) -> Result<Vec<(HostKey, Host)>, TimelineError> {
    let mut key_of_rank: BTreeMap<u32, HostKey> = BTreeMap::new();
    for path in ranks {
        rows(
            path,
            ["rank", "host", "clock"],
            |row, [rank, host, clock]| {
                let key = (row.get_string(host)?.clone(), row.get_uint(clock)?);
                key_of_rank.insert(row.get_uint(rank)?, key);
                Ok(())
            },
        )?;
    }
    let mut hosts = BTreeMap::<HostKey, Host>::new();
    for (rank, key) in &key_of_rank {
        let host = hosts.entry(key.clone()).or_insert_with(|| Host {
            first_ns: u64::MAX,
            ..Host::default()
        });
        host.ranks.push(*rank);
    }
    let names = [
        "step",
        "window",
        "rank",
        "collective",
        "begin_ns",
        "arrive_ns",
        "leave_ns",
    ];
    for path in windows {
        rows(
            path,
            names,
            |row, [step, window, rank, collective, begin, arrive, leave]| {
                let key = key_of_rank.get(&row.get_uint(rank)?);
                let Some(host) = key.and_then(|key| hosts.get_mut(key)) else {
                    return Ok(());
                };
                host.first_ns = host.first_ns.min(row.get_ulong(begin)?);
                let needs_all_of_all = ["allreduce", "allgather", "agree", "alltoall", "barrier"];
                if needs_all_of_all.contains(&row.get_string(collective)?.as_str()) {
                    let call = (row.get_ulong(step)?, row.get_uint(window)?.into());
                    host.meetings
                        .add(call, row.get_ulong(arrive)?, row.get_ulong(leave)?);
                }
                Ok(())
            },
        )?;
    }
    hosts.retain(|_, host| host.first_ns < u64::MAX);
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    hosts.sort_by_key(|(_, host)| host.ranks[0]);
    Ok(hosts)
}

/// Looks at every row of a file; columns are found by their names.
fn rows<const N: usize>(
    path: &Path,
    names: [&str; N],
    mut take: impl FnMut(&Row, [usize; N]) -> Result<(), ParquetError>,
) -> Result<(), TimelineError> {
    let mut read = || {
        let file = colltune_files::open(path, Links::Follow)?;
        let reader: SerializedFileReader<File> = SerializedFileReader::new(file)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut places = [0; N];
        for (place, name) in places.iter_mut().zip(names) {
            let column = schema
                .columns()
                .iter()
                .position(|column| column.name() == name);
            let missing = || ParquetError::General(format!("there is no column {name:?}"));
            *place = column.ok_or_else(missing)?;
        }
        reader
            .get_row_iter(None)?
            .try_for_each(|row| take(&row?, places))
    };
    read().map_err(|error: ParquetError| TimelineError::Telemetry {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// The files of one table, by the number of their group.
fn files(folder: &Path, table: &str) -> Result<Vec<PathBuf>, TimelineError> {
    let at = |error: std::io::Error| TimelineError::Telemetry {
        path: folder.to_owned(),
        problem: error.to_string(),
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let path = entry.map_err(at)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let group = name
            .strip_prefix(table)
            .and_then(|rest| rest.strip_prefix('.'));
        if group.is_some_and(|group| group.ends_with(".parquet")) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}
