//! Our own algorithms: schedules of the core, run over the library's point-to-point messages.
//!
//! All messages go over one communicator of ours with the ranks of the world, made at start: one
//! beside each of the program's would take ids from it, of which MPICH has about 2,000. A
//! communicator's members agree on a [`channel`], tags that no other communicator of theirs has,
//! when they first draw such a variant. Programs, which are compiled schedules, are kept with the
//! communicator; memory is kept for each thread. Both grow in the set-up of a variant and size
//! class, where the ranks agree on whether all had room, so that a repeated call allocates nothing.
//!
//! In the order of a call: its [`channel`], its [`arguments`] as this rank sees them, the [`program`], the
//! [`lengths`] of its chunks, the [`scratch`] memory, the [`places`] of everything, and [`run`].

mod channel;

pub mod arguments;
mod program;

mod lengths;
mod places;
mod scratch;

mod run;

use std::collections::HashMap;
use std::ffi::c_int;

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::plan::Plan;
use colltune_core::algorithm::registry::InPlace;
use colltune_core::algorithm::schedule::Case;
use colltune_core::catalogue::Own;
use colltune_core::collective::Collective;

use crate::abi;
use crate::communicator::State;
use crate::private;
use crate::tune::Tuner;
pub use arguments::Arguments;
use arguments::{Input, Members};
use channel::Channel;
pub use channel::World;
use lengths::Lengths;
use places::Job;
use program::Program;

/// More operations than this are not kept on one communicator: they can be compiled again.
const OPERATIONS_MAX: usize = 1 << 20;

/// What hangs on a communicator for our own algorithms.
#[derive(Default)]
pub struct Beside {
    channel: Channel,
    /// Calls so far; the same on all ranks.
    calls: u32,
    /// By the variant's place in the trace's header.
    classes: Vec<Classes>,
    programs: Vec<Program>,
    place_of: HashMap<Key, usize>,
    recent: Option<(Key, usize)>,
    operations: usize,
}

/// The size classes of a variant that the members have agreed on, as bits.
#[derive(Clone, Copy, Default)]
struct Classes {
    ready: u64,
    failed: u64,
}

/// What a program depends on, beside the communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// The place of the row.
    row: usize,
    case: Case,
    buffers: Buffers,
}

/// Whether a schedule's input and output are one piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Buffers {
    Apart,
    Shared,
}

/// A call of one of our own variants.
#[derive(Clone, Copy)]
pub struct Call {
    pub collective: Collective,
    /// The variant's place in the trace's header.
    pub variant: u16,
    pub own: Own,
    pub bytes: u64,
    pub arguments: Arguments,
}

impl Beside {
    /// Gives the channel back and forgets the programs; waits for nobody.
    pub fn free(&mut self) {
        self.channel.free();
        *self = Beside::default();
    }

    /// The place of the program of a case; compiled when it is first needed.
    fn program(&mut self, own: Own, case: Case, buffers: Buffers) -> usize {
        let row = own.place();
        let key = Key { row, case, buffers };
        if let Some((recent, place)) = self.recent
            && recent == key
        {
            return place;
        }
        let place = match self.place_of.get(&key) {
            Some(place) => *place,
            None => self.compile(own, key),
        };
        self.recent = Some((key, place));
        place
    }

    #[cold]
    fn compile(&mut self, own: Own, key: Key) -> usize {
        let row = own.row();
        let case = key.case;
        let schedule = (row.schedule)(case);
        let plan = match key.buffers {
            Buffers::Apart => Plan::new(schedule),
            Buffers::Shared => Plan::in_place(schedule, row.pattern, case.rank, case.root),
        };
        let program = Program::new(&plan, row.pattern.blocks(case.n_ranks));
        if self.operations > OPERATIONS_MAX {
            self.programs.clear();
            self.place_of.clear();
            self.operations = 0;
        }
        self.operations += program.operations.len();
        self.programs.push(program);
        self.place_of.insert(key, self.programs.len() - 1);
        self.programs.len() - 1
    }
}

/// The size class of a message: the number of its bits.
fn class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

/// The bytes of the whole message: every rank counts them alike.
pub fn total_bytes(collective: Collective, bytes: u64, n_ranks: u32) -> u64 {
    let blocks = Pattern::of(collective).map_or(1, |pattern| pattern.blocks(n_ranks as usize));
    bytes.saturating_mul(blocks as u64)
}

