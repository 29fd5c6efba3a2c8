//! Lines of a ledger of jobs: what is accepted can be said, and reads the same again.
#![no_main]

use colltune_core::account::JobSummary;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(summary) = serde_json::from_str::<JobSummary>(text) else {
        return;
    };
    let _ = summary.sentence();
    let again = serde_json::from_str::<JobSummary>(&summary.line()).expect("it was written by us");
    assert_eq!(again, summary);
});
