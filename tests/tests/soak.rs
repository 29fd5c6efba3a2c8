//! Millions of calls on a changing population of communicators leave nothing behind.

use std::time::Duration;

use colltune_tests::{folder, is_long, job, on_each_library};

/// Calls of a short soak, and of the long one (COLLTUNE_LONG=1).
const SHORT: u64 = 50_000;
const LONG: u64 = 10_000_000;

on_each_library! {
    fn memory_files_and_communicator_ids_stay_flat(mpi: Mpi) {
        let long = is_long();
        let calls = if long { LONG } else { SHORT };
        let db = folder();
        let outcome = job(2)
            .mpi(mpi)
            .preload()
            .db(db.path())
            .mode("explore")
            .seed(6)
            .env("COLLTUNE_FAMILIES", "native,node,p2p")
            .deadline(Duration::from_secs(if long { 7200 } else { 120 }))
            .run("soak", &[&calls.to_string()]);
        outcome.succeeds().prints("ok\n").is_silent();
    }
}
