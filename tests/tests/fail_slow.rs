//! A slow node of a cluster is named by the mini-app's telemetry and by any program's recorded collectives.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use colltune_tests::{
    Cluster, DutyCycle, Mpi, colltune, colltune_lab, copy_to_run, folder, is_long, target_folder,
};
use serde_json::Value;

/// Blocks of a gas, 8^3 cells each, on two levels.
const BLAST: &str = "--physics euler --nx 8 --ny 8 --nz 8 --npx 2 --npy 2 --npz 2 --num_refine 1 --refine_freq 10 \
    --refine_buffer 0 --sedov_centre .3 .4 .2 --checksum_freq 2";
/// The same number of blocks on each of two ranks.
const EVEN: &str = "--physics euler --nx 8 --ny 8 --nz 8 --npx 2 --npy 2 --npz 2 --num_refine 0 \
    --sedov_centre .3 .4 .2 --checksum_freq 2";
const NODES: usize = 4;
const SLOTS: usize = 2;
/// A stopped node runs and stands once in this time, on the average. When it may run again others may have its cores,
/// for half a millisecond, which adds to what it stood.
const PERIOD: Duration = Duration::from_millis(10);

/// How a node is made slow.
#[derive(Clone, Copy, Debug)]
enum Injection {
    None,
    /// Its ranks compute for so many times as long.
    Spinning(f64),
    /// Its ranks are stopped for a share of the time.
    Stopping(f64),
}

/// How many times slower a node is made, in both ways. All of them take minutes; of a node that stands half of the time
/// few steps of a short run tell.
fn injections() -> Vec<Injection> {
    if !is_long() {
        return vec![Injection::Spinning(2.0), Injection::Stopping(4.0)];
    }
    let both = |factor| [Injection::Spinning(factor), Injection::Stopping(factor)];
    [1.3, 2.0, 4.0].into_iter().flat_map(both).collect()
}

/// Other work on this machine may hide what was injected, or look like a fault: in the short suite one of some runs has
/// to say what is so; in the long one each.
fn tries() -> usize {
    if is_long() { 1 } else { 3 }
}

fn ranks_of(node: usize) -> [usize; SLOTS] {
    std::array::from_fn(|slot| node * SLOTS + slot)
}

