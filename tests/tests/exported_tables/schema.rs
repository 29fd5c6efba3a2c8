//! The rules of Open MPI 6, of which there is no release to try them with, are held against a schema of their format.

use std::path::Path;
use std::process::{Command, Stdio};

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::space::Range;
use colltune_tests::{colltune, folder, skip};
use serde_json::Value;

use crate::database::database;
use crate::winners::Winners;

const LIBRARY: &str = "openmpi-5.0.11";

/// Prints what is wrong with each of the files that come on standard input, by the schema of the first argument.
const CHECK: &str = "
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
complaints = [[error.json_path + ': ' + error.message for error in validator.iter_errors(file)] for file in json.load(sys.stdin)]
json.dump(complaints, sys.stdout)
";

/// What the schema says against each file; nothing where it is sound.
fn complaints(files: &[&Value]) -> Vec<Vec<String>> {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/openmpi6/schema.json");
    let mut child = Command::new("timeout")
        .args(["60", "python3", "-W", "ignore", "-c", CHECK])
        .arg(schema)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("timeout starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    serde_json::to_writer(&mut stdin, files).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("lists")
}

/// The rules of a database in which these variants win, each from where the one before ends.
fn rules(winners: Winners) -> Value {
    let folder = folder();
    let library: Library = LIBRARY.parse().expect("a library");
    let anywhere = Range { lo: 1, hi: None };
    let db = database(library, &[(anywhere, winners)], folder.path());
    let output = Command::new(colltune())
        .args(["export", "--format", "openmpi6", "-o", "-", "--db"])
        .arg(db)
        .output()
        .expect("colltune starts");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn rules_of_every_algorithm_are_of_the_format_of_open_mpi_6() {
    let known = Command::new("python3")
        .args(["-c", "import jsonschema; jsonschema.Draft202012Validator"])
        .stderr(Stdio::null())
        .status();
    if !known.is_ok_and(|known| known.success()) {
        skip::<()>("Python's jsonschema is missing (python3-jsonschema)");
        return;
    }
    let library: Library = LIBRARY.parse().expect("a library");
    let native = |collective: &Collective| {
        let all = catalogue::variants(library, *collective).into_iter();
        let names = all.map(|variant| variant.name.to_string());
        let native = names.filter(|name| name.starts_with("native:"));
        native.collect::<Vec<_>>()
    };
    let names: Vec<(Collective, Vec<String>)> = (Collective::ALL.iter())
        .map(|collective| (*collective, native(collective)))
        .filter(|(collective, native)| *collective != Collective::Barrier && !native.is_empty())
        .collect();
    let begins = |place: usize| if place == 0 { 0 } else { 1 << (place + 4) };
    let steps: Vec<(Collective, Vec<(u64, &str)>)> = (names.iter())
        .map(|(collective, names)| {
            let names = names.iter().enumerate();
            let steps = names.map(|(place, name)| (begins(place), name.as_str()));
            (*collective, steps.collect())
        })
        .collect();
    let winners: Vec<(Collective, &[(u64, &str)])> = (steps.iter())
        .map(|(collective, steps)| (*collective, &steps[..]))
        .collect();
    let all = rules(&winners);
    let none = rules(&[(Collective::Barrier, &[(0, "default")])]);
    let told = all["collectives"].as_object().expect("an object");
    for collective in [
        "allreduce",
        "bcast",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_block",
    ] {
        assert!(
            told.contains_key(collective),
            "{collective}: {:?}",
            told.keys()
        );
    }
    let sound = [("every rule".to_owned(), all), ("no rule".to_owned(), none)];
    // What its reader would not take.
    let few = rules(&[
        (Collective::Bcast, &[(0, "native:chain")]),
        (Collective::ReduceScatter, &[(0, "native:ring")]),
    ]);
    let mut wrong = Vec::new();
    let mut change = |what: &str, make: &dyn Fn(&mut Value)| {
        let mut file = few.clone();
        make(&mut file);
        wrong.push((what.to_owned(), file));
    };
    change("a name without its underscore", &|file| {
        let rules = file["collectives"]["reduce_scatter"].take();
        let collectives = file["collectives"].as_object_mut().expect("an object");
        collectives.remove("reduce_scatter");
        collectives.insert("reducescatter".into(), rules);
    });
    let first = "/collectives/bcast/0/rules/0";
    change("an algorithm that there is not", &|file| {
        file.pointer_mut(first).expect("a rule")["alg"] = 10.into();
    });
    change("no algorithm", &|file| {
        let rule = file.pointer_mut(first).expect("a rule");
        rule.as_object_mut().expect("an object").remove("alg");
    });
    change("an unknown key", &|file| {
        file.pointer_mut(first).expect("a rule")["segsize"] = 0.into();
    });
    change("a negative bound", &|file| {
        file.pointer_mut(first).expect("a rule")["msg_size_min"] = (-1).into();
    });
    change("another version", &|file| {
        file["rule_file_version"] = 2.into()
    });
    let files: Vec<&Value> = sound.iter().chain(&wrong).map(|(_, file)| file).collect();
    let complaints = complaints(&files);
    let named = sound.iter().chain(&wrong).zip(complaints);
    for (place, ((what, file), complaints)) in named.enumerate() {
        match place < sound.len() {
            true => assert_eq!(complaints, Vec::<String>::new(), "{what}: {file:#}"),
            false => assert_ne!(complaints, Vec::<String>::new(), "{what}"),
        }
    }
}
