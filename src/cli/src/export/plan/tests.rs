//! Which rules stand for which ranks, and a published state to begin with.

use super::*;
use colltune_core::model::Source;
use colltune_core::space::Cell;
use colltune_models::statistics::{Contrast, Interval, VariantStatistics};

/// A published state: cells as (collective, bytes, nodes, ppn, best).
pub type Row = (
    Collective,
    (u64, Option<u64>),
    (u64, Option<u64>),
    (u64, Option<u64>),
    &'static str,
);

const ANY: (u64, Option<u64>) = (1, None);

/// Boundaries of two collectives whose sizes Open MPI measures differently.
pub const BOUNDARIES: [Row; 5] = [
    (
        Collective::Allgather,
        (0, Some(1024)),
        ANY,
        ANY,
        "native:ring",
    ),
    (
        Collective::Allgather,
        (1024, Some(4096)),
        ANY,
        ANY,
        "default",
    ),
    (
        Collective::Allgather,
        (4096, None),
        ANY,
        ANY,
        "native:bruck",
    ),
    (
        Collective::Bcast,
        (0, Some(32769)),
        ANY,
        ANY,
        "native:chain",
    ),
    (
        Collective::Bcast,
        (32769, None),
        ANY,
        ANY,
        "native:chain:segsize=32KiB",
    ),
];

pub fn published(library: &str, rows: &[Row]) -> Published {
    let cells = rows
        .iter()
        .map(|&(collective, bytes, nodes, ppn, best)| CellStatistics {
            source: Source::Measured,
            best: best.to_owned(),
            variants: vec![VariantStatistics {
                name: best.to_owned(),
                replaces_default: best != DEFAULT,
                ..VariantStatistics::default()
            }],
            ..CellStatistics::unknown(Cell {
                collective,
                bytes: bytes.into(),
                nodes: nodes.into(),
                ppn: ppn.into(),
            })
        });
    Published {
        library: library.into(),
        machine: "test".into(),
        generation: 3,
        cells: cells.collect(),
        levers: Default::default(),
    }
}

#[test]
fn every_variant_has_rules_for_every_number_of_ranks() {
    for library in ["openmpi-4.1.4", "mpich-4.0.2"].map(|key| key.parse::<Library>().unwrap()) {
        for variant in catalogue::all(library) {
            for (first, last) in [
                (2, 2),
                (3, 3),
                (513, 520),
                (1 << 20, u64::MAX),
                (u64::MAX, u64::MAX),
            ] {
                let _ = least_bytes(&variant, Ranks { first, last }, &[]);
            }
        }
    }
}

/// The variants of Open MPI that the catalogue says run other collectives inside.
pub fn alone() -> Vec<Variant> {
    let all = catalogue::all("openmpi-4.1.4".parse().unwrap());
    all.into_iter()
        .filter(|v| matches!(v.steering, Steering::OpenMpi { alone: true, .. }))
        .collect()
}

#[test]
fn columns_hold_exactly_the_shapes_of_a_number_of_ranks() {
    let state = published(
        "openmpi-4.1.4",
        &[
            (
                Collective::Bcast,
                (0, None),
                (1, Some(2)),
                (1, None),
                "default",
            ),
            (
                Collective::Bcast,
                (0, None),
                (2, Some(3)),
                (1, None),
                "default",
            ),
            (
                Collective::Bcast,
                (0, None),
                (3, Some(9)),
                (1, Some(2)),
                "default",
            ),
            (
                Collective::Bcast,
                (0, None),
                (3, None),
                (2, None),
                "default",
            ),
            (
                Collective::Bcast,
                (0, None),
                (9, None),
                (1, Some(2)),
                "default",
            ),
        ],
    );
    let columns = columns(&state, Collective::Bcast);
    for ranks in 1..100u64 {
        for ppn in 1..=ranks {
            let nodes = ranks.div_ceil(ppn);
            let inside = |c: &&Column| {
                c.ppn_of(ranks)
                    .is_some_and(|(first, last)| (first..=last).contains(&ppn))
            };
            let holders: Vec<_> = columns.iter().filter(inside).collect();
            assert_eq!(holders.len(), 1, "{ranks} ranks, {ppn} per node");
            assert!(holders[0].nodes.contains(nodes) && holders[0].ppn.contains(ppn));
        }
    }
}

#[test]
fn ranges_of_ranks_have_no_gap_and_end_at_the_limit() {
    for limit in [2, 3, 8, 511, 512, 513, 600, 131_072] {
        let ranges = rank_ranges(limit);
        assert_eq!(ranges[0].first, 2);
        assert_eq!(ranges.last().unwrap().last, limit);
        assert!(
            ranges
                .windows(2)
                .all(|pair| pair[0].last + 1 == pair[1].first)
        );
    }
    assert!(rank_ranges(131_072).len() < 1000);
}

