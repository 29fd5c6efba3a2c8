//! One cell with all its variants: the lower half of the paper's first figure.

use colltune_core::catalogue;
use colltune_core::model::Source;
use maud::{Markup, html};

use super::draw::{Column, Figure, Scale, bottom_axis, px, svg, table};
use super::words::{
    cell, count, cut, factor, grouped, joined, nanoseconds, nanoseconds_at, percent, short,
};
use crate::cells::{Opened, Settings};

const ROW: f64 = 20.0;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 680.0;

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
            (cell(&one.cell)) ": the one with the most timed calls of those asked for, "
            (count(one.samples(), "call")) ". "
            @if one.source != Source::Measured { "Nobody has run it yet: what is known is predicted from other cells." }
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
    let scale = Scale::log([least / 1.05, most * 1.05], [LEFT, WIDTH - 16.0]);
    let bottom = 4.0 + ROW * timed.len() as f64;
    let inside = html! {
        (bottom_axis(&scale, 2.0, bottom, nanoseconds_at))
        text.small x=(px(WIDTH - 16.0)) y=(px(bottom + 31.0)) text-anchor="end" {
            "median time of a call, with its 95 % interval; logarithmic"
        }
        @for (place, one) in timed.iter().enumerate() {
            @let y = 4.0 + ROW * (place as f64 + 0.5);
            @let median = one.time_ns.median.unwrap_or(least);
            @let is_best = one.name == opened.cell.best;
            text.strong[is_best] x=(px(LEFT - 8.0)) y=(px(y + 4.0)) text-anchor="end" { (cut(&short(&one.name), 28)) }
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
        WIDTH,
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
