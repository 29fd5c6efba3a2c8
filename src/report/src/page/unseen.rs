//! Figure 4: how the times are spread where something was predicted.

use colltune_core::catalogue;
use maud::{Markup, html};

use super::draw::{Column, Scale, bottom_axis, left_axis, px, series, svg, swatch, table};
use super::words::{bytes, count, grouped, interval, nanoseconds, nanoseconds_at, percent, short};
use crate::unseen::{CALLS_LEAST, Distribution, Panel, Unseen, WITHIN};

const WIDTH: f64 = 350.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = HEIGHT - 34.0;
/// Beyond so large a ratio of the 99th to the 1st percentile times stand in logarithms.
const LOG_FROM: f64 = 20.0;

pub fn section(unseen: &Unseen) -> Markup {
    html! {
        figure aria-labelledby="spread" {
            h3 id="spread" { "Was the prediction right?" }
            p { (says(unseen)) }
            div.panels { @for (place, one) in unseen.panels.iter().enumerate() { (panel(place, one)) } }
        }
    }
}

fn says(unseen: &Unseen) -> Markup {
    let share = percent(WITHIN);
    html! {
        @if unseen.cells == 0 {
            @if unseen.held_out { "No cell of that layout could be held out: nothing was recorded there." }
            @else {
                "No cell was predicted first and measured later, so nothing can be said of predictions yet. "
                "Runs on other layouts, or --holdout, change that."
            }
        } @else {
            @if unseen.held_out { "Learning without the data of a layout, the" } @else { "Where a generation predicted and a later one measured, the" }
            " variant that was predicted to be fastest was within " (share) " of the best in " (unseen.right) " of " (count(unseen.cells as u64, "cell"))
            ", by what is known now. Predictions only say what to try first: nothing replaces the default unmeasured."
            @if unseen.panels.is_empty() {
                " No raw records of two variants are left to show how their times are spread."
            }
        }
        @if unseen.records_left_out > 0 {
            " " (count(unseen.records_left_out, "older record")) " were not looked at."
        }
    }
}

fn panel(place: usize, panel: &Panel) -> Markup {
    let name = format!(
        "{}, {}, {} × {}, {} ranks",
        panel.collective,
        bytes(panel.bytes),
        panel.nodes,
        panel.ppn,
        panel.n_ranks
    );
    let from = panel.generation.map_or_else(
        || "held out".to_owned(),
        |number| format!("predicted by generation {number}"),
    );
    let few = panel.lines.iter().any(|line| line.calls < CALLS_LEAST);
    html! {
        div.panel {
            h4 id={ "spread-" (place) } { (name) }
            p {
                "It was " (from) ". "
                @match panel.ratio {
                    Some(ratio) => { "The default’s median is " (interval(ratio)) " times that of the predicted choice, over runs." }
                    None if catalogue::is_default(&panel.choice) => "Nothing was predicted to be faster than the default.",
                    None => { "Predicted was " (short(&panel.choice)) ", which never ran at this size." }
                }
                @if few { " Some lines have fewer than " (CALLS_LEAST) " calls." }
            }
            section.scroll tabindex="0" aria-label={ "Times of " (name) } { (picture(&name, &panel.lines)) }
            ul.legend {
                @for (line, one) in panel.lines.iter().enumerate() {
                    li { (swatch(&series(line))) (one.role) @if one.role != "default" { ": " (short(&one.variant)) }
                        ", " (nanoseconds(one.median_ns)) }
                }
            }
            details {
                summary { "The numbers as a table" }
                section.scroll tabindex="0" aria-label={ "Times of " (name) ": table" } { (numbers(&name, &panel.lines)) }
            }
        }
    }
}

fn at(line: &Distribution, percentile: usize) -> f64 {
    line.percentiles_ns
        .get(percentile)
        .copied()
        .unwrap_or(line.median_ns)
}

fn picture(name: &str, lines: &[Distribution]) -> Markup {
    let least = lines
        .iter()
        .map(|line| at(line, 1))
        .fold(f64::INFINITY, f64::min);
    let most = lines.iter().map(|line| at(line, 99)).fold(0.0, f64::max);
    let domain = [least * 0.95, most * 1.02];
    let x = match most > LOG_FROM * least {
        true => Scale::log(domain, [LEFT + 4.0, RIGHT]),
        false => Scale::linear(domain, [LEFT + 4.0, RIGHT]),
    };
    let y = Scale::linear([0.0, 1.0], [BOTTOM, TOP]);
    let path = |line: &Distribution| -> String {
        let steps = line.percentiles_ns.iter().enumerate().take(100);
        let points = steps
            .map(|(step, time)| format!("{} {}", px(x.at(*time)), px(y.at(step as f64 / 100.0))));
        format!("M{}", points.collect::<Vec<_>>().join("L"))
    };
    let inside = html! {
        (left_axis(&y, LEFT, RIGHT, percent))
        (bottom_axis(&x, TOP, BOTTOM, nanoseconds_at))
        text.small x=(px(RIGHT)) y=(px(HEIGHT - 4.0)) text-anchor="end" { "time of a call, to the 99th percentile" }
        @for (place, line) in lines.iter().enumerate() {
            path.series.(series(place)) d=(path(line)) {
                title { (line.role) ", " (line.variant) ": median " (nanoseconds(line.median_ns)) " of " (count(line.calls as u64, "call")) }
            }
        }
    };
    svg(
        WIDTH,
        HEIGHT,
        &format!("Share of calls by time: {name}"),
        inside,
    )
}

fn numbers(name: &str, lines: &[Distribution]) -> Markup {
    let head = [
        ("variant", Column::Words),
        ("role", Column::Words),
        ("calls", Column::Number),
        ("runs", Column::Number),
        ("10th percentile", Column::Number),
        ("median", Column::Number),
        ("90th percentile", Column::Number),
        ("99th percentile", Column::Number),
    ];
    let rows = html! {
        @for line in lines {
            tr {
                th scope="row" { (line.variant) }
                td { (line.role) }
                td.n { (grouped(line.calls as u64)) }
                td.n { (line.runs) }
                @for percentile in [10, 50, 90, 99] { td.n { (nanoseconds(at(line, percentile))) } }
            }
        }
    };
    table(&format!("Times of calls: {name}"), &head, rows)
}
