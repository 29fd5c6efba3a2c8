//! What `telemetry path` and `telemetry noise` say of runs whose trouble is known, since the test makes it: measured, so
//! in the long suite alone.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use colltune_tests::{Cluster, Mpi, colltune_lab as command, folder, job, runs_long, skip};
use serde_json::Value;

/// Many small blocks on each rank, so that copies between them take about as long as messages on the wire.
const MANY_SMALL_BLOCKS: &str = "--nx 4 --ny 4 --nz 4 --num_vars 20 --init_x 8 --init_y 8 --init_z 8 --npx 2 --npy 2 \
    --npz 2 --num_refine 0 --num_tsteps 6 --stages_per_ts 4 --checksum_freq 4 --stencil 27 --exchange by_axis";
/// Blocks of a gas on two levels, over so many steps that each rank is seen several times where it is.
const BLAST: &str = "--physics euler --nx 8 --ny 8 --nz 8 --npx 2 --npy 1 --npz 1 --init_x 1 --init_y 2 --init_z 2 \
    --num_refine 1 --refine_freq 20 --refine_buffer 0 --sedov_centre .5 .4 .2 --checksum_freq 2 --num_tsteps 400";

fn json(question: &str, folder: &Path) -> Value {
    let mut command = Command::new(command());
    command.args(["telemetry", question, "--json"]).arg(folder);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{question}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs of one order of the exchange: seconds of unrecorded ones, and of recorded ones the paths' length, what sending
/// first would save of it, and how ranks wait.
#[derive(Debug, Default)]
struct Measured {
    time: Vec<f64>,
    len: Vec<f64>,
    send_first: Vec<f64>,
    waiting: Vec<f64>,
}

impl Measured {
    fn run(&mut self, cluster: &Cluster, order: &str) {
        let place = folder();
        let summary = place.path().join("summary.json");
        let telemetry = place.path().join("telemetry");
        let line = format!("{MANY_SMALL_BLOCKS} --exchange_order {order}");
        let run = |more: [&str; 3]| {
            let words: Vec<&str> = line.split_whitespace().chain(more).collect();
            let app = Mpi::OpenMpi.mini_app();
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            cluster.run(&[], &app.to_string_lossy(), &words).succeeds();
        };
        run(["--json", &summary.to_string_lossy(), ""]);
        let text = std::fs::read_to_string(&summary).expect("a summary");
        let summary: Value = serde_json::from_str(&text).expect("JSON");
        run([
            "--telemetry",
            &telemetry.to_string_lossy(),
            "--telemetry_rounds",
        ]);
        let (paths, noise) = (json("path", &telemetry), json("noise", &telemetry));
        assert_eq!(paths["violations"], serde_json::json!([]), "{order}");
        let number = |of: &Value| of.as_f64().expect("a number");
        self.time.push(number(&summary["time_s"]["total"]));
        self.len.push(number(&paths["len"]) / 1e9);
        self.send_first.push(number(&paths["send_first"]) / 1e9);
        self.waiting.push(number(&noise["waiting"]["share"]));
    }
}

/// Whether sending first is the shorter one; `None` where the values overlap.
fn shorter(copies: &[f64], sends: &[f64]) -> Option<bool> {
    let ends = |of: &[f64]| {
        let least = of.iter().copied().fold(f64::INFINITY, f64::min);
        [least, of.iter().copied().fold(0.0, f64::max)]
    };
    let ([copies_least, copies_most], [sends_least, sends_most]) = (ends(copies), ends(sends));
    match () {
        () if sends_most < copies_least => Some(true),
        () if copies_most < sends_least => Some(false),
        () => None,
    }
}

#[test]
fn paths_tell_copies_before_sends_by_what_is_to_be_saved_and_do_not_contradict_the_times_of_runs() {
    if !runs_long() {
        return;
    }
    let cluster = Mpi::OpenMpi
        .installed()
        .and_then(|mpi| Cluster::up(mpi, 4, 2));
    let Some(cluster) = cluster else { return };
    let (mut copies, mut sends) = (Measured::default(), Measured::default());
    for _ in 0..5 {
        copies.run(&cluster, "copies_first");
        sends.run(&cluster, "sends_first");
    }
    println!("copies first: {copies:.3?}\nsends first: {sends:.3?}");
    let promised = [&copies, &sends].map(|of| middle(of.send_first.clone()));
    assert!(
        promised[0] > 10.0 * promised[1],
        "seconds to be saved: {promised:?}"
    );
    // Links that are full gain nothing by being asked sooner, so neither may be shorter beyond doubt.
    let of_runs = shorter(&copies.time, &sends.time);
    let of_paths = shorter(&copies.len, &sends.len);
    assert!(of_runs.is_none() || of_paths.is_none() || of_runs == of_paths);
}

/// What makes a process real-time: it shares a core with its like alone, however busy the machine is.
const REALTIME: [&str; 3] = ["chrt", "-r", "1"];

/// A process that uses up core 1, as real-time as the ranks, until it is dropped.
struct Burner(Child);

impl Burner {
    fn start(prefix: &[&str]) -> Burner {
        let line = ["taskset", "-c", "1", "sh", "-c", "while :; do :; done"];
        let line = [prefix, &line].concat();
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).stdin(Stdio::null());
        Burner(command.spawn().expect("taskset starts"))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is said of two ranks that are bound like this.
fn noise(bound_to: &str, prefix: &[&str]) -> Value {
    let place = folder();
    let path = place.path().to_string_lossy().into_owned();
    let line = format!("{BLAST} --telemetry {path} --telemetry_blocks --telemetry_rounds");
    let words: Vec<&str> = line.split_whitespace().collect();
    let job = job(2).launcher_argument("--bind-to");
    let job = job.launcher_argument(bound_to).prefix(prefix);
    let app = Mpi::OpenMpi.mini_app();
    job.run(&app.to_string_lossy(), &words).succeeds();
    json("noise", place.path())
}

#[test]
fn what_burns_a_core_is_laid_to_the_ranks_of_that_core_and_other_advice_is_given_where_ranks_are_not_pinned()
 {
    if !runs_long() || Mpi::OpenMpi.installed().is_none() {
        return;
    }
    let mut chrt = Command::new(REALTIME[0]);
    chrt.args(&REALTIME[1..]).arg("true");
    if !chrt.status().is_ok_and(|status| status.success()) {
        return skip("real-time scheduling is not permitted here").unwrap_or(());
    }
    let burner = Burner::start(&REALTIME);
    let pinned = noise("core", &REALTIME);
    drop(burner);
    println!("pinned: {} {}", pinned["processors"], pinned["verdict"]);
    assert_eq!(pinned["burdened"]["core"], 1, "{pinned}");
    let processors = pinned["processors"].as_array().expect("ranks").iter();
    let on_core: Vec<&Value> = processors
        .filter(|of| of["core"] == 1)
        .map(|of| &of["rank"])
        .collect();
    let named = &pinned["burdened"]["ranks"];
    assert_eq!(*named, serde_json::json!(on_core), "{pinned}");
    // Ranks that are not bound go to and fro between the burner's core and the other.
    let burner = Burner::start(&[]);
    let free = noise("none", &[]);
    drop(burner);
    println!("not pinned: {} {}", free["processors"], free["verdict"]);
    let advice = free["verdict"]["text"].as_str().expect("text");
    assert!(advice.contains("pin ranks"), "{free}");
    assert_eq!(free["burdened"], Value::Null, "{free}");
    let quiet = noise("core", &REALTIME);
    println!("quiet: {} {}", quiet["processors"], quiet["verdict"]);
    assert_eq!(quiet["burdened"], Value::Null, "{quiet}");
}
