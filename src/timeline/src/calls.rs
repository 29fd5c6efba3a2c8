//! The time line of a job's recorded collectives: what each recording rank ran, when, and for how long.

use std::collections::BTreeMap;
use std::io::Write;

use colltune_core::record::Manner;
use colltune_db::Database;
use colltune_db::job::{RankRecords, RecordedJob, TimedCall, recorded_jobs};
use serde::Serialize;

use colltune_statistics::clock::Meetings;

use crate::alignment::{Known, Place, places};
use crate::events::{Events, Slice, Track};
use crate::{Drawn, TimelineError};

/// Finds a job by its name, else the one that began last.
///
/// Errors: `Job` where there is none; `Db`. What cannot be read is left out, with a warning.
pub fn find(
    db: &Database,
    name: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<RecordedJob, TimelineError> {
    let jobs = recorded_jobs(db, warnings)?;
    let known = listed(&jobs);
    let found = match name {
        Some(name) => jobs.into_iter().find(|job| job.job == name),
        None => jobs.into_iter().max_by_key(|job| job.started_unix_ms),
    };
    found.ok_or_else(|| TimelineError::Job {
        asked: name.map_or_else(
            || "with records".to_owned(),
            |name| format!("of the name {name:?}"),
        ),
        found: known,
    })
}

/// Names of jobs for a message.
fn listed(jobs: &[RecordedJob]) -> String {
    const MOST: usize = 8;
    let names: Vec<&str> = jobs.iter().map(|job| job.job.as_str()).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n <= MOST => names.join(", "),
        n => format!("{} and {} others", names[..MOST].join(", "), n - MOST),
    }
}

/// A host in the picture.
struct Host {
    name: String,
    clock: u64,
    meetings: Meetings,
    first_ns: u64,
    ranks: Vec<u32>,
}

/// Arguments of an event.
#[derive(Serialize)]
struct Arguments<'a> {
    detail: String,
    bytes: u64,
    communicator: String,
    call: u64,
    ranks: u32,
    variant: &'a str,
    recorded_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    work_ns: Option<u64>,
}

/// Draws a job. Records are read rank by rank, twice: once for the clocks.
///
/// Errors: `Db` for records that cannot be read, `Write`.
pub fn draw(db: &Database, job: &RecordedJob, out: impl Write) -> Result<Drawn, TimelineError> {
    let hosts = hosts(db, job)?;
    let known: Vec<Known<'_>> = hosts.iter().map(Host::known).collect();
    let places = places(&known);
    let mut events = Events::new(out)?;
    let mut drawn = Drawn::default();
    for ((process, host), place) in (1..).zip(&hosts).zip(&places) {
        events.process(process, &host.name)?;
        for &rank in &host.ranks {
            let Some(records) = job.read(db, rank)? else {
                continue;
            };
            draw_rank(&mut events, process, place, &records)?;
            drawn.ranks += 1;
        }
        drawn.notes.extend(place.note(&host.name, &hosts[0].name));
    }
    drawn.notes.push(
        "only sampled calls of recording ranks are in the picture: between them there may have been others"
            .to_owned(),
    );
    let mut about = vec![("job", job.job.clone()), ("library", job.library.clone())];
    about.push(("started_unix_ms", job.started_unix_ms.to_string()));
    about.push(("notes", drawn.notes.join("; ")));
    drawn.events = events.finish(&about)?;
    Ok(drawn)
}

fn hosts(db: &Database, job: &RecordedJob) -> Result<Vec<Host>, TimelineError> {
    let mut hosts: BTreeMap<(String, u64), Host> = BTreeMap::new();
    for rank in job.ranks() {
        let Some(records) = job.read(db, rank)?.filter(|read| !read.calls.is_empty()) else {
            continue;
        };
        let key = (records.host.clone(), records.clock);
        let host = hosts.entry(key).or_insert_with(|| Host {
            name: records.host.clone(),
            clock: records.clock,
            meetings: Meetings::default(),
            first_ns: u64::MAX,
            ranks: Vec::new(),
        });
        host.ranks.push(rank);
        host.first_ns = host.first_ns.min(records.calls[0].start_ns);
        for call in records.calls.iter().filter(|call| needs_all_of_all(call)) {
            let exit_ns = call.start_ns.saturating_add(call.duration_ns);
            host.meetings
                .add((call.comm, call.call), call.start_ns, exit_ns);
        }
    }
    let mut hosts: Vec<Host> = hosts.into_values().collect();
    hosts.sort_by_key(|host| host.ranks[0]);
    Ok(hosts)
}

/// Whether no rank leaves the call before all have entered it.
fn needs_all_of_all(call: &TimedCall) -> bool {
    let synchronises = match call.collective.as_str() {
        "barrier" => true,
        "allreduce" | "allgather" | "alltoall" | "reduce_scatter_block" => call.message_bytes > 0,
        _ => false,
    };
    synchronises && call.manner == Manner::Blocking && call.comm != 0
}

impl Host {
    fn known(&self) -> Known<'_> {
        Known {
            clock: self.clock,
            first_ns: self.first_ns,
            meetings: &self.meetings,
        }
    }
}

/// Calls that overlap on one rank (nonblocking ones, those of several threads) get tracks of their own beside it.
fn draw_rank(
    events: &mut Events<impl Write>,
    process: u32,
    place: &Place,
    records: &RankRecords,
) -> Result<(), TimelineError> {
    let mut lanes: Vec<u64> = Vec::new();
    for call in &records.calls {
        let (begin_ns, duration_ns) = place.of(call.start_ns, call.duration_ns);
        let first_lane = usize::from(!blocks(call.manner));
        let end_ns = begin_ns + duration_ns;
        let free = lanes
            .iter()
            .skip(first_lane)
            .position(|end| *end <= begin_ns);
        let lane = free.map_or(lanes.len().max(first_lane), |place| place + first_lane);
        let track = Track {
            process,
            thread: records.rank + lane as u32 * records.world_ranks.max(1),
        };
        while lanes.len() <= lane {
            name_track(events, track, records, lanes.len() as u32)?;
            lanes.push(0);
        }
        lanes[lane] = end_ns;
        let name = format!("{}:{}", call.collective, call.variant);
        events.slice(&Slice {
            track,
            name: &name,
            category: call.manner.name(),
            begin_ns,
            duration_ns,
            arguments: arguments(call),
        })?;
    }
    Ok(())
}

fn blocks(manner: Manner) -> bool {
    matches!(manner, Manner::Blocking | Manner::Neighborhood)
}

fn name_track(
    events: &mut Events<impl Write>,
    track: Track,
    records: &RankRecords,
    lane: u32,
) -> std::io::Result<()> {
    let rank = records.rank;
    let thread = rank + lane * records.world_ranks.max(1);
    let name = match lane {
        0 => format!("rank {rank}"),
        lane => format!("rank {rank}, at the same time ({lane})"),
    };
    let sort_index = rank.saturating_mul(16).saturating_add(lane.min(15));
    events.thread(Track { thread, ..track }, &name, sort_index)
}

fn arguments(call: &TimedCall) -> Arguments<'_> {
    let communicator = format!("{:x}", call.comm);
    Arguments {
        detail: format!(
            "{} B, communicator {communicator} of {} ranks, call {}",
            call.message_bytes, call.n_ranks, call.call
        ),
        bytes: call.message_bytes,
        communicator,
        call: call.call,
        ranks: call.n_ranks,
        variant: &call.variant,
        recorded_ns: call.duration_ns,
        work_ns: call.work_ns,
    }
}
