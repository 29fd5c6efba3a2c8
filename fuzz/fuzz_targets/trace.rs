//! Traces: whatever lies in `incoming/`, and traces whose check words are right.
#![no_main]

use colltune_core::record::{self, Header, Record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, records)) = record::read(bytes) {
        again(&header, &records);
    }
    // A header whose check word is repaired reaches the decoder.
    if let Ok((header, records)) = record::read(&record::frame(bytes)) {
        again(&header, &records);
    }
});

/// What was read can be written, and reads the same again.
fn again(header: &Header, records: &[Record]) {
    let mut bytes = header.to_bytes();
    bytes.extend(records.iter().flat_map(Record::to_bytes));
    let (same, all) = record::read(&bytes).expect("it was written by us");
    assert_eq!((&same, all.as_slice()), (header, records));
}
