//! `colltune.toml`: what is accepted makes a tuning space that covers every call.
#![no_main]

use colltune_core::collective::Collective;
use colltune_core::settings::{KEYS, Settings};
use colltune_core::space::Space;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(settings) = Settings::from_toml(text)
        // The usual one has a test, and takes most of the time.
        && settings.space != Space::default()
    {
        for bytes in [0, 1, u64::MAX] {
            let mut holding = [0; Collective::ALL.len()];
            for (cell, _) in settings.space.cells() {
                let holds = cell.contains(cell.collective, bytes, 1, 1);
                holding[cell.collective.index()] += usize::from(holds);
            }
            assert_eq!(holding, [1; Collective::ALL.len()], "{bytes}");
        }
    }
    let mut settings = Settings::default();
    for key in KEYS {
        let variable = format!("COLLTUNE_{}", key.name.to_uppercase());
        let _ = settings.override_with(&variable, text);
    }
});
