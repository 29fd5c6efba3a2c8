//! `COLLTUNE_HANDSHAKE=trust`, where the launcher has nothing to ask with: the ranks ask each other by messages.
//!
//! The user has promised that every rank carries the shim. So each tells rank 0 what it runs, and waits for the
//! verdict. Other versions or settings leave all untuned. A rank that does not answer cannot be gone on without:
//! what was sent to it would stay for the program to receive. Then the job ends, with a sentence that names it.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use colltune_core::rendezvous::Pace;
use colltune_core::roster::hash_bytes;

use crate::abi::{self, Request};
use crate::handshake::Outcome;
use crate::library::{Handles, Pmpi};
use crate::warn::say;
use crate::world::abort;

/// Longer than any rank may be held up in a job that is well: a wrong guess ends it.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Any tag would do: until it has an answer, no rank that takes part sends anything else.
const TAG: c_int = 32_011;
const GO: u64 = 1;
const STAY: u64 = 2;
/// Ranks that a message names one by one.
const NAMED_MAX: usize = 8;

pub struct Trust<'a> {
    pub pmpi: &'a Pmpi,
    pub handles: &'a Handles,
    pub rank: u32,
    pub n_ranks: u32,
    pub identity: &'a str,
    pub timeout: Duration,
}

impl Trust<'_> {
    /// Collective over the world; ends the job where a rank does not take part.
    pub fn ask(&self) -> Outcome {
        if self.n_ranks == 1 {
            return Outcome::Go;
        }
        let own = hash_bytes(4, self.identity.as_bytes());
        match self.rank {
            0 => self.lead(own),
            _ => self.follow(own),
        }
    }

    fn lead(&self, own: u64) -> Outcome {
        let followers = 1..self.n_ranks;
        let mut answers = vec![0u64; followers.len()];
        let places = followers.clone().zip(&mut answers);
        let mut requests: Vec<Request> = places
            .map(|(rank, answer)| self.receive(answer, rank))
            .collect();
        let missing = self.wait(&mut requests, Instant::now() + self.timeout);
        if !missing.is_empty() {
            let ranks: Vec<u32> = missing.iter().map(|place| *place as u32 + 1).collect();
            self.end(&ranks);
        }
        let other = answers.iter().position(|answer| *answer != own);
        let mut verdict = if other.is_none() { GO } else { STAY };
        let mut requests: Vec<Request> = followers
            .map(|rank| self.send(&mut verdict, rank))
            .collect();
        // All are there and wait for it.
        let missing = self.wait(&mut requests, Instant::now() + self.timeout);
        if !missing.is_empty() {
            let ranks: Vec<u32> = missing.iter().map(|place| *place as u32 + 1).collect();
            self.end(&ranks);
        }
        match other {
            None => Outcome::Go,
            Some(place) => Outcome::Stay(format!(
                "rank {} runs with another build or other settings than rank 0 ({}); collectives run untuned on all ranks",
                place + 1,
                self.identity
            )),
        }
    }

    fn follow(&self, mut own: u64) -> Outcome {
        let mut verdict = 0;
        let mut requests = [self.send(&mut own, 0), self.receive(&mut verdict, 0)];
        // Rank 0 may have come later, and names who is missing; of the others the lowest that is there speaks.
        let turn = Duration::from_secs(self.rank.min(10).into());
        let deadline = Instant::now() + self.timeout * 2 + turn;
        if !self.wait(&mut requests, deadline).is_empty() {
            self.end(&[0]);
        }
        if verdict == GO {
            Outcome::Go
        } else {
            Outcome::StaySilently
        }
    }

    fn send(&self, word: &mut u64, to: u32) -> Request {
        let mut request = self.handles.request_null;
        // SAFETY: `word` outlives the request: callers wait for it, or end the job.
        unsafe {
            (self.pmpi.isend)(
                (&raw const *word).cast(),
                1,
                self.handles.uint64,
                to as c_int,
                TAG,
                self.handles.comm_world,
                &mut request,
            )
        };
        request
    }

    fn receive(&self, word: &mut u64, from: u32) -> Request {
        let mut request = self.handles.request_null;
        // SAFETY: `word` outlives the request: callers wait for it, or end the job.
        unsafe {
            (self.pmpi.irecv)(
                (&raw mut *word).cast(),
                1,
                self.handles.uint64,
                from as c_int,
                TAG,
                self.handles.comm_world,
                &mut request,
            )
        };
        request
    }

    /// The places of the requests that are not complete by the deadline.
    fn wait(&self, requests: &mut [Request], deadline: Instant) -> Vec<usize> {
        let mut left: Vec<usize> = (0..requests.len()).collect();
        let mut pace = Pace::of(1);
        loop {
            left.retain(|place| {
                let mut complete = 0;
                // SAFETY: the request is one of ours, or null and then complete.
                unsafe {
                    (self.pmpi.test)(
                        &mut requests[*place],
                        &mut complete,
                        abi::MPI_STATUS_IGNORE as *mut _,
                    )
                };
                complete == 0
            });
            if left.is_empty() || Instant::now() >= deadline {
                return left;
            }
            std::thread::sleep(pace.pause());
        }
    }

    fn end(&self, missing: &[u32]) -> ! {
        let named: Vec<String> = missing.iter().take(NAMED_MAX).map(u32::to_string).collect();
        let more = if missing.len() > NAMED_MAX {
            ", ..."
        } else {
            ""
        };
        say(&format!(
            "of {} ranks these have not answered within {} s: {}{more}; they run without the shim or are held up. \
             COLLTUNE_HANDSHAKE=trust promises that every rank carries it, so the job ends. \
             Without it, it would run untuned",
            self.n_ranks,
            self.timeout.as_secs_f64(),
            named.join(", ")
        ));
        abort(self.pmpi, self.handles)
    }
}
