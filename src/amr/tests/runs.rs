//! Whole runs on ranks in threads: the same bits whatever the number of ranks and the placement.

mod common;

use colltune_amr::checksum::Broken;
use colltune_amr::options;
use colltune_amr::report::Summary;
use colltune_amr::settings::Settings;

use common::try_run;

/// With the largest drift, which follows from the sums on the way.
fn bits(summary: &Summary) -> (String, u64) {
    let drift = summary.checksum_drift_max.to_bits();
    (common::bits(summary), drift)
}

const MOVING: &str = "--nx 4 --ny 4 --nz 4 --num_vars 3 --comm_vars 2 --npx 2 --npy 2 --npz 2 --num_refine 3 \
    --num_tsteps 12 --stages_per_ts 3 --refine_freq 2 --validate \
    --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0";

#[test]
fn checksums_and_leaves_are_the_same_bits_for_any_ranks_and_placement() {
    let one = try_run(1, MOVING).expect("a run");
    assert!(one.splits > 20 && one.joins > 20, "the mesh moves: {one:?}");
    assert!(one.checksum_drift_max < 1e-12);
    for n_ranks in [2, 3, 4, 5, 7, 8] {
        for placement in [
            "--rcb",
            "--morton",
            "--hilbert",
            "--rcb --lb_opt 2",
            "--hilbert --limit_move 20",
            "--lb_opt 0",
        ] {
            let other = try_run(n_ranks, &format!("{MOVING} {placement}")).expect("a run");
            assert_eq!(bits(&one), bits(&other), "{n_ranks} ranks, {placement}");
        }
    }
}

#[test]
fn how_messages_travel_changes_no_bit() {
    let one = try_run(3, MOVING).expect("a run");
    for manner in [
        "--send_faces",
        "--exchange by_axis",
        "--exchange blocking",
        "--permute",
        "--blocking_send",
        "--comm_vars 1",
    ] {
        let other = try_run(3, &format!("{MOVING} {manner}")).expect("a run");
        assert_eq!(bits(&one), bits(&other), "{manner}");
    }
}

#[test]
fn twenty_seven_points_conserve_on_a_uniform_mesh_on_any_ranks() {
    let line = "--nx 4 --ny 6 --nz 4 --num_vars 2 --npx 2 --npy 2 --npz 2 --num_refine 1 --uniform_refine 1 \
        --stencil 27 --num_tsteps 4 --stages_per_ts 3 --checksum_freq 1";
    let one = try_run(1, line).expect("a run");
    assert!(one.checksum_drift_max < 1e-12, "{one:?}");
    for n_ranks in [2, 5, 8] {
        let other = try_run(n_ranks, line).expect("a run");
        assert_eq!(bits(&one), bits(&other), "{n_ranks} ranks");
    }
}

#[test]
fn compatible_runs_end_with_the_same_sums() {
    let line = "--nx 4 --ny 4 --nz 4 --num_vars 3 --num_refine 3 --num_tsteps 10 --stages_per_ts 2 \
        --object 2 0 -.01 -.01 -.01 0 0 0 0 0 0 .05 .05 .05 --num_objects 1";
    let eight = try_run(8, &format!("{line} --npx 2 --npy 2 --npz 2 --compat")).expect("a run");
    let own = try_run(3, &format!("{line} --npx 2 --npy 2 --npz 2")).expect("a run");
    assert_eq!(eight.checksums, own.checksums);
    assert_eq!(eight.mesh_hash, own.mesh_hash);
}

#[test]
fn too_many_blocks_for_a_rank_end_the_run() {
    let line = format!("{MOVING} --max_blocks 3");
    assert!(matches!(
        try_run(2, &line),
        Err(Broken::TooManyBlocks { .. })
    ));
}

#[test]
fn blocks_that_no_machine_has_room_for_end_the_run_before_they_are_made() {
    let line = "--nx 4096 --ny 4096 --nz 4096 --npx 2";
    let broken = try_run(2, line).expect_err("no room").to_string();
    let part = "failed to make room for blocks at step 0: rank 0 needs 22540.0 GB more";
    assert!(broken.contains(part), "{broken}");
}

