//! The layout of a trace: what one rank recorded in one run.
//!
//! ```text
//! 0   magic "COLLTRC4"          8 bytes
//! 8   length of the header h    u32, little-endian like every number here
//! 12  zero                      u32
//! 16  check word of the header  u64
//! 24  header, bincode 2         h bytes
//! p   records of 128 bytes, p = 24 + h rounded up to 128; those whose check word is wrong are passed over
//!
//! a record:
//! 0   communicator, call, message bytes, start, time of this rank, its shift     u64 each
//! 48  agreed: mean time, mean shift, slowest rank's time, work                   u64 each
//! 80  nodes, ranks per node, ranks                                               u32 each
//! 92  variant                                                                    u16
//! 94  collective                                                                 u8
//! 95  1 for a drawn variant, plus twice the number of its [`Manner`]             u8
//! 96  1 where the ranks have agreed, flags and element size of its [`CallClass`] u8, u8, u16
//! 100 [`Probability`] with which the variant was drawn, in parts of 2^32; 0: unknown  u32
//! 104 time of this rank in its next collective, agreed: mean of that             u64 each
//! 120 check word                                                                 u64
//! ```
//! Times are in nanoseconds; an unknown shift or time in the next collective has all bits set. Records are written
//! behind each other, and may be written again in their places when the ranks have compared their times. A job that is
//! killed leaves what it had at its last review; of what another thread was about to record there may be a torn record.
//! Space that was reserved and not used is zero, which is no valid record. Before colltune recorded probabilities their
//! place was zero, too.
//!
//! Traces that begin with "COLLTRC3" have records of 112 bytes, whose check word stands at 104 in place of the times in
//! the next collective. Those that begin with "COLLTRC2" have records of 64 bytes, whose check word stands at 56,
//! without what stands at 40 to 79 and 96 to 99. Their header has no context and no transport. On one node, once the
//! ranks had compared, `start` is when the last rank started and `time` goes from there to the end of the last rank.
//! Those of "COLLTRC1" have blocking calls alone. All are read, too.

mod recorded;
pub use recorded::{CallClass, CallTimes, Manner, Probability, Record};

mod layout;
pub use layout::{
    AFTER, AFTER_AGREED, AGREED, FLAG_AGREED, FLAGS, MESSAGE_BYTES, RECORD_BYTES, SHIFT, Words,
    sealed,
};

use bincode::{Decode, Encode};
use thiserror::Error;

use crate::collective::Collective;
use crate::select::mix;
use layout::{Layout, word32, word64};

pub const MAGIC: [u8; 8] = *b"COLLTRC4";
const MAGIC_3: [u8; 8] = *b"COLLTRC3";
const MAGICS_BEFORE: [[u8; 8]; 2] = [*b"COLLTRC2", *b"COLLTRC1"];
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
    /// What else decides how long calls take: settings of the library, processors, binding, kernel.
    pub context: Vec<(String, String)>,
    /// What carries messages between nodes, as far as it is known; empty where it is not.
    pub transport: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TraceError {
    #[error("read the trace: it is {0} bytes long, shorter than any header")]
    Short(usize),
    #[error("read the trace: it begins with none of COLLTRC4 to COLLTRC1")]
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

/// A trace without records round the bytes of an encoded header, which are not looked at.
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
    let (header, layout, records_at) = read_header(bytes)?;
    let behind = &bytes[records_at.min(bytes.len())..];
    let records = layout.records(behind, header.variants.len());
    let records = records.flatten().collect();
    Ok((header, records))
}

/// How many records of a trace do not check though others follow them. The last one may be torn, as a kill leaves it.
///
/// Errors: as for [`read`].
pub fn n_damaged(bytes: &[u8]) -> Result<usize, TraceError> {
    let (header, layout, records_at) = read_header(bytes)?;
    let behind = &bytes[records_at.min(bytes.len())..];
    let used = behind.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    let before_last = used / layout.record_bytes() * layout.record_bytes();
    let records = layout.records(&behind[..before_last], header.variants.len());
    Ok(records.filter(Option::is_none).count())
}

