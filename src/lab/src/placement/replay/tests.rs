//! Small recordings, whose makespans and moves are known.

use std::path::PathBuf;

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn parsed(words: &[&str]) -> Args {
    Line::parse_from([&["replay"], words].concat()).args
}

/// Eight blocks in a row over three steps; the dear one wanders.
fn recorded(folder: &std::path::Path) -> PathBuf {
    let mut text = "step,block,cost,x,y,z,level\n".to_owned();
    for step in 0..3u64 {
        for block in 0..8u64 {
            let cost = if block == 3 * step { 5.0 } else { 1.0 };
            text += &format!("{step},{block},{cost},{block},0,0,0\n");
        }
    }
    let file = folder.join("costs.csv");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn makespans_and_moves_are_those_of_the_owners() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(folder.path());
    let out = folder.path().to_str().unwrap();
    let args = parsed(&[
        file.to_str().unwrap(),
        "--ranks",
        "3",
        "--policies",
        "contiguous,lpt,rcb",
        "--bytes-per-block",
        "100",
        "--out",
        out,
    ]);
    let runs = replay(&args, &read(&file, 3).unwrap()).unwrap();
    assert_eq!(runs.len(), 3);
    let contiguous = &runs[0];
    assert_eq!(contiguous.totals.moved_blocks, 0);
    assert!(contiguous.steps.iter().all(|step| step.makespan >= 6.0));
    let lpt = &runs[1];
    assert_eq!(
        lpt.totals.makespan, 15.0,
        "the dear block alone, three and four on the others"
    );
    assert_eq!(lpt.totals.moved_bytes, 100 * lpt.totals.moved_blocks);
    assert!(lpt.totals.moved_blocks > 0);
    run(&args).unwrap();
    let json = std::fs::read_to_string(folder.path().join("placement-replay.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["policies"][1]["totals"]["makespan"], 15.0);
    assert_eq!(json["policies"][1]["steps"].as_array().unwrap().len(), 3);
}

#[test]
fn slow_ranks_get_less_and_memory_binds_and_what_cannot_be_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(folder.path());
    let try_run = |more: &str| {
        let more: Vec<&str> = more.split(' ').collect();
        let words = [&[file.to_str().unwrap(), "--ranks", "3"], &more[..]].concat();
        replay(&parsed(&words), &read(&file, 3).unwrap())
    };
    // Twelve units of work: a third of a rank at a quarter of the speed is nothing like a third of the time.
    let run = try_run("--policies lpt --speeds 2:0.25").unwrap().remove(0);
    let slow = run.totals.makespan;
    let alike = try_run("--policies lpt").unwrap().remove(0).totals.makespan;
    assert!(alike < slow && slow <= 3.0 * 7.0, "{alike} {slow}");
    let naive = try_run("--policies contiguous --speeds 2:0.25").unwrap();
    assert!(
        slow < naive[0].totals.makespan,
        "{slow} {}",
        naive[0].totals.makespan
    );
    // Three blocks at most on a rank, where four would balance.
    let bound = try_run("--policies lpt --bytes-per-block 10 --rank-memory 30").unwrap();
    assert!(
        bound[0].totals.makespan > alike,
        "{}",
        bound[0].totals.makespan
    );
    let error = |more: &str| format!("{:#}", try_run(more).err().expect("an error"));
    for (more, word) in [
        ("--policies rcb --speeds 2:0.25", "heed"),
        ("--policies lpt --speeds 3:0.25", "rank 3"),
        ("--policies lpt --rank-memory 30", "--bytes-per-block"),
        (
            "--policies lpt --bytes-per-block 10 --rank-memory 25",
            "memory",
        ),
        (
            "--policies lpt --bytes-per-block 10 --rank-memory 0-1:9,2:9",
            "memory",
        ),
    ] {
        assert!(error(more).contains(word), "{more}: {}", error(more));
    }
}

#[test]
fn without_foresight_a_policy_is_a_step_late() {
    let folder = tempfile::tempdir().unwrap();
    let file = recorded(folder.path());
    let recording = read(&file, 3).unwrap();
    let with = |foresight: &str, every: &str| {
        let words = [
            file.to_str().unwrap(),
            "--ranks",
            "3",
            "--policies",
            "lpt",
            "--foresight",
            foresight,
            "--trigger",
            every,
        ];
        replay(&parsed(&words), &recording)
            .unwrap()
            .remove(0)
            .totals
    };
    assert!(with("none", "every:1").makespan > with("full", "every:1").makespan);
    assert_eq!(with("full", "every:3").placements, 1);
    assert_eq!(with("full", "every:3").moved_blocks, 0);
}

#[test]
fn a_policy_that_looks_at_the_mesh_asks_for_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("costs.csv");
    std::fs::write(&file, "step,block,cost\n0,0,1\n").unwrap();
    let args = parsed(&[file.to_str().unwrap(), "--ranks", "2", "--policies", "rcb"]);
    let error = replay(&args, &read(&file, 3).unwrap())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("rcb") && error.contains("x,y,z,level"),
        "{error}"
    );
}

