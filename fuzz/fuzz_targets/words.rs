//! Words of the environment and of command lines: forced variants, logs, presets, durations, versions, names.
#![no_main]

use colltune_core::library::Library;
use colltune_core::variant::VariantName;
use colltune_core::{preset, request, settings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let library = Library::from_version_text(text);
    if let Ok(forced) = request::parse_force(text)
        && let Ok(library) = library
    {
        let _ = request::check_force(&forced, library);
    }
    let _ = request::parse_log(text);
    if let Some(presets) = preset::parse(text) {
        let again = preset::parse(&preset::spell(&presets));
        assert_eq!(again.as_ref(), Some(&presets), "{text}");
    }
    let _ = settings::parse_duration(text);
    if let Ok(name) = text.parse::<VariantName>() {
        let again = name.to_string().parse::<VariantName>().ok();
        assert_eq!(again.as_ref(), Some(&name), "{name}");
    }
});
