//! Who owns which leaf: at start, and when blocks are placed anew. Functions of facts that every rank shares.

use colltune_placement::PlacementError;

use crate::leaf::Leaf;
use crate::mesh::Mesh;
use crate::options::Options;
use crate::placement::library::Told;
use crate::placement::rcb::positions;
use crate::placement::{Question, imbalance, library};
use crate::settings::{PlacementName, Settings};

/// The root blocks, before they are refined.
pub(super) fn first_mesh(settings: &Settings, n_ranks: usize) -> Mesh {
    let roots = match settings.options.compat {
        true => Mesh::roots_with_homes,
        false => Mesh::roots,
    };
    roots(settings.grid, first_owners(settings, n_ranks))
}

/// Boxes of root blocks by the process grid, as miniAMR has them, or what the policy says.
fn first_owners(settings: &Settings, n_ranks: usize) -> Vec<u32> {
    let grid = settings.grid;
    let policy = &settings.placement;
    let by_box = *policy != PlacementName::Hilbert;
    let Some(processes) = settings.processes.filter(|_| by_box) else {
        let mesh = Mesh::roots(grid, vec![0; grid.n_roots()]);
        let costs = vec![1.0; mesh.len()];
        return settings.place_by_own(
            policy,
            Question {
                mesh: &mesh,
                costs: &costs,
                n_ranks,
            },
        );
    };
    let [px, py, _] = processes;
    let mut owner = vec![0; n_ranks];
    for (rank, [x, y, z]) in positions(settings.box_axes(processes), n_ranks)
        .into_iter()
        .enumerate()
    {
        owner[(z * py + y) * px + x] = rank as u32;
    }
    let [rx, ry, rz] = grid.roots;
    let mut owners = Vec::with_capacity(grid.n_roots());
    for (z, y, x) in
        (0..rz).flat_map(|z| (0..ry).flat_map(move |y| (0..rx).map(move |x| (z, y, x))))
    {
        let at = [x, y, z];
        let [bx, by, bz]: [usize; 3] = std::array::from_fn(|d| (at[d] / settings.init[d]) as usize);
        owners.push(owner[(bz * py + by) * px + bx]);
    }
    owners
}

/// What a policy answers, matched to where blocks are; miniAMR matches nothing.
pub fn chosen(
    settings: &Settings,
    policy: &PlacementName,
    question: Question,
    told: Told,
) -> Result<Vec<u32>, PlacementError> {
    if let PlacementName::Library(policy) = policy {
        return library::owners_told(policy, question, settings.shape, told);
    }
    let owners = settings.place_by_own(policy, question);
    if settings.options.compat {
        return Ok(owners);
    }
    let matched = library::matched(question, settings.shape, told.topology, &owners);
    // What the library refuses to look at, such as owners of a job with more ranks, stays as it is.
    Ok(matched.unwrap_or(owners))
}

/// Whether `costs`, or without them numbers of blocks, differ enough for a new placement.
pub(super) fn is_uneven(
    options: &Options,
    mesh: &Mesh,
    costs: Option<&[f64]>,
    n_ranks: usize,
) -> bool {
    if options.uniform_refine == 1 && options.compat {
        return false;
    }
    if let Some(costs) = costs {
        let allowed = 1.0 + f64::from(options.inbalance) / 100.0;
        return imbalance(costs, mesh.owners(), n_ranks) > allowed;
    }
    let counts = mesh.per_rank(n_ranks);
    let (min, max) = (counts.iter().min(), counts.iter().max());
    let (min, max) = (min.copied().unwrap_or(0), max.copied().unwrap_or(0));
    let ratio = ((max - min) * n_ranks as i64) as f64 / mesh.len() as f64;
    max > min + 1 && ratio > f64::from(options.inbalance) / 100.0
}

/// Lets each rank give away at most `percent` of its blocks: the finest first, as miniAMR chooses.
pub(super) fn limit_moves(mesh: &Mesh, owners: &mut [u32], percent: usize, n_ranks: usize) {
    let counts = mesh.per_rank(n_ranks);
    let mut left: Vec<usize> = counts.iter().map(|&n| percent * n as usize / 100).collect();
    let number = |leaf: Leaf| {
        let [nx, ny, _] = mesh.grid.roots.map(|n| u64::from(n) << leaf.level);
        let [x, y, z] = leaf.at.map(u64::from);
        (z * ny + y) * nx + x
    };
    let mut order: Vec<usize> = (0..mesh.len()).collect();
    order.sort_by_cached_key(|&i| {
        let leaf = mesh.leaves()[i];
        (std::cmp::Reverse(leaf.level), number(leaf))
    });
    for i in order {
        let from = mesh.owners()[i];
        if owners[i] == from {
            continue;
        }
        match left[from as usize].checked_sub(1) {
            Some(rest) => left[from as usize] = rest,
            None => owners[i] = from,
        }
    }
}
