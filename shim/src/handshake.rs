//! The start-up handshake: either every rank of the world carries this shim with the same settings,
//! or all stay inert.
//!
//! A rank without the shim takes part in nothing, so the question cannot be asked with messages or
//! collectives: an unanswered one would stay behind for the program to receive. It is asked through
//! the launcher's name service (`MPI_Publish_name`), which programs without the shim never see.
//!
//! ```text
//! rank 0: here ------------------------------------------> verdict: go | stay
//! rank r:       sees here? -> hello (own and children's) -------^   waits for the verdict
//! ```
//! A rank says hello only after rank 0 said that it is here, and rank 0 always gives a verdict: by
//! its deadline if need be, and never "go" when it was held up for so long that others may have lost
//! patience. So nobody waits for a rank that cannot answer, and no rank can give up after another was
//! told to go. Hellos travel up a tree of [`FAN_OUT`] children per rank.
//! While it waits, a rank drives the library's progress.

use std::ffi::{CString, c_char, c_int};
use std::time::{Duration, Instant};

use crate::abi::{self, Errhandler};
use crate::library::{Handles, Pmpi};

const FAN_OUT: u32 = 8;
const POLL_FIRST: Duration = Duration::from_micros(50);
const POLL_LAST: Duration = Duration::from_millis(10);
/// How many time-outs a rank waits for the verdict. Rank 0 gives it within one; only a broken
/// launcher makes anybody wait longer.
const PATIENCE: u32 = 20;
const PUBLISH_ATTEMPTS: u32 = 100;
/// When a rank that hears nothing asks itself whether the launcher answers at all.
const DOUBT_AFTER: Duration = Duration::from_millis(200);
const NO_NAME_SERVICE: &str = "this launcher has no name service, so it cannot be checked that all ranks carry the shim; \
     collectives run untuned. Where the launcher gives every rank the same environment, \
     COLLTUNE_HANDSHAKE=trust skips the check";

/// What the ranks concluded; the same on every rank that has the shim.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Go,
    /// Stay inert; rank 0, or the lowest rank that noticed, says why.
    Stay(String),
    /// Stay inert; another rank says why.
    StaySilently,
}

pub struct Handshake<'a> {
    pub pmpi: &'a Pmpi,
    pub handles: &'a Handles,
    pub rank: u32,
    pub n_ranks: u32,
    /// A name for this world that no other world of the same launcher has.
    pub world: String,
    /// Version and settings: what must be alike. At most 100 characters.
    pub identity: String,
    pub timeout: Duration,
}

