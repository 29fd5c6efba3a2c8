//! What programs do around their collectives is as without the shim: other ways to start and to end,
//! threads, children, the library's own names, the tools' interface, error strings.

use colltune_tests::{Mpi, folder, job, on_each_library};

/// Runs the program bare and tuned; all that it prints must be the same.
fn is_as_without_the_shim(mpi: Mpi, way: &str) {
    let bare = job(2).mpi(mpi).run("surroundings", &[way]);
    bare.succeeds();
    assert!(bare.stdout.ends_with("ok\n"), "{}", bare.stdout);
    for mode in ["record", "explore"] {
        let db = folder();
        let tuned = job(2)
            .mpi(mpi)
            .preload()
            .db(db.path())
            .mode(mode)
            .seed(11)
            .env("COLLTUNE_SETUP_AFTER", "1")
            .run("surroundings", &[way]);
        tuned.succeeds().prints(&bare.stdout);
    }
}

on_each_library! {
    fn spawned_jobs_and_intercommunicators(mpi: Mpi) {
        // Debian's MPICH cannot spawn.
        if mpi.is_openmpi() {
            is_as_without_the_shim(mpi, "spawn");
        }
    }

    fn communicators_that_are_disconnected(mpi: Mpi) {
        is_as_without_the_shim(mpi, "disconnect");
    }

    fn sessions_without_a_world(mpi: Mpi) {
        // Open MPI 4 has none.
        if !mpi.is_openmpi() {
            is_as_without_the_shim(mpi, "session");
        }
    }

    fn a_session_that_outlives_the_world(mpi: Mpi) {
        if !mpi.is_openmpi() {
            is_as_without_the_shim(mpi, "beside");
        }
    }

    fn threads_with_communicators_of_their_own(mpi: Mpi) {
        is_as_without_the_shim(mpi, "threads");
    }

    fn children_without_mpi(mpi: Mpi) {
        is_as_without_the_shim(mpi, "children");
    }

    fn calls_of_the_librarys_own_names(mpi: Mpi) {
        is_as_without_the_shim(mpi, "directly");
    }

    fn the_tools_interface(mpi: Mpi) {
        is_as_without_the_shim(mpi, "numbers");
    }

    fn error_strings_and_codes(mpi: Mpi) {
        is_as_without_the_shim(mpi, "errors");
    }
}
