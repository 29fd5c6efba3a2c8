//! Figure 5: whole times of runs as boxes.

use maud::{Markup, html};

use super::draw::{Column, Figure, Scale, left_axis, px, svg, table};
use super::words::{count, cut, interval, percent, seconds, seconds_at};
use crate::whole_runs::{Clock, Gained, Kind, RunBox, RunPanel, WholeRuns};

const HEIGHT: f64 = 276.0;
const LEFT: f64 = 58.0;
const STEP: f64 = 66.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 44.0;
const BOX: f64 = 34.0;
const TOO_FEW_MAX: usize = 8;

pub fn section(whole_runs: &WholeRuns) -> Markup {
    html! {
        @if whole_runs.panels.is_empty() {
            p.note {
                "There is nothing to compare yet: that takes five runs without the tuner and five with it, of one program with the same arguments or label. "
                "Both are made by " code { "colltune compare --db DIR -- mpirun ..." } "; one without it alone by "
                code { "colltune run --mode off --db DIR -- mpirun ..." } ", which records the run."
            }
        }
        @for (place, panel) in whole_runs.panels.iter().enumerate() { (one(place, panel)) }
        @if !whole_runs.too_few.is_empty() {
            p {
                "Too few runs to compare, which takes five without the tuner and five with it: "
                @for (place, (name, without, with)) in whole_runs.too_few.iter().take(TOO_FEW_MAX).enumerate() {
                    @if place > 0 { "; " }
                    (name) " (" (without) " without the tuner, " (with) " with it)"
                }
                @if whole_runs.too_few.len() > TOO_FEW_MAX { "; and " (whole_runs.too_few.len() - TOO_FEW_MAX) " more" }
                "."
            }
        }
        @if whole_runs.panels_left_out > 0 { p { (count(whole_runs.panels_left_out as u64, "more program")) " with fewer runs are not shown." } }
        @if whole_runs.without_end > 0 {
            p { "In no box: " (count(whole_runs.without_end as u64, "run")) " without an end, dead or under way." }
        }
    }
}

fn one(place: usize, panel: &RunPanel) -> Markup {
    let name = if panel.label.is_empty() {
        &panel.program
    } else {
        &panel.label
    };
    let mut title = format!("{name} on {} × {}", panel.nodes, panel.ppn);
    // Programs of one name are shown apart.
    if !panel.arguments_hash.is_empty() {
        title += &format!(", arguments {}", cut(&panel.arguments_hash, 9));
    }
    Figure {
        id: &format!("runs-{place}"),
        title: &title,
        says: says(panel),
        picture: picture(&title, &panel.boxes, panel.clock),
        legend: html! {},
        table: numbers(&title, &panel.boxes),
    }
    .draw()
}

fn says(panel: &RunPanel) -> Markup {
    html! {
        (panel.program) @if !panel.label.is_empty() { ", labelled " (panel.label) }
        ". "
        @if let Some(overhead) = panel.overhead {
            "Runs that explored before any training took " (interval(overhead)) " times the default’s whole time: "
            @if overhead.value >= 1.0 { (percent(overhead.value - 1.0)) " more. " } @else { (percent(1.0 - overhead.value)) " less. " }
        }
        @if let Some(Gained { kind, ratio, pairs }) = panel.gain {
            "With the choices of " (kind.name()) " the default’s time is " (interval(ratio)) " times theirs, by "
            (count(pairs as u64, "pair")) " of runs matched in time"
            @if ratio.low > 1.0 { ": they are faster. " } @else if ratio.high < 1.0 { ": they are slower. " } @else { ": no difference can be shown. " }
        } @else {
            "Here " (panel.missing) ". "
        }
        @match panel.runs_to_gain {
            Some(0) => "The first exploring runs already had a median below the default’s.",
            Some(runs) => { "After " (count(runs as u64, "exploring run")) " the median was below the default’s." }
            None => "No batch of exploring runs had a median below the default’s.",
        }
    }
}

