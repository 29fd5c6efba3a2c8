//! Steering is real, leaves `default` as it was, and costs the program no communicator.

use std::collections::BTreeSet;

use colltune_core::catalogue::{self, Facts, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, Mpi, fingerprints_of, folder, job, on_each_library, own_forcing, read_log, traces,
};

/// Sizes on both sides of what the libraries' own choices depend on.
const COUNTS: [&str; 4] = ["1", "600", "5000", "60000"];
/// Additions of two numbers have one order; of three, few.
const RANKS: u32 = 4;

/// One line of `rounding`: collective, number of floats, hash of the result's bits.
type Fingerprint = (String, u64, String);

fn fingerprints(job: Job, rounds: &str, counts: &[&str]) -> Vec<Fingerprint> {
    let arguments: Vec<&str> = std::iter::once(rounds)
        .chain(counts.iter().copied())
        .collect();
    let outcome = job.run("rounding", &arguments);
    outcome
        .succeeds()
        .claim(outcome.messages().is_empty(), "the shim has a message");
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some((words.next()?, words.next()?.parse().ok()?, words.next()?))
    };
    let lines: Vec<_> = outcome.stdout.lines().filter_map(line).collect();
    outcome.claim(
        lines.len() == 2 * counts.len() * rounds.parse::<usize>().unwrap_or(0),
        "fingerprints are missing",
    );
    lines
}

/// That the calls which ran `default` in an exploring job have the bare library's fingerprint.
fn default_stays_itself(mpi: Mpi, settings: &[(&str, &str)]) {
    let with = |job: Job| {
        settings
            .iter()
            .fold(job.mpi(mpi), |job, (name, value)| job.env(name, value))
    };
    let bare: BTreeSet<_> = fingerprints(with(job(RANKS)), "1", &COUNTS)
        .into_iter()
        .collect();
    let db = folder();
    let log = db.path().join("log");
    let rounds = if mpi == Mpi::OpenMpi { "40" } else { "12" };
    let tuned = with(job(RANKS))
        .preload()
        .db(db.path())
        .mode("explore")
        .seed(3)
        .log(&log)
        .env("COLLTUNE_SETUP_AFTER", "1");
    let tuned = fingerprints(tuned, rounds, &COUNTS);
    let calls = &read_log(&log, 1)[0];
    assert_eq!(calls.len(), tuned.len());
    let mut n_default = 0;
    for (call, found) in calls.iter().zip(&tuned) {
        assert_eq!(
            (call.collective.as_str(), call.bytes),
            (found.0.as_str(), 4 * found.1)
        );
        if call.variant == "default" {
            n_default += 1;
            assert!(
                bare.contains(found),
                "{settings:?}: default of {} with {} floats adds in another order",
                found.0,
                found.1
            );
        }
    }
    assert!(n_default >= 8, "only {n_default} calls ran default");
}

/// Native variants with the bytes of a call that each can run, in rounds that have one of each collective at most, so
/// that one job forces them all. Those that run other collectives inside, which would be forced as well, have rounds of
/// their own.
fn rounds(mpi: Mpi) -> Vec<Vec<(Variant, u64)>> {
    let mut rounds: Vec<Vec<(Variant, u64)>> = Vec::new();
    let mut alone = Vec::new();
    for collective in Collective::ALL {
        let mut algorithms = BTreeSet::new();
        let mut next = 0;
        for variant in catalogue::variants(mpi.library(), collective) {
            let applies = |bytes: u64| variant.applies(&Facts::usual(collective, bytes, RANKS, 1));
            let Some(bytes) = [65_536, 4 << 20].into_iter().find(|bytes| applies(*bytes)) else {
                continue;
            };
            // One segment size of each algorithm will do; results.rs runs them all.
            let segmented = variant.name.segsize.is_some();
            let algorithm = (variant.name.algorithm.clone(), segmented);
            if variant.steering == Steering::None || !algorithms.insert(algorithm) {
                continue;
            }
            if matches!(variant.steering, Steering::OpenMpi { alone: true, .. }) {
                alone.push(vec![(variant, bytes)]);
                continue;
            }
            if next == rounds.len() {
                rounds.push(Vec::new());
            }
            rounds[next].push((variant, bytes));
            next += 1;
        }
    }
    rounds.extend(alone);
    rounds
}

