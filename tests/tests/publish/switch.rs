//! The switch: new jobs and running ones obey it.

use colltune_tests::{LoggedCall, assert_ranks_agree, folder, on_each_library, read_log};

use super::{FIRST, Site};

const RANKS: u32 = 4;
/// Calls before the switch is turned, and how long the job goes on. It asks ten times a second.
const BEFORE: &str = "300";
const SECONDS: &str = "2";

/// What a job on four ranks ran that is switched off in its course: of each rank, by communicator, in order.
fn switched(
    site: &Site,
    what: [&str; 2],
    reproducible: &str,
) -> (Vec<Vec<LoggedCall>>, Vec<String>) {
    let log = folder();
    let job = colltune_tests::job(RANKS).mpi(site.mpi).preload();
    let job = job.db(site.path()).mode("exploit").seed(1).log(log.path());
    let job = job
        .env("COLLTUNE_SWITCH_POLL_INTERVAL", "100ms")
        // A choice that a watch leaves would look as if it had been switched off.
        .env("COLLTUNE_WATCH", "0")
        .env("COLLTUNE_REPRODUCIBLE", reproducible);
    let outcome = job.run("switched", &[BEFORE, SECONDS, what[0], what[1]]);
    outcome.succeeds().prints("ok\n");
    let messages = outcome.messages().into_iter().map(str::to_owned).collect();
    let log = read_log(log.path(), RANKS);
    assert_ranks_agree(&log);
    (log, messages)
}

/// The first and the last of the calls on each communicator of a rank, in the order of their first calls.
fn ends(calls: &[LoggedCall]) -> Vec<(String, String)> {
    let mut comms: Vec<Option<u64>> = Vec::new();
    let tuned = calls.iter().filter(|call| call.bytes == 8);
    for call in tuned.clone() {
        if !comms.contains(&call.comm) {
            comms.push(call.comm);
        }
    }
    let end = |comm: &Option<u64>| {
        let mut of = tuned.clone().filter(|call| call.comm == *comm);
        let in_cell = of.clone().find(|call| call.cell.is_some());
        let first = in_cell.map_or("none", |call| &call.variant);
        Some((first.to_owned(), of.next_back()?.variant.clone()))
    };
    comms.iter().filter_map(end).collect()
}

on_each_library! {
    fn new_jobs_run_untuned_while_it_is_off_and_say_why(mpi: Mpi) {
        let site = Site::published(mpi);
        site.tells(&["--off", "--reason", "allreduce hangs on n17"]);
        site.runs_untuned(site.job(), &["/OFF is there (allreduce hangs on n17)"]);
        site.runs_untuned(site.job().force("allreduce=p2p:ring"), &["/OFF is there"]);
        assert_eq!(site.listed()["off"], true);
        site.tells(&["--on"]);
        site.runs(site.job(), FIRST);
        // By hand.
        site.write("OFF", "");
        site.runs_untuned(site.job(), &["/OFF is there; "]);
    }

    fn a_running_job_falls_back_on_all_its_communicators(mpi: Mpi) {
        let site = Site::published(mpi);
        let off = site.path().join("OFF");
        let (log, messages) = switched(&site, ["create", &off.to_string_lossy()], "off");
        for calls in &log {
            let ends = ends(calls);
            // The world, and the half without rank 0 for two of them; what comes late is never tuned.
            let tuned = ends.iter().filter(|(first, _)| first == FIRST).count();
            assert_eq!(tuned, 2, "{ends:?}");
            assert!(ends.iter().all(|(_, last)| last == "default"), "{ends:?}");
        }
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("/OFF is there (it hangs)"), "{messages:?}");
    }

    fn a_running_job_whose_site_folder_vanishes_goes_on_untuned(mpi: Mpi) {
        let site = Site::published(mpi);
        let (log, messages) = switched(&site, ["remove", &site.path().to_string_lossy()], "off");
        for calls in &log {
            assert!(ends(calls).iter().all(|(_, last)| last == "default"));
        }
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("is gone"), "{messages:?}");
    }

    fn where_one_choice_is_promised_for_the_run_it_is_kept(mpi: Mpi) {
        let site = Site::published(mpi);
        let off = site.path().join("OFF");
        let (log, messages) = switched(&site, ["create", &off.to_string_lossy()], "run");
        let ends = ends(&log[0]);
        assert!(ends.iter().all(|(first, last)| first == FIRST && last == FIRST), "{ends:?}");
        assert_eq!(messages, Vec::<String>::new());
    }
}
