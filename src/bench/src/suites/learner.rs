//! Learners side by side on synthetic machines whose truth is known; no MPI is needed.
//!
//! Machines, jobs and figures are those of `colltune-machines`; here they become a report.

use colltune_machines::bench;
use colltune_machines::report::{Bound, Table};
use colltune_machines::trial::{Extent, Scope};
use colltune_statistics::Interval;

use super::Bench;
use super::report::{Finding, Report, Target};

pub fn run(bench: &Bench) -> anyhow::Result<Report> {
    let extent = if bench.quick {
        Extent::Quick
    } else {
        Extent::Full
    };
    let tables = bench::run(&Scope::of(extent), &|_| true, &|what| {
        bench.progress(&format!("learner: {what}"));
    });
    let mut report = Report {
        findings: tables.first().map(findings).unwrap_or_default(),
        ..Report::default()
    };
    for table in tables {
        let of = table.policies.first().copied().unwrap_or_default();
        report.notes.push(format!(
            "all {}, of which findings tell {of}:\n{}",
            table.title,
            table.text()
        ));
    }
    Ok(report)
}

/// Of the first column of a table.
fn findings(table: &Table) -> Vec<Finding> {
    let of_first = table.rows.iter().filter_map(|row| {
        let found = (*row.found.first()?)?;
        Some(Finding {
            what: row.figure.clone(),
            found: Interval {
                low: found.least,
                value: found.median,
                high: found.most,
            },
            unit: "",
            target: match row.must {
                Bound::AtMost(most) => Target::AtMost(most),
                Bound::AtLeast(least) => Target::AtLeast(least),
                Bound::Within(least, most) => Target::Within(least, most),
                Bound::None => Target::None,
            },
        })
    });
    of_first.collect()
}

#[cfg(test)]
mod tests {
    use colltune_machines::report::{Row, Spread};

    use super::*;

    #[test]
    fn what_has_to_lie_within_two_limits_is_judged_by_both() {
        let covered = |share: f64| Row {
            figure: "coverage of 95 % intervals".to_owned(),
            found: vec![Spread::exactly(share), None],
            must: Bound::Within(0.93, 0.97),
            aim: Bound::None,
        };
        let table = Table {
            title: "learners",
            policies: vec!["learner", "uniform"],
            rows: [0.90, 0.95, 0.99].map(covered).to_vec(),
            notes: Vec::new(),
        };
        let verdicts: Vec<&str> = findings(&table).iter().map(Finding::verdict).collect();
        assert_eq!(verdicts, ["MISSED", "met", "MISSED"]);
    }
}
