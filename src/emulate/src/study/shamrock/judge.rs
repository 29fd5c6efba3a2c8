//! What the paper says, what came out, and what may be called a reproduction of it.

use super::results::{CORES, Results};
use super::times::Times;
use crate::study::finding::{Finding, Verdict, within};
use crate::study::variation::names;

/// So much slower may a strategy be and still count as equal.
const SLACK: f64 = 0.02;

type Number = fn(&Results) -> f64;

/// The numbers of the paper's text, each with what it is in a set of results.
const NUMBERS: [(&str, f64, Number); 7] = [
    ("fig. 3: s of communication, distributed", 60.67, |r| {
        r.fig_3[1].mean_comm()
    }),
    ("fig. 3: distributed over not", 1.141, |r| {
        r.fig_3[1].total / r.fig_3[0].total
    }),
    (
        "fig. 5: worst communication, none over distributed",
        5.0,
        |r| r.fig_5[0].worst_comm() / r.fig_5[1].worst_comm(),
    ),
    ("fig. 5: % in communication, distributed", 25.0, |r| {
        r.fig_5[1].comm_share()
    }),
    (
        "fig. 6: % in communication on 1024, distributed",
        71.4,
        |r| r.fig_6[1][CORES.len() - 1].comm_share(),
    ),
    ("fig. 8: % gained by the model on 16", 18.1, |r| gain(r, 2)),
    ("fig. 8: % gained by the model on 32", 29.1, |r| gain(r, 3)),
];

/// All findings; `varied` are the results on other networks.
pub fn findings(results: &Results, varied: &[Results]) -> Vec<Finding> {
    let mut all = vec![
        fig_3(results),
        fig_3_ratio(results),
        fig_5_worst(results),
        fig_5_share(results),
    ];
    all.extend(fig_6(results));
    all.push(fig_7(results));
    all.extend(fig_8(results));
    for (what, paper, number) in NUMBERS {
        all.push(Finding {
            id: "S*",
            what: format!("{what}: {}", names()),
            paper: vec![Some(paper); varied.len()],
            ours: varied.iter().map(number).collect(),
            tolerance: "shown".to_owned(),
            verdict: Verdict::NotJudged,
            note: "network varied, both numbers set anew".to_owned(),
        });
    }
    all
}

fn finding(id: &'static str, what: &str, paper: &[f64], ours: &[f64], tolerance: &str) -> Finding {
    Finding {
        id,
        what: what.to_owned(),
        paper: paper.iter().map(|&x| Some(x)).collect(),
        ours: ours.to_vec(),
        tolerance: tolerance.to_owned(),
        verdict: Verdict::NotJudged,
        note: String::new(),
    }
}

fn fig_3(results: &Results) -> Finding {
    let [none, dealt] = &results.fig_3;
    let near = (dealt.mean_comm() / 60.67 - 1.0).abs() <= 0.15;
    Finding {
        verdict: Verdict::of_both(near, dealt.mean_comm() > none.mean_comm()),
        note: "268.98 s of computing and the first value were set".to_owned(),
        ..finding(
            "S1",
            "fig. 3: s of communication, none and round robin",
            &[19.96, 60.67],
            &[none.mean_comm(), dealt.mean_comm()],
            "15 %",
        )
    }
}

fn fig_3_ratio(results: &Results) -> Finding {
    let [none, dealt] = &results.fig_3;
    let ratio = dealt.total / none.total;
    Finding {
        verdict: Verdict::of_both((ratio - 1.141).abs() <= 0.02, ratio > 1.0),
        ..finding(
            "S1",
            "fig. 3: round robin over none",
            &[1.141],
            &[ratio],
            "0.02",
        )
    }
}

fn fig_5_worst(results: &Results) -> Finding {
    let [none, dealt] = results.fig_5.each_ref().map(Times::worst_comm);
    let ratio = none / dealt;
    Finding {
        verdict: Verdict::of_both((ratio - 5.0).abs() <= 1.5, ratio > 1.0),
        note: "geometry is ours".to_owned(),
        ..finding(
            "S2",
            "fig. 5: worst s of communication, none, distributed, ratio",
            &[120.0, 24.0, 5.0],
            &[none, dealt, ratio],
            "ratio +- 1.5",
        )
    }
}

