//! `site.json`: what is accepted is written as it was read, and says of every job which version it takes.
#![no_main]

use colltune_core::site::SiteState;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(site) = SiteState::from_json(text) else {
        return;
    };
    assert_eq!(SiteState::from_json(&site.to_json()), Ok(site));
    let _ = site.version_of(text);
});
