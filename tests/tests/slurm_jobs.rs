//! Jobs of Slurm as a centre has them: batch scripts, arrays, several components, jobs that are killed and started again.

use std::path::Path;
use std::process::{Command, Output};

use colltune_tests::{
    Mpi, Slurm, colltune, folder, is_long, open_traces, program, read_trace, target_folder, traces,
};

/// The program that makes so many allreduces, and a broadcast after each tenth of them.
fn frequent(mpi: Mpi, calls: &str) -> String {
    format!("{} {calls} 10", program(mpi, "frequent").display())
}

/// How Slurm starts ranks of this library.
fn plugin(mpi: Mpi) -> &'static str {
    match mpi.is_openmpi() {
        true => "--mpi=pmix",
        false => "--mpi=pmi2",
    }
}

/// Quiet: it would say that it waits where the step before has not ended for Slurm.
fn srun(mpi: Mpi) -> String {
    format!("srun -Q {}", plugin(mpi))
}

/// The library's own launcher, in an allocation.
fn mpirun(mpi: Mpi) -> String {
    match mpi.is_openmpi() {
        true => format!("{} --oversubscribe", mpi.launcher()),
        false => mpi.launcher(),
    }
}

/// `colltune run` on this database.
fn run(db: &Path) -> String {
    format!("{} run --db {} --", colltune().display(), db.display())
}

/// The command, which ends some time, on a busy machine, too.
fn command(slurm: &Slurm, variables: &[(&str, &str)], words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "1", "600"])
        .arg(colltune())
        .args(words)
        .env("SLURM_CONF", slurm.configuration())
        .env("COLLTUNE_LIB", target_folder())
        .env_remove("COLLTUNE_DB")
        .envs(variables.iter().copied());
    command.output().expect("timeout starts")
}

/// The runs that the ledger of a database knows: a state for each.
fn ledger(slurm: &Slurm, db: &Path) -> Vec<String> {
    let trained = command(slurm, &[], &["train", "--db", &db.to_string_lossy()]);
    let said = String::from_utf8_lossy(&trained.stderr).into_owned();
    assert!(trained.status.success(), "{said}");
    assert!(!db.join("quarantine").exists(), "{said}");
    let listed = command(slurm, &[], &["db", "list", "--db", &db.to_string_lossy()]);
    assert!(listed.status.success());
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    text.lines()
        .skip(1)
        .filter(|line| line.contains("openmpi-") || line.contains("mpich-"))
        .map(str::to_owned)
        .collect()
}

fn installed() -> impl Iterator<Item = Mpi> {
    Mpi::ALL.into_iter().filter_map(Mpi::installed)
}

#[test]
fn batch_scripts_start_tuned_jobs_by_the_librarys_launcher_and_by_srun() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in installed() {
        let db = folder();
        let run = run(db.path());
        let program = frequent(mpi, "500");
        let script = format!(
            "{run} {} -n 4 {program}\n{run} {} {program}",
            mpirun(mpi),
            srun(mpi)
        );
        let said = slurm.submit(&["-N2", "-n4"], &[], &script).ends();
        assert_eq!(said, "ok\nok\n", "{mpi:?}");
        let recorded = traces(db.path());
        let jobs: Vec<&str> = recorded
            .iter()
            .map(|trace| trace.header.job.as_str())
            .collect();
        // Two ranks of each job record where the nodes are one host.
        assert_eq!(jobs.len(), 4, "{mpi:?}");
        assert!(jobs[0] == jobs[1] && jobs[1] != jobs[2] && jobs[2] == jobs[3]);
        for trace in &recorded {
            assert_eq!(
                (trace.header.world_ranks, trace.header.machine.as_str()),
                (4, "tests")
            );
        }
        assert_eq!(ledger(&slurm, db.path()).len(), 2, "{mpi:?}");
    }
}

#[test]
fn outside_an_allocation_srun_and_salloc_are_followed_and_scripts_refused() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in installed() {
        let db = folder();
        let at = db.path().to_string_lossy().into_owned();
        let program = program(mpi, "frequent").to_string_lossy().into_owned();
        let plugin = plugin(mpi);
        let variables = [("OMPI_MCA_btl", "self,tcp"), ("SLURM_PMIX_FENCE", "ring")];
        let own = ["run", "--db", &at, "--"];
        let salloc = ["salloc", "-Q", "-N2", "-n4", "--overcommit"];
        // What takes a value only where it is glued to it stands before the program.
        let options = ["srun", "-N2", "-ln4", "--overcommit", plugin, "--nice"];
        for line in [
            &options[..],
            &[&salloc[..], &["srun", plugin, "--label"]].concat(),
        ] {
            let words = [&own[..], line, &[&program, "500", "10"]].concat();
            let output = command(&slurm, &variables, &words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{line:?}: {said}");
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "0: ok\n",
                "{line:?}: {said}"
            );
            assert!(!said.contains("colltune"), "{line:?}: {said}");
        }
        assert_eq!(traces(db.path()).len(), 4);
        let refused = command(&slurm, &[], &[&own[..], &["sbatch", "job.sh"]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(
            said.contains("in the script") && said.contains("colltune run"),
            "{said}"
        );
    }
}

#[test]
fn elements_of_an_array_share_a_database_that_none_of_them_found() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in installed() {
        let folder = folder();
        let db = folder.path().join("made by the first");
        let run = format!("{} run --db '{}' --", colltune().display(), db.display());
        let script = format!("{run} {} -n 2 {}", mpirun(mpi), frequent(mpi, "300"));
        let said = slurm.submit(&["--array=0-7", "-n2"], &[], &script).ends();
        assert_eq!(said, "ok\n".repeat(8), "{mpi:?}");
        let recorded = traces(&db);
        assert_eq!(recorded.len(), 16, "two ranks of each element");
        assert!(recorded.iter().all(|trace| !trace.records.is_empty()));
        assert_eq!(ledger(&slurm, &db).len(), 8, "{mpi:?}");
    }
}