fn fig_5_share(results: &Results) -> Finding {
    let share = results.fig_5[1].comm_share();
    let what = "fig. 5: % in communication, distributed";
    Finding {
        verdict: Verdict::of((share - 25.0).abs() <= 6.0),
        note: "geometry is ours".to_owned(),
        ..finding("S2", what, &[25.0], &[share], "6 points")
    }
}

fn fig_6(results: &Results) -> Vec<Finding> {
    let [none, dealt] = &results.fig_6;
    let totals = |runs: &[Times]| runs.iter().map(|run| run.total).collect::<Vec<_>>();
    let (none, dealt_s) = (totals(none), totals(dealt));
    let best = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let place = dealt_s
        .iter()
        .position(|&t| t == best(&dealt_s))
        .unwrap_or(0);
    let leads = best(&dealt_s) < best(&none);
    let near = (16..=64).contains(&CORES[place]);
    let best_of_all = Finding {
        verdict: Verdict::of_both(near && leads, leads),
        note: "network assumed; the second value is the best of none over it".to_owned(),
        ..finding(
            "S3",
            "fig. 6: cores where distribution is fastest; it is the best of all",
            &[32.0],
            &[f64::from(CORES[place]), best(&none) / best(&dealt_s)],
            "16 to 64, above 1",
        )
    };
    let share = dealt[CORES.len() - 1].comm_share();
    let at_scale = Finding {
        verdict: Verdict::of((share - 71.4).abs() <= 8.0),
        note: "network assumed".to_owned(),
        ..finding(
            "S3",
            "fig. 6: % in communication on 1024, distributed",
            &[71.4],
            &[share],
            "8 points",
        )
    };
    let ends = [0, CORES.len() - 1].map(|i| dealt_s[i] / none[i]);
    let faster = Finding {
        paper: vec![None, None],
        verdict: Verdict::of(ends.iter().all(|&ratio| ratio > 1.0)),
        ..finding(
            "S3",
            "fig. 6: distributed over none on 4 and 1024",
            &[],
            &ends,
            "above 1",
        )
    };
    vec![best_of_all, at_scale, faster]
}

/// How far beyond the slower of the two extremes, or before the faster one, any threshold is.
fn fig_7(results: &Results) -> Finding {
    let [none, between @ .., all] = &results.fig_7;
    let beyond = |i: usize| {
        let (a, b) = (none[i].total, all[i].total);
        let of = |runs: &Vec<Times>| {
            let time = runs[i].total;
            (time / a.max(b) - 1.0).max(1.0 - time / a.min(b))
        };
        between.iter().map(of).fold(f64::NEG_INFINITY, f64::max)
    };
    let worst: Vec<f64> = (0..CORES.len())
        .map(|i| 100.0 * beyond(i).max(0.0))
        .collect();
    let n_inside = worst.iter().filter(|&&x| x <= 100.0 * SLACK).count();
    Finding {
        paper: vec![Some(0.0); CORES.len()],
        verdict: Verdict::of(n_inside == CORES.len()),
        note: "dealt out round robin at every threshold".to_owned(),
        ..finding(
            "S4",
            "fig. 7: % by which a threshold lies outside none and all, at worst",
            &[],
            &worst,
            "2 %",
        )
    }
}

/// Percent that the model is faster than the better of the two others.
fn gain(results: &Results, i: usize) -> f64 {
    let best = results.fig_6.each_ref().map(|runs| runs[i].total);
    100.0 * (1.0 - results.fig_8[i].total / best[0].min(best[1]))
}

