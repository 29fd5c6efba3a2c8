//! One machine that looks like several nodes, and the variants that need several.

use std::collections::BTreeSet;

use colltune_core::catalogue::{self, Need, Variant};
use colltune_core::collective::Collective;
use colltune_core::variant::Family;

use crate::calls::{assert_ranks_agree, read_log};
use crate::job::{Job, job};
use crate::library::Mpi;
use crate::program::tool;

/// A job whose ranks say that they run on the nodes of these letters.
pub fn on_nodes(mpi: Mpi, nodes: &str) -> Job {
    job(nodes.len() as u32)
        .mpi(mpi)
        .preload()
        .preload_tool(tool(mpi, "several_nodes"))
        .env("TESTED_NODES", nodes)
}

/// How many nodes the letters name.
pub fn count_nodes(nodes: &str) -> u32 {
    nodes.chars().collect::<BTreeSet<_>>().len() as u32
}

/// Our variants of several nodes, of every collective.
pub fn between_nodes(mpi: Mpi) -> Vec<Variant> {
    let own = |variant: &Variant| {
        variant.name.family == Family::Node && variant.needs.contains(&Need::Hierarchy)
    };
    catalogue::all(mpi.library())
        .into_iter()
        .filter(own)
        .collect()
}

/// Every one of these variants runs the program rightly on these nodes, and ranks agree: one of each
/// collective at a time.
#[track_caller]
pub fn all_right_on(
    mpi: Mpi,
    nodes: &str,
    variants: Vec<Variant>,
    program: &str,
    arguments: &[&str],
) {
    let of = |collective| {
        let all = variants
            .iter()
            .filter(move |one| one.collective == collective);
        all.map(|one| one.name.to_string()).collect::<Vec<_>>()
    };
    let variants = Collective::ALL.map(|collective| (collective.to_string(), of(collective)));
    let longest = variants.iter().map(|(_, of)| of.len()).max().unwrap_or(0);
    let (mut wanted, mut ran) = (BTreeSet::new(), BTreeSet::new());
    for place in 0..longest {
        let some = variants
            .iter()
            .filter_map(|(collective, of)| Some((collective.clone(), of.get(place)?.clone())));
        let some: Vec<_> = some.collect();
        let parts = some
            .iter()
            .map(|(collective, name)| format!("{collective}={name}"));
        let force = parts.collect::<Vec<_>>().join(";");
        let log = crate::folder();
        let outcome = on_nodes(mpi, nodes)
            .force(&force)
            .log(log.path())
            .run(program, arguments);
        outcome.succeeds().prints("ok\n");
        let calls = read_log(log.path(), nodes.len() as u32);
        assert_ranks_agree(&calls);
        ran.extend(
            calls
                .into_iter()
                .flatten()
                .map(|call| (call.collective, call.variant)),
        );
        wanted.extend(some);
    }
    // Of barriers there are tests of their own; this program has none.
    wanted.retain(|(collective, _)| program != "collectives" || collective != "barrier");
    let missing: Vec<_> = wanted.difference(&ran).collect();
    assert!(missing.is_empty(), "on {nodes} {missing:?} never ran");
}
