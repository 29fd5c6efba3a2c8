//! The rows that analyses work on, and which columns they come from.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::FolderError;
use crate::folder::{Columns, Folder, Wanted};

/// What a rank did between two collectives of all ranks. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    pub step: u64,
    pub window: u32,
    pub rank: u32,
    pub begin: i64,
    pub arrive: i64,
    pub leave: i64,
    pub compute: i64,
    pub pack: i64,
    pub copy: i64,
    pub wait: i64,
    pub unpack: i64,
    pub sum: i64,
    /// Processor time outside of waiting.
    pub cpu: i64,
    pub rounds: u32,
    pub bytes: u64,
    pub collective: Arc<str>,
}

/// One exchange of messages within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub step: u64,
    pub window: u32,
    pub round: u32,
    pub rank: u32,
    pub begin: i64,
    pub posted: i64,
    pub served: i64,
    pub last: i64,
    /// The partner that was waited for.
    pub last_from: Option<u32>,
    pub done: i64,
    pub messages: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub step: u64,
    pub rank: u32,
    pub block: u64,
    pub level: u32,
    pub iterations: u32,
    pub compute: i64,
    pub near_shock: bool,
}

/// A rank's place, and what the system did to it up to `step`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    pub step: u64,
    pub rank: u32,
    pub node: u32,
    pub core: u32,
    pub clock: u32,
    pub voluntary: u64,
    pub involuntary: u64,
    pub host: Arc<str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseTime {
    pub step: u64,
    pub rank: u32,
    pub time: i64,
    pub phase: Arc<str>,
}

/// What a rank gave another in some steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partner {
    pub first_step: u64,
    pub last_step: u64,
    pub rank: u32,
    pub partner: u32,
    pub messages: u64,
    pub bytes: u64,
    pub kind: Arc<str>,
}

pub const WINDOWS: Wanted = Wanted {
    table: "windows",
    numbers: &[
        "step",
        "window",
        "rank",
        "begin_ns",
        "arrive_ns",
        "leave_ns",
        "compute_ns",
        "pack_ns",
        "copy_ns",
        "wait_ns",
        "unpack_ns",
        "sum_ns",
        "cpu_ns",
        "rounds",
        "bytes",
    ],
    texts: &["collective"],
    hint: "record them with `colltune-amr --telemetry FOLDER` of this version",
};

pub const ROUNDS: Wanted = Wanted {
    table: "rounds",
    numbers: &[
        "step",
        "window",
        "round",
        "rank",
        "begin_ns",
        "posted_ns",
        "served_ns",
        "last_ns",
        "last_from",
        "done_ns",
        "messages",
        "bytes",
    ],
    texts: &[],
    hint: "record them with `--telemetry_rounds`",
};

pub const BLOCKS: Wanted = Wanted {
    table: "blocks",
    numbers: &["step", "rank", "block", "level", "iterations", "compute_ns"],
    texts: &["class"],
    hint: "record them with `--telemetry_blocks`",
};

pub const RANKS: Wanted = Wanted {
    table: "ranks",
    numbers: &[
        "step",
        "rank",
        "node",
        "core",
        "clock",
        "voluntary",
        "involuntary",
    ],
    texts: &["host"],
    hint: "record them with `colltune-amr --telemetry FOLDER` of this version",
};

pub const PHASES: Wanted = Wanted {
    table: "phases",
    numbers: &["step", "rank", "time_ns"],
    texts: &["phase"],
    hint: "record them with `colltune-amr --telemetry FOLDER`",
};

pub const PARTNERS: Wanted = Wanted {
    table: "partners",
    numbers: &[
        "first_step",
        "last_step",
        "rank",
        "partner",
        "messages",
        "bytes",
    ],
    texts: &["kind"],
    hint: "record them with `colltune-amr --telemetry FOLDER` of this version",
};

