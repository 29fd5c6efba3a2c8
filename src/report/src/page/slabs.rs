//! Figure 1, readable: for each number of ranks per node the cells as a heat map of what the choice gains.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::collective::Collective;
use colltune_core::model::Source;
use colltune_core::space::Range;
use colltune_models::statistics::CellStatistics;
use maud::{Markup, html};

use super::cuboid::told;
use super::draw::{px, svg};
use super::words::{cut, factor, numbers, short, sizes};
use crate::cells::Cells;

const WIDE: f64 = 92.0;
const TALL: f64 = 36.0;
const LEFT: f64 = 96.0;
const TOP: f64 = 22.0;
/// The gains at which the colours change.
const STEPS: [f64; 5] = [1.005, 1.05, 1.2, 1.5, 2.0];
/// Letters of a name that fit into a cell.
const LETTERS: usize = 15;

pub fn section(cells: &Cells, limit: usize) -> Markup {
    let mut slabs: BTreeMap<(Collective, Range), Vec<&CellStatistics>> = BTreeMap::new();
    let mut order = Vec::new();
    for one in cells.shown.iter().take(limit) {
        let key = (one.cell.collective, one.cell.ppn);
        if !slabs.contains_key(&key) {
            order.push(key);
        }
        slabs.entry(key).or_default().push(one);
    }
    let gaining = cells
        .shown
        .iter()
        .filter(|one| one.gain >= STEPS[1])
        .count();
    html! {
        figure aria-labelledby="slabs" {
            h3 id="slabs" { "What is chosen, and what it gains" }
            p {
                "One map for each collective and number of ranks per node, those with the most time first. "
                "Each field says which variant is chosen and how many times as fast as the default it is. "
                (gaining) " of " (cells.shown.len()) " cells gain 5 % or more; numbers and intervals stand in the table above."
            }
            ul.legend {
                li { span.box.g0 {} "the default, or no gain" }
                @for (place, step) in STEPS.iter().enumerate() {
                    li { span.box.{ "g" (place + 1) } {} "from " (factor(*step)) "×" }
                }
                li { span.box.guess {} "dashed: predicted" }
            }
            @for key in &order { (slab(*key, &slabs[key])) }
        }
    }
}

fn slab((collective, ppn): (Collective, Range), cells: &[&CellStatistics]) -> Markup {
    let axis = |range: fn(&CellStatistics) -> Range| -> Vec<Range> {
        let all: BTreeSet<Range> = cells.iter().map(|one| range(one)).collect();
        all.into_iter().collect()
    };
    let (bytes, nodes) = (axis(|one| one.cell.bytes), axis(|one| one.cell.nodes));
    let at = |ranges: &[Range], range: Range| {
        ranges.iter().position(|one| *one == range).unwrap_or(0) as f64
    };
    let width = LEFT + WIDE * bytes.len() as f64 + 4.0;
    let height = TOP + TALL * nodes.len() as f64 + 4.0;
    let title = format!("{collective}, {} ranks per node", numbers(ppn));
    let inside = html! {
        @for (place, range) in bytes.iter().enumerate() {
            text x=(px(LEFT + WIDE * (place as f64 + 0.5))) y="14" text-anchor="middle" { (heading(*range)) }
        }
        @for (place, range) in nodes.iter().enumerate() {
            text x=(px(LEFT - 8.0)) y=(px(TOP + TALL * (place as f64 + 0.5) + 4.0)) text-anchor="end" { (numbers(*range)) " node" @if range.hi != Some(2) { "s" } }
        }
        @for one in cells {
            @let x = LEFT + WIDE * at(&bytes, one.cell.bytes);
            @let y = TOP + TALL * at(&nodes, one.cell.nodes);
            g.field.(colour(one)).guess[one.source == Source::Predicted] {
                title { (told(one)) }
                rect x=(px(x + 1.0)) y=(px(y + 1.0)) width=(px(WIDE - 2.0)) height=(px(TALL - 2.0)) {}
                text x=(px(x + WIDE / 2.0)) y=(px(y + 15.0)) text-anchor="middle" { (cut(&short(&one.best), LETTERS)) }
                text x=(px(x + WIDE / 2.0)) y=(px(y + 28.0)) text-anchor="middle" { (factor(one.gain)) "×" }
            }
        }
    };
    html! {
        h4 { (title) }
        div.scroll role="region" tabindex="0" aria-label={ (title) ": map" } {
            (svg(width, height, &format!("What is chosen in {title}, by bytes and nodes"), inside))
        }
    }
}

fn heading(range: Range) -> String {
    match range.hi {
        Some(_) => sizes(range).replace(" to <", "–"),
        None => sizes(range).replace(" and more", " →"),
    }
}

fn colour(one: &CellStatistics) -> String {
    let step = STEPS.iter().filter(|step| one.gain >= **step).count();
    format!("g{step}")
}
