//! What each rank did in each step.

use std::collections::BTreeMap;

use crate::folder::{Folder, Wanted};
use crate::windows::Run;

/// Time of a rank in a step, in nanoseconds, and what it sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfStep {
    pub compute: f64,
    pub wait: f64,
    pub packing: f64,
    pub off: f64,
    pub work: f64,
    pub messages: f64,
    pub bytes: f64,
}

const MESSAGES: Wanted = Wanted {
    table: "messages",
    numbers: &["step", "rank", "messages", "bytes"],
    texts: &["kind"],
    hint: "record them with `colltune-amr --telemetry FOLDER`",
};

pub fn by_rank_and_step(folder: &Folder, run: &Run) -> BTreeMap<(u32, u64), OfStep> {
    let mut cells: BTreeMap<(u32, u64), OfStep> = BTreeMap::new();
    for window in run.meetings.iter().flat_map(|meeting| &meeting.ranks) {
        let cell = cells.entry((window.rank, window.step)).or_default();
        let work = (window.arrive - window.begin - window.wait).max(0) as f64;
        cell.compute += window.compute as f64;
        cell.wait += window.wait as f64;
        cell.packing += (window.pack + window.unpack) as f64;
        cell.work += work;
        cell.off += (work - window.cpu as f64).max(0.0);
    }
    if let Some(columns) = folder.read_if_there(&MESSAGES) {
        let travels = |kind: &str| !["local", "reduction", "metadata"].contains(&kind);
        for (i, kind) in columns.texts[0].iter().enumerate() {
            let number = |column: usize| columns.numbers[column][i];
            let key = (number(1) as u32, number(0) as u64);
            if let Some(cell) = cells.get_mut(&key).filter(|_| travels(kind)) {
                cell.messages += number(2) as f64;
                cell.bytes += number(3) as f64;
            }
        }
    }
    cells
}
