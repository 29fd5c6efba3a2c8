//! What `validate` writes and prints.

use colltune_statistics::median;
use serde::Serialize;

use super::args::Measuring;
use super::compare::Row;
use super::protocol::SCHEMA;
use super::scaling::Scaling;
use colltune_output::table;

/// Each row may be so far off, and all of them on the average: on this machine alone, and on the test cluster.
const ON_NODE: (f64, f64) = (0.12, 0.05);
const ON_CLUSTER: (f64, f64) = (0.25, 0.12);
/// So far off may the ratio of two policies be.
const RATIO: f64 = 0.2;
/// And phases above 5 % of their total, on the average.
const PHASES: f64 = 0.15;
/// By so much another fidelity may change a total.
const FIDELITY: f64 = 0.02;

#[derive(Serialize)]
pub struct Report {
    schema: u32,
    /// What `--row` said.
    row: Option<String>,
    command: String,
    version: &'static str,
    place: String,
    machine: String,
    source: String,
    steps: u64,
    fit_steps: u64,
    repetitions: usize,
    #[serde(skip)]
    each: f64,
    rows: Vec<Row>,
    mean_error: f64,
    mean_phase_error: Option<f64>,
    ratios: Vec<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<Scaling>,
    validated: Vec<Claim>,
}

/// One row of the validation.
#[derive(Serialize)]
struct Claim {
    id: &'static str,
    what: String,
    /// What it is judged by, as the number or share that `what` limits; none where it is a question of order.
    found: Option<f64>,
    holds: bool,
}

impl Claim {
    /// Of which no more than `most` is allowed.
    fn at_most(id: &'static str, what: String, found: f64, most: f64) -> Claim {
        Claim {
            id,
            what,
            found: Some(found),
            holds: found <= most,
        }
    }

    fn of_order(id: &'static str, what: &str, holds: bool) -> Claim {
        Claim {
            id,
            what: what.to_owned(),
            found: None,
            holds,
        }
    }
}

/// The deck, and how many ranks a node had where that was asked for.
fn deck_in_layout(row: &Row) -> String {
    match row.ranks_per_node {
        Some(n) => format!("{}, {n} a node", row.deck),
        None => row.deck.clone(),
    }
}

/// LPT over contiguous on a deck.
#[derive(Serialize)]
struct Ratio {
    deck: String,
    measured: f64,
    emulated: f64,
}

impl Report {
    pub fn new(measuring: Measuring, rows: Vec<Row>, scaling: Option<Scaling>) -> Report {
        let Measuring {
            args,
            place,
            machine,
            ..
        } = measuring;
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let mean_error = mean(rows.iter().map(|row| row.error.abs()).collect());
        let of_phases: Vec<f64> = rows
            .iter()
            .flat_map(|row| row.phases.iter().filter_map(|phase| phase.error))
            .map(f64::abs)
            .collect();
        let mean_phase_error = (!of_phases.is_empty()).then(|| mean(of_phases));
        let (each, on_average) = if args.cluster { ON_CLUSTER } else { ON_NODE };
        let name = match (args.cluster, args.ranks) {
            (false, _) => "V1",
            (true, 8) => "V2",
            (true, _) => "V3",
        };
        let ratios = ratios(&rows);
        let worst = largest(rows.iter().map(|row| row.error));
        let near = rows.iter().filter(|row| row.error.abs() <= each).count();
        let mut validated = vec![
            Claim::at_most(
                name,
                format!(
                    "each total within {} ({near} of {} are)",
                    percent(each),
                    rows.len()
                ),
                worst,
                each,
            ),
            Claim::at_most(
                name,
                format!("mean of totals within {}", percent(on_average)),
                mean_error,
                on_average,
            ),
            Claim::at_most(
                "V5",
                "runs whose counts differ: none".to_owned(),
                rows.iter()
                    .filter(|row| row.counts_differ.is_some())
                    .count() as f64,
                0.0,
            ),
        ];
        if let Some(error) = mean_phase_error {
            let what = format!("mean of phases within {}", percent(PHASES));
            validated.push(Claim::at_most("V6", what, error, PHASES));
        }
        validated.push(other_fidelity(&rows));
        if let Some(holds) = order_holds(&rows) {
            let what = "order of policies that differ beyond their noise";
            validated.push(Claim::of_order(name, what, holds));
        }
        for ratio in &ratios {
            let off = (ratio.emulated / ratio.measured - 1.0).abs();
            let what = format!(
                "LPT over contiguous within {}, {}",
                percent(RATIO),
                ratio.deck
            );
            validated.push(Claim::at_most("V4", what, off, RATIO));
        }
        if let Some(scaling) = &scaling {
            let what = "sign of each change by ranks, and their order";
            validated.push(Claim::of_order("V8", what, scaling.signs_agree));
        }
        Report {
            schema: SCHEMA,
            row: args.row.clone(),
            command: command_line(),
            version: env!("CARGO_PKG_VERSION"),
            place: place.describe(),
            machine: machine.name.clone(),
            source: machine.source.clone(),
            steps: args.steps,
            fit_steps: args.fit_steps,
            repetitions: args.repetitions,
            each,
            validated,
            mean_error,
            mean_phase_error,
            rows,
            ratios,
            scaling,
        }
    }
}

