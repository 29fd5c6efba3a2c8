//! A program's levers and its collectives compared, each alone and both together: rounds of two or four jobs in drawn
//! order, with neither, the levers, the collectives, and both.

use colltune_core::account::JobSummary;
use colltune_core::levers::Arms;
use colltune_core::request::Mode;
use colltune_launch::trial::{Trials, Way};
use colltune_output::{progress, table};
use colltune_statistics::{Interval, median, trimmed_mean};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use crate::comparison::{Pair, Side, seconds, tried};

const SIDES: [&str; 4] = ["neither", "levers", "collectives", "both"];

/// The whole times of one round in seconds, in the order of [`SIDES`]; without collectives the first two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    pub seconds: Vec<f64>,
    /// Whether the levers alone ran before both.
    bare_first: bool,
}

/// The arms of one side: those on the line, and those that the program gets where it asks.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    pub line: Arms,
    pub asked: Arms,
}

impl Round {
    /// Runs one. Its number decides who is first.
    pub fn run(
        trials: &mut Trials,
        (first, chosen): (&Sides, &Sides),
        n_sides: usize,
        (mode, number): (Mode, usize),
        with: &mut Vec<JobSummary>,
    ) -> anyhow::Result<Round> {
        let mut order: Vec<usize> = (0..n_sides).collect();
        order.shuffle(&mut StdRng::seed_from_u64(number as u64 + 1));
        let mut times = vec![0.0; n_sides];
        for &side in &order {
            let name = SIDES[side];
            progress::show(&format!("round {} of the comparison, {name}", number + 1));
            let arms = if side % 2 == 1 { chosen } else { first };
            // With both, each size has the arm that is chosen for it.
            let told = if side == 3 {
                Arms::new()
            } else {
                arms.asked.clone()
            };
            (trials.arms, trials.told) = (arms.line.clone(), told);
            let way = match side {
                // Its ranks hear of the arms through the launcher alone.
                1 if !arms.asked.is_empty() => Way::Tuned(Mode::Record),
                0 | 1 => Way::Bare,
                _ => Way::Tuned(mode),
            };
            let done = tried(trials, way, &format!("with {name}"))?;
            times[side] = done.wall_s;
            if side == 3 {
                with.extend(done.summary);
            }
        }
        trials.told = Arms::new();
        let place = |side| order.iter().position(|other| *other == side);
        Ok(Round {
            seconds: times,
            bare_first: place(1) < place(3),
        })
    }

    /// With and without the collectives' choices, at the arms that are chosen.
    pub fn pair(&self) -> Option<Pair> {
        let &[_, without_s, _, with_s] = &self.seconds[..] else {
            return None;
        };
        let first = if self.bare_first {
            Side::Without
        } else {
            Side::With
        };
        Some(Pair {
            first,
            without_s,
            with_s,
        })
    }
}

/// A ratio of times over rounds with its 95 % interval: how many times as fast.
fn ratio(rounds: &[Round], log: impl Fn(&[f64]) -> f64) -> Interval {
    let logs: Vec<f64> = rounds.iter().map(|round| log(&round.seconds)).collect();
    let found = trimmed_mean(&logs);
    let at = |away: f64| (found.mean + away).exp();
    Interval {
        low: at(-found.half),
        value: at(0.0),
        high: at(found.half),
    }
}

/// How many times as fast the last side is as the first; `None` of no rounds.
pub fn last_beside_first(rounds: &[Round]) -> Option<Interval> {
    let last = rounds.first()?.seconds.len() - 1;
    Some(ratio(rounds, |times| (times[0] / times[last]).ln()))
}

/// Whether the levers, or both where collectives are compared too, are shown to be faster than neither.
pub fn is_faster(rounds: &[Round]) -> bool {
    let n_sides = rounds.first().map_or(0, |round| round.seconds.len());
    n_sides > 1 && ratio(rounds, |times| (times[0] / times[n_sides - 1]).ln()).low > 1.0
}

/// The 95 % interval of how many times as fast the levers alone make it.
pub fn levers(rounds: &[Round]) -> (f64, f64) {
    if rounds.is_empty() {
        return (0.0, f64::INFINITY);
    }
    let Interval { low, high, .. } = ratio(rounds, |times| (times[0] / times[1]).ln());
    (low, high)
}

/// The table and what it says; empty of no rounds.
pub fn text(rounds: &[Round]) -> String {
    let Some(n_sides) = rounds.first().map(|round| round.seconds.len()) else {
        return String::new();
    };
    let row = |side: usize| {
        let times: Vec<f64> = rounds.iter().map(|round| round.seconds[side]).collect();
        let beside = match side {
            0 => String::new(),
            _ => {
                let Interval { low, value, high } =
                    ratio(rounds, |times| (times[0] / times[side]).ln());
                format!("{value:.3} ({low:.3} to {high:.3})")
            }
        };
        vec![SIDES[side].to_owned(), seconds(median(&times)), beside]
    };
    let rows: Vec<Vec<String>> = (0..n_sides).map(row).collect();
    let runs = if rounds.len() == 1 { "run" } else { "runs" };
    let mut text = format!("{} {runs} each, in drawn order:\n", rounds.len());
    text += &table(&["", "median", "times as fast (95 % interval)"], &rows);
    if n_sides == 4 {
        let both = ratio(rounds, |times| (times[0] / times[3]).ln()).value;
        let of_both = |t: &[f64]| (t[1] * t[2] / (t[0] * t[3])).ln();
        let Interval {
            low,
            value: more,
            high,
        } = ratio(rounds, of_both);
        text += &format!(
            "Both together give {both:.3}, {more:.3} times the product of each alone (95 % interval {low:.3} to {high:.3}){}.\n",
            match low > 1.0 || high < 1.0 {
                true => "",
                false => ": no interaction is shown",
            }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_is_held_against_neither_and_the_interaction_is_what_the_product_does_not_explain()
    {
        let round = |scale: f64| Round {
            seconds: [4.0, 2.0, 3.2, 1.25].map(|time| scale * time).to_vec(),
            bare_first: true,
        };
        let rounds = [round(1.0), round(1.1), round(2.0)];
        let said = text(&rounds);
        for part in [
            "3 runs each",
            "levers",
            "2.000 (2.000 to 2.000)",
            "1.250 (1.250",
            "give 3.200, 1.280 times the product",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(is_faster(&rounds) && !is_faster(&[]));
        let pair = rounds[0].pair().unwrap();
        assert_eq!(
            (pair.first, pair.without_s, pair.with_s),
            (Side::Without, 2.0, 1.25)
        );
        let alone = Round {
            seconds: vec![1.0, 2.0],
            bare_first: true,
        };
        assert_eq!(alone.pair(), None);
        assert!(!text(&[alone.clone(), alone]).contains("together"));
    }
}
