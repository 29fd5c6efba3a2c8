//! The decks beside the program, their first steps with fewer cells.

mod common;

use colltune_amr::report::Summary;
use common::try_run;

/// Runs the first steps of a deck, with a refinement after each.
fn first_steps(deck: &str) -> Summary {
    let path = format!(
        "{}/../../examples/amr/decks/{deck}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let gas = deck.starts_with("sedov") || deck.starts_with("blast");
    let n_steps = match deck {
        // Its shock wave appears when the sphere arrives, in step 12.
        "sphere-hits-block" => 13,
        // It touches the domain's corner in step 19.
        "moving-sphere" => 20,
        _ => 2,
    };
    let less = if gas {
        ""
    } else {
        "--num_vars 2 --comm_vars 0 --stages_per_ts 2"
    };
    let line = format!(
        "--deck {path} --num_tsteps {n_steps} --refine_freq 1 --nx 4 --ny 4 --nz 4 --validate {less}"
    );
    try_run(2, &line).unwrap_or_else(|broken| panic!("{deck}: {broken}"))
}

#[test]
fn every_deck_runs_and_conserves() {
    let folder = format!("{}/../../examples/amr/decks", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).expect("the decks");
    let mut n_decks = 0;
    for file in files {
        let path = file.expect("a deck").path();
        let deck = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let summary = first_steps(&deck);
        assert!(summary.checksum_drift_max < 1e-12, "{deck}: {summary:?}");
        // The problem of OMPICollTune has no objects; all others refine where theirs are.
        assert_eq!(
            summary.splits > 0,
            deck != "ompicolltune",
            "{deck}: {summary:?}"
        );
        n_decks += 1;
    }
    assert_eq!(n_decks, 13);
}
