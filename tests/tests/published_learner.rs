//! The learner as published, in jobs: what is drawn, what is recorded of it, what is run in the end.

use std::path::Path;
use std::process::Command;

use colltune_core::collective::Collective;
use colltune_core::record::{Manner, Probability, Record};
use colltune_tests::{Job, Mpi, colltune, folder, job, on_each_library, skip, traces};

const RECORDS: usize = 40;

/// A job of two ranks under the learner as published, which records the first calls alone.
fn of(mpi: Mpi, db: &Path, mode: &str) -> Job {
    job(2)
        .mpi(mpi)
        .preload()
        .db(db)
        .mode(mode)
        .env("COLLTUNE_LEARNER", "ompicolltune")
        .env("COLLTUNE_SETUP_AFTER", "1")
        .env("COLLTUNE_RECORDS_PER_RUN", RECORDS.to_string())
}

/// What `colltune train` says by the learner as published; `Err` where XGBoost is not there.
fn train(db: &Path) -> Result<String, String> {
    let output = Command::new(colltune())
        .args(["train", "--learner", "ompicolltune", "--db"])
        .arg(db)
        .output()
        .expect("the command starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false if errors.contains("load XGBoost") => Err(errors),
        false => panic!("{errors}"),
    }
}

/// `probabilities.json` of generation 1.
fn model(db: &Path, mpi: Mpi) -> String {
    let file = db.join(mpi.library().to_string());
    let file = file.join("generations/000001/probabilities.json");
    std::fs::read_to_string(file).expect("it was published")
}

on_each_library! {
    fn each_call_is_drawn_alike_and_recorded_with_its_probability_until_the_records_are_used_up(mpi: Mpi) {
        let db = folder();
        of(mpi, db.path(), "explore").run("frequent", &["200", "2"]).succeeds().prints("ok\n");
        let found = traces(db.path());
        assert_eq!(found.len(), 2);
        for trace in &found {
            let records = trace.records.iter().filter(|one| one.manner == Manner::Blocking);
            assert_eq!(records.clone().count(), RECORDS);
            let frequent = records.filter(|one| one.collective == Collective::Allreduce);
            let (known, unknown): (Vec<&Record>, Vec<&Record>) =
                frequent.partition(|one| one.probability.is_some());
            let values: Vec<f64> =
                known.iter().filter_map(|one| one.probability.map(Probability::value)).collect();
            assert!(values.len() > 5, "{values:?}");
            assert!(values.iter().all(|one| (one - values[0]).abs() < 1e-6 && *one < 0.5), "{values:?}");
            // Calls whose draw could not run are the default's, and their probability is unknown.
            assert!(unknown.iter().all(|one| trace.variant(one) == "default"));
        }
        if let Err(reason) = train(db.path()) {
            skip::<()>(&reason);
            return;
        }
        assert!(model(db.path(), mpi).contains("\"learner\":\"ompicolltune\""));
        of(mpi, db.path(), "exploit").run("frequent", &["200", "2"]).succeeds().prints("ok\n");
        assert_eq!(traces(db.path()).len(), 0, "exploiting watches nothing");
    }
}
