//! The layout of a trace: what one rank recorded in one run.
//!
//! ```text
//! 0   magic "COLLTRC2"          8 bytes
//! 8   length of the header h    u32, little-endian like every number here
//! 12  zero                      u32
//! 16  check word of the header  u64
//! 24  header, bincode 2         h bytes
//! p   records of 64 bytes, p = 24 + h rounded up to 64; those whose check word is wrong are passed over
//! ```
//! Records are written behind each other, and may be written again in their places when the ranks have
//! compared their times. A job that is killed leaves what it had at its last review; of what another thread was about
//! to record there may be a torn record. Space that was reserved and not used is zero, which is no valid record.
//!
//! Byte 55 of a record is 1 for a drawn variant, plus twice the number of its [`Manner`]. Traces that
//! begin with "COLLTRC1" have blocking calls alone, and are read, too.

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::collective::Collective;
use crate::select::mix;

pub const MAGIC: [u8; 8] = *b"COLLTRC2";
/// Of traces without a manner.
const MAGIC_BEFORE: [u8; 8] = *b"COLLTRC1";
pub const RECORD_BYTES: usize = 64;
/// A header is refused above this length, whatever its length field says.
pub const HEADER_BYTES_MAX: usize = 1 << 20;
const PREFIX_BYTES: usize = 24;

/// Who recorded, and the names behind the numbers of the records.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Header {
    /// Unique per run; with `rank` the identity of the trace.
    pub job: String,
    /// Rank in the job's world.
    pub rank: u32,
    pub world_ranks: u32,
    /// The database key of the library, as in `openmpi-4.1.4`.
    pub library: String,
    pub machine: String,
    pub host: String,
    /// Traces of one run with the same number here have comparable `start_ns`.
    pub clock: u64,
    pub generation: u64,
    pub colltune_version: String,
    pub started_unix_ms: u64,
    /// Records that the file has room for.
    pub capacity: u64,
    /// `Record::variant` is a place in this list.
    pub variants: Vec<(Collective, String)>,
}

/// How a collective is called. Only blocking calls are tuned; the others pass through, and their
/// records are never taken for those of blocking calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Manner {
    Blocking = 0,
    /// From `MPI_I...` to the call that completes the request.
    Nonblocking = 1,
    /// From each `MPI_Start` to the call that completes the request.
    Persistent = 2,
    /// On the neighbours in the communicator's topology; blocking, nonblocking and persistent.
    Neighborhood = 3,
    NeighborhoodNonblocking = 4,
    NeighborhoodPersistent = 5,
}

impl Manner {
    /// Every manner, in the order of its number.
    pub const ALL: [Manner; 6] = [
        Manner::Blocking,
        Manner::Nonblocking,
        Manner::Persistent,
        Manner::Neighborhood,
        Manner::NeighborhoodNonblocking,
        Manner::NeighborhoodPersistent,
    ];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Manner::Blocking => "blocking",
            Manner::Nonblocking => "nonblocking",
            Manner::Persistent => "persistent",
            Manner::Neighborhood => "neighborhood",
            Manner::NeighborhoodNonblocking => "neighborhood_nonblocking",
            Manner::NeighborhoodPersistent => "neighborhood_persistent",
        }
    }

    pub fn from_name(name: &str) -> Option<Manner> {
        Self::ALL.into_iter().find(|manner| manner.name() == name)
    }
}

/// One recorded call on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The communicator's agreed number; with `call` the identity of the call on all its ranks. 0 where
    /// the ranks never agreed on one, because they made no blocking calls.
    pub comm: u64,
    /// Number of the call among the tuned calls of its communicator, or among those that pass through;
    /// of persistent ones 2^32 times the request's number plus that of the start.
    pub call: u64,
    pub message_bytes: u64,
    /// On the recording rank's clock, see [`Header::clock`]. On a communicator of one node: when the
    /// last rank started, once the ranks have compared their times.
    pub start_ns: u64,
    /// Of this rank; likewise: from the start of the last rank to the end of the last rank.
    pub duration_ns: u64,
    pub nodes: u32,
    pub ppn: u32,
    pub n_ranks: u32,
    pub variant: u16,
    pub collective: Collective,
    /// Whether the variant was drawn; otherwise it was the library's default in `record` mode.
    pub drawn: bool,
    pub manner: Manner,
}

const _: () = assert!(RECORD_BYTES == 5 * 8 + 3 * 4 + 2 + 1 + 1 + 8);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    #[error("read the trace: it is {0} bytes long, shorter than any header")]
    Short(usize),
    #[error("read the trace: it begins with neither COLLTRC2 nor COLLTRC1")]
    Magic,
    #[error("read the trace: its header claims {claimed} bytes, the file has {present}")]
    HeaderLength { claimed: usize, present: usize },
    #[error("read the trace: the check word of its header is wrong")]
    HeaderCheck,
    #[error("read the trace: its header cannot be decoded: {0}")]
    Header(String),
}

