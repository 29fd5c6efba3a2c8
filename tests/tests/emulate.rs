//! `colltune-lab emulate`: what is wrong is named and leaves nothing behind, and small forms of what is right end to end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use colltune_core::algorithm::simulate::Machine;
use colltune_core::calibration::Calibration;
use colltune_tests::{
    Mpi, colltune as command, colltune_bench, colltune_lab, folder, job, target_folder,
};
use serde_json::Value;

/// What the program says that has this subcommand.
fn colltune(arguments: &[&str]) -> Output {
    let program = match arguments[0] {
        "emulate" => colltune_lab(),
        "study" | "validate" => colltune_bench(),
        _ => command(),
    };
    let mut command = Command::new(program);
    command.env("COLLTUNE_LIB", target_folder());
    command.args(arguments).output().expect("it starts")
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a name in UTF-8")
}

const COSTS: &str = "schema = 2\nkernel = \"seven\"\nsource = \"made up\"\n\
    [phases]\npack_message_ns = 900.0\npack_byte_ns = 0.25\nunpack_message_ns = 0.0\nunpack_byte_ns = 0.0\n\
    copy_link_ns = 0.0\ncopy_byte_ns = 0.0\nsum_cell_ns = 1.0\nrefine_ns = 1e5\nrefine_leaf_ns = 100.0\n\
    refine_value_ns = 1.0\nplace_leaf_ns = 100.0\nmigrate_byte_ns = 0.25\nstep_ns = 1000.0\n\
    [noise]\nblock_cv = 0.0\nstep_cv = 0.0\nrank_cv = 0.0\nspike_share = 0.0\nspike_factor = 1.0\n\
    [[level]]\ncell_ns = 1.0\niteration_ns = 0.0\nfiner_ns = 0.0\n";

