//! Telemetry of whole runs on ranks in threads, read back from its files.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use colltune_amr::checksum::Broken;
use common::try_run;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;

const SPHERE: &str = "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 2 --num_vars 3 \
    --stages_per_ts 3 --object 2 1 .2 .3 .4 .15 .04 .02 .15 .15 .15 0 0 0";
const GAS: &str = "--physics euler --sedov_centre .3 .4 .2 --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 \
    --num_refine 2 --refine_freq 2";

fn open(folder: &Path, name: &str) -> SerializedFileReader<std::fs::File> {
    let file = std::fs::File::open(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    SerializedFileReader::new(file).expect("parquet")
}

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
        for row in open(folder, name).get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let sum = sums
                .entry(row.get_string(2).expect("a kind").clone())
                .or_default();
            sum.0 += row.get_ulong(3).expect("messages");
            sum.1 += row.get_ulong(4).expect("bytes");
        }
    }
    sums
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
    let expected = [
        "messages.0000.parquet",
        "messages.0001.parquet",
        "phases.0000.parquet",
        "phases.0001.parquet",
    ];
    assert_eq!(names(folder.path()), expected);
    assert_eq!(n_rows(folder.path(), expected[2]), 70 * 2 * 9);
    assert_eq!(n_rows(folder.path(), expected[3]), 70 * 9);
    assert_eq!(
        open(folder.path(), expected[2]).metadata().num_row_groups(),
        2
    );
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
        for row in open(folder.path(), "blocks.0000.parquet")
            .get_row_iter(None)
            .expect("rows")
        {
            let row = row.expect("a row");
            assert!(row.get_ulong(4).expect("nanoseconds") > 0, "{line}: {row}");
        }
    }
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