#[test]
fn the_components_of_a_heterogeneous_job_are_one_world_that_is_tuned() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in installed() {
        let db = folder();
        let at = db.path().to_string_lossy().into_owned();
        let program = program(mpi, "frequent").to_string_lossy().into_owned();
        let plugin = plugin(mpi);
        let first = [
            "run", "--db", &at, "--", "srun", "-Q", plugin, "-n1", &program, "500", "10",
        ];
        let second = [":", "-n3", "--overcommit", &program, "500", "10"];
        let variables = [("OMPI_MCA_btl", "self,tcp"), ("SLURM_PMIX_FENCE", "ring")];
        let output = command(&slurm, &variables, &[&first[..], &second].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{mpi:?}: {said}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "ok\n",
            "{mpi:?}: {said}"
        );
        assert!(!said.contains("colltune"), "{mpi:?}: {said}");
        let recorded = traces(db.path());
        assert!(!recorded.is_empty() && recorded.iter().all(|one| one.header.world_ranks == 4));
    }
}

/// A job whose time is over: SIGTERM, then SIGKILL. What it recorded is learned from, and nothing stays locked.
#[test]
fn a_job_that_is_killed_in_mid_run_leaves_what_it_recorded_and_no_lock() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in installed() {
        let db = folder();
        let run = run(db.path());
        let script = format!("{run} {} {}", srun(mpi), frequent(mpi, "2000000000"));
        // Slurm counts minutes.
        let options: &[&str] = match is_long() {
            true => &["-N2", "-n4", "--time=2"],
            false => &["-N2", "-n4"],
        };
        let batch = slurm.submit(options, &[("COLLTUNE_EXPLORE_BUDGET", "1")], &script);
        batch.waits_until("records", || {
            let open = open_traces(db.path());
            open.len() == 2 && open.iter().all(|file| !read_trace(file).records.is_empty())
        });
        if !is_long() {
            batch.cancel();
        }
        let said = batch.ends();
        assert!(!said.contains("colltune:"), "{said}");
        let left = open_traces(db.path());
        assert_eq!((left.len(), traces(db.path()).len()), (2, 0), "{said}");
        // The next job does not mind.
        let script = format!("{run} {} {}", srun(mpi), frequent(mpi, "500"));
        assert_eq!(
            slurm
                .submit(&["-N2", "-n4"], &[], &script)
                .ends()
                .lines()
                .last(),
            Some("ok")
        );
        let at = db.path().to_string_lossy().into_owned();
        let trained = command(
            &slurm,
            &[("COLLTUNE_STALE_AFTER", "1s")],
            &["train", "--db", &at],
        );
        let said = String::from_utf8_lossy(&trained.stdout).into_owned();
        assert!(
            trained.status.success() && said.contains("took 4 traces"),
            "{said}"
        );
        assert!(!db.path().join("quarantine").exists());
        assert_eq!(ledger(&slurm, db.path()).len(), 2);
    }
}

#[test]
fn a_job_that_is_requeued_runs_as_another_job_of_the_ledger() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in installed() {
        let db = folder();
        let run = run(db.path());
        let (long, short) = (frequent(mpi, "2000000000"), frequent(mpi, "500"));
        let script = format!(
            "if [ -z \"$SLURM_RESTART_COUNT\" ]; then {run} {0} {long}; else {run} {0} {short}; fi",
            srun(mpi)
        );
        let batch = slurm.submit(&["-N2", "-n4", "--requeue"], &[], &script);
        batch.waits_until("begins", || open_traces(db.path()).len() == 2);
        batch.requeue();
        let said = batch.ends();
        assert_eq!(said.lines().last(), Some("ok"), "{said}");
        let (left, whole) = (open_traces(db.path()), traces(db.path()));
        assert_eq!((left.len(), whole.len()), (2, 2), "{said}");
        let first = read_trace(&left[0]).header.job;
        assert!(whole.iter().all(|trace| trace.header.job != first));
        assert_eq!(
            ledger(&slurm, db.path()).len(),
            1,
            "the first may still run"
        );
    }
}
