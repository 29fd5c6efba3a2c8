//! The placement library's policies give here what they give to everybody else, block for block.

use colltune_amr::leaf::Grid;
use colltune_amr::mesh::Mesh;
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
        "hierarchical" => "hierarchical:contiguous-optimal".to_owned(),
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
        // The same problem as somebody else would state it: nothing from this app but the leaves.
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
