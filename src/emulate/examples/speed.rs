//! Prints what emulating takes, on one thread: `speed RANKS STEPS [POLICY...]`, of 512, 1024, 2048 or 4096 ranks.
//!
//! The program is the blast of so many ranks on the mesh that it begins with. Least, middle and most of three runs,
//! without noise and with noise, where each step's work is drawn anew.
//! What 200 epochs of the blast on 4,096 ranks take a policy is printed by
//! `COLLTUNE_LONG=1 cargo test --release -p colltune-emulate --lib a_long_suite_says -- --nocapture`.

use std::time::Instant;

use colltune_amr::deck::expand;
use colltune_emulate::axes::Network;
use colltune_emulate::cost::{Costs, NoiseCosts};
use colltune_emulate::machine::preset;
use colltune_emulate::mesh::{Shock, settings};
use colltune_emulate::noise::Noise;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::program::History;
use colltune_emulate::run::{Keep, Scenario, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ranks, steps, policies @ ..] = &arguments[..] else {
        return Err("usage: speed RANKS STEPS [POLICY...]".into());
    };
    let n_ranks: usize = ranks.parse()?;
    let names: Vec<&str> = match policies {
        [] => vec!["contiguous", "lpt"],
        named => named.iter().map(String::as_str).collect(),
    };
    let line = format!("colltune-amr --deck blast-{n_ranks} --refine_freq 0 --num_tsteps {steps}");
    let words = expand(line.split_whitespace().map(str::to_owned))?;
    let mut settings = settings(&words[1..], n_ranks, n_ranks)?;
    let shock = Shock::new(&settings)?;
    let costs = Costs::uniform(settings.work, 1.0);
    let machine = preset("qdr-psm")?;
    let spread = NoiseCosts {
        step_cv: 0.1,
        ..NoiseCosts::default()
    };
    let noise = Noise {
        costs: spread,
        seed: 1,
    };
    for name in names {
        let placer = Placer::from_name(name)?;
        settings.placement = placer.option();
        for (kind, noise) in [("without", None), ("with", Some(noise))] {
            let scenario = Scenario {
                settings: &settings,
                n_ranks,
                costs: &costs,
                machine: &machine,
                history: History::Shock(&shock),
                placer: Some((name.to_owned(), placer.clone())),
                choices: Choices::default(),
                network: Network::Events,
                slow: None,
                noise,
                timer: None,
            };
            let mut times: Vec<f64> = Vec::new();
            let mut emulated_s = 0.0;
            for _ in 0..3 {
                let begun = Instant::now();
                emulated_s = run(&scenario, Keep::SUMS)?.outcome.total_s;
                times.push(begun.elapsed().as_secs_f64());
            }
            times.sort_by(f64::total_cmp);
            let [least, middle, most] = [times[0], times[1], times[2]];
            println!(
                "{name:20} {n_ranks:6} ranks {steps:>6} steps {kind:>8} noise: {least:8.3} {middle:8.3} {most:8.3} s, \
                 {emulated_s:.3} s emulated"
            );
        }
    }
    Ok(())
}
