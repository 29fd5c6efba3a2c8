//! Objects that decide where the mesh is refined: 22 types that move, bounce and grow inside the unit cube.
//!
//! | type | object | | type | object |
//! |---|---|---|---|---|
//! | 0, 1 | rectangle | | 12, 13 | hemispheroid, the half above its centre in z |
//! | 2, 3 | spheroid | | 14, 15 | the half below in z |
//! | 4, 5 | hemispheroid, the half above its centre in x | | 20, 21 | cylinder along x |
//! | 6, 7 | the half below in x | | 22, 23 | cylinder along y |
//! | 8, 9 and 10, 11 | the halves above and below in y | | 24, 25 | cylinder along z |
//!
//! The even type of a pair is the surface, the odd one the solid. Types, argument order and decisions are miniAMR's
//! (version 1.7), so that its decks give the same leaves; `intersect` names where its rules differ from geometry.

mod intersect;

mod motion;

use thiserror::Error;

/// Numbers of one `--object` option.
pub const ARGUMENTS: usize = 14;

/// What an object looks like; lengths are half axes from the centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Rectangle,
    Spheroid,
    Hemispheroid { axis: usize, half: Half },
    Cylinder { axis: usize },
}

/// The half of a spheroid that a hemispheroid keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Above,
    Below,
}

/// Which blocks an object refines: those on its boundary, or all that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Surface,
    Solid,
}

/// What happens at the faces of the unit cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounce {
    /// The object leaves the domain.
    Leave,
    /// Its centre is reflected.
    Centre,
    /// It turns round when its edge touches.
    Edge,
}

/// One object.
///
/// Units:  the domain is the unit cube; `velocity` and `growth` are per unit of time, which is one time step where
///         the number of steps is given. An object with a negative size refines nothing until it grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    pub shape: Shape,
    pub extent: Extent,
    pub bounce: Bounce,
    pub centre: [f64; 3],
    pub velocity: [f64; 3],
    pub size: [f64; 3],
    pub growth: [f64; 3],
}

/// What is wrong with an object.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ObjectError {
    #[error(
        "object has {0} numbers; it takes 14: type, bounce, centre (3), move (3), size (3), size rate (3)"
    )]
    Count(usize),
    #[error("object type {0} does not exist; types are 0 to 15 and 20 to 25")]
    Type(f64),
    #[error(
        "object bounce {0} does not exist; 0 leaves, 1 bounces with its centre, 2 with its edge"
    )]
    Bounce(f64),
    #[error("object number {place} of 14 is {value}: not a finite number")]
    NotFinite { place: usize, value: f64 },
    #[error(
        "object {index} (centre {centre:?}, size {size:?}) is outside the unit cube and does not come in within \
         {steps} steps"
    )]
    NeverInside {
        index: usize,
        centre: [f64; 3],
        size: [f64; 3],
        steps: u64,
    },
    #[error(
        "object {index} bounces with its edge but size {size} in {axis} does not fit into the unit cube"
    )]
    TooLarge { index: usize, axis: char, size: f64 },
}

impl Object {
    /// Reads the 14 numbers of `--object`: type, bounce, centre, move, size, size rate.
    ///
    /// Errors: `Count`, `NotFinite`, `Type` and `Bounce` (fractions too are no types).
    pub fn from_arguments(numbers: &[f64]) -> Result<Object, ObjectError> {
        if numbers.len() != ARGUMENTS {
            return Err(ObjectError::Count(numbers.len()));
        }
        if let Some(place) = numbers.iter().position(|number| !number.is_finite()) {
            return Err(ObjectError::NotFinite {
                place: place + 1,
                value: numbers[place],
            });
        }
        let (shape, extent) = shape_of(numbers[0]).ok_or(ObjectError::Type(numbers[0]))?;
        let bounce = match numbers[1] {
            0.0 => Bounce::Leave,
            1.0 => Bounce::Centre,
            2.0 => Bounce::Edge,
            other => return Err(ObjectError::Bounce(other)),
        };
        let vector = |first: usize| [numbers[first], numbers[first + 1], numbers[first + 2]];
        Ok(Object {
            shape,
            extent,
            bounce,
            centre: vector(2),
            velocity: vector(5),
            size: vector(8),
            growth: vector(11),
        })
    }

    /// The 14 numbers that [`Object::from_arguments`] reads.
    pub fn arguments(&self) -> [f64; ARGUMENTS] {
        let bounce = match self.bounce {
            Bounce::Leave => 0.0,
            Bounce::Centre => 1.0,
            Bounce::Edge => 2.0,
        };
        let ([a, b, c], [d, e, f]) = (self.centre, self.velocity);
        let ([g, h, i], [j, k, l]) = (self.size, self.growth);
        [
            self.type_number(),
            bounce,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            i,
            j,
            k,
            l,
        ]
    }

    fn type_number(&self) -> f64 {
        let even = match self.shape {
            Shape::Rectangle => 0,
            Shape::Spheroid => 2,
            Shape::Hemispheroid {
                axis,
                half: Half::Above,
            } => 4 + 4 * axis,
            Shape::Hemispheroid {
                axis,
                half: Half::Below,
            } => 6 + 4 * axis,
            Shape::Cylinder { axis } => 20 + 2 * axis,
        };
        (even + usize::from(self.extent == Extent::Solid)) as f64
    }
}

