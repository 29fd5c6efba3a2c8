//! Figure 3: probabilities by generation, a panel for each cell.

use maud::{Markup, html};

use super::draw::{Column, Scale, left_axis, px, series, svg, swatch, table};
use super::words::{cell, count, cut, grouped, joined, percent, short};
use crate::history::{
    BAND, GenerationMark, Histories, History, Line, MOVED_MAX, TRAININGS_AT_REST,
};

const WIDTH: f64 = 350.0;
const HEIGHT: f64 = 210.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// More lines cannot be distinguished, by colour or by dash; all are in the table.
const LINES_MAX: usize = 8;
/// Marks on lines, and words below them, where there are no more generations than this.
const MARKS_MAX: usize = 12;

pub fn section(histories: &Histories) -> Markup {
    html! {
        figure aria-labelledby="probabilities" {
            h3 id="probabilities" { "Probabilities by generation" }
            p {
                @if histories.panels.is_empty() { "No cell has been measured yet." }
                @else {
                    (histories.cells_at_rest) " of " (count(histories.cells as u64, "measured cell")) " have come to rest: for "
                    (TRAININGS_AT_REST) " trainings no probability moved by more than " (percent(MOVED_MAX))
                    " and the choice stayed, which is where the paper stops. Shown are the cells with the most timed calls. "
                    "Generation 0 is what today’s settings would draw before any training; what the learner finds cannot be the best falls to 0: there is no floor. "
                    "Where little is left to find, all others together get at most " (percent(histories.explore_total))
                    " (explore_total). Variants that no training gave more than " (percent(BAND)) ", the floor of the paper, are one grey band."
                }
            }
            div.panels {
                @for (place, history) in histories.panels.iter().enumerate() {
                    (panel(place, history, &histories.generations))
                }
            }
        }
    }
}

fn panel(place: usize, history: &History, generations: &[GenerationMark]) -> Markup {
    let name = cell(&history.cell);
    let rest = match history.stable_since {
        Some(generation) => format!("Stable since generation {generation}."),
        None if history.settled.is_empty() => "Not at rest yet.".to_owned(),
        // Exploring has ended, so no further training makes the cell stable.
        None => format!("Exploring has ended: {}.", joined(&history.settled)),
    };
    let lines = drawn(history);
    let others = history.lines.len() - lines.len();
    html! {
        div.panel {
            h4 id={ "history-" (place) } { (name) }
            p { (rest) " " (count(history.samples, "timed call")) "; chosen: " b { (short(&history.best)) } "."
                @if history.stable_since.is_some() && !history.settled.is_empty() {
                    " Exploring has ended: " (joined(&history.settled)) "."
                }
            }
            section.scroll tabindex="0" aria-label={ "Probabilities in " (name) } { (picture(&name, history, &lines, generations)) }
            ul.legend {
                @for (line, one) in lines.iter().enumerate().filter(|(_, one)| is_seen(one)) {
                    li { (swatch(&series(line))) span title=(one.variant) { (short(&one.variant)) }
                        @if let Some(last) = one.probabilities.iter().flatten().next_back() { " " (percent(*last)) }
                    }
                }
                @if others > 0 { li { (others) " more in the table" } }
                @if history.in_band > 0 { li { span.box.band {} (history.in_band) " that no training gave more than " (percent(BAND)) } }
            }
            details {
                summary { "The numbers as a table" }
                section.scroll tabindex="0" aria-label={ "Probabilities in " (name) ": table" } {
                    (numbers(&name, history, generations))
                }
            }
        }
    }
}

/// Whether a line leaves the axis: a legend of variants that stay at 0 says nothing.
fn is_seen(line: &Line) -> bool {
    line.probabilities.iter().flatten().any(|one| *one >= 0.005)
}

/// The lines that are drawn: those with the largest probabilities now, and that of the choice.
fn drawn(history: &History) -> Vec<&Line> {
    let mut lines: Vec<&Line> = history.lines.iter().take(LINES_MAX).collect();
    let mut others = history.lines.iter().skip(LINES_MAX);
    if let (Some(best), Some(last)) = (
        others.find(|one| one.variant == history.best),
        lines.last_mut(),
    ) {
        *last = best;
    }
    lines
}

fn picture(
    name: &str,
    history: &History,
    lines: &[&Line],
    generations: &[GenerationMark],
) -> Markup {
    let last = generations.len().saturating_sub(1).max(1) as f64;
    let x = Scale::linear([0.0, last], [LEFT + 6.0, RIGHT]);
    let y = Scale::linear([0.0, 1.0], [BOTTOM, TOP]);
    let step = generations.len().div_ceil(MARKS_MAX).max(1);
    let winner = history.lines.iter().find(|one| one.variant == history.best);
    let ends_at = winner.and_then(|one| *one.probabilities.last()?);
    let inside = html! {
        (left_axis(&y, LEFT, RIGHT, percent))
        @if history.in_band > 0 {
            rect.band x=(px(LEFT)) y=(px(y.at(BAND))) width=(px(RIGHT - LEFT)) height=(px(BOTTOM - y.at(BAND))) {
                title { (history.in_band) " variants to which no training gave more than " (percent(BAND)) }
            }
        }
        line.floor x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(y.at(BAND))) y2=(px(y.at(BAND))) { title { (percent(BAND)) ", the paper’s floor" } }
        @for (place, mark) in generations.iter().enumerate().step_by(step) {
            text x=(px(x.at(place as f64))) y=(px(BOTTOM + 14.0)) text-anchor="middle" { (mark.number) }
            @if generations.len() <= 8 { @if let Some(runs) = new_runs(generations, place) {
                text.small x=(px(x.at(place as f64))) y=(px(BOTTOM + 26.0)) text-anchor="middle" { "+" (runs) }
            } }
        }
        text.small x=(px(RIGHT)) y=(px(HEIGHT - 2.0)) text-anchor="end" { "generation" @if generations.len() <= 8 { ", and new runs" } }
        @for (place, line) in lines.iter().enumerate().rev() {
            path.series.(series(place)) d=(path(&line.probabilities, &x, &y)) { title { (line.variant) } }
            @if generations.len() <= MARKS_MAX {
                @for (at, probability) in line.probabilities.iter().enumerate() {
                    @if let Some(probability) = probability {
                        circle.mark.(series(place)) cx=(px(x.at(at as f64))) cy=(px(y.at(*probability))) r="3" {
                            title { (line.variant) " in generation " (generations[at].number) ": " (percent(*probability)) }
                        }
                    }
                }
            }
        }
        @if let Some(end) = ends_at {
            @let beside = beside(end, history, &y);
            text.halo.strong x=(px(RIGHT)) y=(px(y.at(end) + beside)) text-anchor="end" { (cut(&short(&history.best), 28)) }
        }
    };
    svg(
        WIDTH,
        HEIGHT,
        &format!("Probabilities of the variants in {name} by generation"),
        inside,
    )
}

