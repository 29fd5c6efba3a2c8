//! The paper's own numbers, and numbers that are off.

use super::*;
use crate::study::cplx::deck::DECKS;
use crate::study::cplx::epoch::{BlockCosts, Times};
use crate::study::cplx::fit::Fitted;
use crate::study::cplx::scale::LPT;
use crate::study::finding::Verdict;
use crate::traffic::Locality;

/// A run whose shares are these percents of a time of `total`.
fn run(
    total: f64,
    [compute, communication, synchronisation]: [f64; 3],
    [near, far]: [u64; 2],
) -> Totals {
    let part = |percent: f64| total * percent / 100.0;
    Totals {
        times: Times {
            compute: part(compute),
            communication: part(communication),
            late: 0.0,
            synchronisation: part(synchronisation),
            rebalance: part(100.0 - compute - communication - synchronisation),
        },
        locality: Locality {
            same_node: near,
            remote: far,
            ..Locality::default()
        },
        ..Totals::default()
    }
}

/// One run as the paper has it: the baseline's shares (about 7 and 3 %, and above 90), the policies' gains.
fn scale(sync: f64, gains: [f64; 5]) -> Vec<Totals> {
    let compute = 90.2 - sync;
    let mut runs = vec![run(1.0, [compute, 6.9, sync], [36, 64])];
    for (place, gain) in gains.into_iter().enumerate() {
        let total = 1.0 - gain / 100.0;
        let comm = 6.9 * (1.0 + 0.55 * place as f64 / 4.0) / total;
        let sync = 100.0 - comm - (compute + 2.9) / total;
        let step = place as u64;
        runs.push(run(
            total,
            [compute / total, comm, sync],
            [36 - step, 64 + 3 * step],
        ));
    }
    runs
}

fn as_published() -> Found {
    let scales = vec![
        scale(35.0, [12.0, 14.0, 15.3, 15.0, 14.0]),
        scale(40.0, [13.0, 16.0, 17.0, 16.5, 16.0]),
        scale(45.0, [15.0, 18.0, 19.0, 18.5, 18.0]),
        scale(50.0, [17.0, 20.0, 21.6, 21.0, 20.5]),
    ];
    let grows = [0.5, 0.6, 0.7, 0.8, 0.9];
    let u = [0.9, 0.7, 0.6, 0.7, 0.9];
    Found {
        fitted: Fitted {
            costs: BlockCosts::new(0.4, 0.2),
            block_ns: 5e7,
            sync: 35.0,
            gain: 15.3,
        },
        n_blocks: DECKS.map(|deck| deck.n_blocks_final as usize),
        wires: Vec::new(),
        slow: [
            run(1.0, [55.0, 7.0, 35.0], [1, 1]),
            run(3.0, [20.0, 5.0, 74.0], [1, 1]),
        ],
        latency_ms: vec![grows, grows, grows, u, u],
        shares: [vec![70.0; 3], vec![80.0; 3]],
        timed: Some(Timed {
            ranks: [16_384, 131_072],
            seconds: [[0.010, 0.005], [0.100, 0.030]],
        }),
        scales,
    }
}

fn verdicts(found: &Found, id: &str) -> Vec<Verdict> {
    let all = judge(found).into_iter().filter(|finding| finding.id == id);
    all.map(|finding| finding.verdict).collect()
}

#[test]
fn the_papers_own_numbers_are_reproduced() {
    let mut found = as_published();
    // The paper's shares of communication under LPT (13 %) and its +55 % do not go together with a baseline of 7 %.
    let lpt = &mut found.scales[3][LPT].times;
    lpt.communication = 0.10;
    for finding in judge(&found) {
        let text = format!("{} {}: {:.2?}", finding.id, finding.what, finding.ours);
        let is_open = finding.verdict == Verdict::NotJudged || finding.id == "C7";
        assert!(is_open || finding.verdict == Verdict::Reproduced, "{text}");
    }
}

#[test]
fn rows_that_are_off_are_not_called_reproduced() {
    type Spoil = fn(&mut Found);
    let spoils: [(&str, usize, Verdict, Spoil); 8] = [
        ("C0", 0, Verdict::ShapeOnly, |f| f.n_blocks[3] = 9_900),
        ("C1", 0, Verdict::ShapeOnly, |f| {
            f.scales[3] = scale(58.0, [9.0; 5])
        }),
        ("C1", 0, Verdict::NotReproduced, |f| f.scales.swap(0, 3)),
        ("C2", 0, Verdict::ShapeOnly, |f| {
            f.scales[3] = scale(50.0, [30.0; 5])
        }),
        ("C6", 0, Verdict::NotReproduced, |f| {
            f.scales[3][BASELINE].locality.remote = 640
        }),
        ("C8", 1, Verdict::NotReproduced, |f| {
            f.latency_ms[4] = [0.1, 0.2, 0.3, 0.4, 0.5]
        }),
        ("C9", 1, Verdict::NotReproduced, |f| f.shares[1][2] = 59.0),
        ("C10", 0, Verdict::NotJudged, |f| f.timed = None),
    ];
    for (id, place, expected, spoil) in spoils {
        let mut found = as_published();
        spoil(&mut found);
        assert_eq!(verdicts(&found, id)[place], expected, "{id}");
    }
}
