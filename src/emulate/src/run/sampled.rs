//! A run of which only some epochs are gone through: from one change of mesh or owners to the next, steps are alike.
//!
//! Mesh and owners go through all steps, since they follow from those before, twice: a first walk finds the epochs, a
//! second one lists what ranks do and counts their messages. What is saved are the clocks of all ranks.
//!
//! What the rank takes that computes longest is known of every step, so a step that was left out takes that times what
//! the sampled steps around it take beside theirs: a mesh that grows is not taken for larger or smaller than it is.
//!
//! Source: ratio estimation of survey sampling, Cochran, Sampling Techniques, 1977, chapter 6.

use super::{Emulated, Keep, Scenario, through, with_program};
use crate::EmulateError;

/// What a sample of the epochs says of the whole run.
pub struct Sampled {
    /// The time of its outcome is the whole run's, of whose phases the sampled steps say the shares. Messages and
    /// moved blocks are counted in all steps; clocks and spans are those of the sample.
    pub emulated: Emulated,
    /// The standard error of the outcome's `total_s`; 0 where no epoch was left out, none where one epoch says nothing of
    /// others.
    pub error_s: Option<f64>,
    pub n_sampled: usize,
    pub n_epochs: usize,
}

/// Which epochs are gone through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Epochs {
    All,
    /// This share of all, at least one of them.
    Share(f64),
    /// So many, or all where there are no more.
    Number(usize),
}

/// Runs some epochs of a scenario, those in the middles of equal numbers of steps; of as many parts as there are epochs
/// to be run. With all of them it is the whole run.
///
/// Errors: those of [`run`](super::run).
pub fn sampled(scenario: &Scenario, epochs: Epochs, keep: Keep) -> Result<Sampled, EmulateError> {
    if epochs == Epochs::All {
        return whole(scenario, keep);
    }
    let mut epoch_of: Vec<usize> = Vec::new();
    let mut numbers: Vec<u64> = Vec::new();
    with_program(scenario, |mut program| {
        loop {
            let epoch = program.n_epochs();
            if !program.pass_step()? {
                return Ok(());
            }
            if numbers.last() != Some(&epoch) {
                numbers.push(epoch);
            }
            epoch_of.push(numbers.len() - 1);
        }
    })?;
    let (n_epochs, n_steps) = (numbers.len(), epoch_of.len());
    let n_parts = match epochs {
        Epochs::All => n_epochs,
        Epochs::Share(share) => (share * n_epochs as f64).ceil() as usize,
        Epochs::Number(n) => n,
    };
    if n_parts >= n_epochs || n_steps == 0 {
        return whole(scenario, keep);
    }
    let n_parts = n_parts.max(1);
    let chosen: Vec<usize> = (0..n_parts)
        .map(|part| epoch_of[(2 * part + 1) * n_steps / (2 * n_parts)])
        .collect();
    let mut spent = vec![(0.0, 0usize); n_epochs];
    let mut loads: Vec<f64> = Vec::with_capacity(n_steps);
    let mut before = 0.0;
    let goes = |nth: usize| {
        epoch_of
            .get(nth)
            .is_some_and(|epoch| chosen.contains(epoch))
    };
    let emulated = through(scenario, keep, &goes, &mut |passed| {
        let (sum, n) = &mut spent[epoch_of[loads.len()]];
        *sum += passed.clock_ns - before;
        *n += 1;
        before = passed.clock_ns;
        loads.push(passed.load_ns);
    })?;
    if loads.contains(&0.0) {
        // Ranks compute nothing: all steps count alike.
        loads.fill(1.0);
    }
    let load_of = |epoch: usize| {
        let first = epoch_of.partition_point(|&other| other < epoch);
        let (sum, n) = spent[epoch];
        let load: f64 = loads[first..first + n].iter().sum();
        (first as f64 + (n as f64 - 1.0) / 2.0, sum / load)
    };
    let ratios: Vec<f64> = chosen.iter().map(|&epoch| load_of(epoch).1).collect();
    let mean = ratios.iter().sum::<f64>() / n_parts as f64;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let variance = squares / (n_parts as f64 - 1.0).max(1.0);
    let mut distinct = chosen.clone();
    distinct.dedup();
    let left_out = 1.0 - distinct.len() as f64 / n_epochs as f64;
    let points: Vec<(f64, f64)> = distinct.iter().map(|&epoch| load_of(epoch)).collect();
    let of_step = |(step, load): (usize, &f64)| load * between(&points, step as f64);
    let total_s = 1e-9 * loads.iter().enumerate().map(of_step).sum::<f64>();
    let all_loads: f64 = loads.iter().sum();
    Ok(Sampled {
        emulated: Emulated {
            outcome: emulated.outcome.lasting(total_s),
            ..emulated
        },
        error_s: (distinct.len() > 1)
            .then(|| 1e-9 * all_loads * (variance * left_out / n_parts as f64).sqrt()),
        n_sampled: distinct.len(),
        n_epochs,
    })
}

/// The straight line between the two points around `x` in order, and beyond the first and the last of them their height.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let next = points.partition_point(|point| point.0 <= x);
    match (next.checked_sub(1).map(|i| points[i]), points.get(next)) {
        (Some((x0, y0)), Some((x1, y1))) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), None) | (None, Some(&(_, y))) => y,
        (None, None) => 0.0,
    }
}

fn whole(scenario: &Scenario, keep: Keep) -> Result<Sampled, EmulateError> {
    let (mut last, mut n_epochs) = (None, 0);
    let emulated = through(scenario, keep, &|_| true, &mut |passed| {
        n_epochs += usize::from(last != Some(passed.epoch));
        last = Some(passed.epoch);
    })?;
    Ok(Sampled {
        emulated,
        error_s: Some(0.0),
        n_sampled: n_epochs,
        n_epochs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_points_lies_their_line_and_beyond_them_the_nearest() {
        let points = [(7.0, 3.0), (17.0, 1.0)];
        for (x, y) in [
            (0.0, 3.0),
            (7.0, 3.0),
            (12.0, 2.0),
            (17.0, 1.0),
            (90.0, 1.0),
        ] {
            assert!((between(&points, x) - y).abs() < 1e-12, "{x}");
        }
        assert_eq!(between(&points[..1], 40.0), 3.0);
    }
}
