//! The libraries of PyPI: Open MPI 5.0, MPICH 5.0 through both of its binary interfaces, Intel MPI.
//! Their steering is real, and `default` stays what it is. Where they cannot be installed, tests are
//! counted as skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use colltune_core::catalogue::{self, Facts, Steering};
use colltune_core::collective::Collective;
use colltune_tests::{
    Fingerprint, Job, Mpi, assert_ranks_agree, colltune, fingerprint_of, folder, is_long, job,
    on_each_library, own_forcing, program, read_log, target_folder, tool, traces,
};

const RANKS: u32 = 4;

/// Every native algorithm of the collectives, forced by the shim and by the user's own settings: the
/// same messages and the same rounding. Algorithms that can be distinguished are counted.
fn natives_are_what_the_library_runs(
    mpi: Mpi,
    collectives: &[Collective],
    job_variables: &[(&str, &str)],
) {
    let job = || {
        let job = job(RANKS).mpi(mpi);
        job_variables
            .iter()
            .fold(job, |job, (name, value)| job.env(name, value))
    };
    for &collective in collectives {
        let mut seen: Vec<Fingerprint> = Vec::new();
        let mut algorithms = BTreeSet::new();
        for variant in catalogue::variants(mpi.library(), collective) {
            let applies = |bytes: u64| variant.applies(&Facts::usual(collective, bytes, RANKS, 1));
            let Some(bytes) = [65_536, 4 << 20].into_iter().find(|bytes| applies(*bytes)) else {
                continue;
            };
            if variant.steering == Steering::None
                || !algorithms.insert(variant.name.algorithm.clone())
            {
                continue;
            }
            let force = format!("{collective}={}", variant.name);
            let ours = fingerprint_of(job().preload().force(&force), collective, bytes, 1);
            let own = fingerprint_of(own_forcing(job(), &variant), collective, bytes, 1);
            assert_eq!(ours, own, "{force} with {bytes} bytes");
            seen.push(ours);
        }
        let different: BTreeSet<_> = seen.iter().collect();
        assert!(
            different.len() >= 2 && 2 * different.len() >= seen.len(),
            "{collective}: {} fingerprints of {} variants show little",
            different.len(),
            seen.len()
        );
    }
}

fn collectives<'a>(short: &'a [Collective], long: &'a [Collective]) -> &'a [Collective] {
    if is_long() { long } else { short }
}

const MOVES_AND_SUMS: [Collective; 5] = [
    Collective::Allgather,
    Collective::Bcast,
    Collective::Allreduce,
    Collective::Reduce,
    Collective::Alltoall,
];

#[test]
fn open_mpi_5_runs_the_forced_algorithms_although_han_stands_above_them() {
    let Some(mpi) = Mpi::OpenMpi5.installed() else {
        return;
    };
    let short = [Collective::Allgather];
    natives_are_what_the_library_runs(mpi, collectives(&short, &MOVES_AND_SUMS), &[]);
}

#[test]
fn mpich_5_runs_the_forced_algorithms() {
    let Some(mpi) = Mpi::Mpich5.installed() else {
        return;
    };
    let error = [("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")];
    let short = [Collective::Allreduce];
    natives_are_what_the_library_runs(mpi, collectives(&short, &MOVES_AND_SUMS), &error);
}

/// A job that `colltune run` starts with these options.
fn tuned(mpi: Mpi, n_ranks: u32, options: &[&str]) -> Job {
    let command = colltune();
    let mut words = vec![command.to_str().expect("a path in UTF-8"), "run"];
    words.extend(options);
    words.push("--");
    let job = job(n_ranks).mpi(mpi).prefix(&words);
    job.env("COLLTUNE_LIB", target_folder())
}

/// What variants ran for each collective, of several ranks' equal logs.
fn ran(log: &Path, n_ranks: u32) -> BTreeMap<String, BTreeSet<String>> {
    let log = read_log(log, n_ranks);
    assert_ranks_agree(&log);
    let mut ran = BTreeMap::<String, BTreeSet<String>>::new();
    for call in &log[0] {
        let variants = ran.entry(call.collective.clone()).or_default();
        variants.insert(call.variant.clone());
    }
    ran
}

