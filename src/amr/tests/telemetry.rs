//! Telemetry of whole runs on ranks in threads, read back from its files.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use colltune_amr::checksum::Broken;
use colltune_amr::ranks::threads;
use colltune_amr::telemetry::Phase;
use common::{open, rows, try_run};
use parquet::file::reader::FileReader as _;
use parquet::record::{Field, RowAccessor as _};

const SPHERE: &str = "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 2 --num_vars 3 \
    --stages_per_ts 3 --object 2 1 .2 .3 .4 .15 .04 .02 .15 .15 .15 0 0 0";
const GAS: &str = "--physics euler --sedov_centre .3 .4 .2 --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 \
    --num_refine 2 --refine_freq 2";

fn n_rows(folder: &Path, name: &str) -> i64 {
    open(folder, name).metadata().file_metadata().num_rows()
}

fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name());
    let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Messages and bytes by kind in all files of messages.
fn sent(folder: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for name in names(folder).iter().filter(|n| n.starts_with("messages")) {
        for row in rows(folder, name) {
            let sum = sums
                .entry(row.get_string(2).expect("a kind").clone())
                .or_default();
            sum.0 += row.get_ulong(3).expect("messages");
            sum.1 += row.get_ulong(4).expect("bytes");
        }
    }
    sums
}

/// Columns of whole numbers by name, row by row.
fn numbers(folder: &Path, name: &str, columns: &[&str]) -> Vec<Vec<i64>> {
    let rows = rows(folder, name).map(|row| {
        let of = |column: &&str| {
            let (_, field) = row
                .get_column_iter()
                .find(|(name, _)| name == column)
                .expect("a column");
            match field {
                Field::ULong(value) => *value as i64,
                Field::UInt(value) => i64::from(*value),
                Field::UByte(value) => i64::from(*value),
                Field::Int(value) => i64::from(*value),
                other => panic!("{column}: {other}"),
            }
        };
        columns.iter().map(of).collect()
    });
    rows.collect()
}

/// Runs with telemetry in a new folder.
fn recorded(n_ranks: usize, line: &str) -> (tempfile::TempDir, colltune_amr::report::Summary) {
    let folder = tempfile::tempdir().expect("a folder");
    let line = format!("{line} --telemetry {}", folder.path().display());
    let summary = try_run(n_ranks, &line).expect("a run");
    (folder, summary)
}

#[test]
fn each_group_of_ranks_has_a_file_with_a_row_for_each_phase_step_and_rank() {
    let (folder, _) = recorded(3, &format!("{GAS} --num_tsteps 70 --telemetry_group 2"));
    let tables = ["messages", "partners", "phases", "ranks", "windows"];
    let expected = tables.map(|table| [0, 1].map(|group| format!("{table}.{group:04}.parquet")));
    let expected = expected.concat();
    assert_eq!(names(folder.path()), expected);
    let phases = Phase::ALL.len() as i64;
    assert_eq!(
        n_rows(folder.path(), "phases.0000.parquet"),
        70 * 2 * phases
    );
    assert_eq!(n_rows(folder.path(), "phases.0001.parquet"), 70 * phases);
    for name in &expected {
        let groups = open(folder.path(), name).metadata().num_row_groups();
        assert_eq!(groups, 2, "{name}: one for every 64 steps");
    }
    for name in &expected {
        let first = if name.starts_with("partners") {
            "first_step"
        } else {
            "step"
        };
        let keys = numbers(folder.path(), name, &[first, "rank"]);
        assert!(keys.is_sorted(), "{name}");
    }
}

#[test]
fn the_first_rank_alone_takes_what_its_group_sends_one_rank_after_another() {
    let taken = threads::run(5, |ranks| {
        let own: Vec<u8> = (0..3 * ranks.rank() as u8).collect();
        let mut taken = Vec::new();
        ranks.gather_bytes(&own, &mut |bytes| taken.push(bytes.to_vec()));
        taken
    });
    let all: Vec<Vec<u8>> = (0..5).map(|rank| (0..3 * rank).collect()).collect();
    assert_eq!(taken[0], all);
    assert!(taken[1..].iter().all(Vec::is_empty), "{taken:?}");
}

