//! One agreement on a lever, or one gathering of what an epoch took: messages between the members of a communicator.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use colltune_core::levers::accord::{Accord, Combine, Gather, Message, Next, Words};

use crate::abi;
use crate::clock::monotonic_ns;
use crate::lever::Team;
use crate::tune::Tuner;
use crate::world::World;

/// What a message holds: kind, number of the talk, members, and its words.
const LENGTH: usize = 7;
type Wire = [u64; LENGTH];
/// Looks for a message before the processor is given away.
const LOOKS: u32 = 100;

/// Between a look for a message and taking it no other thread takes it.
static RECEIVING: Mutex<()> = Mutex::new(());

/// Kinds of messages; a gathering has the first two alone.
const ASKED: u64 = 1;
const NOT_ASKED: u64 = 2;
const FIRST: u64 = 3;
const FIRST_NONE: u64 = 4;
const PROMISED: u64 = 5;
const LAST: u64 = 6;

/// What a talk is about. A rank that leaves the end of an epoch out comes with its next question instead.
#[derive(Clone, Copy)]
pub enum About {
    Choice = 0,
    /// Of an epoch. Marks the kinds of its messages.
    End = 16,
}

/// Between the members of one communicator, about one lever.
pub struct Talk<'a> {
    world: &'a World,
    team: &'a Team,
    /// Of members and lever.
    identity: u64,
    number: u64,
    about: About,
    longest_ns: u64,
}

