//! What a database says in the text format of Prometheus, for dashboards.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use colltune_core::account::Exit;
use colltune_core::catalogue;
use colltune_core::model::Source;
use colltune_db::Generation;
use colltune_db::runs::Times;
use colltune_models::statistics::CellStatistics;

/// One metric with its samples: labels in braces, and a value.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: Vec<(String, f64)>,
}

pub fn text(generations: &[Generation], runs: &[Times]) -> String {
    let mut text = String::new();
    for metric in of_generations(generations).into_iter().chain(of_runs(runs)) {
        let Metric {
            name,
            kind,
            help,
            samples,
        } = metric;
        // Nothing that writes into a string fails.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
    }
    text
}

fn of_generations(generations: &[Generation]) -> Vec<Metric> {
    let library = |one: &Generation| label("library", &one.key.to_string());
    let gauge = |name, help, value: &dyn Fn(&Generation) -> f64| Metric {
        name,
        kind: "gauge",
        help,
        samples: generations
            .iter()
            .map(|one| (library(one), value(one)))
            .collect(),
    };
    let count = |one: &Generation, wanted: fn(&CellStatistics) -> bool| {
        one.cells.iter().filter(|cell| wanted(cell)).count() as f64
    };
    let meta = |one: &Generation, value: fn(&colltune_db::Meta) -> f64| {
        one.meta.as_ref().map_or(0.0, value)
    };
    vec![
        gauge(
            "colltune_generation",
            "Number of the generation in force.",
            &|one| one.number as f64,
        ),
        gauge(
            "colltune_generation_created_timestamp_seconds",
            "When it was learned.",
            &|one| meta(one, |meta| meta.created_unix_ms as f64 / 1e3),
        ),
        gauge(
            "colltune_learned_runs",
            "Runs that it was learned from.",
            &|one| meta(one, |meta| meta.runs as f64),
        ),
        gauge(
            "colltune_learned_calls",
            "Timed calls that it was learned from.",
            &|one| meta(one, |meta| meta.calls as f64),
        ),
        gauge(
            "colltune_cells_measured",
            "Cells of the tuning space with measurements.",
            &|one| count(one, |cell| cell.source == Source::Measured),
        ),
        gauge(
            "colltune_cells_tuned",
            "Measured cells in which another variant than the default is chosen.",
            &|one| {
                count(one, |cell| {
                    cell.source == Source::Measured && !catalogue::is_default(&cell.best)
                })
            },
        ),
        gauge(
            "colltune_gain_ratio",
            "The default's time over that of the choices, geometric mean over measured cells by their time.",
            &|one| gain(&one.cells),
        ),
    ]
}

fn gain(cells: &[CellStatistics]) -> f64 {
    let measured = cells
        .iter()
        .filter(|cell| cell.source == Source::Measured && cell.gain > 0.0);
    let (sum, weight) = measured.fold((0.0, 0.0), |(sum, weight), cell| {
        (
            sum + cell.time_share * cell.gain.ln(),
            weight + cell.time_share,
        )
    });
    if weight > 0.0 {
        (sum / weight).exp()
    } else {
        1.0
    }
}

fn of_runs(runs: &[Times]) -> Vec<Metric> {
    /// Runs, those without an end, node-seconds, and of these in collectives.
    type Sums = [f64; 4];
    let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
    for run in runs {
        let labels = [label("library", &run.library), label("mode", &run.mode)].join(",");
        let missing = f64::from(u8::from(run.exit == Exit::Missing));
        let node_seconds = |seconds: f64| seconds * run.nodes as f64;
        let in_collectives = node_seconds(run.collectives_s.min(run.wall_s));
        let more = [1.0, missing, node_seconds(run.wall_s), in_collectives];
        let entry = sums.entry(labels).or_default();
        entry
            .iter_mut()
            .zip(more)
            .for_each(|(sum, more)| *sum += more);
    }
    let gauge = |name, help, place: usize| Metric {
        name,
        kind: "gauge",
        help,
        samples: sums
            .iter()
            .map(|(labels, sums)| (labels.clone(), sums[place]))
            .collect(),
    };
    vec![
        gauge("colltune_runs", "Runs in the ledger.", 0),
        gauge(
            "colltune_runs_without_end",
            "Runs that died, or still run.",
            1,
        ),
        gauge(
            "colltune_run_node_seconds",
            "Whole time of the runs by nodes.",
            2,
        ),
        gauge(
            "colltune_collectives_node_seconds",
            "Of that the time in blocking collectives.",
            3,
        ),
    ]
}

/// A label with its value escaped as the format wants it.
fn label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::account::{JobFacts, JobSummary, KINDS};

    #[test]
    fn runs_are_summed_by_library_and_mode_and_labels_are_escaped() {
        let run = |mode: &str| {
            let facts = JobFacts {
                library: "open\"mpi".to_owned(),
                mode: mode.to_owned(),
                nodes: 2,
                wall_ns: 3_000_000_000,
                ..JobFacts::default()
            };
            Times::from(JobSummary::new(facts, &vec![Default::default(); KINDS]))
        };
        let text = text(&[], &[run("off"), run("off"), run("explore")]);
        assert!(text.contains("# TYPE colltune_runs gauge\ncolltune_runs{library=\"open\\\"mpi\",mode=\"explore\"} 1\n"));
        assert!(
            text.contains("colltune_run_node_seconds{library=\"open\\\"mpi\",mode=\"off\"} 12\n")
        );
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