impl Handshake<'_> {
    /// Asks all ranks. Collective over the ranks that have the shim; others need not take part.
    pub fn run(&self) -> Outcome {
        if self.n_ranks == 1 {
            return Outcome::Go;
        }
        if slurm_serves_pmix() {
            return match self.rank {
                0 => Outcome::Stay(NO_NAME_SERVICE.to_owned()),
                _ => Outcome::StaySilently,
            };
        }
        let handlers = self.silence_errors();
        let outcome = if self.rank == 0 {
            self.lead()
        } else {
            self.follow()
        };
        self.restore_errors(handlers);
        outcome
    }

    fn lead(&self) -> Outcome {
        if !self.publish("here", "colltune") {
            return Outcome::Stay(NO_NAME_SERVICE.to_owned());
        }
        let began = Instant::now();
        let mut agreed = self.children_agree(began + self.timeout);
        // A rank 0 that was stopped for long must not send on ranks that may have given up.
        if began.elapsed() > self.timeout * (PATIENCE / 2) {
            agreed = agreed.and(Err("rank 0 was held up during the start".to_owned()));
        }
        let verdict = if agreed.is_ok() { "go" } else { "stay" };
        if !(0..PUBLISH_ATTEMPTS).any(|_| self.publish("verdict", verdict) || pause_false()) {
            agreed = Err("the launcher's name service stopped answering".to_owned());
        }
        match agreed {
            Ok(()) => Outcome::Go,
            Err(problem) => {
                Outcome::Stay(format!("{problem}; collectives run untuned on all ranks"))
            }
        }
    }

    fn follow(&self) -> Outcome {
        let deadline = Instant::now() + self.timeout;
        let doubt = deadline.min(Instant::now() + DOUBT_AFTER);
        if self.wait_for("here", doubt).is_none() {
            if !self.is_served() {
                return Outcome::StaySilently;
            }
            if self.wait_for("here", deadline).is_none() {
                return self.leaderless();
            }
        }
        self.answer(deadline)
    }

    /// The lowest rank that lacks a leader says so; which one that is cannot be known.
    fn leaderless(&self) -> Outcome {
        if self.rank != 1 {
            return Outcome::StaySilently;
        }
        let seconds = self.timeout.as_secs_f64();
        Outcome::Stay(format!(
            "rank 0 did not answer within {seconds} s: it runs without the shim; collectives run untuned on all ranks"
        ))
    }

    /// Says hello to a rank 0 that is known to be here, and waits for its verdict.
    fn answer(&self, deadline: Instant) -> Outcome {
        // Children answer somewhat before their parent must, so that the parent can still tell.
        let hello = match self.children_agree(deadline) {
            Ok(()) => format!("ok {}", self.identity),
            Err(problem) => format!("no {problem}"),
        };
        self.publish(&format!("hello-{}", self.rank), &hello);
        match self
            .wait_for("verdict", Instant::now() + self.timeout * PATIENCE)
            .as_deref()
        {
            Some("go") => Outcome::Go,
            _ => Outcome::StaySilently,
        }
    }

    /// Whether the launcher takes a name at all; it is taken back at once.
    fn is_served(&self) -> bool {
        let probe = format!("probe-{}", self.rank);
        let served = self.publish(&probe, "colltune");
        if served {
            self.unpublish(&probe, "colltune");
        }
        served
    }

    /// Waits for the hellos of this rank's children in the tree.
    fn children_agree(&self, deadline: Instant) -> Result<(), String> {
        let first = u64::from(self.rank) * u64::from(FAN_OUT) + 1;
        let children = (first..first + u64::from(FAN_OUT))
            .take_while(|child| *child < u64::from(self.n_ranks));
        let mut problem = None;
        for child in children {
            let answer = self.wait_for(&format!("hello-{child}"), deadline);
            let found = match answer
                .as_deref()
                .map(|answer| answer.split_at(3.min(answer.len())))
            {
                None => Some(format!(
                    "rank {child} did not answer within {} s: it, or a rank below it, runs without the shim",
                    self.timeout.as_secs_f64()
                )),
                Some(("ok ", identity)) if identity == self.identity => None,
                Some(("ok ", identity)) => Some(format!(
                    "rank {child} runs with other settings ({identity}) than rank {} ({})",
                    self.rank, self.identity
                )),
                Some((_, reason)) => Some(reason.to_owned()),
            };
            problem = problem.or(found);
        }
        problem.map_or(Ok(()), Err)
    }

    fn name(&self, what: &str) -> CString {
        CString::new(format!("colltune-{}-{what}", self.world)).expect("the parts hold no NUL")
    }

    fn publish(&self, what: &str, text: &str) -> bool {
        // MPICH's launcher cuts a value at the first space or line end.
        let plain = |c: char| if c == ' ' { '~' } else { c };
        let text: String = text
            .chars()
            .filter(char::is_ascii)
            .map(plain)
            .take(abi::MPI_MAX_PORT_NAME as usize - 1)
            .collect();
        let text = CString::new(text).expect("ASCII without NUL");
        // SAFETY: both strings are NUL-terminated and live over the call; errors are returned.
        unsafe {
            (self.pmpi.publish_name)(
                self.name(what).as_ptr(),
                self.handles.info_null,
                text.as_ptr(),
            ) == abi::SUCCESS
        }
    }

    fn lookup(&self, what: &str) -> Option<String> {
        let mut text = vec![0u8; abi::MPI_MAX_PORT_NAME as usize + 1];
        let target = text.as_mut_ptr().cast::<c_char>();
        // SAFETY: `text` holds MPI_MAX_PORT_NAME characters and a NUL; errors are returned.
        let code = unsafe {
            (self.pmpi.lookup_name)(self.name(what).as_ptr(), self.handles.info_null, target)
        };
        let end = text.iter().position(|byte| *byte == 0)?;
        (code == abi::SUCCESS && end > 0)
            .then(|| String::from_utf8_lossy(&text[..end]).replace('~', " "))
    }

    /// Polls for a name, driving progress; `None` when the deadline passes.
    fn wait_for(&self, what: &str, deadline: Instant) -> Option<String> {
        let mut pause = POLL_FIRST;
        loop {
            if let Some(text) = self.lookup(what) {
                return Some(text);
            }
            if Instant::now() >= deadline {
                return None;
            }
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
            std::thread::sleep(pause);
            pause = (pause * 2).min(POLL_LAST);
        }
    }

    /// Takes back what this rank published. Call when every rank is known to have read it.
    pub fn clean_up(&self) {
        if self.n_ranks == 1 {
            return;
        }
        let handlers = self.silence_errors();
        let own: &[(String, &str)] = if self.rank == 0 {
            &[
                ("here".to_owned(), "colltune"),
                ("verdict".to_owned(), "go"),
            ]
        } else {
            &[(
                format!("hello-{}", self.rank),
                &format!("ok {}", self.identity),
            )]
        };
        for (what, text) in own {
            self.unpublish(what, text);
        }
        self.restore_errors(handlers);
    }

    fn unpublish(&self, what: &str, text: &str) {
        let text = CString::new(text.replace(' ', "~")).expect("no NUL was published");
        // SAFETY: as in `publish`.
        unsafe {
            (self.pmpi.unpublish_name)(
                self.name(what).as_ptr(),
                self.handles.info_null,
                text.as_ptr(),
            )
        };
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

/// Whether srun itself serves PMIx to this process. Slurm's server has no name service, and Open MPI
/// prints a page about every attempt to use it.
fn slurm_serves_pmix() -> bool {
    std::env::var("PMIX_NAMESPACE").is_ok_and(|namespace| namespace.starts_with("slurm.pmix"))
}

/// Waits a little; false, so that it can stand behind a failed attempt.
fn pause_false() -> bool {
    std::thread::sleep(POLL_LAST);
    false
}