on_each_library! {
    /// The same messages in the same sizes between the same ranks, and the same rounding. The
    /// negative control is in it: the variants of a collective are not all alike.
    fn forced_variants_are_what_the_library_itself_runs_under_that_name(mpi: Mpi) {
        let mut seen = Collective::ALL.map(|_| Vec::new());
        for round in rounds(mpi) {
            let cases: Vec<_> = round.iter().map(|(variant, bytes)| (variant.collective, *bytes)).collect();
            let forces: Vec<_> = round.iter().map(|(variant, _)| format!("{}={}", variant.collective, variant.name)).collect();
            let ours = fingerprints_of(job(RANKS).mpi(mpi).preload().force(&forces.join(";")), &cases, 1);
            let own = round.iter().fold(job(RANKS).mpi(mpi), |job, (variant, _)| own_forcing(job, variant));
            let own = fingerprints_of(own, &cases, 1);
            for (((collective, bytes), force), (ours, own)) in cases.iter().zip(&forces).zip(ours.into_iter().zip(own)) {
                assert_eq!(ours, own, "{force} with {bytes} bytes");
                seen[collective.index()].push(ours);
            }
        }
        for (collective, seen) in Collective::ALL.iter().zip(&seen) {
            let different: BTreeSet<_> = seen.iter().collect();
            // Where the library has one algorithm for such calls, there is nothing to tell apart.
            assert!(seen.len() < 2 || different.len() >= 2 && 2 * different.len() >= seen.len(), "{collective}: {} fingerprints of {} variants show little", different.len(), seen.len());
        }
    }

    fn default_is_the_librarys_own_choice_while_others_are_steered(mpi: Mpi) {
        default_stays_itself(mpi, &[]);
    }

    fn default_keeps_what_the_user_set(mpi: Mpi) {
        match mpi {
            Mpi::OpenMpi => {
                // Dormant: without dynamic rules the library ignores it.
                default_stays_itself(mpi, &[("OMPI_MCA_coll_tuned_allreduce_algorithm", "1"), ("OMPI_MCA_coll_tuned_reduce_algorithm", "3")]);
                default_stays_itself(
                    mpi,
                    &[("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"), ("OMPI_MCA_coll_tuned_allreduce_algorithm", "4"), ("OMPI_MCA_coll_tuned_reduce_algorithm", "1")],
                );
            }
            _ => default_stays_itself(
                mpi,
                &[("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "reduce_scatter_allgather"), ("MPIR_CVAR_REDUCE_INTRA_ALGORITHM", "binomial"), ("MPIR_CVAR_DEVICE_COLLECTIVES", "none")],
            ),
        }
    }

    /// One of ours, with the ranks of the world, carries what our own algorithms send.
    fn communicators_alive_at_once_are_as_many_as_without_the_shim_but_for_one(mpi: Mpi) {
        let n = if mpi == Mpi::OpenMpi { "1500" } else { "3000" };
        let bare = job(2).mpi(mpi).run("many", &["alive", n, "9"]);
        bare.succeeds();
        let db = folder();
        let tuned = job(2).mpi(mpi).preload().db(db.path()).seed(1).run("many", &["alive", n, "9"]);
        tuned.succeeds().claim(tuned.messages().is_empty(), "the shim has a message");
        let alive = |stdout: &str| stdout.strip_suffix(" alive\nok\n").and_then(|number| number.parse::<u64>().ok());
        let (bare, own) = (alive(&bare.stdout), alive(&tuned.stdout));
        tuned.claim(bare.is_some() && own.map(|own| own + 1) >= bare, &format!("{own:?} alive, {bare:?} without the shim"));
    }

    fn freed_communicators_leave_nothing_behind(mpi: Mpi) {
        let db = folder();
        // What communicators cost that are gone after a few calls would end exploring.
        let tuned = job(2).mpi(mpi).preload().db(db.path()).seed(1).env("COLLTUNE_EXPLORE_BUDGET", "1");
        let outcome = tuned.env("COLLTUNE_RECORDS_PER_RUN", "100000").run("many", &["loop", "5000", "20"]);
        outcome.succeeds().prints("ok\n").claim(outcome.messages().is_empty(), "the shim has a message");
        for line in outcome.stderr.lines().filter_map(|line| line.strip_prefix("grew ")) {
            let kib: i64 = line.parse().expect("a number of KiB");
            outcome.claim(kib < 8 * 1024, "a rank grew by more than 8 MiB over 4,000 communicators");
        }
        // Steering communicators come and go with the program's: the last ones are still steered.
        let trace = &traces(db.path())[0];
        let native = trace.records.iter().filter(|record| record.comm > 4_900 && trace.variant(record) != "default").count();
        assert!(native > 100, "{native} native calls on the last hundred communicators");
    }

    fn attribute_callbacks_and_error_handlers_are_the_programs_own(mpi: Mpi) {
        let bare = job(2).mpi(mpi).run("attributes", &[]);
        bare.succeeds().claim(bare.stdout.contains("handlers same\nok"), "the program does not do what it should");
        for (mode, setup_after) in [("explore", "1"), ("explore", "8"), ("record", "8")] {
            let db = folder();
            let tuned = job(2).mpi(mpi).preload().db(db.path()).mode(mode).seed(2).env("COLLTUNE_SETUP_AFTER", setup_after).run("attributes", &[]);
            tuned.succeeds().prints(&bare.stdout).claim(tuned.messages().is_empty(), "the shim has a message");
        }
    }
}

/// MPICH reads its control variables at every call: between two calls they hold the user's values.
#[test]
fn mpich_control_variables_hold_the_users_values_between_calls() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    let users = [
        ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling"),
        ("MPIR_CVAR_BCAST_DEVICE_COLLECTIVE", "0"),
    ];
    for (settings, arguments) in [(&[][..], &[][..]), (&users[..], &[]), (&[], &["set"])] {
        let with = |job: Job| {
            settings
                .iter()
                .fold(job.mpi(mpi), |job, (name, value)| job.env(name, value))
        };
        let bare = with(job(2)).run("control_variables", arguments);
        bare.succeeds();
        let lines = bare.stdout.lines().count();
        let own = if arguments.is_empty() { 0 } else { 4 };
        assert_eq!(lines, 11 + own, "what the program sets is what it reads");
        let db = folder();
        let tuned = with(job(2))
            .preload()
            .db(db.path())
            .seed(1)
            .env("COLLTUNE_SETUP_AFTER", "1")
            .run("control_variables", arguments);
        tuned.succeeds().prints(&bare.stdout).is_silent();
    }
}

/// A rules file wins over what the shim could force, so Open MPI is not steered beside one.
#[test]
fn a_rules_file_of_the_users_stays_in_force() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let rules = folder();
    let file = rules.path().join("rules");
    // Allreduce (2) on any communicator: basic linear (1) up to 2,000 bytes, ring (4) above.
    std::fs::write(&file, "1\n2\n1\n1\n2\n0 1 0 0\n2000 4 0 0\n").unwrap();
    let file = file.to_str().unwrap();
    let settings = [
        ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
        ("OMPI_MCA_coll_tuned_dynamic_rules_filename", file),
    ];
    default_stays_itself(mpi, &settings);
    let bare = fingerprints(job(RANKS).mpi(mpi), "1", &COUNTS);
    let ruled = fingerprints(
        settings
            .iter()
            .fold(job(RANKS).mpi(mpi), |job, (name, value)| {
                job.env(name, value)
            }),
        "1",
        &COUNTS,
    );
    assert_ne!(
        bare, ruled,
        "the rules change nothing, so the claim would be empty"
    );
}
