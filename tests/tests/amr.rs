//! The mini-app on MPI: the same leaves and sums whatever runs it, and errors that every rank tells.

use std::path::Path;

use colltune_tests::{Mpi, Outcome, folder, is_long, job, on_each_library, traces};
use serde_json::Value;

/// A sphere that moves through a mesh of three levels.
const SPHERE: &str = "--nx 4 --ny 4 --nz 4 --num_vars 3 --comm_vars 2 --npx 2 --npy 2 --npz 2 --num_refine 2 \
    --num_tsteps 6 --stages_per_ts 3 --refine_freq 2 --checksum_freq 2 --validate \
    --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0";

/// A blast wave with two levels of refinement.
const BLAST: &str = "--physics euler --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 3 \
    --sedov_centre .3 .4 .2 --checksum_freq 1 --num_tsteps 9 --validate";

/// Blocks at the domain's corner that keep two levels side by side.
const TWO_LEVELS: &str = "--physics euler --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 1 --refine_freq 0 \
    --sedov_centre 0 0 0 --checksum_freq 1 --num_tsteps 100000 --time 0.2";

/// Ranks, placement, and whether the tuner explores.
const CASES: [(u32, &str, bool); 7] = [
    (2, "--hilbert", true),
    (3, "--placement lpt-swap", true),
    (4, "--rcb --lb_opt 2", false),
    (
        5,
        "--placement cplx:50 --weigh measured --balance_when every:2",
        false,
    ),
    (7, "--hilbert --limit_move 20", true),
    (8, "--placement contiguous-optimal", true),
    (4, "--placement tuned --balance_when tuned", true),
];

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn run(mpi: Mpi, n_ranks: u32, line: &str) -> Outcome {
    let app = mpi.mini_app();
    let of_library = job(n_ranks).mpi(mpi);
    of_library.run(&app.to_string_lossy(), &words(line))
}

/// What must not depend on who runs the problem.
fn ending(report: &Path) -> Value {
    let text = std::fs::read_to_string(report).expect("a run leaves its summary");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let same = [
        "steps",
        "checksums",
        "checksum_drift_max",
        "mesh_hash",
        "splits",
        "joins",
    ];
    let of_shock = all.get("shock").cloned().unwrap_or_default();
    let values = same.iter().map(|&name| {
        assert!(!all[name].is_null(), "no {name} in {text}");
        (name.to_owned(), all[name].clone())
    });
    values.chain([("shock".to_owned(), of_shock)]).collect()
}

/// The ending of `problem` on so many ranks.
fn ending_of(mpi: Mpi, problem: &str, (n_ranks, placement, tuned): (u32, &str, bool)) -> Value {
    let place = folder();
    let report = place.path().join("report.json");
    let line = format!("{problem} {placement} --json {}", report.display());
    let app = mpi.mini_app();
    let db = place.path().join("db");
    let mut run = job(n_ranks).mpi(mpi);
    if tuned {
        std::fs::create_dir(&db).expect("the folder is ours");
        run = run
            .preload()
            .db(&db)
            .mode("explore")
            .seed(u64::from(n_ranks))
            // A run of a tenth of a second may have spent its budget at the start.
            .env("COLLTUNE_EXPLORE_BUDGET", "1");
    }
    let outcome = run.run(&app.to_string_lossy(), &words(&line));
    outcome.succeeds().is_silent();
    let n_records: usize = traces(&db).iter().map(|trace| trace.records.len()).sum();
    outcome.claim(
        (n_records > 0) == tuned,
        &format!("{n_records} calls were recorded"),
    );
    ending(&report)
}

on_each_library! {
    fn leaves_and_checksums_are_the_same_bits_on_any_ranks_placement_and_tuner(mpi: Mpi) {
        for (problem, cases) in [(SPHERE, &CASES[..]), (BLAST, &CASES[4..])] {
            let cases = if is_long() { &CASES } else { cases };
            let one = ending_of(mpi, problem, (1, "", false));
            for &case in cases {
                assert_eq!(one, ending_of(mpi, problem, case), "{problem} on {case:?}");
            }
        }
    }
}

