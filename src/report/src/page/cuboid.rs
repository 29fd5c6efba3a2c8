//! Figure 1: the tuning cuboid of each collective, as the paper draws it: bytes to the right, nodes to the back, ranks
//! per node upwards.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;
use colltune_core::model::Source;
use colltune_core::space::Range;
use colltune_models::statistics::CellStatistics;
use maud::{Markup, html};

use super::draw::{Column, px, svg, table};
use super::words::{LETTER, cell, count, cut, factor, grouped, numbers, percent, short, sizes};
use crate::cells::{Cells, expected, is_chosen_by_prediction};

/// The most cells along bytes, nodes and ranks per node, and the most cuboids.
const MOST: [usize; 3] = [8, 8, 4];
const CUBOIDS_MAX: usize = 17;
const WIDE: f64 = 24.0;
const TALL: f64 = 15.0;
/// One step to the back.
const BACK: [f64; 2] = [11.0, 8.0];
/// Between two layers.
const GAP: f64 = 12.0;

pub fn section(cells: &Cells, limit: usize) -> Markup {
    let shown = &cells.shown[..limit.min(cells.shown.len())];
    let left_out = cells.left_out + cells.shown.len() - shown.len();
    let of = |source| shown.iter().filter(|cell| cell.source == source).count() as u64;
    let mut by_collective: BTreeMap<Collective, Vec<&CellStatistics>> = BTreeMap::new();
    for one in shown {
        by_collective
            .entry(one.cell.collective)
            .or_default()
            .push(one);
    }
    html! {
        figure aria-labelledby="cuboids" {
            h3 id="cuboids" { "The tuning cuboids" }
            p {
                @if shown.is_empty() { "Nothing is known of any cell yet." }
                @else {
                    (count(of(Source::Measured), "cell")) " are measured, " (grouped(of(Source::Predicted)))
                    " predicted from others, and of " (grouped(cells.unknown as u64)) " nothing is known."
                }
                @if left_out > 0 {
                    " " (count(left_out as u64, "known cell")) " with the least of the time are not shown."
                }
            }
            ul.legend {
                li { span.box.measured {} "measured" }
                li { span.box.predicted {} "predicted" }
                li { span.box.unknown {} "nothing known" }
            }
            div.panels {
                @for (collective, cells) in by_collective.iter().take(CUBOIDS_MAX) { (cuboid(*collective, cells)) }
            }
            @if !shown.is_empty() {
                details {
                    summary { "The numbers of “The tuning cuboids” as a table" }
                    section.scroll tabindex="0" aria-label="All cells: table" { (cells_table(shown)) }
                }
            }
        }
    }
}

/// The ranges of one axis, and where to begin so that the window holds the most known cells.
fn window(
    cells: &[&CellStatistics],
    range: impl Fn(&CellStatistics) -> Range,
    most: usize,
) -> Vec<Range> {
    let all: BTreeSet<Range> = cells.iter().map(|one| range(one)).collect();
    let all: Vec<Range> = all.into_iter().collect();
    let known = |ranges: &[Range]| {
        cells
            .iter()
            .filter(|one| ranges.contains(&range(one)))
            .count()
    };
    let best = all
        .windows(most.min(all.len()).max(1))
        .max_by_key(|ranges| known(ranges));
    best.unwrap_or(&[]).to_vec()
}

fn cuboid(collective: Collective, cells: &[&CellStatistics]) -> Markup {
    let axes = [
        window(cells, |one| one.cell.bytes, MOST[0]),
        window(cells, |one| one.cell.nodes, MOST[1]),
        window(cells, |one| one.cell.ppn, MOST[2]),
    ];
    let [x, y, z] = axes.each_ref().map(Vec::len);
    let find = |at: [usize; 3]| {
        cells.iter().find(|one| {
            let here = [one.cell.bytes, one.cell.nodes, one.cell.ppn];
            (0..3).all(|axis| here[axis] == axes[axis][at[axis]])
        })
    };
    let depth = y as f64 * BACK[1];
    let layer = TALL + GAP + depth;
    let left = 66.0;
    let height = layer * z as f64 + 40.0;
    // The lower left front corner of a cell.
    let corner = |at: [usize; 3]| {
        [
            left + at[0] as f64 * WIDE + at[1] as f64 * BACK[0],
            height - 36.0 - at[2] as f64 * layer - at[1] as f64 * BACK[1],
        ]
    };
    let name = format!("Tuning cuboid of {collective}: {} known cells", cells.len());
    let ends = |axis: &[Range], tell: fn(Range) -> String| match axis {
        [] => String::new(),
        [one] => tell(*one),
        [first, .., last] => format!("{} … {}", tell(*first), tell(*last)),
    };
    let bytes = format!("bytes {} →", ends(&axes[0], bytes_short));
    let nodes = format!("nodes {} ↗", ends(&axes[1], numbers_short));
    let words = LETTER * bytes.chars().count().max(nodes.chars().count()) as f64;
    let width = left + words.max(x as f64 * WIDE + y as f64 * BACK[0] + 10.0);
    let inside = html! {
        @for k in 0..z {
            text x="4" y=(px(corner([0, 0, k])[1] - 3.0)) { "ppn " (numbers_short(axes[2][k])) }
            @for j in (0..y).rev() {
                @for i in 0..x { (cube(corner([i, j, k]), find([i, j, k]).copied(), [axes[0][i], axes[1][j], axes[2][k]])) }
            }
        }
        text x=(px(left)) y=(px(height - 20.0)) { (bytes) }
        text x=(px(left)) y=(px(height - 5.0)) { (nodes) }
    };
    html! {
        div.panel {
            h4 { (collective) }
            section.scroll tabindex="0" aria-label=(name) { (svg(width, height, &name, inside)) }
        }
    }
}