fn shape_of(number: f64) -> Option<(Shape, Extent)> {
    if number.fract() != 0.0 || !(0.0..=25.0).contains(&number) {
        return None;
    }
    let number = number as usize;
    let extent = if number.is_multiple_of(2) {
        Extent::Surface
    } else {
        Extent::Solid
    };
    let shape = match number {
        0 | 1 => Shape::Rectangle,
        2 | 3 => Shape::Spheroid,
        4..=15 => {
            let half = if number % 4 < 2 {
                Half::Above
            } else {
                Half::Below
            };
            Shape::Hemispheroid {
                axis: (number - 4) / 4,
                half,
            }
        }
        20..=25 => Shape::Cylinder {
            axis: (number - 20) / 2,
        },
        _ => return None,
    };
    Some((shape, extent))
}

/// The objects of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    all: Vec<Object>,
}

impl Objects {
    /// The objects in the order of the command line.
    pub fn new(all: Vec<Object>) -> Self {
        Objects { all }
    }

    pub fn as_slice(&self) -> &[Object] {
        &self.all
    }

    /// Whether a block with these corners is to be refined: some object's surface, or body, reaches it.
    ///
    /// Units:  corners in the unit cube, as quotients of miniAMR's integer positions by its mesh size where its leaves
    ///         are to be met exactly.
    /// Source: the decision of miniAMR 1.7, bit for bit.
    pub fn touch(&self, lower: [f64; 3], upper: [f64; 3]) -> bool {
        self.all.iter().any(|object| object.touches(lower, upper))
    }

    /// Moves and grows every object by `delta` units of time, then lets it bounce.
    pub fn advance(&mut self, delta: f64) {
        self.all.iter_mut().for_each(|object| object.advance(delta));
    }

    /// The same objects as miniAMR 1.7 moves them: there `bounce` 2 is accepted but never acted upon, because of an
    /// `else` that belongs to another `if` than its indentation says; such objects leave.
    pub fn as_reference_moves_them(mut self) -> Self {
        for object in &mut self.all {
            if object.bounce == Bounce::Edge {
                object.bounce = Bounce::Leave;
            }
        }
        self
    }

    /// The largest time step in which no boundary moves further than one cell; 1 where nothing moves.
    ///
    /// Units:  `cells` is the number of cells across the unit cube in each direction (miniAMR counts half cells).
    /// Source: miniAMR 1.7: the first object that is outside, or has a negative size, ends the search.
    pub fn time_step(&self, cells: [f64; 3]) -> f64 {
        let considered = self
            .all
            .iter()
            .take_while(|object| object.is_active() && !object.is_outside());
        let crossings = considered.flat_map(|object| {
            (0..3).map(move |axis| {
                (object.velocity[axis].abs() + object.growth[axis].abs()) * cells[axis]
            })
        });
        let fastest = crossings.fold(0.0, f64::max);
        if fastest > 0.0 { 1.0 / fastest } else { 1.0 }
    }

    /// Checks that every object matters within the run: `steps` steps of `delta` each.
    ///
    /// Errors: `NeverInside` for an object that stays outside the unit cube, `TooLarge` for one that bounces with its
    /// edge and is wider than the cube.
    pub fn check_domain(&self, steps: u64, delta: f64) -> Result<(), ObjectError> {
        for (index, object) in self.all.iter().enumerate() {
            object.check_domain(index, steps, delta)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [usize; 22] = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25,
    ];

    fn numbers(kind: f64) -> [f64; ARGUMENTS] {
        [
            kind, 1.0, 0.1, 0.2, 0.3, 0.01, 0.02, 0.03, 0.4, 0.5, 0.6, 0.001, 0.002, 0.003,
        ]
    }

    #[test]
    fn all_22_types_read_and_write_their_14_numbers() {
        for kind in 0..30 {
            let object = Object::from_arguments(&numbers(kind as f64));
            if TYPES.contains(&kind) {
                assert_eq!(
                    object.expect("a type").arguments(),
                    numbers(kind as f64),
                    "type {kind}"
                );
            } else {
                assert_eq!(object, Err(ObjectError::Type(kind as f64)));
            }
        }
    }

    #[test]
    fn hemispheroids_keep_the_half_that_their_type_names() {
        let of = |kind: f64| {
            Object::from_arguments(&numbers(kind))
                .expect("a type")
                .shape
        };
        assert_eq!(
            of(4.0),
            Shape::Hemispheroid {
                axis: 0,
                half: Half::Above
            }
        );
        assert_eq!(
            of(7.0),
            Shape::Hemispheroid {
                axis: 0,
                half: Half::Below
            }
        );
        assert_eq!(
            of(9.0),
            Shape::Hemispheroid {
                axis: 1,
                half: Half::Above
            }
        );
        assert_eq!(
            of(14.0),
            Shape::Hemispheroid {
                axis: 2,
                half: Half::Below
            }
        );
        assert_eq!(of(25.0), Shape::Cylinder { axis: 2 });
    }

    #[test]
    fn wrong_numbers_are_named() {
        assert_eq!(
            Object::from_arguments(&[1.0; 13]),
            Err(ObjectError::Count(13))
        );
        assert_eq!(
            Object::from_arguments(&numbers(2.5)),
            Err(ObjectError::Type(2.5))
        );
        assert_eq!(
            Object::from_arguments(&numbers(-1.0)),
            Err(ObjectError::Type(-1.0))
        );
        let mut bounce = numbers(2.0);
        bounce[1] = 3.0;
        assert_eq!(
            Object::from_arguments(&bounce),
            Err(ObjectError::Bounce(3.0))
        );
        let mut infinite = numbers(2.0);
        infinite[8] = f64::INFINITY;
        let error = Object::from_arguments(&infinite).expect_err("not finite");
        assert_eq!(
            error.to_string(),
            "object number 9 of 14 is inf: not a finite number"
        );
    }
}
