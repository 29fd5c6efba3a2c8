use super::*;
use colltune_core::library::Library;
use colltune_core::model::Model;
use colltune_db::{DataKey, Database, generation};
use colltune_models::evidence::{Evidence, Moments, Shape};
use colltune_models::{Context, learn};

const SETTINGS: &str = "families = [\"native\", \"node\"]\nexclude = [\"native:split_binary_tree\"]\n\
    [[space]]\ncollective = \"bcast\"\nbytes = [0, 1024, \"inf\"]\nnodes = [1, 2, 3, \"inf\"]\n\
    ppn = [1, 4, 5, \"inf\"]\n";
const SHAPE: Shape = Shape {
    collective: Collective::Bcast,
    message_bytes: 64,
    nodes: 2,
    ppn: 4,
    n_ranks: 8,
};

/// What a run says of a variant that takes so many times as long as the default.
fn row(run: u32, variant: u16, time: f64) -> Evidence {
    let moments = |mean| Moments {
        n: 200,
        mean,
        m2: 0.5,
    };
    Evidence {
        calls: 200,
        level_ns: 1e4,
        time: moments(time),
        total: moments(time),
        work: 1e4 * time,
        ..Evidence::nothing(run, SHAPE, variant)
    }
}

/// A database that two trainings have filled: of some variants much is known, of others nothing.
fn trained(folder: &std::path::Path) -> Database {
    let db = Database::create_or_open(folder).unwrap();
    std::fs::write(db.settings_path(), SETTINGS).unwrap();
    let key: DataKey = "openmpi-4.1.4".parse().unwrap();
    let (library, settings): (Library, Settings) = (key.library, db.settings().unwrap());
    let variants = catalogue::variants(library, Collective::Bcast);
    let place = |name: &str| {
        let mut names = variants.iter().map(|one| one.name.to_string());
        names
            .position(|other| other == name)
            .expect("the library has it") as u16
    };
    let runs = 0..6;
    let rows = runs.flat_map(|run| {
        [
            row(run, 0, 1.0),
            row(run, place("native:binomial"), 0.7),
            row(run, place("native:basic_linear"), 1.6),
        ]
    });
    let rows: Vec<Evidence> = rows.collect();
    let first = learn(&rows[..9], Context::first(&settings, library, "test")).unwrap();
    let second = Context {
        generation: 2,
        previous: Some(&first.model),
        runs_before: 3,
        ..Context::first(&settings, library, "test")
    };
    let second = learn(&rows, second).unwrap();
    let meta = r#"{ "schema": 2, "generation": 2, "library": "openmpi-4.1.4", "machine": "test",
        "colltune_version": "0", "created_unix_ms": 0, "seed": 1, "runs": 6, "records": 9, "calls": 9,
        "cells_measured": 1, "learn_ms": 1 }"#;
    let meta = serde_json::from_str(meta).unwrap();
    generation::publish(&db, &key, &second, &settings.space, &meta).unwrap();
    db
}

fn report(db: &Database, name: &str) -> Report {
    let key: DataKey = "openmpi-4.1.4".parse().unwrap();
    let generation = Generation::load(db, key).unwrap();
    let is_measured = |cell: &CellStatistics| cell.source == Source::Measured;
    let asked = (name, Some(Collective::Bcast));
    Report::of(
        &generation,
        &db.settings().unwrap(),
        asked,
        &[],
        is_measured,
    )
    .unwrap()
}

#[test]
fn each_variant_of_the_catalogue_is_told_why_it_is_not_drawn_in_a_measured_cell() {
    let folder = tempfile::tempdir().unwrap();
    let db = trained(folder.path());
    for (name, rule, text) in [
        ("native:binomial", "drawn", "; faster with "),
        ("default", "drawn", "drawn with "),
        ("native:basic_linear", "worse", "worse: 1.6"),
        (
            "native:split_binary_tree",
            "excluded",
            "excluded by the site",
        ),
        ("p2p:binomial", "family", "family p2p is off"),
        (
            "native:scatter_allgather",
            "barred",
            "writes into a root's buffer",
        ),
        (
            "native:pipeline:segsize=4KiB",
            "needs",
            "needs a message larger than one segment",
        ),
        ("native:chain", "silent", "no call could run it"),
    ] {
        let report = report(&db, name);
        let [told] = &report.cells[..] else {
            panic!("{name}: {}", report.text());
        };
        assert_eq!(told.why.rule, rule, "{name}: {}", told.why.text);
        assert!(told.why.text.contains(text), "{name}: {}", told.why.text);
        assert!(report.text().contains(&told.why.text), "{}", report.text());
        assert_eq!(told.probability > 0.0, rule == "drawn", "{name}");
    }
    for variant in catalogue::variants("openmpi-4.1.4".parse().unwrap(), Collective::Bcast) {
        let report = report(&db, &variant.name.to_string());
        let summed: usize = report.others.iter().map(|one| one.cells).sum();
        assert_eq!((report.cells.len(), summed), (1, 17), "{}", variant.name);
    }
}

#[test]
fn cells_without_measurements_are_summed_up_by_reason_and_json_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let db = trained(folder.path());
    let report = report(&db, "node:shm+binomial");
    let text = report.text();
    assert!(
        text.contains("in the other cells of the tuning space:\n"),
        "{text}"
    );
    assert!(
        text.contains("6  needs several nodes, with several ranks on one of them"),
        "{text}"
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["variant"], "node:shm+binomial");
    let others = json["others"].as_array().unwrap();
    let needs = others.iter().find(|one| one["rule"] == "needs").unwrap();
    assert_eq!(
        (&needs["collective"], &needs["cells"]),
        (&"bcast".into(), &6.into())
    );
    assert_eq!(json["cells"][0]["nodes"], serde_json::json!([2, 3]));
    assert!(json["cells"][0]["why"].is_string() && json["cells"][0]["rule"].is_string());
}

#[test]
fn before_any_training_all_cells_are_summed_up_and_an_unknown_name_gets_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create_or_open(folder.path()).unwrap();
    let report = report(&db, "p2p:binomial");
    assert!(report.cells.is_empty());
    assert!(
        report.text().contains("in all cells:\n"),
        "{}",
        report.text()
    );
    let key: DataKey = "openmpi-4.1.4".parse().unwrap();
    let generation = Generation::load(&db, key).unwrap();
    let none = |_: &CellStatistics| false;
    let asked = ("native:binomal", Some(Collective::Bcast));
    let settings = Settings::default();
    let refused = Report::of(&generation, &settings, asked, &[], none)
        .err()
        .unwrap();
    let told = refused.to_string();
    assert!(told.contains("nearest are native:binomial"), "{told}");
    // A ring broadcasts nothing, but gathers.
    let asked = ("native:ring", None);
    let found = Report::of(&generation, &settings, asked, &[], none).unwrap();
    assert!(
        found
            .others
            .iter()
            .all(|one| one.collective != Collective::Bcast)
    );
    assert_eq!(
        Model::initial(&settings, generation.library, "")
            .cells
            .len(),
        generation.cells.len()
    );
}