/// Eight blocks; the first is refined into eight in step 2. All cost the same, but those of the
/// second half of the domain twice as much.
fn refined(folder: &std::path::Path) -> PathBuf {
    let mut text = "step,block,cost,x,y,z,level\n".to_owned();
    for step in 0..4u64 {
        for block in 0..8u64 {
            let (x, y, z) = (block & 1, block >> 1 & 1, block >> 2);
            if step >= 2 && block == 0 {
                for child in 0..8u64 {
                    let (i, j, k) = (child & 1, child >> 1 & 1, child >> 2);
                    text += &format!("{step},{},1,{i},{j},{k},1\n", 100 + child);
                }
                continue;
            }
            text += &format!("{step},{block},{},{x},{y},{z},0\n", 1 + z);
        }
    }
    let file = folder.join("refined.csv");
    std::fs::write(&file, text).unwrap();
    file
}

fn totals(folder: &std::path::Path, words: &[&str]) -> (u64, u64, Vec<f64>) {
    let file = refined(folder);
    let file = file.to_str().unwrap();
    let first = [file, "--ranks", "4", "--policies", "lpt-swap"];
    let run = replay(
        &parsed(&[&first, words].concat()),
        &read(file.as_ref(), 3).unwrap(),
    );
    let run = run.unwrap().remove(0);
    let makespans = run.steps.iter().map(|step| step.makespan).collect();
    (run.totals.placements, run.totals.moved_blocks, makespans)
}

#[test]
fn each_trigger_places_when_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let placements = |trigger: &str| totals(folder.path(), &["--trigger", trigger]).0;
    assert_eq!(placements("every:1"), 4);
    assert_eq!(placements("every:2"), 2);
    assert_eq!(
        placements("never"),
        1,
        "the first step has no owners before"
    );
    assert_eq!(placements("mesh-change"), 2);
    assert_eq!(placements("imbalance:0.1"), 2);
    assert_eq!(placements("imbalance:10"), 1);
    assert_eq!(placements("never,every:3"), 2);
    assert_eq!(
        placements("break-even"),
        2,
        "once more, when blocks are refined"
    );
    let dear = ["--trigger", "break-even", "--placing", "1000"];
    assert_eq!(totals(folder.path(), &dear).0, 1);
}

#[test]
fn refined_blocks_start_where_their_parent_was() {
    let folder = tempfile::tempdir().unwrap();
    let (_, moved, makespans) = totals(folder.path(), &["--trigger", "never"]);
    assert_eq!(moved, 0);
    // Three ranks with 3; the one with the refined block has eight children and two.
    assert_eq!(makespans[..2], [3.0, 3.0]);
    assert!(makespans[2] >= 8.0, "{makespans:?}");
}