fn machine() -> String {
    let calibration = Calibration {
        schema: 3,
        library: "openmpi-4.1.4".to_owned(),
        machine: "made up".to_owned(),
        nodes: 4,
        ppn: 2,
        reduce_per_byte_ns: 0.25,
        copy_per_byte_ns: 0.125,
        loaded_per_byte_ns: None,
        inside: Some(Machine::TYPICAL.inside),
        between: Some(Machine::TYPICAL.between),
        cores: None,
    };
    calibration.to_toml()
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_left_behind() {
    let folder = folder();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        path(&file).to_owned()
    };
    let costs = file("costs.toml", COSTS);
    let newer = file(
        "newer.toml",
        &COSTS.replace("schema = 2", "schema = 9\nnewer = 1"),
    );
    let mad = file(
        "mad.toml",
        &COSTS.replace("cell_ns = 1.0\ni", "cell_ns = -1.0\ni"),
    );
    let never = file(
        "never.toml",
        &COSTS.replace("[[level]]", "stop_share = 1.0\nstop_ns = 1.0\n[[level]]"),
    );
    let impossible = file(
        "impossible.toml",
        &machine().replace("latency_ns = 250.0", "latency_ns = -250.0"),
    );
    let lacking = file("lacking.toml", &machine().replace("gap_ns = 100.0\n", ""));
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("made");
    let out = folder.path().join("out");
    let out = path(&out);
    let run = |costs: &str, more: &str| {
        format!(
            "run --mesh four-spheres --costs {costs} --ranks 8 {more} --out {out} -- --num_tsteps 2"
        )
    };
    let hera = "--machine hera";
    let whatif = |more: &str| {
        format!(
            "whatif --mesh four-spheres --costs {costs} --ranks 8 --out {out} {more} -- --num_tsteps 2"
        )
    };
    let validate = |more: &str| format!("validate --out {out} {more}");
    let missing = folder.path().join("missing.toml");
    let empty = path(&empty);
    let both = format!("{hera} --policies contiguous --allreduce default");
    let on_ranks = |n: &str| whatif(&both).replace("--ranks 8", &format!("--ranks {n}"));
    let cases: [(String, &[&str]); 38] = [
        (
            run(&costs, &format!("--machine {impossible}")),
            &["impossible.toml", "inside.latency_ns is -250", "at least 0"],
        ),
        (
            run(&costs, &format!("--machine {lacking}")),
            &["lacking.toml", "gap_ns"],
        ),
        (run(&costs, "--machine crays"), &["crays", "hera"]),
        (run(&newer, hera), &["newer.toml", "version 9"]),
        (run(&mad, hera), &["mad.toml", "level[0].cell_ns"]),
        (run(&never, hera), &["never.toml", "stop_share"]),
        (
            run(&costs, &format!("{hera} --policy lpd")),
            &["lpd", "contiguous"],
        ),
        (
            run(&costs, &format!("{hera} --policy published:lpd")),
            &["\"lpd\" of policy published", "cplx:0..100"],
        ),
        (
            run(&costs, &format!("{hera} --collective allreduce=p2p:rong")),
            &["p2p:rong", "p2p:ring"],
        ),
        (
            run(&costs, &format!("{hera} --slow 9:4")),
            &["node 9", "8 ranks"],
        ),
        (
            run(&costs, &format!("{hera} --tell-speeds")),
            &["--slow <NODE:FACTOR>"],
        ),
        (
            run(&costs, hera).replace("--ranks 8", "--ranks 100000"),
            &["100000 ranks", "blocks"],
        ),
        (
            run(&costs, hera).replace("four-spheres", "five-spheres"),
            &["five-spheres"],
        ),
        (run(&costs, hera).replace("four-spheres", empty), &["empty"]),
        (
            run(&costs, hera).replace("four-spheres", "sedov-512"),
            &["seven", "euler"],
        ),
        (
            whatif(&format!(
                "{hera} --policies contiguous,lpd --allreduce default"
            )),
            &["lpd"],
        ),
        (
            whatif(&format!(
                "{hera} --policies lpt --allreduce default,p2p:rong"
            )),
            &["p2p:rong"],
        ),
        (
            whatif(&format!(
                "{hera} --policies lpt,contiguous,lpt --allreduce default"
            )),
            &["--policies names lpt twice"],
        ),
        (on_ranks("0"), &["--ranks", "1048576"]),
        (on_ranks("1000000000000"), &["--ranks", "1048576"]),
        (on_ranks("8,100000"), &["100000 ranks", "blocks"]),
        (format!("study arts --out {out}"), &["arts", "miniamr"]),
        (
            run(&costs, &format!("{hera} --axes 3")),
            &["step 3", "2 steps"],
        ),
        (
            run(&costs, &format!("{hera} --axes 0")),
            &["0", "counted from 1"],
        ),
        (
            run(&costs, hera).replace("--mesh ", "--mesh shell:"),
            &["shell:", "--problem sedov"],
        ),
        (
            run(&costs, hera).replace("four-spheres", "octree:x"),
            &["octree:x", "seed", "digit"],
        ),
        (
            run(&costs, hera).replace("four-spheres", "octree:1") + " --npx 4 --npy 2 --npz 1",
            &["4 x 2 x 1", "--npx"],
        ),
        (
            run(&costs, hera).replace("four-spheres", "cosmology:coarse"),
            &["cosmology:coarse", "colltune-bench study art"],
        ),
        (
            run(&costs, hera).replace("four-spheres", "quadrant:sym"),
            &["quadrant:sym", "colltune-bench study shamrock"],
        ),
        (
            run(&costs, hera).replace("four-spheres", "shell:sedov-512"),
            &["--time"],
        ),
        (
            run(&costs, &format!("{hera} --replicas 0")),
            &["--replicas", "1..=1000"],
        ),
        (
            run(&costs, &format!("{hera} --replicas 2 --time-placement")),
            &["--replicas", "--time-placement"],
        ),
        (
            validate(&format!("--machine {}", path(&missing))),
            &["missing.toml"],
        ),
        (validate("--machine crays"), &["crays", "hera"]),
        (
            validate(&format!("{hera} --policies contiguous,lpd")),
            &["lpd", "contiguous"],
        ),
        (
            validate(&format!("{hera} --decks five-spheres")),
            &["five-spheres", "four-spheres"],
        ),
        (
            validate(&format!("{hera} --ranks 0")),
            &["--ranks", "1048576"],
        ),
        (
            validate(&format!("{hera} --repetitions 0")),
            &["--repetitions"],
        ),
    ];
    for (line, words) in &cases {
        let of_benches = ["study", "validate"]
            .iter()
            .any(|word| line.starts_with(word));
        let program = (!of_benches).then_some("emulate");
        let line: Vec<&str> = program.into_iter().chain(line.split_whitespace()).collect();
        let output = colltune(&line);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{line:?}");
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{line:?} wants {words:?}: {text}"
        );
        assert!(!Path::new(out).exists(), "{line:?} left something");
    }
}

