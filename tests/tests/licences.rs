//! Licences and sources of the crates that builds are made of, as `deny.toml` has them: what `cargo deny check` looks at,
//! too, in every run of the tests and without a network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_tests::skip;
use serde_json::Value;

/// Each with its own lock. The fuzzer's crates are fetched only for fuzzing.
const MANIFESTS: [&str; 5] = [
    "Cargo.toml",
    "shim/Cargo.toml",
    "messages/Cargo.toml",
    "src/mpibench/Cargo.toml",
    "examples/amr/mpi/Cargo.toml",
];
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Words in quotes.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// What is allowed for every crate, and beside it for one.
struct Allowed {
    all: BTreeSet<String>,
    exceptions: Vec<(String, BTreeSet<String>)>,
}

impl Allowed {
    fn read(text: &str) -> Allowed {
        let line = text.lines().find(|line| line.starts_with("allow = "));
        let exceptions = text.lines().filter_map(|line| {
            let (name, rest) = line.split_once("{ crate = \"")?.1.split_once('"')?;
            Some((name.to_owned(), quoted(rest.split_once("allow = ")?.1)))
        });
        Allowed {
            all: quoted(line.expect("a list of licences")),
            exceptions: exceptions.collect(),
        }
    }

    fn takes(&self, name: &str, licence: &str) -> bool {
        let mut own = self.exceptions.iter().filter(|(of, _)| of == name);
        self.all.contains(licence) || own.any(|(_, licences)| licences.contains(licence))
    }
}

/// The words of an SPDX expression, or of what crates had before: `MIT/Apache-2.0`.
fn words(expression: &str) -> Vec<String> {
    let apart = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace(" WITH ", "+WITH+");
    let words = apart.split_whitespace();
    words.map(|word| word.replace("+WITH+", " WITH ")).collect()
}

/// Whether an expression holds where some licences are allowed; reads up to the closing bracket.
fn holds(words: &mut std::slice::Iter<'_, String>, allowed: &dyn Fn(&str) -> bool) -> bool {
    // Of terms joined by OR one, of factors joined by AND each.
    let (mut any, mut all) = (false, true);
    while let Some(word) = words.next() {
        match word.as_str() {
            "(" => all &= holds(words, allowed),
            ")" => break,
            "AND" => {}
            "OR" => {
                any |= all;
                all = true;
            }
            licence => all &= allowed(licence),
        }
    }
    any | all
}

#[test]
fn every_crate_of_a_build_is_of_the_registry_and_under_a_licence_that_is_allowed() {
    let text = std::fs::read_to_string(top().join("deny.toml")).expect("it is there");
    let allowed = Allowed::read(&text);
    assert!(allowed.all.len() > 5 && allowed.exceptions.len() == 2);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut seen = 0;
    for manifest in MANIFESTS {
        let asked = Command::new(&cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--offline"])
            .args([
                "--filter-platform",
                "x86_64-unknown-linux-gnu",
                "--manifest-path",
            ])
            .arg(top().join(manifest))
            .output()
            .expect("cargo starts");
        let said = String::from_utf8_lossy(&asked.stderr);
        if !asked.status.success() && said.contains("--offline was specified") {
            return skip(&format!("crates of {manifest} are not fetched yet")).unwrap_or(());
        }
        assert!(asked.status.success(), "{manifest}: {said}");
        let metadata: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
        for one in metadata["packages"].as_array().expect("crates") {
            let name = one["name"].as_str().expect("a name");
            let source = one["source"].as_str();
            assert!(
                source.is_none_or(|source| source == REGISTRY),
                "{name} is of {source:?}"
            );
            let licence = one["license"].as_str().unwrap_or("no licence");
            let expression = words(licence);
            let takes = |licence: &str| allowed.takes(name, licence);
            assert!(
                holds(&mut expression.iter(), &takes),
                "{manifest}: {name} is under {licence}, which deny.toml does not allow"
            );
            seen += 1;
        }
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn of_licences_joined_by_or_one_is_enough_and_of_those_joined_by_and_all_are_needed() {
    let takes =
        |licence: &str| ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].contains(&licence);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR Zlib) AND MIT", true),
        ("(GPL-3.0 OR ISC) AND MIT", false),
        ("MIT AND (GPL-3.0 OR ISC)", false),
        ("GPL-3.0 OR MIT AND ISC", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
        ("Apache-2.0", false),
    ] {
        let words = words(expression);
        assert_eq!(holds(&mut words.iter(), &takes), expected, "{expression}");
    }
}

/// PyPI's `reuse` looks at every file of a checkout.
#[test]
fn whose_each_file_is_and_under_which_licence_is_said() {
    match Command::new("reuse")
        .arg("lint")
        .current_dir(top())
        .output()
    {
        Ok(checked) => {
            let said = String::from_utf8_lossy(&checked.stdout).into_owned();
            assert!(checked.status.success(), "{said}");
        }
        Err(_) => skip("PyPI's reuse is missing").unwrap_or(()),
    }
}
