//! What a job's calls need of the library and of the job: its functions, types and operations, who this rank
//! is, and the communicator that carries our messages. Families get it by reference and nothing from above.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::time::Duration;

use colltune_core::launched;

use crate::abi::{self, Comm, Datatype, Op, bits};
use crate::flight;
use crate::frames;
use crate::library::{self, HandleTable, Handles, Pmpi, TakenBy, TypeFacts};
use crate::spending::Spending;

/// How long launchers are given to pass a job's last words on: Hydra drops what it has not read.
pub const LAST_WORDS: Duration = Duration::from_millis(200);

/// Ends the job, whose last words have been said.
#[cold]
pub fn abort(pmpi: &Pmpi, handles: &Handles) -> ! {
    std::thread::sleep(LAST_WORDS);
    // SAFETY: MPI_COMM_WORLD is valid until MPI_Finalize, before which the tuner is disarmed.
    unsafe { (pmpi.abort)(handles.comm_world, 1) };
    std::process::abort()
}

/// Tags between those of algorithms and the one that no message has.
const LEVER_TAGS: u64 = 64;

/// One rank of the job, and the library that it calls. Built once after the handshake.
pub struct World {
    pub pmpi: &'static Pmpi,
    pub handles: Handles,
    /// Predefined datatypes without holes, the pair types with holes, and the places of predefined operations.
    pub types: HandleTable<TypeFacts>,
    pub pairs: HandleTable<TakenBy>,
    pub ops: HandleTable<usize>,
    pub rank: u32,
    /// For each rank of the world the number of its node.
    pub node_of_rank: Vec<u32>,
    /// Whether the ranks of this rank's node have to share processors: those that they may use, not those that there are.
    pub shares_processors: bool,
    /// Whether the library is set to give the processor away while it waits, and whether to go on without ranks that
    /// die: as the environment was in MPI_Init, which the program's threads may change later on.
    pub yields_when_idle: bool,
    pub tolerates_deaths: bool,
    pub messages: Messages,
    /// Whether the library looks at the arguments of a call; a user can turn that off, as can who builds it.
    pub checks_arguments: bool,
    /// How long this rank waits in shared memory before it says so.
    pub wait_warning_after: Duration,
    /// Whether the operands of every reduction are combined in the order of `reproducible = "fixed"`.
    pub fixed_order: bool,
    pub spending: Spending,
}

/// The communicator with all ranks of the world that carries everything of ours; see [`crate::messages`].
#[derive(Clone, Copy, Default)]
pub struct Messages {
    pub(crate) comm: Option<Comm>,
    /// The largest tag. No message has it.
    pub(crate) tag_max: c_int,
}

impl Messages {
    /// `None` where it could not be made, on any rank.
    pub fn comm(&self) -> Option<Comm> {
        self.comm
    }

    /// Tags that messages of algorithms may have, from 0 on.
    pub fn tags(&self) -> u64 {
        u64::try_from(self.tag_max)
            .unwrap_or(0)
            .saturating_sub(LEVER_TAGS)
    }

    /// The tag of messages in which ranks agree on a lever; others with this tag differ in content.
    pub fn lever_tag(&self, identity: u64) -> c_int {
        (self.tags() + identity % LEVER_TAGS) as c_int
    }

    /// Lets the library take care of all messages under way. It asks for one that never comes, from
    /// anybody in the world: a question about one rank, or one that finds something, may end early. False where the
    /// library reports an error.
    pub fn progress(&self, pmpi: &Pmpi) -> bool {
        let Some(comm) = self.comm else {
            return true;
        };
        let (mut flag, status) = (0, abi::MPI_STATUS_IGNORE as *mut c_void);
        let source = abi::MPI_ANY_SOURCE as c_int;
        // SAFETY: the communicator is valid; one number is written.
        let code = unsafe { (pmpi.iprobe)(source, self.tag_max, comm, &mut flag, status) };
        code == abi::SUCCESS
    }
}

impl World {
    /// Ends the job, where this rank cannot do its part of what the others do in the present call, and says why.
    #[cold]
    pub fn end_the_job(&self, reason: &str) -> ! {
        let call = frames::name_of_call();
        self.end(&format!(
            "{}: {reason}",
            call.as_deref().unwrap_or("a call of MPI")
        ))
    }

