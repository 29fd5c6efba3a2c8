//! Whether an object reaches a block, decided as miniAMR 1.7 decides it.
//!
//! Along each axis the object's centre is below the block, above it or within it. The block's nearest corner and its
//! farthest one, scaled by the half axes, then tell whether the ellipsoid, or the ellipse of a cylinder, passes
//! between them. Two rules differ from geometry and are kept, because leaves would differ otherwise:
//!
//! 1. The surface of a rectangle that straddles a block in x is not looked for on its z faces where the two overlap in
//!    y, and is looked for there where they do not.
//! 2. Whether a block lies on an end of a cylinder's surface is asked along x whatever the cylinder's axis.

use super::{Extent, Half, Object, Shape};

/// One axis of a block and an object.
#[derive(Clone, Copy)]
struct Axis {
    lower: f64,
    upper: f64,
    centre: f64,
    size: f64,
}

impl Axis {
    /// The open intervals of block and object overlap.
    fn overlaps(self) -> bool {
        self.upper > self.centre - self.size && self.lower < self.centre + self.size
    }

    /// Exactly one side of the object lies within the block: both block corners are below the object's corners, or
    /// both above.
    fn straddles(self) -> bool {
        let (low, high) = (self.centre - self.size, self.centre + self.size);
        (self.lower < low && self.upper < high) || (self.lower > low && self.upper > high)
    }

    fn centre_is_within(self) -> bool {
        !(self.centre < self.lower || self.centre > self.upper)
    }

    fn lower_corner_is_nearer(self) -> bool {
        if self.centre_is_within() {
            self.centre < (self.lower + self.upper) / 2.0
        } else {
            self.centre < self.lower
        }
    }

    fn to_nearest(self) -> f64 {
        (if self.lower_corner_is_nearer() {
            self.lower
        } else {
            self.upper
        }) - self.centre
    }

    fn to_farthest(self) -> f64 {
        (if self.lower_corner_is_nearer() {
            self.upper
        } else {
            self.lower
        }) - self.centre
    }
}

impl Object {
    /// Whether this object refines the block between the corners.
    pub(super) fn touches(&self, lower: [f64; 3], upper: [f64; 3]) -> bool {
        let axis = |axis: usize| Axis {
            lower: lower[axis],
            upper: upper[axis],
            centre: self.centre[axis],
            size: self.size[axis],
        };
        let [x, y, z] = [axis(0), axis(1), axis(2)];
        if !self.is_active() {
            return false;
        }
        match (self.shape, self.extent) {
            (Shape::Rectangle, Extent::Solid) => x.overlaps() && y.overlaps() && z.overlaps(),
            (Shape::Rectangle, Extent::Surface) => rectangle_surface(x, y, z),
            (Shape::Spheroid, extent) => ellipse(&[x, y, z], extent),
            (Shape::Hemispheroid { axis: cut, half }, extent) => {
                is_in_half(axis(cut), half) && ellipse(&[x, y, z], extent)
            }
            (Shape::Cylinder { axis: along }, extent) => {
                let across = [axis((along + 1) % 3), axis((along + 2) % 3)];
                // The end is asked for along x: rule 2.
                let extent = if x.straddles() { Extent::Solid } else { extent };
                axis(along).overlaps() && ellipse(&across, extent)
            }
        }
    }
}

fn rectangle_surface(x: Axis, y: Axis, z: Axis) -> bool {
    if !x.overlaps() || !z.overlaps() {
        return false;
    }
    match (x.straddles(), y.overlaps()) {
        (true, overlaps) => overlaps,
        (false, true) => y.straddles(),
        (false, false) => z.straddles(), // rule 1
    }
}

fn is_in_half(cut: Axis, half: Half) -> bool {
    match half {
        Half::Above => cut.upper >= cut.centre,
        Half::Below => cut.lower <= cut.centre,
    }
}

/// Whether the boundary, or the inside, of the ellipse or ellipsoid with these axes reaches the block.
fn ellipse(axes: &[Axis], extent: Extent) -> bool {
    match extent {
        Extent::Solid => nearest_is_inside(axes),
        Extent::Surface => nearest_is_inside(axes) && farthest_is_outside(axes),
    }
}

/// Only axes that do not hold the centre count. One alone is compared without being squared: that rounds otherwise.
fn nearest_is_inside(axes: &[Axis]) -> bool {
    let mut squares = 0.0;
    let mut counted = 0;
    let mut alone = true;
    for axis in axes.iter().filter(|axis| !axis.centre_is_within()) {
        let scaled = axis.to_nearest() / axis.size;
        squares += scaled * scaled;
        alone = axis.to_nearest().abs() < axis.size;
        counted += 1;
    }
    if counted < 2 { alone } else { squares < 1.0 }
}

fn farthest_is_outside(axes: &[Axis]) -> bool {
    let scaled = axes.iter().map(|axis| axis.to_farthest() / axis.size);
    scaled.map(|scaled| scaled * scaled).sum::<f64>() > 1.0
}

#[cfg(test)]
mod tests {
    use super::super::{ARGUMENTS, Object};