/// By how much messages that each travel alone change a total, at most.
fn other_fidelity(rows: &[Row]) -> Claim {
    let limit = percent(FIDELITY);
    let what = format!("messages alone change no total by more than {limit}");
    let most = largest(rows.iter().map(|row| row.alone));
    Claim::at_most("V9", what, most, FIDELITY)
}

/// What was typed, but for the program's folder.
fn command_line() -> String {
    let quoted = |word: String| match word.contains(char::is_whitespace) {
        true => format!("{word:?}"),
        false => word,
    };
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("colltune-bench".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The value farthest from 0, without its sign; NaN is far from all.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    let larger = |most: f64, value: f64| match value.abs() > most || value.is_nan() {
        true => value.abs(),
        false => most,
    };
    values.fold(0.0, larger)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A deck in a layout.
fn place_of(row: &Row) -> (&str, Option<u32>) {
    (&row.deck, row.ranks_per_node)
}

/// Whether policies of a deck whose medians differ by more than half their ranges together are emulated in their order;
/// none where no two do.
fn order_holds(rows: &[Row]) -> Option<bool> {
    let half = |row: &Row| row.noise * median(&row.measured_s);
    let pairs = (0..rows.len()).flat_map(|i| (0..i).map(move |j| (&rows[i], &rows[j])));
    let mut differing = pairs.filter(|(a, b)| {
        let apart = (median(&a.measured_s) - median(&b.measured_s)).abs();
        place_of(a) == place_of(b) && apart > half(a) + half(b)
    });
    let holds = |(a, b): (&Row, &Row)| {
        (median(&a.measured_s) < median(&b.measured_s)) == (a.emulated_s < b.emulated_s)
    };
    let first = differing.next().map(holds)?;
    Some(first && differing.all(holds))
}

/// Of every deck that ran under both policies.
fn ratios(rows: &[Row]) -> Vec<Ratio> {
    let contiguous = |lpt: &Row| {
        let same = |row: &&Row| row.policy == "contiguous" && place_of(row) == place_of(lpt);
        rows.iter().find(same)
    };
    let pairs = rows.iter().filter(|row| row.policy == "lpt");
    let pairs = pairs.filter_map(|lpt| Some((lpt, contiguous(lpt)?)));
    let ratio = |(lpt, contiguous): (&Row, &Row)| Ratio {
        deck: deck_in_layout(lpt),
        measured: median(&contiguous.measured_s) / median(&lpt.measured_s),
        emulated: contiguous.emulated_s / lpt.emulated_s,
    };
    pairs.map(ratio).collect()
}

impl Report {
    pub fn in_columns(&self) -> String {
        let report = self;
        let change = |share: f64| format!("{:+.1}", 100.0 * share);
        let rows = report.rows.iter().map(|row| {
            let phase = |name: &str| {
                let named = row.phases.iter().find(|phase| phase.name == name);
                named.map_or_else(String::new, |phase| {
                    format!("{:.2}/{:.2}", phase.measured_s, phase.emulated_s)
                })
            };
            vec![
                deck_in_layout(row),
                row.policy.clone(),
                format!("{:.3}", median(&row.measured_s)),
                format!("{:.1}", 100.0 * row.noise),
                format!("{:.3}", row.emulated_s),
                change(row.error),
                if row.error.abs() <= report.each {
                    "yes"
                } else {
                    "no"
                }
                .to_owned(),
                row.counts_differ
                    .clone()
                    .unwrap_or_else(|| format!("equal ({})", row.n_counts)),
                phase("compute"),
                phase("wait"),
                phase("collective"),
                phase("rest"),
                change(row.alone),
            ]
        });
        let header = [
            "deck",
            "policy",
            "measured s",
            "noise %",
            "emulated s",
            "error %",
            "near",
            "counts",
            "compute s",
            "wait s",
            "collective s",
            "rest s",
            "alone %",
        ];
        let mut text = format!(
            "{}; machine {} ({})\n",
            report.place, report.machine, report.source
        );
        text += &table(&header, &rows.collect::<Vec<_>>());
        text += &format!("mean error of totals {:.1} %", 100.0 * report.mean_error);
        if let Some(error) = report.mean_phase_error {
            text += &format!(
                ", of phases above 5 % of their total {:.1} %",
                100.0 * error
            );
        }
        text += "\n";
        for ratio in &report.ratios {
            text += &format!(
                "{}: LPT is {:.2} times as fast as contiguous, emulated {:.2} times\n",
                ratio.deck, ratio.measured, ratio.emulated
            );
        }
        text += &report
            .scaling
            .as_ref()
            .map_or_else(String::new, Scaling::in_columns);
        for claim in &report.validated {
            let found = claim
                .found
                .map_or_else(String::new, |found| format!(" ({found:.3})"));
            let holds = if claim.holds { "yes" } else { "no" };
            text += &format!("{} {}: {holds}{found}\n", claim.id, claim.what);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(deck: &str, measured: f64, noise: f64, emulated_s: f64) -> Row {
        Row {
            deck: deck.to_owned(),
            ranks_per_node: None,
            policy: "lpt".to_owned(),
            measured_s: vec![measured],
            noise,
            emulated_s,
            error: 0.0,
            counts_differ: None,
            n_counts: 0,
            phases: Vec::new(),
            alone: 0.0,
        }
    }

    #[test]
    fn a_total_that_changes_with_messages_alone_is_seen() {
        let off = |alone| Row {
            alone,
            ..row("a", 1.0, 0.0, 1.0)
        };
        let holds = |alone| other_fidelity(&[off(0.0), off(alone)]).holds;
        assert!(holds(0.0) && holds(0.01));
        assert!(!holds(0.03) && !holds(-0.03));
    }

    #[test]
    fn policies_are_compared_within_a_layout_alone() {
        let of = |policy: &str, ranks_per_node, measured, emulated_s| Row {
            policy: policy.to_owned(),
            ranks_per_node: Some(ranks_per_node),
            ..row("a", measured, 0.0, emulated_s)
        };
        let rows = [
            of("contiguous", 2, 1.0, 1.0),
            of("lpt", 2, 2.0, 2.0),
            of("contiguous", 1, 3.0, 1.5),
            of("lpt", 1, 4.0, 3.0),
        ];
        assert_eq!(order_holds(&rows), Some(true));
        let of_rows: Vec<(String, f64)> = ratios(&rows)
            .into_iter()
            .map(|ratio| (ratio.deck, ratio.measured))
            .collect();
        let expected = [("a, 2 a node", 0.5), ("a, 1 a node", 0.75)];
        assert_eq!(
            of_rows,
            expected.map(|(deck, ratio)| (deck.to_owned(), ratio))
        );
    }

    #[test]
    fn the_order_of_policies_counts_where_they_differ_beyond_noise() {
        let other = row("b", 9.0, 0.0, 0.1);
        let rows = |noise, emulated| {
            [
                row("a", 1.0, noise, 1.0),
                row("a", 1.2, noise, emulated),
                row("b", 9.0, 0.0, 0.1),
            ]
        };
        assert_eq!(order_holds(&rows(0.01, 2.0)), Some(true));
        assert_eq!(order_holds(&rows(0.01, 0.5)), Some(false));
        assert_eq!(order_holds(&rows(0.2, 0.5)), None, "noise");
        assert_eq!(order_holds(&[other]), None, "one alone");
    }
}
