//! `colltune explain`: which rank hangs in which call, from the flight recordings of a job.
//!
//! ```text
//! $ COLLTUNE_FLIGHT=$PWD/flight colltune run -- mpirun -n 4 ./solver    # hangs
//! $ pkill -USR2 solver                                                  # on each node
//! $ colltune explain flight
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_core::flight::{self, Decision, Recording};
use serde::Serialize;

use colltune_output::failure::wrong;
use colltune_output::print;

/// Reads, compares, prints.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let recordings = read_folder(&args.folder)?;
    let explanation = explain(&recordings);
    print(&match args.json {
        true => serde_json::to_string(&explanation)? + "\n",
        false => in_words(&explanation),
    })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  COLLTUNE_FLIGHT=$PWD/flight colltune run --db ./hydra.db -- mpirun -n 8 ./solver
  pkill -USR2 solver; colltune explain flight
      Where a job hangs: on every node make its ranks write, then ask.

With COLLTUNE_FLIGHT=DIR each rank keeps the last 64 decisions of each communicator. At SIGUSR2,
and where colltune itself ends the job, it writes them to DIR/rank-N.flight. Without the variable
the signal does what it always did, and a program with a handler of its own for it keeps that one:
then nothing is written. Collectives that block are kept; nonblocking and persistent ones and
point-to-point messages are not.")]
pub struct Args {
    /// The folder that COLLTUNE_FLIGHT named
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, PartialEq, Serialize)]
struct Explanation {
    schema: u32,
    world_ranks: u32,
    /// Ranks without a recording.
    silent: Vec<u32>,
    communicators: Vec<Communicator>,
    /// Ranks whose decisions show no call under way.
    outside: Vec<u32>,
}

/// A communicator in which a rank waits.
#[derive(Debug, PartialEq, Serialize)]
struct Communicator {
    /// 0: it has no agreed number yet.
    comm: u64,
    n_ranks: u32,
    /// What is under way, by call.
    under_way: Vec<Group>,
    /// Who made the last call before the last that is under way; their last one.
    lagging: Vec<Group>,
    disagreements: Vec<Disagreement>,
}

/// Ranks that did the same.
#[derive(Debug, PartialEq, Serialize)]
struct Group {
    #[serde(flatten)]
    call: Call,
    ranks: Vec<u32>,
    /// Since the first of them began.
    longest_s: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Call {
    call: u64,
    collective: &'static str,
    bytes: u64,
    variant: String,
}

/// One call that was not the same for all.
#[derive(Debug, PartialEq, Serialize)]
struct Disagreement {
    call: u64,
    groups: Vec<Group>,
}

fn read_folder(folder: &Path) -> anyhow::Result<Vec<Recording>> {
    let entries = std::fs::read_dir(folder).with_context(|| match folder.is_file() {
        true => format!(
            "read {}: name the folder that the recordings are in",
            folder.display()
        ),
        false => format!("read {}", folder.display()),
    })?;
    let mut recordings = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|end| end != "flight") {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        recordings.push(flight::read(&bytes).with_context(|| path.display().to_string())?);
    }
    if recordings.is_empty() {
        return Err(wrong(format!(
            "{} has no flight recording: a job with COLLTUNE_FLIGHT={0} writes them when its ranks get SIGUSR2",
            folder.display()
        )));
    }
    recordings.sort_by_key(|recording| recording.header.rank);
    Ok(recordings)
}

/// One rank's decision, with its names.
struct Seen {
    rank: u32,
    call: Call,
    is_over: bool,
    since_s: f64,
}

fn explain(recordings: &[Recording]) -> Explanation {
    let world_ranks = recordings
        .iter()
        .map(|recording| recording.header.world_ranks)
        .max()
        .unwrap_or(0);
    let wrote: BTreeSet<u32> = recordings
        .iter()
        .map(|recording| recording.header.rank)
        .collect();
    let mut seen = BTreeMap::<u64, (u32, Vec<Seen>)>::new();
    for recording in recordings {
        for ring in &recording.rings {
            let (n_ranks, all) = seen.entry(ring.comm).or_default();
            *n_ranks = ring.n_ranks.max(*n_ranks);
            all.extend(ring.decisions.iter().map(|one| name(recording, one)));
        }
    }
    let busy: BTreeSet<u32> = seen
        .values()
        .flat_map(|(_, all)| all.iter().filter(|one| !one.is_over))
        .map(|one| one.rank)
        .collect();
    let communicators = seen
        .iter()
        .filter_map(|(comm, (n_ranks, all))| communicator(*comm, *n_ranks, all))
        .collect();
    Explanation {
        schema: 1,
        world_ranks,
        silent: (0..world_ranks)
            .filter(|rank| !wrote.contains(rank))
            .collect(),
        communicators,
        outside: wrote.difference(&busy).copied().collect(),
    }
}

fn name(recording: &Recording, decision: &Decision) -> Seen {
    let variant = &recording.header.variants[usize::from(decision.variant)];
    Seen {
        rank: recording.header.rank,
        call: Call {
            call: decision.call,
            collective: decision.collective.name(),
            bytes: decision.bytes,
            variant: variant.clone(),
        },
        is_over: decision.is_over,
        since_s: recording.written_ns.saturating_sub(decision.start_ns) as f64 / 1e9,
    }
}

