//! Files use what lies below them, never each other in a circle; and so do the folders of shim and core.
//!
//! An arrow goes from a file that names something to the file that defines it: by `use`, and by any path in
//! types, expressions, patterns and the arguments of macros. A `mod` line is no arrow, and neither is a
//! re-export, which is followed to where the name is defined. So a parent may declare its children, re-export
//! them and call them; a child that then uses what the parent itself defines is a circle: what they share
//! belongs into a file below both. What is compiled for tests alone may look at anything. Methods are not
//! followed, because no path names them. What a folder's files use, the folder uses, and the file of its name belongs to
//! it.

mod graph;
mod modules;
mod path;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use graph::{Graph, circles, graph, way_round};
use modules::Crate;

/// The roots of all crates, of the workspace and of those that are built once per MPI library.
const ROOTS: [&str; 28] = [
    "src/files/src/lib.rs",
    "src/core/src/lib.rs",
    "src/placement/src/lib.rs",
    "src/placement/capi/src/lib.rs",
    "src/emulate/src/lib.rs",
    "src/output/src/lib.rs",
    "src/launch/src/lib.rs",
    "src/lab/src/lib.rs",
    "src/bench/src/main.rs",
    "src/cli/src/main.rs",
    "src/mpi/src/lib.rs",
    "src/mpibench/src/main.rs",
    "models/src/lib.rs",
    "models/machines/src/lib.rs",
    "models/xgboost/src/lib.rs",
    "tuning-db/src/lib.rs",
    "src/report/src/lib.rs",
    "src/query/src/lib.rs",
    "src/statistics/src/lib.rs",
    "src/telemetry/src/lib.rs",
    "src/timeline/src/lib.rs",
    "src/amr/src/lib.rs",
    "examples/amr/mpi/src/main.rs",
    "docs/check/src/lib.rs",
    "tests/src/lib.rs",
    "shim/src/lib.rs",
    "messages/src/lib.rs",
    // Its targets stand alone.
    "fuzz/fuzz_targets/trace.rs",
];

/// Crates whose folders are looked at, too.
const WITH_LAYERS: [&str; 2] = ["src/core/src/lib.rs", "shim/src/lib.rs"];

/// What a folder uses though it lies above: the crate, the folder, and the other one. The list gets shorter, never longer.
const UPWARD: [(&str, &str, &str); 1] = [("src/core/src", "settings", "prior")];

