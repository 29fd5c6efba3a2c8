//! The CPLX study: what placement gives a Sedov blast wave on 512 to 4,096 ranks (Jain et al. 2025, section VI).
//!
//! **The protocol was fixed before it was run.** Two parameters are fitted, at 512 ranks, to two published numbers (the
//! baseline synchronises for 35 % of its time, the best policy gains 15.3 %): how much longer a block takes with the
//! shock in it, and the spread of times that no placer can know. A third, the spread that it can know, is two thirds of
//! that. How long a block takes at all follows from a step of 250 ms of which 55 % is computing, at 512 ranks too.
//! Everything at 1,024, 2,048 and 4,096 ranks, and all of figures 2, 6b, 6c and 7a, is then predicted.

mod commbench;
mod deck;
mod epoch;
mod figures;
mod fit;
mod judge;
mod scale;

use colltune_placement::generate::{Distribution, costs};
use colltune_placement::published::Published;
use colltune_placement::{Policy, Problem, makespan, place};

use super::Size;
use super::finding::Study;
use crate::EmulateError;
use crate::axes::Network;
use crate::clock::Timer;
use crate::cost::NoiseCosts;
use crate::machine::{Machine, preset};
use crate::noise::Noise;
use deck::DECKS;
use epoch::{BlockCosts, Epoch};
use figures::figures;
use judge::{Found, Timed, Wire, judge};
use scale::{Model, POLICIES, Sample};

const SEED: u64 = 1;
/// Of 32: one in the middle of the curve.
const SLOW_NODE: usize = 16;

/// How much of everything is run.
struct Extent {
    epochs: u64,
    wire_epochs: u64,
    meshes: u64,
    timed_ranks: [u32; 2],
}

/// Runs the study; without a timer policies take no time, and rows that are measured are not run.
///
/// Errors: a policy's or a collective's.
pub fn run(size: Size, timer: Option<Timer>) -> Result<Study, EmulateError> {
    let extent = match size {
        Size::Full => Extent {
            epochs: 200,
            wire_epochs: 24,
            meshes: 10,
            timed_ranks: [16_384, 131_072],
        },
        Size::Quick => Extent {
            epochs: 4,
            wire_epochs: 3,
            meshes: 2,
            timed_ranks: [16_384, 131_072],
        },
    };
    let machine = preset("qdr-psm")?;
    let mut model = Model {
        costs: BlockCosts::new(0.0, 0.0),
        block_ns: 0.0,
        machine: &machine,
        noise: Noise {
            costs: NoiseCosts::default(),
            seed: SEED,
        },
        network: Network::Events,
    };
    // The epochs that are fitted to are those that are reported of 512 ranks.
    let fitted = fit::fit(&Sample::new(&DECKS[0], extent.epochs), &model)?;
    (model.costs, model.block_ns) = (fitted.costs, fitted.block_ns);
    let all = |deck: &deck::Deck, n: u64, model: &Model, timer| {
        let epochs = deck.sample(n).into_iter().map(|i| Epoch::new(deck, i));
        scale::run(deck, epochs, &POLICIES, model, None, timer)
    };
    let scales = DECKS
        .iter()
        .map(|deck| all(deck, extent.epochs, &model, timer));
    let scales = scales.collect::<Result<Vec<_>, _>>()?;
    let mut wires = Vec::new();
    for (name, factor) in [("halved", 0.5), ("doubled", 2.0)] {
        let machine = slower_wire(&machine, factor);
        let model = Model {
            machine: &machine,
            ..model.clone()
        };
        wires.push(Wire {
            name,
            last: all(&DECKS[3], extent.wire_epochs, &model, timer)?,
        });
    }
    let slow = Sample::new(&DECKS[0], extent.wire_epochs);
    let baseline = [Published::Baseline];
    let node = Some((SLOW_NODE, 4.0));
    let slowed = |node| {
        let runs = scale::run(
            &slow.deck,
            slow.epochs.iter(),
            &baseline,
            &model,
            node,
            None,
        );
        runs.map(|runs| runs[0])
    };
    let found = Found {
        n_blocks: DECKS.map(|deck| deck.n_blocks_at_end()),
        slow: [slowed(None)?, slowed(node)?],
        latency_ms: judge::COMMBENCH_RANKS
            .map(|n| commbench::latency_ms(&machine, n, extent.meshes))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?,
        shares: shares_of_lpt()?,
        timed: timer.map(|timer| timed(extent.timed_ranks, timer)),
        scales,
        wires,
        fitted,
    };
    Ok(Study {
        name: "cplx",
        source: "Jain et al. 2025, section VI: a Sedov blast wave on 512, 1024, 2048, 4096 ranks",
        columns: DECKS.iter().map(|deck| deck.n_ranks.to_string()).collect(),
        findings: judge(&found),
        assumptions: assumptions(&found, &machine, &extent),
        figures: figures(&found),
    })
}

