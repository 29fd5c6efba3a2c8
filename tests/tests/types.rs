//! Every predefined datatype of a library is what the library says that it is: ours move and combine all of them.

use std::path::Path;

use colltune_core::catalogue::{self, Facts};
use colltune_core::collective::Collective::{
    self, Allgather, Allreduce, Alltoall, Bcast, Reduce, ReduceScatterBlock, Scan,
};
use colltune_tests::{
    Job, LoggedCall, Mpi, assert_ranks_agree, folder, job, on_each_library, read_log,
};

const USED: [Collective; 7] = [
    Allreduce,
    Reduce,
    ReduceScatterBlock,
    Scan,
    Bcast,
    Allgather,
    Alltoall,
];
const FAMILIES: [&str; 3] = ["node:", "p2p:", "native:"];

fn n_ranks(mpi: Mpi) -> u32 {
    // MPICH spins, so that an odd rank costs more than it shows.
    if mpi.is_openmpi() { 3 } else { 2 }
}

/// For each collective a variant of a family that takes any message: of those in shared memory and the rings if there
/// is one.
fn of_family(mpi: Mpi, family: &str) -> Vec<(Collective, String)> {
    let one = |collective: Collective| {
        let variants = catalogue::variants(mpi.library(), collective);
        let names = variants.iter().filter(|variant| {
            let applies =
                |bytes| variant.applies(&Facts::usual(collective, bytes, n_ranks(mpi), 1));
            applies(3) && applies(20_000)
        });
        let names: Vec<_> = names
            .map(|variant| variant.name.to_string())
            .filter(|name| name.starts_with(family))
            .collect();
        let liked = |name: &&String| ["node:shm", "p2p:ring"].contains(&name.as_str());
        let name = names.iter().find(liked).or(names.first())?.clone();
        Some((collective, name))
    };
    USED.into_iter().filter_map(one).collect()
}

/// The output of `types.c` with these variants forced, and what each call ran.
fn forced(
    mpi: Mpi,
    variants: &[(Collective, String)],
    arguments: &[&str],
) -> (String, Vec<LoggedCall>) {
    let log = folder();
    let force: Vec<_> = variants
        .iter()
        .map(|(collective, name)| format!("{collective}={name}"))
        .collect();
    let tuned = plain(mpi)
        .preload()
        .force(&force.join(";"))
        .env("COLLTUNE_SETUP_AFTER", "1");
    let outcome = tuned.log(log.path()).run("types", arguments);
    outcome.succeeds();
    (outcome.stdout, calls(mpi, log.path()))
}

fn plain(mpi: Mpi) -> Job {
    job(n_ranks(mpi)).mpi(mpi).without_short_cuts()
}

fn calls(mpi: Mpi, log: &Path) -> Vec<LoggedCall> {
    let log = read_log(log, n_ranks(mpi));
    assert_ranks_agree(&log);
    log.into_iter().next().unwrap_or_default()
}

/// What differs, by lines: two outputs of 70 lines say little.
#[track_caller]
fn assert_same(ours: &str, bare: &str, what: &str) {
    for (ours, bare) in ours.lines().zip(bare.lines()) {
        assert_eq!(ours, bare, "{what}");
    }
    assert_eq!(ours.lines().count(), bare.lines().count(), "{what}");
}

fn every_type_is_what_it_is(mpi: Mpi) {
    let bare = plain(mpi).run("types", &["right"]);
    let bare = &bare.succeeds().stdout;
    assert!(bare.lines().count() > 55, "few types: {bare}");
    for family in FAMILIES {
        let variants = of_family(mpi, family);
        assert!(variants.len() > 2, "{family} {variants:?}");
        let (ours, calls) = forced(mpi, &variants, &["right"]);
        assert_same(&ours, bare, family);
        for call in calls {
            let variant = variants
                .iter()
                .find(|(collective, _)| collective.name() == call.collective);
            let ran = variant.is_none_or(|(_, name)| *name == call.variant);
            // What else decides than the type has tests elsewhere: MPICH's own choices, and few bytes.
            assert!(ran || family == "native:", "{family} {variant:?}: {call:?}");
        }
    }
}

fn refused_operations_stay_refused(mpi: Mpi) {
    let bare = plain(mpi).run("types", &["wrong"]);
    let bare = &bare.succeeds().stdout;
    assert!(bare.lines().count() > 100, "few errors: {bare}");
    for family in ["node:", "native:"] {
        let (ours, _) = forced(mpi, &of_family(mpi, family), &["wrong"]);
        assert_same(&ours, bare, family);
    }
}

on_each_library! {
    fn every_predefined_type_moves_and_combines_in_every_family_as_in_the_library(mpi: Mpi) {
        every_type_is_what_it_is(mpi);
    }

    fn operations_that_the_library_refuses_give_its_own_error(mpi: Mpi) {
        refused_operations_stay_refused(mpi);
    }
}
