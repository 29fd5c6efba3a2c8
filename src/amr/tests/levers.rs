//! Levers of whole runs on ranks in threads: epochs, what is reported of them, and that no bit depends on an arm.

mod common;

use std::path::Path;

use colltune_amr::options;
use colltune_amr::ranks::threads::Tuning;
use colltune_amr::report::Summary;
use colltune_amr::settings::Settings;
use common::{bits, rows, try_run, try_tuned};
use parquet::record::RowAccessor as _;

const MOVING: &str = "--nx 4 --ny 4 --nz 4 --num_vars 3 --comm_vars 2 --npx 2 --npy 2 --npz 2 --num_refine 2 \
    --stages_per_ts 3 --validate --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0";
const GAS: &str = "--physics euler --sedov_centre .3 .4 .2 --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 \
    --num_refine 2 --validate";

/// Steps of each arm of a lever, with the arms' names.
fn steps<'s>(summary: &'s Summary, lever: &str) -> Vec<(&'s str, u64)> {
    let arms = summary.levers[lever].iter();
    arms.map(|(arm, n)| (arm.as_str(), *n)).collect()
}

#[test]
fn a_run_ends_with_the_same_bits_whatever_arms_it_has_had() {
    for physics in [MOVING, GAS] {
        let line = format!("{physics} --num_tsteps 32 --refine_freq 4");
        let one = try_run(1, &line).expect("a run");
        for (n_ranks, levers) in [
            (3, "--placement tuned"),
            (
                4,
                "--placement tuned:morton,lpt,cplx:100,round-robin --weigh measured",
            ),
            (5, "--placement tuned --balance_when tuned"),
            (
                2,
                "--balance_when tuned:never,every:1,imbalance:0 --placement lpt-swap",
            ),
        ] {
            let other = try_tuned(n_ranks, Tuning::InTurn, &format!("{line} {levers}"));
            let other = other.unwrap_or_else(|broken| panic!("{levers}: {broken}"));
            assert_eq!(bits(&one), bits(&other), "{n_ranks} ranks, {levers}");
            for arms in other.levers.values() {
                assert!(arms.len() > 1, "only one arm ran: {arms:?}");
                assert_eq!(arms.values().sum::<u64>(), 32, "{arms:?}");
            }
        }
        // Without a tuner: the first arm, which is what the option's default does.
        let plain = try_run(3, &line).expect("a run");
        let first = try_run(3, &format!("{line} --placement tuned")).expect("a run");
        assert_eq!(steps(&first, "placement"), [("rcb", 32)]);
        assert_eq!(bits(&plain), bits(&first));
    }
}

#[test]
fn compatible_runs_have_the_placements_of_miniamr_as_arms() {
    let line = format!("{MOVING} --num_tsteps 32 --refine_freq 5 --compat");
    let line = line.replace("--validate", "");
    let one = try_run(8, &line).expect("a run");
    let other = try_tuned(8, Tuning::InTurn, &format!("{line} --placement tuned")).expect("a run");
    assert_eq!(bits(&one), bits(&other));
    let arms: Vec<&str> = other.levers["placement"]
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(arms, ["hilbert", "morton", "rcb"]);
}

#[test]
fn an_epoch_takes_five_to_twenty_steps_and_ends_where_a_policy_is_asked() {
    let arms = "--placement tuned:rcb,hilbert,lpt";
    for (more, expected) in [
        // Refined every 10 steps: 10, 10, 10.
        (
            "--refine_freq 10",
            vec![("hilbert", 10), ("lpt", 10), ("rcb", 20)],
        ),
        // At every second refinement: 6 steps each, in turn, and the last 4.
        (
            "--refine_freq 3",
            vec![("hilbert", 12), ("lpt", 12), ("rcb", 16)],
        ),
        // A mesh that never changes.
        ("--refine_freq 0", vec![("hilbert", 20), ("rcb", 20)]),
        (
            "--refine_freq 0 --lb_opt 0",
            vec![("hilbert", 20), ("rcb", 20)],
        ),
        (
            "--refine_freq 0 --balance_when never",
            vec![("hilbert", 20), ("rcb", 20)],
        ),
        // A trigger asks.
        (
            "--refine_freq 0 --balance_when every:8",
            vec![("hilbert", 16), ("lpt", 8), ("rcb", 16)],
        ),
    ] {
        let line = format!("{MOVING} --num_tsteps 40 {arms} {more}");
        let summary = try_tuned(3, Tuning::InTurn, &line).expect("a run");
        assert_eq!(steps(&summary, "placement"), expected, "{more}");
    }
}

