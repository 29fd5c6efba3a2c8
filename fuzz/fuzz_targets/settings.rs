//! `colltune.toml`: what is accepted makes a tuning space that covers every call.
#![no_main]

use colltune_core::collective::Collective;
use colltune_core::settings::{KEYS, Settings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(settings) = Settings::from_toml(text) {
        for collective in Collective::ALL {
            for bytes in [0, 1, u64::MAX] {
                let all = settings.space.cells();
                let holding = all.filter(|(cell, _)| cell.contains(collective, bytes, 1, 1));
                assert_eq!(holding.count(), 1, "{collective} {bytes}");
            }
        }
    }
    for key in KEYS {
        let variable = format!("COLLTUNE_{}", key.name.to_uppercase());
        let _ = Settings::default().override_with(&variable, text);
    }
});