#[test]
fn a_program_on_the_standard_binary_interface_is_steered_by_the_third_build() {
    let Some(mpi) = Mpi::Standard.installed() else {
        return;
    };
    let error = ("MPIR_CVAR_COLLECTIVE_FALLBACK", "error");
    natives_are_what_the_library_runs(mpi, &[Collective::Allgatherv], &[error]);
    let files = folder();
    let [db, log] = ["db", "log"].map(|name| files.path().join(name));
    let calls = format!("calls:{}", log.display());
    let options = ["--db", db.to_str().unwrap(), "--seed", "5", "--log", &calls];
    let outcome = tuned(mpi, 2, &options).run("collectives", &["2"]);
    outcome.succeeds().prints("ok\n").is_silent();
    let ran = ran(&log, 2);
    for collective in ["allreduce", "bcast", "allgather", "reduce"] {
        let of_each = |family: &str| ran[collective].iter().any(|name| name.starts_with(family));
        assert!(
            of_each("native:") && of_each("node:"),
            "{collective}: {:?}",
            ran[collective]
        );
    }
}

/// Open MPI 5 as a user would tune it.
#[test]
fn runs_on_open_mpi_5_are_recorded_learned_from_and_exploited() {
    let Some(mpi) = Mpi::OpenMpi5.installed() else {
        return;
    };
    record_learn_exploit(mpi);
}

fn record_learn_exploit(mpi: Mpi) {
    let files = folder();
    let db = files.path().join("db");
    let db = db.to_str().unwrap();
    for seed in ["1", "2"] {
        let outcome = tuned(mpi, 2, &["--db", db, "--seed", seed]).run("collectives", &["3"]);
        outcome.succeeds().prints("ok\n").is_silent();
    }
    let trained = Command::new(colltune())
        .args(["train", "--db", db])
        .output();
    let trained = trained.expect("colltune starts");
    let text = [trained.stdout, trained.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(trained.status.success(), "{text}");
    let key = mpi.library().to_string();
    assert!(
        text.contains(&format!("{key}: generation 1 from 2 runs")),
        "{text}"
    );
    let outcome = tuned(mpi, 2, &["--db", db, "--mode", "exploit"]).run("collectives", &["2"]);
    outcome.succeeds().prints("ok\n").is_silent();
}

/// One line of `rounding` with few ranks: the additions' order shows the algorithm.
fn rounding(job: Job) -> String {
    let outcome = job.run("rounding", &["1", "600", "5000"]);
    outcome.succeeds();
    outcome.stdout.clone()
}

#[test]
fn intel_mpi_is_told_the_algorithms_of_a_run_before_it_begins() {
    let Some(mpi) = Mpi::Intel.installed() else {
        return;
    };
    let mut seen = BTreeSet::new();
    for (name, preset) in [("ring", "8"), ("recursive_doubling", "1")] {
        let force = format!("allreduce=native:{name}");
        let ours = rounding(tuned(mpi, RANKS, &["--force", &force]));
        let own = rounding(job(RANKS).mpi(mpi).env("I_MPI_ADJUST_ALLREDUCE", preset));
        assert_eq!(ours, own, "{force}");
        seen.insert(ours);
    }
    assert_eq!(seen.len(), 2, "both add in one order: this shows nothing");
}

#[test]
fn what_intel_mpi_was_told_labels_the_samples() {
    let Some(mpi) = Mpi::Intel.installed() else {
        return;
    };
    let files = folder();
    let db = files.path().join("db");
    let run = |seed: &str, own: Option<&str>| {
        let log = files.path().join(format!("log-{seed}-{}", own.is_some()));
        let calls = format!("calls:{}", log.display());
        let options = [
            "--db",
            db.to_str().unwrap(),
            "--seed",
            seed,
            "--log",
            &calls,
        ];
        let job = tuned(mpi, 2, &options).env("COLLTUNE_SETUP_AFTER", "1");
        let job = own.map_or(job.clone(), |own| job.env("I_MPI_ADJUST_ALLREDUCE", own));
        job.run("collectives", &["2"])
            .succeeds()
            .prints("ok\n")
            .is_silent();
        log
    };
    let mut told = BTreeSet::new();
    for seed in ["1", "2"] {
        let log = run(seed, None);
        // Each size has one label beside those of our own families; `default` where nothing applies.
        let mut of_size = BTreeMap::<(String, u64), BTreeSet<String>>::new();
        for call in read_log(&log, 2)
            .remove(0)
            .into_iter()
            .filter(|call| call.ppn == 2)
        {
            let library = call.variant.starts_with("native:");
            let labels = of_size
                .entry((call.collective, call.cell.unwrap_or(0)))
                .or_default();
            labels.extend(library.then_some(call.variant));
        }
        assert!(
            of_size.values().all(|labels| labels.len() <= 1),
            "{of_size:?}"
        );
        told.extend(of_size.into_values().flatten());
        ran(&log, 2);
    }
    assert!(told.len() > 10, "{told:?}");
    let labelled = traces(&db);
    assert!(labelled.iter().all(|trace| {
        trace
            .records
            .iter()
            .any(|record| trace.variant(record).starts_with("native:"))
    }));
    // The user's own choice is the library's default, whatever it is.
    let own = ran(&run("1", Some("3")), 2);
    assert!(
        own["allreduce"]
            .iter()
            .all(|name| !name.starts_with("native:")),
        "{own:?}"
    );
    assert!(
        own.values()
            .flatten()
            .any(|name| name.starts_with("native:")),
        "{own:?}"
    );
}

/// Open MPI's own choice is that of the component with the highest priority, which a user or a maker may change.
#[test]
fn status_says_which_component_of_open_mpi_the_default_is_of() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    for (told, component) in [("0", "tuned"), ("90", "han")] {
        let db = folder();
        let job = job(2).mpi(mpi).preload().db(db.path()).mode("explore");
        let job = job.env("OMPI_MCA_coll_han_priority", told);
        job.run("frequent", &["500", "10"]).succeeds();
        for command in ["train", "status"] {
            let words = ["60", &colltune().to_string_lossy(), command, "--db"].map(str::to_owned);
            let output = std::process::Command::new("timeout")
                .args(words)
                .arg(db.path())
                .output();
            let output = output.expect("timeout starts");
            assert!(output.status.success());
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let sentence = format!("default is what the library's {component} chooses");
            assert!(command == "train" || text.contains(&sentence), "{text}");
        }
    }
}