#[test]
fn levels_are_balanced_each_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = refined(folder.path());
    let words = [file.to_str().unwrap(), "--ranks", "4", "--policies", "none"];
    let run = replay(&parsed(&words), &read(&file, 3).unwrap())
        .unwrap()
        .remove(0);
    let levels: Vec<(u8, f64)> = run.steps[3]
        .balance_by_level
        .iter()
        .map(|of| (of.level, of.ratio))
        .collect();
    // The eight refined blocks stay with their root on one rank of four.
    assert_eq!((levels[1], levels.len()), ((1, 0.25), 2));
    assert!(levels[0].0 == 0 && levels[0].1 > 0.5, "{levels:?}");
}

#[test]
fn a_limit_of_moves_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let free = totals(folder.path(), &[]);
    let limited = totals(folder.path(), &["--moves-max", "2"]);
    assert!(free.1 > 4 && limited.1 <= 6, "{free:?} {limited:?}");
    assert!(limited.2[2] <= totals(folder.path(), &["--trigger", "never"]).2[2]);
}

#[test]
fn matched_owners_move_less_at_the_same_makespan() {
    let folder = tempfile::tempdir().unwrap();
    // Sixty blocks whose costs swing against each other.
    let mut text = "step,block,cost\n".to_owned();
    for (step, block) in (0..6u64).flat_map(|step| (0..60u64).map(move |block| (step, block))) {
        let cost = 10 + (block * 7 + step * (1 + block % 3)) % 11;
        text += &format!("{step},{block},{cost}\n");
    }
    let file = folder.path().join("swing.csv");
    std::fs::write(&file, text).unwrap();
    let with = |policy: &str, matching: &str| {
        let words = [
            file.to_str().unwrap(),
            "--ranks",
            "12",
            "--policies",
            policy,
            "--matching",
            matching,
        ];
        let run = replay(&parsed(&words), &read(&file, 3).unwrap())
            .unwrap()
            .remove(0);
        (run.totals.makespan, run.totals.moved_blocks)
    };
    for policy in ["lpt", "lpt-swap", "cplx:100", "contiguous-optimal"] {
        let (off, order, free) = (
            with(policy, "off"),
            with(policy, "keep-order"),
            with(policy, "free"),
        );
        assert_eq!((off.0, off.0), (order.0, free.0), "{policy}");
        assert!(
            free.1 <= off.1 && order.1 <= off.1,
            "{policy}: {off:?} {order:?} {free:?}"
        );
        if policy.starts_with("lpt") {
            assert!(10 * order.1 < 9 * off.1, "{policy}: {off:?} {order:?}");
        }
    }
}

#[test]
fn smoothed_costs_are_misled_less_by_a_hiccup() {
    let folder = tempfile::tempdir().unwrap();
    // Block 0 costs 8 but for a hiccup in one step; the others cost 1.
    let mut text = "step,block,cost\n".to_owned();
    for step in 0..8u64 {
        for block in 0..9u64 {
            let cost = if block == 0 && step != 5 { 8 } else { 1 };
            text += &format!("{step},{block},{cost}\n");
        }
    }
    let file = folder.path().join("noise.csv");
    std::fs::write(&file, text).unwrap();
    let with = |foresight: &str| {
        let words = [
            file.to_str().unwrap(),
            "--ranks",
            "2",
            "--policies",
            "lpt",
            "--foresight",
            foresight,
        ];
        let run = replay(&parsed(&words), &read(&file, 3).unwrap())
            .unwrap()
            .remove(0);
        run.steps
            .iter()
            .map(|step| step.makespan)
            .collect::<Vec<_>>()
    };
    assert_eq!(with("full")[4..], [8.0, 5.0, 8.0, 8.0]);
    let none = with("none");
    assert!(
        none[6] > 8.0,
        "the step after the hiccup is misled: {none:?}"
    );
    let smoothed = with("smoothed");
    assert!(smoothed[6] < none[6] && smoothed[6] <= 9.0, "{smoothed:?}");
}
