//! The placement library's policies give here what they give to everybody else, block for block.

use colltune_amr::leaf::Grid;
use colltune_amr::mesh::{Mesh, Neighbour};
use colltune_amr::placement::curve::Curve as AppCurve;
use colltune_amr::placement::rcb::{Axes, Rcb, Ties};
use colltune_amr::placement::topology::Topology;
use colltune_amr::placement::{Question, library};
use colltune_amr::refine::{Mark, apply, first_marks, settle};
use colltune_amr::shape::BlockShape;
use colltune_placement::curve::{ContactBytes, Curve, Neighbours, Octant, neighbours};
use colltune_placement::generate::{Distribution, Random, costs};
use colltune_placement::policy::{Need, TABLE};
use colltune_placement::{Policy, Problem, hash, place};

const SHAPE: BlockShape = BlockShape {
    cells: [8, 8, 8],
    n_vars: 5,
    ghosts: 1,
};

/// A mesh on a root grid that is no cube, with three levels.
fn refined(seed: u64) -> Mesh {
    let grid = Grid {
        roots: [3, 4, 2],
        depth: 3,
        periodic: false,
    };
    let mut mesh = Mesh::roots(grid, vec![0; grid.n_roots()]);
    for pass in 0..3 {
        let mut marks = first_marks(&mesh, |i| match Random::at(seed + pass, i as u64) % 4 {
            0 => Mark::Split,
            _ => Mark::Stay,
        });
        settle(&mesh, &mut marks);
        mesh = apply(&mesh, &marks).0;
    }
    mesh
}

/// Every policy that needs no message times, with an argument where it needs one.
fn policies() -> Vec<Policy> {
    let rows = TABLE
        .iter()
        .filter(|row| !row.needs.contains(&Need::Machine) && row.name != "ilp");
    let name = |name: &str| match name {
        "cplx" => "cplx:50".to_owned(),
        "published" => "published:cplx:50".to_owned(),
        name => name.to_owned(),
    };
    rows.map(|row| name(row.name).parse().unwrap()).collect()
}

/// The contacts across faces alone, with the bytes of their smaller side.
fn across_faces(all: &Neighbours, octants: &[Octant]) -> Neighbours {
    let mut faces = Neighbours {
        offsets: vec![0],
        neighbours: Vec::new(),
        bytes: Vec::new(),
    };
    for block in 0..octants.len() {
        for (to, bytes) in all.as_graph().row(block).filter(|(_, bytes)| *bytes > 0) {
            let is_between_levels = octants[to as usize].level != octants[block].level;
            faces.neighbours.push(to);
            faces
                .bytes
                .push(if is_between_levels { bytes / 4 } else { bytes });
        }
        faces.offsets.push(faces.neighbours.len() as u64);
    }
    faces
}

#[test]
fn every_policy_gives_the_same_owners_as_in_the_library_by_hash() {
    for seed in 1..4 {
        let mut mesh = refined(seed);
        let n_ranks = 7 + 3 * seed as usize;
        let draw = costs(Distribution::Exponential, seed, mesh.len());
        let present: Vec<u32> = (0..mesh.len()).map(|i| (i % n_ranks) as u32).collect();
        mesh.place_on(present.clone());
        // The same problem as another program would state it: nothing from this app but the leaves.
        let (root_level, octants) = library::octants(&mesh);
        let order = Curve::Hilbert.order(3, &octants);
        let along = |values: &[u32]| {
            order
                .iter()
                .map(|&i| values[i as usize])
                .collect::<Vec<u32>>()
        };
        let ordered: Vec<_> = order.iter().map(|&i| octants[i as usize]).collect();
        let ordered_costs: Vec<f64> = order.iter().map(|&i| draw[i as usize]).collect();
        let before = along(&present);
        let stated = colltune_placement::Mesh {
            dimensions: 3,
            root_level,
            octants: &ordered,
        };
        // Across a face between levels a quarter of the face goes.
        let face = (8 * SHAPE.n_vars * 8 * 8) as u64;
        let contacts = neighbours(
            stated,
            ContactBytes {
                face,
                edge: 0,
                corner: 0,
            },
        );
        let contacts = across_faces(&contacts, &ordered);
        let problem = Problem::new(&ordered_costs, n_ranks as u32)
            .and_then(|problem| problem.with_mesh(stated))
            .and_then(|problem| problem.with_graph(contacts.as_graph()))
            .and_then(|problem| problem.with_owners(&before))
            .unwrap();
        for policy in policies() {
            let question = Question {
                mesh: &mesh,
                costs: &draw,
                n_ranks,
            };
            let here = along(&library::owners(&policy, question, SHAPE).unwrap());
            let there = place(&policy, &problem).unwrap();
            assert_eq!(
                hash(&here),
                there.hash(),
                "{policy}, seed {seed}, {} leaves",
                mesh.len()
            );
        }
    }
}