/// Sees to it that a call can be run. Collective at the first call of a variant and size class;
/// the answer is the same on all ranks.
pub fn ready(tuner: &Tuner, state: &mut State, call: &Call) -> bool {
    match state.p2p.channel {
        Channel::Open(_) => {}
        Channel::Failed => return false,
        Channel::Unopened => {
            state.p2p.channel = Channel::open(tuner, state.comm);
            if !matches!(state.p2p.channel, Channel::Open(_)) {
                return false;
            }
        }
    }
    let bit = 1u64 << (class(call.bytes) & 63);
    if let Some(classes) = state.p2p.classes.get(usize::from(call.variant)) {
        if classes.ready & bit != 0 {
            return true;
        }
        if classes.failed & bit != 0 {
            return false;
        }
    }
    agree_on_room(tuner, state, call, bit)
}

/// All ranks make room for the longest message of the class, or none uses the variant for it.
#[cold]
fn agree_on_room(tuner: &Tuner, state: &mut State, call: &Call, bit: u64) -> bool {
    // Messages of a class are less than twice as long as each other.
    let room = |job: &Job| {
        let demand = job.demand().saturating_mul(2).saturating_add(1 << 12);
        scratch::with(|scratch| scratch.block.reserve(demand))
    };
    // Wrong arguments are no want of room: the library will report them.
    let has_room = with_job(tuner, &mut state.p2p, call, room).unwrap_or(true);
    let mut failed = [u64::from(!has_room)];
    let agreed = tuner.largest(state.comm, &mut failed) && failed[0] == 0;
    let (all, place) = (&mut state.p2p.classes, usize::from(call.variant));
    if all.len() <= place {
        all.resize(place + 1, Classes::default());
    }
    let classes = &mut all[place];
    if agreed {
        classes.ready |= bit;
    } else {
        classes.failed |= bit;
    }
    agreed
}

/// Runs a call that is ready. `default` runs where an argument is wrong, so that the library says so.
pub fn run(tuner: &Tuner, state: &mut State, call: &Call, default: impl Fn() -> c_int) -> c_int {
    state.p2p.calls = state.p2p.calls.wrapping_add(1);
    let work = |job: &Job| {
        scratch::with(|scratch| {
            if !scratch.block.reserve(job.demand()) {
                return Err(abi::MPI_ERR_NO_MEM as c_int);
            }
            // SAFETY: there is as much room as is demanded; the buffers are the application's.
            unsafe { job.run(scratch) }
        })
    };
    match with_job(tuner, &mut state.p2p, call, work) {
        None => default(),
        Some(Ok(())) => abi::SUCCESS,
        Some(Err(code)) => private::report(tuner, state.comm, code),
    }
}

/// `None` where an argument is wrong.
#[inline]
fn with_job<T>(
    tuner: &Tuner,
    beside: &mut Beside,
    call: &Call,
    work: impl FnOnce(&Job) -> T,
) -> Option<T> {
    let Channel::Open(open) = &beside.channel else {
        unreachable!("a variant runs only after `ready` said so");
    };
    let members = Members {
        rank: open.rank,
        n_ranks: open.world_ranks.len(),
    };
    let view = call
        .arguments
        .view(tuner, call.collective, call.bytes, members)?;
    let row = call.own.row();
    let case = row.case(
        members.rank,
        members.n_ranks,
        view.root,
        call.own.values,
        call.bytes,
    );
    let buffers = match (view.input, row.in_place) {
        (Input::InOutput { .. }, InPlace::Shared) => Buffers::Shared,
        _ => Buffers::Apart,
    };
    let place = beside.program(call.own, case, buffers);
    let program = &beside.programs[place];
    let Channel::Open(open) = &beside.channel else {
        unreachable!("nothing closed it since");
    };
    Some(work(&Job {
        tuner,
        comm: tuner.p2p.comm()?,
        tag: open.tag(beside.calls),
        world_ranks: &open.world_ranks,
        members,
        program,
        view,
        lengths: Lengths::new(view.block, program.parts_per_block, program.chunks),
        in_place: row.in_place,
    }))
}
