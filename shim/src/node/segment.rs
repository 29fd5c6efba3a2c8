//! The memory that the ranks of a node share: made, found by the others, given back.
//!
//! It is a file without a name (memfd): its first rank makes it, and the others open it through
//! /proc. Nothing of it is ever left behind, however the job ends. Every rank reserves its own
//! area, so that its memory lies near it and a want of memory shows in the set-up, on no later write. That area is
//! what it holds of the rank's account; of the others' a rank has those pages in its page table that it touches.

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use colltune_core::node::layout::{
    AREA_HEAD, Areas, FAULT, Flag, IDENTITY_WORDS, LINES, PAGE, PROCESSOR_WORDS,
};
use colltune_core::processors::are_crowded;

use super::patience::Patience;
use super::team::Team;
use crate::abi;
use crate::arguments::Typed;
use crate::limits::Reservation;
use crate::p2p::OpenChannel;
use crate::p2p::endpoint::Endpoint;
use crate::processors;
use crate::quiet::quietly;
use crate::world::World;

/// How often a reservation that signals interrupt is tried.
const RESERVE_TRIES: usize = 1_000;
/// `MFD_NOEXEC_SEAL`: no process can execute the file. Under `vm.memfd_noexec` a kernel makes no other.
const NOEXEC_SEAL: libc::c_uint = 8;

static MADE: AtomicU64 = AtomicU64::new(0);

/// A node's segment, and how far this rank has come in it.
pub struct Segment {
    start: *mut u8,
    bytes: usize,
    pub areas: Areas,
    /// For each rank the pages of its cells that are in this rank's page table as they are, each a bit; the others are
    /// looked for before they are read.
    pages: Box<[Cell<u64>]>,
    file: c_int,
    pub place: usize,
    pub n_here: usize,
    /// The place of the node's lowest rank.
    lowest: usize,
    pub patience: Patience,
    /// The ticket of the next piece, and of the next short message; alike on all ranks.
    pub next: Cell<u64>,
    pub next_short: u64,
    /// The last tickets that may be written without asking whether the others are done.
    pub room: Cell<u64>,
    pub room_short: u64,
    /// What others find where this rank says that it is, if they may look.
    secret: Box<u64>,
    /// In which this process has its number.
    namespace: u64,
    /// Whether a call is under way; still so behind one that was left by an exception or a longjmp.
    left: Cell<bool>,
    /// Whether all ranks have reserved their areas.
    settled: bool,
    _memory: Reservation,
}

/// A call in a node's memory. One that an exception leaves tells the others that it cannot go on.
pub struct RunningOnNode<'a>(&'a AtomicU64);

impl Drop for RunningOnNode<'_> {
    #[cold]
    fn drop(&mut self) {
        fail(self.0, abi::MPI_ERR_OTHER as c_int);
    }
}

/// Stores the class of an error that keeps a rank from going on. The first one stays.
#[cold]
fn fail(fault: &AtomicU64, code: c_int) {
    // Classes mean the same in every process; other codes need not.
    let no_memory = abi::MPI_ERR_NO_MEM as c_int;
    let class = if code == no_memory {
        no_memory
    } else {
        abi::MPI_ERR_OTHER as c_int
    };
    let _ = fault.compare_exchange(0, class as u64, Ordering::AcqRel, Ordering::Relaxed);
}

/// How the first rank of a node tells the others where its segment is.
#[derive(Clone, Copy, Default)]
struct Address {
    process: u64,
    /// `u64::MAX` where it could not be made.
    file: u64,
    word: u64,
}

impl Segment {
    /// Makes or finds the segment of this rank's node; none where it is alone there. Also whether
    /// that failed. Collective over the node.
    pub fn open(world: &World, channel: &OpenChannel, team: &Team) -> (Option<Segment>, bool) {
        if team.n_here() == 1 {
            return (None, false);
        }
        let areas = Areas::new(team.n_here());
        let mut memory = Reservation::of(areas.area_bytes() as u64);
        let bytes = areas.segment_bytes().filter(|_| memory.is_some());
        let mut address = Address {
            file: u64::MAX,
            ..Address::default()
        };
        let mut segment = None;
        if team.map.place == 0 {
            segment =
                bytes.and_then(|bytes| Segment::make((bytes, memory.take()), team, &mut address));
        }
        let told = hand_over(world, channel, team, &mut address);
        if team.map.place > 0 && told {
            segment = bytes.and_then(|bytes| Segment::find((bytes, memory.take()), team, address));
        }
        let Some(segment) = segment.filter(|_| told) else {
            return (None, true);
        };
        let reserved = segment.reserve();
        (Some(segment), !reserved)
    }

