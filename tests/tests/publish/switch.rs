//! The switch: new jobs and running ones obey it.

use colltune_tests::{LoggedCall, assert_ranks_agree, folder, on_each_library, read_log, tool};

use super::{FIRST, Site};

const RANKS: u32 = 4;
/// Calls before the switch is turned, and how long the job goes on, which is some reviews. Rank 0 looks ten times a second.
const BEFORE: &str = "300";
const SECONDS: &str = "6";
/// Sampled calls of the default, with the warm-up calls before them, are fewer in a row.
const LAST: usize = 20;

/// What a job on four ranks ran that is switched off in its course: of each rank, by communicator, in order.
fn switched(
    site: &Site,
    what: [&str; 2],
    reproducible: &str,
) -> (Vec<Vec<LoggedCall>>, Vec<String>) {
    let log = folder();
    let job = colltune_tests::job(RANKS).mpi(site.mpi).preload();
    let job = job.db(site.path()).mode("exploit").seed(1).log(log.path());
    // A choice that the watch leaves would look as if it had been switched off: the library's own sleeps.
    let job = job.preload_tool(tool(site.mpi, "slow_tool"));
    let job = job
        .env("SLOW", "asleep")
        .env("COLLTUNE_SWITCH_POLL_INTERVAL", "100ms")
        .env("COLLTUNE_WATCH", "0.5")
        .env("COLLTUNE_REPRODUCIBLE", reproducible);
    let outcome = job.run("switched", &[BEFORE, SECONDS, what[0], what[1]]);
    outcome.succeeds().prints("ok\n");
    let messages = outcome.messages().into_iter().map(str::to_owned).collect();
    let log = read_log(log.path(), RANKS);
    assert_ranks_agree(&log);
    (log, messages)
}

/// Of each communicator whether its calls ran what was published, at all and among the last ones.
fn tuned(calls: &[LoggedCall]) -> Vec<[bool; 2]> {
    let mut comms: Vec<(Option<u64>, Vec<bool>)> = Vec::new();
    for call in calls.iter().filter(|call| call.bytes == 8) {
        let is_tuned = call.variant == FIRST;
        match comms.iter_mut().find(|(comm, _)| *comm == call.comm) {
            Some((_, tuned)) => tuned.push(is_tuned),
            None => comms.push((call.comm, vec![is_tuned])),
        }
    }
    let any = |tuned: &[bool]| tuned.contains(&true);
    let of = |(_, tuned): &(_, Vec<bool>)| {
        let last = tuned.len().saturating_sub(LAST);
        [any(tuned), any(&tuned[last..])]
    };
    comms.iter().map(of).collect()
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
            let tuned = tuned(calls);
            // The world, and the half without rank 0 for two of them; what comes late is never tuned.
            let n_tuned = tuned.iter().filter(|[at_all, _]| *at_all).count();
            assert_eq!(n_tuned, 2, "{tuned:?}");
            assert!(tuned.iter().all(|[_, at_last]| !at_last), "{tuned:?}");
        }
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("/OFF is there (it hangs)"), "{messages:?}");
    }

    fn a_running_job_whose_site_folder_vanishes_goes_on_untuned(mpi: Mpi) {
        let site = Site::published(mpi);
        let (log, messages) = switched(&site, ["remove", &site.path().to_string_lossy()], "off");
        for calls in &log {
            let tuned = tuned(calls);
            let n_tuned = tuned.iter().filter(|[at_all, _]| *at_all).count();
            assert_eq!(n_tuned, 2, "{tuned:?}");
            assert!(tuned.iter().all(|[_, at_last]| !at_last), "{tuned:?}");
        }
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("is gone"), "{messages:?}");
    }

    fn where_one_choice_is_promised_for_the_run_it_is_kept(mpi: Mpi) {
        let site = Site::published(mpi);
        let off = site.path().join("OFF");
        let (log, messages) = switched(&site, ["create", &off.to_string_lossy()], "run");
        let tuned = tuned(&log[0]);
        assert!(tuned.iter().all(|of| *of == [true, true]), "{tuned:?}");
        assert_eq!(messages, Vec::<String>::new());
    }
}
