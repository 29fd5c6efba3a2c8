//! How objects move, grow and bounce, and whether they ever come into the domain.

use super::{Bounce, Object, ObjectError};

impl Object {
    pub(super) fn advance(&mut self, delta: f64) {
        for axis in 0..3 {
            self.centre[axis] += delta * self.velocity[axis];
            self.size[axis] += delta * self.growth[axis];
            match self.bounce {
                Bounce::Leave => {}
                Bounce::Centre => self.reflect_centre(axis),
                Bounce::Edge => self.turn_at_edge(axis),
            }
        }
    }

    fn reflect_centre(&mut self, axis: usize) {
        let centre = self.centre[axis];
        if centre >= 1.0 {
            self.centre[axis] = 2.0 - centre;
            self.velocity[axis] = -self.velocity[axis];
        } else if centre <= 0.0 {
            self.centre[axis] = 0.0 - centre;
            self.velocity[axis] = -self.velocity[axis];
        }
    }

    fn turn_at_edge(&mut self, axis: usize) {
        let (lower, upper) = self.reach(axis);
        if upper >= 1.0 {
            self.centre[axis] -= upper - 1.0;
            self.velocity[axis] = -self.velocity[axis];
        } else if lower <= 0.0 {
            self.centre[axis] -= lower;
            self.velocity[axis] = -self.velocity[axis];
        }
    }

    fn reach(&self, axis: usize) -> (f64, f64) {
        (
            self.centre[axis] - self.size[axis],
            self.centre[axis] + self.size[axis],
        )
    }

    /// Whether the object refines at all now.
    pub(super) fn is_active(&self) -> bool {
        !self.size.iter().any(|&size| size < 0.0)
    }

    /// Whether the box round the object lies outside the unit cube.
    pub(super) fn is_outside(&self) -> bool {
        (0..3).any(|axis| {
            let (lower, upper) = self.reach(axis);
            let centre = self.centre[axis];
            (centre < 0.0 && upper < 0.0) || (centre > 1.0 && lower > 1.0)
        })
    }

    pub(super) fn check_domain(
        &self,
        index: usize,
        steps: u64,
        delta: f64,
    ) -> Result<(), ObjectError> {
        if self.bounce == Bounce::Edge
            && let Some(axis) = (0..3).find(|&axis| self.size[axis] > 0.5)
        {
            let size = self.size[axis];
            return Err(ObjectError::TooLarge {
                index,
                axis: ['x', 'y', 'z'][axis],
                size,
            });
        }
        let mut object = *self;
        for _ in 0..=steps {
            if object.is_active() && !object.is_outside() {
                return Ok(());
            }
            object.advance(delta);
        }
        Err(ObjectError::NeverInside {
            index,
            centre: self.centre,
            size: self.size,
            steps,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Object, ObjectError, Objects};

    fn sphere(bounce: f64, centre: f64, velocity: f64, size: f64, growth: f64) -> Objects {
        let c = [centre; 3];
        let numbers: Vec<f64> = [2.0, bounce]
            .into_iter()
            .chain(c)
            .chain([velocity; 3])
            .chain([size; 3])
            .chain([growth; 3])
            .collect();
        Objects::new(vec![Object::from_arguments(&numbers).expect("an object")])
    }

    fn centre(objects: &Objects) -> f64 {
        objects.as_slice()[0].centre[0]
    }

    #[test]
    fn objects_move_and_grow_by_delta_times_their_rates() {
        let mut objects = sphere(0.0, 0.25, 0.5, 0.125, 0.25);
        objects.advance(2.0);
        assert_eq!(objects.as_slice()[0].centre, [1.25; 3]);
        assert_eq!(objects.as_slice()[0].size, [0.625; 3]);
    }

    #[test]
    fn a_bouncing_centre_stays_inside_and_returns() {
        let mut objects = sphere(1.0, 0.75, 0.5, 0.125, 0.0);
        objects.advance(1.0);
        assert_eq!(
            (centre(&objects), objects.as_slice()[0].velocity[0]),
            (0.75, -0.5)
        );
        objects.advance(1.0);
        objects.advance(1.0);
        assert_eq!(
            (centre(&objects), objects.as_slice()[0].velocity[0]),
            (0.25, 0.5)
        );
    }

    #[test]
    fn an_edge_that_touches_turns_round_unless_the_reference_is_followed() {
        let mut objects = sphere(2.0, 0.5, 0.25, 0.375, 0.0);
        let mut reference = objects.clone().as_reference_moves_them();
        objects.advance(1.0);
        assert_eq!(
            (centre(&objects), objects.as_slice()[0].velocity[0]),
            (0.625, -0.25)
        );
        reference.advance(1.0);
        assert_eq!(
            (centre(&reference), reference.as_slice()[0].velocity[0]),
            (0.75, 0.25)
        );
    }

    #[test]
    fn time_steps_move_the_fastest_boundary_by_one_cell() {
        assert_eq!(
            sphere(0.0, 0.5, -0.25, 0.25, 0.25).time_step([16.0, 8.0, 8.0]),
            0.125
        );
        assert_eq!(sphere(0.0, 0.5, 0.0, 0.25, 0.0).time_step([16.0; 3]), 1.0);
        assert_eq!(
            sphere(0.0, -2.0, 0.5, 0.25, 0.0).time_step([16.0; 3]),
            1.0,
            "outside"
        );
    }

    #[test]
    fn objects_that_never_come_in_are_refused() {
        assert_eq!(
            sphere(0.0, -1.71, 0.04, 1.7, 0.0).check_domain(1, 1.0),
            Ok(())
        );
        assert!(matches!(
            sphere(0.0, -1.71, 0.04, 0.1, 0.0).check_domain(10, 1.0),
            Err(ObjectError::NeverInside {
                index: 0,
                steps: 10,
                ..
            })
        ));
        assert_eq!(
            sphere(0.0, -1.71, 0.04, 0.1, 0.0).check_domain(50, 1.0),
            Ok(())
        );
        assert!(
            sphere(0.0, 0.5, 0.0, -0.5, 0.01)
                .check_domain(49, 1.0)
                .is_err(),
            "never large enough"
        );
        assert!(matches!(
            sphere(2.0, 0.5, 0.0, 0.6, 0.0).check_domain(9, 1.0),
            Err(ObjectError::TooLarge { .. })
        ));
    }
}
