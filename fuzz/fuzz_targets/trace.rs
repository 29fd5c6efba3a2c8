//! Traces: whatever lies in `incoming/`, and traces whose check words are right.
#![no_main]

use std::sync::LazyLock;

use colltune_core::record::{self, Header, Record, Words};
use libfuzzer_sys::fuzz_target;

static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let trace = include_bytes!("../../src/core/golden/trace-3.bin");
    let (header, _) = record::read(trace).expect("a trace of the present layout");
    header.to_bytes()
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, records)) = record::read(bytes) {
        again(&header, &records);
    }
    // A header whose check word is repaired reaches the decoder.
    if let Ok((header, records)) = record::read(&record::frame(bytes)) {
        again(&header, &records);
    }
    // So do records.
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let words: Vec<u64> = words.collect();
    let (records, _) = words.as_chunks::<{ size_of::<Words>() / 8 }>();
    let mut trace = HEADER.clone();
    trace.extend(records.iter().flat_map(record::sealed));
    let (header, records) = record::read(&trace).expect("its header is whole");
    again(&header, &records);
});

/// What was read can be written, and reads the same again.
fn again(header: &Header, records: &[Record]) {
    let mut bytes = header.to_bytes();
    bytes.extend(records.iter().flat_map(Record::to_bytes));
    let (same, all) = record::read(&bytes).expect("it was written by us");
    assert_eq!((&same, all.as_slice()), (header, records));
}
