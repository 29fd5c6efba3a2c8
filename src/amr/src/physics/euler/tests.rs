//! One block alone: conservation, convergence to exact solutions, and states that no gas has.

use super::*;
use crate::physics::FluxOrder;
use crate::physics::boundary::{self, Boundary};
use crate::physics::state::Primitive;

fn scheme(cells: [usize; 3]) -> Scheme {
    let shape = BlockShape {
        cells,
        ghosts: 2,
        n_vars: N_VARS,
    };
    Scheme {
        shape,
        gamma: 1.4,
        fluxes: FluxOrder::default(),
    }
}

/// A block alone, its ghosts filled by `ghosts` before each stage.
struct Alone {
    scheme: Scheme,
    dx: f64,
    state: Vec<f64>,
    start: Vec<f64>,
    fluxes: FaceFluxes,
    scratch: Scratch,
}

impl Alone {
    fn new(scheme: Scheme, dx: f64, gas: impl Fn([usize; 3]) -> Primitive) -> Self {
        let (shape, g) = (scheme.shape, scheme.shape.ghosts);
        let mut state = vec![0.0; shape.block_len()];
        for z in 0..shape.cells[2] {
            for y in 0..shape.cells[1] {
                for x in 0..shape.cells[0] {
                    for (var, value) in gas([x, y, z])
                        .conserved(scheme.gamma)
                        .into_iter()
                        .enumerate()
                    {
                        state[shape.index(var, x + g, y + g, z + g)] = value;
                    }
                }
            }
        }
        let (fluxes, scratch) = (FaceFluxes::new(shape), Scratch::new(shape));
        Alone {
            scheme,
            dx,
            start: state.clone(),
            state,
            fluxes,
            scratch,
        }
    }

    fn step(&mut self, dt_max: f64, ghosts: impl Fn(BlockShape, &mut [f64])) -> f64 {
        let inverse_dx = [1.0 / self.dx; 3];
        let rate = self
            .scheme
            .signal_rate_max(inverse_dx, &self.state)
            .expect("a gas");
        let dt = (0.8 / rate).min(dt_max);
        self.start.copy_from_slice(&self.state);
        for stage in [Stage::First, Stage::Second] {
            ghosts(self.scheme.shape, &mut self.state);
            let (fluxes, scratch) = (&mut self.fluxes, &mut self.scratch);
            let step = [dt / self.dx; 3];
            self.scheme
                .advance(stage, step, &self.start, &mut self.state, fluxes, scratch)
                .expect("a gas");
        }
        dt
    }

    fn total(&self, var: usize) -> f64 {
        let shape = self.scheme.shape;
        let cells = &self.state[var * shape.cells_per_var()..];
        let mut sum = crate::exact_sum::ExactSum::default();
        sum.add_rows(shape.rows().map(|row| &cells[row..row + shape.cells[0]]));
        sum.value()
    }
}

fn periodic(shape: BlockShape, block: &mut [f64]) {
    let g = shape.ghosts;
    for face in 0..6 {
        let (axis, region) = (face / 2, crate::physics::level::ghosts(shape, face));
        let n = shape.cells[axis];
        for var in 0..N_VARS {
            for z in region.first[2]..region.end[2] {
                for y in region.first[1]..region.end[1] {
                    for x in region.first[0]..region.end[0] {
                        let mut from = [x, y, z];
                        from[axis] = if from[axis] < g {
                            from[axis] + n
                        } else {
                            from[axis] - n
                        };
                        let [a, b, c] = from;
                        block[shape.index(var, x, y, z)] = block[shape.index(var, a, b, c)];
                    }
                }
            }
        }
    }
}

fn outflow(shape: BlockShape, block: &mut [f64]) {
    (0..6).for_each(|face| boundary::fill(shape, face, Boundary::Outflow, block));
}

#[test]
fn a_periodic_block_conserves_mass_momentum_and_energy_to_round_off() {
    let wave = |at: [usize; 3]| {
        let [x, y, z] = at.map(|x| x as f64);
        Primitive {
            density: 1.0 + 0.9 * (x * 0.9).sin() * (y * 1.7).cos(),
            velocity: [(z * 1.3).sin(), 2.0 * (x + y).cos(), -0.5],
            pressure: if at[2] > 3 { 10.0 } else { 0.1 },
        }
    };
    let mut block = Alone::new(scheme([12, 6, 8]), 0.1, wave);
    let before: Vec<f64> = (0..N_VARS).map(|var| block.total(var)).collect();
    for _ in 0..40 {
        block.step(f64::INFINITY, periodic);
    }
    for (var, before) in before.into_iter().enumerate() {
        let drift = (block.total(var) - before).abs();
        assert!(
            drift <= 1e-12 * block.total(4),
            "variable {var} drifts by {drift:e}"
        );
    }
}

#[test]
fn opposite_faces_of_a_periodic_block_have_the_same_flux_bits() {
    let wave = |[x, y, z]: [usize; 3]| Primitive {
        density: 1.0 + 0.1 * ((3 * x + 5 * y + 7 * z) % 11) as f64,
        velocity: [0.3, -0.2, 0.1],
        pressure: 1.0,
    };
    let mut block = Alone::new(scheme([10, 6, 4]), 0.1, wave);
    block.step(f64::INFINITY, periodic);
    for axis in 0..3 {
        let bits = |face: usize| {
            block
                .fluxes
                .face(face)
                .iter()
                .map(|flux| flux.to_bits())
                .collect::<Vec<u64>>()
        };
        assert_eq!(bits(2 * axis), bits(2 * axis + 1), "axis {axis}");
    }
}