/// `None` where nothing is under way and no ranks disagree.
fn communicator(comm: u64, n_ranks: u32, all: &[Seen]) -> Option<Communicator> {
    let under_way = groups(all.iter().filter(|one| !one.is_over));
    let mut last = BTreeMap::<u32, &Seen>::new();
    for one in all {
        last.insert(one.rank, one);
    }
    let furthest = under_way.iter().map(|group| group.call.call).max();
    // Numbers of calls compare within a communicator; those without a number may be several.
    let numbered = comm != 0;
    let lags = |one: &&Seen| numbered && furthest.is_some_and(|call| one.call.call < call);
    let lagging = groups(last.into_values().filter(lags));
    let mut calls = BTreeMap::<u64, Vec<&Seen>>::new();
    for one in all.iter().filter(|_| numbered) {
        calls.entry(one.call.call).or_default().push(one);
    }
    let disagreements: Vec<_> = calls
        .into_iter()
        .map(|(call, ranks)| Disagreement {
            call,
            groups: groups(ranks.into_iter()),
        })
        .filter(|disagreement| disagreement.groups.len() > 1)
        .collect();
    (!under_way.is_empty() || !disagreements.is_empty()).then_some(Communicator {
        comm,
        n_ranks,
        under_way,
        lagging,
        disagreements,
    })
}

fn groups<'a>(seen: impl Iterator<Item = &'a Seen>) -> Vec<Group> {
    let mut groups = BTreeMap::<&Call, (Vec<u32>, f64)>::new();
    for one in seen {
        let (ranks, longest) = groups.entry(&one.call).or_default();
        ranks.push(one.rank);
        *longest = longest.max(one.since_s);
    }
    groups
        .into_iter()
        .map(|(call, (ranks, longest_s))| Group {
            call: call.clone(),
            ranks,
            longest_s,
        })
        .collect()
}

fn in_words(explanation: &Explanation) -> String {
    let mut text = String::new();
    let mut say = |line: String| text += &(line + "\n");
    for comm in &explanation.communicators {
        let of = match comm.comm {
            0 => "a communicator that has no number yet".to_owned(),
            number => format!("communicator {number} of {} ranks", comm.n_ranks),
        };
        for group in &comm.under_way {
            say(format!(
                "{} in call {} of {of} for {:.1} s: {}",
                subject(&group.ranks, "is", "are"),
                group.call.call,
                group.longest_s,
                what(&group.call)
            ));
        }
        for group in &comm.lagging {
            say(format!(
                "{} behind there: the last call was {}, {}",
                subject(&group.ranks, "lags", "lag"),
                group.call.call,
                what(&group.call)
            ));
        }
        for disagreement in &comm.disagreements {
            let sides: Vec<_> = disagreement
                .groups
                .iter()
                .map(|group| {
                    format!(
                        "{} {}",
                        subject(&group.ranks, "ran", "ran"),
                        what(&group.call)
                    )
                })
                .collect();
            say(format!(
                "The ranks disagree about call {} of {of}: {}",
                disagreement.call,
                sides.join("; ")
            ));
        }
    }
    if !explanation.outside.is_empty() {
        say(format!(
            "{} in no blocking collective",
            subject(&explanation.outside, "is", "are")
        ));
    }
    if !explanation.silent.is_empty() {
        say(format!(
            "{} nothing: ended, stopped, without the shim, or with a signal handler of its own",
            subject(&explanation.silent, "wrote", "wrote")
        ));
    }
    text
}

fn what(call: &Call) -> String {
    format!(
        "{} of {} bytes with {}",
        call.collective, call.bytes, call.variant
    )
}

/// `Rank 3 is`, `Ranks 0 to 2, 5 are`.
fn subject(ranks: &[u32], one: &str, several: &str) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 >= rank => *last = rank,
            _ => spans.push((rank, rank)),
        }
    }
    let spans: Vec<_> = spans
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    match ranks {
        [_] => format!("Rank {} {one}", spans.join(", ")),
        _ => format!("Ranks {} {several}", spans.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::collective::Collective;
    use colltune_core::flight::{Header, Ring};

    use super::*;

    fn decision(call: u64, bytes: u64, is_over: bool) -> Decision {
        Decision {
            call,
            bytes,
            start_ns: 1_000_000_000,
            collective: Collective::Allreduce,
            variant: 1,
            is_over,
        }
    }

    fn recording(rank: u32, decisions: Vec<Decision>) -> Recording {
        Recording {
            header: Header {
                rank,
                world_ranks: 5,
                host: "node0".to_owned(),
                process: 1,
                colltune_version: "0.1.0".to_owned(),
                variants: vec!["default".to_owned(), "node:shm".to_owned()],
            },
            written_ns: 3_500_000_000,
            rings: vec![Ring {
                comm: 1,
                n_ranks: 5,
                decisions,
            }],
        }
    }

    #[test]
    fn who_waits_who_lags_who_disagrees_and_who_is_silent_is_said() {
        let waits = |rank| recording(rank, vec![decision(6, 8, true), decision(7, 8, false)]);
        let recordings = [
            waits(0),
            waits(1),
            recording(2, vec![decision(6, 8, true)]),
            recording(3, vec![decision(6, 8, true), decision(7, 16, false)]),
        ];
        assert_eq!(
            in_words(&explain(&recordings)),
            "Ranks 0, 1 are in call 7 of communicator 1 of 5 ranks for 2.5 s: allreduce of 8 bytes with node:shm\n\
             Rank 3 is in call 7 of communicator 1 of 5 ranks for 2.5 s: allreduce of 16 bytes with node:shm\n\
             Rank 2 lags behind there: the last call was 6, allreduce of 8 bytes with node:shm\n\
             The ranks disagree about call 7 of communicator 1 of 5 ranks: Ranks 0, 1 ran allreduce of 8 bytes with \
             node:shm; Rank 3 ran allreduce of 16 bytes with node:shm\n\
             Rank 2 is in no blocking collective\n\
             Rank 4 wrote nothing: ended, stopped, without the shim, or with a signal handler of its own\n"
        );
    }
}