/// The shim's layers with their folders, the lowest first: what a folder uses stands in its own layer or below.
const SHIM_LAYERS: [(&str, &[&str]); 7] = [
    (
        "ground",
        &[
            "abi",
            "call_log",
            "clock",
            "code_pages",
            "fault_tolerance",
            "flight",
            "floating",
            "frames",
            "gap",
            "gpu",
            "handout",
            "incoming",
            "library",
            "limits",
            "passing_calls",
            "private",
            "processors",
            "quiet",
            "recorder",
            "scratch",
            "site",
            "spending",
            "switch",
            "warn",
            "world",
        ],
    ),
    ("transports", &["messages"]),
    (
        "job and arguments",
        &["account", "arguments", "handshake", "members", "names"],
    ),
    (
        "families",
        &["fixed_order", "node", "p2p", "padded", "steer"],
    ),
    (
        "communicators",
        &["communicator", "context", "lever", "own"],
    ),
    ("decisions", &["tune"]),
    (
        "functions",
        &[
            "fence",
            "forms",
            "fortran",
            "intercept",
            "levers",
            "lib",
            "pending",
            "start",
            "watch",
        ],
    ),
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A crate with what its files use.
struct Read {
    root: String,
    all: Crate,
    graph: Graph,
}

impl Read {
    fn new(top: &Path, root: &str) -> Read {
        let all = Crate::read(&top.join(root));
        let graph = graph(&all);
        let (folder, _) = root.rsplit_once('/').expect("a root stands in a folder");
        let root = folder.to_owned();
        Read { root, all, graph }
    }

    /// Below the crate's folder, where it stands there.
    fn name(&self, top: &Path, file: usize) -> String {
        let file = &self.all.files[file];
        let below = file.strip_prefix(top.join(&self.root));
        below.unwrap_or(file).display().to_string()
    }

    /// The crate's folders, by name, and which of them uses which. A file without a folder stands for one.
    fn folders(&self, top: &Path) -> (Vec<String>, Graph) {
        let of_file = (0..self.all.files.len()).map(|file| {
            let name = self.name(top, file);
            let first = name.split('/').next().unwrap_or_default();
            first.trim_end_matches(".rs").to_owned()
        });
        let of_file: Vec<String> = of_file.collect();
        let mut names = of_file.clone();
        names.sort_unstable();
        names.dedup();
        let folder_of = |file: usize| {
            let found = names.binary_search(&of_file[file]);
            found.expect("each file is in one")
        };
        let mut graph: Graph = (0..names.len())
            .map(|folder| (folder, BTreeSet::new()))
            .collect();
        for (&file, used) in &self.graph {
            let folder = folder_of(file);
            let used = used.iter().map(|&used| folder_of(used));
            let others = used.filter(|other| *other != folder);
            graph.entry(folder).or_default().extend(others);
        }
        (names, graph)
    }
}

/// Takes those arrows out that go upward by permission; says which of them close no circle.
fn without_upward(root: &str, names: &[String], graph: &mut Graph) -> Vec<String> {
    let circles = circles(graph);
    let place = |name: &str| names.iter().position(|other| other == name);
    let mut unneeded = Vec::new();
    for (_, folder, above) in UPWARD.iter().filter(|(of, ..)| *of == root) {
        let ends = place(folder).zip(place(above));
        let arrow = ends.filter(|(folder, above)| {
            let mut circles = circles.iter();
            circles.any(|circle| circle.contains(folder) && circle.contains(above))
        });
        let is_used = arrow.is_some_and(|(folder, above)| {
            let used = graph.get_mut(&folder);
            used.is_some_and(|used| used.remove(&above))
        });
        if !is_used {
            unneeded.push(format!(
                "{root}: {folder} may use {above} and need not: take it out of UPWARD"
            ));
        }
    }
    unneeded
}

#[test]
fn no_file_uses_one_that_uses_it() {
    let top = top();
    let mut problems = Vec::new();
    for root in ROOTS {
        let read = Read::new(&top, root);
        for circle in circles(&read.graph) {
            let names: BTreeSet<_> = circle.iter().map(|file| read.name(&top, *file)).collect();
            let way: Vec<_> = way_round(&read.graph, &circle)
                .into_iter()
                .map(|file| read.name(&top, file))
                .collect();
            problems.push(format!(
                "{}: {} files use each other, as in {}; all of them: {names:?}",
                read.root,
                names.len(),
                way.join(" -> ")
            ));
        }
    }
    assert!(
        problems.is_empty(),
        "put what both sides use below them:\n{}",
        problems.join("\n")
    );
}

#[test]
fn no_folder_uses_one_that_uses_it() {
    let top = top();
    let mut problems = Vec::new();
    for root in WITH_LAYERS {
        let read = Read::new(&top, root);
        let (names, mut graph) = read.folders(&top);
        problems.extend(without_upward(&read.root, &names, &mut graph));
        for circle in circles(&graph) {
            let way = way_round(&graph, &circle);
            let way = way.iter().map(|folder| names[*folder].as_str());
            let way: Vec<_> = way.collect();
            problems.push(format!("{}: {}", read.root, way.join(" -> ")));
        }
    }
    assert!(
        problems.is_empty(),
        "put what both folders use below them:\n{}",
        problems.join("\n")
    );
}

#[test]
fn the_shims_layers_stand_in_their_order() {
    let top = top();
    let read = Read::new(&top, "shim/src/lib.rs");
    let (names, graph) = read.folders(&top);
    let layer_of = |folder: &str| {
        let holds = |(_, folders): &(&str, &[&str])| folders.contains(&folder);
        let layer = SHIM_LAYERS.iter().position(holds);
        layer.unwrap_or_else(|| panic!("shim/src/{folder} is in none of SHIM_LAYERS"))
    };
    for (layer, folders) in SHIM_LAYERS {
        for folder in folders {
            let is_there = names.iter().any(|name| name == folder);
            assert!(is_there, "{layer}: there is no shim/src/{folder}");
        }
    }
    let arrows = graph
        .iter()
        .flat_map(|(folder, used)| used.iter().map(move |used| (*folder, *used)));
    let upward: Vec<String> = arrows
        .map(|(folder, used)| (names[folder].as_str(), names[used].as_str()))
        .filter(|(folder, used)| layer_of(folder) < layer_of(used))
        .map(|(folder, used)| format!("{folder} -> {used}"))
        .collect();
    assert!(upward.is_empty(), "from below: {upward:?}");
    let used: usize = graph.values().map(BTreeSet::len).sum();
    assert!(used > 100, "{used} arrows: the files were not read");
}

#[test]
fn every_crate_is_looked_at() {
    let top = top();
    let list = |name: &str| {
        let text = std::fs::read_to_string(top.join("Cargo.toml")).expect("the workspace's file");
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {name} in Cargo.toml"))
    };
    let all = list("members") + &list("exclude");
    let folders = all
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| !text.contains('['));
    for folder in folders {
        // Directly inside this folder; that of another crate may lie further down.
        let inside = |root: &&str| {
            let rest = root.strip_prefix(&format!("{folder}/"));
            rest.is_some_and(|rest| rest.split('/').count() == 2)
        };
        assert!(ROOTS.iter().any(inside), "{folder} is not in ROOTS");
    }
}

