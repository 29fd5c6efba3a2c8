//! Where the time of each program's collectives goes.

use colltune_core::catalogue;
use maud::{Markup, html};

use super::draw::{Column, Figure, Scale, bottom_axis, px, svg, table};
use super::words::{
    LETTER, count, factor, grouped, layout, node_time, percent, seconds, short, sizes, sizes_short,
};
use crate::programs::{Part, Program, ProgramCell, Ran};

const BARS_MAX: usize = 12;
const ROW: f64 = 22.0;
/// The longest bar, and the room for the number behind it.
const BAR: f64 = 170.0;
const BEHIND: f64 = 56.0;
/// The variants that are named in a row.
const VARIANTS_MAX: usize = 5;

pub fn section(programs: &[Program]) -> Markup {
    html! {
        @if programs.is_empty() {
            p.note { "No run has told where its time went. Runs do when they end, in every mode with a database." }
        }
        @for (place, program) in programs.iter().enumerate() { (one(place, program)) }
    }
}

fn one(place: usize, program: &Program) -> Markup {
    let parts = &program.parts[..program.parts.len().min(BARS_MAX)];
    let waiting = match program.waiting {
        Some(share) => format!(
            "{} of that is waiting for late ranks, which no variant takes away",
            percent(share)
        ),
        None => match program.waiting_of_recorded {
            Some(share) => format!(
                "how much of that is waiting for late ranks the runs did not tell; of the recorded calls it is {}",
                percent(share)
            ),
            None => "how much of that is waiting for late ranks is not known".to_owned(),
        },
    };
    let largest = parts.first().map_or_else(String::new, |part| {
        format!(
            " The largest part is {} of {}: {} of that time.",
            part.collective,
            sizes(part.range()),
            percent(part.share)
        )
    });
    let title = format!("{}: where its time goes", program.name);
    html! {
        (Figure {
            id: &format!("program-{place}"),
            title: &title,
            says: html! {
                (count(program.runs, "run")) " of " b { (program.name) } " took " (node_time(program.node_hours)) " from MPI_Init to MPI_Finalize, "
                (percent(program.in_collectives)) " of them in collectives; " (waiting)
                ". If collectives took no time beyond that, the program would be " (factor(program.best_possible_gain))
                " times as fast." (largest)
                @if let Some(gain) = program.estimated_gain {
                    " The " (count(program.exploited, "run")) " that used what was learned would have taken " (factor(gain))
                    " times as long with the library’s own choices, by what trainings measured."
                }
            },
            picture: bars(&title, parts),
            legend: html! {
                ul.legend {
                    li { span.box.work {} "working" }
                    li { span.box.wait {} "waiting for late ranks" }
                    li { span.box.dim {} "in collectives, not told apart" }
                }
            },
            table: parts_table(program),
        }.draw())
        @if !program.cells.is_empty() { (cells(program)) }
    }
}

fn bars(title: &str, parts: &[Part]) -> Markup {
    let most = parts.iter().map(|part| part.share).fold(1e-6, f64::max);
    let name = |part: &Part| format!("{} {}", part.collective, sizes_short(part.range()));
    let longest = parts
        .iter()
        .map(|part| name(part).chars().count())
        .max()
        .unwrap_or(0);
    let left = 12.0 + LETTER * longest as f64;
    let scale = Scale::linear([0.0, most], [left, left + BAR]);
    let bottom = 6.0 + ROW * parts.len() as f64;
    let inside = html! {
        (bottom_axis(&scale, 2.0, bottom, percent))
        @for (place, part) in parts.iter().enumerate() {
            @let top = 6.0 + ROW * place as f64;
            @let end = scale.at(part.share);
            text x=(px(left - 8.0)) y=(px(top + 14.0)) text-anchor="end" { (name(part)) }
            @match part.waiting {
                Some(waiting) => {
                    @let middle = scale.at(part.share * (1.0 - waiting));
                    rect.work x=(px(left)) y=(px(top + 3.0)) width=(px(middle - left)) height=(px(ROW - 6.0)) {
                        title { (name(part)) ": working " (percent(part.share * (1.0 - waiting))) " of that time" }
                    }
                    rect.wait x=(px(middle)) y=(px(top + 3.0)) width=(px(end - middle)) height=(px(ROW - 6.0)) {
                        title { (name(part)) ": waiting " (percent(part.share * waiting)) " of that time" }
                    }
                }
                None => rect.dim x=(px(left)) y=(px(top + 3.0)) width=(px(end - left)) height=(px(ROW - 6.0)) {
                    title { (name(part)) ": " (percent(part.share)) " of that time" }
                },
            }
            text x=(px(end + 5.0)) y=(px(top + 14.0)) { (percent(part.share)) }
        }
    };
    svg(left + BAR + BEHIND, bottom + 22.0, title, inside)
}

