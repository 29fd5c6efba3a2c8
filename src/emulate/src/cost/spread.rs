//! How far blocks' times are from what is fitted: an effect of the block, one of the rank, and the rest.

use std::collections::BTreeMap;

use super::model::NoiseCosts;

/// Times and what the fit says of them, by block, rank and step.
pub struct Residual {
    pub block: u64,
    pub rank: u32,
    pub step: u64,
    /// Log of the measured over the fitted time.
    pub log: f64,
}

/// So many standard deviations above its mean is a spike.
const SPIKE: f64 = 3.0;

/// Splits the residuals by block, and by rank and step; what is left is the blocks' own from step to step.
///
/// Source: two-way layout without interaction; effects are means, taken off one after the other.
pub fn spread(residuals: &[Residual]) -> NoiseCosts {
    if residuals.is_empty() {
        return NoiseCosts::default();
    }
    let mean_of_all = mean(residuals.iter().map(|r| r.log));
    let by_block = means(residuals, |r| r.block, |r| r.log - mean_of_all);
    let after_block = |r: &Residual| r.log - mean_of_all - by_block[&r.block];
    let by_rank = means(residuals, |r| u64::from(r.rank), after_block);
    let by_step = means(
        residuals,
        |r| (u64::from(r.rank) << 40) | r.step,
        after_block,
    );
    let pace_cv = pace(&by_step, &by_rank);
    let rest: Vec<f64> = residuals
        .iter()
        .map(|r| after_block(r) - by_step[&((u64::from(r.rank) << 40) | r.step)])
        .collect();
    let deviation = standard_deviation(rest.iter().copied());
    let spikes: Vec<f64> = rest
        .iter()
        .copied()
        .filter(|&log| log > SPIKE * deviation.max(1e-9))
        .collect();
    let calm = rest.iter().copied().filter(|&log| log <= SPIKE * deviation);
    NoiseCosts {
        block_cv: standard_deviation(by_block.values().copied()),
        step_cv: standard_deviation(calm),
        rank_cv: standard_deviation(by_rank.values().copied()),
        spike_share: spikes.len() as f64 / rest.len() as f64,
        spike_factor: match spikes.is_empty() {
            true => 1.0,
            false => mean(spikes.into_iter()).exp(),
        },
        pace_cv,
        ..NoiseCosts::default()
    }
}

/// The spread of ranks' effects in a step about the step's mean, without what a rank has in all steps. What slows all
/// ranks together is none of it.
fn pace(by_step: &BTreeMap<u64, f64>, by_rank: &BTreeMap<u64, f64>) -> f64 {
    let mut steps: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (key, effect) in by_step {
        let of_step = steps.entry(key & ((1 << 40) - 1)).or_default();
        of_step.push(effect - by_rank[&(key >> 40)]);
    }
    let (mut squares, mut free) = (0.0, 0.0);
    for effects in steps.values() {
        let centre = mean(effects.iter().copied());
        squares += effects
            .iter()
            .map(|effect| (effect - centre).powi(2))
            .sum::<f64>();
        free += effects.len() as f64 - 1.0;
    }
    if free > 0.0 {
        (squares / free).sqrt()
    } else {
        0.0
    }
}

fn means(
    residuals: &[Residual],
    key: impl Fn(&Residual) -> u64,
    value: impl Fn(&Residual) -> f64,
) -> BTreeMap<u64, f64> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for residual in residuals {
        let sum = sums.entry(key(residual)).or_default();
        *sum = (sum.0 + value(residual), sum.1 + 1.0);
    }
    sums.into_iter().map(|(k, (sum, n))| (k, sum / n)).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { 0.0 }
}

fn standard_deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let centre = mean(values.clone());
    mean(values.map(|value| (value - centre) * (value - centre))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_are_faster_in_turns_differ_in_pace_and_what_slows_both_does_not_count() {
        let row = |block: u64, step: u64| {
            let rank = (block % 2) as u32;
            let turn = if (step / 5 + block).is_multiple_of(2) {
                0.02
            } else {
                -0.02
            };
            Residual {
                block,
                rank,
                step,
                log: turn + if step.is_multiple_of(3) { 0.1 } else { 0.0 },
            }
        };
        let all = (0..40).flat_map(|block| (0..20).map(move |step| row(block, step)));
        let found = spread(&all.collect::<Vec<_>>());
        // Two ranks at +0.02 and -0.02: one degree of freedom.
        assert!(
            (found.pace_cv - 0.02 * 2f64.sqrt()).abs() < 1e-9,
            "{found:?}"
        );
        assert!(found.step_cv < 1e-9 && found.rank_cv < 1e-9);
    }
}
