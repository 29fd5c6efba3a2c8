//! What programs do around their collectives is as without the shim: other ways to start and to end,
//! threads, children, the library's own names, the tools' interface, error strings.

use std::time::Duration;

use colltune_tests::{Job, Mpi, folder, job, on_each_library, skip};

/// What each way may take, beside what a job has anyway.
const EACH: Duration = Duration::from_secs(30);

/// A job of so many ranks that goes some of the program's ways, one after another.
fn going(mpi: Mpi, n_ranks: u32, ways: &[&str]) -> Job {
    job(n_ranks).mpi(mpi).more_time(EACH * ways.len() as u32)
}

/// Ways of the program under which families that are off by default run, too.
fn are_right_whatever_runs(mpi: Mpi, ways: &[&str]) {
    let named = |way: &&str| {
        if ways.len() > 1 {
            format!("{way}\n")
        } else {
            String::new()
        }
    };
    let printed = ways.iter().map(named).collect::<String>() + "ok\n";
    going(mpi, 3, ways)
        .run("surroundings", ways)
        .succeeds()
        .prints(&printed);
    for families in ["native", "native,node,p2p"] {
        let db = folder();
        let tuned = going(mpi, 3, ways)
            .preload()
            .db(db.path())
            .mode("explore")
            .seed(3);
        let tuned = tuned
            .env("COLLTUNE_SETUP_AFTER", "1")
            .env("COLLTUNE_FAMILIES", families)
            .env("COLLTUNE_EXPLORE_BUDGET", "1");
        tuned.run("surroundings", ways).succeeds().prints(&printed);
    }
}

/// Runs the program bare and tuned; all that it prints must be the same.
fn is_as_without_the_shim(mpi: Mpi, way: &str) {
    are_as_without_the_shim(mpi, &[way]);
}

/// The same of several ways in one job.
fn are_as_without_the_shim(mpi: Mpi, ways: &[&str]) {
    let bare = going(mpi, 2, ways).run("surroundings", ways);
    bare.succeeds();
    assert!(bare.stdout.ends_with("ok\n"), "{}", bare.stdout);
    for mode in ["record", "explore"] {
        let db = folder();
        let mut tuned = going(mpi, 2, ways)
            .preload()
            .db(db.path())
            .mode(mode)
            .seed(11)
            .env("COLLTUNE_SETUP_AFTER", "1");
        if ways.len() > 1 {
            // The account is the process's: what earlier ways spend would thin out later draws.
            tuned = tuned.env("COLLTUNE_EXPLORE_BUDGET", "1");
        }
        let outcome = tuned.run("surroundings", ways);
        outcome.succeeds().prints(&bare.stdout);
    }
}

on_each_library! {
    fn spawned_jobs_and_intercommunicators(mpi: Mpi) {
        if !mpi.is_openmpi() {
            return skip("Debian's MPICH cannot spawn").unwrap_or(());
        }
        is_as_without_the_shim(mpi, "spawn");
    }

    fn disconnected_communicators_children_names_of_the_librarys_own_and_error_strings(mpi: Mpi) {
        are_as_without_the_shim(mpi, &["disconnect", "children", "directly", "errors"]);
    }

    fn sessions_without_a_world(mpi: Mpi) {
        if mpi.is_openmpi() {
            return skip("Open MPI 4 has no sessions").unwrap_or(());
        }
        is_as_without_the_shim(mpi, "session");
    }

    fn a_session_that_outlives_the_world(mpi: Mpi) {
        if mpi.is_openmpi() {
            return skip("Open MPI 4 has no sessions").unwrap_or(());
        }
        is_as_without_the_shim(mpi, "beside");
    }

    fn threads_with_communicators_of_their_own(mpi: Mpi) {
        is_as_without_the_shim(mpi, "threads");
    }

    fn the_tools_interface(mpi: Mpi) {
        is_as_without_the_shim(mpi, "numbers");
    }

    /// Behind a copy no communicator of ours is made any more, so these come last, or are alone.
    fn communicators_that_are_freed_or_between_two_groups_and_barriers_beside_copies(mpi: Mpi) {
        are_right_whatever_runs(mpi, &["freed", "between", "barriers"]);
    }

    /// Open MPI 4.1 makes no communicator beside a copy of one with a lower number until the copy is made: one rank begins a
    /// copy before a barrier elsewhere, the others behind it.
    fn copies_that_are_crossed_by_barriers_elsewhere(mpi: Mpi) {
        are_right_whatever_runs(mpi, &["crossed"]);
    }

    /// Open MPI 4.1 copies in stages, beside which no communicator of ours may be made.
    fn communicators_that_are_copied(mpi: Mpi) {
        are_right_whatever_runs(mpi, &["copied"]);
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
