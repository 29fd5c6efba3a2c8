//! Flight recordings: whatever lies in a job's folder, and recordings whose check words are right.
#![no_main]

use colltune_core::flight;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    look(bytes);
    // Behind check words that are right everything reaches the decoder.
    if let Some((length, rest)) = bytes.split_first() {
        let (header, body) = rest.split_at(rest.len().min(usize::from(*length)));
        look(&framed(header, body));
    }
});

/// What is read names what it has and is no longer than it may be.
fn look(bytes: &[u8]) {
    let Ok(recording) = flight::read(bytes) else {
        return;
    };
    let n_variants = recording.header.variants.len();
    for ring in &recording.rings {
        assert!(ring.decisions.len() <= flight::DECISIONS);
        assert!(
            ring.decisions
                .iter()
                .all(|one| usize::from(one.variant) < n_variants)
        );
    }
    let _ = recording.header.to_bytes();
}

fn framed(header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut padded = header.to_vec();
    padded.resize(header.len().next_multiple_of(8), 0);
    let body = &body[..body.len() / 8 * 8];
    let mut bytes = flight::MAGIC.to_vec();
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(check(&padded).to_le_bytes());
    bytes.extend(&padded);
    bytes.extend(body);
    bytes.extend(check(body).to_le_bytes());
    bytes
}

fn check(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.fold(1, flight::check_step)
}
