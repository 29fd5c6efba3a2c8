//! Pairs of a policy and a forced allreduce: does the emulator choose the pair that is fastest?

use anyhow::Context;
use colltune_amr::telemetry::Meeting;
use colltune_core::algorithm::pattern::Pattern;
use colltune_core::request::Mode;
use colltune_emulate::axes::Network;
use colltune_emulate::cost::Costs;
use colltune_emulate::machine::Machine;
use colltune_emulate::mesh::settings;
use colltune_emulate::place::Placer;
use colltune_emulate::price::{Choices, Prices};
use colltune_emulate::program::{Call, History};
use colltune_emulate::run::{Collectives, Keep, Scenario, run};
use colltune_statistics::{median, spearman};
use serde::Serialize;

use super::args::Measuring;
use super::measure::{Job, time_loop};

use crate::suites::database;
use crate::suites::jobs::Tuner;
use colltune_lab::emulate::seconds_of;
use colltune_output::progress;
use colltune_output::table;

/// What `--compat` goes with.
const POLICIES: [&str; 3] = ["rcb", "morton", "hilbert"];
const DECK: &str = "four-spheres";

#[derive(Serialize)]
pub struct Pairs {
    rows: Vec<Pair>,
    pub spearman: Option<f64>,
    /// How much slower the pair that is emulated fastest ran than the one that was.
    pub loss: f64,
}

#[derive(Serialize)]
struct Pair {
    policy: &'static str,
    allreduce: String,
    measured_s: Vec<f64>,
    emulated_s: f64,
    /// The share of the priced time that was measured.
    priced_measured: f64,
}

/// Lengths of the program's allreduces with `--compat`: a number, a number of each rank, and sums.
fn call_bytes(n_ranks: usize) -> [u64; 3] {
    [8, 4 * n_ranks as u64, 139 * 8]
}

/// Whether the machine has a price of each of these variants of allreduce on so many ranks.
///
/// Errors: those of [`Choices::set`] and [`Prices::call_ns`], with the variant and the machine.
pub fn check(variants: &[String], n_ranks: usize, machine: &Machine) -> anyhow::Result<()> {
    for variant in variants {
        let mut prices = Prices::new(machine, chosen(variant, machine)?);
        for bytes in call_bytes(n_ranks) {
            let call = Call::of_all(Meeting::Allreduce, bytes, n_ranks);
            let priced = prices.call_ns(&call);
            priced.with_context(|| format!("price {variant} on the machine {}", machine.name))?;
        }
    }
    Ok(())
}

fn chosen(variant: &str, machine: &Machine) -> anyhow::Result<Choices> {
    let mut choices = Choices::default();
    let set = choices.set(Pattern::Allreduce, variant, &machine.learned);
    set.with_context(|| {
        format!(
            "price {variant} on the machine {}, which has not measured it",
            machine.name
        )
    })?;
    Ok(choices)
}

/// Runs every pair in turns; nothing where no variant is asked for.
pub fn pairs(measuring: Measuring, costs: &Costs) -> anyhow::Result<Option<Pairs>> {
    let args = measuring.args;
    if args.allreduce.is_empty() {
        return Ok(None);
    }
    let empty = database::empty(measuring.bench, "emulate-pairs")?;
    let mut rows = Vec::new();
    for policy in POLICIES {
        for variant in &args.allreduce {
            rows.push(emulated(measuring, costs, policy, variant)?);
        }
    }
    for repetition in 1..=args.repetitions {
        for row in &mut rows {
            progress::show(&format!(
                "{}, {}: run {repetition} of {}",
                row.policy, row.allreduce, args.repetitions
            ));
            let tuner = Tuner::Shim {
                db: Some(empty.clone()),
                mode: Mode::Exploit,
                seed: 1,
                settings: vec![("COLLTUNE_FORCE", format!("allreduce={}", row.allreduce))],
            };
            let job = Job {
                bench: measuring.bench,
                place: measuring.place,
                n_ranks: args.ranks,
                tuner: &tuner,
            };
            row.measured_s
                .push(time_loop(job, &words(row.policy, args.steps))?);
        }
    }
    Ok(Some(judged(rows)))
}

fn words(policy: &str, steps: u64) -> Vec<String> {
    let steps = steps.to_string();
    let words = [
        "--deck",
        DECK,
        "--compat",
        "--num_tsteps",
        &steps,
        "--placement",
        policy,
    ];
    words.map(str::to_owned).to_vec()
}

