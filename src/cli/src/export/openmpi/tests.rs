//! The rules file, read as the library documents it.

use super::*;
use crate::export::plan::tests::{BOUNDARIES, Row, published};

const LIBRARY: &str = "openmpi-4.1.4";

/// MSGSIZE, then algorithm, fan-out and segment size.
type Lines = Vec<(u64, (u64, u64, u64))>;

/// Reads a rules file and looks a call up as the library documents it, independent of the writer.
fn lookup(text: &str, collective: u32, ranks: u64, measure: u64) -> (u64, u64, u64) {
    let plain: Vec<&str> = text
        .lines()
        .map(|line| line.split('#').next().unwrap())
        .collect();
    let mut numbers = plain
        .iter()
        .flat_map(|line| line.split_whitespace())
        .map(|word| word.parse::<u64>().unwrap());
    let mut next = || numbers.next().unwrap();
    let mut found = (0, 0, 0);
    for _ in 0..next() {
        let id = next();
        let mut best: Option<Lines> = None;
        let mut passed = false;
        for _ in 0..next() {
            let (size, count) = (next(), next());
            let lines: Lines = (0..count)
                .map(|_| (next(), (next(), next(), next())))
                .collect();
            assert_eq!(lines[0].0, 0, "the first line of each block is for 0 bytes");
            assert!(lines.windows(2).all(|pair| pair[0].0 < pair[1].0));
            passed |= size > ranks;
            if best.is_none() || !passed {
                best = Some(lines);
            }
        }
        if id == u64::from(collective) {
            found = best
                .unwrap()
                .iter()
                .rev()
                .find(|(size, _)| *size <= measure)
                .unwrap()
                .1;
        }
    }
    assert_eq!(numbers.next(), None);
    found
}

fn table(rows: &[Row], shape: Option<JobShape>) -> (String, Notes) {
    let mut notes = Notes::default();
    let text = rules_file(
        &published(LIBRARY, rows),
        LIBRARY.parse().unwrap(),
        shape,
        &mut notes,
    );
    (text, notes)
}

#[test]
fn every_boundary_is_kept_at_both_sides_in_the_librarys_own_measure() {
    let (text, _) = table(&BOUNDARIES, None);
    for ranks in [2, 3, 8, 100, 512] {
        let at = |bytes: u64| lookup(&text, 0, ranks, bytes * ranks).0;
        assert_eq!(
            [at(0), at(1023), at(1024), at(4095), at(4096), at(1 << 30)],
            [4, 4, 0, 0, 2, 2],
            "{ranks}"
        );
    }
    for ranks in [3, 8, 100, 513, 1 << 20] {
        let at = |bytes: u64| lookup(&text, 7, ranks, bytes);
        assert_eq!(at(32768), (2, 4, 0));
        assert_eq!(at(32769), (2, 4, 32768));
    }
    assert_eq!(
        lookup(&text, 7, 2, 0),
        (0, 0, 0),
        "chain needs more than two ranks"
    );
    assert_eq!(lookup(&text, 2, 8, 0), (0, 0, 0), "no rule for allreduce");
    assert_eq!(lookup(&text, 0, 1, 0), (0, 0, 0));
}