/// The rows of a table from its columns.
fn rows<T, const N: usize>(columns: Columns, row: impl Fn([i64; N], &Arc<str>) -> T) -> Vec<T> {
    let (texts, none) = (columns.texts.first(), Arc::default());
    let n_rows = columns.numbers[0].len();
    let number = |i: usize| std::array::from_fn(|column| columns.numbers[column][i]);
    let text = |i: usize| texts.map_or(&none, |texts| &texts[i]);
    (0..n_rows).map(|i| row(number(i), text(i))).collect()
}

/// Windows of these steps, and at most of some steps beside them.
pub fn windows(folder: &Folder, steps: &RangeInclusive<u64>) -> Result<Vec<Window>, FolderError> {
    let columns = folder.read_steps(&WINDOWS, steps)?;
    Ok(rows(columns, |n: [i64; 15], collective| Window {
        step: n[0] as u64,
        window: n[1] as u32,
        rank: n[2] as u32,
        begin: n[3],
        arrive: n[4],
        leave: n[5],
        compute: n[6],
        pack: n[7],
        copy: n[8],
        wait: n[9],
        unpack: n[10],
        sum: n[11],
        cpu: n[12],
        rounds: n[13] as u32,
        bytes: n[14] as u64,
        collective: collective.clone(),
    }))
}

/// Rounds of these steps and some beside them, or none where they were not recorded.
pub fn rounds(folder: &Folder, steps: &RangeInclusive<u64>) -> Vec<Round> {
    let there = folder.has(ROUNDS.table);
    let columns = there
        .then(|| folder.read_steps(&ROUNDS, steps).ok())
        .flatten();
    columns.map_or_else(Vec::new, |columns| {
        rows(columns, |n: [i64; 12], _| Round {
            step: n[0] as u64,
            window: n[1] as u32,
            round: n[2] as u32,
            rank: n[3] as u32,
            begin: n[4],
            posted: n[5],
            served: n[6],
            last: n[7],
            last_from: u32::try_from(n[8]).ok(),
            done: n[9],
            messages: n[10] as u64,
            bytes: n[11] as u64,
        })
    })
}

/// Blocks, or none where they were not recorded.
pub fn blocks(folder: &Folder) -> Vec<Block> {
    let columns = folder.read_if_there(&BLOCKS);
    columns.map_or_else(Vec::new, |columns| {
        rows(columns, |n: [i64; 6], class| Block {
            step: n[0] as u64,
            rank: n[1] as u32,
            block: n[2] as u64,
            level: n[3] as u32,
            iterations: n[4] as u32,
            compute: n[5],
            near_shock: **class == *"near_shock",
        })
    })
}

/// Places of ranks, or none where they were not recorded.
pub fn places(folder: &Folder) -> Vec<Place> {
    let columns = folder.read_if_there(&RANKS);
    columns.map_or_else(Vec::new, |columns| {
        rows(columns, |n: [i64; 7], host| Place {
            step: n[0] as u64,
            rank: n[1] as u32,
            node: n[2] as u32,
            core: n[3] as u32,
            clock: n[4] as u32,
            voluntary: n[5] as u64,
            involuntary: n[6] as u64,
            host: host.clone(),
        })
    })
}

pub fn phases(folder: &Folder) -> Result<Vec<PhaseTime>, FolderError> {
    Ok(rows(folder.read(&PHASES)?, |n: [i64; 3], phase| {
        PhaseTime {
            step: n[0] as u64,
            rank: n[1] as u32,
            time: n[2],
            phase: phase.clone(),
        }
    }))
}

pub fn partners(folder: &Folder) -> Result<Vec<Partner>, FolderError> {
    Ok(rows(folder.read(&PARTNERS)?, |n: [i64; 6], kind| Partner {
        first_step: n[0] as u64,
        last_step: n[1] as u64,
        rank: n[2] as u32,
        partner: n[3] as u32,
        messages: n[4] as u64,
        bytes: n[5] as u64,
        kind: kind.clone(),
    }))
}