fn picture(title: &str, boxes: &[RunBox], clock: Clock) -> Markup {
    let whiskers = boxes.iter().flat_map(|one| one.whiskers);
    let least = boxes
        .iter()
        .flat_map(|one| one.times.iter().copied())
        .chain(whiskers.clone())
        .fold(f64::INFINITY, f64::min);
    let reach = whiskers.fold(0.0, f64::max);
    let top = reach + 0.15 * (reach - least);
    let has_wild = boxes
        .iter()
        .any(|one| one.times.iter().any(|time| *time > top));
    // A wild run must not press all boxes flat; it stands at the upper edge.
    let y = Scale::linear([least - 0.05 * (reach - least), top], [BOTTOM, TOP]);
    // What stands above it needs so much.
    let least_width = if has_wild { 340.0 } else { 260.0 };
    let right = (LEFT + STEP * boxes.len() as f64 + 6.0).max(least_width);
    let default = boxes
        .iter()
        .find(|one| one.kind == Kind::Default)
        .map(|one| one.quartiles[1]);
    let inside = html! {
        (left_axis(&y, LEFT, right, seconds_at))
        text.small x="4" y="11" { (clock.tells()) @if has_wild { "; ▲ beyond the picture" } }
        @if let Some(default) = default {
            line.floor x1=(px(LEFT)) x2=(px(right)) y1=(px(y.at(default))) y2=(px(y.at(default))) { title { "the default’s median: " (seconds(default)) } }
        }
        @for (place, one) in boxes.iter().enumerate() { (draw_box(one, LEFT + STEP * (place as f64 + 0.5), &y, top)) }
    };
    svg(
        right + 4.0,
        HEIGHT,
        &format!("Whole times of runs of {title}, by kind"),
        inside,
    )
}

fn draw_box(one: &RunBox, x: f64, y: &Scale, top: f64) -> Markup {
    let [low, middle, high] = one.quartiles.map(|value| y.at(value));
    let [from, to] = one.whiskers.map(|value| y.at(value));
    let class = match one.kind {
        Kind::Default => "s7",
        Kind::Tuned(_) => "s1",
        Kind::Exploited(_) => "s0",
    };
    // Points stand apart without chance.
    let aside = |place: usize| ((place * 7) % 11) as f64 * 2.0 - 10.0;
    html! {
        g.boxed.(class) {
            title {
                (one.kind.name()) ": median " (seconds(one.quartiles[1])) ", quartiles " (seconds(one.quartiles[0])) " and "
                (seconds(one.quartiles[2])) ", " (count(one.runs as u64, "run"))
            }
            line x1=(px(x)) x2=(px(x)) y1=(px(from)) y2=(px(low)) {}
            line x1=(px(x)) x2=(px(x)) y1=(px(high)) y2=(px(to)) {}
            line x1=(px(x - 8.0)) x2=(px(x + 8.0)) y1=(px(from)) y2=(px(from)) {}
            line x1=(px(x - 8.0)) x2=(px(x + 8.0)) y1=(px(to)) y2=(px(to)) {}
            rect x=(px(x - BOX / 2.0)) y=(px(high)) width=(px(BOX)) height=(px((low - high).max(0.5))) {}
            line.median x1=(px(x - BOX / 2.0)) x2=(px(x + BOX / 2.0)) y1=(px(middle)) y2=(px(middle)) {}
            @for (place, time) in one.times.iter().enumerate() {
                @if *time > top {
                    path d=(wild(x + aside(place))) { title { (one.kind.name()) ": " (seconds(*time)) } }
                } @else {
                    circle cx=(px(x + aside(place))) cy=(px(y.at(*time))) r="2" { title { (one.kind.name()) ": " (seconds(*time)) } }
                }
            }
        }
        text x=(px(x)) y=(px(BOTTOM + 16.0)) text-anchor="middle" { (one.kind.name()) }
        text.small x=(px(x)) y=(px(BOTTOM + 30.0)) text-anchor="middle" { "n = " (one.runs) }
    }
}

/// The mark of a run that is beyond the picture.
fn wild(x: f64) -> String {
    format!("M{} {}l4 7h-8z", px(x), px(TOP - 4.0))
}

fn numbers(title: &str, boxes: &[RunBox]) -> Markup {
    let head = [
        ("runs", Column::Words),
        ("n", Column::Number),
        ("lower whisker", Column::Number),
        ("lower quartile", Column::Number),
        ("median", Column::Number),
        ("upper quartile", Column::Number),
        ("upper whisker", Column::Number),
    ];
    let rows = html! {
        @for one in boxes {
            tr {
                th scope="row" { (one.kind.name()) }
                td.n { (one.runs) }
                td.n { (seconds(one.whiskers[0])) }
                @for value in one.quartiles { td.n { (seconds(value)) } }
                td.n { (seconds(one.whiskers[1])) }
            }
        }
    };
    table(
        &format!("Whole times of {title}; a star marks runs that only used what was learned"),
        &head,
        rows,
    )
}
