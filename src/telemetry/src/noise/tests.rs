use super::*;
use crate::made::{Machine, Order};
use crate::rows::{Place, Round, Window};

/// Four ranks over 64 steps: blocks of two levels, and a rank that loses its processor now and then.
fn run_and_blocks(off: impl Fn(u32, u64) -> f64) -> (Run, Vec<Block>) {
    let (mut windows, mut blocks, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
    for step in 1..=64u64 {
        for rank in 0..4u32 {
            let n_fine = 1 + (u64::from(rank) + step) % 3;
            let mut compute = 0;
            for n in 0..4 + n_fine {
                let level = u32::from(n >= 4);
                let cost =
                    100_000 * i64::from(1 + 3 * level) + ((step * 31 + n * 17) % 13) as i64 * 100;
                let cost = (cost as f64 * (1.0 + off(rank, step))) as i64;
                compute += cost;
                blocks.push(Block {
                    step,
                    rank,
                    block: n,
                    level,
                    compute: cost,
                    ..Block::default()
                });
            }
            let cpu = (compute as f64 / (1.0 + off(rank, step))) as i64;
            windows.push(Window {
                step,
                rank,
                arrive: compute,
                leave: 10_000_000,
                compute,
                cpu,
                rounds: 1,
                ..Window::default()
            });
            let spike = if step.is_multiple_of(8) && rank == 2 {
                1_000_000
            } else {
                0
            };
            let last = 1_000 + ((step * 7) % 11) as i64 * 10 + spike;
            rounds.push(Round {
                step,
                rank,
                last,
                messages: 1,
                bytes: 64,
                ..Round::default()
            });
        }
    }
    (Run::of(windows, rounds, Vec::new()), blocks)
}

fn cells(run: &Run) -> BTreeMap<(u32, u64), OfStep> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("none.parquet"), "").expect("a file");
    by_rank_and_step(&Folder::open(folder.path()).expect("a folder"), run)
}

#[test]
fn quiet_data_are_usable_and_their_variance_is_work() {
    let (run, blocks) = run_and_blocks(|_, _| 0.0);
    let cells = cells(&run);
    let ranks = processors(&cells, &[], &BTreeMap::new());
    let verdict = verdict(&blocks, &ranks, &[]);
    assert!(verdict.usable, "{verdict:?}");
    assert!(verdict.r_squared.expect("two kinds") > 0.95, "{verdict:?}");
    let shares = variance::shares(&cells, &blocks, &BTreeMap::new());
    assert!(shares.work > 0.9, "{shares:?}");
}

#[test]
fn a_rank_that_is_often_without_a_processor_is_found_and_named() {
    let off = |rank: u32, step: u64| {
        if rank == 1 && step.is_multiple_of(2) {
            3.0
        } else {
            0.0
        }
    };
    let (run, blocks) = run_and_blocks(off);
    let cells = cells(&run);
    let found = processors(&cells, &[], &BTreeMap::new());
    assert!(found[1].off > 0.4 && found[0].off < 0.01, "{found:?}");
    let shares = variance::shares(&cells, &blocks, &BTreeMap::new());
    assert!(shares.work < 0.9, "{shares:?}");
}

#[test]
fn spikes_are_counted_with_their_rank_and_period() {
    let (run, _) = run_and_blocks(|_, _| 0.0);
    let found = spikes::spikes(&run, &BTreeMap::new());
    let waits = found
        .iter()
        .find(|s| s.of == "waits for messages")
        .expect("rounds");
    assert_eq!(
        (waits.n, waits.rank, waits.period_steps),
        (8, Some(2), Some(8)),
        "{waits:?}"
    );
    assert!(
        waits.share > 0.9 && waits.mean_over_median > 3.0,
        "{waits:?}"
    );
}

/// Where the four ranks were every 16 steps: on these cores in turn.
fn places(cores: [&[u32]; 4]) -> Vec<Place> {
    let of_rank = |(rank, cores): (u32, &[u32])| {
        let place = move |nth: u32, core: u32| Place {
            step: 16 * (u64::from(nth) + 1),
            rank,
            core,
            involuntary: 20,
            host: "node0".into(),
            ..Place::default()
        };
        let cores = cores.iter().cycle().take(4).copied();
        (0..)
            .zip(cores)
            .map(move |(nth, core)| place(nth, core))
            .collect::<Vec<_>>()
    };
    (0..).zip(cores).flat_map(of_rank).collect()
}