    fn make(
        (bytes, memory): (usize, Option<Reservation>),
        team: &Team,
        address: &mut Address,
    ) -> Option<Segment> {
        // Kernels before 6.3 know no such seal.
        let flags = [libc::MFD_CLOEXEC | NOEXEC_SEAL, libc::MFD_CLOEXEC];
        // SAFETY: the name is a C string; a flag keeps the file from children.
        let make = |flags| unsafe { libc::memfd_create(c"colltune".as_ptr(), flags) };
        let file = flags.into_iter().map(make).find(|file| *file >= 0)?;
        // SAFETY: the file was just made.
        let sized = quietly(|| unsafe { libc::ftruncate(file, bytes as libc::off_t) }) == 0;
        let segment = Segment::map(file, (bytes, memory), team).filter(|_| sized)?;
        // A word that no other segment of this machine has: two nodes may have one name, and
        // process numbers mean something else in each container.
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let word = colltune_core::select::mix(crate::clock::ticks(), made) | 1;
        segment.number(0).store(word, Ordering::Release);
        *address = Address {
            process: u64::from(std::process::id()),
            file: file as u64,
            word,
        };
        Some(segment)
    }

    fn find(
        (bytes, memory): (usize, Option<Reservation>),
        team: &Team,
        address: Address,
    ) -> Option<Segment> {
        if address.file == u64::MAX {
            return None;
        }
        let path = format!("/proc/{}/fd/{}", address.process, address.file);
        let path = CString::new(path).ok()?;
        // SAFETY: the path is a C string; a plain file of ours is opened, or nothing.
        let file = unsafe {
            libc::open(
                path.as_ptr(),
                libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY,
            )
        };
        if file < 0 {
            return None;
        }
        // SAFETY: all-zero is a valid `stat`, and the call writes one.
        let (code, found) = unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            (libc::fstat(file, &mut found), found)
        };
        let ours = code == 0 && found.st_size == bytes as libc::off_t;
        let regular = found.st_mode & libc::S_IFMT == libc::S_IFREG;
        if !ours || !regular {
            // SAFETY: just opened here.
            unsafe { libc::close(file) };
            return None;
        }
        let segment = Segment::map(file, (bytes, memory), team)?;
        (segment.number(0).load(Ordering::Acquire) == address.word).then_some(segment)
    }

    /// Maps a file, which it owns from then on.
    fn map(
        file: c_int,
        (bytes, memory): (usize, Option<Reservation>),
        team: &Team,
    ) -> Option<Segment> {
        // SAFETY: a new mapping that overlaps nothing; its memory is used through this value alone.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            // SAFETY: the file is the caller's to give away.
            unsafe { libc::close(file) };
            return None;
        }
        // A child that the program forks has no business in it.
        // SAFETY: the range was just mapped.
        unsafe { libc::madvise(start, bytes, libc::MADV_DONTFORK) };
        let areas = Areas::new(team.n_here());
        Some(Segment {
            start: start.cast(),
            bytes,
            areas,
            pages: pages_in_place(team),
            file,
            place: team.map.place,
            n_here: team.n_here(),
            lowest: team.map.lowest_place(),
            patience: Patience::Spin,
            next: Cell::new(1),
            next_short: 1,
            room: Cell::new(areas.cells()),
            room_short: LINES,
            secret: Box::new(colltune_core::select::mix(
                crate::clock::ticks(),
                u64::from(std::process::id()),
            )),
            namespace: namespace(),
            left: Cell::new(false),
            settled: false,
            _memory: memory.unwrap_or_default(),
        })
    }

    /// Reserves this rank's area, and says there where it may run.
    fn reserve(&self) -> bool {
        let area = self.areas.area(self.place) as libc::off_t;
        let bytes = self.areas.area_bytes() as libc::off_t;
        // SAFETY: the file is open and as long as all areas.
        let reserve = || unsafe { libc::posix_fallocate(self.file, area, bytes) };
        // Signals, as a profiler sends them, interrupt it; then nothing is reserved.
        let mut tries = (0..RESERVE_TRIES).map(|_| quietly(reserve));
        if tries.find(|code| *code != libc::EINTR) != Some(0) {
            return false;
        }
        for (place, word) in processors::allowed().into_iter().enumerate() {
            let offset = self.areas.processors(self.place) + place * 8;
            self.number(offset).store(word, Ordering::Release);
        }
        let address = (&raw const *self.secret) as u64;
        let identity = [
            u64::from(std::process::id()),
            address,
            *self.secret,
            self.namespace,
        ];
        for (place, word) in identity.into_iter().enumerate() {
            let offset = self.areas.identity(self.place) + place * 8;
            self.number(offset).store(word, Ordering::Release);
        }
        true
    }

    /// The number of a rank's process, by which this one can look after it; 0 where it has another number here, in
    /// another namespace, and behind its end.
    fn process(&self, place: usize) -> u64 {
        match self.identity(place) {
            [process, .., namespace] if namespace == self.namespace && namespace != 0 => process,
            _ => 0,
        }
    }

    /// What a rank says there of itself: [`IDENTITY_WORDS`].
    pub fn identity(&self, place: usize) -> [u64; IDENTITY_WORDS] {
        std::array::from_fn(|word| {
            self.number(self.areas.identity(place) + word * 8)
                .load(Ordering::Acquire)
        })
    }

    /// Ends the set-up, once all ranks have reserved their areas.
    pub fn settle(mut self, world: &World) -> Segment {
        self.close();
        let area = self.areas.area(self.place);
        self.find_pages(area, self.areas.area_bytes());
        for place in self.others() {
            self.find_pages(self.areas.area(place), AREA_HEAD);
        }
        self.patience = self.how_to_wait(world);
        self.settled = true;
        self
    }

    /// Finds pages now and not in the first calls. Kernels before 5.14 do that then. The cells of other ranks are
    /// found when they are read: they are most of the memory, and each rank that has found a page is said to have it.
    /// Found as if to be written, because a kernel that finds a page to be read takes its neighbours along.
    fn find_pages(&self, offset: usize, bytes: usize) {
        debug_assert!(offset + bytes <= self.bytes);
        // SAFETY: the range lies within the mapping.
        unsafe {
            let start = self.start.add(offset).cast();
            libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE);
        }
    }

    /// Whether there are ranks that have to share processors, on the node, or among these alone: ranks may have bound
    /// themselves since the start.
    fn how_to_wait(&self, world: &World) -> Patience {
        if world.shares_processors || world.yields_when_idle {
            return Patience::Yield;
        }
        let list = |place: usize| -> [u64; PROCESSOR_WORDS] {
            std::array::from_fn(|word| {
                self.number(self.areas.processors(place) + word * 8)
                    .load(Ordering::Acquire)
            })
        };
        let all: Vec<_> = (0..self.n_here).map(list).collect();
        if are_crowded(&all) {
            Patience::Yield
        } else {
            Patience::Spin
        }
    }

    fn close(&mut self) {
        if self.file >= 0 {
            // SAFETY: the file is ours, and this is its last use.
            unsafe { libc::close(self.file) };
            self.file = -1;
        }
    }

    /// A number in the segment.
    #[inline(always)]
    pub fn number(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.bytes && offset.is_multiple_of(8));
        // SAFETY: the offset comes from the layout, which lies within the mapping and is aligned; all
        // processes use these eight bytes as an atomic number only.
        unsafe { &*self.start.add(offset).cast::<AtomicU64>() }
    }

    #[inline(always)]
    pub fn flag(&self, place: usize, flag: Flag) -> &AtomicU64 {
        self.number(self.areas.flag(place, flag))
    }

    /// Waits until `come` is true.
    ///
    /// Errors: the class of another rank's error, which cannot go on.
    #[inline(always)]
    pub fn until(&self, world: &World, come: impl Fn() -> bool) -> Result<(), c_int> {
        let process = |place| (place < self.n_here).then(|| self.process(place));
        let fault = self.number(FAULT);
        let result = self.patience.until(world, fault, come, process);
        result.inspect_err(|&code| self.give_up(code))
    }

    /// Whether all ranks are able to go on. After a fault none can: tickets have lost their meaning, because ranks
    /// left their calls at different places.
    #[inline(always)]
    pub fn is_sound(&self) -> Result<(), c_int> {
        match self.number(FAULT).load(Ordering::Relaxed) {
            0 => Ok(()),
            class => Err(class as c_int),
        }
    }

    /// Tells all ranks that this one cannot go on; whoever waits, or comes later, returns an error.
    #[cold]
    pub fn give_up(&self, code: c_int) {
        fail(self.number(FAULT), code);
    }

    /// Begins a call; [`Segment::end`] ends it.
    ///
    /// Errors: the class of an error, where some rank cannot go on.
    #[inline(always)]
    pub fn begin(&self, world: &World) -> Result<RunningOnNode<'static>, c_int> {
        if self.left.replace(true) {
            self.was_left(world);
        }
        self.is_sound().inspect_err(|_| self.left.set(false))?;
        let fault = std::ptr::from_ref(self.number(FAULT));
        // SAFETY: the memory is mapped until the communicator is freed, and no call is under way then.
        Ok(RunningOnNode(unsafe { &*fault }))
    }

    #[inline(always)]
    pub fn end(&self, under_way: RunningOnNode) {
        std::mem::forget(under_way);
        self.left.set(false);
    }

    /// A longjmp left the last call on this segment. Its ranks return errors from here on.
    #[cold]
    fn was_left(&self, world: &World) {
        self.give_up(abi::MPI_ERR_OTHER as c_int);
        crate::warn::say(&format!(
            "rank {} left a collective in the middle, by an exception or a longjmp; others of its communicator that \
             meet in shared memory return errors from here on",
            world.rank
        ));
    }

    /// The cell of a rank that holds, or will hold, a piece.
    #[inline(always)]
    pub fn cell(&self, place: usize, ticket: u64) -> *mut u8 {
        // SAFETY: the offset comes from the layout, which lies within the mapping.
        unsafe { self.start.add(self.areas.cell(place, ticket)) }
    }

    /// Where so many bytes of a piece that is to be read lie in a rank's cell, from `skip` on.
    #[inline(always)]
    pub fn in_cell(&self, place: usize, ticket: u64, skip: usize, bytes: usize) -> *mut u8 {
        let pages = self.areas.pages(ticket, skip, bytes);
        if pages & !self.pages[place].get() != 0 {
            self.find_in_cell(place, pages);
        }
        self.cell(place, ticket).wrapping_add(skip)
    }

    /// Finds pages of a rank's cells, neighbours that need it together.
    #[cold]
    fn find_in_cell(&self, place: usize, wanted: u64) {
        let known = self.pages[place].replace(self.pages[place].get() | wanted);
        let mut missing = wanted & !known;
        while missing != 0 {
            let first = missing.trailing_zeros();
            let count = (missing >> first).trailing_ones();
            self.find_pages(self.areas.page(place, first), count as usize * PAGE);
            // Adding the lowest bit of a run clears the run.
            missing &= missing.wrapping_add(1 << first);
        }
    }

    /// The place of the node's lowest rank, where operands have to be combined in the fixed order.
    #[inline(always)]
    pub fn fixed_order(&self, world: &World) -> Option<usize> {
        world.fixed_order.then_some(self.lowest)
    }

    /// Every place on the node but the own.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.place;
        (0..self.n_here).filter(move |&place| place != own)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.close();
        // This process may end before the others' last calls do, and is not missed.
        if self.settled {
            let identity = self.number(self.areas.identity(self.place));
            identity.store(0, Ordering::Release);
        }
        // SAFETY: the mapping is this value's own, and nothing points into it any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// On a node of more ranks pages of other ranks' cells are found one by one.
