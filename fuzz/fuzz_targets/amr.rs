//! The mini-app's decks, and what its ranks send each other as bytes.
#![no_main]

use colltune_amr::deck;
use colltune_amr::output::raster;
use colltune_amr::telemetry::rows::Rows;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = deck::arguments(text, "fuzzed");
    }
    if let Some(tiles) = raster::decode(bytes) {
        assert_eq!(
            raster::decode(&raster::encode(&tiles)).map(|again| again.len()),
            Some(tiles.len())
        );
    }
    let _ = Rows::decode(bytes);
});
