//! Change points: when a rank's inflation turned to another value.
//!
//! Source: binary segmentation (Scott & Knott 1974; Vostrikova 1981) of logarithms, with the penalty 3 log n.

use std::collections::BTreeMap;

use crate::statistics::{mad, mean, median};

const PENALTY: f64 = 3.0;
/// Values between two changes.
const LEN_MIN: usize = 5;
/// Neighbouring stretches whose medians differ by less than a tenth are one.
const ALIKE: f64 = 0.1;

/// Stretches of steps in which the values are alike: first and last step of each.
pub fn spans(values: &BTreeMap<u64, f64>) -> Vec<[u64; 2]> {
    let steps: Vec<u64> = values.keys().copied().collect();
    let logs: Vec<f64> = values.values().map(|x| x.max(1e-9).ln()).collect();
    let differences: Vec<f64> = logs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Differences hide slow changes, so they show the noise alone.
    let noise = (mad(&differences) / std::f64::consts::SQRT_2).max(1e-3);
    let penalty = PENALTY * (logs.len() as f64).ln() * noise * noise;
    let mut ends = Vec::new();
    split(&logs, 0, penalty, &mut ends);
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let ends = ends.iter().copied().chain(std::iter::once(logs.len()));
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (start, end) in starts.zip(ends).filter(|(start, end)| end > start) {
        match spans.last_mut() {
            // An outlier parts what belongs together.
            Some(last) if alike(&logs[last.0..last.1], &logs[start..end]) => last.1 = end,
            _ => spans.push((start, end)),
        }
    }
    let spans = spans.into_iter();
    spans
        .map(|(start, end)| [steps[start], steps[end - 1]])
        .collect()
}

fn alike(a: &[f64], b: &[f64]) -> bool {
    (median(a) - median(b)).abs() < ALIKE
}

fn split(values: &[f64], at: usize, penalty: f64, ends: &mut Vec<usize>) {
    let n = values.len();
    if n < 2 * LEN_MIN {
        return;
    }
    let whole = mean(values);
    let mut sum: f64 = values[..LEN_MIN - 1].iter().sum();
    let mut best = (0.0, 0);
    for k in LEN_MIN..=n - LEN_MIN {
        sum += values[k - 1];
        let (left, right) = (k as f64, (n - k) as f64);
        let apart = sum / left - (whole * n as f64 - sum) / right;
        let gain = left * right / n as f64 * apart * apart;
        if gain > best.0 {
            best = (gain, k);
        }
    }
    let (gain, k) = best;
    if gain > penalty {
        ends.push(at + k);
        split(&values[..k], at, penalty, ends);
        split(&values[k..], at + k, penalty, ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_found_where_it_is_and_none_where_there_is_none() {
        let noise = |n: u64| 0.02 * ((n * 2_654_435_761) % 101) as f64 / 101.0;
        let flat: BTreeMap<u64, f64> = (1..=200).map(|n| (n, 1.0 + noise(n))).collect();
        assert_eq!(spans(&flat), [[1, 200]]);
        let slow = |n: u64| if (80..140).contains(&n) { 2.0 } else { 1.0 };
        let bump: BTreeMap<u64, f64> = (1..=200).map(|n| (n, slow(n) + noise(n))).collect();
        assert_eq!(spans(&bump), [[1, 79], [80, 139], [140, 200]]);
        assert_eq!(spans(&BTreeMap::from([(3, 1.0)])), [[3, 3]]);
        assert!(spans(&BTreeMap::new()).is_empty());
    }
}
