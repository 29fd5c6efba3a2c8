//! Studies from end to end: small ones, and with `COLLTUNE_LONG=1` whole ones.

use colltune_emulate::study::{Size, Study, Verdict, find};
use colltune_placement::Policy;

#[test]
fn what_granularity_decides_of_arts_table_is_reproduced_and_every_row_is_judged() {
    if "graphlb".parse::<Policy>().is_err() {
        eprintln!("skipped: this build has no METIS");
        return;
    }
    let study = study("art");
    for finding in &study.findings {
        let is_bound = finding.what == "fine, sfclb, 512 and 1024";
        assert!(!is_bound || finding.verdict == Verdict::Reproduced);
        // Only what the paper has no number for, or no tolerance, has no verdict.
        let is_shown = finding.note.contains("no numbers") || finding.note.contains("no tolerance");
        let is_judged = finding.verdict != Verdict::NotJudged;
        assert!(
            is_judged || finding.id == "A*" || is_shown,
            "{}",
            finding.what
        );
        assert!(finding.ours.iter().all(|value| value.is_finite()));
    }
    assert!(
        study
            .findings
            .iter()
            .any(|f| f.what == "coarse, graphlb:raw")
    );
    let of = |id: &str| study.findings.iter().filter(|f| f.id == id).count();
    assert_eq!(["A7", "A8", "A9", "A*"].map(of), [7, 6, 7, 6]);
    assert_eq!(study.findings.len(), 9 + 20 + 6);
    assert_varied(&study, "A*");
    assert_eq!(study.figures.len(), 6);
    assert!(study.assumptions.iter().any(|text| text.contains("slope")));
}

/// Rows of other networks are shown and not judged: a number for each of t_s and t_c, halved and doubled.
fn assert_varied(study: &Study, id: &str) {
    for row in study.findings.iter().filter(|row| row.id == id) {
        assert_eq!(row.verdict, Verdict::NotJudged, "{}", row.what);
        assert_eq!(row.ours.len(), 4, "{}", row.what);
        assert!(row.ours.iter().all(|value| value.is_finite()), "{row:?}");
    }
}

fn study(name: &str) -> Study {
    let size = match std::env::var_os("COLLTUNE_LONG") {
        Some(_) => Size::Full,
        None => Size::Quick,
    };
    let study = (find(name).expect("a study").run)(size, None).unwrap();
    for finding in &study.findings {
        let (paper, ours) = (&finding.paper, &finding.ours);
        println!(
            "{} {}: {paper:?} {ours:.2?} {:?} {}",
            finding.id, finding.what, finding.verdict, finding.note
        );
    }
    for assumption in &study.assumptions {
        println!("assumed: {assumption}");
    }
    study
}

#[test]
fn shamrocks_two_numbers_are_set_and_every_other_is_judged_or_shown() {
    let study = study("shamrock");
    let first = &study.findings[0];
    assert!((first.ours[0] - 19.96).abs() < 1e-6, "set");
    let judged = study.findings.iter().filter(|finding| finding.id != "S*");
    assert!(
        judged
            .clone()
            .all(|finding| finding.verdict != Verdict::NotJudged)
    );
    assert_eq!(judged.count(), 10);
    assert_eq!(study.figures.len(), 5);
    assert!(
        study
            .assumptions
            .iter()
            .any(|text| text.contains("assumed: InfiniBand DDR"))
    );
}

#[test]
fn miniamrs_two_shares_are_set_on_one_deck_and_predicted_on_the_other() {
    let study = study("miniamr");
    let of = |id: &str| {
        study
            .findings
            .iter()
            .filter(move |finding| finding.id == id)
            .count()
    };
    assert_eq!(["M1", "M2", "M3", "M4", "M*"].map(of), [2, 4, 5, 8, 7]);
    assert_varied(&study, "M*");
    assert_eq!(study.figures.len(), 8 + 2);
}

#[test]
fn the_cplx_study_fits_two_numbers_and_says_of_every_other_whether_it_is_met() {
    let study = study("cplx");
    let ids: Vec<&str> = study.findings.iter().map(|finding| finding.id).collect();
    for id in (0..=11).map(|n| format!("C{n}")) {
        assert!(ids.contains(&id.as_str()), "{id}");
    }
}