on_each_library! {
    fn a_variable_names_the_arms_of_a_run_without_the_tuner_and_no_bit_depends_on_them(mpi: Mpi) {
        let place = folder();
        let report = place.path().join("report.json");
        for (problem, n_steps) in [(SPHERE, 6), (BLAST, 9)] {
            let one = ending_of(mpi, problem, (1, "", false));
            for (levers, placement, when) in [
                ("", "rcb", "refinement"),
                ("placement=cplx:50", "cplx:50", "refinement"),
                ("balance_when=imbalance:0.1;placement=hilbert", "hilbert", "imbalance:0.1"),
            ] {
                let line = format!("{problem} --placement tuned --balance_when tuned --json {}", report.display());
                let run = job(3).mpi(mpi).env("COLLTUNE_LEVERS", levers);
                let outcome = run.run(&mpi.mini_app().to_string_lossy(), &words(&line));
                outcome.succeeds().is_silent();
                assert_eq!(one, ending(&report), "{problem} with {levers}");
                let text = std::fs::read_to_string(&report).expect("a summary");
                let all: Value = serde_json::from_str(&text).expect("JSON");
                let ran = |arm: &str| serde_json::json!({arm: n_steps});
                assert_eq!(all["levers"]["placement"], ran(placement), "{levers}");
                assert_eq!(all["levers"]["balance_when"], ran(when), "{levers}");
            }
        }
        let run = job(3).mpi(mpi).env("COLLTUNE_LEVERS", "placement=cplx:51");
        let line = format!("{SPHERE} --num_tsteps 12 --placement tuned");
        let outcome = run.run(&mpi.mini_app().to_string_lossy(), &words(&line));
        let said = "colltune-amr: COLLTUNE_LEVERS names placement=cplx:51, which is none of rcb, hilbert, \
            contiguous-optimal, cplx:50, lpt-swap: rcb is used\n";
        outcome.succeeds().claim(outcome.stderr == said, "it is said once");
    }
}

#[test]
fn both_libraries_end_alike() {
    let installed = Mpi::ALL.map(Mpi::installed);
    let [Some(first), Some(second)] = installed else {
        return;
    };
    for problem in [SPHERE, BLAST] {
        let case = (2, "", false);
        assert_eq!(
            ending_of(first, problem, case),
            ending_of(second, problem, case),
            "{problem}"
        );
    }
}

/// Runs a line that must fail on three ranks. Each rank ends with `code`, and one of them says why, once.
///
/// The ranks are started through a shell that keeps their codes: the launcher ends with one of them only.
#[track_caller]
fn fails(mpi: Mpi, line: &str, code: u32, parts: &[&str]) {
    let codes = folder();
    let script = format!("\"$0\" \"$@\"; echo $? >{}/$$", codes.path().display());
    let app = mpi.mini_app();
    let app = app.to_string_lossy();
    let mut arguments = vec!["-c", &script, &app];
    arguments.extend(words(line));
    let outcome = job(3).mpi(mpi).run("/bin/sh", &arguments);
    tells_once(outcome.succeeds(), parts);
    assert_codes(&outcome, codes.path(), code);
}

#[track_caller]
fn tells_once(outcome: &Outcome, parts: &[&str]) {
    outcome.claim(
        outcome.stderr.matches("error: ").count() == 1,
        "not one message",
    );
    for part in parts {
        outcome.claim(
            outcome.stderr.contains(part),
            &format!("no {part:?} in the message"),
        );
    }
}

#[track_caller]
fn assert_codes(outcome: &Outcome, folder: &Path, code: u32) {
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let mut found: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.expect("a file").path()).expect("a code"))
        .collect();
    found.sort();
    let expected = vec![format!("{code}\n"); 3];
    outcome.claim(
        found == expected,
        &format!("the ranks ended with {found:?}"),
    );
}

