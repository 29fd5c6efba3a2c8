//! What the app knows of its machine: message times from a calibration, and which ranks share a node.

mod common;

use std::path::{Path, PathBuf};

use colltune_amr::checksum::Broken;
use colltune_amr::options;
use colltune_amr::settings::Settings;
use colltune_core::algorithm::simulate::{Link, Machine};
use colltune_core::calibration::{Calibration, FILE, SCHEMA};
use common::{bits, try_run};

const BLAST: &str = "--physics euler --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 \
    --sedov_centre .3 .4 .2 --refine_freq 4 --checksum_freq 1 --num_tsteps 16 --cost level --weigh measured";

/// A calibration whose messages have this latency.
fn calibration(folder: &Path, latency_ns: f64) -> PathBuf {
    let link = |link: Link| Link { latency_ns, ..link };
    let calibration = Calibration {
        schema: SCHEMA,
        library: "openmpi-4.1.4".to_owned(),
        machine: "here".to_owned(),
        nodes: 2,
        ppn: 2,
        reduce_per_byte_ns: 0.25,
        copy_per_byte_ns: 0.125,
        loaded_per_byte_ns: None,
        inside: Some(link(Machine::TYPICAL.inside)),
        between: Some(link(Machine::TYPICAL.between)),
        cores: None,
    };
    let file = folder.join(FILE);
    std::fs::write(&file, calibration.to_toml()).expect("a file");
    file
}

#[test]
fn policies_that_weigh_messages_and_break_even_run_and_change_no_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = calibration(folder.path(), 500.0);
    let machine = machine.display();
    let ending = |n_ranks: usize, more: &str| {
        bits(&try_run(n_ranks, &format!("{BLAST} {more}")).expect("a run"))
    };
    let one = ending(1, "");
    for more in [
        "--placement model --balance_when every:2",
        "--placement cplx:auto --balance_when mesh-change",
        "--placement grouplb --balance_when every:3",
        "--placement lpt-swap --balance_when break-even",
        "--placement rcb --balance_when break-even",
    ] {
        for nodes in ["", "--ranks_per_node 2"] {
            let more = format!("--machine {machine} {more} {nodes}");
            assert_eq!(one, ending(4, &more), "{more}");
        }
    }
}

#[test]
fn nothing_moves_where_messages_take_longer_than_anything_gained() {
    let folder = tempfile::tempdir().expect("a folder");
    // A day for each block.
    let machine = calibration(folder.path(), 8.64e13);
    let line = format!("{BLAST} --machine {} --placement lpt", machine.display());
    let moving = |when: &str| {
        let summary = try_run(3, &format!("{line} --balance_when {when}")).expect("a run");
        summary.time_s.migrate
    };
    assert_eq!(moving("break-even"), 0.0);
    assert!(moving("every:1") > 0.0);
}

#[test]
fn what_lacks_message_times_or_costs_is_refused_with_the_way_out() {
    let refused = |line: &str| {
        let words = format!("colltune-amr {line}");
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let options = options::parse(words).expect("a line");
        Settings::new(options, 2).err().expect("a refusal").text
    };
    for placement in ["model", "cplx:auto"] {
        let line = format!("--placement {placement}");
        assert!(refused(&line).contains("--machine FILE"), "{line}");
        let line = format!("{line} --machine calibration.toml");
        assert!(refused(&line).contains("--weigh measured"), "{line}");
    }
    assert!(refused("--balance_when break-even").contains("--machine FILE"));
    assert!(refused("--balance_when break-even --machine x").contains("--weigh measured"));
}

#[test]
fn a_calibration_that_cannot_be_used_ends_every_rank_with_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("other.toml");
    for text in [None, Some("schema = 99"), Some("no toml")] {
        if let Some(text) = text {
            std::fs::write(&file, text).expect("a file");
        }
        let line = format!("{BLAST} --placement model --machine {}", file.display());
        match try_run(3, &line) {
            Err(Broken::Placement { what, .. }) => assert!(what.contains("other.toml"), "{what}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
}
