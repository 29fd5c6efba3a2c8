//! Properties of random meshes: tiling, balance, neighbours, owners, ghosts, and undoing.

use colltune_amr::blocks::Blocks;
use colltune_amr::exchange::face::{Crossing, Faces, Reach};
use colltune_amr::exchange::plan::{Plan, Sweeps, View, Within};
use colltune_amr::exchange::{Bundling, Exchange, Manner, Order, Sending, Task};
use colltune_amr::field::{Field, Meaning};
use colltune_amr::leaf::{FACES, Grid, Leaf, axis};
use colltune_amr::mesh::Mesh;
use colltune_amr::placement::Question;
use colltune_amr::placement::curve::Curve;
use colltune_amr::placement::rcb::{Axes, Rcb, Ties};
use colltune_amr::ranks::{Ranks, threads};
use colltune_amr::refine::{Mark, apply, first_marks, settle};
use colltune_amr::shape::BlockShape;
use colltune_placement::generate::Random;

fn hash(z: u64) -> u64 {
    Random::at(z, 0)
}

fn placed(nth_policy: usize, question: Question) -> Vec<u32> {
    let rcb = |ties| Rcb {
        axes: Axes::Longest,
        ties,
    };
    match nth_policy {
        0 => rcb(Ties::ByOtherAxes).place(question),
        1 => rcb(Ties::Together).place(question),
        2 => Curve::Morton.place(question),
        _ => Curve::Hilbert.place(question),
    }
}

fn random_grid(random: &mut Random) -> Grid {
    Grid {
        roots: std::array::from_fn(|_| 1 + random.below(4) as u32),
        depth: 1 + random.below(4) as u8,
        periodic: false,
    }
}

/// Passes of random wishes: mostly to join, some to split, so that levels mix.
fn random_pass(mesh: &Mesh, random: &mut Random) -> (Mesh, Vec<Mark>) {
    let salt = random.bits();
    let mut marks = first_marks(mesh, |i| match hash(salt ^ i as u64) % 10 {
        0 | 1 => Mark::Split,
        2..=7 => Mark::Join,
        _ => Mark::Stay,
    });
    settle(mesh, &mut marks);
    let (new, pass) = apply(mesh, &marks);
    assert_eq!(pass.origins.len(), new.len());
    (new, marks)
}

fn random_mesh(seed: u64, n_ranks: usize) -> Mesh {
    let mut random = Random::new(seed);
    let grid = Grid {
        periodic: hash(seed).is_multiple_of(3),
        ..random_grid(&mut random)
    };
    // Every other mesh keeps where its blocks were split, as --compat does.
    let roots = match seed.is_multiple_of(2) {
        true => Mesh::roots,
        false => Mesh::roots_with_homes,
    };
    let mut mesh = roots(grid, vec![0; grid.n_roots()]);
    for _ in 0..2 + random.below(4) {
        let (next, _) = random_pass(&mesh, &mut random);
        mesh = next;
        if mesh.len() > 1500 {
            break;
        }
    }
    let costs: Vec<f64> = (0..mesh.len())
        .map(|_| 1.0 + random.below(9) as f64)
        .collect();
    let question = Question {
        mesh: &mesh,
        costs: &costs,
        n_ranks,
    };
    let owners = placed(random.below(4), question);
    mesh.place_on(owners);
    mesh
}

fn n_meshes() -> u64 {
    match std::env::var_os("COLLTUNE_LONG") {
        Some(_) => 10_000,
        None => 1_000,
    }
}