on_each_library! {
    /// Arguments may mean something else there.
    fn an_unknown_major_version_runs_untuned_and_is_named(mpi: Mpi) {
        let newer = |job: Job| job.preload_tool(tool(mpi, "newer_library"));
        let db = folder();
        let (log, place) = (db.path().join("log"), db.path().join("db"));
        let named = if mpi.is_openmpi() { "Open MPI 6.0" } else { "MPICH 6.0" };
        let said = [named, "up to version 5", "untuned"];
        let job = newer(job(2).mpi(mpi).preload()).db(&place).log(&log);
        job.run("frequent", &["20", "8"]).succeeds().prints("ok\n").says(&said);
        assert!(!log.join("rank-0.jsonl").exists(), "a call was tuned");
        let options = ["--strict", "--db", place.to_str().unwrap()];
        let strict = newer(tuned(mpi, 2, &options)).run("frequent", &["20", "8"]);
        strict.claim(strict.code == Some(1), "it is not refused");
        strict.claim(strict.stderr.contains(named) && strict.stderr.contains("--strict refuses"), "nobody says why");
    }
}

/// MPICH from 5.0.1 on may keep what begins with PMPI in `libpmpi_abi.so`, which a host may load for itself.
#[test]
fn a_library_whose_profiling_names_are_apart_and_in_nobodys_sight_is_tuned() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    let scratch = folder();
    let at = |name: &str| scratch.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("mpi/apart_host.c");
    let built = |compiler: &str, words: &[&Path]| {
        let output = Command::new(compiler).args(words).output();
        let output = output.unwrap_or_else(|error| panic!("{compiler}: {error}"));
        assert!(output.status.success(), "{output:?}");
    };
    // The wrapper would link it with the library.
    built(
        &mpi.compiler(),
        &["-c".as_ref(), "-o".as_ref(), &at("host.o"), &source],
    );
    built(
        "cc",
        &["-o".as_ref(), &at("host"), &at("host.o"), "-ldl".as_ref()],
    );
    let linked = Command::new("ldd").arg(program(mpi, "frequent")).output();
    let linked = String::from_utf8(linked.expect("ldd starts").stdout).unwrap();
    let own = linked.lines().find_map(|line| {
        let (name, file) = line.split_once("=>")?;
        name.contains("libmpich")
            .then(|| file.split_whitespace().next())?
    });
    std::fs::copy(own.expect("MPICH's library"), at("libpmpi_abi.so.0")).unwrap();
    let host = at("host").to_string_lossy().into_owned();
    let library = at("libpmpi_abi.so.0").to_string_lossy().into_owned();
    job(2)
        .mpi(mpi)
        .run(&host, &[&library])
        .succeeds()
        .prints("ok\n");
    let log = at("log");
    std::fs::create_dir(at("db")).unwrap();
    let job = job(2)
        .mpi(mpi)
        .preload()
        .db(at("db"))
        .seed(3)
        .env("COLLTUNE_SETUP_AFTER", "1");
    let outcome = job.log(&log).run(&host, &[&library]);
    outcome.succeeds().prints("ok\n").is_silent();
    assert!(ran(&log, 2)["allreduce"].len() > 1, "no call was steered");
}
