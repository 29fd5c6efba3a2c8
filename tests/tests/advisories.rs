//! Known faults of the crates that are locked, out of a snapshot of the RustSec advisory database.
//!
//! `scripts/advisories CLONE` makes the snapshot anew. What is accepted stands in `deny.toml` with its reason, where
//! `cargo deny check advisories`, which asks the database itself, reads it, too.

use std::collections::BTreeSet;
use std::path::PathBuf;

use semver::{Version, VersionReq};

const LOCKS: [&str; 6] = [
    "Cargo.lock",
    "shim/Cargo.lock",
    "messages/Cargo.lock",
    "src/mpibench/Cargo.lock",
    "examples/amr/mpi/Cargo.lock",
    "fuzz/Cargo.lock",
];

fn text(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One line of the snapshot.
struct Advisory<'a> {
    id: &'a str,
    package: &'a str,
    /// Versions without the fault.
    sound: Vec<VersionReq>,
}

impl Advisory<'_> {
    fn of(line: &str) -> Advisory<'_> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [id, package, _, repaired, never] = fields[..] else {
            panic!("{line}");
        };
        let ranges = repaired.split('|').chain(never.split('|'));
        let ranges = ranges.filter(|range| !range.is_empty());
        let sound = ranges.map(|range| VersionReq::parse(range).expect(line));
        Advisory {
            id,
            package,
            sound: sound.collect(),
        }
    }

    fn is_of(&self, package: &str, version: &Version) -> bool {
        self.package == package && !self.sound.iter().any(|range| range.matches(version))
    }
}

fn snapshot(text: &str) -> Vec<Advisory<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(Advisory::of).collect()
}

/// Names and versions of a lock file.
fn locked(text: &str) -> Vec<(String, Version)> {
    let value = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        Some(value.strip_suffix('"')?.to_owned())
    };
    let blocks = text.split("[[package]]").skip(1);
    let of_block = |block: &str| {
        let name = block.lines().find_map(|line| value(line, "name"))?;
        let version = block.lines().find_map(|line| value(line, "version"))?;
        Some((name, Version::parse(&version).ok()?))
    };
    blocks
        .map(|block| of_block(block).expect("a name and a version"))
        .collect()
}

#[test]
fn no_locked_crate_has_a_known_fault_that_is_not_accepted_with_a_reason() {
    let table = text("tests/advisories.tsv");
    let advisories = snapshot(&table);
    assert!(advisories.len() > 1000, "{}", advisories.len());
    let mut found = BTreeSet::new();
    for lock in LOCKS {
        let crates = locked(&text(lock));
        assert!(crates.len() > 10, "{lock}: {}", crates.len());
        for (name, version) in crates {
            let known = advisories.iter().filter(|one| one.is_of(&name, &version));
            found.extend(known.map(|one| one.id.to_owned()));
        }
    }
    let accepted: BTreeSet<String> = text("deny.toml")
        .lines()
        .filter_map(|line| {
            Some(
                line.split_once("{ id = \"")?
                    .1
                    .split_once('"')?
                    .0
                    .to_owned(),
            )
        })
        .collect();
    assert_eq!(found, accepted, "what applies, and what deny.toml accepts");
}

#[test]
fn a_version_is_faulty_unless_it_is_repaired_or_older_than_the_fault() {
    let line = "RUSTSEC-0000-0001\tone\tunsound\t^0.5.1|>= 0.6.3\t< 0.3.2";
    let advisory = Advisory::of(line);
    let faulty = |version: &str| advisory.is_of("one", &Version::parse(version).unwrap());
    for (version, wrong) in [
        ("0.3.1", false),
        ("0.3.2", true),
        ("0.5.0", true),
        ("0.5.4", false),
        ("0.6.2", true),
        ("1.0.0", false),
    ] {
        assert_eq!(faulty(version), wrong, "{version}");
    }
    assert!(!advisory.is_of("two", &Version::new(0, 5, 0)));
}
