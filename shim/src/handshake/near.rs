//! All ranks on one node: they meet rank 0 at a socket, without the launcher.
//!
//! The launcher says how many ranks it started on a node; whether they can meet shows when they try. A rank that
//! cannot reach rank 0 in time asks the board, as on several nodes; a rank 0 that not all have reached in time is on
//! the board, too. Rank 0 counts each rank that said who it is, wherever it said so. No rank goes without its
//! verdict. A line that ends without one means that it was not "go", which takes all ranks, or that rank 0 is dead.

use std::time::{Duration, Instant};

use colltune_core::rendezvous::Pace;

use super::launcher;
use super::meeting::{self, Head, Heard, Line};

/// Which part of the time-out (10 s by default) rank 0 lets the others come before it is on the board: ranks leave
/// the library's MPI_Init together.
const HOLD: u32 = 1000;
/// Which part of it the others wait for rank 0 to be there before they look on the board.
const REACH: u32 = 200;
/// The longest between two looks at whether it is.
const LOOK: Duration = Duration::from_millis(1);

/// Where all ranks meet rank 0, beside the `place` where those of a node meet; `None` if they are on several nodes.
pub fn place(place: &str, n_ranks: u32) -> Option<String> {
    launcher::has_one_node(n_ranks).then(|| format!("{place}-0"))
}

/// Rank 0's part: lets all `n_ranks` come that do so at once.
pub fn preside(
    place: Option<&str>,
    n_ranks: u32,
    timeout: Duration,
    progress: impl FnMut(),
) -> Head {
    let mut head = meeting::preside(place);
    let until = Instant::now() + timeout / HOLD;
    head.let_in_until((0, n_ranks), n_ranks, until, progress);
    head
}

/// The line to rank 0, where it can be reached in time.
pub fn join(place: Option<&str>, timeout: Duration, mut progress: impl FnMut()) -> Option<Line> {
    let place = place?;
    let until = Instant::now() + timeout / REACH;
    let mut pace = Pace::of(1);
    loop {
        if let Some(line) = meeting::join(place) {
            return Some(line);
        }
        if Instant::now() > until {
            return None;
        }
        progress();
        std::thread::sleep(pace.pause().min(LOOK));
    }
}

/// Tells rank 0 who this is; its verdict, if it gives one before `patience` ends.
pub fn stand_by(
    mut line: Line,
    introduction: &str,
    patience: Instant,
    mut progress: impl FnMut(),
) -> Option<String> {
    line.say(introduction);
    let mut pace = Pace::of(1);
    while Instant::now() < patience {
        match line.hear() {
            Heard::Text(verdict) => return Some(verdict),
            Heard::Closed => break,
            Heard::Nothing => {
                progress();
                line.wait(pace.pause());
            }
        }
    }
    None
}
