//! The paper's figures 2, 6 and 7a, as far as they are emulated.

use super::judge::{COMMBENCH_RANKS, Found};
use super::scale::{BASELINE, PERCENT, Totals};
use crate::study::{Bar, Figure, Line, Picture};

pub fn figures(found: &Found) -> Vec<Figure> {
    let names = ["baseline", "X = 0", "X = 25", "X = 50", "X = 75", "X = 100"];
    let mut all = Vec::new();
    for (ranks, place) in [(512, 0), (4096, 3)] {
        let runs = names.iter().zip(&found.scales[place]);
        all.push(Figure {
            name: format!("6a-{ranks}"),
            title: format!("Fig. 6a: where a step's time goes, {ranks} ranks"),
            picture: Picture::Bars {
                y: "ms a step",
                bars: runs.map(|(name, run)| bar(name, run)).collect(),
            },
        });
    }
    let by_x = |name: String, values: Vec<f64>| Line {
        name,
        points: PERCENT
            .iter()
            .map(|&x| f64::from(x.max(1)))
            .zip(values)
            .collect(),
    };
    let mut tradeoff = Vec::new();
    for (ranks, place) in [(512, 0), (4096, 3)] {
        let (today, runs) = (&found.scales[place][BASELINE], &found.scales[place][1..]);
        let mut line = |what: &str, part: fn(&Totals) -> f64| {
            let values = runs.iter().map(|run| part(run) / part(today)).collect();
            tradeoff.push(by_x(format!("{what}, {ranks} ranks"), values));
        };
        line("communication", |run| run.times.communication);
        line("synchronisation", |run| run.times.synchronisation);
    }
    all.push(Figure {
        name: "6b".to_owned(),
        title: "Fig. 6b: communication and synchronisation, by the baseline's".to_owned(),
        picture: Picture::Lines {
            x: "X in percent (0 stands at 1)",
            y: "by the baseline's",
            lines: tradeoff,
        },
    });
    let rounds = COMMBENCH_RANKS.iter().zip(&found.latency_ms);
    all.push(Figure {
        name: "7a".to_owned(),
        title: "Fig. 7a: a round of messages between neighbours".to_owned(),
        picture: Picture::Lines {
            x: "X in percent (0 stands at 1)",
            y: "ms a round",
            lines: rounds
                .map(|(ranks, by)| by_x(format!("{ranks} ranks"), by.to_vec()))
                .collect(),
        },
    });
    let [healthy, slow] = &found.slow;
    all.push(Figure {
        name: "2".to_owned(),
        title: "Fig. 2: one node of 32 that is four times slow, 512 ranks".to_owned(),
        picture: Picture::Bars {
            y: "ms a step",
            bars: vec![bar("without it", healthy), bar("with it", slow)],
        },
    });
    all
}

fn bar(name: &str, run: &Totals) -> Bar {
    let times = &run.times;
    Bar {
        name: name.to_owned(),
        parts: vec![
            ("computing", 1e3 * times.compute),
            ("communication", 1e3 * times.communication),
            ("synchronisation", 1e3 * times.synchronisation),
            ("rebalancing", 1e3 * times.rebalance),
        ],
    }
}
