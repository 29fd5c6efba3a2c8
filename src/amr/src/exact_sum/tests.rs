//! Against sums in wide integers, in every order.

use colltune_placement::generate::Random;

use super::*;

/// Finite, of exponents spread over `spread` powers of two round `centre` (biased).
fn value(random: &mut Random, centre: u64, spread: u64) -> f64 {
    let bits = random.bits();
    let exponent = (centre - spread / 2 + random.bits() % spread.max(1)).min(0x7fe);
    f64::from_bits((bits & 0x800f_ffff_ffff_ffff) | exponent << 52)
}

fn one_by_one(values: &[f64]) -> ExactSum {
    let mut sum = ExactSum::default();
    values.iter().for_each(|&value| sum.add(value));
    sum
}

fn sliced(values: &[f64]) -> ExactSum {
    let mut sum = ExactSum::default();
    sum.add_slice(values);
    sum
}

#[test]
fn a_sum_of_one_value_is_that_value() {
    let mut random = Random::new(1);
    let special = [
        0.0,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::MAX,
        -f64::MAX,
        1.0,
        -1.5,
        f64::EPSILON,
    ];
    let drawn = (0..20_000)
        .map(|_| f64::from_bits(random.bits()))
        .filter(|value| value.is_finite());
    for value in special.into_iter().chain(drawn) {
        assert_eq!(
            one_by_one(&[value]).value().to_bits(),
            value.to_bits(),
            "{value:e}"
        );
        assert_eq!(sliced(&[value; 8]).value(), value * 8.0, "8 x {value:e}");
    }
}

#[test]
fn two_values_add_as_the_processor_adds_them() {
    // One addition of IEEE 754 is correctly rounded, so it is the exact sum rounded once.
    let mut random = Random::new(2);
    for _ in 0..100_000 {
        let centre = 1 + random.bits() % 0x7fd;
        let spread = (1 + random.bits() % 110)
            .min(2 * centre - 1)
            .min(2 * (0x7fe - centre) + 1);
        let (a, b) = (
            value(&mut random, centre, spread),
            value(&mut random, centre, spread),
        );
        assert_eq!(one_by_one(&[a, b]).value(), a + b, "{a:e} + {b:e}");
    }
}

#[test]
fn ties_round_to_even_and_whatever_is_below_breaks_them() {
    let half_unit = f64::EPSILON / 2.0;
    let odd = 1.0 + f64::EPSILON;
    let least = f64::from_bits(1);
    assert_eq!(one_by_one(&[1.0, half_unit]).value(), 1.0);
    assert_eq!(
        one_by_one(&[odd, half_unit]).value(),
        1.0 + 2.0 * f64::EPSILON
    );
    assert_eq!(one_by_one(&[1.0, half_unit, least]).value(), odd);
    assert_eq!(one_by_one(&[odd, half_unit, -least]).value(), odd);
    assert_eq!(one_by_one(&[-1.0, -half_unit, -least]).value(), -odd);
}

#[test]
fn sums_of_integers_are_exact_integers() {
    let mut random = Random::new(3);
    for spread in [1, 30, 53] {
        let values: Vec<i64> = (0..5000)
            .map(|_| (random.bits() >> (64 - spread)) as i64 - (1 << (spread - 1)))
            .collect();
        let total: i128 = values.iter().map(|&value| i128::from(value)).sum();
        let values: Vec<f64> = values.iter().map(|&value| value as f64).collect();
        // `as` from integer to float rounds to nearest, ties to even.
        assert_eq!(sliced(&values).value(), total as f64, "spread {spread}");
    }
}

#[test]
fn any_order_and_any_grouping_give_the_same_bits() {
    let mut random = Random::new(4);
    for (centre, spread, n) in [
        (1023, 1, 5000),
        (1023, 30, 5000),
        (1023, 60, 3000),
        (1023, 2045, 3000),
        (20, 30, 3000),
    ] {
        let mut values: Vec<f64> = (0..n)
            .map(|_| value(&mut random, centre.max(spread / 2), spread))
            .collect();
        let expected = one_by_one(&values);
        assert_eq!(
            sliced(&values).words(),
            expected.words(),
            "sliced, {spread}"
        );
        for _ in 0..5 {
            for last in (1..values.len()).rev() {
                values.swap(last, random.below(last + 1));
            }
            let mut merged = [0i64; WORDS];
            let mut rest = values.as_slice();
            while !rest.is_empty() {
                let (part, later) = rest.split_at((1 + random.below(2000)).min(rest.len()));
                // Ranks merge like an allreduce: word by word, in any order.
                merged
                    .iter_mut()
                    .zip(sliced(part).words())
                    .for_each(|(word, more)| *word += more);
                rest = later;
            }
            let merged = ExactSum::from_words(merged);
            assert_eq!(merged.words(), expected.words(), "merged, {spread}");
            assert_eq!(merged.value().to_bits(), expected.value().to_bits());
        }
    }
}

#[test]
fn rows_of_any_length_add_like_one_slice() {
    let mut random = Random::new(5);
    for row in [1, 3, 8, 10, 32, 1500] {
        let values: Vec<f64> = (0..row * 37)
            .map(|_| value(&mut random, 1023, 20))
            .collect();
        let mut sum = ExactSum::default();
        sum.add_rows(values.chunks(row));
        assert_eq!(sum.words(), one_by_one(&values).words(), "rows of {row}");
    }
}

#[test]
fn cancelling_values_leave_what_is_really_left() {
    let values = [1e300, 1.0, -1e300, 1e-300, -1.0, 3.5, -1e-300];
    assert_eq!(one_by_one(&values).value(), 3.5);
    let mut many: Vec<f64> = (0..4096)
        .map(|i| if i % 2 == 0 { 1e16 } else { -1e16 })
        .collect();
    many[100] += 2.0;
    assert_eq!(sliced(&many).value(), 2.0);
}

#[test]
fn a_shifted_sum_is_the_sum_of_shifted_values() {
    let mut random = Random::new(6);
    for shift in [0, 1, 3, 31, 32, 45, 60] {
        let values: Vec<f64> = (0..500).map(|_| value(&mut random, 900, 200)).collect();
        let factor = 2f64.powi(shift as i32);
        let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
        let mut sum = sliced(&values);
        sum.times_power_of_two(shift);
        assert_eq!(sum.words(), sliced(&scaled).words(), "shift {shift}");
    }
}

#[test]
fn nans_and_infinities_decide_the_sum_on_any_rank() {
    let mut values = vec![1.0; 3000];
    let mut merged = |place: usize, value: f64| {
        values[place] = value;
        let mut sum = sliced(&values[..1500]);
        sum.merge(&sliced(&values[1500..]));
        sum.value()
    };
    assert_eq!(merged(7, f64::INFINITY), f64::INFINITY);
    assert!(merged(2999, f64::NEG_INFINITY).is_nan());
    assert_eq!(merged(7, 1.0), f64::NEG_INFINITY);
    assert!(merged(1024, f64::NAN).is_nan());
    assert_eq!(
        sliced(&[f64::MAX; 16]).value(),
        f64::INFINITY,
        "beyond the largest number"
    );
    assert_eq!(
        one_by_one(&[f64::MAX, f64::MAX, -f64::MAX]).value(),
        f64::MAX,
        "only the end is rounded"
    );
}
