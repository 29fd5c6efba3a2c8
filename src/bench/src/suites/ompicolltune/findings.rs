//! What counts as reproduced of each figure, fixed before anything was run.

use std::collections::BTreeMap;

use anyhow::Context;
use colltune_core::variant::DEFAULT;
use colltune_statistics::{Interval, median, median_ratio};
use serde_json::Value;

use crate::suites::report::{Finding, Report, Row, Target};

/// The paper's floor, and how far rounding may lift a share above it.
const FLOOR: f64 = 0.03;
const ROUNDING: f64 = 1e-6;
/// The variant that is drawn most may be so much slower than the fastest.
const NEAR: f64 = 1.02;
/// Of the paper's overhead in figure 5.
const OVERHEAD_MAX: f64 = 1.05;

/// Seconds in reductions of each variant, forced; a value for each round.
pub type Forced = BTreeMap<String, Vec<f64>>;

/// Figure 3: the slowest variant goes to the floor after the first batch and stays there, the fastest takes most of the
/// draws, and all comes to rest. Returns what is chosen in the end.
pub fn told_of_history(
    histories: &Value,
    bytes: u64,
    forced: &Forced,
    report: &mut Report,
) -> anyhow::Result<String> {
    let panel = &histories["panels"][0];
    let lines = panel["lines"].as_array();
    let lines = lines.with_context(|| format!("find the history of {bytes} bytes"))?;
    // Generations 1, 2 and so on; a variant without a line never had more than the floor.
    let shares = |name: &str| -> Vec<f64> {
        let line = lines.iter().find(|line| line["variant"] == name);
        let all = line.and_then(|line| line["probabilities"].as_array());
        let all = all.into_iter().flatten().skip(1);
        all.map(|share| share.as_f64().unwrap_or(f64::NAN))
            .collect()
    };
    let time = |name: &str| forced.get(name).map_or(f64::NAN, |times| median(times));
    let default = &forced[DEFAULT];
    for (name, times) in forced {
        let shares = shares(name);
        let share = |at: Option<&f64>| at.copied().unwrap_or(FLOOR);
        report.rows.push(
            Row::of_rounds(format!("{bytes} B, {name} forced"), default, times)
                .with("share_after_1", share(shares.first()))
                .with("share_in_the_end", share(shares.last())),
        );
    }
    let by_time = |one: &&String, other: &&String| time(one).total_cmp(&time(other));
    let (fastest, slowest) = (forced.keys().min_by(by_time), forced.keys().max_by(by_time));
    let (fastest, slowest) = fastest.zip(slowest).context("find forced variants")?;
    let of_slowest = shares(slowest).into_iter().fold(0.0, f64::max);
    let most = forced.keys().max_by(|one, other| {
        let last = |name: &str| shares(name).last().copied().unwrap_or(0.0);
        last(one).total_cmp(&last(other))
    });
    let most = most.context("find forced variants")?;
    let ratio = match most == fastest {
        true => exactly(1.0),
        false => median_ratio(&forced[most], &forced[fastest]),
    };
    let generations = histories["generations"].as_array().map_or(0, Vec::len);
    let last = generations.saturating_sub(1) as f64;
    // What never rests has moved in the last batch.
    let stable = panel["stable_since"].as_f64().unwrap_or(last);
    let findings = [
        (
            format!(
                "O1, {bytes} B: the most that the slowest, {slowest}, was drawn after any batch"
            ),
            exactly(of_slowest),
            Target::AtMost(FLOOR + ROUNDING),
        ),
        (
            format!(
                "O1, {bytes} B: what is drawn most in the end, {most}, over the fastest, {fastest}, both forced"
            ),
            ratio,
            Target::AtMost(NEAR),
        ),
        (
            format!("O1, {bytes} B: the batch since which it is at rest, of {last}"),
            exactly(stable),
            Target::AtMost(last - 1.0),
        ),
    ];
    for (what, found, target) in findings {
        tell(report, what, found, target);
    }
    Ok(panel["best"].as_str().unwrap_or(DEFAULT).to_owned())
}

/// Figure 3, of the learner as published: what is drawn least after any batch is drawn with the floor.
pub fn told_of_floor(least: f64, bytes: u64, report: &mut Report) {
    tell(
        report,
        format!("O1, {bytes} B: the least probability of a variant after any batch"),
        exactly(least),
        Target::Within(FLOOR - ROUNDING, FLOOR + ROUNDING),
    );
}

/// Figure 4: in a layout that nothing was learned of, what is predicted is not slower than the default.
pub fn told_of_unseen(unseen: &Value, report: &mut Report) -> anyhow::Result<()> {
    let panels = unseen["panels"].as_array();
    let panels = panels.context("find the layout that was held out")?;
    let (cells, right) = (&unseen["cells"], &unseen["right"]);
    let predicted = "predicted choices within 5 % of the best, of all cells of 3 nodes x 2 ranks";
    let share = right.as_f64().unwrap_or(0.0) / cells.as_f64().unwrap_or(f64::NAN);
    tell(
        report,
        format!("O2: {predicted} ({right} of {cells})"),
        exactly(share),
        Target::None,
    );
    if panels.is_empty() {
        let what =
            "O2: the default over what is predicted, which is the default wherever it was run";
        tell(report, what.to_owned(), exactly(1.0), Target::AtLeast(1.0));
    }
    for panel in panels {
        let choice = panel["choice"].as_str().unwrap_or(DEFAULT);
        let ratio = &panel["ratio"];
        let found = match ratio {
            // What was predicted is the default itself.
            Value::Null => exactly(1.0),
            _ => {
                let [low, value, high] =
                    ["low", "value", "high"].map(|key| ratio[key].as_f64().unwrap_or(f64::NAN));
                Interval { low, value, high }
            }
        };
        let what = format!(
            "O2, {} B on 3 nodes x 2 ranks, held out: the default over what is predicted, {choice}",
            panel["bytes"]
        );
        tell(report, what, found, Target::AtLeast(1.0));
    }
    Ok(())
}

