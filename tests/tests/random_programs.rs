//! Random MPI programs compute the same with the shim as without it, whatever runs their collectives.
//!
//! The programs are drawn by `tests/mpi/random_program.c`, which also checks floating-point sums
//! against a derived bound. A program is named by its seed, which every failure prints.

use std::collections::BTreeMap;

use colltune_core::catalogue::{self, Need};
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, Mpi, assert_ranks_agree, folder, job, on_each_library, read_log, runs_long,
};

const ALL_FAMILIES: &str = "native,node,p2p";

/// How a batch of programs is run with the shim.
#[derive(Clone, Debug)]
enum Way {
    Off,
    Record,
    Exploit,
    /// Drawn with this seed from these families.
    Explore(u64, &'static str),
    /// These variants wherever they apply.
    Force(String),
}

impl Way {
    fn set(&self, job: Job, db: &std::path::Path) -> Job {
        let job = job.env("COLLTUNE_SETUP_AFTER", "1");
        match self {
            Way::Off => job.db(db).mode("off"),
            Way::Record => job.db(db).mode("record"),
            Way::Exploit => job.db(db).mode("exploit"),
            Way::Explore(seed, families) => job
                .db(db)
                .mode("explore")
                .seed(*seed)
                .env("COLLTUNE_FAMILIES", families),
            Way::Force(force) => job.force(force),
        }
    }
}

/// The k-th variants of all collectives at once, of those that one node can run, for every k but that of `default`.
fn forced(mpi: Mpi) -> Vec<Way> {
    let columns = Collective::ALL.map(|collective| {
        let mut all = catalogue::variants(mpi.library(), collective);
        all.retain(|variant| !variant.needs.contains(&Need::Hierarchy));
        all
    });
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    (1..longest)
        .map(|k| {
            let kth = columns.iter().filter_map(|column| column.get(k));
            let parts: Vec<_> = kth
                .map(|variant| format!("{}={}", variant.collective, variant.name))
                .collect();
            Way::Force(parts.join(";"))
        })
        .collect()
}

/// The hash that each program prints, by its seed.
fn hashes(mpi: Mpi, job: Job, first: u64, programs: u64) -> BTreeMap<u64, String> {
    let outcome = job.mpi(mpi).without_short_cuts().run(
        "random_program",
        &[&first.to_string(), &programs.to_string()],
    );
    outcome.succeeds();
    let expected =
        |line: &str| line.starts_with("colltune: ") && line.contains(" is forced, but needs ");
    let all_expected = outcome.stderr.lines().all(expected);
    outcome.claim(
        all_expected,
        "stderr holds more than what force says of itself",
    );
    let lines = outcome.stdout.lines().map(|line| {
        let (seed, hash) = line.split_once(' ').unwrap_or((line, ""));
        outcome.claim(!hash.contains("off"), &format!("program {seed}:{hash}"));
        (seed.parse().unwrap_or(0), hash.to_owned())
    });
    let hashes: BTreeMap<_, _> = lines.collect();
    outcome.claim(hashes.len() as u64 == programs, "programs are missing");
    hashes
}

/// Runs a batch without the shim and with it; the number of calls that ran another variant than `default`.
fn same_with_and_without(mpi: Mpi, n_ranks: u32, first: u64, programs: u64, way: &Way) -> usize {
    let bare = hashes(mpi, job(n_ranks), first, programs);
    let db = folder();
    let log = db.path().join("log");
    // A variant that would silently be another one is an error, not a pass.
    let tuned = way
        .set(job(n_ranks).mpi(mpi).preload(), db.path())
        .env("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")
        .log(&log);
    let tuned = hashes(mpi, tuned, first, programs);
    for (seed, hash) in &bare {
        assert_eq!(
            tuned.get(seed),
            Some(hash),
            "{n_ranks} ranks, {way:?}: program {seed} computes something else with the shim"
        );
    }
    if matches!(way, Way::Off) {
        return 0;
    }
    let log = read_log(&log, n_ranks);
    assert_ranks_agree(&log);
    let other = |call: &&colltune_tests::LoggedCall| call.variant != "default";
    log[0].iter().filter(other).count()
}

/// Each family by itself, all of them, everything that can be forced, and the other modes.
fn all_ways(mpi: Mpi) -> Vec<Way> {
    let alone = ["native", "node", "p2p"];
    let mut ways = vec![Way::Off, Way::Record, Way::Exploit];
    ways.extend((1..=4).map(|seed| Way::Explore(seed, ALL_FAMILIES)));
    ways.extend((1..=3).flat_map(|seed| alone.map(|family| Way::Explore(seed, family))));
    ways.extend(forced(mpi));
    ways
}

/// Two batches of `programs` in each way, on two numbers of ranks.
fn same_in(ways: &[Way], mpi: Mpi, programs: u64) {
    let numbers_of_ranks = u64::from(mpi.ranks_max() - 1);
    for (way, index) in ways.iter().zip(0..) {
        for half in 0..2 {
            let n_ranks = 2 + ((index + half) % numbers_of_ranks) as u32;
            let first = 1000 + (2 * index + half) * programs;
            same_with_and_without(mpi, n_ranks, first, programs, way);
        }
    }
}

on_each_library! {
    fn a_hundred_programs_compute_the_same(mpi: Mpi) {
        let forced = forced(mpi);
        let mut ran = 0;
        let explore = |seed| Way::Explore(seed, ALL_FAMILIES);
        let ways = [explore(1), forced[2].clone(), explore(2), forced[4].clone(), Way::Off];
        for (batch, way) in (0..).zip(&ways) {
            // MPICH spins, so that its odd rank costs more than it shows.
            let n_ranks = if batch % 2 == 0 { mpi.ranks_max() } else { 2 };
            ran += same_with_and_without(mpi, n_ranks, 1 + batch * 20, 20, way);
        }
        assert!(ran > 100, "only {ran} calls were steered: too few to show anything");
    }

    /// Long: over five thousand programs for each library.
    fn thousands_of_programs_compute_the_same(mpi: Mpi) {
        if runs_long() {
            same_in(&all_ways(mpi), mpi, 60);
        }
    }
}

/// Long: over a thousand programs for each library. Intel MPI by itself dies in some of them.
#[test]
fn programs_compute_the_same_on_libraries_of_pypi() {
    if !runs_long() {
        return;
    }
    for mpi in [Mpi::OpenMpi5, Mpi::Mpich5, Mpi::Standard] {
        if let Some(mpi) = mpi.installed() {
            same_in(&all_ways(mpi), mpi, 20);
        }
    }
}
