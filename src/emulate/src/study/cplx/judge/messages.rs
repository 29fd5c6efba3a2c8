//! Figures 2, 6b, 6c and 7: communication against balance, messages, small benchmarks, a slow node, other networks.

use super::found::{COMMBENCH_RANKS, Found, Row, Timed, Wire, best, finding, share};
use crate::study::cplx::fit::{gains, sync};
use crate::study::cplx::scale::{BASELINE, LPT, PERCENT, Totals};
use crate::study::finding::{Finding, Verdict, within};

pub fn tradeoff(found: &Found) -> Vec<Finding> {
    let last = &found.scales[3];
    let comm = |run: &Totals| run.times.communication;
    let more = 100.0 * (comm(&last[LPT]) / comm(&last[BASELINE]) - 1.0);
    let of_run = share(comm(&last[LPT]), &last[LPT]);
    let sync = |run: &Totals| run.times.synchronisation;
    let gain = |place: usize| sync(&last[BASELINE]) - sync(&last[place]);
    // CPLX with X = 50 is the fourth policy.
    let middle = 100.0 * gain(3) / gain(LPT);
    let first = &found.scales[0];
    let ratio = |run: &Totals| 100.0 * (comm(run) / comm(&first[BASELINE]) - 1.0);
    let least = first[1..].iter().map(ratio).fold(f64::INFINITY, f64::min);
    let row = |id, what, paper, ours: f64, tolerance, verdict| {
        finding(Row {
            id,
            what,
            paper: &[paper],
            ours: vec![ours],
            tolerance,
            verdict,
            note: "",
        })
    };
    vec![
        row(
            "C5",
            "fig. 6b, 4096 ranks: % more communication under LPT",
            Some(55.0),
            more,
            "20 points",
            Verdict::of_both((more - 55.0).abs() <= 20.0, more > 0.0),
        ),
        row(
            "C5",
            "section VI, 4096 ranks: % communication under LPT",
            Some(13.0),
            of_run,
            "4 points",
            Verdict::of((of_run - 13.0).abs() <= 4.0),
        ),
        row(
            "C5",
            "fig. 6b, 4096 ranks: % of LPT's gain in synchronisation at X = 50",
            None,
            middle,
            "at least 80",
            Verdict::of_both(middle >= 80.0, middle > 50.0),
        ),
        row(
            "C7",
            "fig. 6b, 512 ranks: % change of communication under the X that has least",
            None,
            least,
            "below 0",
            Verdict::of(least < 0.0),
        ),
    ]
}

pub fn messages(found: &Found) -> Vec<Finding> {
    let last = &found.scales[3];
    let remote = |run: &Totals| run.locality.remote as f64;
    let local = |run: &Totals| run.locality.same_node as f64;
    let total = |run: &Totals| remote(run) + local(run);
    let share = 100.0 * remote(&last[BASELINE]) / total(&last[BASELINE]);
    let paper = [Some(64.0)];
    let mut all = vec![finding(Row {
        id: "C6",
        what: "fig. 6c, 4096 ranks, baseline: % remote of all messages",
        paper: &paper,
        verdict: Verdict::of(within(&paper, &[share], 5.0)),
        ours: vec![share],
        tolerance: "5 points",
        note: "the geometry alone: no cost and no network",
    })];
    for (deck, what) in [
        (
            0,
            "fig. 6c, 512 ranks: % of the baseline's messages, all, X = 0 to 100",
        ),
        (
            3,
            "fig. 6c, 4096 ranks: % of the baseline's messages, all, X = 0 to 100",
        ),
    ] {
        let (today, runs) = (&found.scales[deck][BASELINE], &found.scales[deck][1..]);
        let ours: Vec<f64> = runs
            .iter()
            .map(|run| 100.0 * total(run) / total(today))
            .collect();
        let up = runs.is_sorted_by(|a, b| remote(a) <= remote(b));
        let down = runs.is_sorted_by(|a, b| local(a) >= local(b));
        all.push(finding(Row {
            id: "C6",
            what,
            paper: &[None; PERCENT.len()],
            verdict: Verdict::of(up && down && ours.is_sorted()),
            ours,
            tolerance: "all and remote grow with X, local falls",
            note: "",
        }));
    }
    all
}

