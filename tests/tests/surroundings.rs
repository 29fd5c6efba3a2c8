//! What programs do around their collectives is as without the shim: other ways to start and to end,
//! threads, children, the library's own names, the tools' interface, error strings.

use colltune_tests::{Mpi, folder, job, on_each_library};

/// A way of the program under which families that are off by default run, too.
fn is_right_whatever_runs(mpi: Mpi, way: &str) {
    job(3)
        .mpi(mpi)
        .run("surroundings", &[way])
        .succeeds()
        .prints("ok\n");
    for families in ["native", "native,node,p2p,mockup"] {
        let db = folder();
        let tuned = job(3)
            .mpi(mpi)
            .preload()
            .db(db.path())
            .mode("explore")
            .seed(3);
        let tuned = tuned
            .env("COLLTUNE_SETUP_AFTER", "1")
            .env("COLLTUNE_FAMILIES", families)
            .env("COLLTUNE_EXPLORE_BUDGET", "1");
        tuned.run("surroundings", &[way]).succeeds().prints("ok\n");
    }
}

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

    fn callbacks_that_use_the_communicator_that_is_freed(mpi: Mpi) {
        is_right_whatever_runs(mpi, "freed");
    }

    /// Open MPI 4.1 copies in stages, beside which no communicator of ours may be made.
    fn communicators_that_are_being_copied(mpi: Mpi) {
        is_right_whatever_runs(mpi, "copied");
    }

    /// A barrier has no data that would show a copy's messages in it.
    fn barriers_around_a_copy_that_is_made_meanwhile(mpi: Mpi) {
        is_right_whatever_runs(mpi, "barriers");
    }

    /// Open MPI 4.1 makes no communicator beside a copy of one with a lower number until the copy is made.
    fn a_copy_that_one_rank_begins_before_a_barrier_elsewhere_and_the_others_behind_it(mpi: Mpi) {
        is_right_whatever_runs(mpi, "crossed");
    }

    fn lists_between_two_groups_are_as_long_as_the_other_group(mpi: Mpi) {
        is_right_whatever_runs(mpi, "between");
    }

    fn a_program_that_goes_to_another_folder(mpi: Mpi) {
        let start = folder();
        std::fs::create_dir(start.path().join("db")).unwrap();
        let within = ["env", "-C", start.path().to_str().unwrap()];
        let job = job(2).mpi(mpi).preload().db("db").mode("explore").seed(1);
        let job = job.env("COLLTUNE_SETUP_AFTER", "1").prefix(&within);
        job.run("surroundings", &["elsewhere"]).succeeds().prints("ok\n").is_silent();
        let incoming = std::fs::read_dir(start.path().join("db/incoming")).unwrap();
        let names: Vec<_> = incoming.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().any(|name| name.ends_with(".trace")), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with(".open")), "{names:?}");
    }
}

/// Open MPI itself calls the system's functions by these names.
#[test]
fn functions_of_the_programs_own_with_names_of_the_systems() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    job(2)
        .mpi(mpi)
        .run("own_names", &[])
        .succeeds()
        .prints("ok\n");
    let db = folder();
    let tuned = job(2).mpi(mpi).preload().db(db.path()).mode("explore");
    tuned.run("own_names", &[]).succeeds().prints("ok\n");
}
