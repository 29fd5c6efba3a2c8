//! From a rank of a communicator to one of MPI_COMM_WORLD.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::counts::Partner;
use crate::library::{Handle, NO_HANDLE, Pmpi, SUCCESS, bits, loaded};

/// World ranks by rank of a communicator, -1 outside of the world. They stay for good: communicators are made and freed
/// without end, but their groups are few.
type Members = &'static [c_int];

/// All groups that are kept together have at most so many members: 16 MiB.
const MEMBERS_MAX: usize = 1 << 22;

pub struct Communicators {
    world: u64,
    /// A handle, which stays valid.
    world_group: u64,
    table: RwLock<Table>,
    /// Counts communicators that were freed: handles come again.
    freed: AtomicU64,
}

#[derive(Default)]
struct Table {
    of_comm: HashMap<u64, Members>,
    groups: Vec<Members>,
    n_members: usize,
}

thread_local! {
    /// The communicator of this thread's last message, how many were freed before, and its members.
    static LAST: Cell<(u64, u64, Members)> = const { Cell::new((0, u64::MAX, &[])) };
}

impl Communicators {
    /// `None` where the library does not tell the world's group.
    pub fn new(pmpi: &Pmpi, world: Handle) -> Option<Communicators> {
        let mut world_group = NO_HANDLE;
        // SAFETY: the world is valid behind MPI_Init.
        let code = unsafe { (pmpi.comm_group)(world, &mut world_group) };
        (code == SUCCESS).then(|| Communicators {
            world: bits(world),
            world_group: bits(loaded(world_group)),
            table: RwLock::default(),
            freed: AtomicU64::new(0),
        })
    }

    /// Who a rank of a communicator, or of its other group, is. The communicator has just carried a message to it.
    #[inline(always)]
    pub fn partner(&self, pmpi: &Pmpi, comm: Handle, rank: usize) -> Partner {
        let handle = bits(comm);
        if handle == self.world {
            return Partner::Rank(rank);
        }
        let freed = self.freed.load(Ordering::Acquire);
        let (last, freed_then, members) = LAST.get();
        let members = match (last, freed_then) == (handle, freed) {
            true => members,
            false => {
                let Some(members) = self.members(pmpi, comm) else {
                    return Partner::Unknown;
                };
                LAST.set((handle, freed, members));
                members
            }
        };
        match members.get(rank) {
            Some(rank) => usize::try_from(*rank).map_or(Partner::Outside, Partner::Rank),
            None => Partner::Unknown,
        }
    }

    /// Forgets a communicator that is about to be freed.
    pub fn forget(&self, handle: u64) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.of_comm.remove(&handle).is_some() {
            self.freed.fetch_add(1, Ordering::AcqRel);
        }
    }

    #[cold]
    fn members(&self, pmpi: &Pmpi, comm: Handle) -> Option<Members> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(members) = table.of_comm.get(&bits(comm)) {
            return Some(members);
        }
        drop(table);
        let members = self.translate(pmpi, comm)?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.of_comm.try_reserve(1).ok()?;
        let known = table
            .groups
            .iter()
            .find(|known| ***known == members[..])
            .copied();
        let members = match known {
            Some(known) => known,
            // Who the ranks are is not known, which is kept as well, so as not to ask for each message.
            None if table.n_members + members.len() > MEMBERS_MAX => &[],
            None => {
                table.groups.try_reserve(1).ok()?;
                table.n_members += members.len();
                let members: Members = Vec::leak(members);
                table.groups.push(members);
                members
            }
        };
        table.of_comm.insert(bits(comm), members);
        Some(members)
    }

    /// Asks the library; `None` for what it does not answer, or without memory.
    fn translate(&self, pmpi: &Pmpi, comm: Handle) -> Option<Vec<c_int>> {
        let (mut is_inter, mut n, mut group) = (0, 0, NO_HANDLE);
        // SAFETY: the communicator has just carried a message, so it is valid; numbers and a group are written.
        let codes = unsafe {
            let inter = (pmpi.comm_test_inter)(comm, &mut is_inter);
            let of = if is_inter != 0 {
                pmpi.comm_remote_group
            } else {
                pmpi.comm_group
            };
            [inter, of(comm, &mut group)]
        };
        if codes != [SUCCESS; 2] {
            return None;
        }
        // SAFETY: the group is valid, and is freed here; both lists are as long as the group.
        unsafe {
            let counted = (pmpi.group_size)(loaded(group), &mut n) == SUCCESS;
            let (mut ranks, mut members) = (Vec::new(), Vec::new());
            let has_room =
                [&mut ranks, &mut members].map(|list| list.try_reserve_exact(n as usize).is_ok());
            let mut done = counted && has_room == [true; 2];
            if done {
                ranks.extend(0..n);
                members.resize(n as usize, -1);
                let (from, to) = (loaded(group), self.world_group as Handle);
                done =
                    (pmpi.group_translate_ranks)(from, n, ranks.as_ptr(), to, members.as_mut_ptr())
                        == SUCCESS;
            }
            (pmpi.group_free)(&mut group);
            done.then_some(members)
        }
    }
}