fn parts_table(program: &Program) -> Markup {
    let head = [
        ("collective", Column::Words),
        ("bytes", Column::Words),
        ("calls", Column::Number),
        ("share of that time", Column::Number),
        ("waiting", Column::Number),
        ("run another variant", Column::Number),
    ];
    let rows = html! {
        @for part in &program.parts {
            tr {
                th scope="row" { (part.collective) }
                td.size { (sizes(part.range())) }
                td.n { (grouped(part.calls)) }
                td.n { (percent(part.share)) }
                td.n { (part.waiting.map_or_else(|| "unknown".to_owned(), percent)) }
                td.n { (percent(part.tuned)) }
            }
        }
    };
    table(
        "All calls of all runs by collective and message size",
        &head,
        rows,
    )
}

fn cells(program: &Program) -> Markup {
    let head = [
        ("collective", Column::Words),
        ("now chosen", Column::Words),
        ("bytes", Column::Words),
        ("communicator", Column::Words),
        ("share of the recorded time", Column::Number),
        ("waiting", Column::Number),
        ("recorded calls", Column::Number),
        (
            "which variants ran, and the gain of each over the default",
            Column::Words,
        ),
    ];
    let rows = html! {
        @for cell in &program.cells { (row(cell)) }
    };
    html! {
        h4 { "Which algorithm ran in " (program.name) "?" }
        p { "Of the calls that were recorded to learn from. "
            @if program.cells_left_out > 0 {
                (count(program.cells_left_out as u64, "smaller cell")) " are not shown."
            }
        }
        section.scroll tabindex="0" aria-label={ "Variants that ran in " (program.name) } {
            (table(&format!("Cells and communicators of {}", program.name), &head, rows))
        }
    }
}

fn row(cell: &ProgramCell) -> Markup {
    let others = cell.variants.len().saturating_sub(VARIANTS_MAX);
    html! {
        tr {
            th scope="row" { (cell.cell.collective) }
            td { (short(&cell.best)) }
            td.size { (sizes(cell.cell.bytes)) }
            td title=(layout(&cell.cell)) { (cell.n_ranks) " ranks, " (cell.nodes) " × " (cell.ppn) }
            td.n { (percent(cell.share)) " (" (seconds(cell.seconds)) ")" }
            td.n { (percent(cell.waiting)) }
            td.n { (grouped(cell.calls)) }
            td {
                ul.ran {
                    @for ran in cell.variants.iter().take(VARIANTS_MAX) { li { (variant(ran)) } }
                    @if others > 0 { li { (others) " more" } }
                }
            }
        }
    }
}

fn variant(ran: &Ran) -> Markup {
    html! {
        (percent(ran.share)) " "
        span title=(ran.name) { b { (short(&ran.name)) } }
        @if let Some(gain) = ran.gain.filter(|_| !catalogue::is_default(&ran.name)) {
            ": " (factor(gain.gain)) "× (" (factor(gain.lo)) " to " (factor(gain.hi)) ")"
        }
    }
}