/// Exact solution of a shock tube between two gases at rest: density at x/t.
fn shock_tube_density(left: (f64, f64), right: (f64, f64), speed: f64) -> f64 {
    const G: f64 = 1.4;
    let ((rho_l, p_l), (rho_r, p_r)) = (left, right);
    let (c_l, c_r) = ((G * p_l / rho_l).sqrt(), (G * p_r / rho_r).sqrt());
    let behind_rarefaction =
        |p: f64| 2.0 * c_l / (G - 1.0) * (1.0 - (p / p_l).powf((G - 1.0) / (2.0 * G)));
    let behind_shock =
        |p: f64| (p - p_r) * (2.0 / ((G + 1.0) * rho_r) / (p + (G - 1.0) / (G + 1.0) * p_r)).sqrt();
    let (mut low, mut high) = (p_r, p_l);
    for _ in 0..200 {
        let p = 0.5 * (low + high);
        if behind_rarefaction(p) > behind_shock(p) {
            low = p
        } else {
            high = p
        }
    }
    let (p, u) = (low, behind_shock(low));
    let c_star = c_l * (p / p_l).powf((G - 1.0) / (2.0 * G));
    let shock = c_r * ((G + 1.0) / (2.0 * G) * p / p_r + (G - 1.0) / (2.0 * G)).sqrt();
    match speed {
        s if s < -c_l => rho_l,
        s if s < u - c_star => {
            rho_l * ((2.0 - (G - 1.0) * s / c_l) / (G + 1.0)).powf(2.0 / (G - 1.0))
        }
        s if s < u => rho_l * (p / p_l).powf(1.0 / G),
        s if s < shock => {
            let ratio = (G - 1.0) / (G + 1.0);
            rho_r * (p / p_r + ratio) / (ratio * p / p_r + 1.0)
        }
        _ => rho_r,
    }
}

/// Mean error of the density of Sod's tube along `axis` at time 0.2.
fn sod_error(axis: usize, n: usize) -> f64 {
    let mut cells = [4; 3];
    cells[axis] = n;
    let tube = |at: [usize; 3]| {
        let left = at[axis] < n / 2;
        let (density, pressure) = if left { (1.0, 1.0) } else { (0.125, 0.1) };
        Primitive {
            density,
            velocity: [0.0; 3],
            pressure,
        }
    };
    let mut block = Alone::new(scheme(cells), 1.0 / n as f64, tube);
    let mut time = 0.0;
    while time < 0.2 {
        time += block.step(0.2 - time, outflow);
    }
    let shape = block.scheme.shape;
    let errors = (0..n).map(|cell| {
        let mut at = [3; 3];
        at[axis] = cell + shape.ghosts;
        let x = (cell as f64 + 0.5) / n as f64 - 0.5;
        let exact = shock_tube_density((1.0, 1.0), (0.125, 0.1), x / time);
        (block.state[shape.index(0, at[0], at[1], at[2])] - exact).abs()
    });
    errors.sum::<f64>() / n as f64
}

#[test]
fn sods_shock_tube_converges_to_the_exact_solution() {
    // With shocks and a contact in it the mean error of a second-order scheme falls with about the 0.8th power.
    let errors = [64, 128, 256].map(|n| sod_error(0, n));
    assert!(errors[0] < 0.01, "{errors:?}");
    for pair in errors.windows(2) {
        assert!(pair[1] < 0.62 * pair[0], "{errors:?}");
    }
}

#[test]
fn the_shock_tube_is_the_same_along_every_axis() {
    let along_x = sod_error(0, 64);
    for axis in [1, 2] {
        assert!((sod_error(axis, 64) - along_x).abs() < 1e-13, "axis {axis}");
    }
}

#[test]
fn smooth_flow_converges_with_the_second_order() {
    let error = |n: usize| {
        let density = |x: f64| 1.0 + 0.2 * (2.0 * std::f64::consts::PI * x).sin();
        let mean = |cell: usize| density((cell as f64 + 0.5) / n as f64);
        let wave = |at: [usize; 3]| Primitive {
            density: mean(at[0]),
            velocity: [1.0, 0.0, 0.0],
            pressure: 1.0,
        };
        let mut block = Alone::new(scheme([n, 4, 4]), 1.0 / n as f64, wave);
        let mut time = 0.0;
        while time < 1.0 {
            time += block.step(1.0 - time, periodic);
        }
        let shape = block.scheme.shape;
        (0..n)
            .map(|cell| (block.state[shape.index(0, cell + 2, 2, 2)] - mean(cell)).abs())
            .sum::<f64>()
            / n as f64
    };
    let (coarse, fine) = (error(32), error(64));
    assert!(fine < coarse / 3.0, "{coarse:e} and {fine:e}");
}

#[test]
fn a_state_that_no_gas_can_be_in_is_named_with_its_cell() {
    let rest = Primitive {
        density: 1.0,
        velocity: [0.0; 3],
        pressure: 1.0,
    };
    for (var, value) in [
        (0, -1.0),
        (0, f64::NAN),
        (4, -3.0),
        (2, f64::INFINITY),
        (3, 100.0),
    ] {
        let mut block = Alone::new(scheme([8, 4, 6]), 0.1, |_| rest);
        periodic(block.scheme.shape, &mut block.state);
        let place = block.scheme.shape.index(var, 5 + 2, 1 + 2, 4 + 2);
        block.state[place] = value;
        let found = block
            .scheme
            .signal_rate_max([10.0; 3], &block.state)
            .expect_err("not physical");
        assert_eq!(found.cell, [5, 1, 4], "variable {var} is {value}");
        let (fluxes, scratch) = (&mut block.fluxes, &mut block.scratch);
        let advanced = block.scheme.advance(
            Stage::First,
            [0.1; 3],
            &block.start,
            &mut block.state,
            fluxes,
            scratch,
        );
        assert_eq!(advanced.expect_err("not physical").cell, [5, 1, 4]);
    }
}
