//! How fast ranks are, from times of the same work on each.

/// Speeds that keep to steps, so that ranks that are alike are said to be.
#[derive(Debug, Clone, Default)]
pub struct RankSpeeds {
    /// Of each rank, where any differs from 1.
    of_ranks: Option<Vec<f64>>,
    /// The time of the work on a rank of speed 1: the median of the ranks when they first compared.
    nominal: Option<f64>,
}

/// The next lower speed that ranks are said to have: a quarter of an octave. Noise is less.
const STEP: f64 = 0.840_896_415_253_714_6;
/// Ratios of times that are nearer to 1 than to a step.
const NEAR: f64 = 0.917_004_043_204_671_2;
/// Steps from 1 either way: a rank is at most 1,024 times as fast as another.
const STEPS_MAX: usize = 20;

impl RankSpeeds {
    /// Given speeds, of which only the ratios count.
    pub fn known(of_ranks: Option<Vec<f64>>) -> RankSpeeds {
        RankSpeeds {
            of_ranks,
            nominal: None,
        }
    }

    /// Takes what the ranks took for the same work.
    pub fn compare(&mut self, times: &[f64]) {
        let nominal = *self.nominal.get_or_insert_with(|| median(times));
        let speeds: Vec<f64> = times.iter().map(|&time| speed(nominal / time)).collect();
        self.of_ranks = speeds.iter().any(|&speed| speed != 1.0).then_some(speeds);
    }

    pub fn of_ranks(&self) -> Option<&[f64]> {
        self.of_ranks.as_deref()
    }

    pub fn of(&self, rank: u32) -> f64 {
        let of_ranks = self.of_ranks.as_ref();
        of_ranks.map_or(1.0, |speeds| speeds[rank as usize])
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The step that is nearest to a ratio. By multiplications alone: every rank has to find the same bits.
fn speed(ratio: f64) -> f64 {
    let mut speed = 1.0;
    for _ in 0..STEPS_MAX {
        if ratio < speed * NEAR {
            speed *= STEP;
        } else if ratio * NEAR > speed {
            speed /= STEP;
        }
    }
    speed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_steps_and_what_is_nearly_alike_is_alike() {
        for ratio in [0.92, 0.97, 1.0, 1.05, 1.09] {
            assert_eq!(speed(ratio), 1.0, "{ratio}");
        }
        for (ratio, steps) in [(0.25, 8), (0.26, 8), (0.5, 4), (0.85, 1), (1e-9, 20)] {
            let exact = STEP.powi(steps);
            assert!((speed(ratio) / exact - 1.0).abs() < 1e-12, "{ratio}");
        }
        assert!((speed(4.0) - 4.0).abs() < 1e-12 && (speed(1.19) * STEP - 1.0).abs() < 1e-12);
    }
}
