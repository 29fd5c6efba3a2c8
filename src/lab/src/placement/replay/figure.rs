//! The picture of a replay: each step under each policy, and over all steps what CPLX's parameter trades.

use super::follow::{Judged, Run, Totals};
use crate::placement::bench::{CPLX_AXIS, cplx_share};
use crate::plot::{Band, Figure, Line, Panel, Scale};

/// Lines that colours tell apart; they have too many points for marks.
const COLOURS: usize = 8;

/// Above, makespans and moves step by step. Below, where several `cplx:X` were replayed, X against both over all steps.
pub fn figure(runs: &[Run]) -> Figure {
    let panel = |title: &str, y, value: &dyn Fn(&Judged) -> f64| Panel {
        title: title.to_owned(),
        x: "step",
        y,
        scale: Scale::Linear,
        lines: runs
            .iter()
            .filter(|run| runs.len() <= COLOURS || !is_end_of_cplx(&run.policy))
            .map(|run| Line {
                name: run.policy.clone(),
                points: run
                    .steps
                    .iter()
                    .map(|step| (step.step as f64, value(step)))
                    .collect(),
            })
            .collect(),
    };
    let makespan = panel("Makespan of each step", "unit of the costs", &|step| {
        step.makespan
    });
    let moved = panel("Blocks that moved", "blocks", &|step| {
        step.moved_blocks as f64
    });
    let by_step = Band {
        panels: vec![makespan, moved],
    };
    Figure {
        title: "Recorded costs, placed step by step".to_owned(),
        bands: std::iter::once(by_step).chain(of_cplx(runs)).collect(),
    }
}

/// 0 cuts the curve and 100 is LPT, which other policies draw, too: among many they stand below alone.
fn is_end_of_cplx(policy: &str) -> bool {
    cplx_share(policy).is_some_and(|x| x == 0.0 || x == 100.0)
}

/// Over all steps, what X buys and what it costs; `None` where fewer than two were asked for.
fn of_cplx(runs: &[Run]) -> Option<Band> {
    let mut found: Vec<(f64, &Totals)> = runs
        .iter()
        .filter_map(|run| Some((cplx_share(&run.policy)?, &run.totals)))
        .collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    let panel = |title: &str, y, scale, value: &dyn Fn(&Totals) -> f64| Panel {
        title: title.to_owned(),
        x: CPLX_AXIS,
        y,
        scale,
        lines: vec![Line {
            name: "all steps".to_owned(),
            points: found
                .iter()
                .map(|(x, totals)| (*x, value(totals)))
                .collect(),
        }],
    };
    let panels = vec![
        panel(
            "CPLX: makespan",
            "over the bound",
            Scale::Close,
            &|totals| totals.makespan / totals.bound,
        ),
        panel(
            "CPLX: blocks that moved",
            "blocks",
            Scale::Linear,
            &|totals| totals.moved_blocks as f64,
        ),
    ];
    (found.len() > 1).then_some(Band { panels })
}
