//! `calibration.toml`, and what the simulator found with it.
#![no_main]

use colltune_core::calibration::Calibration;
use colltune_core::library::{Library, Product};
use colltune_core::prior::simulated::Simulated;
use libfuzzer_sys::fuzz_target;

const LIBRARY: Library = Library {
    product: Product::OpenMpi,
    version: (4, 1, 4),
};

fuzz_target!(|text: &str| {
    let _ = Calibration::from_toml(text);
    let _ = Simulated::from_json(text, LIBRARY);
    let nothing = r#"{"schema":1,"library":"openmpi-4.1.4","places":[]}"#;
    let mut found = Simulated::from_json(nothing, LIBRARY).expect("a prior of no place");
    let _ = found.add_ratios(text);
});