/// What is said of four ranks that lose their processors in this way, on these cores.
fn judged(off: impl Fn(u32, u64) -> f64, cores: [&[u32]; 4]) -> (Option<Burdened>, Usable) {
    let (run, blocks) = run_and_blocks(off);
    let cells = cells(&run);
    let hosts: BTreeMap<u32, &str> = (0..4).map(|rank| (rank, "node0")).collect();
    let ranks = processors(&cells, &places(cores), &hosts);
    (processors::burdened(&ranks), verdict(&blocks, &ranks, &[]))
}

/// Time slices that a core's ranks lose to something else: in every other step, all of them in turn.
fn slices(ranks: &'static [u32]) -> impl Fn(u32, u64) -> f64 {
    move |rank, step| match ranks.contains(&rank) && (step + u64::from(rank)).is_multiple_of(2) {
        true => 2.0,
        false => 0.0,
    }
}

#[test]
fn what_else_runs_on_a_core_is_laid_to_that_core_and_its_ranks() {
    let pinned: [&[u32]; 4] = [&[0], &[1], &[0], &[1]];
    let (burdened, verdict) = judged(slices(&[1, 3]), pinned);
    let burdened = burdened.expect("core 1");
    assert_eq!((burdened.core, &burdened.ranks[..]), (1, &[1, 3][..]));
    assert_eq!(burdened.host.as_deref(), Some("node0"));
    assert!(burdened.off > 0.3 && burdened.others < 0.01, "{burdened:?}");
    let says = "core 1 of node0 is shared: its ranks 1, 3 had no processor for";
    assert!(
        verdict.text.contains(says) && verdict.text.contains("what else runs there"),
        "{verdict:?}"
    );
    // With one rank more than the other core it may be the ranks themselves.
    let uneven: [&[u32]; 4] = [&[0], &[1], &[1], &[1]];
    let (burdened, verdict) = judged(slices(&[1, 2, 3]), uneven);
    assert!(
        burdened.is_some_and(|core| core.has_more_ranks),
        "{verdict:?}"
    );
    // Where both cores lose as much no core is to blame, nor where no rank loses anything.
    assert_eq!(judged(slices(&[0, 1, 2, 3]), pinned).0, None);
    assert_eq!(judged(|_, _| 0.0, pinned).0, None);
    // Ranks that are all on one core cannot be compared with others.
    assert_eq!(judged(slices(&[1, 3]), [&[0]; 4]).0, None);
}

#[test]
fn ranks_that_are_not_pinned_are_told_to_be_and_pinned_ones_are_not() {
    let wander: [&[u32]; 4] = [&[0, 1], &[1, 0], &[0], &[1]];
    // The system moves what is in the way: each rank loses now this core, now that.
    let (_, verdict) = judged(slices(&[0, 1, 2, 3]), wander);
    let says = "and 2 ranks moved between cores: pin ranks";
    assert!(
        !verdict.usable && verdict.text.contains(says),
        "{verdict:?}"
    );
    let pinned: [&[u32]; 4] = [&[0], &[1], &[2], &[3]];
    let (_, verdict) = judged(|_, _| 0.0, pinned);
    assert!(
        verdict.usable && !verdict.text.contains("pin"),
        "{verdict:?}"
    );
}

#[test]
fn where_messages_go_before_copies_ranks_wait_less_and_more_evenly() {
    let of = |order| {
        let machine = Machine {
            n_ranks: 6,
            n_rounds: 2,
            n_steps: 200,
            order,
            seed: 11,
        };
        waiting::waiting(&cells(&machine.run()))
    };
    let (sends, copies) = (of(Order::SendsFirst), of(Order::CopiesFirst));
    assert!(
        sends.share < copies.share && sends.jitter < copies.jitter,
        "{sends:?} {copies:?}"
    );
    assert!(sends.text().contains("waiting for messages takes"));
}