#[test]
fn leaves_tile_the_domain_with_symmetric_neighbours_and_one_owner_each() {
    for seed in 0..n_meshes() {
        let n_ranks = 1 + (hash(seed) % 64) as usize;
        let mut random = Random::new(seed);
        let mut mesh = random_mesh(seed, n_ranks);
        mesh.is_valid(n_ranks)
            .unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        // Once more, now with blocks of different owners.
        mesh = random_pass(&mesh, &mut random).0;
        mesh.is_valid(n_ranks)
            .unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

#[test]
fn neighbours_carried_through_a_pass_are_those_that_a_search_finds() {
    for seed in 0..n_meshes() {
        let mut random = Random::new(seed);
        let mesh = random_pass(&random_mesh(seed, 2), &mut random).0;
        let owners = mesh.owners().to_vec();
        let searched = Mesh::new(
            mesh.grid,
            mesh.leaves().to_vec(),
            owners,
            mesh.homes().cloned(),
        );
        for (i, face) in (0..mesh.len()).flat_map(|i| (0..FACES).map(move |face| (i, face))) {
            let (carried, found) = (mesh.neighbour(i, face), searched.neighbour(i, face));
            assert_eq!(carried, found, "seed {seed}: leaf {i}, face {face}");
        }
    }
}

#[test]
fn a_broken_mesh_is_not_valid() {
    let mesh = random_mesh(3, 4);
    let (grid, homes) = (mesh.grid, mesh.homes().cloned());
    assert!(mesh.is_valid(1).is_err(), "owners beyond the ranks");
    let without_homes = Mesh::new(
        grid,
        mesh.leaves().to_vec(),
        mesh.owners().to_vec(),
        Some(Default::default()),
    );
    assert!(without_homes.is_valid(4).is_err(), "no homes");
    let mut leaves = mesh.leaves().to_vec();
    leaves.swap(0, 1);
    let swapped = Mesh::new(grid, leaves, mesh.owners().to_vec(), homes);
    assert!(swapped.is_valid(4).is_err(), "leaves out of order");
}

#[test]
fn joining_undoes_splitting() {
    for seed in 0..n_meshes() {
        let mesh = random_mesh(seed, 3);
        // Everything that may split does; then everything new wants to join.
        let mut marks = first_marks(&mesh, |_| Mark::Split);
        settle(&mesh, &mut marks);
        let (finer, _) = apply(&mesh, &marks);
        // A block with finer neighbours waits for them: one pass per level at most.
        let mut joined = finer;
        for _ in 0..mesh.grid.depth {
            let mut back = first_marks(&joined, |i| match mesh.place(joined.leaves()[i]) {
                Some(_) => Mark::Stay,
                None => Mark::Join,
            });
            settle(&joined, &mut back);
            joined = apply(&joined, &back).0;
        }
        assert!(
            joined.leaves() == mesh.leaves(),
            "seed {seed}: other leaves"
        );
        assert!(
            joined.owners() == mesh.owners(),
            "seed {seed}: other owners"
        );
        assert_eq!(joined.hash(), mesh.hash(), "seed {seed}");
    }
}

#[test]
fn the_new_mesh_does_not_depend_on_the_owners() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let (few, many) = (random_mesh(seed, 1), random_mesh(seed, 37));
        assert!(few.leaves() == many.leaves(), "seed {seed}");
        let other = &mut random.clone();
        let (next, other) = (
            random_pass(&few, &mut random).0,
            random_pass(&many, other).0,
        );
        assert!(next.leaves() == other.leaves(), "seed {seed}");
    }
}

const SHAPE: BlockShape = BlockShape {
    cells: [4, 2, 4],
    ghosts: 1,
    n_vars: 2,
};

/// What stands in an interior cell: a sixteenth of an integer, so that sums of a few are exact.
fn value(leaf: Leaf, var: usize, at: [usize; 3]) -> f64 {
    let cell = (at[2] * 64 + at[1]) * 64 + at[0];
    let bits = hash(leaf.packed() ^ ((var as u64) << 40) ^ ((cell as u64) << 20));
    (bits % 4096) as f64 / 16.0
}

/// The value that a ghost must have, found by its place in space instead of the neighbour table.
///
/// `at` counts from the block's first interior cell and lies one cell beyond `face`.
fn expected(mesh: &Mesh, leaf: Leaf, var: usize, face: usize, at: [i64; 3]) -> f64 {
    let n = SHAPE.cells;
    let inside = |at: [i64; 3]| at.map(|c| c as usize);
    let find = |level: u8, cell: [i64; 3]| {
        let at = std::array::from_fn(|d| (cell[d] / n[d] as i64) as u32);
        let rest = std::array::from_fn(|d| (cell[d] % n[d] as i64) as usize);
        let leaf = Leaf { level, at };
        mesh.place(leaf).map(|_| (leaf, rest))
    };
    // The cell's place on its own level, over the whole domain.
    let cell: [i64; 3] = std::array::from_fn(|d| i64::from(leaf.at[d]) * n[d] as i64 + at[d]);
    let d = axis(face);
    let end = i64::from(mesh.grid.roots[d] << leaf.level) * n[d] as i64;
    if cell[d] < 0 || cell[d] >= end {
        let mut mirror = at;
        mirror[d] = at[d].clamp(0, n[d] as i64 - 1);
        return value(leaf, var, inside(mirror));
    }
    if let Some((leaf, at)) = find(leaf.level, cell) {
        return value(leaf, var, at);
    }
    if leaf.level > 0
        && let Some((leaf, at)) = find(leaf.level - 1, cell.map(|c| c / 2))
    {
        return value(leaf, var, at) / 4.0;
    }
    // Four finer cells in the layer that touches the face.
    let mut sum = 0.0;
    for quarter in 0..4 {
        let mut fine = cell.map(|c| 2 * c);
        let [t0, t1] = colltune_amr::leaf::tangents(d);
        fine[t0] += quarter & 1;
        fine[t1] += quarter >> 1;
        fine[d] += if face.is_multiple_of(2) { 1 } else { 0 };
        let (leaf, at) = find(leaf.level + 1, fine).expect("2:1");
        sum += value(leaf, var, at);
    }
    sum
}

