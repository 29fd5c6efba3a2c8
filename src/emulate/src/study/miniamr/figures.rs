//! The paper's pictures, with our values.

use super::matrix::Matrix;
use super::results::{DECKS, Results, Scaled};
use crate::study::figure::{Figure, Line, Picture};

/// Pictures' names and titles with their matrices.
pub fn named(results: &Results) -> Vec<(String, String, &Matrix)> {
    let mut all = Vec::new();
    for (deck, scripts) in DECKS.iter().zip(&results.scripts) {
        for (bisection, script) in ["miniAMR's bisection", "the modified bisection"]
            .iter()
            .zip(scripts)
        {
            let kind = if bisection.starts_with("mini") {
                "miniamr"
            } else {
                "modified"
            };
            for (what, matrix) in [("ghosts", &script.ghosts), ("refinement", &script.moves)] {
                let name = format!("{what}-{}-{kind}", deck.name);
                let title = format!("{}, {what}, {bisection}", deck.name);
                all.push((name, title, matrix));
            }
        }
    }
    all
}

/// Figs 5 to 9.
pub fn figures(results: &Results) -> Vec<Figure> {
    let mut all: Vec<Figure> = named(results)
        .into_iter()
        .map(|(name, title, matrix)| Figure {
            name,
            title,
            picture: Picture::Matrix {
                n: matrix.n_ranks,
                what: "messages",
                values: matrix.dense(),
            },
        })
        .collect();
    for (deck, scaled) in DECKS.iter().zip(&results.own.scaled) {
        let line = |name: &str, part: fn(&Scaled) -> f64| Line {
            name: name.to_owned(),
            points: scaled
                .iter()
                .map(|s| (s.ranks as f64, 1e-6 * part(s) / s.blocks_per_rank))
                .collect(),
        };
        all.push(Figure {
            name: format!("fig-5-{}", deck.name),
            title: format!(
                "{}: time from one refinement to the next over blocks a rank",
                deck.name
            ),
            picture: Picture::Lines {
                x: "ranks",
                y: "ms a block",
                lines: vec![
                    line("all", |s| s.spent.total()),
                    line("calculation", |s| s.spent.compute),
                    line("communication", |s| s.spent.comm),
                    line("sums", |s| s.spent.sums),
                    line("refinement", |s| s.spent.refine),
                ],
            },
        });
    }
    all
}
