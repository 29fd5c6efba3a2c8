//! What is lost where old runs are thinned: choices after long histories of synthetic machines, from all evidence, from
//! what thinning leaves, and from another history of the same machine, which says what chance does:
//! `cargo run --release -p colltune-machines --example thinning -- [RUNS] [MACHINES]`.

use colltune_core::model::Model;
use colltune_core::request::Mode;
use colltune_core::select::mix;
use colltune_machines::job::{play, published_best};
use colltune_machines::recipe::{COLLECTIVES, NODE, Recipe};
use colltune_machines::site::Site;
use colltune_models::evidence::{Call, Evidence, reduce};
use colltune_models::{Context, learn, thinning};
use rayon::prelude::*;

/// So many of the newest runs stay whole.
const WHOLE: [usize; 6] = [8, 16, 32, 64, 128, 256];

/// A database: how many of the newest runs it keeps whole, and what it published.
struct Learner {
    whole: usize,
    previous: Option<Model>,
    runs_before: u32,
}

impl Learner {
    fn new(whole: usize) -> Learner {
        Learner {
            whole,
            previous: None,
            runs_before: 0,
        }
    }

    fn train(&mut self, site: &Site, history: &[Vec<Evidence>]) -> &Model {
        let word = |run: usize| mix(mix(site.seed, 3), run as u64);
        let n = history.len();
        let kept = (0..n).filter(|&run| thinning::stays(word(run), n - 1 - run, self.whole));
        let kept: Vec<usize> = kept.collect();
        let rows = kept.iter().zip(0..).flat_map(|(&run, place)| {
            let rows = history[run].iter();
            rows.map(move |row| Evidence { run: place, ..*row })
        });
        let evidence: Vec<Evidence> = rows.collect();
        let before = self.runs_before as usize;
        let context = Context {
            settings: &site.settings,
            library: site.library,
            machine: "made",
            generation: self
                .previous
                .as_ref()
                .map_or(1, |model| model.generation + 1),
            seed: site.seed,
            previous: self.previous.as_ref(),
            runs_before: kept.partition_point(|&run| run < before) as u32,
            copies: &[],
            spent: None,
            vetoes: &[],
        };
        let learned = learn(&evidence, context).expect("a sound model");
        self.runs_before = n as u32;
        self.previous.insert(learned.model)
    }
}

/// Of the choices of a database: what they cost beyond the best, and how many are those of all evidence.
#[derive(Clone, Copy, Default)]
struct Judged {
    regret: f64,
    agree: f64,
}

/// One machine's life: the choices of all evidence, of each thinning, and of another history.
fn live(seed: u64, runs: usize, run_effect: f64, changes: Option<usize>) -> Vec<Judged> {
    let recipe = Recipe {
        layouts: vec![NODE],
        collectives: COLLECTIVES[..3].to_vec(),
        ..Recipe::usual(run_effect)
    };
    let mut site = Site::new(recipe, seed);
    let mut all = vec![Learner::new(usize::MAX)];
    all.extend(WHOLE.map(Learner::new));
    let mut other = Learner::new(usize::MAX);
    let (mut history, mut others) = (Vec::new(), Vec::new());
    let initial = Model::initial(&site.settings, site.library, "made");
    let mut next = 10;
    for run in 0..runs {
        if changes.is_some_and(|newest| run + newest == runs) {
            site.improve_default(0.1);
        }
        // Jobs of both histories run under what their own database published.
        let played = |learner: &Learner, number: usize| {
            let model = learner.previous.as_ref().unwrap_or(&initial);
            let samples = play(&site, model, Mode::Explore, number as u32).samples;
            let calls: Vec<Call> = samples.iter().map(|sample| sample.call).collect();
            reduce(calls)
        };
        history.push(played(&all[0], run));
        others.push(played(&other, runs + run));
        if run + 1 == next || run + 1 == runs {
            for learner in &mut all {
                learner.train(&site, &history);
            }
            other.train(&site, &others);
            next = (next + 10).max(next + next / 4);
        }
    }
    let cells = 0..site.cells.len();
    let best = |learner: &Learner| -> Vec<usize> {
        let model = learner.previous.as_ref().unwrap_or(&initial);
        cells
            .clone()
            .map(|cell| published_best(&site, model, cell))
            .collect()
    };
    let full = best(&all[0]);
    all.push(other);
    let judged = all.iter().map(|learner| {
        let best = best(learner);
        let n = best.len() as f64;
        let regret = cells.clone().map(|cell| {
            let truth = &site.cells[cell];
            truth.cost_of(best[cell]) / truth.best_ns() - 1.0
        });
        let agree = best.iter().zip(&full).filter(|(a, b)| a == b).count();
        Judged {
            regret: regret.sum::<f64>() / n,
            agree: agree as f64 / n,
        }
    });
    judged.collect()
}

fn main() {
    let number = |place: usize, usual: usize| {
        let word = std::env::args().nth(place);
        word.map_or(usual, |word| word.parse().expect("a number"))
    };
    let (runs, machines) = (number(1, 600), number(2, 4) as u64);
    let names = WHOLE.map(|whole| format!("{whole} whole"));
    println!("{runs} runs, {machines} machines: regret (choices that are those of all evidence)");
    for (kind, run_effect, changes) in [
        ("runs differ by 5 %", 0.05, None),
        ("runs differ by 15 %", 0.15, None),
        (
            "15 %, the default 10 % better 150 runs ago",
            0.15,
            Some(150),
        ),
        ("15 %, the default 10 % better 20 runs ago", 0.15, Some(20)),
    ] {
        let lives: Vec<Vec<Judged>> = (1..=machines)
            .into_par_iter()
            .map(|seed| live(seed, runs, run_effect, changes))
            .collect();
        println!("{kind}");
        let names = ["all"].into_iter().chain(names.iter().map(String::as_str));
        for (place, name) in names.chain(["another history"]).enumerate() {
            let mean = |of: fn(&Judged) -> f64| {
                let each = lives.iter().map(|life| of(&life[place]));
                100.0 * each.sum::<f64>() / lives.len() as f64
            };
            let (regret, agree) = (mean(|one| one.regret), mean(|one| one.agree));
            println!("  {name:16} {regret:6.2} % ({agree:.0} %)");
        }
    }
}
