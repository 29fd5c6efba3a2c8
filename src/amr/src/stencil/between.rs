//! The average over seven points of a block without ghosts, between six planes of its neighbours' cells.
//!
//! Nothing is put together first: the block is read where it lies and written elsewhere, and its planes
//! may lie in a neighbour, in a message or in the block itself. The sums west + east of a plane of
//! cells are made in one run and put right at the ends of rows; all else is then runs of whole rows.

use pulp::{Simd, WithSimd};

use crate::stencil::Machine;

/// Cells beyond a face: the first one leads `cells`.
#[derive(Clone, Copy, Debug)]
pub struct Plane<'a> {
    pub cells: &'a [f64],
    /// Between cells along the two tangents of the face, see [`crate::leaf::tangents`].
    pub strides: [usize; 2],
}

/// Replaces each cell by the average over its seven points.
///
/// Shape: `old` and `new` have `cells[0] * cells[1] * cells[2]` cells, x fastest, each count even. `ghosts` stand in
/// the order of faces, rows along y faces and whole z faces without gaps. `x_sums` has room for a plane of x and y.
pub fn average_between(
    machine: Machine,
    cells: [usize; 3],
    factor: f64,
    old: &[f64],
    ghosts: [Plane; 6],
    new: &mut [f64],
    x_sums: &mut [f64],
) {
    let [south, north, below, above] = [2, 3, 4, 5].map(|face| ghosts[face].strides);
    assert!(south[0] == 1 && north[0] == 1, "rows without gaps");
    assert_eq!([below, above], [[1, cells[0]]; 2], "z faces without gaps");
    machine.0.dispatch(Block {
        cells,
        factor,
        old,
        ghosts,
        new,
        x_sums,
    });
}

/// The arguments of [`average_between`].
struct Block<'a> {
    cells: [usize; 3],
    factor: f64,
    old: &'a [f64],
    ghosts: [Plane<'a>; 6],
    new: &'a mut [f64],
    x_sums: &'a mut [f64],
}

impl WithSimd for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.by_planes(simd);
    }
}

impl Block<'_> {
    #[inline(always)]
    fn by_planes<S: Simd>(self, simd: S) {
        let [nx, ny, nz] = self.cells;
        let n = nx * ny;
        let (old, x_sums) = (self.old, &mut self.x_sums[..n]);
        let [west, east, south, north, below, above] = self.ghosts;
        for (z, new) in self.new.chunks_exact_mut(n).enumerate() {
            let plane = &old[z * n..][..n];
            let below = match z {
                0 => &below.cells[..n],
                _ => &old[(z - 1) * n..][..n],
            };
            let above = match z + 1 < nz {
                true => &old[(z + 1) * n..][..n],
                false => &above.cells[..n],
            };
            sum_along_x(
                simd,
                nx,
                plane,
                [west, east].map(|ghost| ghost.at(z)),
                x_sums,
            );
            let [south, north] = [south, north].map(|ghost| &ghost.at(z).cells[..nx]);
            let last = n - nx;
            // A loop and no closure: code that is not inlined here is not compiled for this machine.
            let parts = [
                (0..nx, south, &plane[nx..2 * nx]),
                (nx..last, &plane[..last - nx], &plane[2 * nx..]),
                (last..n, &plane[last - nx..last], north),
            ];
            for (part, south, north) in parts {
                let terms = Terms {
                    x: &x_sums[part.clone()],
                    y: [south, north],
                    z: [&below[part.clone()], &above[part.clone()]],
                    centre: &plane[part.clone()],
                };
                terms.average(simd, self.factor, &mut new[part]);
            }
        }
    }
}

impl<'a> Plane<'a> {
    /// From the `j`-th row along the second tangent on.
    #[inline(always)]
    fn at(self, j: usize) -> Plane<'a> {
        Plane {
            cells: &self.cells[j * self.strides[1]..],
            ..self
        }
    }
}

/// `sums[i]` becomes what stands west of cell `i` plus what stands east of it.
#[inline(always)]
fn sum_along_x<S: Simd>(simd: S, nx: usize, plane: &[f64], ends: [Plane; 2], sums: &mut [f64]) {
    let n = plane.len();
    // Across the ends of rows too, which are put right below.
    let (wests, easts) = (&plane[..n - 2], &plane[2..]);
    let (vectors, rest) = S::as_mut_simd_f64s(&mut sums[1..n - 1]);
    let ((west, west_rest), (east, east_rest)) = (S::as_simd_f64s(wests), S::as_simd_f64s(easts));
    for ((sum, west), east) in vectors.iter_mut().zip(west).zip(east) {
        *sum = simd.add_f64s(*west, *east);
    }
    for ((sum, west), east) in rest.iter_mut().zip(west_rest).zip(east_rest) {
        *sum = west + east;
    }
    let [west, east] = ends;
    let rows = plane.chunks_exact(nx).zip(sums.chunks_exact_mut(nx));
    for (y, (row, sums)) in rows.enumerate() {
        sums[0] = west.cells[y * west.strides[0]] + row[1];
        sums[nx - 1] = row[nx - 2] + east.cells[y * east.strides[0]];
    }
}

