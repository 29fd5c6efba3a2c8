//! The report as one HTML file: no script, nothing from outside, light and dark, and a table behind every figure.
//!
//! Text is escaped by construction, since every word goes through `maud`. What would make the page longer than a
//! browser likes is cut, and the page says what is left out.

mod words;

mod draw;

mod head;

mod programs;

mod cuboid;

mod slabs;

mod opened;

mod history;

mod unseen;

mod whole_runs;

mod levers;

use maud::{DOCTYPE, Markup, html};

use crate::report::Report;

/// The longest page.
pub const BYTES_MAX: usize = 3 << 20;

/// How the title of every page begins.
pub const TITLE: &str = "<title>colltune on ";

const STYLE: &str = include_str!("page/style.css");

/// How much of a report a page shows.
#[derive(Clone, Copy)]
struct Limits {
    cells: usize,
}

/// The page. It is at most [`BYTES_MAX`] long for reports of the shape that [`crate::read`] makes.
pub fn html(report: &Report) -> String {
    let mut limits = Limits {
        cells: report.cells.shown.len(),
    };
    loop {
        let page = page(report, limits).into_string();
        if page.len() <= BYTES_MAX || limits.cells == 0 {
            return page;
        }
        limits.cells /= 2;
    }
}

fn page(report: &Report, limits: Limits) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                (maud::PreEscaped(TITLE)) (report.head.machine) (maud::PreEscaped("</title>"))
                style { (maud::PreEscaped(STYLE)) }
            }
            body {
                (head::header(report))
                main {
                    (head::numbers(&report.head))
                    (head::warnings(report))
                    (head::contents(report))
                    section aria-labelledby="programs" {
                        h2 id="programs" { "Where the time of collectives goes" }
                        (programs::section(&report.programs))
                    }
                    section aria-labelledby="cells" {
                        h2 id="cells" { "What is known, and what is chosen" }
                        (cuboid::section(&report.cells, limits.cells))
                        (slabs::section(&report.cells, limits.cells))
                        (opened::section(report.cells.opened.as_ref()))
                    }
                    section aria-labelledby="history" {
                        h2 id="history" { "How the probabilities moved" }
                        (history::section(&report.histories))
                    }
                    section aria-labelledby="unseen" {
                        h2 id="unseen" { "Predictions, and what was measured later" }
                        (unseen::section(&report.unseen))
                    }
                    section aria-labelledby="runs" {
                        h2 id="runs" { "Whole runs, with and without the tuner" }
                        (whole_runs::section(&report.whole_runs))
                    }
                    @if !report.levers.is_empty() {
                        section aria-labelledby="levers" {
                            h2 id="levers" { "Levers that programs ask about" }
                            (levers::section(&report.levers))
                        }
                    }
                }
                footer {
                    p {
                        "Written by colltune " (env!("CARGO_PKG_VERSION")) ". The figures follow Hunold and Steiner, "
                        cite { "OMPICollTune: Autotuning MPI Collectives by Incremental Online Learning" }
                        ", PMBS 2022."
                    }
                }
            }
        }
    }
}