const FEW_RANKS: usize = 8;

/// The pages of each rank's cells that need not be looked for: the own ones, and all where ranks are few. What these
/// take together is little, and where pages are found by themselves several come at once.
fn pages_in_place(team: &Team) -> Box<[Cell<u64>]> {
    let few = team.n_here() <= FEW_RANKS;
    let all = (0..team.n_here()).map(|place| match few || place == team.map.place {
        true => Cell::new(u64::MAX),
        false => Cell::new(0),
    });
    all.collect()
}

/// The namespace in which this process has its number; 0 where it is unknown.
fn namespace() -> u64 {
    let found = std::fs::metadata("/proc/self/ns/pid");
    found.map_or(0, |namespace| namespace.ino())
}

/// The first rank of a node tells the others where the segment is; false on an error.
fn hand_over(world: &World, channel: &OpenChannel, team: &Team, address: &mut Address) -> bool {
    let Ok(endpoint) = Endpoint::new(world, channel.tag(0)) else {
        return false;
    };
    let mut words = [address.process, address.file, address.word];
    let all = Typed {
        start: words.as_mut_ptr().cast(),
        count: words.len() as u64,
        datatype: world.handles.uint64,
    };
    let leads = team.map.place == 0;
    let others = match leads {
        true => &team.map.here()[1..],
        false => &team.map.here()[..1],
    };
    let mut result = Ok(());
    for other in others {
        let (peer, mut request) = (channel.world_ranks[*other], world.handles.request_null);
        // SAFETY: the numbers stay until the message is through.
        let posted = unsafe {
            match leads {
                true => endpoint.send(all, peer, &mut request),
                false => endpoint.receive(all, peer, &mut request),
            }
        };
        result = result.and(posted.and_then(|()| endpoint.wait(&mut request)));
    }
    *address = Address {
        process: words[0],
        file: words[1],
        word: words[2],
    };
    result.is_ok()
}
