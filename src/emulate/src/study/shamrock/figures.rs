//! The paper's pictures, with our values.

use super::results::{CORES, Results};
use super::times::Times;
use crate::study::figure::{Bar, Figure, Line, Picture};

/// Figs 3 and 5 to 8.
pub fn figures(results: &Results) -> Vec<Figure> {
    let figure = |name: &str, title: &str, picture| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        picture,
    };
    let bars = |all: Vec<(String, f64, f64)>| {
        let bar = |(name, compute, comm)| Bar {
            name,
            parts: vec![("computing", compute), ("communication", comm)],
        };
        Picture::Bars {
            y: "s",
            bars: all.into_iter().map(bar).collect(),
        }
    };
    let of_run = |name: &str, run: &Times| (name.to_owned(), run.mean_compute(), run.mean_comm());
    let [none, dealt] = &results.fig_3;
    let fig_3 = bars(vec![of_run("none", none), of_run("round robin", dealt)]);
    let by_rank = ["none", "distributed"].iter().zip(&results.fig_5);
    let by_rank = by_rank.flat_map(|(name, run)| {
        let ranks = run.compute.iter().enumerate();
        ranks.map(move |(rank, &compute)| (format!("{name} {rank}"), compute, run.total - compute))
    });
    let fig_5 = bars(by_rank.collect());
    let by_cores = CORES.iter().enumerate().flat_map(|(i, cores)| {
        let [none, dealt] = &results.fig_6;
        [
            of_run(&format!("{cores}"), &none[i]),
            of_run(&format!("{cores} d"), &dealt[i]),
        ]
    });
    let fig_6 = bars(by_cores.collect());
    let lines = |all: &[(&str, &Vec<Times>)]| Picture::Lines {
        x: "cores",
        y: "s",
        lines: all.iter().map(|(name, runs)| line(name, runs)).collect(),
    };
    let [n, four, three, two, one] = &results.fig_7;
    let fig_7 = lines(&[
        ("none", n),
        ("from 4", four),
        ("from 3", three),
        ("from 2", two),
        ("from 1", one),
    ]);
    let [n, dealt] = &results.fig_6;
    let fig_8 = lines(&[
        ("none", n),
        ("distributed", dealt),
        ("model", &results.fig_8),
    ]);
    vec![
        figure("fig-3", "Symmetric deck on four cores", fig_3),
        figure("fig-5", "Asymmetric deck on four cores, by rank", fig_5),
        figure(
            "fig-6",
            "Symmetric deck by cores, without distribution and with it (d)",
            fig_6,
        ),
        figure(
            "fig-7",
            "Asymmetric deck: distribution from a level on",
            fig_7,
        ),
        figure("fig-8", "Symmetric deck: the model beside both", fig_8),
    ]
}

fn line(name: &str, runs: &[Times]) -> Line {
    let points = CORES.iter().zip(runs);
    Line {
        name: name.to_owned(),
        points: points
            .map(|(&cores, run)| (f64::from(cores), run.total))
            .collect(),
    }
}