#[test]
fn lines_that_make_no_sense_are_refused_with_a_reason() {
    let refused = |line: &str, n_ranks: usize, part: &str| {
        let words = format!("colltune-amr {line}");
        let words = words.split_whitespace().map(str::to_owned);
        let text = match options::parse(words).and_then(|o| Settings::new(o, n_ranks)) {
            Ok(_) => panic!("{line} was accepted"),
            Err(refusal) => {
                assert_eq!(refusal.status, 2, "{line}");
                refusal.text
            }
        };
        assert!(text.contains(part), "{line}: {text}");
    };
    refused("--nx 3", 1, "even number of cells");
    refused("--nx 10 --what 3", 1, "--what");
    refused("--npx 2", 3, "3 ranks for 2 root blocks");
    refused("--npx 3 --compat", 2, "npx*npy*npz = 2");
    refused("--num_refine 16", 1, "refinement levels");
    refused("--npx 500000 --num_refine 3", 1, "finest level");
    refused("--stencil 9", 1, "--stencil 9");
    refused("--stencil 0", 1, "7 or 27");
    refused("--code 3", 1, "'--code <CODE>': 3 is not in 0..=2");
    refused("--code 1 --physics euler", 1, "--code");
    refused("--refine_above .1 --join_below .2", 1, "join_below");
    refused("--rcb --hilbert", 1, "several placements");
    refused("--exchange at_once --stencil 27", 1, "at_once");
    refused("--exchange overlapped", 1, "goes with --physics euler");
    refused(
        "--exchange at_once --physics euler",
        1,
        "belong to the stencils",
    );
    refused(
        "--num_objects 2 --object 2 0 .5 .5 .5 0 0 0 .1 .1 .1 0 0 0",
        1,
        "--num_objects 2",
    );
    refused("--object 99 0 .5 .5 .5 0 0 0 .1 .1 .1 0 0 0", 1, "--object");
    refused("--object 2 0 9 9 9 0 0 0 .1 .1 .1 0 0 0", 1, "--object");
    refused("--time -1", 1, "--time");
    refused(
        "--max_blocks 0",
        1,
        "'--max_blocks <MAX_BLOCKS>': 0 is not in 1..",
    );
}

#[test]
fn messages_with_more_than_is_needed_end_with_the_same_bits_on_any_ranks() {
    let many = MOVING.replace("--num_vars 3 --comm_vars 2", "--num_vars 9 --comm_vars 4");
    for line in [
        format!("{many} --code 1"),
        format!("{many} --code 1 --permute"),
        format!("{MOVING} --stencil 27 --code 2 --permute"),
    ] {
        let one = try_run(1, &line).expect("a run");
        assert!(one.checksum_drift_max < 1e-12, "{line}: {one:?}");
        for n_ranks in [2, 5, 8] {
            let other = try_run(n_ranks, &line).expect("a run");
            assert_eq!(bits(&one), bits(&other), "{n_ranks} ranks, {line}");
        }
    }
}

#[test]
fn what_messages_carry_beyond_need_changes_no_bit() {
    let needed = try_run(3, MOVING).expect("a run");
    for code in [
        "--code 1",
        "--code 2",
        "--code 1 --send_faces",
        "--code 2 --permute",
    ] {
        let other = try_run(3, &format!("{MOVING} {code}")).expect("a run");
        assert_eq!(bits(&needed), bits(&other), "{code}");
    }
    let by_27 = MOVING.replace("--num_refine 3", "--num_refine 1 --uniform_refine 1");
    let in_order = try_run(3, &format!("{by_27} --stencil 27")).expect("a run");
    let permuted = try_run(3, &format!("{by_27} --stencil 27 --permute")).expect("a run");
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs();
    for (a, b) in in_order.checksums.iter().zip(&permuted.checksums) {
        assert!(
            close(*a, *b),
            "edges and corners are filled in any order: {a} and {b}"
        );
    }
}

#[test]
fn updates_are_reported_as_a_share_of_the_memorys_bandwidth_on_request() {
    let line = "--nx 4 --ny 4 --nz 4 --npx 2 --num_tsteps 2";
    let memory = |line: &str| try_run(2, line).expect("a good run").memory;
    assert!(memory(line).is_none());
    let memory = memory(&format!("{line} --bandwidth")).expect("measured");
    assert!(memory.bytes_per_s > 0.0 && memory.share > 0.0, "{memory:?}");
}

#[test]
fn pictures_are_written_when_they_are_due_on_any_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    for (n_ranks, physics) in [(1, ""), (3, "--physics euler")] {
        let to = folder.path().join(n_ranks.to_string());
        let line = format!(
            "{physics} --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 1 --num_refine 1 --num_tsteps 5 --plot_freq 2 \
             --plot_folder {}",
            to.display()
        );
        try_run(n_ranks, &line).expect("a run");
        for step in [0, 2, 4] {
            let file = std::fs::File::open(to.join(format!("mesh.{step:06}.png")));
            let file = std::io::BufReader::new(file.expect("a picture"));
            let reader = png::Decoder::new(file).read_info().expect("a png");
            let (width, height) = reader.info().size();
            assert!(width > 3 * 512 && height == 512, "three squares");
            let words = &reader.info().uncompressed_latin1_text[0].text;
            assert!(words.contains(&format!("step {step}")), "{words}");
        }
        assert_eq!(std::fs::read_dir(&to).expect("a folder").count(), 3);
    }
}
