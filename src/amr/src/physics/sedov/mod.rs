//! The Sedov blast wave: energy set free at a point of a cold uniform gas.

pub mod exact;
pub mod start;

pub mod radius;

pub use exact::Exact;
pub use radius::ShockRadius;
pub use start::{Ball, Blast, Extent};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::boundary::{self, Boundary};
    use crate::physics::{FaceFluxes, FluxOrder, Limiter, Scheme, Scratch, Stage};
    use crate::shape::BlockShape;

    /// Error of the shock's radius in an octant of n x n x n cells, by the exact one, when it should be at 0.7.
    fn radius_error(n: usize) -> f64 {
        let shape = BlockShape {
            cells: [n; 3],
            ghosts: 2,
            n_vars: 5,
        };
        let scheme = Scheme {
            shape,
            gamma: 1.4,
            limiter: Limiter::default(),
            fluxes: FluxOrder::default(),
        };
        let dx = 1.0 / n as f64;
        let half_edges = [2.0 * dx; 3];
        let blast = Blast {
            gamma: 1.4,
            energy: 1.0,
            density: 1.0,
            pressure: 1e-5,
            centre: [0.0; 3],
            extent: Extent::Box(half_edges),
        };
        let exact = Exact::new(1.4, 1.0, 1.0);
        let (mut state, corners) = (vec![0.0; shape.block_len()], [[0.0; 3], [1.0; 3]]);
        blast.fill(shape, corners[0], corners[1], &mut state);
        let (mut fluxes, mut scratch) = (FaceFluxes::new(shape), Scratch::new(shape));
        let (mut time, end) = (0.0, exact.time(0.7));
        let ghosts = |state: &mut [f64]| {
            for face in 0..6 {
                let wall = if face % 2 == 0 {
                    Boundary::Reflecting
                } else {
                    Boundary::Outflow
                };
                boundary::fill(shape, face, wall, state);
            }
        };
        while time < end {
            let rate = scheme
                .signal_rate_max([1.0 / dx; 3], &state)
                .expect("a gas");
            let dt = (0.8 / rate).min(end - time);
            let start = state.clone();
            for stage in [Stage::First, Stage::Second] {
                ghosts(&mut state);
                scheme
                    .advance(
                        stage,
                        [dt / dx; 3],
                        &start,
                        &mut state,
                        &mut fluxes,
                        &mut scratch,
                    )
                    .expect("a gas");
            }
            time += dt;
        }
        ghosts(&mut state);
        let mut found = ShockRadius::default();
        found.add_block(shape, 1.4, [0.0; 3], corners, &state);
        (found.radius().expect("a shock") / 0.7 - 1.0).abs()
    }

    #[test]
    fn the_shock_is_within_two_percent_of_the_exact_one_and_nearer_on_finer_cells() {
        let long = std::env::var_os("COLLTUNE_LONG").is_some();
        let errors: Vec<f64> = if long { &[16, 32, 64][..] } else { &[16, 32] }
            .iter()
            .map(|&n| radius_error(n))
            .collect();
        assert!(errors[0] < 0.03, "{errors:?}");
        assert!(errors[1..].iter().all(|&error| error < 0.02), "{errors:?}");
        assert!(
            errors.windows(2).all(|pair| pair[1] < 0.9 * pair[0]),
            "{errors:?}"
        );
    }
}
