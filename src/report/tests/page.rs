//! The page of databases too large to be made by runs: its length, its limits, and what it names.

use colltune_core::collective::Collective;
use colltune_core::model::Source;
use colltune_core::space::{Cell, Range};
use colltune_db::test_support::Run;
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
    let each = Question {
        holdout: Some("each".parse().unwrap()),
        ..Question::default()
    };
    let held_out = read(&db, &each).unwrap().unseen;
    assert_eq!(held_out.left_out.len(), 3);
    assert!(held_out.right <= held_out.cells && held_out.cells > 0);
}
