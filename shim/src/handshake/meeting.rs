//! How the ranks of a node find each other: at an abstract Unix socket, which leaves nothing behind.
//!
//! Whoever comes first is the head and asks the board for all; the others are members. A member tells who it is;
//! the head tells it that it is counted, what to publish (each group says hello under its lowest rank), and in the
//! end what became of it. A rank of another user, or in another network namespace, is not met; a rank alone is head of
//! itself. A program's own functions may be named `send` and `recv` and would be called instead of the system's, so
//! lines are written and read as files are. Where the launcher has all ranks on one node, rank 0 is everybody's head
//! ([`super::near`]).

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use colltune_core::rendezvous::Pace;

use crate::quiet::quietly;

/// Tries to get in where the head has just left.
const ATTEMPTS: u32 = 3;
/// Longer than any line that is said here.
const LINE_MAX: usize = 1024;

/// Where a rank sits.
pub enum Seat {
    Head(Head),
    Member(Line),
}

/// Takes a seat at the socket `place`; without one this rank is a head without members.
pub fn sit_down(place: Option<&str>) -> Seat {
    let address = place.and_then(|place| SocketAddr::from_abstract_name(place).ok());
    for _ in 0..ATTEMPTS {
        let Some(address) = &address else { break };
        match UnixListener::bind_addr(address) {
            Ok(listener) => {
                if listener.set_nonblocking(true).is_ok() {
                    return Seat::Head(Head::new(Some(listener)));
                }
                break;
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(_) => break,
        }
        match UnixStream::connect_addr(address).map(Line::new) {
            Ok(Some(line)) => return Seat::Member(line),
            // Another user's.
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(_) => break,
        }
    }
    Seat::Head(Head::new(None))
}

/// Takes the head's seat at `place`; where it is taken, or there is none, this rank is a head without members.
pub fn preside(place: Option<&str>) -> Head {
    let address = place.and_then(|place| SocketAddr::from_abstract_name(place).ok());
    let listener = address.and_then(|address| UnixListener::bind_addr(&address).ok());
    Head::new(listener.filter(|listener| listener.set_nonblocking(true).is_ok()))
}

/// Takes a seat beside whoever presides at `place`; `None` where no process of this user does.
pub fn join(place: &str) -> Option<Line> {
    let address = SocketAddr::from_abstract_name(place).ok()?;
    Line::new(UnixStream::connect_addr(&address).ok()?)
}

/// A connection that carries lines and never waits.
pub struct Line {
    stream: File,
    read: Vec<u8>,
}

/// What a line has for its reader.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Text(String),
    Nothing,
    /// The other side has gone.
    Closed,
}

impl Line {
    /// `None` for the process of another user.
    fn new(stream: UnixStream) -> Option<Line> {
        // SAFETY: it only asks for a number.
        let own = unsafe { libc::geteuid() };
        (user_at(stream.as_raw_fd())? == own).then_some(())?;
        stream.set_nonblocking(true).ok()?;
        Some(Line {
            stream: File::from(OwnedFd::from(stream)),
            read: Vec::new(),
        })
    }

    /// Whether the other side will get it. Lines are few and short, so they fit the socket's room.
    pub fn say(&mut self, text: &str) -> bool {
        let line = format!("{text}\n");
        // A closed connection raises no signal this way.
        let written = quietly(|| self.stream.write(line.as_bytes()));
        written.is_ok_and(|length| length == line.len())
    }

    pub fn hear(&mut self) -> Heard {
        let mut room = [0; LINE_MAX];
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Heard::Text(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            match self.stream.read(&mut room) {
                Ok(0) => return Heard::Closed,
                Ok(_) if self.read.len() > LINE_MAX => return Heard::Closed,
                Ok(length) => self.read.extend(&room[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::Nothing,
                Err(_) => return Heard::Closed,
            }
        }
    }

    /// Waits until there is something to hear, or for `pause`.
    pub fn wait(&self, pause: Duration) {
        watch([self.stream.as_raw_fd()].into_iter(), pause);
    }
}

/// Waits until one of the sockets has something, or for `pause`.
fn watch(sockets: impl Iterator<Item = RawFd>, pause: Duration) {
    let watched = sockets.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let mut watched: Vec<libc::pollfd> = watched.collect();
    let pause = libc::timespec {
        tv_sec: pause.as_secs() as libc::time_t,
        tv_nsec: pause.subsec_nanos().into(),
    };
    let count = watched.len() as libc::nfds_t;
    // SAFETY: as many descriptors of ours are watched as the list has; no signal mask is given.
    unsafe { libc::ppoll(watched.as_mut_ptr(), count, &pause, std::ptr::null()) };
}

/// The effective user of the process at the other end.
fn user_at(socket: RawFd) -> Option<libc::uid_t> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the struct is what this option writes, and its length is given.
    let code = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut length,
        )
    };
    (code == 0).then_some(peer.uid)
}