impl Header {
    /// The first bytes of a trace, up to the first record.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = bincode::encode_to_vec(self, bincode::config::standard())
            .expect("a header holds only numbers, names and lists");
        frame(&header)
    }
}

/// A trace without records round the bytes of an encoded header, which nobody looks at.
pub fn frame(header: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + header.len() + RECORD_BYTES);
    bytes.extend(MAGIC);
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(check_bytes(header).to_le_bytes());
    bytes.extend(header);
    bytes.resize(bytes.len().next_multiple_of(RECORD_BYTES), 0);
    bytes
}

/// Reads a whole trace: its header and every record that is not torn or unused.
///
/// Errors: for anything that is no trace or whose lengths lie; nothing is allocated on their word.
pub fn read(bytes: &[u8]) -> Result<(Header, Vec<Record>), TraceError> {
    let (header, records_at) = read_header(bytes)?;
    let (records, _) = bytes[records_at.min(bytes.len())..].as_chunks::<RECORD_BYTES>();
    let valid = records
        .iter()
        .filter_map(|bytes| Record::from_bytes(bytes, header.variants.len()));
    let records = valid.collect();
    Ok((header, records))
}

fn read_header(bytes: &[u8]) -> Result<(Header, usize), TraceError> {
    if bytes.len() < PREFIX_BYTES {
        return Err(TraceError::Short(bytes.len()));
    }
    if bytes[..8] != MAGIC && bytes[..8] != MAGIC_BEFORE {
        return Err(TraceError::Magic);
    }
    let claimed = word32(bytes, 8) as usize;
    let present = bytes.len() - PREFIX_BYTES;
    if claimed > present || claimed > HEADER_BYTES_MAX {
        return Err(TraceError::HeaderLength { claimed, present });
    }
    let header = &bytes[PREFIX_BYTES..PREFIX_BYTES + claimed];
    if check_bytes(header) != word64(bytes, 16) {
        return Err(TraceError::HeaderCheck);
    }
    let config = bincode::config::standard().with_limit::<HEADER_BYTES_MAX>();
    let (header, _) = bincode::decode_from_slice(header, config)
        .map_err(|error| TraceError::Header(error.to_string()))?;
    Ok((
        header,
        (PREFIX_BYTES + claimed).next_multiple_of(RECORD_BYTES),
    ))
}

impl Record {
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let numbers = [
            self.comm,
            self.call,
            self.message_bytes,
            self.start_ns,
            self.duration_ns,
        ];
        for (place, number) in numbers.into_iter().enumerate() {
            bytes[8 * place..8 * place + 8].copy_from_slice(&number.to_le_bytes());
        }
        for (place, number) in [self.nodes, self.ppn, self.n_ranks].into_iter().enumerate() {
            bytes[40 + 4 * place..44 + 4 * place].copy_from_slice(&number.to_le_bytes());
        }
        bytes[52..54].copy_from_slice(&self.variant.to_le_bytes());
        bytes[54] = self.collective as u8;
        bytes[55] = u8::from(self.drawn) | (self.manner as u8) << 1;
        let check = check_record(&bytes);
        bytes[56..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// `None` for a torn or unused record, and for one that names no known collective, variant or manner.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES], n_variants: usize) -> Option<Record> {
        if check_record(bytes) != word64(bytes, 56) {
            return None;
        }
        let variant = u16::from_le_bytes([bytes[52], bytes[53]]);
        let known = usize::from(variant) < n_variants;
        let record = Record {
            comm: word64(bytes, 0),
            call: word64(bytes, 8),
            message_bytes: word64(bytes, 16),
            start_ns: word64(bytes, 24),
            duration_ns: word64(bytes, 32),
            nodes: word32(bytes, 40),
            ppn: word32(bytes, 44),
            n_ranks: word32(bytes, 48),
            variant,
            collective: Collective::from_index(bytes[54].into())?,
            drawn: bytes[55] & 1 != 0,
            manner: *Manner::ALL.get(usize::from(bytes[55] >> 1))?,
        };
        known.then_some(record)
    }
}

fn word64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(
        bytes[at..at + 8]
            .try_into()
            .expect("eight bytes were sliced"),
    )
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(
        bytes[at..at + 4]
            .try_into()
            .expect("four bytes were sliced"),
    )
}