fn bytes_short(range: Range) -> String {
    sizes(range).replace(" and more", "+").replace(" to <", "–")
}

fn numbers_short(range: Range) -> String {
    numbers(range)
        .replace(" and more", "+")
        .replace(" to ", "–")
}

/// Three faces, seen from the right, the front and above.
fn cube([x, y]: [f64; 2], known: Option<&CellStatistics>, at: [Range; 3]) -> Markup {
    let class = match known.map(|one| one.source) {
        Some(Source::Measured) => "measured",
        Some(Source::Predicted) => "predicted",
        _ => "unknown",
    };
    let (w, t, [dx, dy]) = (WIDE, TALL, BACK);
    let front = format!("M{} {}h{}v{}h{}z", px(x), px(y), px(w), px(-t), px(-w));
    let top = format!(
        "M{} {}l{} {}h{}l{} {}z",
        px(x),
        px(y - t),
        px(dx),
        px(-dy),
        px(w),
        px(-dx),
        px(dy)
    );
    let side = format!(
        "M{} {}l{} {}v{}l{} {}z",
        px(x + w),
        px(y),
        px(dx),
        px(-dy),
        px(-t),
        px(-dx),
        px(dy)
    );
    html! {
        g.cube.(class) {
            title {
                @match known {
                    Some(one) => { (told(one)) }
                    None => { (sizes(at[0])) ", " (numbers(at[1])) " nodes, " (numbers(at[2])) " on each: nothing known" }
                }
            }
            path d=(front) {}
            path.lit d=(top) {}
            path.dark d=(side) {}
        }
    }
}

/// A cell and what is chosen in it.
pub fn told(one: &CellStatistics) -> String {
    let (name, gain) = expected(one);
    let gain = factor(gain);
    let said = match one.source {
        Source::Measured => format!("measured, {name}, {gain}×"),
        Source::Predicted if is_chosen_by_prediction(one) => {
            format!("predicted, {name} is run, {gain}×")
        }
        Source::Predicted => format!("predicted, {name} may be the fastest, {gain}×"),
        Source::Prior => "nothing known".to_owned(),
    };
    format!("{}: {said}", cell(&one.cell))
}

fn cells_table(cells: &[CellStatistics]) -> Markup {
    let head = [
        ("collective", Column::Words),
        ("bytes", Column::Words),
        ("nodes", Column::Number),
        ("ranks per node", Column::Number),
        ("how it is known", Column::Words),
        ("share of the time", Column::Number),
        ("waiting", Column::Number),
        ("timed calls", Column::Number),
        ("chosen", Column::Words),
        ("gain", Column::Number),
        ("95 % interval", Column::Number),
    ];
    let rows = html! {
        @for one in cells {
            tr {
                th scope="row" { (one.cell.collective) }
                td.size { (sizes(one.cell.bytes)) }
                td.n { (numbers(one.cell.nodes)) }
                td.n { (numbers(one.cell.ppn)) }
                td { @match one.source {
                    Source::Measured => "measured",
                    Source::Predicted => "predicted",
                    Source::Prior => "unknown",
                } }
                td.n { (percent(one.time_share)) }
                td.n { (percent(one.waiting)) }
                td.n { (grouped(one.samples())) }
                td { (cut(&short(&one.best), 40)) }
                td.n { (factor(one.gain)) }
                td.n { (factor(one.gain_lo)) " to " (factor(one.gain_hi)) }
            }
        }
    };
    table(
        "The cells of the tuning space of which anything is known",
        &head,
        rows,
    )
}