pub fn commbench(found: &Found) -> Vec<Finding> {
    let row = |what: &str,
               ranks: std::ops::RangeInclusive<usize>,
               tolerance,
               holds: fn(&[f64]) -> bool| {
        let all = COMMBENCH_RANKS.iter().zip(&found.latency_ms);
        let chosen: Vec<&[f64; PERCENT.len()]> = all
            .filter(|(n, _)| ranks.contains(n))
            .map(|(_, by_x)| by_x)
            .collect();
        let range = |by_x: &[f64]| best(by_x) - by_x.iter().copied().fold(f64::INFINITY, f64::min);
        let near = chosen.iter().all(|by_x| range(&by_x[..]) < 1.0);
        let sign = chosen.iter().all(|by_x| holds(&by_x[..]));
        let ours: Vec<f64> = chosen.into_iter().flatten().copied().collect();
        finding(Row {
            id: "C8",
            what,
            paper: &vec![None; ours.len()],
            ours,
            tolerance,
            verdict: Verdict::of_both(near, sign),
            note: "emulated commbench, exponential costs",
        })
    };
    vec![
        row(
            "fig. 7a: ms a round, X = 0 to 100, at 128, 256 and 512 ranks",
            0..=512,
            "grows with X, by less than 1",
            |by_x| by_x.is_sorted(),
        ),
        row(
            "fig. 7a: ms a round, X = 0 to 100, at 2048 and 4096 ranks",
            513..=usize::MAX,
            "less between X = 0 and 100 than at both, by less than 1",
            |by_x| {
                let between = by_x[1..4].iter().copied().fold(f64::INFINITY, f64::min);
                between < by_x[0].min(by_x[4])
            },
        ),
    ]
}

pub fn measured(found: &Found) -> Vec<Finding> {
    let row = |id, what, paper: &[Option<f64>], ours, tolerance, verdict, note| {
        finding(Row {
            id,
            what,
            paper,
            ours,
            tolerance,
            verdict,
            note,
        })
    };
    let [published, library] = &found.shares;
    let bulk = |shares: &[f64]| Verdict::of(shares.iter().all(|&share| share >= 60.0));
    let mut all = vec![
        row(
            "C9",
            "fig. 7b, 4096 ranks: % of LPT's gain over CDP at X = 25, published code",
            &[None; 3],
            published.clone(),
            "at least 60",
            bulk(published),
            "exponential, Gaussian, power law; no emulation",
        ),
        row(
            "C9",
            "the same by this library's policies",
            &[None; 3],
            library.clone(),
            "at least 60",
            bulk(library),
            "exponential, Gaussian, power law; no emulation",
        ),
    ];
    let paper = [Some(10.0), Some(100.0)];
    all.push(match &found.timed {
        Some(Timed { seconds, ranks }) => {
            let ours = seconds.map(|[_, library]| 1e3 * library).to_vec();
            let published = seconds.map(|[published, _]| 1e3 * published);
            let holds = ours.iter().zip([10.0, 100.0]).all(|(ours, paper)| *ours <= paper);
            row(
                "C10",
                "fig. 7c: ms of cplx:50 at 16384 and 131072 ranks",
                &paper,
                ours,
                "at most theirs",
                Verdict::of(holds),
                &format!(
                    "measured here on {} and {} ranks' blocks; their algorithm takes {:.1} and {:.1} ms here",
                    ranks[0], ranks[1], published[0], published[1]
                ),
            )
        }
        None => row(
            "C10",
            "fig. 7c: ms of cplx:50 at 16384 and 131072 ranks",
            &paper,
            Vec::new(),
            "at most theirs",
            Verdict::NotJudged,
            "not run: nothing was timed",
        ),
    });
    all
}

pub fn slow_node(found: &Found) -> Vec<Finding> {
    let [healthy, slow] = &found.slow;
    let (share, ratio) = (sync(slow), slow.times.total() / healthy.times.total());
    vec![
        finding(Row {
            id: "C11",
            what: "fig. 2: % synchronisation with a node that is 4 times slow",
            paper: &[Some(70.0)],
            ours: vec![share],
            tolerance: "above 70",
            verdict: Verdict::of_both(share > 70.0, share > sync(healthy)),
            note: "one node of 32, 512 ranks, baseline",
        }),
        finding(Row {
            id: "C11",
            what: "fig. 2: times as fast without it",
            paper: &[Some(3.0)],
            ours: vec![ratio],
            tolerance: "2.5 to 4.5",
            verdict: Verdict::of_both((2.5..=4.5).contains(&ratio), ratio > 1.0),
            note: "the paper says 3 and 4",
        }),
    ]
}

/// What other networks would give, beside the judged rows.
pub fn wires(found: &Found) -> Vec<Finding> {
    let row = |id, what: String, ours: Vec<f64>| {
        finding(Row {
            id,
            what: &what,
            paper: &vec![None; ours.len()],
            ours,
            tolerance: "",
            verdict: Verdict::NotJudged,
            note: "sampled more sparsely",
        })
    };
    let of = |wire: &Wire| {
        let (today, lpt) = (&wire.last[BASELINE], &wire.last[LPT]);
        let name = wire.name;
        [
            row(
                "C1",
                format!(
                    "4096 ranks, t_s and t_c {name}, baseline: % synchronisation, communication"
                ),
                vec![sync(today), share(today.times.communication, today)],
            ),
            row(
                "C2",
                format!("4096 ranks, t_s and t_c {name}: % gain of the best X"),
                vec![best(&gains(&wire.last))],
            ),
            row(
                "C5",
                format!(
                    "4096 ranks, t_s and t_c {name}: % more communication under LPT, its share"
                ),
                vec![
                    100.0 * (lpt.times.communication / today.times.communication - 1.0),
                    share(lpt.times.communication, lpt),
                ],
            ),
        ]
    };
    found.wires.iter().flat_map(of).collect()
}