#[test]
fn rules_begin_where_the_needs_of_a_variant_are_met() {
    let library: Library = "openmpi-4.1.4".parse().unwrap();
    let state = published(
        "openmpi-4.1.4",
        &[
            (
                Collective::Bcast,
                (0, Some(4096)),
                (1, None),
                (1, None),
                "native:binomial",
            ),
            (
                Collective::Bcast,
                (4096, None),
                (1, None),
                (1, None),
                "native:pipeline:segsize=4KiB",
            ),
        ],
    );
    let column = &columns(&state, Collective::Bcast)[0];
    let at = |first, last| {
        let rules = rules(column, library, Ranks { first, last }, &[], &mut |_| {});
        rules
            .iter()
            .map(|r| (r.from_bytes, r.variant.as_ref().map(|v| v.name.to_string())))
            .collect::<Vec<_>>()
    };
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(
        at(3, 3),
        [
            (0, named("native:binomial")),
            (4096, None),
            (4097, named("native:pipeline:segsize=4KiB"))
        ]
    );
    assert_eq!(at(2, 2), [(0, None)]);
}

#[test]
fn where_an_algorithm_of_our_own_wins_the_best_native_one_that_replaces_the_default_stands() {
    let library: Library = "openmpi-4.1.4".parse().unwrap();
    let any = (1, None);
    let own = "p2p:chain:segsize=16KiB";
    let mut state = published(
        "openmpi-4.1.4",
        &[(Collective::Bcast, (4096, None), any, any, own)],
    );
    // Times whose intervals lie apart are no proof of their own: the training's rule is the only one.
    let known = |name: &str, gain: f64, replaces_default: bool| VariantStatistics {
        name: name.to_owned(),
        samples: 50,
        time_ns: Interval {
            median: Some(100.0 / gain),
            lo: Some(99.0 / gain),
            hi: Some(101.0 / gain),
        },
        contrast: Some(Contrast {
            gain,
            lo: 0.99 * gain,
            hi: 1.01 * gain,
        }),
        replaces_default,
        ..VariantStatistics::default()
    };
    let mut stands = |variants: Vec<VariantStatistics>| {
        state.cells[0].variants = variants;
        let column = &columns(&state, Collective::Bcast)[0];
        let mut notes = Vec::new();
        let eight = Ranks { first: 8, last: 8 };
        let rules = rules(column, library, eight, &[], &mut |note| notes.push(note));
        assert_eq!(notes.len(), 1);
        assert_eq!(notes[0].winner, own);
        let last = rules.last().and_then(|rule| rule.variant.as_ref());
        let name = last.map_or(DEFAULT.to_owned(), |variant| variant.name.to_string());
        assert_eq!(notes[0].instead, name);
        name
    };
    let default = known("default", 1.0, false);
    let (own, slow) = (known(own, 9.0, true), known("native:binomial", 1.1, true));
    let (fast, doubtful) = (
        known("native:pipeline", 2.0, true),
        known("native:chain", 3.0, false),
    );
    let all = vec![default.clone(), own.clone(), slow, fast, doubtful.clone()];
    assert_eq!(stands(all), "native:pipeline");
    // What is sure enough for a cell's best is not for what stands in for another one, and the training said so.
    assert_eq!(stands(vec![default, own, doubtful]), DEFAULT);
}

#[test]
fn a_cell_of_the_default_alone_is_exported_as_nothing() {
    let library: Library = "openmpi-4.1.4".parse().unwrap();
    let state = published(
        "openmpi-4.1.4",
        &[(Collective::Bcast, (0, None), ANY, ANY, DEFAULT)],
    );
    let column = &columns(&state, Collective::Bcast)[0];
    assert!(!column.departs_from_default());
    let eight = Ranks { first: 8, last: 8 };
    let mut notes = Vec::new();
    let rules = rules(column, library, eight, &[], &mut |note| notes.push(note));
    let default = Rule {
        from_bytes: 0,
        variant: None,
    };
    assert_eq!((rules, notes), (vec![default], Vec::new()));
}

#[test]
fn what_no_training_says_may_replace_the_default_never_stands_in_a_table() {
    let library: Library = "openmpi-4.1.4".parse().unwrap();
    let any = (1, None);
    let measured = published(
        "openmpi-4.1.4",
        &[(Collective::Bcast, (4096, None), any, any, "native:pipeline")],
    );
    let eight = Ranks { first: 8, last: 8 };
    let departs = |state: &Published| {
        let column = &columns(state, Collective::Bcast)[0];
        let rules = rules(column, library, eight, &[], &mut |_| {});
        rules.iter().any(|rule| rule.variant.is_some())
    };
    assert!(departs(&measured));
    // That a prediction may replace it the learner as published says alone.
    for (source, replaces, stands) in [
        (Source::Measured, false, false),
        (Source::Predicted, true, true),
        (Source::Predicted, false, false),
        (Source::Prior, true, false),
    ] {
        let mut other = measured.clone();
        other.cells[0].source = source;
        other.cells[0].variants[0].replaces_default = replaces;
        assert_eq!(departs(&other), stands, "{source:?} {replaces}");
    }
}