#[test]
fn measured_costs_are_told_to_all_only_when_blocks_may_be_placed_anew() {
    // Ranks tell each other no costs but in allgathers, and a mesh that stands still has no others.
    for (when, n_told) in [
        ("never", 0),
        ("mesh-change", 0),
        ("every:5", 2),
        ("imbalance:1e9", 0),
    ] {
        let line =
            format!("{GAS} --refine_freq 0 --num_tsteps 10 --weigh measured --balance_when {when}");
        let (folder, _) = recorded(3, &line);
        let told = sent(folder.path()).get("metadata").map_or(0, |sent| sent.0);
        assert_eq!(told, 3 * n_told, "{when}");
    }
}

#[test]
fn every_block_of_every_step_has_a_row_on_request() {
    for line in [SPHERE, GAS] {
        let (folder, summary) = recorded(3, &format!("{line} --num_tsteps 9 --telemetry_blocks"));
        let expected = summary.blocks_per_step.avg * summary.steps as f64;
        assert_eq!(
            n_rows(folder.path(), "blocks.0000.parquet") as f64,
            expected,
            "{line}"
        );
        for row in rows(folder.path(), "blocks.0000.parquet") {
            assert!(row.get_ulong(4).expect("nanoseconds") > 0, "{line}: {row}");
        }
    }
}

#[test]
fn a_window_lies_between_two_collectives_and_holds_its_parts_and_no_rank_leaves_before_all_have_come()
 {
    for line in [SPHERE, GAS] {
        let (folder, _) = recorded(3, &format!("{line} --num_tsteps 9"));
        let columns = [
            "step",
            "window",
            "rank",
            "begin_ns",
            "arrive_ns",
            "leave_ns",
        ];
        let rows = numbers(folder.path(), "windows.0000.parquet", &columns);
        let mut ends: BTreeMap<(i64, i64), Vec<(i64, i64)>> = BTreeMap::new();
        let mut last: BTreeMap<i64, i64> = BTreeMap::new();
        for row in &rows {
            let [step, window, rank, begin, arrive, leave] = row[..] else {
                unreachable!()
            };
            assert!(begin <= arrive && arrive <= leave, "{line}: {row:?}");
            assert_eq!(
                last.insert(rank, leave).unwrap_or(begin),
                begin,
                "{line}: no time is left out"
            );
            ends.entry((step, window))
                .or_default()
                .push((arrive, leave));
        }
        for (window, ends) in ends {
            assert_eq!(ends.len(), 3, "{line}: {window:?} has a row for each rank");
            let last_arrival = ends.iter().map(|end| end.0).max();
            assert!(
                ends.iter().all(|end| Some(end.1) >= last_arrival),
                "{line}: {window:?}: {ends:?}"
            );
        }
        let parts = [
            "compute_ns",
            "pack_ns",
            "copy_ns",
            "wait_ns",
            "unpack_ns",
            "sum_ns",
        ];
        let parts = numbers(folder.path(), "windows.0000.parquet", &parts);
        for (row, parts) in rows.iter().zip(parts) {
            assert!(
                parts.iter().sum::<i64>() <= row[4] - row[3],
                "{line}: {row:?} {parts:?}"
            );
        }
    }
}

#[test]
fn every_round_says_who_was_waited_for_and_windows_count_their_rounds() {
    for line in [SPHERE, GAS] {
        let (folder, _) = recorded(3, &format!("{line} --num_tsteps 9 --telemetry_rounds"));
        let key = ["step", "window", "rank"];
        let windows = numbers(
            folder.path(),
            "windows.0000.parquet",
            &[&key[..], &["rounds"]].concat(),
        );
        let times = [
            "begin_ns",
            "posted_ns",
            "served_ns",
            "last_ns",
            "done_ns",
            "last_from",
            "messages",
            "bytes",
        ];
        let rounds = numbers(
            folder.path(),
            "rounds.0000.parquet",
            &[&key[..], &times].concat(),
        );
        assert!(!rounds.is_empty());
        let mut n_rounds: BTreeMap<&[i64], i64> = BTreeMap::new();
        for round in &rounds {
            *n_rounds.entry(&round[..3]).or_default() += 1;
            assert!(round[3..8].is_sorted(), "{line}: {round:?}");
            let [from, messages, bytes] = round[8..] else {
                unreachable!()
            };
            assert!(from != round[2] && from < 3, "{line}: {round:?}");
            assert_eq!(messages > 0, bytes > 0, "{line}: {round:?}");
            assert!(messages == 0 || from >= 0, "{line}: {round:?}");
        }
        for window in &windows {
            assert_eq!(
                n_rounds.get(&window[..3]).copied().unwrap_or(0),
                window[3],
                "{line}: {window:?}"
            );
        }
    }
}