/// A deck of the paper's, small, on a mesh that follows the exact shock.
#[test]
fn a_blast_is_emulated_without_its_gas() {
    let folder = folder();
    let costs = folder.path().join("costs.toml");
    let of_gas = COSTS
        .replace("\"seven\"", "\"euler\"")
        .replace("iteration_ns = 0.0", "iteration_ns = 1.0");
    std::fs::write(&costs, of_gas).expect("written");
    let emulated = |cost: &str| -> Value {
        let line = format!(
            "emulate run --mesh shell:blast-512 --costs {} --policy contiguous,lpt --ranks 16 --machine qdr-psm --json \
             -- --npx 4 --npy 4 --npz 4 --num_tsteps 20 --cost {cost}",
            path(&costs)
        );
        let line: Vec<&str> = line.split_whitespace().collect();
        let output = colltune(&line);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (even, uneven) = (emulated("uniform"), emulated("shock"));
    for run in 0..2 {
        let number = |report: &Value, what: &str| report["runs"][run][what].as_f64().expect(what);
        assert_eq!(number(&even, "steps"), 20.0);
        assert!(number(&even, "moved_blocks") > 0.0, "{even}");
        let imbalance = [&even, &uneven].map(|report| number(report, "makespan_over_mean"));
        assert!(imbalance[0] < imbalance[1], "{uneven}");
    }
}

/// Copies a folder with what is in it.
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("listed") {
        let from = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        match from.is_dir() {
            true => copied(&from, &to),
            false => drop(std::fs::copy(from, to).expect("copied")),
        }
    }
}

/// The machine is calibrated without a word on how messages travel, and what was learned is kept by that.
#[test]
fn what_was_learned_with_a_transport_goes_before_a_formula() {
    let folder = folder();
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tuning-db/tests/recorded/cluster-shifting");
    let (db, costs) = (folder.path().join("db"), folder.path().join("costs.toml"));
    copied(&recorded, &db);
    std::fs::create_dir(db.join("incoming")).expect("made");
    std::fs::create_dir(db.join("openmpi-4.1.4")).expect("made");
    std::fs::write(db.join("openmpi-4.1.4/calibration.toml"), machine()).expect("written");
    std::fs::write(&costs, COSTS).expect("written");
    let run = || {
        let line = format!(
            "emulate run --mesh four-spheres --costs {} --ranks 8 --machine {} --collective allreduce=node:shm+default \
             --json -- --num_tsteps 2",
            path(&costs),
            path(&db)
        );
        colltune(&line.split_whitespace().collect::<Vec<_>>())
    };
    let measured = || {
        let output = run();
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let measured = report.pointer("/runs/0/priced/measured");
        measured.and_then(Value::as_f64).expect("a share")
    };
    assert_eq!(measured(), 0.0, "by a formula");
    let output = colltune(&["train", "--db", path(&db)]);
    assert!(output.status.success(), "{output:?}");
    let measured = measured();
    assert!(measured > 0.5, "{measured}");
}

