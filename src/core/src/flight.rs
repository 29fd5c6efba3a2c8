//! The layout of a flight recording: the last decisions of one rank, written while its job hangs.
//!
//! ```text
//! 0   magic "COLLFLY1"            8 bytes
//! 8   length of the header h      u64, little-endian like every number here
//! 16  check word of the header    u64
//! 24  header, bincode 2           h bytes, zeros up to the next multiple of 8
//! p   words of the body           w of 64 bits
//!     check word of the body      u64
//! ```
//! The body is the time of writing, then for each communicator its agreed number plus 1, the number of its
//! ranks, how many decisions were made, and [`DECISIONS`] decisions of four words: the number of the call, its
//! bytes, when it began, and what ran. A decision's place is its number modulo their number. The body is written by
//! a signal handler, so it is words and nothing else.

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::collective::Collective;
use crate::select::mix;

pub const MAGIC: [u8; 8] = *b"COLLFLY1";
/// The last decisions of a communicator that are kept.
pub const DECISIONS: usize = 64;
/// Words of a decision.
pub const WORDS: usize = 4;
/// Words of a communicator.
pub const RING_WORDS: usize = 3 + DECISIONS * WORDS;
const HEADER_BYTES_MAX: usize = 1 << 20;
const PREFIX_BYTES: usize = 24;
/// Set in the last word of a decision whose call is over.
pub const OVER: u64 = 1 << 63;

/// Whose decisions these are, and the names behind their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Header {
    pub rank: u32,
    pub world_ranks: u32,
    pub host: String,
    pub process: u32,
    pub colltune_version: String,
    /// `Decision::variant` is a place in this list.
    pub variants: Vec<String>,
}

/// What one rank decided for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The call's number among the tuned ones of its communicator.
    pub call: u64,
    pub bytes: u64,
    pub start_ns: u64,
    pub collective: Collective,
    pub variant: u16,
    pub is_over: bool,
}

impl Decision {
    /// The last word, but for [`OVER`].
    pub const fn what(collective: Collective, variant: u16) -> u64 {
        (collective as u64) << 16 | variant as u64
    }

    fn from_words([call, bytes, start_ns, what]: [u64; WORDS]) -> Option<Decision> {
        Some(Decision {
            call,
            bytes,
            start_ns,
            collective: Collective::from_index(((what & !OVER) >> 16) as usize)?,
            variant: what as u16,
            is_over: what & OVER != 0,
        })
    }
}

/// The last decisions on one communicator, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Its agreed number; 0 for all that have none yet.
    pub comm: u64,
    pub n_ranks: u32,
    pub decisions: Vec<Decision>,
}

/// What one rank wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub header: Header,
    /// On the clock of the decisions.
    pub written_ns: u64,
    pub rings: Vec<Ring>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlightError {
    #[error("read the flight recording: it does not begin with COLLFLY1")]
    Magic,
    #[error("read the flight recording: it is cut off")]
    Short,
    #[error("read the flight recording: the check word of its {0} is wrong")]
    Check(&'static str),
    #[error("read the flight recording: its header cannot be decoded: {0}")]
    Header(String),
}

impl Header {
    /// The first bytes of a recording, up to the body.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = bincode::encode_to_vec(self, bincode::config::standard())
            .expect("a header holds only numbers, names and lists");
        let mut padded = header.clone();
        padded.resize(header.len().next_multiple_of(8), 0);
        let mut bytes = MAGIC.to_vec();
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(check(words(&padded)).to_le_bytes());
        bytes.extend(padded);
        bytes
    }
}

/// One step of a check word, for a writer that has the words one by one; begin with 1.
pub const fn check_step(sum: u64, word: u64) -> u64 {
    mix(sum, word)
}

