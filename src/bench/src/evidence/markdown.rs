//! The evidence as one Markdown file: one table a study, and what was assumed.

use super::found::{Evidence, Findings, Judged, Reproduction};

const VERDICTS: [&str; 4] = ["reproduced", "shape only", "not reproduced", "not judged"];
const QUICK: &str =
    "These are quick studies: they show that everything runs, and their values are rough.\n\n";
const ABOUT: &str = "\
Each row has the paper's value, ours, what may be between them, and what that makes of it. A row is *reproduced* inside
its tolerance and *shape only* where the order holds and the values do not. Rows that were fitted or are shown beside
others are not judged. Everything here is emulated, computed or measured on this machine, with the assumptions below
each table. `colltune-bench study NAME --out DIR` draws the pictures of a study.

| study | reproduced | shape only | not reproduced | not judged |
|---|---|---|---|---|
";
const JUDGED: &str = "\
| id | figure | paper | ours | tolerance | verdict | set, or said besides |
|---|---|---|---|---|---|---|
";
const ELSEWHERE: &str = "
## Not run here

| id | figure | paper | how it is had |
|---|---|---|---|
";

pub fn text(evidence: &Evidence) -> String {
    let quick = if evidence.quick { QUICK } else { "" };
    let mut text = format!("# Published figures, and ours\n\n{quick}{ABOUT}");
    for study in &evidence.studies {
        let [good, shape, bad, open] = VERDICTS.map(|verdict| study.count(verdict).to_string());
        text += &row(&[&study.name, &good, &shape, &bad, &open]);
    }
    text.extend(evidence.studies.iter().map(reproduction));
    text += ELSEWHERE;
    let elsewhere = evidence.elsewhere.iter();
    text.extend(elsewhere.map(|one| row(&[one.ids, one.what, one.paper, one.how])));
    let version = env!("CARGO_PKG_VERSION");
    text + &format!("\nWritten by colltune {version} (`make evidence`).\n")
}

fn row<T: AsRef<str>>(cells: &[T]) -> String {
    let cells = cells.iter().map(AsRef::as_ref);
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('<', "\\<"));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn reproduction(study: &Reproduction) -> String {
    let took = study.seconds;
    let took = took.map_or_else(String::new, |seconds| format!(" (took {seconds:.1} s)"));
    let found = match &study.found {
        Ok(findings) => judged(findings),
        Err(why) => format!("It could not be run here: {why}.\n"),
    };
    let (name, paper, command) = (&study.name, &study.paper, &study.command);
    format!("\n## {name}: {paper}\n\nRun it alone: `{command}`{took}.\n\n{found}")
}

fn judged(findings: &Findings) -> String {
    let numbers = |values: &[Option<f64>]| {
        let told = values
            .iter()
            .map(|value| value.map_or_else(|| "-".to_owned(), number));
        told.collect::<Vec<_>>().join(" ")
    };
    let told = |one: &Judged| {
        let ours: Vec<_> = one.ours.iter().copied().map(Some).collect();
        let ours = if ours.is_empty() {
            "not run".to_owned()
        } else {
            numbers(&ours)
        };
        let paper = numbers(&one.paper);
        row(&[
            &one.id,
            &one.what,
            &paper,
            &ours,
            &one.tolerance,
            &one.verdict,
            &one.note,
        ])
    };
    let rows: String = findings.rows.iter().map(told).collect();
    let assumed = findings.assumptions.iter();
    let assumed: String = assumed.map(|one| format!("- {one}\n")).collect();
    format!(
        "{}:\n\n{JUDGED}{rows}\nAssumed:\n\n{assumed}",
        findings.source
    )
}

/// A number with three digits that count.
fn number(value: f64) -> String {
    let size = value.abs();
    if size < 1e-9 {
        return "0".to_owned();
    }
    let digits = (2.0 - size.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_shows_its_verdict_and_is_counted() {
        let row = |verdict: &str| Judged {
            id: "A1".to_owned(),
            what: "a <share> | b".to_owned(),
            paper: vec![Some(50.0), None],
            ours: vec![45.0, 0.0712],
            verdict: verdict.to_owned(),
            ..Judged::default()
        };
        let study = Reproduction {
            name: "art".to_owned(),
            paper: "Wu et al.".to_owned(),
            command: "c".to_owned(),
            seconds: Some(1.5),
            found: Ok(Findings {
                rows: VERDICTS.map(row).to_vec(),
                assumptions: vec!["no noise".to_owned()],
                ..Findings::default()
            }),
        };
        let text = text(&Evidence {
            studies: vec![study],
            ..Evidence::default()
        });
        for verdict in VERDICTS {
            let row = format!("| a \\<share> \\| b | 50.0 - | 45.0 0.0712 |  | {verdict} |  |\n");
            assert_eq!(text.matches(&row).count(), 1, "{text}");
        }
        for part in [
            "| art | 1 | 1 | 1 | 1 |\n",
            "`c` (took 1.5 s)",
            "\n- no noise\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