/// Times are those of the table whatever is drawn, and what is drawn is what the run did.
#[test]
fn a_run_is_drawn_rank_by_rank_and_repeated_with_other_noise() {
    let folder = folder();
    let costs = folder.path().join("costs.toml");
    let noisy = COSTS.replace("step_cv = 0.0", "step_cv = 0.2");
    std::fs::write(&costs, noisy).expect("written");
    let run = |more: &str| -> Value {
        let line = format!(
            "emulate run --mesh four-spheres --costs {} --policy contiguous,cplx:50 --ranks 8 --machine hera --json \
             {more} -- --num_tsteps 12",
            path(&costs)
        );
        let line: Vec<&str> = line.split_whitespace().collect();
        let output = colltune(&line);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let number = |report: &Value, run: usize, what: &str| {
        let found = report["runs"][run].pointer(what).and_then(Value::as_f64);
        found.unwrap_or_else(|| panic!("{what} in {report}"))
    };
    let out = folder.path().join("out");
    let one = run("");
    let drawn = run(&format!("--axes 2-3 --out {}", path(&out)));
    assert_eq!(one, drawn);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    let file: Value = serde_json::from_str(&read("emulate.json")).expect("JSON");
    assert_eq!(file, one);
    for (nth, policy) in ["contiguous", "cplx-50"].into_iter().enumerate() {
        assert!(read(&format!("emulate-matrix-{policy}.svg")).contains("bytes"));
        let timeline: Value =
            serde_json::from_str(&read(&format!("emulate-timeline-{policy}.json"))).expect("JSON");
        let events = timeline["traceEvents"].as_array().expect("events");
        let slices = events.iter().filter(|event| event["ph"] == "X");
        // Of two of twelve steps there is about a sixth of the computing.
        let computing = slices.filter(|slice| slice["name"] == "compute");
        let of = |slice: &Value| slice["dur"].as_f64().expect("microseconds");
        let share =
            1e-6 * computing.map(of).sum::<f64>() / 8.0 / number(&one, nth, "/phases_s/0/1");
        assert!((0.08..0.3).contains(&share), "{share}");
    }
    let csv = read("emulate.csv");
    let told = format!(
        "contiguous,default,8,total_s,{},",
        number(&one, 0, "/total_s")
    );
    let tells = csv.lines().any(|line| line.starts_with(&told));
    assert!(tells, "{told} in {csv}");
    assert!(read("emulate.svg").contains("cplx:50"));
    assert_eq!(one["defaults"], "Open MPI up to 4.0");

    let many = run("--replicas 5");
    for nth in 0..2 {
        let [min, middle, max] =
            ["/replicas/min_s", "/total_s", "/replicas/max_s"].map(|what| number(&many, nth, what));
        assert!(min < middle && middle < max, "{min} {middle} {max}");
        let alone = run(&format!("--seed {}", number(&many, nth, "/replicas/seed")));
        assert_eq!(number(&alone, nth, "/total_s"), middle);
        let first = number(&one, nth, "/total_s");
        assert!(
            (min..=max).contains(&first),
            "the first seed is one of them"
        );
    }
    assert!(number(&one, 0, "/messages/same_node") > 0.0);
}

/// The best pair of four.
#[test]
fn what_each_lever_gives_is_a_table_and_a_file() {
    let folder = folder();
    let costs = folder.path().join("costs.toml");
    std::fs::write(&costs, COSTS).expect("written");
    let output = colltune(&[
        "emulate",
        "whatif",
        "--mesh",
        "four-spheres",
        "--costs",
        path(&costs),
        "--policies",
        "round-robin,contiguous",
        "--allreduce",
        "default,p2p:ring",
        "--cells",
        "4,8",
        "--ranks",
        "8,16",
        "--machine",
        "hera",
        "--out",
        path(folder.path()),
        "--",
        "--num_tsteps",
        "2",
    ]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(folder.path().join("emulate-whatif.json")).expect("written");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let cases = report["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let time = |i: usize, j: usize| case["grid"]["total_s"][i][j].as_f64().expect("a time");
        let levers = &case["levers"];
        // Neighbours on one rank send each other nothing.
        assert_eq!(levers["best_policy"], "contiguous", "{case}");
        let gain = |name: &str| levers[name].as_f64().expect("a share");
        assert!((gain("placement") - (1.0 - time(1, 0) / time(0, 0))).abs() < 1e-12);
        assert!(gain("both") >= gain("placement").max(gain("algorithm")));
    }
}

/// By leaves, as under every policy, or by the clock; the report says which.
#[test]
fn a_grid_times_its_policies_where_it_is_asked_to() {
    let folder = folder();
    let costs = folder.path().join("costs.toml");
    std::fs::write(&costs, COSTS).expect("written");
    let report = |more: &str| -> Value {
        let line = format!(
            "emulate whatif --mesh four-spheres --costs {} --policies round-robin,lpt-swap --allreduce default,default \
             --ranks 8 --machine hera --json {more} -- --num_tsteps 6 --refine_freq 2",
            path(&costs)
        );
        let output = colltune(&line.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (by_leaves, by_clock) = (report(""), report("--time-placement"));
    assert_eq!(by_leaves["placing"], "leaves");
    assert_eq!(by_clock["placing"], "this machine's clock");
    let total_s = |report: &Value, i: usize, j: usize| {
        let time = &report["cases"][0]["grid"]["total_s"][i][j];
        time.as_f64().expect("a time")
    };
    for policy in [0, 1] {
        let timed = total_s(&by_clock, policy, 0);
        assert_ne!(timed, total_s(&by_leaves, policy, 0));
        assert_eq!(timed, total_s(&by_clock, policy, 1), "timed once");
    }
}

/// A seed says which, and the mini-app's options how large.
#[test]
fn a_random_octree_is_emulated_on_a_cube_of_root_blocks() {
    let folder = folder();
    let costs = folder.path().join("costs.toml");
    std::fs::write(&costs, COSTS).expect("written");
    let run = |mesh: &str| -> Value {
        let line = format!(
            "emulate run --mesh {mesh} --costs {} --policy contiguous,lpt --ranks 8 --machine hera --json --noiseless \
             -- --npx 4 --npy 4 --npz 4 --num_refine 2 --num_tsteps 3",
            path(&costs)
        );
        let output = colltune(&line.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (one, two) = (run("octree:1"), run("octree:2"));
    assert_eq!(one, run("octree:1"));
    assert_ne!(one["runs"][0]["messages"], two["runs"][0]["messages"]);
    let levels = one["runs"][0]["lbr_by_level"].as_array().expect("levels");
    assert_eq!(levels.len(), 3);
}

/// A policy that uses speeds gets them and gains by it; a policy that does not is named.
#[test]
fn what_telling_policies_of_a_slow_node_gains_is_told() {
    let folder = folder();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        path(&file).to_owned()
    };
    let (costs, machine) = (file("costs.toml", COSTS), file("machine.toml", &machine()));
    let stdout = |more: &str| {
        let line = format!(
            "emulate run --mesh four-spheres --costs {costs} --policy lpt-swap,rcb --ranks 8 --machine {machine} \
             --noiseless --slow 1:4 {more} -- --num_tsteps 6 --refine_freq 2"
        );
        let output = colltune(&line.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let report = |more: &str| -> Value {
        serde_json::from_str(&stdout(&format!("--json {more}"))).expect("JSON")
    };
    let (unaware, told) = (report(""), report("--tell-speeds"));
    let total_s = |report: &Value, run: usize| report["runs"][run]["total_s"].as_f64().expect("s");
    assert!(total_s(&told, 0) < 0.9 * total_s(&unaware, 0));
    assert_eq!(total_s(&told, 1), total_s(&unaware, 1));
    assert_eq!(told["speeds"]["told"][0], "lpt-swap");
    assert_eq!(told["speeds"]["unheeding"][0], "rcb");
    assert!(unaware.get("speeds").is_none());
    let table = stdout("--tell-speeds");
    let line = "told how fast ranks are: lpt-swap; heeding no speeds: rcb";
    assert!(table.lines().any(|told| told == line), "{table}");
}

/// Real runs on two ranks beside emulated ones: every message and byte is the same, and every claim has its line.
#[test]
fn a_small_validation_runs_from_end_to_end() {
    let Some(_) = Mpi::OpenMpi.installed() else {
        return;
    };
    let folder = folder();
    let out = path(folder.path());
    let output = colltune(&[
        "validate",
        "--machine",
        "hera",
        "--decks",
        "four-spheres",
        "--policies",
        "contiguous,lpt",
        "--steps",
        "5",
        "--fit-steps",
        "5",
        "--repetitions",
        "1",
        "--scaling",
        "1,2",
        "--out",
        out,
        "--json",
    ]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(row["counts_differ"].is_null(), "{row}");
        assert!(row["n_counts"].as_u64().expect("a number") > 20, "{row}");
        assert!(row["emulated_s"].as_f64().expect("a time") > 0.0);
        assert!(row["alone"].as_f64().expect("a share").abs() < 1.0, "{row}");
    }
    let validated = report["validated"].as_array().expect("claims");
    let claim = |id: &str| validated.iter().find(|claim| claim["id"] == id);
    for id in ["V1", "V4", "V5", "V6", "V8", "V9"] {
        assert!(claim(id).is_some(), "{id}: {validated:?}");
    }
    assert_eq!(claim("V5").expect("there")["holds"], true);
    let left = std::fs::read_dir(folder.path()).expect("a folder");
    let left: Vec<_> = left.flatten().map(|one| one.file_name()).collect();
    let report = left.iter().filter(|name| *name == "emulate-validate.json");
    let own = left.iter().filter(|name| *name == ".made-by-colltune");
    assert_eq!(
        report.count() + own.count(),
        left.len(),
        "only its JSON is left: {left:?}"
    );
}

/// A recording of a few steps on one rank, with blocks.
fn recorded(mpi: Mpi, folder: &Path) -> PathBuf {
    let telemetry = folder.join("t");
    let app = mpi.mini_app();
    let line = format!(
        "--nx 4 --ny 4 --nz 4 --num_vars 2 --num_refine 1 --num_tsteps 2 --stages_per_ts 2 --telemetry {} \
         --telemetry_blocks --object 2 0 .2 .3 .4 .05 .04 .02 .15 .15 .15 0 0 0",
        path(&telemetry)
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    job(1)
        .mpi(mpi)
        .run(&app.to_string_lossy(), &words)
        .succeeds();
    telemetry
}

/// What fitting to a recording says where it must not succeed; it writes no costs.
fn refused(telemetry: &Path) -> String {
    let costs = telemetry.with_file_name("costs.toml");
    let output = colltune(&[
        "emulate",
        "fit",
        "--telemetry",
        path(telemetry),
        "-o",
        path(&costs),
    ]);
    assert!(!output.status.success(), "{output:?}");
    assert!(!costs.exists());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn too_few_rows_are_named_and_no_costs_are_written() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let folder = folder();
    let text = refused(&recorded(mpi, folder.path()));
    assert!(text.contains("rows") && text.contains("30"), "{text}");
}

/// A pair of the footer: the key, then the kind and the length of the value, and the value.
const VERSION: &[u8] = b"colltune-amr.recording\x18\x011";

#[test]
fn a_recording_of_another_version_is_refused_by_its_number() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let folder = folder();
    let telemetry = recorded(mpi, folder.path());
    let file = telemetry.join("blocks.0000.parquet");
    let mut bytes = std::fs::read(&file).expect("recorded");
    let mut places = bytes.windows(VERSION.len());
    let place = places.position(|window| window == VERSION);
    let value = place.expect("a version in the footer") + VERSION.len() - 1;
    for other in ["0", "9"] {
        bytes[value] = other.as_bytes()[0];
        std::fs::write(&file, &bytes).expect("written");
        let text = refused(&telemetry);
        let version = format!("version {other} of recordings");
        assert!(text.contains(&version), "{text}");
        assert!(text.contains("this colltune reads version 1"), "{text}");
        assert!(text.contains(path(&telemetry)), "{text}");
    }
}