fn check(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(1, check_step)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

/// Reads a recording.
///
/// Errors: for anything that is none, or not whole; nothing is allocated on the word of a length.
pub fn read(bytes: &[u8]) -> Result<Recording, FlightError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(FlightError::Magic);
    }
    let [_, length, expected] = first(words(bytes)).ok_or(FlightError::Short)?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= HEADER_BYTES_MAX)
        .ok_or(FlightError::Short)?;
    let (header, body) = bytes[PREFIX_BYTES..]
        .split_at_checked(length.next_multiple_of(8))
        .ok_or(FlightError::Short)?;
    if check(words(header)) != expected {
        return Err(FlightError::Check("header"));
    }
    let config = bincode::config::standard().with_limit::<HEADER_BYTES_MAX>();
    let (header, _): (Header, usize) = bincode::decode_from_slice(header, config)
        .map_err(|error| FlightError::Header(error.to_string()))?;
    let body: Vec<u64> = words(body).collect();
    let (expected, body) = body.split_last().ok_or(FlightError::Short)?;
    if check(body.iter().copied()) != *expected {
        return Err(FlightError::Check("body"));
    }
    let (written_ns, rings) = body.split_first().ok_or(FlightError::Short)?;
    Ok(Recording {
        written_ns: *written_ns,
        rings: rings
            .chunks_exact(RING_WORDS)
            .map(|ring| read_ring(ring, header.variants.len()))
            .collect(),
        header,
    })
}

fn first<const N: usize>(mut words: impl Iterator<Item = u64>) -> Option<[u64; N]> {
    let mut found = [0; N];
    for word in &mut found {
        *word = words.next()?;
    }
    Some(found)
}

fn read_ring(ring: &[u64], n_variants: usize) -> Ring {
    let (made, decisions) = (ring[2], &ring[3..]);
    let oldest = made.saturating_sub(DECISIONS as u64);
    let known = |number: u64| {
        let at = (number % DECISIONS as u64) as usize * WORDS;
        let decision = Decision::from_words(first(decisions[at..].iter().copied())?)?;
        (usize::from(decision.variant) < n_variants).then_some(decision)
    };
    Ring {
        comm: ring[0].wrapping_sub(1),
        n_ranks: ring[1] as u32,
        decisions: (oldest..made).filter_map(known).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            rank: 3,
            world_ranks: 4,
            host: "node3".to_owned(),
            process: 4711,
            colltune_version: "0.1.0".to_owned(),
            variants: vec!["default".to_owned(), "node:shm".to_owned()],
        }
    }

    /// A recording as the shim writes it: 66 allreduces, the last not over.
    fn recording() -> Vec<u8> {
        let mut body = vec![5000, 8, 4, 66];
        let mut decisions = [0; DECISIONS * WORDS];
        for call in 0..66 {
            let over = if call < 65 { OVER } else { 0 };
            let what = Decision::what(Collective::Allreduce, 1) | over;
            let at = call as usize % DECISIONS * WORDS;
            decisions[at..at + WORDS].copy_from_slice(&[call, 8 * call, 10 * call, what]);
        }
        body.extend(decisions);
        body.push(check(body.iter().copied()));
        let mut bytes = header().to_bytes();
        bytes.extend(body.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    #[test]
    fn the_last_decisions_are_read_in_their_order() {
        let read = read(&recording()).unwrap();
        assert_eq!(read.header, header());
        assert_eq!(read.written_ns, 5000);
        let [ring] = &read.rings[..] else {
            panic!("{:?}", read.rings)
        };
        assert_eq!((ring.comm, ring.n_ranks), (7, 4));
        let calls: Vec<_> = ring.decisions.iter().map(|one| one.call).collect();
        assert_eq!(calls, (2..66).collect::<Vec<_>>());
        let last = Decision {
            call: 65,
            bytes: 520,
            start_ns: 650,
            collective: Collective::Allreduce,
            variant: 1,
            is_over: false,
        };
        assert_eq!(ring.decisions.last(), Some(&last));
        assert!(ring.decisions[..63].iter().all(|one| one.is_over));
    }

    #[test]
    fn recordings_of_version_1_stay_readable() {
        let golden = include_bytes!("../golden/flight-1.bin");
        assert_eq!(golden.as_slice(), recording(), "the format has changed");
        assert!(read(golden).is_ok());
    }

    #[test]
    fn what_is_torn_is_refused() {
        let whole = recording();
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 0x10;
            assert!(read(&wrong).is_err(), "byte {at}");
        }
    }
}