/// Figure 5: what exploring costs before any training, and what is gained after the last by the variant that is chosen. Where
/// that is the default nothing can be gained, and what is found says how far such jobs differ by chance.
pub fn told_of_whole_runs(
    times: &[Vec<f64>; 4],
    n_batches: usize,
    chosen: &str,
    report: &mut Report,
) {
    let [default, untrained, trained, tuned] = times;
    let target = match chosen {
        DEFAULT => Target::None,
        _ => Target::AtMost(1.0),
    };
    let runs = format!("Tuned [{n_batches}*], which runs {chosen},");
    let ways = [
        (
            "Tuned [0]".to_owned(),
            untrained,
            Target::AtMost(OVERHEAD_MAX),
        ),
        (format!("Tuned [{n_batches}]"), trained, Target::None),
        (runs, tuned, target),
    ];
    for (name, times, target) in ways {
        let case = format!("whole runs, {}", name.trim_end_matches(','));
        report.rows.push(Row::of_rounds(case, default, times));
        let what = format!("O3: whole time of {name} over the default's");
        tell(report, what, median_ratio(times, default), target);
    }
}

fn exactly(value: f64) -> Interval {
    Interval {
        low: value,
        value,
        high: value,
    }
}

fn tell(report: &mut Report, what: String, found: Interval, target: Target) {
    report.findings.push(Finding {
        what,
        found,
        unit: "",
        target,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdicts(report: &Report) -> Vec<&'static str> {
        report.findings.iter().map(Finding::verdict).collect()
    }

    fn history(slow: [f64; 3], stable: Option<u64>) -> Value {
        json!({
            "generations": [{ "number": 0 }, { "number": 1 }, { "number": 2 }],
            "panels": [{
                "stable_since": stable,
                "lines": [
                    { "variant": "native:a", "probabilities": [0.3, 0.9, 0.94] },
                    { "variant": "native:b", "probabilities": slow },
                ],
            }],
        })
    }

    #[test]
    fn a_slow_variant_that_is_drawn_again_and_what_never_rests_are_missed() {
        let forced: Forced = [
            (DEFAULT.to_owned(), vec![2.0, 2.1, 2.2]),
            ("native:a".to_owned(), vec![1.0, 1.1, 1.2]),
            ("native:b".to_owned(), vec![5.0, 5.1, 5.2]),
        ]
        .into();
        let judged = |history: Value| {
            let mut report = Report::default();
            told_of_history(&history, 8, &forced, &mut report).expect("a panel");
            assert_eq!(report.rows.len(), 3);
            verdicts(&report)
        };
        assert_eq!(judged(history([0.3, 0.03, 0.03], Some(1))), ["met"; 3]);
        // A share of the first, even draws is no fault; one after a training is.
        assert_eq!(judged(history([0.3, 0.03, 0.04], Some(1)))[0], "MISSED");
        assert!(judged(history([0.3, 0.03, 0.03], None))[2] == "MISSED");
    }

    #[test]
    fn a_share_below_the_floor_is_missed_and_so_is_none_at_it() {
        let judged = |least: f64| {
            let mut report = Report::default();
            told_of_floor(least, 8, &mut report);
            verdicts(&report)
        };
        assert_eq!(
            [judged(0.03), judged(0.0), judged(0.04)],
            [["met"], ["MISSED"], ["MISSED"]]
        );
    }

    #[test]
    fn chance_between_jobs_that_all_run_the_default_is_no_gain() {
        let times = [[2.0; 5], [2.0; 5], [2.0; 5], [1.0; 5]].map(Vec::from);
        let judged = |chosen: &str| {
            let mut report = Report::default();
            told_of_whole_runs(&times, 20, chosen, &mut report);
            verdicts(&report)
        };
        assert_eq!(judged("native:a"), ["met", "", "met"]);
        assert_eq!(judged(DEFAULT), ["met", "", ""]);
    }

    #[test]
    fn a_predicted_default_is_as_fast_as_the_default() {
        let unseen = json!({ "cells": 4, "right": 3, "panels": [
            { "bytes": 8, "choice": "default", "ratio": null },
            { "bytes": 48, "choice": "native:a", "ratio": { "low": 0.9, "value": 0.95, "high": 0.97 } },
        ] });
        let mut report = Report::default();
        told_of_unseen(&unseen, &mut report).expect("panels");
        assert_eq!(verdicts(&report), ["", "met", "MISSED"]);
        assert_eq!(report.findings[0].found.value, 0.75);
        let nothing = json!({ "cells": 4, "right": 4, "panels": [] });
        let mut report = Report::default();
        told_of_unseen(&nothing, &mut report).expect("panels");
        assert_eq!(verdicts(&report), ["", "met"]);
    }
}