#[test]
fn variants_stand_only_for_ranks_that_meet_their_needs() {
    let any = (1, None);
    let (text, notes) = table(
        &[
            (
                Collective::Allgather,
                (0, Some(64)),
                any,
                any,
                "native:two_proc",
            ),
            (
                Collective::Allgather,
                (64, Some(128)),
                any,
                any,
                "native:recursive_doubling",
            ),
            (
                Collective::Allgather,
                (128, None),
                any,
                any,
                "native:neighbor",
            ),
            (
                Collective::Allreduce,
                (0, None),
                any,
                any,
                "native:segmented_ring:segsize=64KiB",
            ),
        ],
        None,
    );
    for ranks in 2..40u64 {
        let at = |bytes: u64| lookup(&text, 0, ranks, bytes * ranks).0;
        assert_eq!(at(0), if ranks == 2 { 6 } else { 0 });
        assert_eq!(at(64), if ranks.is_power_of_two() { 3 } else { 0 });
        assert_eq!(at(128), if ranks.is_multiple_of(2) { 5 } else { 0 });
        assert_eq!(lookup(&text, 2, ranks, 65536 * ranks - 1), (0, 0, 0));
        assert_eq!(lookup(&text, 2, ranks, 65536 * ranks), (5, 0, 65536));
    }
    assert!(notes.warnings.iter().any(|text| text.contains("7765")));
    assert!(
        notes
            .replaced
            .iter()
            .any(|note| note.reason.contains("power-of-two"))
    );
}

#[test]
fn a_jobs_shape_chooses_the_column_and_bounds_the_table() {
    let rows = [
        (
            Collective::Bcast,
            (0, None),
            (1, Some(2)),
            (1, None),
            "native:knomial",
        ),
        (
            Collective::Bcast,
            (0, None),
            (2, None),
            (1, None),
            "native:pipeline",
        ),
    ];
    let (text, notes) = table(&rows, Some(JobShape { nodes: 4, ppn: 2 }));
    assert_eq!(lookup(&text, 7, 2, 8).0, 0);
    assert_eq!(
        [3, 8, 9].map(|ranks| lookup(&text, 7, ranks, 8).0),
        [3, 3, 0]
    );
    assert!(!notes.shapes.is_empty());
    let (text, notes) = table(&rows, None);
    assert_eq!(
        [3, 8, 512].map(|ranks| lookup(&text, 7, ranks, 8).0),
        [7, 7, 7],
        "fewest nodes"
    );
    assert_eq!(notes.shapes[0].instead_of[0].nodes, (2, None));
}

#[test]
fn algorithms_that_run_a_ruled_collective_inside_keep_the_default() {
    let any = (1, None);
    let alone = (
        Collective::Allreduce,
        (0, None),
        any,
        any,
        "native:nonoverlapping",
    );
    let inner = (Collective::Bcast, (4096, None), any, any, "native:binomial");
    let (text, _) = table(&[alone], None);
    assert_eq!(lookup(&text, 2, 8, 64).0, 2);
    let (text, notes) = table(&[alone, inner], None);
    assert_eq!(lookup(&text, 2, 8, 64).0, 0);
    assert!(
        notes
            .replaced
            .iter()
            .any(|note| note.reason.contains("runs bcast inside"))
    );
    for row in super::super::plan::tests::alone() {
        assert!(!inside(&row).is_empty(), "{}", row.name);
    }
}

#[test]
fn a_table_without_winners_is_readable_and_says_nothing() {
    let (text, notes) = table(
        &[(
            Collective::Bcast,
            (0, None),
            (1, None),
            (1, None),
            "default",
        )],
        None,
    );
    assert_eq!(lookup(&text, 7, 8, 100), (0, 0, 0));
    assert!(notes.exported.is_empty());
}

#[test]
fn the_file_stays_as_its_golden_copy() {
    let (text, _) = table(
        &[
            (
                Collective::Allreduce,
                (0, Some(4096)),
                (1, None),
                (1, Some(9)),
                "default",
            ),
            (
                Collective::Allreduce,
                (4096, None),
                (1, None),
                (1, Some(9)),
                "native:ring",
            ),
            (
                Collective::Allreduce,
                (0, None),
                (1, None),
                (9, None),
                "default",
            ),
            (
                Collective::Alltoall,
                (0, Some(512)),
                (1, None),
                (1, None),
                "native:modified_bruck",
            ),
            (
                Collective::Alltoall,
                (512, None),
                (1, None),
                (1, None),
                "default",
            ),
        ],
        Some(JobShape { nodes: 1, ppn: 3 }),
    );
    crate::golden::check("export/openmpi-rules.conf", &text);
}
