//! Strong scaling: one deck on ever more ranks, measured and emulated.

use colltune_emulate::cost::Costs;
use colltune_statistics::{median, spearman};
use serde::Serialize;

use super::args::{FIT_POLICY, Measuring};
use super::compare::compare;
use super::measure::{Problem, measured};
use colltune_lab::emulate::recording::Recorded;
use colltune_output::table;

#[derive(Serialize)]
pub struct Scaling {
    deck: String,
    rows: Vec<Ranks>,
    /// Whether every change that is more than noise has the emulated one's sign, and the order is the same.
    pub signs_agree: bool,
}

#[derive(Serialize)]
struct Ranks {
    ranks: usize,
    measured_s: f64,
    /// Half the range over the median.
    noise: f64,
    emulated_s: f64,
}

/// Runs the deck on each number of ranks; nothing without any.
pub fn scaling(
    measuring: Measuring,
    problem: &Problem,
    recording: Option<&Recorded>,
    costs: &Costs,
) -> anyhow::Result<Option<Scaling>> {
    let Measuring {
        args,
        bench,
        place,
        machine,
    } = measuring;
    if args.scaling.is_empty() {
        return Ok(None);
    }
    let policy = [FIT_POLICY.to_owned()];
    let mut runs = vec![vec![Vec::new()]; args.scaling.len()];
    for turn in 1..=args.repetitions {
        for (&ranks, samples) in args.scaling.iter().zip(&mut runs) {
            let place = (bench, place, ranks);
            measured(place, problem, &policy, (turn, args.repetitions), samples)?;
        }
    }
    let mut rows = Vec::new();
    for (&ranks, runs) in args.scaling.iter().zip(&runs) {
        let row = compare(
            problem, FIT_POLICY, &runs[0], recording, costs, machine, ranks,
        )?;
        rows.push(Ranks {
            ranks,
            measured_s: median(&row.measured_s),
            noise: row.noise,
            emulated_s: row.emulated_s,
        });
    }
    Ok(Some(Scaling {
        deck: problem.deck.clone(),
        signs_agree: signs_agree(&rows),
        rows,
    }))
}

fn signs_agree(rows: &[Ranks]) -> bool {
    let differ = |a: &Ranks, b: &Ranks| {
        let noise = a.noise * a.measured_s + b.noise * b.measured_s;
        (a.measured_s - b.measured_s).abs() > noise
    };
    let agree = rows.windows(2).filter(|pair| differ(&pair[0], &pair[1]));
    let same_sign = |pair: &[Ranks]| {
        let fell = |of: fn(&Ranks) -> f64| of(&pair[1]) < of(&pair[0]);
        fell(|row| row.measured_s) == fell(|row| row.emulated_s)
    };
    let mut agree = agree.map(same_sign);
    let all_differ = rows
        .iter()
        .enumerate()
        .all(|(i, a)| rows[..i].iter().all(|b| differ(a, b)));
    let of = |value: fn(&Ranks) -> f64| rows.iter().map(value).collect::<Vec<_>>();
    let order = spearman(&of(|row| row.measured_s), &of(|row| row.emulated_s));
    // Where times do not differ beyond noise there is no order to be met.
    agree.all(|agrees| agrees) && (!all_differ || order.is_none_or(|rho| rho > 0.999))
}

impl Scaling {
    pub fn in_columns(&self) -> String {
        let row = |row: &Ranks| {
            vec![
                row.ranks.to_string(),
                format!("{:.3}", row.measured_s),
                format!("{:.1}", 100.0 * row.noise),
                format!("{:.3}", row.emulated_s),
            ]
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        let header = ["ranks", "measured s", "noise %", "emulated s"];
        format!("{} by ranks\n{}", self.deck, table(&header, &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_beyond_noise_that_is_emulated_the_other_way_round_is_seen() {
        let rows = |all: [(f64, f64, f64); 3]| -> Vec<Ranks> {
            let row = |(i, (measured_s, noise, emulated_s)): (usize, (f64, f64, f64))| Ranks {
                ranks: 1 << i,
                measured_s,
                noise,
                emulated_s,
            };
            all.into_iter().enumerate().map(row).collect()
        };
        assert!(signs_agree(&rows([
            (4.0, 0.01, 5.0),
            (2.0, 0.01, 3.0),
            (3.0, 0.01, 4.0)
        ])));
        assert!(!signs_agree(&rows([
            (4.0, 0.01, 5.0),
            (2.0, 0.01, 6.0),
            (3.0, 0.01, 4.0)
        ])));
        assert!(signs_agree(&rows([
            (4.0, 0.5, 5.0),
            (3.9, 0.5, 6.0),
            (3.8, 0.5, 4.0)
        ])));
        assert!(
            !signs_agree(&rows([
                (4.0, 0.01, 3.5),
                (2.0, 0.01, 3.0),
                (3.0, 0.01, 4.0)
            ])),
            "the first is the longest"
        );
    }
}