#[test]
fn another_arm_places_anew_where_no_trigger_would() {
    for (arms, moves) in [("rcb", false), ("tuned:rcb,round-robin", true)] {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().display();
        let line = format!(
            "{MOVING} --num_tsteps 25 --refine_freq 0 --balance_when never --placement {arms}"
        );
        try_tuned(3, Tuning::InTurn, &format!("{line} --telemetry {to}")).expect("a run");
        let kinds = rows(folder.path(), "messages.0000.parquet");
        let blocks = kinds.filter(|row| row.get_string(2).is_ok_and(|kind| kind == "block"));
        assert_eq!(blocks.count() > 0, moves, "{arms}");
    }
}

#[test]
fn on_one_rank_nobody_is_asked_and_the_first_arm_runs() {
    let line = format!("{MOVING} --num_tsteps 12 --placement tuned:hilbert,rcb");
    let summary = try_tuned(1, Tuning::InTurn, &line).expect("a run");
    assert_eq!(steps(&summary, "placement"), [("hilbert", 12)]);
    assert!(
        summary
            .text(1)
            .contains("Lever placement: hilbert 12 steps\n")
    );
}

#[test]
fn a_run_that_goes_on_places_by_what_is_chosen_then() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = format!("{GAS} --placement tuned:lpt,hilbert");
    let whole = try_run(2, &format!("{line} --num_tsteps 20")).expect("a run");
    let to = folder.path().display();
    let first = format!("{line} --num_tsteps 11 --checkpoint {to} --checkpoint_freq 11");
    try_tuned(3, Tuning::InTurn, &first).expect("a run");
    let rest = format!("{line} --num_tsteps 20 --restart {to}");
    let rest = try_tuned(4, Tuning::InTurn, &rest).expect("a run");
    assert_eq!(bits(&whole), bits(&rest));
    assert_eq!(rest.levers["placement"].values().sum::<u64>(), 9);
}

/// Lever, arm and steps of each epoch that a rank recorded.
fn epochs(folder: &Path, rank: u32) -> Vec<(String, String, u64)> {
    let own = rows(folder, "epochs.0000.parquet").filter(|row| row.get_uint(1).ok() == Some(rank));
    own.map(|row| {
        let name = |place| row.get_string(place).expect("a name").clone();
        (name(2), name(3), row.get_ulong(4).expect("steps"))
    })
    .collect()
}

#[test]
fn telemetry_has_a_row_for_each_epoch_and_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().display();
    let line = format!(
        "{MOVING} --num_tsteps 17 --refine_freq 5 --telemetry {to} --placement tuned:rcb,lpt --balance_when tuned"
    );
    let summary = try_tuned(2, Tuning::InTurn, &line).expect("a run");
    let all = epochs(folder.path(), 1);
    let told: u64 = all
        .iter()
        .filter(|(lever, ..)| lever == "placement")
        .map(|row| row.2)
        .sum();
    assert_eq!(told, 17);
    for (lever, arms) in &summary.levers {
        for (arm, n) in arms {
            let of_arm = all.iter().filter(|row| (&row.0, &row.1) == (lever, arm));
            assert_eq!(
                of_arm.map(|row| row.2).sum::<u64>(),
                *n,
                "{lever}={arm}: {all:?}"
            );
        }
    }
    // A run without levers has no such table.
    let plain = tempfile::tempdir().expect("a folder");
    let to = plain.path().display();
    try_run(2, &format!("{MOVING} --num_tsteps 2 --telemetry {to}")).expect("a run");
    assert!(!plain.path().join("epochs.0000.parquet").exists());
}

#[test]
fn arms_that_are_none_are_refused_with_the_reason() {
    let refused = |line: &str, part: &str| {
        let words = format!("colltune-amr {line}");
        let options = options::parse(words.split_whitespace().map(str::to_owned)).expect("words");
        let refusal = Settings::new(options, 4).err().expect(line);
        assert!(refusal.text.contains(part), "{line}: {}", refusal.text);
    };
    refused("--placement tuned:rcb,lpd", "lpd");
    refused("--placement tuned:rcb,rcb", "rcb is named twice");
    refused("--placement tuned:", "--placement");
    refused("--placement tuned --hilbert", "several placements");
    refused("--placement tuned:rcb,model", "--machine FILE");
    refused(
        "--placement tuned:rcb,lpt --compat",
        "miniAMR's placements only",
    );
    refused("--balance_when tuned:never,break-even", "--machine FILE");
    refused(
        "--balance_when tuned --compat",
        "--compat balances when miniAMR does",
    );
}
