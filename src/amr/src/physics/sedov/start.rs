//! The state at time 0.

use crate::physics::state::Primitive;
use crate::shape::BlockShape;

/// A blast: a uniform gas at rest and a small part of it round the centre that holds the energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blast {
    pub gamma: f64,
    pub energy: f64,
    pub density: f64,
    /// Pressure of the gas at rest; the exact solution has none, so it must be small.
    pub pressure: f64,
    pub centre: [f64; 3],
    pub extent: Extent,
}

/// Where the energy is at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    /// Half the edges of a box: best two cells of the finest level, so that it is forgotten long before the shock has
    /// crossed the domain.
    Box([f64; 3]),
    Ball(Ball),
}

/// Those cells of the finest level whose middles lie in a ball.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ball {
    radius: f64,
    /// The domain's lower corner, and the edges of the finest cells.
    origin: [f64; 3],
    finest: [f64; 3],
    n_cells: u64,
}

impl Ball {
    /// The ball of `radius` round `centre`; none where no cell's middle lies in it.
    pub fn new(radius: f64, centre: [f64; 3], origin: [f64; 3], finest: [f64; 3]) -> Option<Ball> {
        let mut ball = Ball {
            radius,
            origin,
            finest,
            n_cells: 0,
        };
        let first = |d: usize, x: f64| ((x - origin[d]) / finest[d]).floor() as i64;
        let [zs, ys, xs] =
            [2, 1, 0].map(|d| first(d, centre[d] - radius)..first(d, centre[d] + radius) + 1);
        for z in zs {
            for y in ys.clone() {
                let within = xs.clone().filter(|&x| ball.holds([x, y, z], centre));
                ball.n_cells += within.count() as u64;
            }
        }
        (ball.n_cells > 0).then_some(ball)
    }

    fn holds(&self, cell: [i64; 3], centre: [f64; 3]) -> bool {
        let square = |d: usize| {
            let middle = self.origin[d] + (cell[d] as f64 + 0.5) * self.finest[d];
            (middle - centre[d]) * (middle - centre[d])
        };
        square(0) + square(1) + square(2) <= self.radius * self.radius
    }

    /// Which part of the ball's energy lies in the cell with this lower corner and these edges.
    fn share(&self, lower: [f64; 3], edges: [f64; 3], centre: [f64; 3]) -> f64 {
        if !meets(lower, edges, centre, self.radius) {
            return 0.0;
        }
        let [xs, ys, zs] = [0, 1, 2].map(|d| {
            let first = ((lower[d] - self.origin[d]) / self.finest[d]).round() as i64;
            first..first + (edges[d] / self.finest[d]).round() as i64
        });
        let mut n = 0;
        for z in zs {
            for y in ys.clone() {
                n += xs
                    .clone()
                    .filter(|&x| self.holds([x, y, z], centre))
                    .count();
            }
        }
        n as f64 / self.n_cells as f64
    }
}

/// Whether a ball reaches into a box.
fn meets(lower: [f64; 3], edges: [f64; 3], centre: [f64; 3], radius: f64) -> bool {
    let square = |d: usize| {
        let nearest = centre[d].clamp(lower[d], lower[d] + edges[d]);
        (nearest - centre[d]) * (nearest - centre[d])
    };
    square(0) + square(1) + square(2) < radius * radius
}

impl Blast {
    /// Whether the energy reaches into the block between two corners.
    pub fn reaches(&self, lower: [f64; 3], upper: [f64; 3]) -> bool {
        match self.extent {
            Extent::Box(half) => (0..3).all(|d| {
                lower[d] < self.centre[d] + half[d] && upper[d] > self.centre[d] - half[d]
            }),
            Extent::Ball(ball) => {
                let edges = std::array::from_fn(|d| upper[d] - lower[d]);
                meets(lower, edges, self.centre, ball.radius)
            }
        }
    }