/// What a member tells its head; as a hello it is that of one rank.
pub fn introduction(rank: u32, identity: &str) -> String {
    format!("{rank} {identity}")
}

/// A member, as its head sees it.
pub struct Member {
    pub rank: u32,
    pub identity: String,
    line: Line,
    counted: bool,
}

/// The first rank at a socket, with those that have come since.
pub struct Head {
    listener: Option<UnixListener>,
    /// Connected, but have not said who they are.
    strangers: Vec<Line>,
    members: Vec<Member>,
}

impl Head {
    fn new(listener: Option<UnixListener>) -> Head {
        Head {
            listener,
            strangers: Vec::new(),
            members: Vec::new(),
        }
    }

    /// A head without a socket, which no rank joins.
    pub fn of_nobody() -> Head {
        Head::new(None)
    }

    /// Lets in who has come. `own` and each member's rank can be there once.
    pub fn let_in(&mut self, own: u32, n_ranks: u32) {
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(UnixListener::accept) {
            self.strangers.extend(Line::new(stream));
        }
        let strangers = std::mem::take(&mut self.strangers);
        for mut line in strangers {
            match line.hear() {
                Heard::Nothing => self.strangers.push(line),
                Heard::Closed => {}
                Heard::Text(text) => {
                    let known = |rank: u32| {
                        rank == own || self.members.iter().any(|member| member.rank == rank)
                    };
                    let (rank, identity) = text.split_once(' ').unwrap_or((&text, ""));
                    // One who says anything else hears nothing more, and goes its own way.
                    if let Some(rank) = rank
                        .parse()
                        .ok()
                        .filter(|&rank| (1..n_ranks).contains(&rank) && !known(rank))
                    {
                        let identity = identity.to_owned();
                        self.members.push(Member {
                            rank,
                            identity,
                            line,
                            counted: false,
                        });
                    }
                }
            }
        }
    }

    /// Lets in whoever comes until there are `expected`, or until then.
    pub fn let_in_until(
        &mut self,
        (own, n_ranks): (u32, u32),
        expected: u32,
        until: Instant,
        mut progress: impl FnMut(),
    ) {
        let mut pace = Pace::of(1);
        while self.listener.is_some() && self.size() < expected && Instant::now() < until {
            progress();
            self.wait(pace.pause());
            self.let_in(own, n_ranks);
        }
    }

    /// Waits until a rank comes or speaks, or for `pause`.
    fn wait(&self, pause: Duration) {
        let listener = self.listener.iter().map(AsRawFd::as_raw_fd);
        let strangers = self.strangers.iter().map(|line| line.stream.as_raw_fd());
        watch(listener.chain(strangers), pause);
    }

    /// What a member said of itself, as a hello.
    pub fn hello_of(&self, rank: u32) -> Option<String> {
        let mut members = self.members.iter();
        let member = members.find(|member| member.rank == rank)?;
        Some(introduction(rank, &member.identity))
    }

    /// How many sit here, the head included.
    pub fn size(&self) -> u32 {
        self.members.len() as u32 + 1
    }

    /// Counts who has not been counted: from here on they wait for the verdict, come what may. The others have gone.
    pub fn count(&mut self) -> Vec<(u32, String)> {
        let mut counted = Vec::new();
        self.members.retain_mut(|member| {
            if member.counted {
                return true;
            }
            member.counted = member.line.say("counted");
            if member.counted {
                counted.push((member.rank, member.identity.clone()));
            }
            member.counted
        });
        counted
    }

    /// Tells one member something. Who has gone is missed by rank 0.
    pub fn tell(&mut self, rank: u32, text: &str) {
        let told = self.members.iter_mut().find(|member| member.rank == rank);
        if let Some(member) = told {
            member.line.say(text);
        }
    }

    /// Tells all members what became of it, and ends the meeting.
    pub fn dismiss(mut self, text: &str) {
        // A rank that came in now would never hear the verdict.
        self.listener = None;
        for member in &mut self.members {
            member.line.say(text);
        }
    }
}
