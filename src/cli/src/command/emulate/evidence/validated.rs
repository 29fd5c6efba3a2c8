//! What `colltune emulate validate` found, as a study of the page.

use std::path::Path;

use colltune_report::evidence::{Findings, Judged, Reproduction};
use colltune_statistics::median;
use serde::Deserialize;

use super::measured::read_if_there;

/// Whose figure of emulated and actual times it stands for.
pub const PAPER: &str = "Wu et al., CLUSTER 2011";

/// What is read of the validation's JSON.
#[derive(Deserialize)]
struct Validated {
    command: String,
    place: String,
    source: String,
    steps: u64,
    fit_steps: u64,
    repetitions: u64,
    rows: Vec<Run>,
    validated: Vec<Claim>,
}

#[derive(Deserialize)]
struct Run {
    deck: String,
    policy: String,
    measured_s: Vec<f64>,
    emulated_s: f64,
    error: f64,
    noise: f64,
}

#[derive(Deserialize)]
struct Claim {
    id: String,
    what: String,
    found: Option<f64>,
    holds: bool,
}

/// How far the paper's emulated times are off at most (fig. 6).
const NEAR: f64 = 0.12;

/// The study, `None` where nothing was validated yet.
///
/// Errors: a file that cannot be read, or is none of a validation.
pub fn study(file: &Path) -> anyhow::Result<Option<Reproduction>> {
    let validated: Option<Validated> = read_if_there(file, "colltune emulate validate")?;
    Ok(validated.map(|validated| Reproduction {
        name: "validate".to_owned(),
        paper: PAPER.to_owned(),
        command: validated.command.clone(),
        seconds: None,
        found: Ok(findings(validated)),
    }))
}

fn findings(validated: Validated) -> Findings {
    let runs = validated.rows.iter().map(|run| {
        let off = format!("{:+.1} %", 100.0 * run.error);
        let measured = median(&run.measured_s);
        Judged {
            id: "A1".to_owned(),
            what: format!("fig. 6: {} under {}, time loop in s", run.deck, run.policy),
            paper: Vec::new(),
            ours: vec![run.emulated_s],
            tolerance: format!("within {:.0} % of the measured time", 100.0 * NEAR),
            verdict: verdict(run.error.abs() <= NEAR),
            note: format!(
                "{off} of {measured:.3} s measured, half of whose range is {:.1} %",
                100.0 * run.noise
            ),
        }
    });
    let claims = validated.validated.iter().map(|claim| Judged {
        id: claim.id.clone(),
        what: claim.what.clone(),
        paper: Vec::new(),
        ours: claim.found.into_iter().collect(),
        tolerance: String::new(),
        verdict: verdict(claim.holds),
        note: String::new(),
    });
    Findings {
        rows: runs.chain(claims).collect(),
        source: format!("{}; machine: {}", validated.place, validated.source),
        assumptions: vec![
            "the mini-app instead of ART".to_owned(),
            format!(
                "costs fitted to the first {} of {} steps, once in each turn; medians of {} turns",
                validated.fit_steps, validated.steps, validated.repetitions
            ),
        ],
        pictures: Vec::new(),
    }
}

fn verdict(holds: bool) -> String {
    match holds {
        true => "reproduced",
        false => "not reproduced",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Option<Reproduction>> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("emulate-validate.json");
        std::fs::write(&file, text).expect("written");
        study(&file)
    }

    #[test]
    fn what_was_not_met_is_told_run_by_run() {
        assert!(study(Path::new("/no/such/file")).expect("none").is_none());
        let error = format!("{:#}", read("{}").expect_err("nobody validated that"));
        assert!(error.contains("emulate-validate.json"), "{error}");
        let run = |error: f64| {
            format!(
                r#"{{ "deck": "d", "policy": "p", "measured_s": [2.0, 1.0, 4.0], "emulated_s": 2.0, "error": {error}, "noise": 0.01 }}"#
            )
        };
        let text = format!(
            r#"{{ "command": "c", "place": "here", "source": "measured", "steps": 20, "fit_steps": 10,
                "repetitions": 5, "rows": [{}, {}],
                "validated": [{{ "id": "V5", "what": "counts", "found": 0.0, "holds": true }}] }}"#,
            run(-0.119),
            run(0.121)
        );
        let found = read(&text).expect("read").expect("there");
        let rows = found.found.expect("findings").rows;
        let verdicts: Vec<&str> = rows.iter().map(|row| &*row.verdict).collect();
        assert_eq!(verdicts, ["reproduced", "not reproduced", "reproduced"]);
        assert!(
            rows[0].note.contains("-11.9 % of 2.000 s"),
            "{}",
            rows[0].note
        );
    }
}
