//! Jobs take what is in force, or on trial, and programs that the site leaves out take nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use colltune_core::site::{Canary, Rollout, SiteState};
use colltune_tests::{
    Mpi, Outcome, Part, copy_to_run, folder, job, on_a_library, on_each_library, open_to_all, part,
    program,
};

use super::{FIRST, RANKS, SECOND, Site, logged};

/// A name of a job that takes part in a trial of version 2, or not.
fn job_name(share: f64, rollout: Rollout) -> String {
    let state = SiteState {
        current: 1,
        canary: Some(Canary { version: 2, share }),
        ..SiteState::default()
    };
    let mut numbers = 1000..;
    let number = numbers.find(|number| {
        let taken = state.version_of(&format!("OAR_JOB_ID={number}"));
        taken.unwrap().rollout == rollout
    });
    number.unwrap().to_string()
}

/// A copy of a program under another name.
fn renamed(mpi: Mpi, name: &str, site: &Site) -> PathBuf {
    let copy = site.scratch.path().join(name);
    copy_to_run(&program(mpi, "frequent"), &copy);
    copy
}

fn of(program: &str) -> Part {
    part(1, program, &["60", "1"])
}

on_each_library! {
    fn jobs_run_what_is_in_force_and_one_command_takes_it_back(mpi: Mpi) {
        let site = Site::published(mpi);
        site.runs(site.job(), FIRST);
        site.publish(SECOND, &[]);
        site.runs(site.job(), SECOND);
        let said = site.tells(&["--rollback"]);
        assert!(said.contains("version 1 is in force instead of 2"), "{said}");
        site.runs(site.job(), FIRST);
        site.tells(&["--rollback", "--to", "2"]);
        site.runs(site.job(), SECOND);
        assert!(!site.path().join("incoming").exists(), "jobs only read");
    }

    /// Nothing is left of it, though simply the library's choice was to run: here of all calls before the set-up, at which
    /// ranks that had counted otherwise would meet in other calls.
    fn a_call_that_one_rank_alone_makes_wrong_is_none_whatever_its_handler_does(mpi: Mpi) {
        let site = Site::published(mpi);
        let told = |outcome: &Outcome| {
            let mut lines: Vec<_> = outcome.stdout.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        for way in ["throw", "jump", "call"] {
            let arguments = [way, "lone", "20"];
            let bare = job(RANKS).mpi(mpi).run("unwinding", &arguments);
            bare.succeeds();
            assert!(bare.stdout.contains("ok\n"), "{}", bare.stdout);
            for after in ["7", "12"] {
                let tuned = site.job().env("COLLTUNE_SETUP_AFTER", after);
                let tuned = tuned.run("unwinding", &arguments);
                tuned.succeeds().is_silent();
                assert_eq!(told(&tuned), told(&bare), "{}", tuned.command);
            }
        }
    }
}

on_a_library! {
    fn whoever_may_read_the_folder_can_run_from_it_whatever_the_publishers_umask_is(mpi: Mpi) {
        let mut site = Site::new(mpi);
        site.umask = "077";
        site.publish(FIRST, &[]);
        let shared = folder();
        let [shim, program] = open_to_all([&mpi.shim(), &program(mpi, "frequent")], shared.path());
        let job = job(RANKS).mpi(mpi).preload_shim(shim).db(site.path()).mode("exploit").seed(1);
        if let Some(job) = job.as_nobody() {
            let program = program.to_str().unwrap();
            let (variants, outcome) = logged(job, |job| job.run(program, &["60", "1"]));
            outcome.succeeds().prints("ok\n").is_silent();
            assert_eq!(variants, BTreeSet::from([FIRST.to_owned()]));
        }
    }

    fn a_share_of_the_jobs_tries_a_version_and_a_promotion_makes_it_all_jobs(mpi: Mpi) {
        let site = Site::published(mpi);
        site.publish(SECOND, &["--canary", "30%"]);
        let named = |rollout| site.job().env("OAR_JOB_ID", job_name(0.3, rollout));
        site.runs(named(Rollout::Canary), SECOND);
        site.runs(named(Rollout::InForce), FIRST);
        site.tells(&["--promote"]);
        site.runs(named(Rollout::InForce), SECOND);
        site.tells(&["--rollback"]);
        site.publish(SECOND, &["--canary", "30%"]);
        // The trial alone ends.
        site.tells(&["--rollback"]);
        assert_eq!(site.listed()["in_force"], 1);
        site.runs(named(Rollout::Canary), FIRST);
    }

    fn programs_that_the_site_leaves_out_are_not_tuned_and_say_nothing(mpi: Mpi) {
        let site = Site::published(mpi);
        for (lists, is_tuned) in [
            ("programs_deny = [\"freq*\"]", false),
            ("programs_allow = [\"gmx*\", \"lmp\"]", false),
            ("programs_allow = [\"f?equent\"]\nprograms_deny = [\"/nowhere/*\"]", true),
        ] {
            site.write("colltune.toml", lists);
            let (variants, outcome) = site.ran(site.job());
            outcome.is_silent();
            assert_eq!(!variants.is_empty(), is_tuned, "{lists}");
        }
        // For one job its user decides.
        let (variants, _) = site.ran(site.job().env("COLLTUNE_PROGRAMS_ALLOW", "gmx*"));
        assert!(variants.is_empty());
        // A strict job fails and says why.
        let job = site.job().env("COLLTUNE_PROGRAMS_ALLOW", "gmx*").env("COLLTUNE_STRICT", "1");
        let outcome = job.run("frequent", &["60", "1"]);
        outcome.exits(1);
        for part in ["programs_allow", "untuned", "--strict refuses"] {
            let is_said = outcome.messages().iter().any(|one| one.contains(part));
            outcome.claim(is_said, part);
        }
    }

    fn a_job_in_which_one_program_is_left_out_is_not_tuned_at_all(mpi: Mpi) {
        let site = Site::published(mpi);
        site.write("colltune.toml", "programs_deny = [\"left_out\"]\n");
        let programs = ["left_out", "right"].map(|name| renamed(mpi, name, &site));
        let [out, right] = programs.each_ref().map(|file| file.to_string_lossy().into_owned());
        for parts in [[of(&out), of(&right)], [of(&right), of(&out)], [of(&right), of(&right)]] {
            let (variants, outcome) = logged(site.job(), |job| job.run_parts(&parts));
            outcome.succeeds().prints("ok\n").is_silent();
            let is_tuned = !outcome.command.contains("left_out");
            let expected = BTreeSet::from_iter(is_tuned.then(|| FIRST.to_owned()));
            assert_eq!(variants, expected, "{}", outcome.command);
        }
        assert_eq!(RANKS, 2, "one of each");
    }

    fn what_explorers_sum_up_is_not_written_by_everybodys_jobs(mpi: Mpi) {
        let site = Site::published(mpi);
        let file = site.scratch.path().join("runs.jsonl");
        let summary = format!("summary = \"{}\"\n", file.display());
        site.write("versions/000001/colltune.toml", &summary);
        site.runs(site.job(), FIRST);
        assert!(!file.exists());
        // The site's own word.
        site.write("colltune.toml", &summary);
        site.runs(site.job(), FIRST);
        assert!(file.exists());
    }

    fn who_asks_for_another_mode_is_told_that_jobs_only_read(mpi: Mpi) {
        let site = Site::published(mpi);
        let (variants, outcome) = site.ran(site.job().mode("explore"));
        outcome.says(&["COLLTUNE_MODE=explore", "site folder", "exploit"]);
        assert_eq!(variants, BTreeSet::from([FIRST.to_owned()]));
        site.runs_untuned(site.job().mode("record"), &["COLLTUNE_MODE=record"]);
        site.ran(site.job().mode("off")).1.is_silent();
        assert!(!site.path().join("incoming").exists());
    }
}
