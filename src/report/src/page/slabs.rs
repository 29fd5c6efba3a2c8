//! Figure 1, readable: the cells of a collective as a heat map of what the choice gains.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;
use colltune_core::model::Source;
use colltune_core::space::Range;
use colltune_models::statistics::CellStatistics;
use maud::{Markup, html};

use super::cuboid::told;
use super::draw::{px, svg};
use super::words::{cut, factor, numbers, short, sizes};
use crate::cells::{Cells, expected};

const WIDE: f64 = 116.0;
const TALL: f64 = 34.0;
/// Between layouts with different numbers of ranks per node.
const APART: f64 = 8.0;
const LEFT: f64 = 96.0;
const TOP: f64 = 22.0;
/// The gains at which the colours change.
const STEPS: [f64; 5] = [1.005, 1.05, 1.2, 1.5, 2.0];
/// Letters of a name that fit into a cell.
const LETTERS: usize = 16;

pub fn section(cells: &Cells, limit: usize) -> Markup {
    let mut maps: BTreeMap<Collective, Vec<&CellStatistics>> = BTreeMap::new();
    let mut order = Vec::new();
    for one in cells.shown.iter().take(limit) {
        let collective = one.cell.collective;
        if !maps.contains_key(&collective) {
            order.push(collective);
        }
        maps.entry(collective).or_default().push(one);
    }
    let known = cells.shown.iter();
    let known = known.filter(|one| one.source == Source::Measured);
    let measured = known.clone().count();
    let gaining = known.filter(|one| one.gain >= STEPS[1]).count();
    html! {
        figure aria-labelledby="slabs" {
            h3 id="slabs" { "What is chosen, and what it gains" }
            p {
                "A map for each collective, those with the most time first: message sizes to the right, and for each "
                "number of ranks per node the nodes downwards. "
                "Each field says which variant is chosen and how many times as fast as the default it is; "
                "a dashed one what may be the fastest where nobody measured yet, and where the default runs. "
                (gaining) " of " (measured) " measured cells gain 5\u{a0}% or more; numbers and intervals stand in the table above."
            }
            ul.legend {
                li { span.box.g0 {} "the default, or no gain" }
                @for (place, end) in STEPS[1..].iter().enumerate() {
                    li { span.box.{ "g" (place + 1) } {} "to " (factor(*end)) "×" }
                }
                li { span.box.g5 {} "more" }
                li { span.box.guess {} "dashed: predicted" }
            }
            @for collective in &order { (map(*collective, &maps[collective])) }
        }
    }
}

/// Where a layout's row is: those of one number of ranks per node stand together.
fn rows(cells: &[&CellStatistics]) -> Vec<(Range, Range, f64)> {
    let layouts: BTreeSet<(Range, Range)> = cells
        .iter()
        .map(|one| (one.cell.ppn, one.cell.nodes))
        .collect();
    let mut rows: Vec<(Range, Range, f64)> = Vec::new();
    for (ppn, nodes) in layouts {
        let top = rows.last().map_or(TOP, |(other, _, top)| {
            top + TALL + if *other == ppn { 0.0 } else { APART }
        });
        rows.push((ppn, nodes, top));
    }
    rows
}

fn map(collective: Collective, cells: &[&CellStatistics]) -> Markup {
    let bytes: BTreeSet<Range> = cells.iter().map(|one| one.cell.bytes).collect();
    let bytes: Vec<Range> = bytes.into_iter().collect();
    let column = |range: Range| bytes.iter().position(|one| *one == range).unwrap_or(0) as f64;
    let rows = rows(cells);
    let row = |one: &CellStatistics| {
        let here = |(ppn, nodes, _): &&(Range, Range, f64)| {
            (*ppn, *nodes) == (one.cell.ppn, one.cell.nodes)
        };
        rows.iter().find(here).map_or(TOP, |(.., top)| *top)
    };
    let width = LEFT + WIDE * bytes.len() as f64 + 4.0;
    let height = rows.last().map_or(TOP, |(.., top)| top + TALL) + 4.0;
    let inside = html! {
        @for (place, range) in bytes.iter().enumerate() {
            text.small x=(px(LEFT + WIDE * (place as f64 + 0.5))) y="14" text-anchor="middle" { (heading(*range)) }
        }
        @for (ppn, nodes, top) in &rows {
            text x=(px(LEFT - 8.0)) y=(px(top + TALL / 2.0 + 4.0)) text-anchor="end" { (dashed(*nodes)) " × " (dashed(*ppn)) }
        }
        @for one in cells {
            @let x = LEFT + WIDE * column(one.cell.bytes);
            @let y = row(one);
            @let (name, gain) = expected(one);
            g.field.(colour(one)).guess[one.source == Source::Predicted] {
                title { (told(one)) }
                rect x=(px(x + 1.0)) y=(px(y + 1.0)) width=(px(WIDE - 2.0)) height=(px(TALL - 2.0)) {}
                text x=(px(x + WIDE / 2.0)) y=(px(y + 14.0)) text-anchor="middle" { (cut(&short(name), LETTERS)) }
                text x=(px(x + WIDE / 2.0)) y=(px(y + 27.0)) text-anchor="middle" { (factor(gain)) "×" }
            }
        }
    };
    html! {
        h4 { (collective) ": nodes × ranks on each, by bytes" }
        section.scroll tabindex="0" aria-label={ (collective) ": map" } {
            (svg(width, height, &format!("What is chosen in {collective}, by bytes, nodes and ranks per node"), inside))
        }
    }
}

fn dashed(range: Range) -> String {
    numbers(range)
        .replace(" and more", "+")
        .replace(" to ", "–")
}

fn heading(range: Range) -> String {
    match range.hi {
        Some(_) => sizes(range).replace(" to <", "–"),
        None if range.lo == 0 => "any size".to_owned(),
        None => sizes(range).replace(" and more", " →"),
    }
}

fn colour(one: &CellStatistics) -> String {
    let (_, gain) = expected(one);
    let step = STEPS.iter().filter(|step| gain >= **step).count();
    format!("g{step}")
}
