//! The start-up handshake: either every rank of the world carries this shim with the same settings,
//! or all stay inert.
//!
//! A rank without the shim takes part in nothing, so the question cannot be asked with messages or
//! collectives: an unanswered one would stay behind for the program to receive. It is asked on a [`board`]
//! of the launcher's, which programs without the shim never see.
//!
//! ```text
//! rank 0:          here ------------------------------> verdict: go | stay
//! head of a node:       sees here? -> hello (its ranks) ---^   waits for the verdict, tells its members
//! ```
//! The ranks of a node, rank 0 apart, meet without the launcher ([`meeting`]), and their head alone asks the board.
//! Where all ranks are on one node they meet rank 0 itself, without the board ([`near`]). A rank is in a hello only
//! after rank 0 said that it is here. Rank 0 always gives a verdict, by its deadline if need be. It is never "go"
//! when rank 0 was held up for so long that others may have lost patience. So no rank waits for one that cannot
//! answer, and no rank can give up after another got "go". A head that dies leaves its members to the board: who was
//! counted waits for the verdict there, the others say hello by themselves. While it waits, a rank drives the
//! library's progress.

mod board;
mod launcher;
mod meeting;
mod names;
mod near;
mod pmi;
mod pmix;
pub mod trust;

use std::cell::RefCell;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use colltune_core::rendezvous::{self, Pace, RollCall};

use crate::abi::{self, Errhandler};
use crate::library::{Handles, Pmpi};
use board::Board;
pub use launcher::Manager;
use meeting::{Head, Heard, Line, Seat};

/// How many time-outs a rank waits for the verdict. Rank 0 gives it within one; only a broken
/// launcher makes anybody wait longer.
const PATIENCE: u32 = 20;
const PUBLISH_ATTEMPTS: u32 = 100;
/// When a rank that hears nothing asks itself whether the launcher answers at all.
const DOUBT_AFTER: Duration = Duration::from_millis(200);
/// How long a head waits for the rest of its node once rank 0 is known to be here. Who comes later is in another
/// hello.
const HOLD: Duration = Duration::from_millis(20);
/// The longest that nothing is done for the library's progress.
const TICK: Duration = Duration::from_millis(10);
/// What a member hears from its head.
const COUNTED: &str = "counted";
const SAY: &str = "say ";
const GO: &str = "go";
const STAY: &str = "stay";
const LEADERLESS: &str = "leaderless";
const UNSERVED: &str = "unserved";

/// What the ranks concluded; the same on every rank that has the shim.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Go,
    /// Stay inert; rank 0, or the lowest rank that noticed, says why.
    Stay(String),
    /// Stay inert; another rank says why.
    StaySilently,
    /// The launcher has nothing to ask with.
    Unserved,
}

pub struct Handshake<'a> {
    pmpi: &'a Pmpi,
    handles: &'a Handles,
    rank: u32,
    n_ranks: u32,
    /// Version and settings: what must be alike. At most 100 characters.
    identity: String,
    timeout: Duration,
    board: Option<Box<dyn Board + 'a>>,
    /// Where the ranks of this node meet.
    place: Option<String>,
    /// Where all ranks meet rank 0, if the launcher has them on one node.
    near: Option<String>,
    /// What this rank published, to be taken back.
    published: RefCell<Vec<(String, String)>>,
}