impl<'a> Talk<'a> {
    pub fn new(
        tuner: &'a Tuner,
        team: &'a Team,
        (lever, number): (u64, u64),
        about: About,
    ) -> Talk<'a> {
        let longest = tuner.rules.terms.settings.mismatch_timeout;
        Talk {
            world: &tuner.world,
            team,
            identity: lever,
            number,
            about,
            longest_ns: u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Comes to an arm with the others; `None` on all that come where one of them does not, or the deciding one says so.
    pub fn agree(
        &self,
        own: Words,
        combine: Combine,
        decide: impl FnOnce(Words) -> Option<u32>,
    ) -> Option<u32> {
        let mut accord = Accord::new(self.team.tree.clone(), own, combine);
        let mut decide = Some(decide);
        loop {
            match accord.step() {
                Next::Send(to, message) => self.send(to, message),
                Next::Receive {
                    from,
                    patient: false,
                } => accord.received(self.receive(from, self.longest_ns)),
                Next::Receive { from, .. } => {
                    // It has asked and will answer. Without the answer no rank knows what the others do.
                    let answer = self.receive(from, u64::MAX);
                    if answer.is_none() {
                        self.world
                            .end_the_job("failed to receive what ranks agree on about a lever");
                    }
                    accord.received(answer);
                }
                Next::Decide(words) => {
                    accord.decide(decide.take().and_then(|decide| decide(words)));
                }
                Next::Over(arm) => return arm,
            }
        }
    }

    /// Brings what all say to the one that decides: there it is what is returned. `None` where one did not come.
    pub fn gather(&self, own: Words, combine: Combine) -> Option<Words> {
        let mut gather = Gather::new(self.team.tree.clone(), own, combine);
        while let Some(from) = gather.waits_for() {
            gather.heard(match self.receive(from, self.longest_ns) {
                Some(Message::Asked(words)) => words,
                _ => None,
            });
        }
        if let Some(above) = gather.up() {
            self.send(above, Message::Asked(gather.words()));
        }
        gather.words()
    }

    fn send(&self, to: usize, message: Message) {
        let Some(comm) = self.world.messages.comm() else {
            return;
        };
        // The library may need it until the other rank receives. Such short messages are sent at once nearly always; one that is
        // not keeps its 56 bytes.
        let wire = Box::into_raw(Box::new(self.wire(message)));
        let (pmpi, handles) = (self.world.pmpi, &self.world.handles);
        let mut request = handles.request_null;
        let mut is_sent = 0;
        // SAFETY: the buffer holds as many numbers, and is freed only once the message has gone.
        unsafe {
            let code = (pmpi.isend)(
                wire.cast::<c_void>(),
                LENGTH as c_int,
                handles.uint64,
                self.team.world_ranks[to],
                self.world.messages.lever_tag(self.team.identity),
                comm,
                &mut request,
            );
            if code == abi::SUCCESS {
                let status = abi::MPI_STATUS_IGNORE as *mut c_void;
                (pmpi.test)(&mut request, &mut is_sent, status);
            } else {
                self.world
                    .end_the_job("failed to send what ranks agree on about a lever");
            }
            if is_sent != 0 {
                drop(Box::from_raw(wire));
            }
        }
    }

    /// Waits for a message of a member; `None` where none came in so long, or it belongs to another talk.
    fn receive(&self, from: usize, longest_ns: u64) -> Option<Message> {
        let comm = self.world.messages.comm()?;
        let pmpi = self.world.pmpi;
        let source = self.team.world_ranks[from];
        let tag = self.world.messages.lever_tag(self.team.identity);
        let status = abi::MPI_STATUS_IGNORE as *mut c_void;
        let begun = monotonic_ns();
        let mut looks = 0u32;
        loop {
            let looking = RECEIVING.lock().unwrap_or_else(PoisonError::into_inner);
            let mut flag = 0;
            // SAFETY: the communicator is valid; one number is written.
            if unsafe { (pmpi.iprobe)(source, tag, comm, &mut flag, status) } != abi::SUCCESS {
                return None;
            }
            if flag != 0 {
                let wire = self.take(source, tag)?;
                drop(looking);
                match self.told(wire) {
                    Told::Earlier => continue,
                    Told::Now(message) => return Some(message),
                    Told::Other => return None,
                }
            }
            drop(looking);
            looks = looks.saturating_add(1);
            if looks > LOOKS {
                std::thread::yield_now();
                if monotonic_ns() - begun > longest_ns {
                    return None;
                }
            }
        }
    }

    /// Takes a message that is there.
    fn take(&self, source: c_int, tag: c_int) -> Option<Wire> {
        let comm = self.world.messages.comm()?;
        let (pmpi, handles) = (self.world.pmpi, &self.world.handles);
        let mut wire: Wire = [0; LENGTH];
        let mut request = handles.request_null;
        // SAFETY: the buffer has room for as many numbers, and lives until the message has come.
        let code = unsafe {
            let code = (pmpi.irecv)(
                wire.as_mut_ptr().cast(),
                LENGTH as c_int,
                handles.uint64,
                source,
                tag,
                comm,
                &mut request,
            );
            match code == abi::SUCCESS {
                true => (pmpi.wait)(&mut request, abi::MPI_STATUS_IGNORE as *mut c_void),
                false => code,
            }
        };
        (code == abi::SUCCESS).then_some(wire)
    }

    fn wire(&self, message: Message) -> Wire {
        let (kind, words) = match message {
            Message::Asked(Some(words)) => (ASKED, words),
            Message::Asked(None) => (NOT_ASKED, [0; 4]),
            Message::First(Some(arm)) => (FIRST, [arm.into(), 0, 0, 0]),
            Message::First(None) => (FIRST_NONE, [0; 4]),
            Message::Promised(all) => (PROMISED, [all.into(), 0, 0, 0]),
            Message::Last(holds) => (LAST, [holds.into(), 0, 0, 0]),
        };
        let [one, two, three, four] = words;
        [
            kind + self.about as u64,
            self.number,
            self.identity,
            one,
            two,
            three,
            four,
        ]
    }

    /// What a message is to this talk.
    fn told(&self, wire: Wire) -> Told {
        let [kind, number, identity, one, two, three, four] = wire;
        if identity != self.identity || number > self.number {
            return Told::Other;
        }
        if number < self.number {
            return Told::Earlier;
        }
        Told::Now(match kind.wrapping_sub(self.about as u64) {
            ASKED => Message::Asked(Some([one, two, three, four])),
            NOT_ASKED => Message::Asked(None),
            FIRST => Message::First(Some(one as u32)),
            FIRST_NONE => Message::First(None),
            PROMISED => Message::Promised(one != 0),
            LAST => Message::Last(one != 0),
            _ => return Told::Other,
        })
    }
}

/// A message that came.
enum Told {
    /// Of a talk that is over: a rank had given up, or came late.
    Earlier,
    Now(Message),
    /// Of other members, another lever, or a talk that this rank is behind of.
    Other,
}
