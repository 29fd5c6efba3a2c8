//! Compares learners on made-up machines, in all groups of rows or in those that are named:
//! `cargo run --release -p colltune-machines --example learner -- [--quick] [null stalls ...]`.

use std::io::Write as _;

use colltune_machines::bench::run;
use colltune_machines::trial::Extent;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, groups): (Vec<String>, Vec<String>) = arguments
        .into_iter()
        .partition(|argument| argument == "--quick");
    let extent = if options.is_empty() {
        Extent::Full
    } else {
        Extent::Quick
    };
    let is_wanted = |name: &str| groups.is_empty() || groups.iter().any(|group| group == name);
    let progress = |what: &str| {
        let _ = writeln!(std::io::stderr(), "{what}");
    };
    for table in run(extent, &is_wanted, &progress) {
        println!("{}", table.text());
    }
}