fn fig_8(results: &Results) -> Vec<Finding> {
    let gains: Vec<f64> = (0..CORES.len()).map(|i| gain(results, i)).collect();
    let everywhere = Finding {
        paper: vec![None; CORES.len()],
        verdict: Verdict::of(gains.iter().all(|&gain| gain >= -3.0)),
        note: "symmetric deck: the text does not say which".to_owned(),
        ..finding(
            "S5",
            "fig. 8: % gained by the model over the better other",
            &[],
            &gains,
            "-3 % or more",
        )
    };
    let found = [gains[2], gains[3]];
    let rest = gains
        .iter()
        .enumerate()
        .filter(|(i, _)| !(2..=3).contains(i));
    let most = rest
        .map(|(_, &gain)| gain)
        .fold(f64::NEG_INFINITY, f64::max);
    let order = found.iter().all(|&gain| gain >= most);
    let near = within(&[Some(18.1), Some(29.1)], &found, 8.0);
    let largest = Finding {
        verdict: Verdict::of_both(near && order, order),
        ..finding(
            "S5",
            "fig. 8: % gained by the model on 16 and 32",
            &[18.1, 29.1],
            &found,
            "largest, 8 points",
        )
    };
    vec![everywhere, largest]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::shamrock::times::Fitted;

    /// Four ranks that compute and wait so many seconds.
    fn run(compute: f64, comm: f64) -> Times {
        Times {
            total: compute + comm,
            compute: vec![compute; 4],
        }
    }

    /// Times that say what the paper says.
    fn papers() -> Results {
        let by_cores = |of: [f64; 9]| {
            of.iter()
                .map(|&s| run(0.286 * s, 0.714 * s))
                .collect::<Vec<_>>()
        };
        let none = by_cores([280.0, 200.0, 140.0, 110.0, 90.0, 80.0, 70.0, 65.0, 60.0]);
        let dealt = by_cores([330.0, 170.0, 90.0, 50.0, 55.0, 70.0, 90.0, 110.0, 130.0]);
        let better: Vec<f64> = none
            .iter()
            .zip(&dealt)
            .map(|(a, b)| a.total.min(b.total))
            .collect();
        let model = |(i, best): (usize, &f64)| match i {
            2 => run(best * 0.819, 0.0),
            3 => run(best * 0.709, 0.0),
            _ => run(*best, 0.0),
        };
        let middle: Vec<Times> = none
            .iter()
            .zip(&dealt)
            .map(|(a, b)| run((a.total + b.total) / 2.0, 0.0))
            .collect();
        Results {
            fitted: Fitted {
                cell_ns: 1.0,
                steps: 1.0,
            },
            fig_3: [run(268.98, 19.96), run(268.98, 60.67)],
            fig_5: [run(50.0, 120.0), run(72.0, 24.0)],
            fig_6: [none.clone(), dealt.clone()],
            fig_7: [none, middle.clone(), middle.clone(), middle, dealt],
            fig_8: better.iter().enumerate().map(model).collect(),
        }
    }

    fn verdicts(results: &Results) -> Vec<(&'static str, Verdict)> {
        let all = findings(results, &[]).into_iter();
        all.filter(|finding| finding.id != "S*")
            .map(|finding| (finding.id, finding.verdict))
            .collect()
    }

    #[test]
    fn the_papers_own_numbers_are_reproduced_and_each_that_is_off_is_not() {
        let good = verdicts(&papers());
        assert!(
            good.iter().all(|(_, v)| *v == Verdict::Reproduced),
            "{good:?}"
        );
        type Spoil = fn(&mut Results);
        let cases: [(&str, Spoil); 5] = [
            ("S1", |r| r.fig_3[1] = run(268.98, 10.0)),
            ("S2", |r| r.fig_5[1] = run(10.0, 130.0)),
            ("S3", |r| r.fig_6[1][8] = run(20.0, 0.0)),
            ("S4", |r| r.fig_7[2][5] = run(500.0, 0.0)),
            ("S5", |r| r.fig_8[6] = run(500.0, 0.0)),
        ];
        for (id, spoil) in cases {
            let mut results = papers();
            spoil(&mut results);
            let found = verdicts(&results);
            let bad = found
                .iter()
                .any(|(of, v)| *of == id && *v == Verdict::NotReproduced);
            assert!(bad, "{id}: {found:?}");
        }
    }
}
