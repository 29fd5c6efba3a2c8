//! Whose data these are, and three numbers.

use maud::{Markup, html};

use super::words::{count, cut, day, factor, grouped, percent, seconds};
use colltune_db::ProgramVerdict;

use crate::head::Head;
use crate::report::Report;

/// So many verdicts are shown.
const VERDICTS_MAX: usize = 3;

pub fn header(report: &Report) -> Markup {
    let head = &report.head;
    let modes = head.runs.by_mode.iter();
    let modes: Vec<String> = modes
        .map(|(mode, n)| format!("{} {mode}", grouped(*n)))
        .collect();
    html! {
        header {
            h1 { "What colltune found on " (head.machine) }
            dl.facts {
                div { dt { "Library" } dd {
                    (head.library.as_deref().unwrap_or("none yet"))
                    @if !head.other_libraries.is_empty() {
                        " (also here: " (head.other_libraries.join(", ")) "; --library names one)"
                    }
                } }
                div { dt { "Generation" } dd {
                    (head.generation)
                    @if let Some(created) = head.created_unix_ms { ", learned on " (day(created)) }
                } }
                div { dt { "Learned from" } dd {
                    (count(head.learned_runs, "run")) ", " (count(head.calls, "timed call")) ", "
                    (count(head.records, "record"))
                } }
                div { dt { "Runs in the ledger" } dd {
                    (grouped(head.runs.all))
                    @if !modes.is_empty() { " (" (modes.join(", ")) ")" }
                    @if head.runs.without_end > 0 { ", " (grouped(head.runs.without_end)) " of them without an end" }
                } }
                @if let (Some(first), Some(last)) = (head.first_unix_ms, head.last_unix_ms) {
                    div { dt { "Days" } dd { (day(first)) " to " (day(last)) } }
                }
            }
        }
    }
}

pub fn numbers(head: &Head) -> Markup {
    let exploring = &head.exploring;
    html! {
        ul.tiles {
            // The whole program has the last word, and the first.
            @for verdict in head.verdicts.iter().take(VERDICTS_MAX) { (of_program(verdict, head.generation)) }
            li {
                span.big { (grouped(head.cells_tuned)) }
                span { "of " (count(head.cells_measured, "measured cell")) " run another variant than the library’s own choice" }
            }
            li {
                span.big { (factor(head.gain)) "×" }
                span {
                    "as fast as the default are the chosen variants’ calls, in the geometric mean over measured cells by their time"
                    @if head.verdicts.is_empty() {
                        ". What whole programs gain nobody has compared yet: " code { "colltune compare --db DIR -- mpirun ..." } " does"
                    }
                }
            }
            li {
                @match exploring.share() {
                    Some(share) => { span.big { (percent(share)) } }
                    None => { span.big { (seconds(exploring.sum())) } }
                }
                span {
                    @if exploring.share().is_some() { "of the time of exploring runs, from MPI_Init to MPI_Finalize, is what exploring cost: " }
                    @else { "of nodes’ time is what exploring cost; how long runs took as a whole none has said. " }
                    @if exploring.sampled < 0.0 {
                        "sampled calls took " (seconds(-exploring.sampled)) " less on nodes than with the default, and agreements "
                    } @else {
                        (seconds(exploring.sampled)) " on nodes in sampled calls beyond the default’s, and in agreements "
                    }
                    (seconds(exploring.agreeing)) ", waiting for each other included"
                    @if exploring.known < 0.995 {
                        ". Of " (percent(1.0 - exploring.known)) " of the sampled calls the default’s time in the same run is not known"
                    }
                }
            }
        }
    }
}

/// What a whole program said of the choices.
fn of_program(verdict: &ProgramVerdict, in_force: u64) -> Markup {
    let bound = |bound: Option<f64>, without: &str| {
        bound.map_or_else(|| without.to_owned(), |bound| format!("{bound:.3}"))
    };
    let (low, high) = (bound(verdict.low, "0"), bound(verdict.high, "∞"));
    html! {
        li {
            span.big { (format!("{:.3}", verdict.ratio)) "×" }
            span {
                "as fast as without colltune is the whole program " b { (verdict.program) }
                @if !verdict.label.is_empty() { ", labelled " (verdict.label) }
                @else if !verdict.arguments_hash.is_empty() { ", arguments " (cut(&verdict.arguments_hash, 9)) }
                " on " (verdict.nodes) " × " (verdict.ppn) " (95\u{a0}% interval " (low) " to " (high) ", "
                (count(verdict.pairs, "pair")) " of runs): "
                b {
                    @if verdict.is_faster() { "faster" }
                    @else if verdict.is_slower() { "SLOWER" }
                    @else { "no difference can be shown" }
                }
                ". That was generation " (verdict.generation) " on " (day(verdict.at_unix_ms))
                @if verdict.is_slower() && verdict.generation != in_force { "; what it ran there is out of force since" }
            }
        }
    }
}

pub fn warnings(report: &Report) -> Markup {
    html! {
        @if !report.warnings.is_empty() {
            section.warnings aria-labelledby="warnings" {
                h2 id="warnings" { "What is missing here" }
                ul { @for warning in &report.warnings { li { (warning) } } }
            }
        }
        @if report.head.generation == 0 && report.levers.is_empty() {
            p.note { "Nothing was learned yet. Start jobs with " code { "colltune run --db DIR -- mpirun ..." }
                ", then " code { "colltune train --db DIR" } "." }
        }
    }
}

pub fn contents(report: &Report) -> Markup {
    let mut parts = vec![
        ("programs", "Where the time goes"),
        ("cells", "What is chosen"),
        ("history", "Probabilities"),
        ("unseen", "Predictions"),
        ("runs", "Whole runs"),
    ];
    if !report.levers.is_empty() {
        parts.push(("levers", "Levers"));
    }
    html! {
        nav aria-label="Parts of this page" {
            ul { @for (id, name) in parts { li { a href={ "#" (id) } { (name) } } } }
        }
    }
}
