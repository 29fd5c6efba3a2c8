//! Check words of files and settings.

use colltune_core::select::mix;

/// A check word over bytes, for damage and not for malice.
pub fn check_word(bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(mix(bytes.len() as u64, 2), |sum, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(sum, u64::from_le_bytes(word))
        })
}
