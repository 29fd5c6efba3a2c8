//! Large problems: memory stays linear and every fast policy copes.

use colltune_placement::generate::{Distribution, costs};
use colltune_placement::{Policy, Problem, certify, place};

fn check(ranks: u32, blocks: usize, policies: &[&str]) {
    let costs = costs(Distribution::Exponential, 1, blocks);
    let problem = Problem::new(&costs, ranks)
        .unwrap()
        .with_ranks_per_node(64)
        .unwrap();
    for name in policies {
        let placement = place(&name.parse::<Policy>().unwrap(), &problem).unwrap();
        let found = certify(&problem, &placement.owners).unwrap();
        assert!(found.makespan >= found.bound, "{name}");
        // Whatever a policy does, it leaves no rank with twice the mean and a block on top.
        assert!(
            found.makespan <= 2.0 * found.mean + 200.0,
            "{name}: {found:?}"
        );
        println!("{name} on {ranks} ranks: gap {:.4}", found.gap);
    }
}

const FAST: [&str; 6] = [
    "contiguous",
    "contiguous-optimal",
    "contiguous-optimal:max=12",
    "lpt",
    "cplx:25",
    "cplx:100",
];

#[test]
fn a_hundred_thousand_ranks_are_no_exception() {
    check(100_003, 250_000, &FAST);
    check(17, 500_000, &FAST[..2]);
}

#[test]
fn a_million_ranks_and_ten_million_blocks_work() {
    // Takes a minute; a smaller one runs always.
    match std::env::var_os("COLLTUNE_LONG") {
        Some(_) => check(1_000_000, 10_000_000, &[&FAST[..], &["lpt-swap"]].concat()),
        None => check(50_000, 500_000, &[&FAST[..], &["lpt-swap"]].concat()),
    }
}
