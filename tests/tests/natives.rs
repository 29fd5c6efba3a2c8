//! Every algorithm of the libraries gives what their own choice gives, whatever the type, and stays in its memory.
//!
//! `tests/mpi/natives.c` computes what is right and guards all memory, the library's own, too. What the bare library
//! does wrong by its own choice is not held against a forced algorithm in the same call.

use std::collections::BTreeSet;
use std::time::Duration;

use colltune_core::catalogue::{self, Need, Steering, Variant};
use colltune_core::collective::{Collective, MessageSize};
use colltune_tests::{Job, Mpi, folder, is_long, job, on_each_library, read_log, runs_long};

/// Without size, or with the communicator alone, there are no types.
const LEFT_OUT: [Collective; 2] = [Collective::Barrier, Collective::Alltoallw];

/// The algorithms of one node, by collective.
fn natives(mpi: Mpi, collective: Collective) -> Vec<Variant> {
    let mut all = catalogue::variants(mpi.library(), collective);
    all.retain(|variant| {
        variant.steering != Steering::None
            && variant.own.is_none()
            && !variant.needs.contains(&Need::Hierarchy)
            && !LEFT_OUT.contains(&collective)
    });
    all
}

/// What `natives.c` says is wrong, by call, whichever rank says it; and what ended the program.
fn faults(job: Job, mode: &str, collectives: &[String]) -> BTreeSet<String> {
    let mut arguments = vec![mode];
    arguments.extend(collectives.iter().map(String::as_str));
    let job = job.deadline(Duration::from_secs(600)).without_short_cuts();
    let outcome = job.run("natives", &arguments);
    let said = |line: &str| {
        let known = ["wrong: ", "died: ", "aborted: ", "left: ", "hung: "];
        known.iter().any(|start| line.starts_with(start)).then(|| {
            let (call, rest) = line.split_once(", rank ").unwrap_or((line, ""));
            let fault = rest.split_once(": ").map_or("", |(_, fault)| fault);
            format!("{call}: {fault}")
        })
    };
    let found: BTreeSet<_> = outcome.stderr.lines().filter_map(said).collect();
    let ends = outcome.code == Some(0) || !found.is_empty();
    outcome.claim(ends && !outcome.timed_out, "it ended without a word");
    found
}

/// The longest messages of `natives.c`, in bytes as the collective counts them.
fn bytes_most(mode: &str, collective: Collective, n_ranks: u32) -> u64 {
    let all = match (mode, collective.is_reduction()) {
        ("short", _) => 41 << 10,
        (_, true) => 650 << 10,
        (_, false) => 170 << 10,
    };
    match collective.size() {
        MessageSize::Block => all / u64::from(n_ranks),
        MessageSize::Message | MessageSize::Nothing => all,
    }
}

/// Runs the k-th algorithms of all collectives together, for every k; what is wrong with them alone.
fn cross(mpi: Mpi, n_ranks: u32, mode: &str, of: &[Collective]) {
    let columns: Vec<_> = of.iter().map(|&one| natives(mpi, one)).collect();
    let all: Vec<_> = of.iter().map(ToString::to_string).collect();
    let bare = faults(job(n_ranks).mpi(mpi), mode, &all);
    let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
    let (mut wrong, mut never_ran) = (Vec::new(), Vec::new());
    for k in 0..longest {
        let kth: Vec<_> = columns.iter().filter_map(|column| column.get(k)).collect();
        let parts = kth
            .iter()
            .map(|one| format!("{}={}", one.collective, one.name));
        let force = parts.collect::<Vec<_>>().join(";");
        let names: Vec<_> = kth.iter().map(|one| one.collective.to_string()).collect();
        let log = folder();
        let job = job(n_ranks)
            .mpi(mpi)
            .preload()
            .force(&force)
            .log(log.path());
        let job = job.env("COLLTUNE_SETUP_AFTER", "1");
        let found = faults(
            job.env("MPIR_CVAR_COLLECTIVE_FALLBACK", "error"),
            mode,
            &names,
        );
        for fault in found.difference(&bare) {
            wrong.push(format!("{n_ranks} ranks, {force}: {fault}"));
        }
        let log = read_log(log.path(), n_ranks);
        let ran = log[0].iter().map(|call| (&call.collective, &call.variant));
        let ran: BTreeSet<_> = ran.collect();
        let can = kth
            .iter()
            .filter(|one| one.possible(n_ranks, 1, bytes_most(mode, one.collective, n_ranks)));
        let names = can.map(|one| (one.collective.to_string(), one.name.to_string()));
        let missing = names.filter(|(collective, variant)| !ran.contains(&(collective, variant)));
        never_ran.extend(missing);
    }
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        never_ran.is_empty(),
        "{n_ranks} ranks: never ran, so nothing is shown of them: {never_ran:?}"
    );
}

/// A few ranks of the collectives concerned.
fn cross_few(mpi: Mpi, few: u32, concerned: &[Collective]) {
    if let Some(mpi) = mpi.installed() {
        cross(mpi, few, "short", concerned);
    }
}

/// The same, and in the long suite all collectives on 2 to 9 ranks.
fn cross_all(mpi: Mpi, few: u32, concerned: &[Collective]) {
    if !is_long() {
        return cross_few(mpi, few, concerned);
    }
    if let Some(mpi) = mpi.installed() {
        for n_ranks in 2..=9 {
            cross(mpi, n_ranks, "long", &Collective::ALL);
        }
    }
}

/// All collectives on so many ranks, in a test each, because each takes long.
macro_rules! crossed {
    ($($name:ident: $n_ranks:literal),* $(,)?) => {
        on_each_library! {
            $(fn $name(mpi: Mpi) {
                if runs_long() {
                    cross(mpi, $n_ranks, "long", &Collective::ALL);
                }
            })*
        }
    };
}

crossed! {
    all_stay_in_their_memory_on_2_ranks: 2,
    all_stay_in_their_memory_on_3_ranks: 3,
    all_stay_in_their_memory_on_4_ranks: 4,
    all_stay_in_their_memory_on_5_ranks: 5,
    all_stay_in_their_memory_on_6_ranks: 6,
    all_stay_in_their_memory_on_7_ranks: 7,
    all_stay_in_their_memory_on_8_ranks: 8,
    all_stay_in_their_memory_on_9_ranks: 9,
}

#[test]
fn those_of_open_mpi_stay_in_their_memory() {
    cross_few(Mpi::OpenMpi, 3, &[Collective::Allreduce]);
    cross_few(
        Mpi::OpenMpi,
        4,
        &[Collective::Allgather, Collective::Alltoall],
    );
}

#[test]
fn those_of_mpich_stay_in_their_memory() {
    let concerned = [Collective::Allreduce, Collective::ReduceScatter];
    cross_few(Mpi::Mpich, 2, &concerned);
}

#[test]
fn those_of_open_mpi_5_stay_in_their_memory() {
    let concerned = [Collective::Allreduce, Collective::Allgatherv];
    cross_all(Mpi::OpenMpi5, 3, &concerned);
}

#[test]
fn those_of_mpich_5_stay_in_their_memory() {
    let concerned = [
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::ReduceScatter,
    ];
    cross_all(Mpi::Mpich5, 2, &concerned);
}
