use super::*;
use crate::rows::{Round, Window};

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
    let verdict = verdict(
        &blocks,
        &cells,
        &processors(&cells, &[], &BTreeMap::new()),
        &[],
    );
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
