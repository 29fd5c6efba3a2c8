//! Results are right, whatever runs the collectives.

use std::collections::BTreeSet;

use colltune_core::catalogue::{self, Facts, Variant};
use colltune_core::collective::Collective;
use colltune_tests::{Mpi, folder, job, on_each_library, read_log, traces};

/// The library's own variants; those of ours have tests of their own.
fn native(mpi: Mpi, collective: Collective) -> Vec<Variant> {
    let all = catalogue::variants(mpi.library(), collective);
    all.into_iter()
        .filter(|variant| variant.own.is_none())
        .collect()
}

/// Lists of forced variants that together name every variant of the library's own that so many ranks can run.
fn every_variant(mpi: Mpi, n_ranks: u32) -> Vec<String> {
    let names = Collective::ALL.map(|collective| {
        let mut variants = native(mpi, collective);
        variants.retain(|variant| variant.possible(n_ranks, 1, u64::MAX));
        variants
    });
    let longest = names.iter().map(Vec::len).max().unwrap_or(0);
    let pick = |place: usize| {
        let parts = names
            .iter()
            .filter_map(|of| of.get(place))
            .map(|variant| format!("{}={}", variant.collective, variant.name));
        parts.collect::<Vec<_>>().join(";")
    };
    (0..longest).map(pick).collect()
}

fn all_forced(mpi: Mpi, n_ranks: u32) {
    let mut seen = BTreeSet::new();
    for force in every_variant(mpi, n_ranks) {
        let log = folder();
        let outcome = job(n_ranks)
            .mpi(mpi)
            .preload()
            .force(&force)
            .log(log.path())
            .env("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")
            .run("collectives", &["1"]);
        outcome.succeeds().prints("ok\n");
        for call in &read_log(log.path(), n_ranks)[0] {
            let wanted = format!("{}={}", call.collective, call.variant);
            let forced = force.split(';').any(|part| part == wanted);
            outcome.claim(
                call.variant == "default" || forced,
                &format!("{wanted} ran, which nobody forced"),
            );
            seen.insert((call.collective.clone(), call.variant.clone()));
        }
    }
    // The world's largest messages are 32,768 elements of 8 bytes; collectives.c has all shapes of call.
    let most = |collective, in_place| Facts {
        in_place,
        ..Facts::usual(collective, 262_144, n_ranks, 1)
    };
    for variant in Collective::ALL.into_iter().flat_map(|c| native(mpi, c)) {
        // collectives.c has alltoall out of place, reduce out of place, allreduce and allgather both ways.
        let in_place_too = matches!(
            variant.collective,
            Collective::Allreduce | Collective::Allgather
        );
        let applies = variant.applies(&most(variant.collective, false))
            || (in_place_too && variant.applies(&most(variant.collective, true)));
        let ran = seen.contains(&(variant.collective.to_string(), variant.name.to_string()));
        assert!(
            ran || !applies,
            "{n_ranks} ranks: {}={} applies, but never ran under force",
            variant.collective,
            variant.name
        );
    }
}

on_each_library! {
    fn every_variant_is_right_on_two_ranks(mpi: Mpi) {
        all_forced(mpi, 2);
    }

    fn every_variant_is_right_on_three_ranks(mpi: Mpi) {
        all_forced(mpi, 3);
    }

    fn every_mode_and_seed_is_right(mpi: Mpi) {
        for (mode, seed) in [("explore", 1), ("explore", 2), ("explore", 3), ("record", 1), ("exploit", 1), ("off", 1)] {
            let db = folder();
            let n_ranks = if seed == 2 { 3 } else { 2 };
            let outcome = job(n_ranks).mpi(mpi).preload().db(db.path()).mode(mode).seed(seed).run("collectives", &["2"]);
            outcome.succeeds().prints("ok\n").is_silent();
            let records = matches!(mode, "explore" | "record");
            outcome.claim(traces(db.path()).is_empty() != records, "traces are left by explore and record alone");
        }
    }
}

#[test]
fn every_openmpi_variant_is_right_on_four_ranks() {
    if let Some(mpi) = Mpi::OpenMpi.installed() {
        all_forced(mpi, 4);
    }
}

/// With four ranks on two cores MPICH, which spins, is slow: one job, not one for each variant.
#[test]
fn exploring_mpich_is_right_on_four_ranks() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    let db = folder();
    let outcome = job(4)
        .mpi(mpi)
        .preload()
        .db(db.path())
        .seed(5)
        .env("COLLTUNE_SETUP_AFTER", "1")
        .env("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")
        .run("collectives", &["1"]);
    outcome.succeeds().prints("ok\n").is_silent();
}
