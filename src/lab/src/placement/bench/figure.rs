//! The benchmark's picture: each distribution of costs in a column, what CPLX's parameter trades below.

use super::row::Row;
use crate::plot::{Band, Figure, Line, Panel, Scale};

/// Above, all policies over the ranks: how far from the proved bound, and how long the placement took. Below, where
/// several `cplx:X` were measured, what X buys and what it costs; 0 keeps the order of the curve, 100 is LPT.
pub fn figure(rows: &[Row]) -> Figure {
    let policies = |row: &Row| Some((row.policy.clone(), f64::from(row.ranks)));
    let shares = |row: &Row| Some((in_words(row), cplx_share(&row.policy)?));
    let over_ranks = |title: &str, y, scale, value: &dyn Fn(&Row) -> f64| {
        band(rows, title, ["ranks", y], scale, &policies, value)
    };
    let over_x = |title: &str, y, scale, value: &dyn Fn(&Row) -> f64| {
        let axes = [CPLX_AXIS, y];
        band(rows, title, axes, scale, &shares, value)
    };
    let mut bands = vec![
        over_ranks("makespan", "above the bound (%)", Scale::LogX, &|row| {
            100.0 * row.gap
        }),
        over_ranks("time to place", "ms", Scale::LogBoth, &|row| {
            row.time_ms.min.max(1e-4)
        }),
    ];
    let mut of_cplx: Vec<f64> = rows
        .iter()
        .filter_map(|row| cplx_share(&row.policy))
        .collect();
    of_cplx.sort_by(f64::total_cmp);
    of_cplx.dedup();
    if of_cplx.len() > 1 {
        bands.push(over_x(
            "CPLX: makespan",
            "over the mean load",
            Scale::Close,
            &|row| row.makespan / row.mean,
        ));
        let remote = |row: &Row| {
            let messages = &row.locality;
            let all = messages.same_rank + messages.same_node + messages.remote;
            100.0 * messages.remote as f64 / all.max(1) as f64
        };
        bands.push(over_x(
            "CPLX: messages between nodes",
            "of all (%)",
            Scale::Linear,
            &remote,
        ));
    }
    Figure {
        title: "Placement of random costs, by their distribution".to_owned(),
        bands,
    }
}

/// What the axis of X says.
const CPLX_AXIS: &str = "X of cplx:X (% of the ranks)";

/// The X of the policy `cplx:X`.
fn cplx_share(policy: &str) -> Option<f64> {
    policy.strip_prefix("cplx:")?.parse().ok()
}

fn in_words(row: &Row) -> String {
    format!("{} ranks, {} blocks each", row.ranks, row.blocks_per_rank)
}

/// A place along x, and all values there.
type Point = (f64, Vec<f64>);

/// A panel for each distribution; a line's points are means over everything that it does not tell apart.
fn band(
    rows: &[Row],
    title: &str,
    [x, y]: [&'static str; 2],
    scale: Scale,
    point: &dyn Fn(&Row) -> Option<(String, f64)>,
    value: &dyn Fn(&Row) -> f64,
) -> Band {
    let mut distributions: Vec<&str> = Vec::new();
    for row in rows {
        if !distributions.contains(&row.distribution.as_str()) {
            distributions.push(&row.distribution);
        }
    }
    let panel = |distribution: &&str| {
        let mut lines: Vec<(String, Vec<Point>)> = Vec::new();
        for row in rows.iter().filter(|row| row.distribution == *distribution) {
            let Some((name, at)) = point(row) else {
                continue;
            };
            let line = match lines.iter().position(|(other, _)| *other == name) {
                Some(place) => &mut lines[place].1,
                None => {
                    lines.push((name, Vec::new()));
                    &mut lines.last_mut().expect("pushed").1
                }
            };
            match line.iter_mut().find(|(other, _)| *other == at) {
                Some((_, values)) => values.push(value(row)),
                None => line.push((at, vec![value(row)])),
            }
        }
        let lines = lines.into_iter().map(|(name, points)| Line {
            name,
            points: means(points),
        });
        Panel {
            title: format!("{distribution}: {title}"),
            x,
            y,
            scale,
            lines: lines.collect(),
        }
    };
    Band {
        panels: distributions.iter().map(panel).collect(),
    }
}

fn means(points: Vec<Point>) -> Vec<(f64, f64)> {
    let mean = |(at, values): Point| {
        let n = values.len() as f64;
        (at, values.into_iter().sum::<f64>() / n)
    };
    let mut points: Vec<(f64, f64)> = points.into_iter().map(mean).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
