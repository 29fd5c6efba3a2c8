//! Whole collectives over the nodes: the stages of all ranks, the steps inside the nodes and the schedules between them,
//! run with symbolic contents and held against what the collective promises.
//!
//! A unit's content is the tree of the operations that combine contributions in it. Stages, the steps of phases in a
//! node's memory, the messages that carry blocks and the programs of schedules are what the shim runs itself. Only
//! carrying one of them out is written twice, in a few lines. Ranks go on in several orders, from one call into the
//! next. The line of a short message is a cell here.

mod memory;

mod across;
mod leading;
mod messages;
mod node;
mod reading;
mod run;

use std::collections::VecDeque;

use super::collected::moves_blocks;
use super::map::NodeMap;
use super::stage::Stage;
use crate::algorithm::fixed_order::tests::{in_order, tree};
use crate::algorithm::registry::FixedOrder;
use crate::catalogue::{self, Crossing, Facts, OnNodes, Own, Variant};
use crate::collective::Collective;
use crate::library::{Library, Product};
use crate::variant::{Family, VariantName};
use across::{Origin, promised};
use memory::{Case, Content, Found, Haste, Order};
use run::run;

/// Runs a case, and says what is wrong in the end.
fn check(case: &Case, change: &dyn Fn(usize, &mut VecDeque<Stage>)) -> Found<()> {
    compare(case, &run(case, change)?)
}