    const TYPES: [u64; 22] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25,
    ];

    /// Seeded blocks of up to 5 levels and objects whose places and sizes often coincide with block corners.
    fn pair(kind: u64, seed: u64) -> (Object, [f64; 3], [f64; 3]) {
        let mut state = seed;
        let mut draw = |bound: u64| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % bound
        };
        let across = (1 + draw(4)) << draw(6);
        let place = [draw(across), draw(across), draw(across)];
        let corner = |add: u64| place.map(|at| (at + add) as f64 / across as f64);
        let mut numbers = [0.0; ARGUMENTS];
        numbers[0] = kind as f64;
        for axis in 0..3 {
            let coarse = draw(2) == 0;
            numbers[2 + axis] = if coarse {
                draw(9) as f64 / 8.0
            } else {
                draw(1 << 30) as f64 / (1u64 << 30) as f64
            };
            numbers[8 + axis] = if coarse {
                draw(7) as f64 / 8.0
            } else {
                draw(1 << 30) as f64 / (1u64 << 31) as f64
            };
        }
        (
            Object::from_arguments(&numbers).expect("an object"),
            corner(0),
            corner(1),
        )
    }

    #[test]
    fn touches_per_type_are_those_of_the_reference() {
        // Counted by miniAMR 1.7's own routine on these pairs; a million other pairs agreed one by one.
        let expected = [
            576, 1000, 741, 894, 603, 727, 604, 696, 628, 739, 621, 695, 592, 696, 573, 689, 737,
            981, 684, 971, 704, 974,
        ];
        for (kind, expected) in TYPES.into_iter().zip(expected) {
            let touches = (0..5000u64).filter(|&seed| {
                let (object, lower, upper) = pair(kind, seed * 64 + kind);
                object.touches(lower, upper)
            });
            assert_eq!(touches.count(), expected, "type {kind}");
        }
    }

    #[test]
    fn solids_touch_exactly_the_blocks_that_hold_a_point_of_theirs() {
        // The point of a block nearest to the centre is inside the object if any point is.
        for seed in 0..20_000 {
            let kind = [1, 3, 21, 23, 25][seed as usize % 5];
            let (object, lower, upper) = pair(kind, seed);
            if object.size.contains(&0.0) {
                continue;
            }
            let distance = [0, 1, 2].map(|axis| {
                let nearest = object.centre[axis].clamp(lower[axis], upper[axis]);
                (nearest - object.centre[axis]).abs() / object.size[axis]
            });
            let along = (kind as usize).saturating_sub(21) / 2;
            let square = |axis: usize| distance[axis] * distance[axis];
            let reach = match kind {
                1 => distance.into_iter().fold(0.0, f64::max),
                3 => square(0) + square(1) + square(2),
                _ => distance[along].max(square((along + 1) % 3) + square((along + 2) % 3)),
            };
            if (reach - 1.0).abs() > 1e-9 {
                assert_eq!(
                    object.touches(lower, upper),
                    reach < 1.0,
                    "{object:?} {lower:?} {upper:?}"
                );
            }
        }
    }

    #[test]
    fn a_sphere_surface_leaves_its_inside_and_outside_alone() {
        let sphere = |kind: f64| {
            let numbers = [
                kind, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.4, 0.4, 0.4, 0.0, 0.0, 0.0,
            ];
            Object::from_arguments(&numbers).expect("a sphere")
        };
        let touches =
            |kind: f64, at: [f64; 3]| sphere(kind).touches(at, at.map(|lower| lower + 0.125));
        assert!(!touches(2.0, [0.5; 3]) && touches(3.0, [0.5; 3]), "inside");
        assert!(
            touches(2.0, [0.875, 0.5, 0.5]) && touches(3.0, [0.875, 0.5, 0.5]),
            "on the surface"
        );
        assert!(
            !touches(2.0, [0.875; 3]) && !touches(3.0, [0.875; 3]),
            "outside"
        );
        assert!(
            touches(4.0, [0.875, 0.5, 0.5]) && !touches(6.0, [0.875, 0.5, 0.5]),
            "halves in x"
        );
    }

    #[test]
    fn objects_of_negative_size_touch_nothing() {
        let numbers = [
            1.0, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.4, -0.1, 0.4, 0.0, 0.0, 0.0,
        ];
        let object = Object::from_arguments(&numbers).expect("a rectangle");
        assert!(!object.touches([0.0; 3], [1.0; 3]));
    }

    #[test]
    fn the_two_rules_that_differ_from_geometry_are_the_references() {
        let object = |kind: f64, size: [f64; 3]| {
            let [a, b, c] = size;
            let numbers = [
                kind, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, a, b, c, 0.0, 0.0, 0.0,
            ];
            Object::from_arguments(&numbers).expect("an object")
        };
        // The top face of the rectangle passes through this block, which is within it in x and y.
        let rectangle = object(0.0, [0.375, 0.375, 0.3]);
        assert!(
            !rectangle.touches([0.5, 0.5, 0.75], [0.625, 0.625, 0.875]),
            "rule 1"
        );
        // This block lies on the upper end of a cylinder along z, near its axis.
        let cylinder = object(24.0, [0.375, 0.375, 0.3]);
        assert!(
            !cylinder.touches([0.5, 0.5, 0.75], [0.625, 0.625, 0.875]),
            "rule 2"
        );
        assert!(
            object(20.0, [0.3, 0.375, 0.375]).touches([0.75, 0.5, 0.5], [0.875, 0.625, 0.625]),
            "along x"
        );
    }
}