on_each_library! {
    fn wrong_lines_and_decks_are_refused_by_every_rank_and_told_by_one(mpi: Mpi) {
        fails(mpi, "--nx 3", 2, &["--nx 3: a block has an even number of cells"]);
        fails(mpi, "--npx 2", 2, &["3 ranks for 2 root blocks"]);
        let place = folder();
        let deck = place.path().join("mine.toml");
        std::fs::write(&deck, "nx = 8\nnum_refien = 4\n").expect("the folder is ours");
        let line = format!("--deck {}", deck.display());
        fails(mpi, &line, 2, &["mine.toml: unexpected argument '--num_refien' found", "exists: '--num_refine'"]);
        fails(mpi, "--num_tsteps 1 --num_vars 1 --json /dev/null/none", 1, &["failed to write /dev/null/none"]);
        let outcome = run(mpi, 2, "--what 3");
        outcome.ends().claim(outcome.code != Some(0), "the launcher says that all is well");
        tells_once(&outcome, &["--what"]);
    }

    fn a_missing_flux_correction_and_a_gas_that_is_none_end_every_rank(mpi: Mpi) {
        run(mpi, 3, TWO_LEVELS).succeeds();
        fails(mpi, &format!("{TWO_LEVELS} --break_flux"), 1, &["is not conserved at step"]);
        fails(mpi, &format!("{BLAST} --sedov_energy 1e308"), 1, &["step"]);
    }

    fn a_spoilt_checkpoint_ends_every_rank_and_a_whole_one_goes_on(mpi: Mpi) {
        let place = folder();
        let checkpoint = place.path().join("checkpoint");
        let problem = BLAST.replace("--num_tsteps 9", "--num_tsteps 6");
        let line = format!("{problem} --checkpoint {} --checkpoint_freq 6", checkpoint.display());
        run(mpi, 4, &line).succeeds();
        let restart = format!("--restart {}", checkpoint.display());
        let whole = ending_of(mpi, BLAST, (2, "", false));
        assert_eq!(whole, ending_of(mpi, &format!("{BLAST} {restart}"), (3, "--hilbert", true)));
        let cells = checkpoint.join("cells.00000006.00002");
        let bytes = std::fs::read(&cells).expect("cells of rank 2");
        std::fs::write(&cells, &bytes[..bytes.len() - 8]).expect("the folder is ours");
        fails(mpi, &format!("{BLAST} {restart}"), 1, &["cells.00000006.00002", "truncated"]);
    }

    fn a_full_disk_ends_every_rank_and_leaves_the_last_checkpoint_whole(mpi: Mpi) {
        let (place, kept, codes) = (folder(), folder(), folder());
        let disk = place.path().join("disk");
        std::fs::create_dir(&disk).expect("the folder is ours");
        let to = disk.display().to_string();
        let problem = SPHERE.replace("--num_tsteps 6", "");
        let line = format!(
            "{problem} --num_tsteps 100 --checkpoint {to} --checkpoint_freq 1 --vtk {to} --telemetry {to}"
        );
        let Some(small) = job(3).mpi(mpi).with_tmpfs(&disk, "size=4m", kept.path()) else {
            return;
        };
        let script = format!("\"$0\" \"$@\"; echo $? >{}/$$", codes.path().display());
        let app = mpi.mini_app();
        let app = app.to_string_lossy();
        let mut arguments = vec!["-c", &script, &app];
        arguments.extend(words(&line));
        let outcome = small.run("/bin/sh", &arguments);
        tells_once(outcome.succeeds(), &["No space left on device"]);
        assert_codes(&outcome, codes.path(), 1);
        let names = std::fs::read_dir(kept.path()).expect("what the disk held");
        let names: Vec<String> =
            names.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        outcome.claim(!names.iter().any(|name| name.ends_with(".unfinished")), &format!("{names:?}"));
        // The last checkpoint is one to go on from, by two steps.
        let index = std::fs::read_to_string(kept.path().join("checkpoint.json")).expect("an index");
        let index: Value = serde_json::from_str(&index).expect("JSON");
        let steps = index["step"].as_u64().expect("a step") + 2;
        let problem = format!("{problem} --num_tsteps {steps}");
        let whole = ending_of(mpi, &problem, (2, "", false));
        let restart = format!("--restart {}", kept.path().display());
        assert_eq!(whole, ending_of(mpi, &format!("{problem} {restart}"), (1, "", false)));
    }
}
