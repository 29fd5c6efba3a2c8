//! Files use what lies below them, never each other in a circle.
//!
//! An arrow goes from a file that names something to the file that defines it: by `use`, and by any path in
//! types, expressions, patterns and the arguments of macros. A `mod` line is no arrow, and neither is a
//! re-export, which is followed to where the name is defined. So a parent may declare its children, re-export
//! them and call them; a child that then uses what the parent itself defines is a circle: what they share
//! belongs into a file below both. What is compiled for tests alone may look at anything. Methods are not
//! followed, because no path names them.

mod graph;
mod modules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use graph::{Graph, circles, graph, way_round};
use modules::Crate;

/// The roots of all crates, of the workspace and of those that are built once per MPI library.
const ROOTS: [&str; 23] = [
    "src/files/src/lib.rs",
    "src/core/src/lib.rs",
    "src/placement/src/lib.rs",
    "src/placement/capi/src/lib.rs",
    "src/emulate/src/lib.rs",
    "src/cli/src/lib.rs",
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
    "examples/amr/src/lib.rs",
    "examples/amr/mpi/src/main.rs",
    "docs/check/src/lib.rs",
    "tests/src/lib.rs",
    "shim/src/lib.rs",
    // Its targets stand alone.
    "fuzz/fuzz_targets/trace.rs",
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
        // In a folder of its own; that of another crate may lie further down.
        let inside = |root: &&str| {
            let rest = root.strip_prefix(&format!("{folder}/"));
            rest.is_some_and(|rest| rest.split('/').count() == 2)
        };
        assert!(ROOTS.iter().any(inside), "{folder} is not in ROOTS");
    }
}

/// The circles of a crate of these files, by name.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let read = Read::new(folder.path(), "src/lib.rs");
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
