//! Checkpoints and restarts of whole runs on ranks in threads.

mod common;

use std::path::Path;

use colltune_amr::checksum::Broken;

use common::{bits, try_run};

const SMALL: &str =
    "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 2 --validate";
const STENCIL: &str =
    "--num_vars 3 --stages_per_ts 3 --object 2 1 .2 .3 .4 .15 .04 .02 .15 .15 .15 0 0 0";
const GAS: &str = "--physics euler --sedov_centre .3 .4 .2";

fn write(folder: &Path, physics: &str, n_ranks: usize) {
    let to = folder.display();
    let line = format!("{SMALL} {physics} --num_tsteps 7 --checkpoint {to} --checkpoint_freq 3");
    try_run(n_ranks, &line).expect("a run");
}

#[test]
fn a_restart_on_any_ranks_ends_like_the_run_that_never_stopped() {
    for physics in [STENCIL, GAS] {
        let whole = try_run(2, &format!("{SMALL} {physics} --num_tsteps 12")).expect("a run");
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), physics, 4);
        for n_ranks in [1, 2, 3, 8] {
            let from = folder.path().display();
            let line = format!("{SMALL} {physics} --num_tsteps 12 --restart {from}");
            let rest = try_run(n_ranks, &line).expect("a run");
            assert_eq!(bits(&whole), bits(&rest), "{n_ranks} ranks, {physics}");
        }
        let files = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(files, 5, "the checkpoint before has been removed");
    }
}

#[test]
fn a_restart_goes_on_measuring_costs_placing_anew_and_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let (checkpoint, telemetry) = (folder.path().join("at"), folder.path().join("rows"));
    for physics in [STENCIL, GAS] {
        let whole = try_run(2, &format!("{SMALL} {physics} --num_tsteps 12")).expect("a run");
        write(&checkpoint, physics, 4);
        let from = checkpoint.display();
        let records = format!("--telemetry {} --telemetry_blocks", telemetry.display());
        for more in [
            "--weigh measured",
            "--weigh measured --placement lpt-swap --balance_when imbalance:0.01",
            "--weigh measured --placement cplx:50 --balance_when every:1",
            "--balance_when mesh-change",
            &records,
            &format!("--weigh measured --balance_when every:2 {records}"),
        ] {
            let line = format!("{SMALL} {physics} --num_tsteps 12 --restart {from} {more}");
            let rest = try_run(3, &line).expect("a run");
            assert_eq!(bits(&whole), bits(&rest), "{more}, {physics}");
        }
        let files = std::fs::read_dir(&telemetry).expect("a folder").count();
        assert_eq!(files, 6, "a file of each table: {files}");
    }
}

#[test]
fn spoilt_and_foreign_checkpoints_end_every_rank_with_an_error_that_names_them() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), GAS, 2);
    let refused = |line: &str, part: &str| {
        let from = folder.path().display();
        let line = format!("{SMALL} {line} --num_tsteps 12 --restart {from}");
        match try_run(3, &line) {
            Err(broken) => assert!(broken.to_string().contains(part), "{broken}"),
            Ok(_) => panic!("{part}: accepted"),
        }
    };
    refused(STENCIL, "another problem");
    let path = folder.path().join("cells.00000006.00001");
    let cells = std::fs::read(&path).expect("cells");
    std::fs::write(&path, &cells[..cells.len() - 8]).expect("written");
    refused(GAS, "truncated");
    let mut other = cells.clone();
    other[100] ^= 1;
    std::fs::write(&path, &other).expect("written");
    refused(GAS, "not what was written");
    std::fs::remove_file(&path).expect("removed");
    refused(GAS, "cells.00000006.00001");
    let index = folder.path().join("checkpoint.json");
    let text = std::fs::read_to_string(&index).expect("an index");
    std::fs::write(&index, text.replace("checkpoint 2", "checkpoint 9")).expect("written");
    refused(GAS, "checkpoint 9");
    std::fs::write(&index, "{\"format\":").expect("written");
    refused(GAS, "checkpoint.json");
}

#[test]
fn vtk_files_have_a_piece_for_each_rank_and_a_series() {
    for physics in [STENCIL, GAS] {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().display();
        let line = format!("{SMALL} {physics} --num_tsteps 4 --vtk {to} --vtk_freq 2");
        try_run(3, &line).expect("a run");
        let names = std::fs::read_dir(folder.path()).expect("a folder");
        let names: Vec<_> = names
            .map(|entry| entry.expect("a name").file_name())
            .collect();
        let series = std::fs::read_to_string(folder.path().join("mesh.pvd")).expect("a series");
        assert_eq!(series.matches("<DataSet").count(), 3, "{series}");
        // Steps 0, 2 and 4: three pieces and an index each.
        assert_eq!(names.len(), 3 * 4 + 1, "{names:?}");
    }
    let line = format!("{SMALL} {GAS} --num_tsteps 1 --vtk /dev/null/none");
    let broken = try_run(2, &line).expect_err("no folder");
    assert!(matches!(broken, Broken::Output { .. }), "{broken}");
    assert!(broken.to_string().contains("/dev/null/none"), "{broken}");
}

/// A checkpoint that is whole but for one value, that of this byte on.
fn spoil(folder: &Path, byte: usize, value: f64) {
    let cells = folder.join("cells.00000006.00001");
    let mut bytes = std::fs::read(&cells).expect("cells");
    bytes[byte..byte + 8].copy_from_slice(&value.to_le_bytes());
    std::fs::write(&cells, &bytes).expect("written");
    let path = folder.join("checkpoint.json");
    let text = std::fs::read_to_string(&path).expect("an index");
    let mut index: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    index["hashes"][1] = twox_hash::XxHash3_64::oneshot(&bytes).into();
    std::fs::write(&path, index.to_string()).expect("written");
}

#[test]
fn a_value_that_is_no_number_ends_every_rank_with_its_variable_and_step() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), STENCIL, 2);
    spoil(folder.path(), 800, f64::NAN);
    let from = folder.path().display();
    // Without checks on the way it is found at the end.
    for (check, step) in [("1", 7), ("0", 12)] {
        let line =
            format!("{SMALL} {STENCIL} --num_tsteps 12 --checksum_freq {check} --restart {from}");
        match try_run(3, &line) {
            Err(broken) => {
                let (text, at) = (broken.to_string(), format!("is not finite at step {step},"));
                assert!(text.contains(&at), "{text}");
            }
            Ok(summary) => panic!("accepted: {summary:?}"),
        }
    }
}

#[test]
fn a_gas_that_is_none_after_the_last_step_ends_every_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), GAS, 2);
    // The first cell's density; no step follows that would look at it.
    spoil(folder.path(), 0, -1.0);
    let from = folder.path().display();
    let broken = try_run(3, &format!("{SMALL} {GAS} --num_tsteps 6 --restart {from}"));
    let text = broken.expect_err("no gas").to_string();
    assert!(
        text.contains("breaks down") && text.contains("density -1e0"),
        "{text}"
    );
}
