//! A spherical front that a mesh is fine around.

/// A sphere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Front {
    pub centre: [f64; 3],
    pub radius: f64,
}

impl Front {
    /// Whether the box between two corners meets what lies so far inwards of the front, and so far outwards.
    pub fn reaches(&self, [lower, upper]: [[f64; 3]; 2], [inwards, outwards]: [f64; 2]) -> bool {
        let (mut near, mut far) = (0.0, 0.0);
        for d in 0..3 {
            let (low, high) = (lower[d] - self.centre[d], upper[d] - self.centre[d]);
            near += low.max(-high).max(0.0).powi(2);
            far += low.abs().max(high.abs()).powi(2);
        }
        near.sqrt() <= self.radius + outwards && far.sqrt() >= self.radius - inwards
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_reached_where_the_front_or_its_margin_passes_through_it() {
        let front = Front {
            centre: [1.0, 0.0, 0.0],
            radius: 1.0,
        };
        let cube = |x: f64| [[x, 0.0, 0.0], [x + 0.25, 0.25, 0.25]];
        assert!(front.reaches(cube(1.875), [0.0; 2]), "the front itself");
        assert!(!front.reaches(cube(1.0), [0.0; 2]), "inside of it");
        assert!(front.reaches(cube(1.0), [0.75, 0.0]), "but near");
        assert!(!front.reaches(cube(2.25), [0.75, 0.0]), "outside of it");
        assert!(front.reaches(cube(2.25), [0.0, 0.25]), "but near");
        assert!(front.reaches(cube(-0.125), [0.0; 2]), "on the other side");
    }
}
