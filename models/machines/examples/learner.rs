//! Compares learners on synthetic machines, in all groups of rows or in those that are named; on machines of other seeds
//! and for some learners where options say so:
//! `cargo run --release -p colltune-machines --example learner -- [--quick] [--seeds=11-20] [--only=learner,uniform]
//! [null hidden stalls ...]`. What single mechanisms of the learner are worth says
//! `... learner -- --quick --seeds=401-404 ablation calmness "call noise" ...`, by the names in `colltune_models::ablation`.

use std::io::Write as _;

use colltune_machines::bench::run;
use colltune_machines::trial::{Extent, Scope};

fn main() {
    let (options, groups): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let extent = match options.iter().any(|option| option == "--quick") {
        true => Extent::Quick,
        false => Extent::Full,
    };
    let mut scope = Scope::of(extent);
    let values = |name: &str| options.iter().find_map(|option| option.strip_prefix(name));
    if let Some((first, last)) = values("--seeds=").and_then(|seeds| seeds.split_once('-')) {
        let number = |text: &str| text.parse().expect("a seed is a number");
        scope.seeds = number(first)..=number(last);
    }
    if let Some(only) = values("--only=") {
        let wanted: Vec<&str> = only.split(',').collect();
        scope
            .policies
            .retain(|policy| wanted.contains(&policy.name()));
    }
    let is_wanted = |name: &str| groups.is_empty() || groups.iter().any(|group| group == name);
    let progress = |what: &str| {
        let _ = writeln!(std::io::stderr(), "{what}");
    };
    for table in run(&scope, &is_wanted, &progress) {
        println!("{}", table.text());
    }
}