/// What is added up for a run of cells.
#[derive(Clone, Copy)]
struct Terms<'a> {
    x: &'a [f64],
    y: [&'a [f64]; 2],
    z: [&'a [f64]; 2],
    centre: &'a [f64],
}

impl Terms<'_> {
    #[inline(always)]
    fn average<S: Simd>(self, simd: S, factor: f64, new: &mut [f64]) {
        let [[south, north], [below, above]] = [self.y, self.z];
        let parts = [self.x, south, north, below, above, self.centre].map(S::as_simd_f64s);
        let [x, south, north, below, above, centre] = parts.map(|(vectors, _)| vectors);
        let (vectors, rest) = S::as_mut_simd_f64s(new);
        let all = simd.splat_f64s(factor);
        let pairs = (south.iter().zip(north)).zip(below.iter().zip(above));
        for ((new, (x, centre)), ((south, north), (below, above))) in
            vectors.iter_mut().zip(x.iter().zip(centre)).zip(pairs)
        {
            let y = simd.add_f64s(*south, *north);
            let z = simd.add_f64s(*below, *above);
            let sum = simd.add_f64s(simd.add_f64s(*x, y), simd.add_f64s(z, *centre));
            *new = simd.mul_f64s(sum, all);
        }
        let [x, south, north, below, above, centre] = parts.map(|(_, rest)| rest);
        let pairs = (south.iter().zip(north)).zip(below.iter().zip(above));
        for ((new, (x, centre)), ((south, north), (below, above))) in
            rest.iter_mut().zip(x.iter().zip(centre)).zip(pairs)
        {
            *new = ((x + (south + north)) + ((below + above) + centre)) * factor;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::tangents;
    use crate::shape::BlockShape;
    use crate::stencil::{Points, average as average_with_ghosts};

    fn value(i: usize) -> f64 {
        (i * i % 1009) as f64 / 7.0
    }

    #[test]
    fn a_block_between_planes_becomes_what_the_block_with_ghosts_becomes() {
        for cells in [[2, 2, 2], [4, 2, 6], [10, 10, 10], [6, 8, 4], [32, 16, 2]] {
            let shape = BlockShape {
                cells,
                ghosts: 1,
                n_vars: 1,
            };
            let with_ghosts: Vec<f64> = (0..shape.cells_per_var()).map(value).collect();
            let interior = |values: &[f64]| -> Vec<f64> {
                let rows = shape.rows().map(|at| &values[at..at + cells[0]]);
                rows.flatten().copied().collect()
            };
            let ghosts: [Vec<f64>; 6] =
                std::array::from_fn(|face| ghosts_of(shape, face, &with_ghosts));
            let planes = std::array::from_fn(|face| Plane {
                cells: &ghosts[face],
                strides: [1, cells[tangents(face / 2)[0]]],
            });
            let old = interior(&with_ghosts);
            let (mut new, mut x_sums) = (vec![0.0; old.len()], vec![0.0; cells[0] * cells[1]]);
            let machine = Machine::default();
            average_between(
                machine,
                cells,
                1.0 / 7.0,
                &old,
                planes,
                &mut new,
                &mut x_sums,
            );

            let (mut expected, mut scratch) = (with_ghosts.clone(), with_ghosts.clone());
            let seven = Points::Seven;
            average_with_ghosts(
                machine,
                seven,
                shape,
                1.0 / 7.0,
                &mut expected,
                &mut scratch,
            );
            let bits = |cells: Vec<f64>| cells.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(new), bits(interior(&expected)), "{cells:?}");
        }
    }

    fn ghosts_of(shape: BlockShape, face: usize, cells: &[f64]) -> Vec<f64> {
        let (d, [t0, t1]) = (face / 2, tangents(face / 2));
        let mut ghosts = Vec::new();
        for (j, i) in (0..shape.cells[t1]).flat_map(|j| (0..shape.cells[t0]).map(move |i| (j, i))) {
            let mut at = [0; 3];
            at[d] = if face.is_multiple_of(2) {
                0
            } else {
                shape.cells[d] + 1
            };
            (at[t0], at[t1]) = (i + 1, j + 1);
            ghosts.push(cells[shape.index(0, at[0], at[1], at[2])]);
        }
        ghosts
    }
}
