//! What colours stand for: maps whose brightness changes evenly, so that eyes of every kind and grey print tell the
//! same.

use colorous::{CIVIDIS, PLASMA, TABLEAU10, VIRIDIS};

use super::canvas::{Colour, WHITE, mixed};

/// Of what is no number.
pub const NOT_A_NUMBER: Colour = [255, 0, 0];
/// So many ranks have colours of their own; of more, neighbours in number have like ones.
pub const RANKS_TOLD_APART: u32 = 20;

/// The colour of a value between `low` and `high`: viridis.
pub fn of_value(value: f32, [low, high]: [f32; 2]) -> Colour {
    if !value.is_finite() {
        return NOT_A_NUMBER;
    }
    let range = f64::from(high) - f64::from(low);
    of_share(if range > 0.0 {
        (f64::from(value) - f64::from(low)) / range
    } else {
        0.5
    })
}

/// The colour of a place between the least value, 0, and the largest, 1.
pub fn of_share(share: f64) -> Colour {
    VIRIDIS.eval_continuous(share).as_array()
}

/// The colour of a level where the finest is `deepest`: cividis, the coarsest dark.
pub fn of_level(level: u8, deepest: u8) -> Colour {
    let levels = f64::from(deepest) + 1.0;
    CIVIDIS
        .eval_continuous((f64::from(level) + 0.5) / levels)
        .as_array()
}

/// The colour of a rank among so many: ten hues and their light ones, or plasma along the numbers.
pub fn of_rank(rank: u32, n_ranks: u32) -> Colour {
    if n_ranks > RANKS_TOLD_APART {
        let share = f64::from(rank) / f64::from(n_ranks - 1);
        return PLASMA.eval_continuous(share).as_array();
    }
    let hue = TABLEAU10[rank as usize % TABLEAU10.len()].as_array();
    match rank as usize / TABLEAU10.len() {
        0 => hue,
        _ => mixed(hue, WHITE, 130),
    }
}

/// Round values between two, at most about six.
pub fn ticks(low: f64, high: f64) -> Vec<f64> {
    const MOST: f64 = 5.0;
    let rough = (high - low) / MOST;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = steps.into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let ticks = (first..).map(|number| number as f64 * step);
    ticks
        .take_while(|tick| *tick <= high + 1e-9 * step)
        .collect()
}

/// Ticks' values in as few letters as tell them apart.
pub fn labels(ticks: &[f64]) -> Vec<String> {
    let largest = ticks
        .iter()
        .fold(0.0, |most: f64, tick| most.max(tick.abs()));
    let is_plain = largest == 0.0 || (1e-3..1e5).contains(&largest);
    let label = |tick: f64, digits: usize| match is_plain || tick == 0.0 {
        true => format!("{tick:.digits$}"),
        false => format!("{tick:.digits$e}"),
    };
    let written = |digits| ticks.iter().map(move |&tick| label(tick, digits));
    let is_enough = |digits: &usize| {
        let read = written(*digits).map(|text| text.parse().unwrap_or(f64::NAN));
        let step = ticks
            .get(1)
            .map_or(largest, |second| second - ticks[0])
            .abs();
        let far = |(read, tick): (f64, &f64)| (read - tick).abs() > 0.01 * step;
        !read.zip(ticks).any(far)
    };
    let digits = (0..9).find(is_enough).unwrap_or(9);
    written(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brightness(colour: Colour) -> f64 {
        let [r, g, b] = colour.map(f64::from);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn brightness_rises_with_values_and_levels() {
        let shares = (0..=50).map(|n| of_share(f64::from(n) / 50.0));
        assert!(shares.is_sorted_by(|a, b| brightness(*a) < brightness(*b)));
        assert!(
            (0..6)
                .map(|level| brightness(of_level(level, 5)))
                .is_sorted()
        );
        assert_eq!(of_value(f32::NAN, [0.0, 1.0]), NOT_A_NUMBER);
        assert_eq!(of_value(3.0, [3.0, 3.0]), of_share(0.5));
        assert_eq!(of_value(3.0, [1.0, 3.0]), of_share(1.0));
    }

    #[test]
    fn few_ranks_differ_and_many_follow_their_numbers() {
        let few: std::collections::HashSet<Colour> =
            (0..20).map(|rank| of_rank(rank, 20)).collect();
        assert_eq!(few.len(), 20);
        assert!(
            (0..512)
                .step_by(32)
                .map(|rank| brightness(of_rank(rank, 512)) as u32)
                .is_sorted()
        );
    }

    #[test]
    fn ticks_are_round_and_short() {
        assert_eq!(
            ticks(0.0, 1.0),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(labels(&ticks(0.93, 4.1)), ["1", "2", "3", "4"]);
        assert_eq!(labels(&ticks(0.0, 1.0))[2..4], ["0.4", "0.6"]);
        assert_eq!(
            labels(&ticks(0.45651, 0.45655))[..2],
            ["0.45651", "0.45652"]
        );
        assert_eq!(
            labels(&ticks(0.0, 3e-7)),
            ["0e0", "1e-7", "2e-7", "3e-7"].map(|word| word.replace("0e0", "0"))
        );
        assert_eq!(labels(&[123456.0]), ["1.23e5"]);
        assert_eq!(ticks(2.0, 2.0), [2.0]);
        assert!(ticks(f64::NAN, 1.0).len() == 1 && ticks(1.0, f64::INFINITY).len() == 1);
    }
}
