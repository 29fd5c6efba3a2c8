//! The page of evidence: one table a study, its pictures, and what was assumed.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::STYLE;
use super::draw::{Column, Scale, bottom_axis, px, svg, table};
use super::words::{count, cut, number, seconds};
use crate::evidence::{Elsewhere, Evidence, Findings, Judged, Picture, Reproduction};

/// The page: no script, nothing from outside, light and dark.
pub fn html(evidence: &Evidence) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "colltune: published figures, and ours" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { "Published figures, and ours" } }
                main {
                    (summary(evidence))
                    @for study in &evidence.studies {
                        section aria-labelledby=(study.name) {
                            h2 id=(study.name) { (study.name) ": " (study.paper) }
                            (reproduction(study))
                        }
                    }
                    section aria-labelledby="elsewhere" {
                        h2 id="elsewhere" { "What this page does not run" }
                        (elsewhere(&evidence.elsewhere))
                    }
                }
                footer {
                    p { "Written by colltune " (env!("CARGO_PKG_VERSION")) " (" code { "make evidence" } ")." }
                }
            }
        }
    }
    .into_string()
}

const VERDICTS: [&str; 4] = ["reproduced", "shape only", "not reproduced", "not judged"];

fn summary(evidence: &Evidence) -> Markup {
    let of = |study: &Reproduction, verdict: &str| match &study.found {
        Ok(findings) => findings
            .rows
            .iter()
            .filter(|row| row.verdict == verdict)
            .count(),
        Err(_) => 0,
    };
    let head: Vec<(&str, Column)> = std::iter::once(("study", Column::Words))
        .chain(VERDICTS.map(|verdict| (verdict, Column::Number)))
        .collect();
    let rows = html! {
        @for study in &evidence.studies {
            tr {
                th scope="row" { a href={ "#" (study.name) } { (study.name) } }
                @for verdict in VERDICTS { td.n { (of(study, verdict)) } }
            }
        }
    };
    html! {
        @if evidence.quick {
            p.note { "These are the quick studies: they show that everything runs, and their values are rough." }
        }
        p {
            "Each row has the paper’s value, ours, what may be between them, and what that makes of it. A row is "
            i { "reproduced" } " inside its tolerance and " i { "shape only" } " where the order holds and the values do "
            "not. Rows that were fitted or are shown beside others are not judged. Everything here is emulated, computed "
            "or measured on this machine, with the assumptions below each table."
        }
        section.scroll tabindex="0" aria-label="Verdicts by study" { (table("Rows by verdict", &head, rows)) }
    }
}

fn reproduction(study: &Reproduction) -> Markup {
    html! {
        p { "Run it alone: " code { (study.command) } @if let Some(took) = study.seconds { " (took " (seconds(took)) ")" } "." }
        @match &study.found {
            Ok(findings) => { (judged(&study.name, findings)) }
            Err(why) => { p.note { "It could not be run here: " (why) "." } }
        }
    }
}

fn judged(name: &str, findings: &Findings) -> Markup {
    let head = [
        ("id", Column::Words),
        ("figure", Column::Words),
        ("paper", Column::Number),
        ("ours", Column::Number),
        ("tolerance", Column::Words),
        ("verdict", Column::Words),
        ("set, or said besides", Column::Words),
    ];
    let paper = |row: &Judged| {
        let told = |value: &Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        match row.paper.iter().any(Option::is_some) {
            true => row.paper.iter().map(told).collect::<Vec<_>>().join(" "),
            false => "–".to_owned(),
        }
    };
    let ours = |row: &Judged| {
        let told: Vec<String> = row.ours.iter().copied().map(number).collect();
        if told.is_empty() {
            "not run".to_owned()
        } else {
            told.join(" ")
        }
    };
    let rows = html! {
        @for row in &findings.rows {
            tr {
                th scope="row" { (row.id) }
                td { (row.what) }
                td.values { (paper(row)) }
                td.values { (ours(row)) }
                td { (row.tolerance) }
                td data-verdict=(row.verdict) { (row.verdict) }
                td { (row.note) }
            }
        }
    };
    html! {
        section.scroll tabindex="0" aria-label={ "Findings of " (name) } { (table(&findings.source, &head, rows)) }
        (nearness(name, &findings.rows))
        @if !findings.pictures.is_empty() {
            details {
                summary { (count(findings.pictures.len() as u64, "picture")) }
                @for picture in &findings.pictures { (shown(picture)) }
            }
        }
        h3 { "Assumed" }
        ul { @for assumption in &findings.assumptions { li { (assumption) } } }
    }
}

const ROW: f64 = 20.0;
const LEFT: f64 = 330.0;
const WIDTH: f64 = 760.0;

