//! What the shim knows of each communicator, found in a few nanoseconds by its handle.
//!
//! An attribute ties the state to the communicator's life: its callback says that it ends. Handles are found in a
//! table, with a small cache in front of it that needs no lock. States are recycled and never given back to the
//! allocator, so a stale pointer in the cache is harmless: it is compared by handle.

use std::cell::{RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use colltune_core::account::Cause;
use colltune_core::classify::Layout;
use colltune_core::decide::Decider;
use colltune_core::decide::agreed::Origin;

use crate::abi::{self, Comm, bits, spread};
use crate::account::LeftOut;
use crate::arguments::Members;
use crate::clock;
use crate::frames;
use crate::lever::Levers;
use crate::library::{Handles, Pmpi};
use crate::limits::Reservation;
use crate::node;
use crate::own::OwnFamilies;
use crate::passing_calls::PassingCalls;
use crate::private::Parent;
use crate::steer::CarrierComms;

/// The state of one communicator.
pub struct State {
    pub comm: Comm,
    /// This rank in it, known from the set-up on, and how many there are; none where it is between two groups.
    pub rank: u32,
    pub n_ranks: u32,
    /// When its first call came.
    pub attached: u64,
    pub decider: Decider,
    /// What that holds, from the set-up on.
    pub decisions: Reservation,
    pub carriers: CarrierComms,
    pub families: OwnFamilies,
    /// The last call, where one like it has a short way.
    pub repeat: Option<node::Repeat>,
    /// Calls that pass through.
    pub passing: PassingCalls,
    pub levers: Levers,
}

impl State {
    fn new(comm: Comm, n_ranks: u32, decider: Decider) -> State {
        State {
            comm,
            rank: 0,
            n_ranks,
            attached: clock::ticks(),
            decider,
            decisions: Reservation::default(),
            carriers: Default::default(),
            families: OwnFamilies::default(),
            repeat: None,
            passing: PassingCalls::default(),
            levers: Levers::default(),
        }
    }
}

impl State {
    /// The members' layout; empty before the set-up.
    pub fn layout(&self) -> Layout {
        let nobody = Layout {
            n_ranks: 0,
            nodes: 0,
            ppn: 0,
        };
        let membership = self.decider.membership();
        membership.map_or(nobody, |membership| membership.layout)
    }

    /// This communicator, and no later one with its handle.
    pub fn known(&self) -> Known {
        Known {
            comm: self.comm,
            attached: self.attached,
        }
    }

    /// This rank among all.
    pub fn members(&self) -> Members {
        Members {
            rank: self.rank as usize,
            n_ranks: self.n_ranks as usize,
        }
    }

    /// The parent from which a communicator of ours is split.
    pub fn parent(&self) -> Parent {
        Parent {
            comm: self.comm,
            begun: self.passing.calls(),
        }
    }

    /// Makes that of a communicator which was freed another one's.
    fn renew(&mut self, comm: Comm, n_ranks: u32, origin: Origin) {
        self.decider.renew(origin);
        (self.comm, self.rank, self.n_ranks) = (comm, 0, n_ranks);
        (self.attached, self.decisions) = (clock::ticks(), Reservation::default());
        (self.repeat, self.passing) = (None, PassingCalls::default());
        self.levers = Levers::default();
    }

    /// Frees the communicators of ours that hang on it, and all memory but its own; does not wait. Tells what was left out
    /// of its calls.
    fn free(&mut self, pmpi: &Pmpi, left_out: &LeftOut) {
        let tell = |cause, collective, calls| left_out.add(cause, collective, calls);
        self.decider.tell_left_out(tell);
        self.levers = Levers::default();
        // Before the set-up there is nothing more.
        if self.decider.membership().is_some() {
            self.carriers.free(pmpi);
            self.families.free(pmpi);
            *self = State::new(self.comm, self.n_ranks, Decider::aside());
        }
    }
}

/// A communicator that was found: once it is freed another one may have its handle, and its state.
#[derive(Clone, Copy)]
pub struct Known {
    pub comm: Comm,
    attached: u64,
}

/// A state in its place in the registry.
struct Slot {
    /// The bits of the communicator's handle; [`FREE`] while recycled.
    handle: AtomicU64,
    state: UnsafeCell<State>,
}

/// The state of a communicator, found for one call. The call borrows it from here for moments in which nothing of the
/// program's runs: the library's functions may call a tool, an error handler or an operation of the program's, which
/// may call a collective on this communicator, for which the state is found again, or free it. Two calls of the library's
/// are made while the state is borrowed: those in which ranks agree, and those that report an error of the node's short
/// way. What a handler calls then is none of ours ([`keep_out`](crate::frames::keep_out)).
pub struct Found(*mut Slot);

impl Found {
    #[inline(always)]
    pub fn state(&mut self) -> &mut State {
        // SAFETY: slots are never freed. By the promise to `find` one call at a time uses this state, those that are
        // made within it included: a call borrows it for no longer than it runs none of the program's code.
        unsafe { &mut *(*self.0).state.get() }
    }
}

const FREE: u64 = u64::MAX;
const CACHE: usize = 256;

/// All communicators that have been seen.
pub struct Registry {
    cache: [AtomicPtr<Slot>; CACHE],
    keyval: c_int,
    pmpi: &'static Pmpi,
    comm_null: u64,
    comm_world: u64,
    /// What was left out of calls, on communicators that are gone and on others.
    pub left_out: LeftOut,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    /// Every slot ever made.
    all: Vec<SlotPtr>,
    /// Those that can be used again.
    free: Vec<SlotPtr>,
    /// The others, by the handles of the communicators that they belong to.
    known: HashMap<u64, SlotPtr, BuildHasherDefault<Spread>>,
}

#[derive(Clone, Copy)]
struct SlotPtr(*mut Slot);
// SAFETY: a slot is leaked and its state is used by one thread at a time: MPI allows no two
// collectives on one communicator at once, and a free slot is reached under the lock alone.
unsafe impl Send for SlotPtr {}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

impl Registry {
    /// Makes the attribute key. `None` when the library refuses.
    pub fn create(pmpi: &'static Pmpi, handles: &Handles) -> Option<&'static Registry> {
        let mut keyval = abi::MPI_KEYVAL_INVALID as c_int;
        // SAFETY: both callbacks have the signatures of the standard; there is no extra state.
        let code =
            unsafe { (pmpi.comm_create_keyval)(do_not_copy, forget, &mut keyval, null_mut()) };
        (code == abi::SUCCESS).then(|| {
            REGISTRY.get_or_init(|| Registry {
                cache: [const { AtomicPtr::new(null_mut()) }; CACHE],
                keyval,
                pmpi,
                comm_null: bits(handles.comm_null),
                comm_world: bits(handles.comm_world),
                left_out: LeftOut::nothing(),
                slots: Mutex::default(),
            })
        })
    }

    /// The state of a communicator; `None` for MPI_COMM_NULL and where no attribute can be set.
    ///
    /// # Safety
    /// `comm` is valid, and no other collective on it is under way, as MPI demands. What is found is not used after
    /// the call that it was found for, nor behind code of the program's that may free the communicator.
    #[inline(always)]
    pub unsafe fn find(&self, comm: Comm) -> Option<Found> {
        let handle = bits(comm);
        match self.cached(handle) {
            Some(slot) => Some(Found(slot)),
            // SAFETY: the caller promises a valid communicator.
            None => unsafe { self.find_slowly(comm) },
        }
    }

    /// The same of a communicator that was found just now; the library is not asked.
    ///
    /// # Safety
    /// As for [`Registry::find`].
    pub unsafe fn find_again(&self, comm: Comm) -> Option<Found> {
        // SAFETY: the same is promised.
        unsafe { self.find_by_bits(bits(comm)) }
    }

    /// The same behind code of the program's that may have freed the communicator; `None` where it has.
    ///
    /// # Safety
    /// As for [`Registry::find`].
    pub unsafe fn find_still(&self, known: Known) -> Option<Found> {
        // SAFETY: the same is promised.
        let mut found = unsafe { self.find_again(known.comm) }?;
        (found.state().attached == known.attached).then_some(found)
    }

    /// The same by the bits of the handle. A communicator that was freed since is not found, unless another one has
    /// its handle now.
    ///
    /// # Safety
    /// As for [`Registry::find`].
    pub unsafe fn find_by_bits(&self, handle: u64) -> Option<Found> {
        // Since then others may have taken its place in the cache.
        self.cached(handle)
            .or_else(|| self.known(handle))
            .map(Found)
    }

    #[cold]
    unsafe fn find_slowly(&self, comm: Comm) -> Option<Found> {
        let handle = bits(comm);
        if handle == self.comm_null {
            return None;
        }
        let slot = match self.known(handle) {
            Some(slot) => slot,
            None if BeingFreed::is(handle) => return None,
            None => self.attach(comm)?,
        };
        self.cache[place(handle)].store(slot, Ordering::Release);
        Some(Found(slot))
    }

    fn attach(&self, comm: Comm) -> Option<*mut Slot> {
        let mut n_ranks = 0;
        // SAFETY: the application passed a communicator; one number is written.
        let code = unsafe { (self.pmpi.comm_size)(comm, &mut n_ranks) };
        let n_ranks = u32::try_from(n_ranks)
            .ok()
            .filter(|_| code == abi::SUCCESS)?;
        let mut inter = 0;
        // SAFETY: the communicator is valid, as its size could be read; one number is written.
        let code = unsafe { (self.pmpi.comm_test_inter)(comm, &mut inter) };
        let is_among_its_own = code == abi::SUCCESS && inter == 0;
        // Lists of counts are as long as the remote group there, so nothing reads them.
        let n_ranks = if is_among_its_own { n_ranks } else { 0 };
        let origin = match bits(comm) == self.comm_world {
            true => Origin::World,
            false => Origin::Program,
        };
        let slot = {
            let mut slots = self.slots();
            match slots.free.pop() {
                Some(slot) => {
                    // SAFETY: a recycled slot has no owner.
                    unsafe { (*(*slot.0).state.get()).renew(comm, n_ranks, origin) };
                    slot.0
                }
                None => {
                    let slot = Slot {
                        handle: AtomicU64::new(FREE),
                        state: UnsafeCell::new(State::new(comm, n_ranks, Decider::new(origin))),
                    };
                    let slot = Box::into_raw(Box::new(slot));
                    slots.all.push(SlotPtr(slot));
                    slot
                }
            }
        };
        if !is_among_its_own {
            // SAFETY: the slot is not shared yet.
            unsafe {
                (*(*slot).state.get())
                    .decider
                    .stand_aside(Cause::Intercommunicator)
            };
        }
        // SAFETY: the communicator is valid and the key is ours; slots live for ever.
        let code = unsafe { (self.pmpi.comm_set_attr)(comm, self.keyval, slot.cast()) };
        if code != abi::SUCCESS {
            self.recycle(slot);
            return None;
        }
        // SAFETY: slots are never freed.
        unsafe { (*slot).handle.store(bits(comm), Ordering::Release) };
        self.slots().known.insert(bits(comm), SlotPtr(slot));
        Some(slot)
    }

    /// Runs what frees a communicator. What hangs on it goes first, and calls on it that callbacks of the program make
    /// meanwhile are not tuned: in which order attributes go is each rank's own affair, and one that is set by then
    /// may never go.
    #[inline(never)]
    pub fn while_freed(&self, comm: Comm, free: &dyn Fn() -> c_int) -> c_int {
        let handle = bits(comm);
        let being_freed = BeingFreed(handle);
        being_freed.begin();
        let is_known = self.slots().known.contains_key(&handle);
        if is_known {
            // SAFETY: the communicator has our attribute, so it is valid.
            unsafe { (self.pmpi.comm_delete_attr)(comm, self.keyval) };
        }
        free()
    }

    #[inline(always)]
    fn cached(&self, handle: u64) -> Option<*mut Slot> {
        let slot = self.cache[place(handle)].load(Ordering::Acquire);
        // SAFETY: slots are never freed.
        let is_its = !slot.is_null() && unsafe { (*slot).handle.load(Ordering::Relaxed) } == handle;
        is_its.then_some(slot)
    }

    fn known(&self, handle: u64) -> Option<*mut Slot> {
        self.slots().known.get(&handle).map(|slot| slot.0)
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recycle(&self, slot: *mut Slot) {
        // SAFETY: slots are never freed.
        let handle = unsafe { (*slot).handle.swap(FREE, Ordering::AcqRel) };
        if handle != FREE {
            let _ = self.cache[place(handle)].compare_exchange(
                slot,
                null_mut(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
        let mut slots = self.slots();
        slots.known.remove(&handle);
        slots.free.push(SlotPtr(slot));
    }

    /// Frees what hangs on the communicators that are still alive. Only from MPI_Finalize.
    pub fn wind_down(&self) {
        let slots = self.slots().all.clone();
        for SlotPtr(slot) in slots {
            // SAFETY: MPI_Finalize is called by one thread when no other call is under way.
            let state = unsafe { &mut *(*slot).state.get() };
            state.free(self.pmpi, &self.left_out);
        }
    }
}

thread_local! {
    /// The communicators that a thread is freeing, the innermost last: a callback may free others. Where the frame of the
    /// guard that noted one is, and the handle. It holds memory only meanwhile, and nothing is to be dropped at a
    /// thread's end.
    static FREED: RefCell<ManuallyDrop<Vec<(usize, u64)>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// A communicator is being freed, from here to where it is dropped or a longjmp leaves it.
struct BeingFreed(u64);

impl BeingFreed {
    /// Notes it at its place on the stack, in [`Registry::while_freed`].
    fn begin(&self) {
        let here = std::ptr::from_ref(self).addr();
        FREED.with_borrow_mut(|freed| {
            forget_left(freed, here);
            if freed.try_reserve(1).is_ok() {
                freed.push((here, self.0));
            }
        });
    }

    /// Whether this thread is freeing such a communicator.
    fn is(handle: u64) -> bool {
        let here = 0u8;
        FREED.with_borrow_mut(|freed| {
            let is_noted = |freed: &Vec<(usize, u64)>| freed.iter().any(|(_, own)| *own == handle);
            if !is_noted(freed) {
                return false;
            }
            forget_left(freed, (&raw const here).addr());
            is_noted(freed)
        })
    }
}

impl Drop for BeingFreed {
    fn drop(&mut self) {
        let here = std::ptr::from_ref(self).addr();
        FREED.with_borrow_mut(|freed| {
            freed.retain(|(frame, _)| *frame > here);
            if freed.is_empty() {
                **freed = Vec::new();
            }
        });
    }
}

/// Forgets what a longjmp out of an error handler has left: no guard was dropped, and another communicator may have the
/// handle. Where the stack cannot be followed it is taken to go on.
fn forget_left(freed: &mut Vec<(usize, u64)>, here: usize) {
    let function = Registry::while_freed as fn(&Registry, Comm, &dyn Fn() -> c_int) -> c_int;
    while let Some((frame, _)) = freed.last() {
        if frames::is_of(function as usize, *frame, here).unwrap_or(true) {
            break;
        }
        freed.pop();
    }
}

#[inline(always)]
fn place(handle: u64) -> usize {
    (spread(handle) >> 56) as usize
}

/// A hash of handles; no attacker chooses them, so it need not resist collisions.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, _: &[u8]) {
        unreachable!("handles are numbers");
    }

    fn write_u64(&mut self, handle: u64) {
        // A table looks at the lower bits, too.
        self.0 = spread(handle).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A duplicate of a communicator starts without an attribute of ours.
pub unsafe extern "C-unwind" fn do_not_copy(
    _: Comm,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library hands over a valid flag.
    unsafe { *flag = 0 };
    abi::SUCCESS
}

/// Called when a communicator is freed. It never waits for another rank.
unsafe extern "C-unwind" fn forget(_: Comm, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
    if let Some(registry) = REGISTRY.get() {
        let slot = value.cast::<Slot>();
        // SAFETY: the value is a slot of ours, and the communicator that used it is gone.
        unsafe { (*(*slot).state.get()).free(registry.pmpi, &registry.left_out) };
        registry.recycle(slot);
    }
    abi::SUCCESS
}
