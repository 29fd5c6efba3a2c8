//! Conserved and primitive variables of an ideal gas.

use super::N_VARS;

/// Density, velocity and pressure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Primitive {
    pub density: f64,
    pub velocity: [f64; 3],
    pub pressure: f64,
}

impl Primitive {
    /// Density, momenta and total energy, all per volume.
    pub fn conserved(&self, gamma: f64) -> [f64; N_VARS] {
        let [u, v, w] = self.velocity;
        let kinetic = 0.5 * self.density * (u * u + v * v + w * w);
        let momentum = self.velocity.map(|velocity| self.density * velocity);
        [
            self.density,
            momentum[0],
            momentum[1],
            momentum[2],
            self.pressure / (gamma - 1.0) + kinetic,
        ]
    }

    /// Inverse of [`Primitive::conserved`].
    pub fn of(conserved: [f64; N_VARS], gamma: f64) -> Self {
        let [density, mx, my, mz, _] = conserved;
        let velocity = [mx, my, mz].map(|momentum| momentum / density);
        Primitive {
            density,
            velocity,
            pressure: pressure(conserved, gamma),
        }
    }
}

/// Pressure of a conserved state; not positive where the kinetic energy exceeds the total one.
#[inline(always)]
pub fn pressure(conserved: [f64; N_VARS], gamma: f64) -> f64 {
    let [density, mx, my, mz, energy] = conserved;
    (gamma - 1.0) * (energy - 0.5 * (mx * mx + my * my + mz * mz) / density)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitive_and_conserved_are_inverse() {
        let gas = Primitive {
            density: 0.5,
            velocity: [2.0, -1.0, 0.5],
            pressure: 3.0,
        };
        let back = Primitive::of(gas.conserved(1.4), 1.4);
        assert_eq!((back.density, back.velocity), (gas.density, gas.velocity));
        assert!((back.pressure - gas.pressure).abs() < 1e-14);
        assert_eq!(gas.conserved(1.5)[4], 6.0 + 0.25 * 5.25);
    }
}