#[test]
fn what_partners_were_given_adds_up_to_what_was_sent() {
    for line in [SPHERE, GAS] {
        let (folder, _) = recorded(3, &format!("{line} --num_tsteps 9"));
        let sent = sent(folder.path());
        for (kind, parts) in [
            (
                "ghost",
                &[
                    "ghost_same",
                    "ghost_to_finer",
                    "ghost_to_coarser",
                    "ghost_mixed",
                ][..],
            ),
            ("flux", &["flux"]),
            ("block", &["block"]),
        ] {
            let sums = parts.iter().filter_map(|part| sent.get(*part));
            let expected = sums.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
            let mut given = (0, 0);
            let mut ends = BTreeMap::new();
            for row in rows(folder.path(), "partners.0000.parquet") {
                let (first, last) = (
                    row.get_ulong(0).expect("a step"),
                    row.get_ulong(1).expect("a step"),
                );
                let rank = row.get_uint(2).expect("a rank");
                assert!(first <= last && last <= 9, "{line}: {row}");
                ends.insert((rank, last), first);
                if row.get_string(4).expect("a kind") == kind {
                    given = (
                        given.0 + row.get_ulong(5).expect("messages"),
                        given.1 + row.get_ulong(6).expect("bytes"),
                    );
                }
            }
            assert_eq!(given, expected, "{line}: {kind}");
            let mut before: BTreeMap<u32, u64> = BTreeMap::new();
            for ((rank, last), first) in ends {
                assert!(
                    before.insert(rank, last).unwrap_or(0) < first,
                    "{line}: spans of steps do not meet"
                );
            }
        }
    }
}

#[test]
fn phases_of_a_step_are_all_of_its_time() {
    let (folder, _) = recorded(2, &format!("{GAS} --num_tsteps 20"));
    let times = numbers(folder.path(), "phases.0000.parquet", &["rank", "time_ns"]);
    let of_rank_0: i64 = times
        .iter()
        .filter(|row| row[0] == 0)
        .map(|row| row[1])
        .sum();
    let windows = numbers(
        folder.path(),
        "windows.0000.parquet",
        &["rank", "begin_ns", "leave_ns"],
    );
    let mut of_rank_0_windows = windows.iter().filter(|row| row[0] == 0);
    let first = of_rank_0_windows.next().expect("a window")[1];
    let last = of_rank_0_windows.next_back().expect("a window")[2];
    assert!(of_rank_0 >= last - first, "{of_rank_0} {}", last - first);
}