fn exchange_and_check(ranks: &dyn Ranks, mesh: &Mesh, sweeps: Sweeps, manner: Manner, seed: u64) {
    let rank = ranks.rank();
    let mut blocks = Blocks::new(Field::new(SHAPE), Meaning::Total, mesh, rank);
    for i in mesh.own(rank) {
        for var in 0..SHAPE.n_vars {
            let cells = blocks.field.var_mut(blocks.slots[i], var);
            cells.fill(f64::NAN);
            for (row, at) in SHAPE.rows().zip(0..) {
                for x in 0..SHAPE.cells[0] {
                    let (y, z) = (at % SHAPE.cells[1], at / SHAPE.cells[1]);
                    cells[row + x] = value(mesh.leaves()[i], var, [x, y, z]);
                }
            }
        }
    }
    blocks.is_valid(mesh, rank).expect("valid blocks");
    let faces = Faces {
        stored: SHAPE,
        ghosted: SHAPE,
        // Ghosts beside the faces travel along or not; another test tells which ones.
        reach: match seed % 4 {
            0 => Reach::AnyOrder,
            1 if sweeps == Sweeps::ByAxis => Reach::Corners,
            _ => Reach::Faces,
        },
        crossing: match seed % 3 {
            0 => Crossing::SummedByReceiver,
            _ => Crossing::SummedBySender,
        },
    };
    let view = View {
        mesh,
        rank,
        slots: &blocks.slots,
        faces: &faces,
    };
    let plan = Plan::new(view, sweeps, Within::Listed);
    let order: Vec<usize> = (0..plan.sweeps.len()).collect();
    let task = Task {
        ranks,
        faces: &faces,
        plan: &plan,
        manner,
        order: &order,
    };
    Exchange::default().run(task, &mut blocks.field, &(0..SHAPE.n_vars));
    for i in mesh.own(rank) {
        let leaf = mesh.leaves()[i];
        for (var, face) in (0..SHAPE.n_vars).flat_map(|var| (0..FACES).map(move |f| (var, f))) {
            let cells = blocks.field.var(blocks.slots[i], var);
            let [nx, ny, nz] = SHAPE.cells.map(|n| n as i64);
            let d = axis(face);
            for (x, y, z) in
                (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| (x, y, z))))
            {
                let mut at = [x, y, z];
                if at[d] != 0 {
                    continue;
                }
                at[d] = if face % 2 == 0 {
                    -1
                } else {
                    SHAPE.cells[d] as i64
                };
                let [gx, gy, gz] = at.map(|c| (c + 1) as usize);
                let ghost = cells[SHAPE.index(0, gx, gy, gz)];
                let right = expected(mesh, leaf, var, face, at);
                assert_eq!(
                    ghost.to_bits(),
                    right.to_bits(),
                    "seed {seed}: {leaf:?} face {face} {at:?}"
                );
            }
        }
    }
}

#[test]
fn ghosts_are_their_owners_values_bit_for_bit() {
    for seed in 0..n_meshes() {
        let n_ranks = match seed % 50 {
            0 => 64,
            _ => 1 + (hash(seed) % 6) as usize,
        };
        let mesh = random_mesh(seed, n_ranks);
        // Stencils, whose exchange this is, know no periodic domain; the gas does (`gas.rs`).
        if mesh.len() > 400 || mesh.grid.periodic {
            continue;
        }
        let sweeps = if seed % 2 == 0 {
            Sweeps::AtOnce
        } else {
            Sweeps::ByAxis
        };
        let manner = Manner {
            bundling: if seed % 3 == 0 {
                Bundling::ByFace
            } else {
                Bundling::ByRank
            },
            sending: if seed % 5 == 0 {
                Sending::Blocking
            } else {
                Sending::Nonblocking
            },
            order: if seed % 7 == 0 {
                Order::CopiesFirst
            } else {
                Order::SendsFirst
            },
        };
        threads::run(n_ranks, |ranks| {
            exchange_and_check(ranks, &mesh, sweeps, manner, seed)
        });
    }
}

#[test]
fn a_joined_block_goes_to_the_rank_that_has_most_of_it_and_under_compat_to_where_it_was_split() {
    let grid = Grid {
        roots: [1, 1, 1],
        depth: 1,
        periodic: false,
    };
    for (kept, expected) in [(false, 2), (true, 0)] {
        let mesh = match kept {
            true => Mesh::roots_with_homes(grid, vec![0]),
            false => Mesh::roots(grid, vec![0]),
        };
        let mut split = apply(&mesh, &[Mark::Split]).0;
        split.place_on(vec![1, 2, 2, 1, 2, 0, 2, 3]);
        let joined = apply(&split, &[Mark::Join; 8]).0;
        assert_eq!(joined.owners(), [expected]);
    }
}