fn ask(arguments: &[&str]) -> Value {
    let mut line = Command::new(colltune_lab());
    let output = line
        .args(["telemetry", "health", "--json"])
        .args(arguments)
        .output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Runs the mini-app; gives what its telemetry says, and how slow the node was made in truth.
fn health(cluster: &Cluster, node: usize, injection: Injection, n_steps: u32) -> (Value, f64) {
    let place = folder();
    let path = place.path().to_string_lossy().into_owned();
    let mut line = format!("{BLAST} --num_tsteps {n_steps} --telemetry {path} --telemetry_blocks");
    let [first, last] = ranks_of(node);
    let mut cycle = None;
    match injection {
        Injection::None => {}
        Injection::Spinning(factor) => line += &format!(" --slow {first}-{last}:{factor}"),
        Injection::Stopping(factor) => {
            let runs = PERIOD.div_f64(factor);
            cycle = Some(DutyCycle::start(
                &path,
                &ranks_of(node),
                [runs, PERIOD - runs],
            ));
        }
    }
    let app = Mpi::OpenMpi.mini_app();
    let words: Vec<&str> = line.split_whitespace().collect();
    let outcome = cluster.run(&[], &app.to_string_lossy(), &words);
    let truth = match (injection, cycle) {
        (Injection::Spinning(factor), _) => factor,
        (_, Some(cycle)) => cycle.factor(),
        _ => 1.0,
    };
    outcome.succeeds();
    (ask(&[&path]), truth)
}

/// Whether the one verdict is that node, with a factor near the truth.
fn is_named(found: &Value, node: usize, truth: f64, tolerance: f64) -> bool {
    let verdicts = found["verdicts"].as_array().expect("verdicts");
    let [verdict] = &verdicts[..] else {
        return false;
    };
    let factor = verdict["factor"].as_f64().expect("a number");
    verdict["suspect"] == "node"
        && verdict["host"] == format!("node{node}")
        && (factor / truth - 1.0).abs() < tolerance
}

fn told(found: &Value) -> String {
    let verdicts = found["verdicts"].as_array().expect("verdicts").iter();
    let told = verdicts.map(|verdict| {
        format!(
            "{} {} ranks {} {:.3} in steps {}",
            verdict["suspect"],
            verdict["host"],
            verdict["ranks"],
            verdict["factor"],
            verdict["steps"]
        )
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Runs of a kind of injection and those of them in which the node was named.
type Counts = BTreeMap<String, [usize; 2]>;

fn count(cluster: &Cluster, n_runs: usize) -> Counts {
    let (n_steps, tolerance) = steps_and_tolerance();
    let mut counts = Counts::new();
    for run in 0..n_runs {
        for injection in injections() {
            let node = (run + 2) % NODES;
            let named = (0..tries()).any(|_| {
                let (found, truth) = health(cluster, node, injection, n_steps);
                println!(
                    "run {run}, node{node} {injection:?}, in truth {truth:.3}: {}",
                    told(&found)
                );
                is_named(&found, node, truth, tolerance)
            });
            let of = counts.entry(format!("{injection:?}")).or_default();
            *of = [of[0] + 1, of[1] + usize::from(named)];
        }
    }
    counts
}

#[test]
fn a_node_that_computes_slowly_or_is_stopped_again_and_again_is_named_with_its_factor_and_no_healthy_one_is()
 {
    let Some(cluster) = cluster() else { return };
    let (n_runs, n_healthy) = if is_long() { (20, 100) } else { (1, 1) };
    let counts = count(&cluster, n_runs);
    let (n_steps, _) = steps_and_tolerance();
    let mut alarms = 0;
    for run in 0..n_healthy {
        let is_quiet = (0..tries()).any(|_| {
            let (found, _) = health(&cluster, 0, Injection::None, n_steps);
            println!("healthy run {run}: {}", told(&found));
            told(&found).is_empty()
        });
        alarms += usize::from(!is_quiet);
    }
    println!("{counts:?} (runs, named); {alarms} alarms in {n_healthy} healthy runs");
    assert!(
        counts.values().all(|[runs, named]| runs == named),
        "{counts:?}"
    );
    assert_eq!(alarms, 0);
}

/// Steps, and how far from the truth a factor may be: it rests on some hundred stops, in the short suite on fewer.
fn steps_and_tolerance() -> (u32, f64) {
    if is_long() { (2400, 0.1) } else { (800, 0.2) }
}

fn cluster() -> Option<Cluster> {
    Cluster::up(Mpi::OpenMpi.installed()?, NODES, SLOTS)
}

/// What the shim recorded of the mini-app's collectives, without any telemetry. A core for each rank: where ranks share
/// cores, who comes last is who is served last. Beside other work calls take so long that a node of half the speed is
/// hardly later than that, and a core that others use is late in truth: both are asked in the long suite alone.
#[test]
fn a_slow_node_comes_late_to_collectives_by_what_any_program_s_ranks_recorded() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let Some(cluster) = Cluster::up(mpi, 2, 1) else {
        return;
    };
    let injected: &[(usize, f64)] = if is_long() {
        &[(0, 1.0), (1, 2.0), (0, 4.0)]
    } else {
        &[(1, 8.0), (0, 8.0)]
    };
    for &(slow, factor) in injected {
        let host = format!("node{slow}");
        let expected: &[&str] = if factor > 1.0 { &[&host] } else { &[] };
        let mut said = (0..tries()).map(|_| latecomers(mpi, &cluster, slow, factor));
        assert!(said.any(|late| late == expected), "{factor}: {expected:?}");
    }
}

/// The hosts that are late by what was recorded of a job in which one node is so many times slower.
fn latecomers(mpi: Mpi, cluster: &Cluster, slow: usize, factor: f64) -> Vec<String> {
    let db = folder();
    let line = format!("{EVEN} --num_tsteps 150 --slow {slow}:{factor}");
    let output = Command::new(colltune())
        .args(["run", "--mode", "record", "--db"])
        .arg(db.path())
        .args(["--", &cluster.mpirun(), "-n", "2"])
        .arg(mpi.mini_app())
        .args(line.split_whitespace())
        .env("COLLTUNE_LIB", target_folder())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let found = ask(&["--db", &db.path().to_string_lossy()]);
    println!("{factor}: {found}");
    let hosts = found["hosts"].as_array().expect("hosts").iter();
    let late = hosts.filter(|of| of["is_late"] == true);
    late.map(|of| of["host"].as_str().expect("a name").to_owned())
        .collect()
}

/// What leaves a node comes late while all of them compute alike.
#[test]
fn a_link_that_is_slower_than_its_peers_is_named() {
    let Some(cluster) = cluster() else { return };
    // Of even links nothing can be asked on a busy machine.
    let cases = if is_long() {
        &[None, Some(2)][..]
    } else {
        &[Some(2)]
    };
    for &slow in cases {
        if let Some(node) = slow {
            let words = "tc qdisc replace dev eth0 root tbf rate 20mbit burst 64k latency 200ms";
            cluster.on_node(node, &words.split(' ').collect::<Vec<_>>());
        }
        let place = folder();
        let path = place.path().to_string_lossy();
        let line = format!(
            "{BLAST} --num_tsteps 100 --telemetry {path} --telemetry_blocks --telemetry_rounds"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        let app = Mpi::OpenMpi.mini_app();
        cluster.run(&[], &app.to_string_lossy(), &words).succeeds();
        let links = &ask(&[&path])["links"];
        println!(
            "{slow:?}: {} {} us, {} ns a byte",
            links["slow"], links["latency"], links["per_byte"]
        );
        let named: Vec<(&str, &str)> = links["slow"]
            .as_array()
            .expect("links")
            .iter()
            .map(|link| {
                (
                    link["way"].as_str().expect("a word"),
                    link["host"].as_str().expect("a name"),
                )
            })
            .collect();
        // What else runs on this machine may make any link look slow, and keep a slow one from standing out: on a quiet
        // one neither happens. The slowest pair begins at the slow link in any case: it takes a hundred times as long.
        match slow {
            _ if is_long() => {
                let expected = slow.map(|node| ("from", format!("node{node}")));
                let named = named.iter().map(|&(way, host)| (way, host.to_owned()));
                assert_eq!(
                    named.collect::<Vec<_>>(),
                    Vec::from_iter(expected),
                    "{links}"
                );
            }
            Some(node) => assert_eq!(links["pairs"][0]["from"], format!("node{node}"), "{links}"),
            None => {}
        }
    }
}

/// `colltune doctor --nodes` on the cluster; what it printed, and its exit code.
fn doctor(cluster: &Cluster, lib: &Path, more: &[&str]) -> (String, Option<i32>) {
    let mpirun = cluster.mpirun();
    let app = Mpi::OpenMpi.mini_app();
    let output = Command::new(colltune())
        .args(["doctor", "--nodes"])
        .args(more)
        .args(["--", &mpirun, "-n", "4"])
        .arg(app)
        .env("COLLTUNE_LIB", lib)
        .output()
        .expect("it starts");
    let told = [&output.stdout[..], &output.stderr[..]].concat();
    (
        String::from_utf8_lossy(&told).into_owned(),
        output.status.code(),
    )
}

#[test]
fn a_sick_node_is_found_before_the_job_and_left_out_of_the_host_file() {
    let Some(mpi) = Mpi::OpenMpi.installed() else {
        return;
    };
    let Some(cluster) = Cluster::up(mpi, 4, 1) else {
        return;
    };
    let place = folder();
    // Of these ranks alone the command line holds the folder.
    let (lib, built) = (place.path().join("lib"), mpi.mini_app());
    std::fs::create_dir(&lib).expect("a folder");
    for name in ["libcolltune.so", "colltune-mpibench"] {
        copy_to_run(&built.with_file_name(name), &lib.join(name));
    }
    let lib = lib.join("libcolltune.so");
    let (db, hosts) = (place.path().join("db"), place.path().join("hosts"));
    let told = [
        "--db",
        &*db.to_string_lossy(),
        "--write-hostfile",
        &*hosts.to_string_lossy(),
    ]
    .map(str::to_owned);
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    let (said, code) = doctor(&cluster, &lib, &told);
    println!("{said}");
    let healthy = "node0 slots=1\nnode1 slots=1\nnode2 slots=1\nnode3 slots=1\n";
    let left = || std::fs::read_to_string(&hosts).expect("a file");
    // What else runs on this machine may make any of them look sick: on a quiet one none does.
    let quiet = is_long();
    if quiet {
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(left(), healthy);
    }
    let is_found = (0..tries()).any(|_| {
        let share = [PERIOD / 4, 3 * PERIOD / 4];
        let cycle = DutyCycle::start(&place.path().to_string_lossy(), &[2], share);
        let (said, code) = doctor(&cluster, &lib, &told);
        println!(
            "{said} (in truth {:.2}), exit code {code:?}",
            cycle.factor()
        );
        let is_left_out = match quiet {
            true => left() == healthy.replace("node2 slots=1\n", ""),
            false => !left().contains("node2"),
        };
        code == Some(3) && said.contains("fail  node2: computing takes") && is_left_out
    });
    assert!(is_found, "{}", left());
    std::fs::write(db.join("colltune.toml"), "exclude_hosts = [\"node1\"]\n").expect("written");
    let (said, code) = doctor(&cluster, &lib, &told);
    assert!(!left().contains("node1"), "{said}");
    if quiet {
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(left(), healthy.replace("node1 slots=1\n", ""));
    }
}
