//! Compares learners on made-up machines: `cargo run --release -p colltune-machines --example learner [-- --quick]`.

use std::io::Write as _;

use colltune_machines::bench::run;
use colltune_machines::trial::Extent;

fn main() {
    let extent = match std::env::args().nth(1).as_deref() {
        Some("--quick") => Extent::Quick,
        _ => Extent::Full,
    };
    let progress = |what: &str| {
        let _ = writeln!(std::io::stderr(), "{what}");
    };
    for table in run(extent, &progress) {
        println!("{}", table.text());
    }
}
