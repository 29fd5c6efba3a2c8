//! Learners judged by made records.

use std::sync::{Mutex, PoisonError};

use colltune_core::record::Probability;
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{TrainOptions, train};
use colltune_models::ablation::Mechanism;

use super::*;

fn judged(runs: &[Run]) -> Option<Judged> {
    judged_by(runs, false)
}

/// What is left out is left out of all trainings of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn judged_by(runs: &[Run], ablation: bool) -> Option<Judged> {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("colltune.toml"),
        "machine = \"testing\"\n",
    )
    .unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    for run in runs {
        run.write(&db.incoming()).unwrap();
    }
    train(&db, TrainOptions::default(), &|_| {}).unwrap();
    let settings = db.settings().unwrap();
    let mut warnings = Vec::new();
    let found = judge(
        &db,
        &LIBRARY.into(),
        &settings,
        &learners(ablation),
        &mut warnings,
    )
    .unwrap();
    assert_eq!(warnings, [""; 0]);
    found
}

fn run(number: u64) -> Run {
    Run {
        collectives: vec![Collective::Alltoall],
        sizes: vec![8],
        recording_ranks: 1,
        calls: 400,
        // All alike; how likely that is for each changes no ratio.
        spoil: Some(|_, record| record.probability = Probability::of_parts(1 << 28)),
        ..Run::new(&format!("job{number}"), number)
    }
}

#[test]
fn learners_are_judged_by_what_was_drawn_evenly_and_records_without_probability_are_not_asked() {
    let mut runs: Vec<Run> = (0..8).map(run).collect();
    runs.push(Run {
        spoil: Some(|_, record| record.probability = None),
        ..run(8)
    });
    let found = judged(&runs).expect("something was drawn");
    assert_eq!(
        (found.runs, found.calls, found.without_probability),
        (9, 8 * 400, 400)
    );
    let ratio = |learner: &str| {
        let row = found.total.iter().find(|row| row.learner == learner);
        row.and_then(|row| row.ratio.as_ref())
            .map(|one| [one.low, one.value, one.high])
    };
    assert_eq!(ratio("default"), Some([1.0; 3]));
    // Both learn from other runs that there is a faster variant, and are right; drawing costs more than running it.
    let [_, chosen, high] = ratio("colltune").expect("it is judged");
    assert!(chosen < 0.95 && high < 1.0, "{chosen} {high}");
    let [_, drawing, _] = ratio("colltune drawing").expect("it is judged");
    assert!(drawing > chosen, "{drawing} {chosen}");
    if let Some([_, published, _]) = ratio("ompicolltune") {
        assert!(published < 0.95, "{published}");
    }
    assert!(found.text().contains("all together"));
}

#[test]
fn runs_of_a_layout_are_in_all_parts_however_layouts_take_turns() {
    let call = |number: u32| RecordedCall {
        job: format!("job{number:02}"),
        shape: Shape {
            collective: Collective::Alltoall,
            message_bytes: 8,
            nodes: 1 + number % 5,
            ppn: 1,
            n_ranks: 1 + number % 5,
        },
        variant: "default".to_owned(),
        probability: 0.5,
        time_ns: 1.0,
    };
    let calls: Vec<RecordedCall> = (0..25).map(call).collect();
    let numbers = jobs(&calls);
    for layout in 0..5 {
        let of_layout = (0..25).filter(|number| number % 5 == layout);
        let parts: BTreeSet<u32> = of_layout
            .map(|number| numbers[format!("job{number:02}").as_str()] % PARTS as u32)
            .collect();
        assert_eq!(parts.len(), PARTS, "layout {layout}");
    }
}

#[test]
fn runs_that_drew_nothing_judge_nobody() {
    let silent = |number| Run {
        spoil: Some(|_, record| record.probability = None),
        ..run(number)
    };
    assert!(judged(&[silent(0), silent(1)]).is_none());
}

#[test]
fn the_learner_without_a_mechanism_stands_beside_the_whole_one() {
    let runs: Vec<Run> = (0..8).map(run).collect();
    let found = judged_by(&runs, true).expect("something was drawn");
    let left_out: Vec<&str> = found.ablation.iter().map(|one| &*one.left_out).collect();
    assert_eq!(left_out.len(), 1 + Mechanism::ALL.len());
    assert_eq!((left_out[0], left_out[1]), ("nothing", "calmness"));
    // One variant is so much faster that none of them matters for it.
    for row in &found.ablation {
        let ratio = row.choice.as_ref().expect("both run it");
        let all = [ratio.low, ratio.value, ratio.high];
        assert_eq!((all, row.other_choices), ([1.0; 3], 0), "{}", row.left_out);
    }
    assert!(found.text().contains("panel breaks"));
    assert!(judged(&runs).expect("as before").ablation.is_empty());
}
