//! The end of a job: the ranks add their accounts up, and rank 0 writes what comes of it.

use std::ffi::{c_int, c_void};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use colltune_core::account::{
    Cause, JobFacts, JobSummary, KINDS, MeasuredGain, Refused, SIZES, Together, WORDS,
};
use colltune_core::collective::Collective;
use colltune_core::decide::rules::JobTerms;
use colltune_core::request::Mode;
use colltune_core::settings::SummaryTo;

use super::left_out::{LEFT_OUT_WORDS, LeftOut, refused};
use super::{Account, ledger};
use crate::abi::{self, Op};
use crate::private;
use crate::warn::say;
use crate::world::World;

const COLLECTIVES: usize = Collective::ALL.len();
/// What is added up beside the kinds: calls that pass through, sampled ones, the time of agreements, and those for which
/// variants were left out.
const SUMS: usize = KINDS * WORDS + OTHERS + LEFT_OUT_WORDS;
const OTHERS: usize = 3;
/// Of what the largest counts: the wall time, the time in collectives, that of agreements, whether ranks share
/// processors, and by collective.
const LARGEST: usize = SINGLE + COLLECTIVES;
const SINGLE: usize = 4;

impl Account {
    /// Adds up what the ranks have seen, and writes it. Collective over the world; from MPI_Finalize, where all ranks
    /// come by, and only once.
    pub fn close(
        &self,
        world: &World,
        terms: &JobTerms,
        left_out: &LeftOut,
        (job, library): (&str, &str),
    ) {
        // The others may be gone, so no rank waits for them here.
        if world.tolerates_deaths {
            if world.rank == 0 && self.to.summary != SummaryTo::Nobody {
                say(
                    "there is no summary of a job that goes on without ranks that die, and no variant runs in it",
                );
            }
            return;
        }
        let (mut sums, mut largest) = self.words(world, left_out);
        let handler = private::silence(world.pmpi, &world.handles, world.handles.comm_world);
        let combined = combine(world, &mut sums, world.handles.sum)
            && combine(world, &mut largest, world.handles.max);
        private::restore(world.pmpi, world.handles.comm_world, handler);
        if world.rank != 0 || !combined {
            return;
        }
        let summary = self.summary(world, terms, (job, library), (&sums, &largest));
        self.tell(&summary);
        if let Some(folder) = &self.to.ledger {
            // A job that may not write to the database, as many that exploit it, is none of the ledger's.
            let _ = ledger::end(Path::new(folder), &summary);
        }
    }

    /// What this rank adds, and what may be the largest.
    fn words(&self, world: &World, left_out: &LeftOut) -> (Vec<u64>, Vec<u64>) {
        let wall_ns = self.wall_ns();
        let kinds: Vec<Together> = self.kinds().collect();
        let of_collectives = kinds.chunks_exact(SIZES);
        let ns: Vec<u64> = of_collectives
            .map(|sizes| {
                sizes
                    .iter()
                    .fold(0, |sum: u64, kind| sum.saturating_add(kind.ns))
            })
            .collect();
        let all_ns = ns.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        // It is an estimate, and threads may call at once; but no rank is longer in collectives than in the job.
        let within = |ns: u64| match all_ns > wall_ns {
            true => (u128::from(ns) * u128::from(wall_ns) / u128::from(all_ns)) as u64,
            false => ns,
        };
        let mut sums = Vec::with_capacity(SUMS);
        for kind in kinds {
            let (ns, default_ns) = (within(kind.ns), within(kind.default_ns));
            let kind = Together {
                ns,
                default_ns,
                ..kind
            };
            sums.extend(kind.words());
        }
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let overhead_ns = world.spending.agreeing_ns(&self.clock);
        sums.extend([number(&self.passed), number(&self.sampled), overhead_ns]);
        sums.extend(left_out.words());
        let mut largest = vec![wall_ns, all_ns.min(wall_ns), overhead_ns];
        largest.push(u64::from(world.shares_processors));
        largest.extend(ns.into_iter().map(within));
        debug_assert!(sums.len() == SUMS && largest.len() == LARGEST);
        (sums, largest)
    }

    fn summary(
        &self,
        world: &World,
        terms: &JobTerms,
        (job, library): (&str, &str),
        (sums, largest): (&[u64], &[u64]),
    ) -> JobSummary {
        let (of_kinds, rest) = sums.split_at(KINDS * WORDS);
        let (words, _) = of_kinds.as_chunks::<WORDS>();
        let kinds: Vec<Together> = words.iter().map(|words| Together::of(*words)).collect();
        let mut longest_of_ns = [0; COLLECTIVES];
        longest_of_ns.copy_from_slice(&largest[SINGLE..]);
        let facts = JobFacts {
            wall_ns: largest[0],
            longest_ns: largest[1],
            longest_of_ns,
            passed: rest[0],
            sampled: rest[1],
            overhead_ns: rest[2],
            longest_overhead_ns: largest[2],
            shares_processors: largest[3] != 0,
            measured_gain: self.measured_gain(largest[0]),
            refused: match terms.mode {
                Mode::Off | Mode::Record if terms.forced.is_empty() => {
                    let calls = kinds.iter().map(|kind| kind.calls).sum();
                    let all = Refused::new(Cause::Mode, None, calls);
                    Vec::from_iter((calls > 0).then_some(all))
                }
                _ => refused(&rest[OTHERS..]),
            },
            ..self.facts(&world.node_of_rank, terms, (job, library))
        };
        JobSummary::new(facts, &kinds)
    }

    /// What its choices gained the job, by rank 0's clock.
    fn measured_gain(&self, wall_ns: u64) -> Option<MeasuredGain> {
        let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.gain(wall_ns)
    }

    /// Says it where the user asked for it.
    fn tell(&self, summary: &JobSummary) {
        match &self.to.summary {
            SummaryTo::Nobody => {}
            SummaryTo::Stderr => say(&summary.sentence()),
            SummaryTo::File(file) => {
                if let Err(error) = append(Path::new(file), &summary.line()) {
                    say(&format!(
                        "failed to write the job's summary to {file}: {error}; the job itself is complete"
                    ));
                }
            }
        }
    }
}

/// Combines numbers at rank 0. Collective over the world; false, on this rank, where the library reports an error.
fn combine(world: &World, numbers: &mut [u64], op: Op) -> bool {
    let (send, recv): (*const c_void, *mut c_void) = match world.rank {
        0 => (abi::MPI_IN_PLACE as _, numbers.as_mut_ptr().cast()),
        _ => (numbers.as_ptr().cast(), null_mut()),
    };
    // SAFETY: the buffer that counts on this rank holds as many 64-bit numbers as are announced.
    let code = unsafe {
        (world.pmpi.reduce)(
            send,
            recv,
            numbers.len() as c_int,
            world.handles.uint64,
            op,
            0,
            world.handles.comm_world,
        )
    };
    code == abi::SUCCESS
}

/// Adds a line to a file in one write, so that those of several jobs do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    // A pipe without a reader must not hold the job up.
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    let mut file = options.custom_flags(libc::O_NONBLOCK).open(file)?;
    ledger::write_at_once(&mut file, line)
}