/// Ours over the paper's, for rows where the paper has numbers that can be divided by.
fn nearness(name: &str, rows: &[Judged]) -> Markup {
    let ratios = |row: &Judged| -> Vec<f64> {
        let pairs = row.paper.iter().zip(&row.ours);
        let both = pairs.filter_map(|(paper, ours)| Some((paper.filter(|p| *p > 0.0)?, *ours)));
        both.filter(|(_, ours)| *ours > 0.0)
            .map(|(paper, ours)| ours / paper)
            .collect()
    };
    let shown: Vec<(&Judged, Vec<f64>)> = rows
        .iter()
        .map(|row| (row, ratios(row)))
        .filter(|(_, ratios)| !ratios.is_empty())
        .collect();
    if shown.is_empty() {
        return html! {};
    }
    let all = || shown.iter().flat_map(|(_, ratios)| ratios.iter().copied());
    let least = all().fold(0.5, f64::min).max(0.01);
    let most = all().fold(2.0, f64::max).min(100.0);
    let scale = Scale::log([least / 1.1, most * 1.1], [LEFT, WIDTH - 16.0]);
    let bottom = 4.0 + ROW * shown.len() as f64;
    let inside = html! {
        (bottom_axis(&scale, 2.0, bottom, number))
        line.floor x1=(px(scale.at(1.0))) x2=(px(scale.at(1.0))) y1="2" y2=(px(bottom)) {}
        text.small x=(px(WIDTH - 16.0)) y=(px(bottom + 31.0)) text-anchor="end" { "ours over the paper’s; logarithmic" }
        @for (place, (row, ratios)) in shown.iter().enumerate() {
            @let y = 4.0 + ROW * (place as f64 + 0.5);
            text x="2" y=(px(y + 4.0)) { (cut(&format!("{} {}", row.id, row.what), 46)) }
            @for ratio in ratios {
                circle.mark.(class(&row.verdict)) cx=(px(scale.at(*ratio))) cy=(px(y)) r="5" {
                    title { (row.id) ": " (number(*ratio)) ", " (row.verdict) }
                }
            }
        }
    };
    html! {
        figure {
            section.scroll tabindex="0" aria-label={ "How near " (name) " comes: picture" } {
                (svg(WIDTH, bottom + 38.0, &format!("Values of {name} over the paper’s"), inside))
            }
            ul.legend {
                @for verdict in VERDICTS {
                    li {
                        svg.swatch aria-hidden="true" width="14" height="12" viewBox="0 0 14 12" {
                            circle.mark.(class(verdict)) cx="7" cy="6" r="5" {}
                        }
                        (verdict)
                    }
                }
            }
        }
    }
}

fn class(verdict: &str) -> &'static str {
    match verdict {
        "reproduced" => "s2",
        "shape only" => "s4",
        "not reproduced" => "s1",
        _ => "s7",
    }
}

/// A picture within the page: its file as an address, so that its rules of style stay its own.
fn shown(picture: &Picture) -> Markup {
    html! {
        figure {
            section.scroll tabindex="0" aria-label={ (picture.title) ": picture" } {
                img alt=(picture.title) width="1080" src={ "data:image/svg+xml," (escaped(&picture.svg)) };
            }
        }
    }
}

/// Bytes as an address may have them (RFC 3986).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

fn elsewhere(rows: &[Elsewhere]) -> Markup {
    let head = [
        ("id", Column::Words),
        ("figure", Column::Words),
        ("paper", Column::Words),
        ("how it is had", Column::Words),
    ];
    let rows = html! {
        @for row in rows {
            tr { th scope="row" { (row.ids) } td { (row.what) } td { (row.paper) } td { (row.how) } }
        }
    };
    html! {
        section.scroll tabindex="0" aria-label="Figures that are had elsewhere" {
            (table("Figures that need real jobs, or are not built", &head, rows))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: &str) -> Judged {
        Judged {
            id: "A1".to_owned(),
            what: "a <share>".to_owned(),
            paper: vec![Some(50.0), None],
            ours: vec![45.0, 7.0],
            tolerance: "5 points".to_owned(),
            verdict: verdict.to_owned(),
            note: String::new(),
        }
    }

    fn evidence(found: Result<Findings, String>) -> Evidence {
        let study = Reproduction {
            name: "art".to_owned(),
            paper: "Wu et al.".to_owned(),
            command: "colltune-bench study art".to_owned(),
            seconds: Some(1.5),
            found,
        };
        Evidence {
            studies: vec![study],
            ..Evidence::default()
        }
    }

    #[test]
    fn every_row_shows_its_verdict_and_is_counted_and_words_are_words() {
        let rows = VERDICTS.map(row).to_vec();
        let picture = Picture {
            title: "one".to_owned(),
            svg: "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0\"/></svg>".to_owned(),
        };
        let page = html(&evidence(Ok(Findings {
            rows,
            pictures: vec![picture],
            ..Findings::default()
        })));
        for verdict in VERDICTS {
            assert_eq!(
                page.matches(&format!("data-verdict=\"{verdict}\">{verdict}<"))
                    .count(),
                1
            );
        }
        assert!(page.contains("a &lt;share&gt;") && !page.contains("<share>"));
        assert!(page.contains("50.0 –") && page.contains("45.0 7.00"));
        for outside in ["http:", "https:", "<script", "<link", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("src=\"data:image/svg+xml,%3Csvg"));
    }

    #[test]
    fn a_study_that_cannot_run_says_why_and_has_no_verdict() {
        let page = html(&evidence(Err(
            "failed to use METIS: this build has none".to_owned()
        )));
        assert!(page.contains("failed to use METIS: this build has none"));
        assert!(!page.contains("data-verdict"));
    }
}