impl<'a> Handshake<'a> {
    pub fn new(
        (pmpi, handles): (&'a Pmpi, &'a Handles),
        (rank, n_ranks): (u32, u32),
        manager: &Manager,
        identity: String,
        timeout: Duration,
    ) -> Handshake<'a> {
        let place = manager.meeting_place();
        let near = place
            .as_deref()
            .and_then(|place| near::place(place, n_ranks));
        Handshake {
            pmpi,
            handles,
            rank,
            n_ranks,
            identity,
            timeout,
            board: manager.board(pmpi, handles),
            place,
            near,
            published: RefCell::default(),
        }
    }

    /// Asks all ranks. Collective over the ranks that have the shim; others need not take part. `meanwhile` rank 0 does
    /// where all are near and go: the others sleep until they hear of it, and do not spin as in a collective.
    pub fn run(&self, meanwhile: impl FnOnce()) -> Outcome {
        if self.n_ranks == 1 {
            return Outcome::Go;
        }
        let Some(board) = self.board.as_deref() else {
            return Outcome::Unserved;
        };
        let handlers = self.silence_errors();
        let outcome = if self.rank == 0 {
            self.lead(board, meanwhile)
        } else {
            self.follow(board)
        };
        self.restore_errors(handlers);
        outcome
    }

    fn lead(&self, board: &dyn Board, meanwhile: impl FnOnce()) -> Outcome {
        let began = Instant::now();
        let place = self.near.as_deref();
        let mut near = near::preside(place, self.n_ranks, self.timeout, || self.progress());
        if near.size() < self.n_ranks && !self.publish(board, "here", "colltune") {
            // Then there is no other way to meet.
            let until = Instant::now() + DOUBT_AFTER;
            near.let_in_until((0, self.n_ranks), self.n_ranks, until, || self.progress());
            if near.size() < self.n_ranks {
                near.dismiss(UNSERVED);
                return Outcome::Unserved;
            }
        }
        let mut agreed = self.call_the_roll(board, &mut near, began + self.timeout);
        if near.size() == self.n_ranks && agreed.is_ok() {
            meanwhile();
        }
        // A rank 0 that was stopped for long, or read so long, must not send on ranks that may have given up.
        if began.elapsed() > self.timeout * (PATIENCE / 2) {
            agreed = agreed.and(Err("rank 0 was held up during the start".to_owned()));
        }
        let verdict = |agreed: &Result<(), String>| if agreed.is_ok() { GO } else { STAY };
        // Who is not near asks the board.
        if near.size() < self.n_ranks
            && !(0..PUBLISH_ATTEMPTS)
                .any(|_| self.publish(board, "verdict", verdict(&agreed)) || self.pause_false())
        {
            agreed = Err("the launcher's name service stopped answering".to_owned());
        }
        near.dismiss(verdict(&agreed));
        match agreed {
            Ok(()) => Outcome::Go,
            Err(problem) => {
                Outcome::Stay(format!("{problem}; collectives run untuned on all ranks"))
            }
        }
    }

    /// Waits for the hellos of all ranks, those near rank 0 and the others.
    fn call_the_roll(
        &self,
        board: &dyn Board,
        near: &mut Head,
        deadline: Instant,
    ) -> Result<(), String> {
        let mut roll = RollCall::new(self.n_ranks, &self.identity);
        while let Some(rank) = roll.next() {
            let what = format!("hello-{rank}");
            let hello = self.wait_for(board, (rank, &what), deadline, 1, || {
                near.let_in(self.rank, self.n_ranks);
                near.hello_of(rank)
            });
            let hello = hello.ok_or_else(|| {
                let seconds = self.timeout.as_secs_f64();
                format!(
                    "rank {rank} did not answer within {seconds} s: it runs without the shim, or is stopped"
                )
            })?;
            roll.hear(&hello)?;
        }
        Ok(())
    }

    fn follow(&self, board: &dyn Board) -> Outcome {
        if let Some(line) = near::join(self.near.as_deref(), self.timeout, || self.progress()) {
            let introduction = meeting::introduction(self.rank, &self.identity);
            let patience = Instant::now() + self.timeout * PATIENCE;
            let verdict = near::stand_by(line, &introduction, patience, || self.progress());
            return conclusion(verdict.as_deref().unwrap_or(STAY));
        }
        match meeting::sit_down(self.place.as_deref()) {
            Seat::Head(head) => self.head(board, head),
            Seat::Member(line) => self.sit(board, line),
        }
    }

    /// A member's part. It never leaves a head that is there before its patience ends: it may have been counted.
    fn sit(&self, board: &dyn Board, mut line: Line) -> Outcome {
        let patience = Instant::now() + self.timeout * PATIENCE;
        let mut counted = false;
        line.say(&meeting::introduction(self.rank, &self.identity));
        let mut pace = Pace::of(1);
        while Instant::now() < patience {
            let heard = match line.hear() {
                Heard::Text(text) => text,
                Heard::Closed if counted => {
                    let verdict = self.wait_for_verdict(board, 1, || None);
                    return conclusion(verdict.as_deref().unwrap_or(STAY));
                }
                Heard::Closed => return self.head(board, Head::of_nobody()),
                Heard::Nothing => {
                    self.progress();
                    line.wait(pace.pause());
                    continue;
                }
            };
            match heard.as_str() {
                COUNTED => counted = true,
                LEADERLESS => return self.leaderless(),
                text => match text.strip_prefix(SAY) {
                    Some(hello) => {
                        self.publish(board, &format!("hello-{}", self.rank), hello);
                    }
                    None => return conclusion(text),
                },
            }
        }
        Outcome::StaySilently
    }

    /// A head's part: waits for rank 0, says hello for those who have come and come yet, and waits for the verdict.
    fn head(&self, board: &dyn Board, mut head: Head) -> Outcome {
        let deadline = Instant::now() + self.timeout;
        let n_clients = self
            .n_ranks
            .div_ceil(launcher::followers_on_node(self.rank).unwrap_or(1).max(1));
        let doubt = deadline.min(Instant::now() + DOUBT_AFTER);
        let mut here = |until| {
            let let_in = || {
                head.let_in(self.rank, self.n_ranks);
                None
            };
            self.wait_for(board, (0, "here"), until, n_clients, let_in)
        };
        if here(doubt).is_none() {
            if !self.is_served(board) {
                head.dismiss(UNSERVED);
                return Outcome::Unserved;
            }
            if here(deadline).is_none() {
                head.dismiss(LEADERLESS);
                return self.leaderless();
            }
        }
        self.gather(&mut head);
        self.say_hello(board, &mut head, &[(self.rank, self.identity.clone())]);
        let n_clients = self.n_ranks.div_ceil(head.size());
        let verdict = self.wait_for_verdict(board, n_clients, || {
            head.let_in(self.rank, self.n_ranks);
            self.say_hello(board, &mut head, &[]);
            None
        });
        let verdict = verdict.as_deref().unwrap_or(STAY);
        head.dismiss(if verdict == GO { GO } else { STAY });
        conclusion(verdict)
    }

    /// Lets the rest of the node come in.
    fn gather(&self, head: &mut Head) {
        let expected = launcher::followers_on_node(self.rank).unwrap_or(1);
        let ranks = (self.rank, self.n_ranks);
        head.let_in_until(ranks, expected, Instant::now() + HOLD, || self.progress());
    }

    /// Counts who is new, and says hello for them and for `also`: one hello for those who run the same.
    fn say_hello(&self, board: &dyn Board, head: &mut Head, also: &[(u32, String)]) {
        let mut new = head.count();
        new.extend_from_slice(also);
        new.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        for alike in new.chunk_by(|a, b| a.1 == b.1) {
            let ranks: Vec<u32> = alike.iter().map(|(rank, _)| *rank).collect();
            for hello in rendezvous::hellos(&ranks, &alike[0].1) {
                if hello.lowest == self.rank {
                    self.publish(board, &format!("hello-{}", self.rank), &hello.text);
                } else {
                    head.tell(hello.lowest, &format!("{SAY}{}", hello.text));
                }
            }
        }
    }

    fn wait_for_verdict(
        &self,
        board: &dyn Board,
        n_clients: u32,
        each: impl FnMut() -> Option<String>,
    ) -> Option<String> {
        let patience = Instant::now() + self.timeout * PATIENCE;
        self.wait_for(board, (0, "verdict"), patience, n_clients, each)
    }

    /// The lowest rank that lacks a leader says so; which one that is cannot be known.
    fn leaderless(&self) -> Outcome {
        if self.rank != 1 {
            return Outcome::StaySilently;
        }
        let seconds = self.timeout.as_secs_f64();
        Outcome::Stay(format!(
            "rank 0 did not answer within {seconds} s: it runs without the shim, or is stopped; collectives run untuned on all ranks"
        ))
    }

    /// Whether the launcher takes a name at all; it is taken back at once.
    fn is_served(&self, board: &dyn Board) -> bool {
        let probe = format!("probe-{}", self.rank);
        let served = board.publish(&probe, "colltune");
        if served {
            board.withdraw(&probe, "colltune");
        }
        served
    }

    fn publish(&self, board: &dyn Board, what: &str, text: &str) -> bool {
        let taken = board.publish(what, text);
        if taken {
            let published = (what.to_owned(), text.to_owned());
            self.published.borrow_mut().push(published);
        }
        taken
    }

    /// Polls for what `publisher` says, as one of `n_clients`, driving progress; `None` when the deadline passes.
    /// `each` is called before and in between; a text that it finds elsewhere is as good.
    fn wait_for(
        &self,
        board: &dyn Board,
        (publisher, what): (u32, &str),
        deadline: Instant,
        n_clients: u32,
        mut each: impl FnMut() -> Option<String>,
    ) -> Option<String> {
        let mut pace = Pace::of(n_clients);
        loop {
            if let Some(text) = each().or_else(|| board.lookup(publisher, what)) {
                return Some(text);
            }
            let until = Instant::now() + pace.pause();
            while Instant::now() < until {
                if Instant::now() >= deadline {
                    return None;
                }
                self.progress();
                std::thread::sleep(until.saturating_duration_since(Instant::now()).min(TICK));
                if let Some(text) = each() {
                    return Some(text);
                }
            }
        }
    }

    /// Messages may be under way to this rank from one without the shim, which is out of MPI_Init by now.
    fn progress(&self) {
        let mut flag = 0;
        // SAFETY: MPI_STATUS_IGNORE is allowed for the status; MPI_COMM_WORLD is valid.
        unsafe {
            (self.pmpi.iprobe)(
                abi::MPI_ANY_SOURCE as c_int,
                abi::MPI_ANY_TAG as c_int,
                self.handles.comm_world,
                &mut flag,
                abi::MPI_STATUS_IGNORE as *mut _,
            )
        };
    }

    /// Waits a little; false, so that it can stand behind a failed attempt.
    fn pause_false(&self) -> bool {
        self.progress();
        std::thread::sleep(TICK);
        false
    }

    /// Takes back what this rank published. Call when every rank is known to have read it.
    pub fn clean_up(self) {
        let Some(board) = self.board.as_deref() else {
            return;
        };
        let handlers = self.silence_errors();
        for (what, text) in self.published.take() {
            board.withdraw(&what, &text);
        }
        self.restore_errors(handlers);
    }

    /// Lookups fail until the name is there: that must not reach the program's error handlers.
    fn silence_errors(&self) -> [Option<Errhandler>; 2] {
        [self.handles.comm_world, self.handles.comm_self]
            .map(|comm| crate::private::silence(self.pmpi, self.handles, comm))
    }

    fn restore_errors(&self, handlers: [Option<Errhandler>; 2]) {
        for (comm, handler) in [self.handles.comm_world, self.handles.comm_self]
            .into_iter()
            .zip(handlers)
        {
            crate::private::restore(self.pmpi, comm, handler);
        }
    }
}

/// What a rank that is not rank 0 makes of the last word.
fn conclusion(word: &str) -> Outcome {
    match word {
        GO => Outcome::Go,
        UNSERVED => Outcome::Unserved,
        _ => Outcome::StaySilently,
    }
}