#[test]
fn blocks_near_the_shock_are_a_class_of_their_own_and_say_their_iterations() {
    let (folder, _) = recorded(
        2,
        &format!("{GAS} --num_tsteps 9 --cost shock --telemetry_blocks"),
    );
    let mut seen = BTreeMap::new();
    for row in rows(folder.path(), "blocks.0000.parquet") {
        let class = row.get_string(5).expect("a class").clone();
        let iterations = row.get_uint(6).expect("iterations");
        assert_eq!(class == "near_shock", iterations > 0, "{row}");
        *seen.entry(class).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
}

#[test]
fn a_rank_is_made_slower_in_the_steps_that_are_asked_for_and_its_result_stays() {
    let (slow, summary) = recorded(
        3,
        &format!("{GAS} --num_tsteps 12 --telemetry_blocks --slow 1:8:7-12"),
    );
    let (_, as_ever) = recorded(3, &format!("{GAS} --num_tsteps 12"));
    assert_eq!(summary.mesh_hash, as_ever.mesh_hash);
    let mut times: BTreeMap<(i64, bool), Vec<i64>> = BTreeMap::new();
    for row in numbers(
        slow.path(),
        "blocks.0000.parquet",
        &["rank", "step", "compute_ns"],
    ) {
        times.entry((row[0], row[1] >= 7)).or_default().push(row[2]);
    }
    let mut median = |rank, late| {
        let times = times.get_mut(&(rank, late)).expect("blocks");
        times.sort_unstable();
        times[times.len() / 2]
    };
    assert!(median(1, true) > 3 * median(1, false));
    assert!(median(1, true) > 3 * median(2, true));
}

#[test]
fn what_crosses_ranks_and_what_is_copied_within_adds_up_to_the_same_for_any_number_of_ranks() {
    let ghosts = |line: &str, n_ranks: usize| {
        let (folder, _) = recorded(n_ranks, &format!("{line} --num_tsteps 6"));
        let sent = sent(folder.path());
        let bytes = |kind: &str| sent.get(kind).map_or(0, |&(_, bytes)| bytes);
        let crossing = bytes("ghost_same") + bytes("ghost_to_finer") + bytes("ghost_to_coarser");
        (crossing, bytes("local"), sent)
    };
    for line in [SPHERE, GAS] {
        let (crossing, all, sent) = ghosts(line, 1);
        assert_eq!(crossing, 0);
        assert!(sent["reduction"].0 > 0, "{sent:?}");
        for n_ranks in [2, 3, 5] {
            let (crossing, local, sent) = ghosts(line, n_ranks);
            assert!(crossing > 0 && local > 0, "{sent:?}");
            assert_eq!(crossing + local, all, "{n_ranks} ranks: {sent:?}");
            assert!(sent["block"].0 > 0, "{sent:?}");
        }
    }
}

#[test]
fn faces_that_are_sent_by_themselves_are_more_messages_of_one_kind_each_and_the_same_bytes() {
    let all = |line: &str| {
        let (folder, _) = recorded(3, &format!("{SPHERE} --num_tsteps 4 {line}"));
        sent(folder.path())
    };
    let (bundled, by_face) = (all(""), all("--send_faces"));
    assert!(
        bundled["ghost_mixed"].0 > 0 && bundled["ghost_mixed"].1 == 0,
        "{bundled:?}"
    );
    assert!(!by_face.contains_key("ghost_mixed"), "{by_face:?}");
    let ghosts = |sent: &BTreeMap<String, (u64, u64)>| {
        let of_ghosts = sent.iter().filter(|(kind, _)| kind.starts_with("ghost"));
        of_ghosts.fold((0, 0), |sum, (_, n)| (sum.0 + n.0, sum.1 + n.1))
    };
    assert_eq!(ghosts(&bundled).1, ghosts(&by_face).1);
    assert!(ghosts(&bundled).0 < ghosts(&by_face).0);
}

#[test]
fn a_folder_that_cannot_be_made_ends_every_rank() {
    let broken = try_run(
        2,
        &format!("{GAS} --num_tsteps 1 --telemetry /dev/null/none"),
    );
    assert!(matches!(broken, Err(Broken::Output { .. })), "{broken:?}");
}

#[test]
fn stretches_of_phases_add_up_to_their_times_and_follow_each_other() {
    for line in [SPHERE, GAS] {
        let more = "--num_tsteps 9 --stencil 27 --telemetry_spans";
        let more = if line == GAS {
            "--num_tsteps 9 --telemetry_spans"
        } else {
            more
        };
        let (folder, _) = recorded(3, &format!("{line} {more}"));
        let sums = |name: &str, column: usize| {
            let mut sums: BTreeMap<(u64, u32, String), u64> = BTreeMap::new();
            for row in rows(folder.path(), name) {
                let phase = row.get_string(2).expect("a phase").clone();
                let key = (
                    row.get_ulong(0).expect("a step"),
                    row.get_uint(1).expect("a rank"),
                    phase,
                );
                *sums.entry(key).or_default() += row.get_ulong(column).expect("nanoseconds");
            }
            sums
        };
        let mut phases = sums("phases.0000.parquet", 3);
        phases.retain(|(step, _, phase), time| phase != "other" && *time > 0 && *step < 9);
        let mut spans = sums("spans.0000.parquet", 4);
        // What telemetry does at the end belongs to no step.
        spans.retain(|(step, _, _), time| *step < 9 && *time > 0);
        assert_eq!(spans, phases, "{line}");
        let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
        for row in rows(folder.path(), "spans.0000.parquet") {
            let begin = row.get_ulong(3).expect("nanoseconds");
            let end = begin + row.get_ulong(4).expect("nanoseconds");
            let before = ends.insert(row.get_uint(1).expect("a rank"), end);
            assert!(before.is_none_or(|before| before <= begin), "{line}");
        }
    }
}
