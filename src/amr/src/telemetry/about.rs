//! What stands in each file of telemetry about the run that wrote it, so that a recording can be run again elsewhere.

use parquet::file::metadata::KeyValue;

/// Which version of options and of blocks' numbers a recording has.
pub const VERSION: u32 = 1;
/// The keys.
pub const VERSION_KEY: &str = "colltune-amr.recording";
pub const WORDS_KEY: &str = "colltune-amr.words";
pub const RANKS_KEY: &str = "colltune-amr.ranks";

/// What a run's files say: its version, the words of its command line (a JSON array, decks in their places), and how
/// many ranks it had.
pub fn of(words: &[String], n_ranks: usize) -> Vec<KeyValue> {
    let words = serde_json::to_string(words).expect("words are text");
    let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    vec![
        pair(VERSION_KEY, VERSION.to_string()),
        pair(WORDS_KEY, words),
        pair(RANKS_KEY, n_ranks.to_string()),
    ]
}