fn read_header(bytes: &[u8]) -> Result<(Header, Layout, usize), TraceError> {
    let Some(magic) = bytes.first_chunk().filter(|_| bytes.len() >= PREFIX_BYTES) else {
        return Err(TraceError::Short(bytes.len()));
    };
    let layout = match *magic {
        MAGIC => Layout::Full,
        MAGIC_3 => Layout::Third,
        magic if MAGICS_BEFORE.contains(&magic) => Layout::Short,
        _ => return Err(TraceError::Magic),
    };
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
    let decoded = match layout {
        Layout::Third | Layout::Full => bincode::decode_from_slice(header, config),
        // It ends before the context and the transport, of which a 0 each stands for none.
        Layout::Short => bincode::decode_from_slice(&[header, &[0, 0]].concat(), config),
    };
    let (header, _): (Header, usize) =
        decoded.map_err(|error| TraceError::Header(error.to_string()))?;
    let records_at = (PREFIX_BYTES + claimed).next_multiple_of(layout.record_bytes());
    Ok((header, layout, records_at))
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
    use crate::decide::call::{SharedCall, SharedDetails};

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
            context: vec![("kernel".to_owned(), "6.1".to_owned())],
            transport: "tcp".to_owned(),
        }
    }

    fn record(call: u64) -> Record {
        Record {
            comm: 1 << 40,
            call,
            message_bytes: 8,
            start_ns: 123_456,
            duration_ns: 3_000,
            shift_ns: Some(40_000),
            after_ns: Some(2_000),
            agreed: Some(CallTimes {
                time_ns: 2_500,
                shift_ns: None,
                after_ns: Some(1_700),
                slowest_ns: 3_100,
                work_ns: 1_900,
            }),
            nodes: 4,
            ppn: 2,
            n_ranks: 8,
            variant: 1,
            collective: Collective::Bcast,
            drawn: true,
            probability: Probability::of_parts(1 << 30),
            manner: Manner::Blocking,
            class: CallClass {
                in_place: true,
                rounds: true,
                element_bytes: 8,
                ..CallClass::default()
            },
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
    fn what_is_unknown_and_every_manner_and_class_read_back() {
        let base = record(1);
        let mut records = vec![
            Record {
                shift_ns: None,
                after_ns: None,
                ..base
            },
            Record {
                agreed: None,
                ..base
            },
            Record {
                probability: None,
                ..base
            },
            Record {
                agreed: None,
                probability: Some(Probability::ONE),
                ..base
            },
            Record {
                agreed: Some(CallTimes {
                    shift_ns: Some(0),
                    after_ns: None,
                    ..base.agreed.unwrap()
                }),
                ..base
            },
        ];
        for (number, manner) in (0..).zip(Manner::ALL) {
            assert_eq!(
                (manner as u8, Manner::from_name(manner.name())),
                (number, Some(manner))
            );
            records.extend([false, true].map(|drawn| Record {
                drawn,
                manner,
                ..base
            }));
        }
        records.extend((0..64).map(|flags| Record {
            class: CallClass::of_flags(flags, 3),
            ..base
        }));
        for record in records {
            assert_eq!(Record::from_bytes(&record.to_bytes(), 2), Some(record));
        }
    }

    #[test]
    fn a_probability_is_what_it_is_made_of_and_none_is_none() {
        assert_eq!(Probability::of_parts(0), None);
        assert_eq!(Probability::of_parts(1 << 32), Some(Probability::ONE));
        assert_eq!(Probability::ONE.value(), 1.0);
        let third = Probability::of_parts((1 << 32) / 3).map(Probability::value);
        assert!((third.unwrap() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn names_of_a_class_say_its_flags_and_unknown_ones_nothing() {
        for flags in 0..64 {
            let class = CallClass::of_flags(flags, 8);
            assert_eq!(
                CallClass::flags_named(class.in_place, &class.names()),
                flags
            );
        }
        assert_eq!(CallClass::flags_named(true, "later+uneven"), 1 | 1 << 5);
        assert_eq!(CallClass::default().names(), "");
    }

    #[test]
    fn a_class_says_what_all_ranks_know_of_a_call() {
        let call = |bytes| SharedCall {
            collective: Collective::Allreduce,
            bytes,
        };
        let sum_of_doubles = SharedDetails {
            count: Some(4),
            exact: false,
            ..SharedDetails::MOVES
        };
        let class = CallClass::of(call(32), &sum_of_doubles);
        assert_eq!(
            class,
            CallClass {
                rounds: true,
                element_bytes: 8,
                ..CallClass::default()
            }
        );
        for (bytes, count) in [(0, Some(0)), (1 << 40, Some(1)), (8, None)] {
            let details = SharedDetails {
                count,
                ..SharedDetails::MOVES
            };
            assert_eq!(CallClass::of(call(bytes), &details), CallClass::default());
        }
    }

    /// What is read of each version, whatever is written today.
    #[test]
    fn traces_of_all_versions_stay_readable() {
        let old_header = Header {
            context: Vec::new(),
            transport: String::new(),
            ..header()
        };
        let old = |call| Record {
            shift_ns: None,
            after_ns: None,
            agreed: None,
            probability: None,
            class: CallClass::default(),
            ..record(call)
        };
        let first = include_bytes!("../golden/trace-1.bin");
        assert_eq!(read(first), Ok((old_header.clone(), vec![old(0), old(1)])));
        let manners = [
            Manner::Blocking,
            Manner::Nonblocking,
            Manner::NeighborhoodPersistent,
        ];
        let records = (0..).zip(manners).map(|(call, manner)| Record {
            manner,
            drawn: call == 0,
            ..old(call)
        });
        let second = include_bytes!("../golden/trace-2.bin");
        assert_eq!(read(second), Ok((old_header, records.collect())));
        let third = include_bytes!("../golden/trace-3.bin");
        let records = (0..3).map(|call| Record {
            after_ns: None,
            probability: None,
            agreed: record(call).agreed.map(|agreed| CallTimes {
                after_ns: None,
                ..agreed
            }),
            ..record(call)
        });
        assert_eq!(read(third), Ok((header(), records.collect())));
        let fourth = include_bytes!("../golden/trace-4.bin");
        let records = (0..3).map(|call| Record {
            probability: None,
            ..record(call)
        });
        assert_eq!(read(fourth), Ok((header(), records.collect())));
        let file = "golden/trace-4-probability.bin";
        if std::env::var_os("COLLTUNE_BLESS").is_some() {
            std::fs::write(file, trace(3)).unwrap();
        } else {
            let written = std::fs::read(file).unwrap();
            assert_eq!(written, trace(3), "the format has changed");
        }
    }

    #[test]
    fn a_torn_record_is_passed_over_and_no_other_is_lost() {
        let whole = trace(5);
        for cut in 1..RECORD_BYTES {
            assert_eq!(read(&whole[..whole.len() - cut]).unwrap().1.len(), 4);
        }
        assert_eq!(n_damaged(&whole[..whole.len() - 1]), Ok(0));
        let mut middle = whole.clone();
        middle[whole.len() - 3 * RECORD_BYTES] ^= 1;
        assert_eq!(read(&middle).unwrap().1.len(), 4);
        middle.resize(middle.len() + 2 * RECORD_BYTES, 0);
        assert_eq!(n_damaged(&middle), Ok(1));
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
