//! The walk back in time from the last rank that came to a collective.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::rows::Round;
use crate::windows::Meeting;

/// What a piece of a path is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Between rounds: computing, summing, refining.
    Work,
    /// Packing and posting.
    Post,
    /// Own copies, after posting.
    Copy,
    /// A message that was waited for, from its posting.
    Transit,
    /// Waiting that no message explains.
    Wait,
    Unpack,
}

impl Part {
    pub const ALL: [Part; 6] = [
        Part::Work,
        Part::Post,
        Part::Copy,
        Part::Transit,
        Part::Wait,
        Part::Unpack,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Part::Work => "work",
            Part::Post => "post",
            Part::Copy => "copy",
            Part::Transit => "transit",
            Part::Wait => "wait",
            Part::Unpack => "unpack",
        }
    }
}

/// A stretch of a path on one rank, or between two: from the giver to the taker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    pub rank: u32,
    pub from: u32,
    pub part: Part,
    pub begin: i64,
    pub end: i64,
}

/// The path of one window, in the order of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    pub step: u64,
    pub window: u32,
    pub rounds: usize,
    pub pieces: Vec<Piece>,
    /// What posting first, before own copies, would save: no more than the copies took, nor than was waited for.
    pub send_first: i64,
    /// Waiting on the path that work of the same rank in this window could hide.
    pub overlap: i64,
}

impl Path {
    pub fn ranks(&self) -> BTreeSet<u32> {
        self.pieces.iter().map(|piece| piece.rank).collect()
    }

    pub fn len(&self) -> i64 {
        self.pieces
            .iter()
            .map(|piece| piece.end - piece.begin)
            .sum()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// A window whose records do not fit together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Violation {
    pub step: u64,
    pub window: u32,
    pub what: String,
}

/// The path of a window. `rounds` are those of all its ranks.
///
/// Errors: records are missing, or contradict each other by more than `tolerance` nanoseconds.
pub fn critical(meeting: &Meeting, rounds: &[Round], tolerance: i64) -> Result<Path, Violation> {
    let wrong = |what: String| Violation {
        step: meeting.step,
        window: meeting.window,
        what,
    };
    let by_round: BTreeMap<(u32, u32), &Round> = rounds
        .iter()
        .map(|round| ((round.rank, round.round), round))
        .collect();
    let straggler = meeting.straggler();
    let n_rounds = straggler.rounds;
    if let Some(other) = meeting.ranks.iter().find(|w| w.rounds != n_rounds) {
        return Err(wrong(format!(
            "rank {} has {} rounds, rank {} has {}",
            straggler.rank, n_rounds, other.rank, other.rounds
        )));
    }
    let window_of = |rank: u32| meeting.ranks.iter().find(|w| w.rank == rank);
    let round_of = |rank: u32, round: u32| {
        let found = by_round.get(&(rank, round)).copied();
        found.ok_or_else(|| wrong(format!("round {round} of rank {rank} is missing")))
    };
    let (mut rank, mut at) = (straggler.rank, straggler.arrive);
    let mut path = Path {
        step: meeting.step,
        window: meeting.window,
        rounds: n_rounds as usize,
        pieces: Vec::new(),
        send_first: 0,
        overlap: 0,
    };
    for k in (0..n_rounds).rev() {
        let round = round_of(rank, k)?;
        let mut piece = |rank, from, part, begin: i64, end: i64| {
            if end > begin {
                path.pieces.push(Piece {
                    rank,
                    from,
                    part,
                    begin,
                    end,
                });
            }
        };
        // The path may have come to this rank within the round, when it had posted.
        if at > round.done {
            piece(rank, rank, Part::Work, round.done, at);
        }
        if at > round.last {
            piece(rank, rank, Part::Unpack, round.last, at.min(round.done));
            at = round.last;
        }
        let crosses = round
            .last_from
            .filter(|_| at >= round.last && round.last > round.served + tolerance);
        let Some(from) = crosses else {
            piece(rank, rank, Part::Wait, round.served, at);
            piece(rank, rank, Part::Copy, round.posted, at.min(round.served));
            piece(rank, rank, Part::Post, round.begin, at.min(round.posted));
            at = at.min(round.begin);
            continue;
        };
        if window_of(from).is_none() {
            return Err(wrong(format!(
                "rank {from}, which gave rank {rank} its last message, has no window"
            )));
        }
        let given = round_of(from, k)?;
        // It may have posted this message first and others after it, but not before it began.
        if given.begin > round.last + tolerance {
            return Err(wrong(format!(
                "rank {rank} had the message of rank {from} in round {k} before that had begun to post"
            )));
        }
        let posted = given.posted.min(round.last);
        piece(rank, from, Part::Transit, posted, round.last);
        path.overlap += (round.last - round.served.max(posted))
            .min(window_of(rank).map_or(0, |w| w.compute))
            .max(0);
        let packing = window_of(from).map_or(0, |w| w.pack / i64::from(n_rounds.max(1)));
        path.send_first +=
            (posted - given.begin - packing).clamp(0, (round.last - round.served).max(0));
        (rank, at) = (from, posted);
        // What the giver did in this round until it had posted.
        let mut piece = |part, begin: i64, end: i64| {
            if end > begin {
                path.pieces.push(Piece {
                    rank,
                    from: rank,
                    part,
                    begin,
                    end,
                });
            }
        };
        piece(Part::Post, given.begin, at);
        at = at.min(given.begin);
    }
    let begin = window_of(rank).map_or(at, |window| window.begin);
    if at > begin {
        let part = Part::Work;
        path.pieces.push(Piece {
            rank,
            from: rank,
            part,
            begin,
            end: at,
        });
    }
    path.pieces.reverse();
    let on_path = path.ranks();
    if on_path.len() > n_rounds as usize + 1 {
        return Err(wrong(format!(
            "{} ranks are on the path of {n_rounds} rounds",
            on_path.len()
        )));
    }
    Ok(path)
}
