//! The page of databases too large to be made by runs: its length, its limits, and what it names.

use colltune_core::collective::Collective;
use colltune_core::model::Source;
use colltune_core::space::{Cell, Range};
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{Database, TrainOptions, train};
use colltune_models::statistics::{CellStatistics, Interval, VariantStatistics};
use colltune_report::{Question, page, read};

fn database(folder: &std::path::Path) -> Database {
    std::fs::write(folder.join("colltune.toml"), "machine = \"testing\"\n").unwrap();
    Database::create_or_open(folder).unwrap()
}

fn cell(place: u64) -> CellStatistics {
    let range = |lo| Range {
        lo,
        hi: Some(lo + 1),
    };
    let variant = VariantStatistics {
        name: "native:<script>alert('ring')</script>".to_owned(),
        samples: place,
        probability: 0.5,
        time_ns: Interval {
            median: Some(1000.0),
            lo: Some(900.0),
            hi: Some(1100.0),
        },
        reason: "a\"b".to_owned(),
        ..VariantStatistics::default()
    };
    CellStatistics {
        source: Source::Measured,
        best: variant.name.clone(),
        gain: 1.0 + (place % 30) as f64 / 10.0,
        time_share: 1.0 / (1.0 + place as f64),
        variants: vec![variant],
        ..CellStatistics::unknown(Cell {
            collective: Collective::ALL[place as usize % Collective::ALL.len()],
            bytes: range(1 << (place / 17 % 40)),
            nodes: range(place / 680 % 40),
            ppn: range(place / 27_200),
        })
    }
}

#[test]
fn a_page_of_20_000_cells_is_short_and_names_are_words() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    Run {
        calls: 400,
        ..Run::new("job", 1)
    }
    .write(&db.incoming())
    .unwrap();
    train(&db, TrainOptions::default(), &|_| {}).unwrap();
    let mut report = read(&db, &Question::default()).unwrap();
    // As many as are ever shown, however many there are.
    report.cells.shown = (0..20_000).map(cell).collect();
    let page = page::html(&report);
    assert!(page.len() <= page::BYTES_MAX, "{}", page.len());
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    assert!(page.contains("known cells with the least of the time are not shown"));
    // Those with the most of the time come first.
    assert!(page.contains(" predicted from others"));
}

#[test]
fn one_run_and_one_training_have_a_page_of_numbers_alone() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let run = Run {
        calls: 40,
        ..Run::new("job", 1)
    };
    run.write(&db.incoming()).unwrap();
    train(&db, TrainOptions::default(), &|_| {}).unwrap();
    let report = read(&db, &Question::default()).unwrap();
    assert_eq!(report.histories.generations.len(), 2);
    assert!(report.whole_runs.panels.is_empty());
    let page = page::html(&report);
    for number in ["NaN", ">inf", " inf ", "\u{2212}0 ", "\u{2212}0\u{a0}"] {
        assert!(!page.contains(number), "{number}");
    }
    assert!(page.contains("There is nothing to compare yet"));
}

#[test]
fn a_reader_gets_the_largest_cells_and_the_number_of_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    for number in 0..4 {
        let run = Run {
            nodes: 1 << (number % 3),
            calls: 1500,
            ..Run::new(&format!("job{number}"), number)
        };
        run.write(&db.incoming()).unwrap();
        train(&db, TrainOptions::default(), &|_| {}).unwrap();
    }
    let report = read(&db, &Question::default()).unwrap();
    assert_eq!(report.head.generation, 4);
    assert_eq!(report.histories.generations.len(), 5);
    assert!(report.cells.shown.len() > 15);
    let shares = report.cells.shown.iter().map(|one| one.time_share);
    assert!(shares.is_sorted_by(|a, b| a >= b));
    let of = |source| {
        report
            .cells
            .shown
            .iter()
            .filter(move |one| one.source == source)
    };
    assert_eq!(
        of(Source::Predicted).count() as u64,
        report.head.cells_predicted
    );
    assert!(of(Source::Measured).count() > 5 && of(Source::Predicted).count() > 5);
    let page = page::html(&report);
    assert!(page.contains("may be the fastest") && page.contains("class=\"cube predicted\""));
    // Nodes 2 were predicted from 1, and 4 from both.
    assert!(report.unseen.cells > 10, "{}", report.unseen.cells);
    assert!(!report.unseen.panels.is_empty());
    for panel in &report.unseen.panels {
        assert!(
            panel
                .lines
                .iter()
                .all(|line| line.percentiles_ns.is_sorted())
        );
    }
    let shape = report.unseen.panels.first().unwrap();
    let one = Question {
        holdout: Some(format!("{}x{}", shape.nodes, shape.ppn).parse().unwrap()),
        ..Question::default()
    };
    let held_out = read(&db, &one).unwrap().unseen;
    assert!(held_out.right <= held_out.cells && held_out.cells > 0);
}

#[test]
fn what_is_known_of_levers_stands_on_the_page_and_in_its_json() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(folder.path());
    let file = folder.path().join("levers.json");
    let known = format!(
        r#"{{"schema":2,"levers":[{{"program":"app","library":"{LIBRARY}","lever":"placement","class":3,"nodes":4,"ppn":2,
        "ranks":8,"best":"lpt","epochs":90,"is_settled":true,"arms":[
        {{"name":"<b>first</b>","probability":0.25,"gain":[1.0,1.0,1.0]}},
        {{"name":"lpt","probability":0.75,"gain":[1.2,1.1,1.3]}}]}}]}}"#
    );
    let levers = serde_json::from_str::<serde_json::Value>(&known).unwrap()["levers"].take();
    let told = || {
        let report = read(&db, &Question::default()).unwrap();
        let json = serde_json::to_value(&report).unwrap();
        let page = page::html(&report);
        let is_there = [" id=\"levers\"", "href=\"#levers\"", "lpt</text>"];
        (is_there.map(|part| page.contains(part)), page, json)
    };
    // Before and after the first training.
    for is_trained in [false, true] {
        if is_trained {
            let run = Run {
                calls: 40,
                ..Run::new("job", 1)
            };
            run.write(&db.incoming()).unwrap();
            train(&db, TrainOptions::default(), &|_| {}).unwrap();
        }
        let (is_there, _, json) = told();
        assert_eq!(
            (is_there, &json["levers"]),
            ([false; 3], &serde_json::json!([]))
        );
        std::fs::write(&file, &known).unwrap();
        let (is_there, page, json) = told();
        assert_eq!(is_there, [true; 3], "{page}");
        assert_eq!(json["levers"], levers);
        assert!(!page.contains("<b>first") && page.contains("&lt;b&gt;first"));
        std::fs::write(&file, "{").unwrap();
        let (is_there, page, _) = told();
        assert!(is_there == [false; 3] && page.contains("What is missing here"));
        std::fs::remove_file(&file).unwrap();
    }
}
