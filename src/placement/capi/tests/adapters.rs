//! The adapters of `examples/placement-adapters`, compiled against stubs of their frameworks, give what the library gives.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use colltune_tests::skip;
use common::libraries;
use placement::{Curve, Matching, Octant, Policy, Problem, certify, place};

/// Compiles a check with its adapter and runs it; its lines, or `None`, counted as skipped, without a compiler.
fn lines(compiler: &str, standard: &str, check: &str) -> Option<Vec<String>> {
    let adapters =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/placement-adapters");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("adapter-{check}"));
    let include = |folder: &Path| format!("-I{}", folder.display());
    let compiled = Command::new(compiler)
        .args([
            standard,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-missing-field-initializers",
        ])
        .arg(include(&adapters))
        .arg(include(&adapters.join("stubs")))
        .arg(include(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("include"),
        ))
        .arg(adapters.join("checks").join(check))
        .arg("-L")
        .arg(libraries())
        .args(["-lcolltune_placement", "-o"])
        .arg(&program)
        .status();
    match compiled {
        Ok(status) => assert!(status.success(), "{check} does not compile"),
        Err(_) => return skip(&format!("{compiler} is not installed")),
    }
    let mut run = Command::new("timeout");
    run.arg("60").arg(&program);
    let output = run.env("LD_LIBRARY_PATH", libraries()).output().unwrap();
    assert!(output.status.success(), "{check}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

fn numbers(line: &str) -> Vec<u32> {
    line.split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect()
}

fn policy(name: &str) -> Policy {
    name.parse().unwrap()
}

#[test]
fn amrex_boxes_go_where_the_library_puts_them() {
    let Some(lines) = lines("g++", "-std=c++17", "amrex.cpp") else {
        return;
    };
    let at = |i: u32| [i % 4, i / 4 % 4, i / 16];
    let octants: Vec<Octant> = (0..64)
        .map(|i| {
            let [x, y, z] = at(i).map(|c| 8 * c);
            Octant::new(x, y, z, 21)
        })
        .collect();
    let cost = |i: u32| match at(i).iter().sum::<u32>() < 2 {
        true => f64::from(40 + i % 5),
        false => f64::from(10 + i % 3),
    };
    let order = Curve::Morton.order(3, &octants);
    let costs: Vec<f64> = order.iter().map(|&i| cost(i)).collect();
    let present: Vec<u32> = order.iter().map(|&i| i % 8).collect();
    let plain = Problem::new(&costs, 8).unwrap();
    let known = plain.with_owners(&present).unwrap();
    let mut moved = Vec::new();
    let mut found = lines.iter();
    for name in ["lpt-swap", "contiguous-optimal"] {
        for problem in [&plain, &known] {
            let expected = place(&policy(name), problem).unwrap();
            let boxes = numbers(found.next().unwrap());
            let along: Vec<u32> = order.iter().map(|&i| boxes[i as usize]).collect();
            assert_eq!(along, expected.owners, "{name}");
            moved.push(certify(&known, &along).unwrap().migration.unwrap().blocks);
        }
    }
    assert!(moved[1] < moved[0], "present owners are matched: {moved:?}");
}

#[test]
fn parthenon_gets_intervals_of_blocks_and_less_for_a_slow_rank() {
    let Some(lines) = lines("g++", "-std=c++17", "parthenon.cpp") else {
        return;
    };
    let costs: Vec<f64> = (0..40)
        .map(|i| {
            if i % 9 == 4 {
                7.0
            } else {
                f64::from(1 + i % 2)
            }
        })
        .collect();
    let equal = Problem::new(&costs, 6)
        .unwrap()
        .with_matching(Matching::Off);
    let speeds = [1.0, 1.0, 0.25, 1.0, 1.0, 1.0];
    let uneven = equal.with_speeds(&speeds).unwrap();
    let blocks_of_2 = |line: &str| numbers(line).iter().filter(|&&rank| rank == 2).count();
    for (line, problem) in lines.iter().zip([&equal, &uneven]) {
        let expected = place(&policy("contiguous-optimal"), problem).unwrap();
        assert_eq!(numbers(line), expected.owners);
        assert!(numbers(line).is_sorted());
    }
    assert!(blocks_of_2(&lines[1]) < blocks_of_2(&lines[0]), "{lines:?}");
}

#[test]
fn p4est_is_partitioned_as_the_costs_say() {
    let Some(lines) = lines("cc", "-std=c99", "p4est.c") else {
        return;
    };
    let costs: Vec<f64> = (0..30).map(|i| if i < 6 { 5.0 } else { 1.0 }).collect();
    let problem = Problem::new(&costs, 5).unwrap();
    let expected = place(&policy("contiguous-optimal"), &problem).unwrap();
    assert_eq!(numbers(&lines[0]), expected.owners);
    let moved = (0..30)
        .filter(|&i| expected.owners[i] as usize != i / 6)
        .count();
    assert_eq!(lines[1], moved.to_string());
}