/// The machine with all latencies and times per byte times `factor`.
fn slower_wire(machine: &Machine, factor: f64) -> Machine {
    let mut machine = machine.clone();
    for link in [&mut machine.network.inside, &mut machine.network.between] {
        link.latency_ns *= factor;
        link.per_byte_ns *= factor;
    }
    machine
}

/// Which part of what LPT gains over CDP does CPLX gain with X = 25: the published code, and this library; percent, the
/// means over three seeds, by distribution.
fn shares_of_lpt() -> Result<[Vec<f64>; 2], EmulateError> {
    const RANKS: u32 = 4096;
    let published = [Published::Chunked(512), Published::Cplx(25), Published::Lpt];
    let ours: [Policy; 2] = ["cplx:25".parse()?, "lpt".parse()?];
    let mut shares = [Vec::new(), Vec::new()];
    for distribution in Distribution::ALL {
        let mut spans = [[0.0; 3]; 2];
        for seed in 1..=3 {
            let draw = costs(distribution, seed, 6144);
            let problem = Problem::new(&draw, RANKS)?;
            for i in 0..3 {
                let owners = published[i].place(&draw, RANKS);
                let owners = owners.ok_or_else(|| epoch::refused(published[i], RANKS as usize))?;
                spans[0][i] += makespan(&problem, &owners);
            }
            // CDP is theirs, over all ranks at once.
            let cdp = Published::Cdp.place(&draw, RANKS);
            let cdp = cdp.ok_or_else(|| epoch::refused(Published::Cdp, RANKS as usize))?;
            spans[1][0] += makespan(&problem, &cdp);
            for (policy, span) in ours.iter().zip(&mut spans[1][1..]) {
                *span += makespan(&problem, &place(policy, &problem)?.owners);
            }
        }
        for (shares, [cdp, cplx, lpt]) in shares.iter_mut().zip(spans) {
            shares.push(100.0 * (cdp - cplx) / (cdp - lpt));
        }
    }
    Ok(shares)
}

/// Seconds of `published:cplx:50` and of this library's `cplx:50`; the least of three, since others use the machine.
fn timed(ranks: [u32; 2], timer: Timer) -> Timed {
    let least = |run: &mut dyn FnMut()| (0..3).map(|_| timer(run)).fold(f64::INFINITY, f64::min);
    let ours: Policy = "cplx:50".parse().expect("a policy of the table");
    let of = |ranks: u32| {
        let draw = costs(Distribution::Exponential, SEED, ranks as usize * 3 / 2);
        let problem = Problem::new(&draw, ranks).expect("costs as they are drawn");
        [
            least(&mut || {
                drop(std::hint::black_box(
                    Published::Cplx(50).place(&draw, ranks),
                ))
            }),
            least(&mut || drop(std::hint::black_box(place(&ours, &problem)))),
        ]
    };
    Timed {
        ranks,
        seconds: ranks.map(of),
    }
}

fn assumptions(found: &Found, machine: &Machine, extent: &Extent) -> Vec<String> {
    let fit::Fitted {
        costs,
        block_ns,
        sync,
        gain,
    } = found.fitted;
    vec![
        format!(
            "fitted at 512 ranks: a block with the shock in it takes {:.3} times as long, and times spread by {:.3} from \
             step to step; that leaves the baseline {sync:.1} % synchronisation (35 asked) and the best policy a gain of \
             {gain:.1} % (15.3 asked)",
            1.0 + costs.shock,
            costs.unknown_cv
        ),
        format!("a factor that a block has for good spreads by {:.3}, two thirds of that", costs.known_cv),
        format!(
            "a block without shock takes {:.1} ms a step: steps of 250 ms, 55 % of them computing, at 512 ranks",
            1e-6 * block_ns
        ),
        format!("machine {}, {}", machine.name, machine.source),
        "blocks are split where a shell around the exact shock cuts them, one of their cells inwards and three outwards \
         (the three was chosen by table I); neighbours may differ by two levels, which the real mesh forbids"
            .to_owned(),
        "the shock grows evenly from step to step, from 0.1 to its radius at 0.5; a placement stands for as many steps as \
         table I says"
            .to_owned(),
        format!(
            "{} epochs of each run stand for all, one step for an epoch; standard errors of a step's time are {}",
            extent.epochs,
            judge::errors(found)
        ),
        "half of a step's computing comes before its second exchange; a rank waits there for neighbours who still compute, \
         and that is communication, as the paper's telemetry counts it"
            .to_owned(),
        "rebalancing is the policy's time here and the blocks that move; rebuilding the mesh is not emulated".to_owned(),
        "policies are the published code's, defects included (published:baseline, published:cplx:X)".to_owned(),
    ]
}
