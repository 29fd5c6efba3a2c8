//! One cell with all its variants: the lower half of the paper's first figure.

use colltune_core::catalogue;
use colltune_core::model::Source;
use maud::{Markup, html};

use super::draw::{Column, Figure, Scale, bottom_axis, px, svg, table};
use super::words::{
    cell, count, cut, factor, grouped, joined, nanoseconds, nanoseconds_at, percent, short,
};
use crate::cells::{Opened, Settings, is_chosen_by_prediction};

const ROW: f64 = 20.0;
/// The longest name, and how wide a letter of the chosen one's is at the most: it is bold.
const LETTERS: usize = 34;
const BOLD: f64 = 8.0;
/// Right of the names.
const PLOT: f64 = 490.0;

pub fn section(opened: Option<&Opened>) -> Markup {
    let Some(opened) = opened else {
        return html! {};
    };
    let one = &opened.cell;
    let best = one.variant(&one.best);
    let default = one.variant(colltune_core::variant::DEFAULT);
    let time = |variant: Option<&colltune_models::statistics::VariantStatistics>| {
        variant
            .and_then(|variant| variant.time_ns.median)
            .map_or_else(|| "unknown".to_owned(), nanoseconds)
    };
    Figure {
        id: "opened",
        title: "One cell opened",
        says: html! {
            (cell(&one.cell)) ": the costliest of those asked for, with " (percent(one.time_share)) " of the time and "
            (count(one.samples(), "timed call")) ". "
            @if one.source != Source::Measured { "Nobody has run it yet: what is known is predicted from other cells." }
            @if is_chosen_by_prediction(one) { " Run all the same is " b { (short(&one.best)) } ", by that prediction." }
            @else if catalogue::is_default(&one.best) {
                "Chosen is the default, the library’s own choice, with a median of " (time(default)) ". "
            } @else {
                "Chosen is " b { (short(&one.best)) } " with a median of " (time(best)) "; the default has " (time(default))
                ". The gain is " (factor(one.gain)) " (95 % interval " (factor(one.gain_lo)) " to " (factor(one.gain_hi)) "). "
            }
            @if one.source == Source::Measured { (percent(one.waiting)) " of its time is waiting for late ranks." }
            @if !one.settled.is_empty() { " Exploring has ended here: " (joined(&one.settled)) "." }
        },
        picture: picture(opened),
        legend: html! {},
        table: settings_table(&opened.settings),
    }
    .draw()
}

fn picture(opened: &Opened) -> Markup {
    let timed: Vec<&Settings> = opened
        .settings
        .iter()
        .filter(|one| one.time_ns.median.is_some())
        .collect();
    let times = timed
        .iter()
        .flat_map(|one| [one.time_ns.lo, one.time_ns.median, one.time_ns.hi]);
    let times: Vec<f64> = times.flatten().filter(|time| *time > 0.0).collect();
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    if times.is_empty() {
        return html! { p.note { "No variant has a known time." } };
    }
    let name = |one: &Settings| cut(&short(&one.name), LETTERS);
    let longest = timed.iter().map(|one| name(one).chars().count()).max();
    let left = 8.0 + BOLD * longest.unwrap_or(0) as f64 + 8.0;
    let width = left + PLOT;
    let scale = Scale::log([least / 1.05, most * 1.05], [left, width - 16.0]);
    let bottom = 4.0 + ROW * timed.len() as f64;
    let inside = html! {
        (bottom_axis(&scale, 2.0, bottom, nanoseconds_at))
        text.small x=(px(width - 16.0)) y=(px(bottom + 31.0)) text-anchor="end" {
            "median time of a call, with its 95 % interval; logarithmic"
        }
        @for (place, one) in timed.iter().enumerate() {
            @let y = 4.0 + ROW * (place as f64 + 0.5);
            @let median = one.time_ns.median.unwrap_or(least);
            @let is_best = one.name == opened.cell.best;
            text.strong[is_best] x=(px(left - 8.0)) y=(px(y + 4.0)) text-anchor="end" { (name(one)) }
            g.dot.best[is_best] {
                title { (one.name) ": median " (nanoseconds(median)) @if let (Some(lo), Some(hi)) = (one.time_ns.lo, one.time_ns.hi) {
                    ", 95 % interval " (nanoseconds(lo)) " to " (nanoseconds(hi)) } ", drawn with " (percent(one.probability)) }
                @if let (Some(lo), Some(hi)) = (one.time_ns.lo, one.time_ns.hi) {
                    line x1=(px(scale.at(lo))) x2=(px(scale.at(hi))) y1=(px(y)) y2=(px(y)) {}
                }
                circle cx=(px(scale.at(median))) cy=(px(y)) r="4" {}
            }
        }
    };
    svg(
        width,
        bottom + 36.0,
        "Median times of the variants with their 95 % intervals",
        inside,
    )
}

fn settings_table(settings: &[Settings]) -> Markup {
    let head = [
        ("AlgID", Column::Number),
        ("variant", Column::Words),
        ("library’s own", Column::Words),
        ("segment", Column::Number),
        ("timed calls", Column::Number),
        ("median", Column::Number),
        ("95 % interval", Column::Number),
        ("gain over the default", Column::Number),
        ("probability", Column::Number),
        ("why", Column::Words),
    ];
    let rows = html! {
        @for one in settings {
            tr {
                td.n { (one.id) }
                th scope="row" { (one.name) }
                td { (one.algorithm) }
                td.n { (one.segment) }
                td.n { (grouped(one.samples)) }
                td.n { (one.time_ns.median.map_or_else(|| "unknown".to_owned(), nanoseconds)) }
                td.n { @if let (Some(lo), Some(hi)) = (one.time_ns.lo, one.time_ns.hi) { (nanoseconds(lo)) " to " (nanoseconds(hi)) } }
                td.n { @if let Some(gain) = one.contrast { (factor(gain.gain)) " (" (factor(gain.lo)) " to " (factor(gain.hi)) ")" } }
                td.n { (percent(one.probability)) }
                td { (one.reason) }
            }
        }
    };
    table(
        "The variants of this cell, by their place in the catalogue",
        &head,
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::collective::Collective;
    use colltune_core::space::{Cell, Range};
    use colltune_models::statistics::{CellStatistics, Interval};

    #[test]
    fn the_longest_name_begins_within_the_picture() {
        let all = Range { lo: 1, hi: None };
        let cell = CellStatistics::unknown(Cell {
            collective: Collective::Allreduce,
            bytes: all,
            nodes: all,
            ppn: all,
        });
        for name in ["default", "node:shm+recursive_doubling", &"long".repeat(20)] {
            let median = Some(1000.0);
            let settings = Settings {
                id: 0,
                name: name.to_owned(),
                algorithm: String::new(),
                segment: String::new(),
                samples: 1,
                time_ns: Interval {
                    median,
                    ..Interval::default()
                },
                probability: 1.0,
                contrast: None,
                reason: String::new(),
            };
            let best = name.to_owned();
            let opened = Opened {
                cell: CellStatistics {
                    best,
                    ..cell.clone()
                },
                settings: vec![settings],
            };
            let drawn = picture(&opened).into_string();
            let (_, text) = drawn
                .split_once("<text class=\"strong\" x=\"")
                .expect("a name");
            let (x, rest) = text.split_once('"').expect("a place");
            let (_, words) = rest.split_once('>').expect("words");
            let (words, _) = words.split_once('<').expect("an end");
            let x: f64 = x.parse().expect("a number");
            assert!(
                BOLD * words.chars().count() as f64 <= x,
                "{words} ends at {x}"
            );
        }
    }
}
