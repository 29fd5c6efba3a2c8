//! Of one allreduce all ranks have the same bits, by every variant, the library's own, too: programs end loops by such sums.

use std::collections::BTreeSet;

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_tests::{Mpi, folder, is_long, job, on_each_library, on_nodes, read_log};

/// Every variant that so many ranks on so many nodes may run; in short tests of each algorithm one segment size, since
/// segments change no order of operands.
fn variants(mpi: Mpi, n_ranks: u32, nodes: u32) -> Vec<catalogue::Variant> {
    let mut all = catalogue::variants(mpi.library(), Collective::Allreduce);
    all.retain(|one| one.possible(n_ranks, nodes, 80_000));
    let mut seen = BTreeSet::new();
    all.retain(|one| {
        let name = one.name.to_string();
        let algorithm = name.split(":segsize=").next().unwrap_or(&name).to_owned();
        is_long() || seen.insert(algorithm)
    });
    all
}

/// Ours compute one tree with the same first operands; libraries' need not keep the order where the operation commutes.
/// So does the library's own choice, which short messages get where a variant cuts messages into segments.
fn arguments(variant: &catalogue::Variant) -> &'static [&'static str] {
    use catalogue::Own::{Node, Schedule};
    let library = catalogue::Crossing::Library;
    match &variant.own {
        _ if variant.name.to_string().contains("segsize=") => &[],
        Some(Schedule(_)) => &["ordered"],
        Some(own @ Node(_)) if own.crossing() != Some(library) => &["ordered"],
        _ => &[],
    }
}

on_each_library! {
    fn every_variant_gives_all_ranks_the_same_bits(mpi: Mpi) {
        let n_ranks: &[u32] = if is_long() { &[2, 3, 4, 5, 7, 8, 9, 10] } else { &[5] };
        for &n_ranks in n_ranks {
            for variant in variants(mpi, n_ranks, 1) {
                let log = folder();
                let forced = job(n_ranks).mpi(mpi).preload().log(log.path());
                let forced = forced.force(&format!("allreduce={}", variant.name)).env("COLLTUNE_SETUP_AFTER", "1");
                forced.run("same_bits", arguments(&variant)).succeeds().prints("ok\n");
                let log = read_log(log.path(), n_ranks);
                let name = variant.name.to_string();
                let ran = log[0].iter().any(|call| call.collective == "allreduce" && call.variant == name);
                assert!(ran, "{n_ranks} ranks: {name} never ran, so nothing is shown of it");
            }
        }
    }

    /// Nodes with different numbers of ranks; in short tests those that run the schedules that several ranks compute.
    fn every_variant_over_uneven_nodes_gives_all_ranks_the_same_bits(mpi: Mpi) {
        let nodes = "ABCDEAB";
        for variant in variants(mpi, 7, 5) {
            let name = variant.name.to_string();
            let is_exchange = ["multiplying:radix=4", "shm+recursive_doubling"];
            if !name.starts_with("node:") || !is_long() && !is_exchange.iter().any(|one| name.contains(one)) {
                continue;
            }
            let forced = on_nodes(mpi, nodes).force(&format!("allreduce={name}")).env("COLLTUNE_SETUP_AFTER", "1");
            forced.run("same_bits", arguments(&variant)).succeeds().prints("ok\n");
        }
    }
}