/// What is wrong with what came out of the calls of each rank. The result of an allreduce is one for all ranks, to the bit.
fn compare(case: &Case, found: &[Vec<Origin>]) -> Found<()> {
    let wanted = promised(case.collective, case.n_ranks(), case.root, case.block);
    let found_by_first = |number: u64, unit: usize| found[0][number as usize][unit].as_ref();
    for (rank, (calls, wanted)) in found.iter().zip(&wanted).enumerate() {
        for (number, found) in (0..).zip(calls) {
            for (unit, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                let Some(wanted) = wanted else { continue };
                let wanted = Case::in_call(number, wanted).operands();
                let shared = found_by_first(number, unit);
                if case.collective == Collective::Allreduce && found.as_ref() != shared {
                    return Err(format!(
                        "rank {rank} combines unit {unit} of call {number} as rank 0 does not"
                    ));
                }
                if case.fixed_order {
                    let fixed = tree(case.n_ranks(), |from| (from, unit as u64));
                    if found.as_ref().map(in_order) != Some(Case::in_call(number, &fixed)) {
                        return Err(format!(
                            "rank {rank} combines unit {unit} of call {number} in another order"
                        ));
                    }
                }
                let mut found = found.as_ref().map_or(Vec::new(), Content::operands);
                // On one node operands keep their order; between nodes they need not.
                if !matches!(case.own, OnNodes::Alone | OnNodes::Reading) {
                    found.sort_unstable();
                }
                if found != wanted {
                    return Err(format!(
                        "rank {rank} has {found:?} in unit {unit} of call {number}, not {wanted:?}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The variants of family `node` that run in stages, of any library.
fn variants(collective: Collective) -> Vec<(String, OnNodes)> {
    let library = Library {
        product: Product::OpenMpi,
        version: (4, 1, 4),
    };
    let all = catalogue::variants(library, collective).into_iter();
    let own = all.filter_map(|variant| match variant.own {
        Some(Own::Node(own)) => Some((variant.name.to_string(), own)),
        _ => None,
    });
    own.filter(|(_, own)| !matches!(own, OnNodes::Reading))
        .collect()
}

const COLLECTIVES: [Collective; 5] = [
    Collective::Allreduce,
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allgather,
    Collective::Alltoall,
];

/// Nodes of one size and of several, of one rank, and ranks that go round the nodes.
const ONE_NODE: [&[u32]; 4] = [&[0, 0], &[0, 0, 0], &[0; 5], &[0; 8]];
const NODES: [&[u32]; 7] = [
    &[0, 0, 1, 1],
    &[5, 5, 5, 5, 4, 4, 4, 4, 6, 6, 6, 6],
    &[0, 1, 2, 0, 1, 2, 0, 1],
    &[7, 3, 3, 3, 7, 5],
    &[0, 0, 0, 0, 1],
    &[2, 1, 0, 1, 2, 2, 0, 0, 1, 3],
    &[0, 0, 0, 1, 1, 1, 1],
];

/// Those that run on several nodes, on so many.
fn hierarchical(collective: Collective, n_nodes: usize) -> Vec<(String, OnNodes)> {
    let fits = |own: &OnNodes| match own.crossing() {
        Some(Crossing::Schedule(schedule)) => schedule.row().fits(n_nodes),
        Some(Crossing::Library) => true,
        None => matches!(own, OnNodes::Direct(_)),
    };
    let all = variants(collective).into_iter();
    all.filter(|(_, own)| fits(own)).collect()
}

/// Whether the catalogue says of a variant that it combines operands in the fixed order there.
fn keeps_fixed_order(collective: Collective, own: OnNodes, nodes_of_ranks: &[u32]) -> bool {
    let map = NodeMap::new(nodes_of_ranks, 0).expect("a rank of it");
    let (n_ranks, nodes) = (nodes_of_ranks.len() as u32, map.nodes.len() as u32);
    let is_even = map
        .nodes
        .iter()
        .all(|ranks| ranks.len() == map.nodes[0].len());
    let changes = nodes_of_ranks.windows(2).filter(|two| two[0] != two[1]);
    let variant = Variant {
        own: Some(Own::Node(own)),
        ..Variant::named(collective, VariantName::of(Family::Node, "any"))
    };
    collective.is_reduction()
        && variant.applies(&Facts {
            ranks_by_node: changes.count() + 1 == map.nodes.len(),
            even_nodes: is_even,
            fixed_order: true,
            ..Facts::usual(collective, 8, n_ranks, nodes)
        })
}

/// Hands over the cases of a variant.
fn each(collective: Collective, own: OnNodes, visit: &mut dyn FnMut(&Case)) {
    let rooted = matches!(collective, Collective::Bcast | Collective::Reduce);
    let layouts: &[&[u32]] = match own {
        OnNodes::Alone => &ONE_NODE,
        _ => &NODES,
    };
    let crossing = own.crossing().and_then(|crossing| match crossing {
        Crossing::Schedule(schedule) => Some(schedule),
        Crossing::Library => None,
    });
    let overlapping = crossing.is_some() && !moves_blocks(collective);
    let overlapping = overlapping && matches!(own, OnNodes::Leaders(_));
    for nodes_of_ranks in layouts {
        let map = NodeMap::new(nodes_of_ranks, 0).expect("a rank of it");
        let n_nodes = map.nodes.len();
        let keeps_order = keeps_fixed_order(collective, own, nodes_of_ranks);
        if crossing.is_some_and(|schedule| !schedule.row().fits(n_nodes)) {
            continue;
        }
        let roots = if rooted { nodes_of_ranks.len() } else { 1 };
        // One unit, fewer than lanes, a few, and messages of several pieces.
        for (block, unit_bytes) in [(1, 8), (3, 8), (13, 8), (11, 6 << 10), (9, 12 << 10)] {
            for root in 0..roots {
                for bits in 0..16 {
                    let [in_place, overlaps, holed, fixed_order] =
                        [1, 2, 4, 8].map(|bit| bits & bit > 0);
                    let is_bcast = collective == Collective::Bcast;
                    if in_place && is_bcast
                        || overlaps && !overlapping
                        || holed && !collective.is_reduction()
                        || fixed_order && (holed || !keeps_order)
                    {
                        continue;
                    }
                    let seed = block + 100 * root as u64 + 10_000 * bits;
                    // Many schedules go between the same stages.
                    let orders = [Order::Lowest, Order::Highest, Order::Drawn(seed)];
                    let few = (seed as usize + root) % orders.len();
                    let orders = match crossing {
                        Some(_) => &orders[few..=few],
                        None => &orders[..],
                    };
                    let messages: &[bool] = match own {
                        OnNodes::Direct(_) => &[false, true],
                        _ => &[false],
                    };
                    for (&order, &eager) in orders
                        .iter()
                        .flat_map(|order| messages.iter().map(move |eager| (order, eager)))
                    {
                        visit(&Case {
                            nodes_of_ranks,
                            collective,
                            own,
                            block,
                            unit_bytes,
                            root,
                            in_place,
                            overlaps,
                            holed,
                            fixed_order,
                            order,
                            eager,
                            haste: None,
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn every_variant_over_the_nodes_does_what_its_collective_promises() {
    for collective in COLLECTIVES {
        let all = variants(collective);
        assert!(all.len() > 1, "{collective} has {} variants", all.len());
        for (name, own) in all {
            let (mut cases, mut in_fixed_order) = (0, 0);
            each(collective, own, &mut |case| {
                cases += 1;
                in_fixed_order += u32::from(case.fixed_order);
                let found = check(case, &|_, _| {});
                found.unwrap_or_else(|wrong| {
                    panic!(
                        "{collective} by {name}: {wrong}: nodes {:?}, {} units of {} bytes, root {}, in place {}, \
                         overlapping {}, holed {}, fixed order {}, {:?}, eager {}",
                        case.nodes_of_ranks,
                        case.block,
                        case.unit_bytes,
                        case.root,
                        case.in_place,
                        case.overlaps,
                        case.holed,
                        case.fixed_order,
                        case.order,
                        case.eager,
                    )
                });
            });
            assert!(cases > 10, "{collective} by {name}: {cases} cases");
            let keeps_order = collective.is_reduction()
                && match own.crossing() {
                    Some(Crossing::Schedule(schedule)) => {
                        schedule.row().fixed_order != FixedOrder::Broken
                    }
                    Some(Crossing::Library) => false,
                    None => own == OnNodes::Alone,
                };
            assert_eq!(in_fixed_order > 10, keeps_order, "{collective} by {name}");
        }
    }
}

/// Whether a stage does nothing, so that no check finds it missing.
fn is_idle(rank: usize, nodes_of_ranks: &[u32], stage: &Stage, collective: Collective) -> bool {
    let here = nodes_of_ranks
        .iter()
        .filter(|node| **node == nodes_of_ranks[rank]);
    match stage {
        Stage::Inside(_) => here.count() == 1,
        // A leader's blocks of ranks that are not there, and its own, which it does not need.
        Stage::Copy { .. } => moves_blocks(collective),
        Stage::Across(_) | Stage::Receive { .. } | Stage::Send { .. } | Stage::Finish => false,
    }
}

#[test]
fn a_stage_that_one_rank_leaves_out_is_found_out() {
    let nodes_of_ranks: &[u32] = &[0, 0, 0, 1, 1, 2];
    for collective in COLLECTIVES {
        for (name, own) in hierarchical(collective, 3) {
            let case = Case {
                nodes_of_ranks,
                collective,
                own,
                block: 5,
                unit_bytes: 8,
                root: 4,
                in_place: false,
                overlaps: false,
                holed: false,
                fixed_order: false,
                order: Order::Lowest,
                eager: false,
                haste: None,
            };
            for rank in 0..nodes_of_ranks.len() {
                for skipped in 0.. {
                    let (seen, idle) = (std::cell::Cell::new(false), std::cell::Cell::new(true));
                    let result = check(&case, &|of, stages| {
                        if of == rank && skipped < stages.len() {
                            let stage = stages.remove(skipped).expect("it is there");
                            let receives = |stage: &Stage| matches!(stage, Stage::Receive { .. });
                            // What it has sent ends by itself.
                            let waits_for_none =
                                matches!(stage, Stage::Finish) && !stages.iter().any(receives);
                            seen.set(true);
                            idle.set(
                                waits_for_none || is_idle(rank, nodes_of_ranks, &stage, collective),
                            );
                        }
                    });
                    if !seen.get() {
                        break;
                    }
                    assert!(
                        idle.get() || result.is_err(),
                        "{collective} by {name}: rank {rank} without its stage {skipped}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_result_in_another_place_is_found_out() {
    let nodes_of_ranks: &[u32] = &[0, 0, 1, 1, 1];
    for collective in COLLECTIVES {
        for (name, own) in hierarchical(collective, 2) {
            let case = Case {
                nodes_of_ranks,
                collective,
                own,
                block: 6,
                unit_bytes: 8,
                root: 0,
                in_place: false,
                overlaps: false,
                holed: false,
                fixed_order: false,
                order: Order::Highest,
                eager: false,
                haste: None,
            };
            let result = check(&case, &|_, stages| {
                for stage in stages {
                    match stage {
                        Stage::Across(across) => across.result.unit += 1,
                        Stage::Send { from, .. } => from.unit += 1,
                        _ => {}
                    }
                }
            });
            assert!(result.is_err(), "{collective} by {name}");
        }
    }
}

#[test]
fn a_leader_that_reads_or_gives_too_early_is_found_out() {
    let nodes_of_ranks: &[u32] = &[0, 0, 0, 1, 1, 1, 2, 2];
    for (collective, haste) in [
        (Collective::Allreduce, Haste::Reads),
        (Collective::Reduce, Haste::Reads),
        (Collective::Allreduce, Haste::Gives),
        (Collective::Bcast, Haste::Gives),
    ] {
        for (name, own) in hierarchical(collective, 3) {
            if !matches!(own, OnNodes::Leaders(Crossing::Schedule(_))) {
                continue;
            }
            let is_found = (0..8).any(|seed| {
                let case = Case {
                    nodes_of_ranks,
                    collective,
                    own,
                    block: 9,
                    unit_bytes: 12 << 10,
                    root: 0,
                    in_place: false,
                    overlaps: true,
                    holed: false,
                    fixed_order: false,
                    order: Order::Drawn(seed),
                    eager: false,
                    haste: Some(haste),
                };
                check(&case, &|_, _| {}).is_err()
            });
            assert!(is_found, "{collective} by {name}: {haste:?}");
        }
    }
}
