//! Hellos of groups of ranks: one that is accepted is followed by another question, and one that is not changes nothing.
#![no_main]

use colltune_core::rendezvous::RollCall;
use libfuzzer_sys::fuzz_target;

const IDENTITY: &str = "colltune 0.1.0";

fuzz_target!(|text: &str| {
    let mut roll = RollCall::new(64, IDENTITY);
    for ranks in text.split(' ') {
        let before = roll.next();
        match roll.hear(&format!("{ranks} {IDENTITY}")) {
            Ok(()) => assert!(
                roll.next().is_none_or(|next| Some(next) > before),
                "{ranks}"
            ),
            Err(_) => assert_eq!(roll.next(), before, "{ranks}"),
        }
    }
    let _ = roll.hear(text);
});