/// How far below a line's end its name stands: on the side where fewer other lines end near.
fn beside(end: f64, history: &History, y: &Scale) -> f64 {
    const BELOW: f64 = 16.0;
    const ABOVE: f64 = -8.0;
    let near = |side: f64| {
        let ends = history
            .lines
            .iter()
            .filter_map(|line| *line.probabilities.last()?);
        let middle = y.at(end) + side - 4.0;
        ends.filter(|other| (y.at(*other) - middle).abs() < 12.0)
            .count()
    };
    let has_room = |side: f64| (TOP + 8.0..BOTTOM).contains(&(y.at(end) + side));
    match (has_room(ABOVE), has_room(BELOW)) {
        (true, true) if near(BELOW) < near(ABOVE) => BELOW,
        (true, _) => ABOVE,
        _ => BELOW,
    }
}

/// Runs since the last generation that is there.
fn new_runs(generations: &[GenerationMark], place: usize) -> Option<u64> {
    let runs = generations[place].runs?;
    let before = generations[..place].iter().rev().find_map(|mark| mark.runs);
    before.map(|before| runs.saturating_sub(before))
}

/// A line that is broken where a generation is missing.
fn path(values: &[Option<f64>], x: &Scale, y: &Scale) -> String {
    let mut path = String::new();
    let mut pen = 'M';
    for (place, value) in values.iter().enumerate() {
        match value {
            Some(value) => {
                path += &format!("{pen}{} {}", px(x.at(place as f64)), px(y.at(*value)));
                pen = 'L';
            }
            None => pen = 'M',
        }
    }
    path
}

fn numbers(name: &str, history: &History, generations: &[GenerationMark]) -> Markup {
    let names: Vec<String> = generations
        .iter()
        .map(|mark| mark.number.to_string())
        .collect();
    let mut head = vec![("variant", Column::Words)];
    head.extend(names.iter().map(|name| (name.as_str(), Column::Number)));
    let rows = html! {
        @for line in &history.lines {
            tr {
                th scope="row" { (line.variant) }
                @for value in &line.probabilities { td.n { (value.map_or_else(|| "missing".to_owned(), percent)) } }
            }
        }
        tr {
            th scope="row" { "runs learned from" }
            @for mark in generations { td.n { (mark.runs.map_or_else(|| "missing".to_owned(), grouped)) } }
        }
    };
    table(
        &format!("Probabilities in {name} by generation"),
        &head,
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_are_drawn_as_can_be_told_apart_the_choice_among_them() {
        let line = |nth: usize| Line {
            variant: format!("v{nth}"),
            probabilities: vec![Some(0.05)],
        };
        let range = colltune_core::space::Range { lo: 1, hi: None };
        let mut history = History {
            cell: colltune_core::space::Cell {
                collective: colltune_core::collective::Collective::Bcast,
                bytes: range,
                nodes: range,
                ppn: range,
            },
            samples: 1,
            lines: (0..17).map(line).collect(),
            in_band: 0,
            best: "v12".to_owned(),
            stable_since: None,
            settled: String::new(),
        };
        let names = |history: &History| -> Vec<String> {
            let lines = drawn(history).into_iter();
            lines.map(|line| line.variant.clone()).collect()
        };
        let first = ["v0", "v1", "v2", "v3", "v4", "v5", "v6"];
        assert_eq!(names(&history), [&first[..], &["v12"]].concat());
        let marks = [GenerationMark {
            number: 1,
            runs: Some(1),
        }];
        let shown = panel(0, &history, &marks).into_string();
        assert!(shown.contains("9 more in the table") && shown.contains(">v16<"));
        history.best = "v3".to_owned();
        assert_eq!(names(&history), [&first[..], &["v7"]].concat());
        history.lines.truncate(2);
        assert_eq!(names(&history), ["v0", "v1"]);
    }

    #[test]
    fn a_missing_generation_breaks_the_line() {
        let scale = Scale::linear([0.0, 2.0], [0.0, 2.0]);
        assert_eq!(path(&[Some(1.0), Some(2.0)], &scale, &scale), "M0 1L1 2");
        assert_eq!(
            path(&[Some(1.0), None, Some(2.0)], &scale, &scale),
            "M0 1M2 2"
        );
        let marks = [Some(0), None, Some(9)].map(|runs| GenerationMark { number: 0, runs });
        assert_eq!(
            [
                new_runs(&marks, 0),
                new_runs(&marks, 1),
                new_runs(&marks, 2)
            ],
            [None, None, Some(9)]
        );
    }
}