    /// The same where the call is known.
    #[cold]
    pub fn end(&self, call_and_reason: &impl fmt::Display) -> ! {
        crate::warn::say(&format!(
            "rank {} cannot go on in {call_and_reason}; the job ends",
            self.rank,
        ));
        self.abort()
    }

    /// Ends the job, whose last words have been said.
    pub fn abort(&self) -> ! {
        flight::write();
        abort(self.pmpi, &self.handles)
    }

    /// Replaces each number by the largest that a member of `comm` has. Collective; `false`, on this rank, where the
    /// library reports an error.
    pub fn largest(&self, comm: Comm, numbers: &mut [u64]) -> bool {
        self.combine(comm, numbers, self.handles.max)
    }

    /// The same with the sum over all members.
    pub fn sum(&self, comm: Comm, numbers: &mut [u64]) -> bool {
        self.combine(comm, numbers, self.handles.sum)
    }

    fn combine(&self, comm: Comm, numbers: &mut [u64], op: Op) -> bool {
        let _agreement = self.spending.agreement();
        let (send, recv) = (abi::MPI_IN_PLACE as *const c_void, numbers.as_mut_ptr());
        let count = numbers.len() as c_int;
        // SAFETY: the buffer holds as many 64-bit numbers as are announced.
        let combine = || unsafe {
            (self.pmpi.allreduce)(send, recv.cast(), count, self.handles.uint64, op, comm)
        };
        frames::keep_out(combine) == abi::SUCCESS
    }

    /// Bytes of data in one element of a datatype; `None` where that is no type, or the size is unknown.
    #[inline(always)]
    pub fn type_bytes(&self, datatype: Datatype) -> Option<u64> {
        match self.types.get(datatype) {
            Some(facts) => Some(facts.size.into()),
            None => self.derived_type_bytes(datatype),
        }
    }

    #[cold]
    fn derived_type_bytes(&self, datatype: Datatype) -> Option<u64> {
        if self.is_no_type(datatype) {
            return None;
        }
        let mut size = 0;
        // SAFETY: the application passed the handle as a datatype.
        if unsafe { (self.pmpi.type_size)(datatype, &mut size) } != abi::SUCCESS {
            return None;
        }
        if let Ok(size) = u64::try_from(size) {
            return Some(size);
        }
        // More bytes than an `int` counts.
        let mut size = -1;
        // SAFETY: the type is one; MPI_Count has 64 bits in every library.
        let code = unsafe { (library::large().type_size?)(datatype, &mut size) };
        u64::try_from(size).ok().filter(|_| code == abi::SUCCESS)
    }

    /// Whether the library takes the same buffer twice for a call in place. MPICH refuses it, and shall say so; in Open
    /// MPI, and where nothing is checked, such programs run, and a rank that alone ran `default` would hang them.
    pub fn takes_aliases(&self) -> bool {
        cfg!(mpi = "openmpi") || !self.checks_arguments
    }

    /// Whether a handle is none of a datatype. Fortran's wrong handles become 0.
    #[inline]
    pub fn is_no_type(&self, datatype: Datatype) -> bool {
        [0, bits(self.handles.datatype_null)].contains(&bits(datatype))
    }

    /// Asks the library, which calls its error handler for operations that reductions do not take.
    pub fn is_commutative(&self, op: Op) -> bool {
        if self.is_one_sided(op) {
            return false;
        }
        let mut flag = 0;
        // SAFETY: the application passed the handle as an operation.
        let code = unsafe { (self.pmpi.op_commutative)(op, &mut flag) };
        code == abi::SUCCESS && flag != 0
    }

    pub fn is_one_sided(&self, op: Op) -> bool {
        let [replace, no_op] = self.handles.one_sided.map(bits);
        [replace, no_op].contains(&bits(op))
    }
}

/// This process's rank by what launchers put into the environment; 0 without any.
pub fn rank_in_environment() -> u32 {
    launched::rank(|name| std::env::var(name).ok()).unwrap_or(0)
}