#[test]
fn bisection_is_matched_to_where_blocks_are() {
    let mut mesh = refined(5);
    let n_ranks = 12;
    let costs = costs(Distribution::Exponential, 5, mesh.len());
    let rcb = || Rcb {
        axes: Axes::Longest,
        ties: Ties::ByOtherAxes,
    };
    fn ask<'a>(mesh: &'a Mesh, costs: &'a [f64], n_ranks: usize) -> Question<'a> {
        Question {
            mesh,
            costs,
            n_ranks,
        }
    }
    let alone = rcb().place(ask(&mesh, &costs, n_ranks));
    // The same parts, with the ranks in the reverse order.
    let present: Vec<u32> = alone
        .iter()
        .map(|&rank| n_ranks as u32 - 1 - rank)
        .collect();
    mesh.place_on(present.clone());
    let matched = |owners: &[u32], topology: Option<&Topology>| {
        library::matched(ask(&mesh, &costs, n_ranks), SHAPE, topology, owners).unwrap()
    };
    assert_eq!(matched(&alone, None), present);
    // What follows the curve from rank to rank goes on doing so.
    let along = AppCurve::Morton.place(ask(&mesh, &costs, n_ranks));
    assert_eq!(matched(&along, None), along);
}

/// Messages between leaves on ranks of different nodes, four ranks of a node one after the other.
fn sent_between_nodes(mesh: &Mesh, owners: &[u32]) -> usize {
    let neighbours = |i: usize| (0..6).map(move |face| mesh.neighbour(i, face));
    let all = (0..mesh.len()).flat_map(|i| {
        let to = neighbours(i).flat_map(|to| match to {
            Neighbour::Boundary => vec![],
            Neighbour::Same(j) | Neighbour::Coarser(j) => vec![j],
            Neighbour::Finer(quad) => quad.to_vec(),
        });
        to.map(move |j| (i, j))
    });
    all.filter(|&(i, j)| owners[i] / 4 != owners[j] / 4).count()
}

#[test]
fn the_match_with_present_owners_sends_no_more_than_a_percent_farther() {
    let topology = Topology::new(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], None);
    let policy: Policy = "cplx:50".parse().unwrap();
    assert!(!library::asks_for_nodes(&policy));
    let mut n_bound = 0;
    for seed in 1..6 {
        let mut mesh = refined(seed);
        let costs = costs(Distribution::Exponential, seed, mesh.len());
        let ask = |mesh: &Mesh, topology: Option<&Topology>| {
            let question = Question {
                mesh,
                costs: &costs,
                n_ranks: 12,
            };
            let told = library::Told {
                topology,
                speeds: None,
            };
            library::owners_told(&policy, question, SHAPE, told).unwrap()
        };
        // No part of the answer has anything that another part has: the policy's own numbers stay.
        mesh.place_on(vec![0; mesh.len()]);
        let own = ask(&mesh, None);
        // Now each part is where its number is dealt to nodes in turn.
        let dealt = own.iter().map(|&part| part % 3 * 4 + part / 3).collect();
        mesh.place_on(dealt);
        let [untold, told] =
            [None, Some(&topology)].map(|t| sent_between_nodes(&mesh, &ask(&mesh, t)) as f64);
        let by_numbers = sent_between_nodes(&mesh, &own) as f64;
        assert!(told <= 1.01 * by_numbers, "{told} of {by_numbers}");
        n_bound += usize::from(untold > 1.01 * by_numbers);
    }
    assert!(n_bound > 0, "some match would have sent farther");
}

#[test]
fn ranks_that_are_dealt_to_nodes_in_turn_get_what_those_in_order_get() {
    let mut mesh = refined(6);
    let costs = costs(Distribution::Exponential, 6, mesh.len());
    let dealt = Topology::new(&[0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2], None);
    let in_order = Topology::new(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], None);
    let present: Vec<u32> = (0..mesh.len() as u32).map(|i| i * 7 % 12).collect();
    let renamed = |owners: &[u32]| -> Vec<u32> {
        owners
            .iter()
            .map(|&rank| dealt.ranks[rank as usize])
            .collect()
    };
    let policy: Policy = "grouplb".parse().unwrap();
    assert!(library::asks_for_nodes(&policy));
    let mut place = |owners: Vec<u32>, topology: &Topology| {
        mesh.place_on(owners);
        let question = Question {
            mesh: &mesh,
            costs: &costs,
            n_ranks: 12,
        };
        let told = library::Told {
            topology: Some(topology),
            speeds: None,
        };
        library::owners_told(&policy, question, SHAPE, told).unwrap()
    };
    let expected = renamed(&place(present.clone(), &in_order));
    assert_eq!(place(renamed(&present), &dealt), expected);
}
