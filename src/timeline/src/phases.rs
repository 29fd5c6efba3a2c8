//! The time line of a run of the mini-app: the phases of each rank, from its telemetry.
//!
//! `spans.GGGG.parquet` holds the stretches (step, rank, phase, begin_ns, time_ns), group by group of steps;
//! `meetings.GGGG.parquet` who the ranks are and when all met (meeting, rank, host, clock, enter_ns, leave_ns).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use colltune_files::Links;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};
use serde::Serialize;

use crate::alignment::{Known, Meetings, Place, places};
use crate::events::{Events, Slice, Track};
use crate::{Drawn, TimelineError};

#[derive(Serialize)]
struct Arguments {
    detail: String,
    step: u64,
}

/// Ranks that share a clock.
#[derive(Default)]
struct Host {
    ranks: Vec<u32>,
    meetings: Meetings,
    /// The first time that anything is known of.
    first_ns: u64,
}

/// Where a rank is.
type HostKey = (String, u64);

/// One stretch of a phase.
struct Span {
    step: u64,
    rank: u32,
    phase: String,
    begin_ns: u64,
    time_ns: u64,
}

/// Draws what a telemetry folder holds, reading a group of steps at a time.
///
/// Errors: `NoSpans` for a folder without, `Telemetry` for a file that cannot be read, `Write`.
pub fn draw(folder: &Path, out: impl Write) -> Result<Drawn, TimelineError> {
    let spans = files(folder, "spans")?;
    let meetings = files(folder, "meetings")?;
    if spans.is_empty() || meetings.is_empty() {
        return Err(TimelineError::NoSpans {
            path: folder.to_owned(),
        });
    }
    let hosts = hosts(&meetings)?;
    let known: Vec<Known<'_>> = hosts.iter().map(known).collect();
    let places = places(&known);
    let mut events = Events::new(out)?;
    let mut drawn = Drawn::default();
    let mut tracks: BTreeMap<u32, (u32, &Place)> = BTreeMap::new();
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
    for path in &spans {
        let at = telemetry(path);
        let reader = open(path)?;
        for row in reader.get_row_iter(None).map_err(&at)? {
            let span = row.and_then(|row| span(&row)).map_err(&at)?;
            let track = tracks.get(&span.rank);
            let &(process, place) = track.ok_or_else(|| at(missing(span.rank)))?;
            events.slice(&slice(&span, process, place))?;
        }
    }
    drawn.events = events.finish(&[
        ("telemetry", folder.display().to_string()),
        ("notes", drawn.notes.join("; ")),
    ])?;
    Ok(drawn)
}

fn missing(rank: u32) -> ParquetError {
    ParquetError::General(format!("no meetings of rank {rank} are there"))
}

fn known((key, host): &(HostKey, Host)) -> Known<'_> {
    Known {
        clock: key.1,
        first_ns: host.first_ns,
        meetings: &host.meetings,
    }
}

fn slice<'a>(span: &'a Span, process: u32, place: &Place) -> Slice<'a, Arguments> {
    let (begin_ns, duration_ns) = place.of(span.begin_ns, span.time_ns);
    Slice {
        track: Track {
            process,
            thread: span.rank,
        },
        name: &span.phase,
        category: "phase",
        begin_ns,
        duration_ns,
        arguments: Arguments {
            detail: format!("step {}", span.step),
            step: span.step,
        },
    }
}

/// The hosts, by their first rank.
fn hosts(files: &[PathBuf]) -> Result<Vec<(HostKey, Host)>, TimelineError> {
    let mut hosts = BTreeMap::<HostKey, Host>::new();
    for path in files {
        let at = telemetry(path);
        let reader = open(path)?;
        for row in reader.get_row_iter(None).map_err(&at)? {
            let read = |row: Row| {
                let key = (row.get_string(2)?.clone(), row.get_ulong(3)?);
                let times = (row.get_ulong(4)?, row.get_ulong(5)?);
                Ok((row.get_ulong(0)?, row.get_uint(1)?, key, times))
            };
            let (meeting, rank, key, (enter_ns, leave_ns)) = row.and_then(read).map_err(&at)?;
            let host = hosts.entry(key).or_insert_with(|| Host {
                first_ns: enter_ns,
                ..Host::default()
            });
            host.first_ns = host.first_ns.min(enter_ns);
            host.meetings.add((0, meeting), enter_ns, leave_ns);
            if !host.ranks.contains(&rank) {
                host.ranks.push(rank);
            }
        }
    }
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    for (_, host) in &mut hosts {
        host.ranks.sort_unstable();
    }
    hosts.sort_by_key(|(_, host)| host.ranks.first().copied());
    Ok(hosts)
}

fn span(row: &Row) -> Result<Span, ParquetError> {
    Ok(Span {
        step: row.get_ulong(0)?,
        rank: row.get_uint(1)?,
        phase: row.get_string(2)?.clone(),
        begin_ns: row.get_ulong(3)?,
        time_ns: row.get_ulong(4)?,
    })
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, TimelineError> {
    let file = colltune_files::open(path, Links::Follow).map_err(ParquetError::from);
    file.and_then(SerializedFileReader::new)
        .map_err(telemetry(path))
}

fn telemetry(path: &Path) -> impl Fn(ParquetError) -> TimelineError + '_ {
    |error| TimelineError::Telemetry {
        path: path.to_owned(),
        problem: error.to_string(),
    }
}

/// The files of one kind, by the number of their group.
fn files(folder: &Path, kind: &str) -> Result<Vec<PathBuf>, TimelineError> {
    let at = |error: std::io::Error| TimelineError::Telemetry {
        path: folder.to_owned(),
        problem: error.to_string(),
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let path = entry.map_err(at)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let group = name
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_prefix('.'));
        if group.is_some_and(|group| group.ends_with(".parquet")) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}
