//! Figure 6a and table I: where time goes under the baseline, and what policies gain.

use super::found::{Found, Row, best, finding, share};
use crate::study::cplx::deck::DECKS;
use crate::study::cplx::fit::{gains, sync};
use crate::study::cplx::scale::{BASELINE, PERCENT, Totals};
use crate::study::finding::{Finding, Verdict, within};

fn of_baseline(found: &Found, part: impl Fn(&Totals) -> f64) -> Vec<f64> {
    let baselines = found.scales.iter().map(|runs| &runs[BASELINE]);
    baselines.map(part).collect()
}

pub fn mesh(found: &Found) -> Finding {
    let paper = DECKS.map(|deck| Some(deck.n_blocks_final as f64));
    let ours: Vec<f64> = found.n_blocks.iter().map(|&n| n as f64).collect();
    let near = |(paper, ours): (&Option<f64>, &f64)| {
        let paper = paper.expect("table I has all");
        (ours / paper - 1.0).abs() <= 0.10
    };
    let holds = paper.iter().zip(&ours).all(near);
    finding(Row {
        id: "C0",
        what: "table I: blocks at the end",
        paper: &paper,
        verdict: Verdict::of_both(holds, ours.is_sorted()),
        ours,
        tolerance: "10 %",
        note: "the shell's outer width of 3 cells was chosen by these",
    })
}

pub fn baseline(found: &Found) -> Vec<Finding> {
    let syncs = of_baseline(found, sync);
    let comms = of_baseline(found, |run| share(run.times.communication, run));
    let late = of_baseline(found, |run| share(run.times.late, run));
    let rebalance = of_baseline(found, |run| share(run.times.rebalance, run));
    let rest = of_baseline(found, |run| {
        share(run.times.compute + run.times.synchronisation, run)
    });
    let (seven, three) = ([Some(7.0); 4], [Some(3.0); 4]);
    let row = |what, paper: &[Option<f64>], ours: Vec<f64>, tolerance, verdict, note| {
        finding(Row {
            id: "C1",
            what,
            paper,
            ours,
            tolerance,
            verdict,
            note,
        })
    };
    vec![
        row(
            "fig. 6a, baseline: % synchronisation",
            &[Some(35.0), None, None, Some(50.0)],
            syncs.clone(),
            "50 within 5 points, grows with ranks",
            Verdict::of_both((syncs[3] - 50.0).abs() <= 5.0, syncs.is_sorted()),
            "the value at 512 was fitted",
        ),
        row(
            "fig. 6a, baseline: % communication",
            &seven,
            comms.clone(),
            "3 points",
            Verdict::of(within(&seven, &comms, 3.0)),
            "",
        ),
        row(
            "of that: % waiting for senders who compute",
            &[None; 4],
            late,
            "",
            Verdict::NotJudged,
            "",
        ),
        row(
            "fig. 6a, baseline: % rebalancing",
            &three,
            rebalance.clone(),
            "2 points",
            Verdict::of(within(&three, &rebalance, 2.0)),
            "rebuilding the mesh is not emulated",
        ),
        row(
            "fig. 6a, baseline: % computing and synchronisation",
            &[Some(90.0); 4],
            rest.clone(),
            "above 90",
            Verdict::of(rest.iter().all(|&share| share > 90.0)),
            "",
        ),
    ]
}

/// How much less time is not computing under the best policy; percent.
fn non_compute_gain(runs: &[Totals]) -> f64 {
    let other = |run: &Totals| run.times.total() - run.times.compute;
    let least = runs.iter().map(other).fold(f64::INFINITY, f64::min);
    100.0 * (1.0 - least / other(&runs[BASELINE]))
}

pub fn policies(found: &Found) -> Vec<Finding> {
    let by_deck: Vec<Vec<f64>> = found.scales.iter().map(|runs| gains(runs)).collect();
    let bests: Vec<f64> = by_deck.iter().map(|gains| best(gains)).collect();
    let least = by_deck[0].iter().copied().fold(f64::INFINITY, f64::min);
    let non_compute = non_compute_gain(&found.scales[3]);
    // The first X that is best, and whether one in the middle is within 1 % of it.
    let best_x = |gains: &[f64]| {
        let most = best(gains);
        let place = gains.iter().position(|&gain| gain == most).unwrap_or(0);
        f64::from(PERCENT[place])
    };
    let middle_is_best = |gains: &[f64]| best(&gains[1..4]) >= best(gains) - 1.0;
    let flat = found.scales.iter().map(|runs| {
        let computes = runs.iter().map(|run| run.times.compute);
        let (low, high) = computes.fold((f64::INFINITY, 0.0f64), |(low, high), x| {
            (low.min(x), high.max(x))
        });
        100.0 * (high / low - 1.0)
    });
    let flat: Vec<f64> = flat.collect();
    vec![
        finding(Row {
            id: "C2",
            what: "fig. 6a: % gain of the best X",
            paper: &[Some(15.3), None, None, Some(21.6)],
            ours: bests.clone(),
            tolerance: "21.6 within 4 points, grows with ranks",
            verdict: Verdict::of_both((bests[3] - 21.6).abs() <= 4.0, bests.is_sorted()),
            note: "the value at 512 was fitted",
        }),
        finding(Row {
            id: "C2",
            what: "fig. 6a, 512 ranks: % gain of the worst X",
            paper: &[Some(12.0)],
            ours: vec![least],
            tolerance: "at least 9",
            verdict: Verdict::of_both(least >= 9.0, least > 0.0),
            note: "",
        }),
        finding(Row {
            id: "C2",
            what: "section VI, 4096 ranks: % less of what is not computing",
            paper: &[Some(36.0)],
            ours: vec![non_compute],
            tolerance: "6 points",
            verdict: Verdict::of_both((non_compute - 36.0).abs() <= 6.0, non_compute > 0.0),
            note: "",
        }),
        finding(Row {
            id: "C3",
            what: "fig. 6a, 2048 and 4096 ranks: best X",
            paper: &[Some(50.0); 2],
            ours: by_deck[2..].iter().map(|gains| best_x(gains)).collect(),
            tolerance: "25 to 75, or one of them within 1 % of the best",
            verdict: Verdict::of(by_deck[2..].iter().all(|gains| middle_is_best(gains))),
            note: "the paper's text and its caption disagree",
        }),
        finding(Row {
            id: "C4",
            what: "fig. 6a: % by which computing differs among policies",
            paper: &[Some(0.0); 4],
            // Work here does not depend on who does it: the row cannot fail.
            verdict: Verdict::NotJudged,
            ours: flat,
            tolerance: "at most 1",
            note: "holds by construction",
        }),
    ]
}
