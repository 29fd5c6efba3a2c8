//! The HLLC flux between two states.
//!
//! Source: Toro, Spruce & Speares, Shock Waves 4, 1994; bounds of the wave speeds from Roe averages as in Batten,
//! Clarke, Lambert & Causon, SIAM J. Sci. Comput. 18(6), 1997, with which density and pressure stay positive.

use super::N_VARS;

/// One side of a face: density, normal velocity, two tangential velocities, pressure.
pub type Side = [f64; N_VARS];

/// Flux of mass, normal momentum, two tangential momenta and energy through a face, per area and time.
///
/// Shape:  states and result in the face's own order, normal first.
/// Errors: none; NaN where density or pressure are not positive.
/// Source: see the module; checked by `a_flux_between_equal_states_is_the_flux_of_that_state`.
#[inline(always)]
pub fn hllc(left: Side, right: Side, gamma: f64) -> [f64; N_VARS] {
    let (slowest, fastest) = wave_speeds(left, right, gamma);
    let mass_left = left[0] * (slowest - left[1]);
    let mass_right = right[0] * (fastest - right[1]);
    let contact = (right[4] - left[4] + left[1] * mass_left - right[1] * mass_right)
        / (mass_left - mass_right);
    // The upwind side of the contact wave decides; no branch, so that rows of faces vectorise.
    let from_left = contact >= 0.0;
    let pick = |a: f64, b: f64| if from_left { a } else { b };
    let side: Side = std::array::from_fn(|var| pick(left[var], right[var]));
    let outer = pick(slowest, fastest);
    let reach = pick(lesser(slowest, 0.0), greater(fastest, 0.0)); // 0 where the wave runs away from the face
    let [density, normal, t1, t2, pressure] = side;
    let energy = pressure / (gamma - 1.0) + 0.5 * density * (normal * normal + t1 * t1 + t2 * t2);
    let star_density = density * (outer - normal) / (outer - contact);
    let star_energy = star_density
        * (energy / density
            + (contact - normal) * (contact + pressure / (density * (outer - normal))));
    let mass = density * normal;
    [
        mass + reach * (star_density - density),
        mass * normal + pressure + reach * (star_density * contact - mass),
        mass * t1 + reach * (star_density - density) * t1,
        mass * t2 + reach * (star_density - density) * t2,
        (energy + pressure) * normal + reach * (star_energy - energy),
    ]
}

/// `f64::min` without its rules for NaN: one instruction for a row of faces.
#[inline(always)]
pub(super) fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline(always)]
pub(super) fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

#[inline(always)]
fn wave_speeds(left: Side, right: Side, gamma: f64) -> (f64, f64) {
    let sound_squared = |side: Side| gamma * side[4] / side[0];
    let (cc_left, cc_right) = (sound_squared(left), sound_squared(right));
    let enthalpy = |side: Side, cc: f64| {
        cc / (gamma - 1.0) + 0.5 * (side[1] * side[1] + side[2] * side[2] + side[3] * side[3])
    };
    let (root_left, root_right) = (left[0].sqrt(), right[0].sqrt());
    let share = root_left / (root_left + root_right);
    let mean = |a: f64, b: f64| share * a + (1.0 - share) * b;
    let [normal, t1, t2] = [1, 2, 3].map(|var| mean(left[var], right[var]));
    let mean_enthalpy = mean(enthalpy(left, cc_left), enthalpy(right, cc_right));
    let cc = (gamma - 1.0) * (mean_enthalpy - 0.5 * (normal * normal + t1 * t1 + t2 * t2));
    let sound = greater(cc, 0.0).sqrt();
    let slowest = lesser(left[1] - cc_left.sqrt(), normal - sound);
    let fastest = greater(right[1] + cc_right.sqrt(), normal + sound);
    (slowest, fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flux_of(side: Side, gamma: f64) -> [f64; N_VARS] {
        let [density, normal, t1, t2, pressure] = side;
        let energy =
            pressure / (gamma - 1.0) + 0.5 * density * (normal * normal + t1 * t1 + t2 * t2);
        let mass = density * normal;
        [
            mass,
            mass * normal + pressure,
            mass * t1,
            mass * t2,
            (energy + pressure) * normal,
        ]
    }

    fn sides() -> impl Iterator<Item = Side> {
        let densities = [0.125, 1.0, 30.0];
        let velocities = [-40.0, -1.0, -1e-9, 0.0, 0.3, 2.0, 500.0];
        densities.into_iter().flat_map(move |density| {
            velocities.into_iter().flat_map(move |normal| {
                [1e-5, 1.0, 1e3].map(|pressure| [density, normal, 0.5 - normal, 0.25, pressure])
            })
        })
    }

    #[test]
    fn a_flux_between_equal_states_is_the_flux_of_that_state() {
        for side in sides() {
            let (numeric, exact) = (hllc(side, side, 1.4), flux_of(side, 1.4));
            for var in 0..N_VARS {
                let scale = exact.iter().fold(side[4], |a, b| a.max(b.abs()));
                assert!(
                    (numeric[var] - exact[var]).abs() <= 1e-12 * scale,
                    "{side:?}: {numeric:?} for {exact:?}"
                );
            }
        }
    }

    #[test]
    fn the_mirrored_problem_has_the_mirrored_flux() {
        let mirrored = |side: Side| [side[0], -side[1], side[2], side[3], side[4]];
        for left in sides() {
            for right in sides() {
                let [mass, normal, t1, t2, energy] = hllc(left, right, 1.4);
                let other = hllc(mirrored(right), mirrored(left), 1.4);
                for (a, b) in [-mass, normal, -t1, -t2, -energy].into_iter().zip(other) {
                    assert!(
                        (a - b).abs() <= 1e-9 * (1.0 + a.abs()),
                        "{left:?} {right:?}: {a} and {b}"
                    );
                }
            }
        }
    }

    #[test]
    fn supersonic_flow_takes_the_upwind_flux() {
        let (left, right) = ([1.0, 10.0, 0.0, 1.0, 1.0], [2.0, 12.0, 1.0, 0.0, 3.0]);
        assert_eq!(hllc(left, right, 1.4), flux_of(left, 1.4));
    }

    #[test]
    fn tangential_momentum_flows_with_the_mass_from_upwind() {
        for left in sides() {
            for right in sides() {
                let flux = hllc(left, right, 1.4);
                let upwind = if flux[0] > 0.0 { left } else { right };
                for t in [2, 3] {
                    let scale = 1.0 + flux[0].abs() * (left[t].abs() + right[t].abs());
                    let error = (flux[t] - flux[0] * upwind[t]).abs();
                    assert!(error <= 1e-9 * scale, "{left:?} {right:?}: {flux:?}");
                }
            }
        }
    }

    #[test]
    fn a_contact_at_rest_does_not_smear() {
        let flux = hllc([1.0, 0.0, 0.3, 0.0, 2.0], [9.0, 0.0, -0.2, 1.0, 2.0], 1.4);
        assert_eq!(flux, [0.0, 2.0, 0.0, 0.0, 0.0]);
    }
}