/// The check word over the first 56 bytes of a record. Two independent chains of multiplications,
/// so that it costs a few nanoseconds; a record of zeros does not check.
fn check_record(bytes: &[u8; RECORD_BYTES]) -> u64 {
    let (mut a, mut b) = (0x2545_f491_4f6c_dd1du64, 0x9e37_79b9_7f4a_7c15u64);
    for place in (0..48).step_by(16) {
        a = (a ^ word64(bytes, place))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .rotate_left(29);
        b = (b ^ word64(bytes, place + 8))
            .wrapping_mul(0x94d0_49bb_1331_11eb)
            .rotate_left(31);
    }
    mix(a ^ word64(bytes, 48), b)
}

fn check_bytes(bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(mix(bytes.len() as u64, 1), |sum, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(sum, u64::from_le_bytes(word))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            job: "0123abc".to_owned(),
            rank: 3,
            world_ranks: 8,
            library: "openmpi-4.1.4".to_owned(),
            machine: "test".to_owned(),
            host: "node3".to_owned(),
            clock: 9,
            generation: 2,
            colltune_version: "0.1.0".to_owned(),
            started_unix_ms: 1_700_000_000_000,
            capacity: 10,
            variants: vec![
                (Collective::Allreduce, "default".to_owned()),
                (Collective::Bcast, "native:ring".to_owned()),
            ],
        }
    }

    fn record(call: u64) -> Record {
        Record {
            comm: 1 << 40,
            call,
            message_bytes: 8,
            start_ns: 123_456,
            duration_ns: 3_000,
            nodes: 4,
            ppn: 2,
            n_ranks: 8,
            variant: 1,
            collective: Collective::Bcast,
            drawn: true,
            manner: Manner::Blocking,
        }
    }

    fn trace(records: u64) -> Vec<u8> {
        let mut bytes = header().to_bytes();
        bytes.extend((0..records).flat_map(|call| record(call).to_bytes()));
        bytes
    }

    #[test]
    fn traces_read_back_and_unused_space_is_no_record() {
        let mut bytes = trace(5);
        bytes.resize(bytes.len() + 3 * RECORD_BYTES + 7, 0);
        let (read_header, records) = read(&bytes).unwrap();
        assert_eq!(read_header, header());
        assert_eq!(records, (0..5).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn manners_read_back_and_a_trace_without_them_has_blocking_calls() {
        for (number, manner) in (0..).zip(Manner::ALL) {
            assert_eq!(
                (manner as u8, Manner::from_name(manner.name())),
                (number, Some(manner))
            );
            for drawn in [false, true] {
                let record = Record {
                    drawn,
                    manner,
                    ..record(1)
                };
                assert_eq!(Record::from_bytes(&record.to_bytes(), 2), Some(record));
            }
        }
        let mut before = trace(3);
        before[..8].copy_from_slice(b"COLLTRC1");
        let records = read(&before).unwrap().1;
        assert!(
            records.len() == 3
                && records
                    .iter()
                    .all(|record| record.manner == Manner::Blocking)
        );
    }

    #[test]
    fn a_torn_record_is_passed_over_and_no_other_is_lost() {
        let whole = trace(5);
        for cut in 1..RECORD_BYTES {
            assert_eq!(read(&whole[..whole.len() - cut]).unwrap().1.len(), 4);
        }
        let mut middle = whole.clone();
        middle[whole.len() - 3 * RECORD_BYTES] ^= 1;
        assert_eq!(read(&middle).unwrap().1.len(), 4);
        let at = whole.len() - RECORD_BYTES;
        for byte in at..whole.len() {
            let mut torn = whole.clone();
            torn[byte] ^= 1;
            assert_eq!(read(&torn).unwrap().1.len(), 4, "byte {}", byte - at);
        }
    }

    #[test]
    fn hostile_headers_are_errors() {
        let whole = trace(1);
        assert_eq!(read(&whole[..10]), Err(TraceError::Short(10)));
        let spoilt = |at: usize, value: u8| {
            let mut bytes = whole.clone();
            bytes[at] = value;
            read(&bytes)
        };
        assert_eq!(spoilt(0, b'X'), Err(TraceError::Magic));
        assert!(matches!(
            spoilt(11, 0xff),
            Err(TraceError::HeaderLength { .. })
        ));
        assert!(matches!(
            spoilt(30, whole[30] ^ 1),
            Err(TraceError::HeaderCheck)
        ));
        // A header whose own lengths lie, behind a right check word.
        let header = [0xfd; 40];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(40u32.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(check_bytes(&header).to_le_bytes());
        bytes.extend(header);
        assert!(matches!(read(&bytes), Err(TraceError::Header(_))));
    }

    #[test]
    fn records_that_name_nothing_known_are_refused() {
        assert_eq!(Record::from_bytes(&record(1).to_bytes(), 1), None);
        assert_eq!(Record::from_bytes(&[0; RECORD_BYTES], 5), None);
    }
}