/// A crate of these files, and where it stands.
fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, Read) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let read = Read::new(folder.path(), "src/lib.rs");
    (folder, read)
}

/// The circles of a crate of these files, by name.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let (folder, read) = made(files);
    let name = |file: &usize| read.name(folder.path(), *file);
    let circles = circles(&read.graph);
    circles
        .iter()
        .map(|circle| circle.iter().map(name).collect())
        .collect()
}

#[test]
fn a_parent_may_declare_and_call_and_a_child_may_take_from_below_both() {
    let parent = "mod a; mod b; pub use b::B; pub fn all() -> B { a::make() }";
    let a =
        "use super::B; pub fn make() -> B { B }\n#[cfg(test)] mod tests { use super::super::all; }";
    let none = circles_of(&[("lib.rs", parent), ("a.rs", a), ("b.rs", "pub struct B;")]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn a_circle_is_found_through_imports_paths_globs_macros_and_re_exports() {
    let back = "pub struct B; pub fn back() { let _ = crate::a::A; }";
    let ways = [
        "use crate::b::B; pub struct A; fn own(_: B) {}",
        "use crate::b; pub struct A; fn own() { b::back() }",
        "use crate::b::*; pub struct A; fn own(_: B) {}",
        "use crate::b; pub struct A; fn own() { assert!(true, \"{:?}\", b::back()) }",
        "pub struct A; fn own() { use super::facade::B as Other; let _ = Other; }",
        "pub struct A; impl From<crate::facade::B> for A { fn from(_: crate::facade::B) -> A { A } }",
    ];
    for a in ways {
        let files = [
            (
                "lib.rs",
                "mod a; mod b; mod facade { pub use super::b::B; }",
            ),
            ("a.rs", a),
            ("b.rs", back),
        ];
        assert_eq!(circles_of(&files), [["a.rs", "b.rs"]], "{a}");
    }
    let child = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; pub struct A; fn own() { b::make(); }"),
    ];
    let child = [
        child[0],
        child[1],
        ("a/b.rs", "use super::A; pub fn make() -> A { A }"),
    ];
    assert_eq!(circles_of(&child), [["a.rs", "a/b.rs"]]);
}

#[test]
fn a_circle_of_folders_is_found_where_no_file_is_in_one() {
    let (folder, read) = made(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub mod low; pub mod high;"),
        ("a/low.rs", "pub struct Low;"),
        ("a/high.rs", "use crate::b::Middle; fn own(_: Middle) {}"),
        ("b.rs", "mod middle; pub use middle::Middle;"),
        (
            "b/middle.rs",
            "use crate::a::low::Low; pub struct Middle(Low);",
        ),
        ("c.rs", "use crate::a::low::Low; fn own(_: Low) {}"),
    ]);
    assert!(circles(&read.graph).is_empty());
    let (names, graph) = read.folders(folder.path());
    let found = circles(&graph);
    let found: Vec<_> = found.iter().flatten().map(|at| &names[*at]).collect();
    assert_eq!(found, ["a", "b"]);
}
