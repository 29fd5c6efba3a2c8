//! Records as bytes, in the layouts of all versions.
//!
//! Every layout ends with a check word over the bytes before it; a record of zeros does not check.

use super::recorded::{CallClass, CallTimes, Manner, Probability, Record};
use crate::collective::Collective;
use crate::select::mix;

pub const RECORD_BYTES: usize = 128;
/// Of version 3.
const RECORD_BYTES_3: usize = 112;
/// Of versions 1 and 2.
const RECORD_BYTES_BEFORE: usize = 64;
/// An unknown time.
const UNKNOWN: u64 = u64::MAX;

/// How the records of a trace lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Of versions 1 and 2, which differ in nothing that would not read alike.
    Short,
    /// Of version 3, which knows nothing of the time in the next collective.
    Third,
    Full,
}

impl Layout {
    pub(super) fn record_bytes(self) -> usize {
        match self {
            Layout::Short => RECORD_BYTES_BEFORE,
            Layout::Third => RECORD_BYTES_3,
            Layout::Full => RECORD_BYTES,
        }
    }

    /// The records in the bytes behind a header; `None` for each that is torn or unused, or names nothing known.
    pub(super) fn records(
        self,
        bytes: &[u8],
        n_variants: usize,
    ) -> impl Iterator<Item = Option<Record>> {
        let records = bytes.chunks_exact(self.record_bytes());
        records.map(move |bytes| self.record(bytes, n_variants))
    }

    fn record(self, bytes: &[u8], n_variants: usize) -> Option<Record> {
        let (_, word) = bytes.split_last_chunk::<8>()?;
        if check(bytes) != u64::from_le_bytes(*word) {
            return None;
        }
        let record = read(bytes, self)?;
        (usize::from(record.variant) < n_variants).then_some(record)
    }
}

/// A record as numbers, without its check word.
pub type Words = [u64; RECORD_BYTES / 8 - 1];

/// Places among the words of what is added to a record later on, and of what is read for that.
pub const MESSAGE_BYTES: usize = 2;
pub const SHIFT: usize = 5;
/// What the ranks agreed on: four words and [`AFTER_AGREED`], which count once the flag stands in the word of flags.
pub const AGREED: usize = 6;
pub const FLAGS: usize = 12;
pub const FLAG_AGREED: u64 = 1;
pub const AFTER: usize = 13;
pub const AFTER_AGREED: usize = 14;

impl CallTimes {
    /// The words from [`AGREED`] on, and the one at [`AFTER_AGREED`].
    pub fn words(self) -> ([u64; 4], u64) {
        let [shift_ns, after_ns] =
            [self.shift_ns, self.after_ns].map(|known| known.unwrap_or(UNKNOWN));
        let words = [self.time_ns, shift_ns, self.slowest_ns, self.work_ns];
        (words, after_ns)
    }
}

impl Record {
    #[inline(always)]
    pub fn words(&self) -> Words {
        let ([time_ns, shift_ns, slowest_ns, work_ns], after_ns) =
            self.agreed.unwrap_or_default().words();
        let how = u8::from(self.drawn) | (self.manner as u8) << 1;
        let of_class =
            u64::from(self.class.flags()) << 8 | u64::from(self.class.element_bytes) << 16;
        [
            self.comm,
            self.call,
            self.message_bytes,
            self.start_ns,
            self.duration_ns,
            self.shift_ns.unwrap_or(UNKNOWN),
            time_ns,
            shift_ns,
            slowest_ns,
            work_ns,
            u64::from(self.nodes) | u64::from(self.ppn) << 32,
            u64::from(self.n_ranks)
                | u64::from(self.variant) << 32
                | (self.collective as u64) << 48
                | u64::from(how) << 56,
            if self.agreed.is_some() {
                FLAG_AGREED
            } else {
                0
            } | of_class
                | u64::from(Probability::parts(self.probability)) << 32,
            self.after_ns.unwrap_or(UNKNOWN),
            after_ns,
        ]
    }

    /// The bytes of a record in a file.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        sealed(&self.words())
    }

    /// `None` for a torn or unused record, and for one that names no known collective, variant or manner.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES], n_variants: usize) -> Option<Record> {
        Layout::Full.record(bytes, n_variants)
    }
}

/// The bytes of a record in a file, with their check word.
pub fn sealed(words: &Words) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    let (targets, _) = bytes.as_chunks_mut::<8>();
    for (target, word) in targets.iter_mut().zip(words) {
        *target = word.to_le_bytes();
    }
    let word = check(&bytes);
    bytes[RECORD_BYTES - 8..].copy_from_slice(&word.to_le_bytes());
    bytes
}

fn read(bytes: &[u8], layout: Layout) -> Option<Record> {
    let is_short = layout == Layout::Short;
    // A check word stands behind the last one.
    let is_told = |at: usize| !is_short && at + 8 < bytes.len();
    let told = |at| is_told(at).then(|| word64(bytes, at));
    let known = |at| told(at).filter(|&ns| ns != UNKNOWN);
    let agreed = |flags: u64| {
        Some(CallTimes {
            time_ns: told(48)?,
            shift_ns: known(56),
            after_ns: known(112),
            slowest_ns: told(64)?,
            work_ns: told(72)?,
        })
        .filter(|_| flags & FLAG_AGREED != 0)
    };
    let flags = told(96).unwrap_or(0);
    let at = if is_short { 40 } else { 80 };
    Some(Record {
        comm: word64(bytes, 0),
        call: word64(bytes, 8),
        message_bytes: word64(bytes, 16),
        start_ns: word64(bytes, 24),
        duration_ns: word64(bytes, 32),
        shift_ns: known(40),
        after_ns: known(104),
        agreed: agreed(flags),
        nodes: word32(bytes, at),
        ppn: word32(bytes, at + 4),
        n_ranks: word32(bytes, at + 8),
        variant: u16::from_le_bytes(array(bytes, at + 12)),
        collective: Collective::from_index(bytes[at + 14].into())?,
        drawn: bytes[at + 15] & 1 != 0,
        probability: Probability::of_parts(flags >> 32),
        manner: *Manner::ALL.get(usize::from(bytes[at + 15] >> 1))?,
        class: CallClass::of_flags((flags >> 8) as u8, (flags >> 16) as u16),
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = bytes[at..].first_chunk();
    *part.expect("there are so many bytes")
}

pub(super) fn word32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn word64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// The check word of a record: an odd number of words, and room for this one. Two independent chains of
/// multiplications, so that it costs a few nanoseconds.
#[inline]
fn check(bytes: &[u8]) -> u64 {
    let (mut a, mut b) = (0x2545_f491_4f6c_dd1du64, 0x9e37_79b9_7f4a_7c15u64);
    let last = bytes.len() - 16;
    for place in (0..last).step_by(16) {
        a = (a ^ word64(bytes, place))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .rotate_left(29);
        b = (b ^ word64(bytes, place + 8))
            .wrapping_mul(0x94d0_49bb_1331_11eb)
            .rotate_left(31);
    }
    mix(a ^ word64(bytes, last), b)
}
