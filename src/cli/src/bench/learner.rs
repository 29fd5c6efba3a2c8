//! Learners side by side on made-up machines whose truth is known; no MPI is needed.
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
                Bound::AtLeast(least) | Bound::Within(least, _) => Target::AtLeast(least),
                Bound::None => Target::None,
            },
        })
    });
    of_first.collect()
}