fn emulated(
    measuring: Measuring,
    costs: &Costs,
    policy: &'static str,
    variant: &str,
) -> anyhow::Result<Pair> {
    let Measuring { args, machine, .. } = measuring;
    let settings = settings(&words(policy, args.steps), args.ranks, args.ranks)?;
    let scenario = Scenario {
        settings: &settings,
        n_ranks: args.ranks,
        costs,
        machine,
        history: History::Objects,
        placer: Some((policy.to_owned(), Placer::from_name(policy)?)),
        choices: chosen(variant, machine)?,
        network: Network::Events,
        collectives: Collectives::Gate,
        slow: None,
        noise: None,
        timer: Some(&seconds_of),
    };
    let outcome = run(&scenario, Keep::SUMS)
        .with_context(|| format!("emulate {policy} with {variant}"))?
        .outcome;
    Ok(Pair {
        policy,
        allreduce: variant.to_owned(),
        measured_s: Vec::new(),
        emulated_s: outcome.total_s,
        priced_measured: outcome.priced.measured,
    })
}

fn judged(rows: Vec<Pair>) -> Pairs {
    let measured: Vec<f64> = rows.iter().map(|row| median(&row.measured_s)).collect();
    let emulated: Vec<f64> = rows.iter().map(|row| row.emulated_s).collect();
    let least = |times: &[f64]| (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
    let chosen = least(&emulated).map_or(f64::NAN, |i| measured[i]);
    let best = least(&measured).map_or(f64::NAN, |i| measured[i]);
    Pairs {
        spearman: spearman(&measured, &emulated),
        loss: chosen / best - 1.0,
        rows,
    }
}

impl Pairs {
    pub fn in_columns(&self) -> String {
        let row = |row: &Pair| {
            vec![
                row.policy.to_owned(),
                row.allreduce.clone(),
                format!("{:.3}", median(&row.measured_s)),
                format!("{:.3}", row.emulated_s),
                format!("{:.0}", 100.0 * row.priced_measured),
            ]
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        let header = [
            "policy",
            "allreduce",
            "measured s",
            "emulated s",
            "measured price %",
        ];
        let order = self
            .spearman
            .map_or("none".to_owned(), |rho| format!("{rho:.2}"));
        format!(
            "{DECK} --compat\n{}order of pairs: Spearman {order}; the chosen pair is {:.1} % slower than the best\n",
            table(&header, &rows),
            100.0 * self.loss
        )
    }
}

#[cfg(test)]
mod tests {
    use colltune_emulate::machine::preset;
    use colltune_emulate::price::{Known, Learned, LearnedCell};

    use super::*;

    #[test]
    fn what_a_machine_has_no_price_of_is_told_beforehand() {
        let mut machine = preset("hera").unwrap();
        let priced = |variant: &str, n_ranks, machine: &Machine| {
            let found = check(&[variant.to_owned()], n_ranks, machine);
            found.map_err(|error| format!("{error:#}"))
        };
        priced("p2p:ring", 8, &machine).unwrap();
        for (variant, n_ranks, word) in [
            ("p2p:rong", 8, "p2p:ring"),
            ("p2p:swing", 6, "on 6 ranks"),
            ("native:smp", 8, "hera"),
        ] {
            let error = priced(variant, n_ranks, &machine).unwrap_err();
            assert!(error.contains(variant) && error.contains(word), "{error}");
        }
        // On the nodes of another shape it was measured, and there are no schedules to simulate.
        let measured = |ppn| LearnedCell {
            collective: "allreduce".to_owned(),
            variant: "native:smp".to_owned(),
            bytes: 8..=8,
            nodes: 1..=1,
            ppn: ppn..=ppn,
            known: Known::Measured(1000.0),
        };
        machine.learned = Learned(vec![measured(4)]);
        let error = priced("native:smp", 8, &machine).unwrap_err();
        assert!(error.contains("on a node only"), "{error}");
        machine.learned = Learned(vec![measured(8)]);
        priced("native:smp", 8, &machine).unwrap();
    }

    #[test]
    fn the_chosen_pair_is_held_against_the_fastest() {
        let pair = |measured: f64, emulated_s: f64| Pair {
            policy: "rcb",
            allreduce: "p2p:ring".to_owned(),
            measured_s: vec![measured, measured + 0.1, measured - 0.1],
            emulated_s,
            priced_measured: 1.0,
        };
        let found = judged(vec![pair(4.0, 1.0), pair(2.0, 2.0), pair(8.0, 3.0)]);
        assert!(
            (found.loss - 1.0).abs() < 1e-12,
            "twice as long as the best"
        );
        assert!((found.spearman.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(judged(vec![pair(2.0, 1.0), pair(3.0, 2.0)]).loss, 0.0);
    }
}