    /// Fills the interior of the block between two corners.
    ///
    /// A cell gets the energy of its part of the extent, so the total is the same on every mesh and no rank has to know
    /// about another.
    pub fn fill(&self, shape: BlockShape, lower: [f64; 3], upper: [f64; 3], block: &mut [f64]) {
        let at_rest = Primitive {
            density: self.density,
            velocity: [0.0; 3],
            pressure: self.pressure,
        };
        let at_rest = at_rest.conserved(self.gamma);
        let edges: [f64; 3] =
            std::array::from_fn(|d| (upper[d] - lower[d]) / shape.cells[d] as f64);
        let corner = |d: usize, cell: usize| lower[d] + cell as f64 * edges[d];
        let shares: [Vec<f64>; 3] = std::array::from_fn(|d| {
            let share = |cell: usize| match self.extent {
                Extent::Box(half) => self.share(d, half[d], corner(d, cell), edges[d]),
                Extent::Ball(_) => 0.0,
            };
            (0..shape.cells[d]).map(share).collect()
        });
        let density = |[x, y, z]: [usize; 3]| match self.extent {
            Extent::Box(half) => {
                let volume: f64 = half.iter().map(|half| 2.0 * half).product();
                self.energy / volume * (shares[0][x] * shares[1][y] * shares[2][z])
            }
            Extent::Ball(ball) => {
                let volume: f64 = edges.iter().product();
                let lower = [corner(0, x), corner(1, y), corner(2, z)];
                self.energy * ball.share(lower, edges, self.centre) / volume
            }
        };
        let g = shape.ghosts;
        for z in 0..shape.cells[2] {
            for y in 0..shape.cells[1] {
                for x in 0..shape.cells[0] {
                    for (var, value) in at_rest.into_iter().enumerate() {
                        block[shape.index(var, x + g, y + g, z + g)] = value;
                    }
                    block[shape.index(4, x + g, y + g, z + g)] += density([x, y, z]);
                }
            }
        }
    }

    /// Which part of a cell's edge lies in the box of this half edge.
    fn share(&self, axis: usize, half: f64, first: f64, edge: f64) -> f64 {
        let (low, high) = (self.centre[axis] - half, self.centre[axis] + half);
        ((first + edge).min(high) - first.max(low)).max(0.0) / edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrals of the five variables over the unit cube, on two blocks of these cells.
    fn totals(blast: Blast, cells: [usize; 3]) -> [f64; 5] {
        let shape = BlockShape {
            cells,
            ghosts: 2,
            n_vars: 5,
        };
        let mut block = vec![0.0; shape.block_len()];
        let mut totals = [0.0; 5];
        for lower in [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]] {
            blast.fill(shape, lower, [lower[0] + 0.5, 1.0, 1.0], &mut block);
            let volume = 0.5 / shape.interior_cells() as f64;
            for (var, total) in totals.iter_mut().enumerate() {
                let cells = &block[var * shape.cells_per_var()..];
                let rows = shape
                    .rows()
                    .flat_map(|row| &cells[row..row + shape.cells[0]]);
                *total += rows.sum::<f64>() * volume;
            }
        }
        totals
    }

    #[test]
    fn every_mesh_starts_with_the_same_energy() {
        let centre = [0.5, 0.4, 0.3];
        let finest = [1.0 / 64.0, 1.0 / 32.0, 1.0 / 40.0];
        let ball = Ball::new(0.2, centre, [0.0; 3], finest).expect("a ball of many cells");
        let boxed = Extent::Box([0.03, 0.05, 0.011]);
        let of_ball = Extent::Ball(ball);
        for (extent, cells) in [
            (boxed, [8, 8, 8]),
            (boxed, [16, 8, 4]),
            (boxed, [34, 32, 20]),
            (of_ball, [8, 8, 8]),
            (of_ball, [16, 16, 20]),
            (of_ball, [32, 32, 40]),
        ] {
            let blast = Blast {
                gamma: 1.4,
                energy: 0.7,
                density: 2.0,
                pressure: 1e-5,
                centre,
                extent,
            };
            let totals = totals(blast, cells);
            assert!(
                (totals[0] - 2.0).abs() < 1e-12 && totals[1..4] == [0.0; 3],
                "{totals:?}"
            );
            assert!(
                (totals[4] - 0.7 - 1e-5 / 0.4).abs() < 1e-12,
                "{cells:?}: {totals:?}"
            );
        }
    }

    #[test]
    fn the_ball_has_its_volume_and_reaches_the_blocks_that_it_meets() {
        let (radius, centre) = (0.3, [0.1, -0.2, 0.0]);
        let ball = Ball::new(radius, centre, [-1.0; 3], [0.01; 3]).expect("a ball");
        let volume = ball.n_cells as f64 * 1e-6;
        let exact = 4.0 / 3.0 * std::f64::consts::PI * radius.powi(3);
        assert!((volume / exact - 1.0).abs() < 0.01, "{volume} and {exact}");
        assert_eq!(Ball::new(1e-4, centre, [-1.0; 3], [0.3; 3]), None);
        let blast = Blast {
            gamma: 1.4,
            energy: 1.0,
            density: 1.0,
            pressure: 1e-5,
            centre,
            extent: Extent::Ball(ball),
        };
        assert!(blast.reaches([0.0; 3], [0.5; 3]));
        assert!(
            blast.reaches([0.05, -0.25, -0.1], [0.15, -0.15, 0.1]),
            "inside"
        );
        assert!(
            !blast.reaches([0.3, 0.1, 0.1], [0.5, 0.2, 0.2]),
            "a corner off"
        );
    }
}
