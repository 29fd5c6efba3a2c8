//! Pictures of emulated runs: phases by policy, time axes, who sends how much to whom.

use colltune_emulate::machine::Machine;
use colltune_emulate::program::Phase;
use colltune_emulate::run::{Emulated, Span};
use colltune_emulate::study::{Figure, Picture};

use super::report::Report;
use crate::emulate::draw;
use crate::plot::{self, Bar, Part, Row};

/// As many ranks as a picture can show.
const RANKS_MAX: usize = 1024;
/// As many rows as can be looked at.
const ROWS_MAX: usize = 128;
/// Parts that last less of the picture than this are not drawn.
const LEAST: f64 = 2e-4;

/// What pictures tell apart: no more than there are colours.
const GROUPS: [(&str, &[Phase]); 8] = [
    ("compute", &[Phase::Compute, Phase::Sum]),
    ("pack, copy", &[Phase::Pack, Phase::Copy, Phase::Unpack]),
    ("message on its way", &[Phase::Transit]),
    ("sender late", &[Phase::Late]),
    ("collective", &[Phase::Collective]),
    ("others late", &[Phase::Sync]),
    (
        "mesh, rest",
        &[Phase::Refine, Phase::Place, Phase::Migrate, Phase::Other],
    ),
    ("no core", &[Phase::Queue, Phase::Stopped]),
];

fn group_of(phase: Phase) -> usize {
    let of = |(_, phases): &(&str, &[Phase])| phases.contains(&phase);
    GROUPS.iter().position(of).expect("every phase has a group")
}

/// A policy's part of a file's name.
pub(super) fn file_of(what: &str, policy: &str, ending: &str) -> String {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() || "-_.".contains(letter) {
        true => letter,
        false => '-',
    };
    let policy: String = policy.chars().map(plain).collect();
    format!("emulate-{what}-{policy}.{ending}")
}

/// A title, and below it what the machine's numbers are.
fn titled(title: &str, machine: &str, source: &str) -> String {
    format!("{title}\nmachine {machine} ({source})")
}

/// Bars of all policies.
pub(super) fn phases(report: &Report) -> anyhow::Result<String> {
    let bars = report.runs.iter().map(|run| Bar {
        name: run.outcome.policy.clone(),
        parts: GROUPS
            .iter()
            .map(|(name, phases)| {
                let of = phases.iter().map(|&phase| run.outcome.phase_s(phase));
                (*name, of.sum())
            })
            .collect(),
    });
    let title = format!(
        "{} on {} ranks of {}: where the time goes",
        report.mesh, report.ranks, report.machine
    );
    let title = titled(&title, report.machine, report.source);
    plot::bars(&title, "s, mean over ranks", &bars.collect::<Vec<_>>())
}

/// The matrix of bytes, where it can be shown.
pub(super) fn matrix(
    policy: &str,
    machine: &Machine,
    n_ranks: usize,
    kept: &Emulated,
) -> anyhow::Result<Option<(String, String)>> {
    if n_ranks > RANKS_MAX {
        return Ok(None);
    }
    let mut values = vec![0; n_ranks * n_ranks];
    for (&(from, to), sent) in &kept.pairs {
        values[from as usize * n_ranks + to as usize] = sent.bytes;
    }
    let title = format!("Bytes between ranks, {policy}");
    let figure = Figure {
        name: "matrix".to_owned(),
        title: titled(&title, &machine.name, &machine.source),
        picture: Picture::Matrix {
            n: n_ranks,
            what: "bytes",
            values,
        },
    };
    Ok(Some((
        file_of("matrix", policy, "svg"),
        draw::svg(&figure)?,
    )))
}

/// A row a rank, as in Wu et al., CLUSTER 2011, fig. 5; the first ranks where there are many.
pub(super) fn axes(
    policy: &str,
    machine: &Machine,
    n_ranks: usize,
    steps: (u64, u64),
    spans: &[Span],
) -> anyhow::Result<(String, String)> {
    let n_rows = n_ranks.min(ROWS_MAX);
    let begin = spans
        .iter()
        .map(|s| s.begin_ns)
        .fold(f64::INFINITY, f64::min);
    let end = spans.iter().map(|span| span.end_ns).fold(0.0, f64::max);
    let mut rows: Vec<Row> = (0..n_rows)
        .map(|rank| Row {
            name: format!("rank {rank}"),
            parts: Vec::new(),
        })
        .collect();
    for span in spans {
        let Some(row) = rows.get_mut(span.rank as usize) else {
            continue;
        };
        let ms = |ns: f64| 1e-6 * (ns - begin);
        let part = Part {
            of: group_of(span.phase),
            begin: ms(span.begin_ns),
            end: ms(span.end_ns),
        };
        match row.parts.last_mut() {
            Some(last) if last.of == part.of => last.end = part.end,
            _ => row.parts.push(part),
        }
    }
    let least = LEAST * 1e-6 * (end - begin);
    for row in &mut rows {
        row.parts.retain(|part| part.end - part.begin >= least);
    }
    let which = match steps {
        (first, last) if first == last => format!("step {first}"),
        (first, last) => format!("steps {first} to {last}"),
    };
    let some = match n_rows < n_ranks {
        true => format!(", the first {n_rows} of {n_ranks} ranks"),
        false => String::new(),
    };
    let title = format!("{policy}, {which}{some}");
    let title = titled(&title, &machine.name, &machine.source);
    let x = format!("ms since {:.3} s", 1e-9 * begin);
    let names = GROUPS.map(|(name, _)| name);
    let text = plot::gantt(&title, &x, &names, &rows)?;
    Ok((file_of("axes", policy, "svg"), text))
}

#[cfg(test)]
mod tests {
    use colltune_emulate::machine::preset;

    use super::*;

    #[test]
    fn time_axes_say_what_their_machine_is() {
        let machine = preset("hera").unwrap();
        let span = Span {
            step: 1,
            rank: 0,
            phase: Phase::Compute,
            begin_ns: 0.0,
            end_ns: 1e6,
        };
        let (_, text) = axes("lpt", &machine, 2, (1, 1), &[span]).unwrap();
        let (title, drawn) = text.split_once("</title>").expect("a title");
        for part in [title, drawn] {
            assert!(part.contains("lpt, step 1"), "{part}");
            assert!(part.contains("machine hera (assumed: InfiniBand"), "{part}");
        }
    }

    #[test]
    fn every_phase_is_in_one_group() {
        for phase in Phase::ALL {
            let of = GROUPS.iter().filter(|(_, phases)| phases.contains(&phase));
            assert_eq!(of.count(), 1, "{phase:?}");
        }
        assert_eq!(
            file_of("axes", "cplx:50", "svg"),
            "emulate-axes-cplx-50.svg"
        );
    }
}
