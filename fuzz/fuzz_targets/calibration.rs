//! `calibration.toml`, and what the simulator found with it: what is accepted can be asked.
#![no_main]

use colltune_core::calibration::Calibration;
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::{Library, Product};
use colltune_core::prior::simulated::Simulated;
use colltune_core::space::Space;
use libfuzzer_sys::fuzz_target;

const LIBRARY: Library = Library {
    product: Product::OpenMpi,
    version: (4, 1, 4),
};

fuzz_target!(|text: &str| {
    if let Ok(calibration) = Calibration::from_toml(text) {
        assert_eq!(
            Calibration::from_toml(&calibration.to_toml()),
            Ok(calibration)
        );
    }
    let _ = Simulated::from_json(text, LIBRARY).map(|found| ask(&found));
    let nothing = r#"{"schema":1,"library":"openmpi-4.1.4","places":[]}"#;
    let mut found = Simulated::from_json(nothing, LIBRARY).expect("a prior of no place");
    let _ = found.add_ratios(text).map(|()| ask(&found));
});

/// One collective: all of them would take most of the time.
fn ask(found: &Simulated) {
    let _ = found.hopeless(2.0);
    let _ = found.of(Collective::Bcast);
    let variants = catalogue::variants(LIBRARY, Collective::Bcast);
    let ratios = found.ratios(&variants);
    for (cell, _) in Space::default()
        .cells()
        .filter(|(cell, _)| cell.collective == Collective::Bcast)
    {
        let _ = ratios.at(&cell);
    }
}
