//! Sorting costs and loads: a stable radix sort of numbers that are finite and not negative.

/// The entries of `values` from the largest to the smallest; equal ones in the order of their index.
///
/// Shape: a permutation of `0..values.len()`. The values are finite and not negative.
pub fn descending_order(values: &[f64]) -> Vec<u32> {
    sorted(values, |bits| u64::MAX - bits)
}

/// The entries of `values` from the smallest to the largest; equal ones in the order of their index.
pub fn ascending_order(values: &[f64]) -> Vec<u32> {
    sorted(values, |bits| bits)
}

/// Bits that order like the number does; both zeros are one.
fn bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}

/// Digits of 11 bits: their counts fill half of a first-level cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

fn sorted(values: &[f64], key: impl Fn(u64) -> u64) -> Vec<u32> {
    debug_assert!(values.iter().all(|v| v.is_finite() && *v >= 0.0));
    let keys = || values.iter().map(|&value| key(bits(value)));
    let (low, high) = keys().fold((u64::MAX, 0), |(l, h), k| (l.min(k), h.max(k)));
    if values.is_empty() || low == high {
        return (0..values.len() as u32).collect();
    }
    // The leading 32 bits in which the keys differ travel with the index in one word.
    let shift = (64 - (high - low).leading_zeros()).saturating_sub(32);
    let packed = keys()
        .enumerate()
        .map(|(index, key)| ((key - low) >> shift) << 32 | index as u64);
    let words = radix(packed.collect());
    let mut order: Vec<u32> = words.iter().map(|&word| word as u32).collect();
    if shift > 0 {
        sort_runs(&words, &mut order, |index| {
            key(bits(values[index as usize]))
        });
    }
    order
}

/// Sorts words by their upper half; stable.
pub(crate) fn radix(mut words: Vec<u64>) -> Vec<u64> {
    if words.is_empty() {
        return words;
    }
    let mut other = vec![0; words.len()];
    for first_bit in [32, 32 + DIGIT_BITS, 32 + 2 * DIGIT_BITS] {
        let digit = |word: u64| (word >> first_bit) as usize & (DIGITS - 1);
        let mut counts = [0u32; DIGITS];
        words.iter().for_each(|&word| counts[digit(word)] += 1);
        if counts[digit(words[0])] as usize == words.len() {
            continue;
        }
        let mut place = 0;
        for count in &mut counts {
            place += std::mem::replace(count, place);
        }
        for &word in &words {
            let place = &mut counts[digit(word)];
            other[*place as usize] = word;
            *place += 1;
        }
        std::mem::swap(&mut words, &mut other);
    }
    words
}

/// Where the leading bits were equal, the rest decides; the order by index is kept among equals.
fn sort_runs(words: &[u64], order: &mut [u32], key: impl Fn(u32) -> u64) {
    let mut from = 0;
    for run in words.chunk_by(|a, b| a >> 32 == b >> 32) {
        if run.len() > 1 {
            order[from..from + run.len()].sort_by_key(|&index| key(index));
        }
        from += run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Distribution, Random, costs};

    fn check(values: &[f64]) {
        let mut expected: Vec<u32> = (0..values.len() as u32).collect();
        expected.sort_by(|&a, &b| values[a as usize].partial_cmp(&values[b as usize]).unwrap());
        assert_eq!(ascending_order(values), expected);
        expected.sort_by_key(|&a| a);
        expected.sort_by(|&a, &b| values[b as usize].partial_cmp(&values[a as usize]).unwrap());
        assert_eq!(descending_order(values), expected);
    }

    #[test]
    fn the_order_is_that_of_a_stable_comparison_sort() {
        check(&[]);
        check(&[0.0, -0.0, 0.0, f64::MIN_POSITIVE, 0.0]);
        check(&[f64::MAX, 0.0, 5e-324, 1.0]);
        let mut random = Random::new(5);
        for n in [1, 2, 10, 1000, 5000] {
            check(&(0..n).map(|_| random.unit()).collect::<Vec<_>>());
            check(
                &(0..n)
                    .map(|_| 10f64.powf(18.0 * random.unit() - 9.0))
                    .collect::<Vec<_>>(),
            );
            check(
                &(0..n)
                    .map(|_| 1.0 + 1e-15 * random.below(5) as f64)
                    .collect::<Vec<_>>(),
            );
            check(&costs(Distribution::PowerLaw, n as u64, n));
            check(&vec![7.5; n]);
        }
    }
}
