//! Claims about evidence.

use colltune_models::evidence::{Call, Evidence, reduce};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::generator::*;

fn calls(machine: Machine, costs: &[f64]) -> Vec<Call> {
    let mut random = rand::rngs::StdRng::seed_from_u64(3);
    let shares = vec![1.0 / costs.len() as f64; costs.len()];
    machine.run(
        0,
        &Truth {
            shape: shape(64),
            costs: costs.to_vec(),
        },
        &shares,
        6000,
        &mut random,
    )
}

#[test]
fn means_are_means_whatever_the_order_and_the_number_of_threads() {
    let machine = Machine {
        run_effect: 0.0,
        ..USUAL
    };
    let mut calls = calls(machine, &[1.0, 0.8, 3.0]);
    let rows = reduce(calls.clone());
    assert_eq!(rows.len(), 3);
    for (row, truth) in rows.iter().zip([1.0, 0.8, 3.0]) {
        let ratio = row.time.mean / rows[0].time.mean;
        assert!((ratio / truth - 1.0).abs() < 0.02, "{ratio} for {truth}");
        let variation = row.time.variance().sqrt() / row.time.mean;
        assert!((0.18..0.23).contains(&variation), "{variation}");
        assert_eq!((row.stalls, row.calls > 1800), (0, true));
    }
    calls.shuffle(&mut rand::rngs::StdRng::seed_from_u64(1));
    let alone = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(alone.install(|| reduce(calls)), rows);
}

#[test]
fn drift_of_the_machine_is_taken_out_and_stalls_are_counted_apart() {
    let machine = Machine {
        run_effect: 0.0,
        stalls: Some((1, 0.02, 500.0)),
        ..USUAL
    };
    let mut calls = calls(machine, &[1.0, 0.9]);
    for call in &mut calls {
        call.time_ns *= (call.index as f64 / 500.0).exp();
    }
    let rows = reduce(calls);
    let ratio = rows[1].time.mean / rows[0].time.mean;
    assert!((ratio / 0.9 - 1.0).abs() < 0.02, "{ratio}");
    assert_eq!(rows[0].stalls, 0);
    assert!((30..100).contains(&rows[1].stalls), "{}", rows[1].stalls);
    let size = rows[1].stall_excess / rows[1].stalls as f64;
    assert!((350.0..600.0).contains(&size), "{size}");
}

#[test]
fn variants_that_never_met_are_of_different_components() {
    let mut calls = calls(USUAL, &[1.0, 1.0, 1.0]);
    // The third runs on a separate communicator.
    for call in &mut calls {
        call.comm = u64::from(call.variant == 2);
    }
    let rows = reduce(calls);
    assert_eq!(rows[0].component, rows[1].component);
    assert_ne!(rows[0].component, rows[2].component);
    assert!(
        rows.iter()
            .all(|row| row.time.n + row.stalls == row.calls || row.variant == 2)
    );
}

#[test]
fn many_sizes_with_few_calls_are_binned() {
    let mut random = rand::rngs::StdRng::seed_from_u64(5);
    let mut calls = calls(USUAL, &[1.0, 1.0]);
    calls.truncate(500);
    for call in &mut calls {
        call.shape.message_bytes = random.random_range(1024..2048);
    }
    let rows = reduce(calls);
    assert!(rows.len() <= 16, "{}", rows.len());
    assert_eq!(rows.iter().map(|row| row.calls).sum::<u64>(), 500);
}

/// Calls of a run of variants that take alike, and shift so much.
fn shifting(shifts: &[f64], tails: f64) -> Vec<Call> {
    let machine = Machine {
        run_effect: 0.0,
        ..USUAL
    };
    let mut calls = calls(machine, &vec![1.0; shifts.len()]);
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    Behind { shifts, tails }.follow(&mut calls, &mut random);
    calls
}

#[test]
fn what_follows_one_call_in_fifty_for_fifty_times_as_long_hides_nothing_of_what_variants_shift() {
    let truth = [0.0, -0.3, 2.0];
    let rows = reduce(shifting(&truth, 0.02));
    for (row, truth) in rows.iter().zip(truth) {
        let shift = row.shift.mean - rows[0].shift.mean;
        assert!((shift - truth).abs() < 0.15, "{shift} for {truth}");
        let [shift, total] = [row.shift, row.total].map(|of| of.variance());
        assert!(shift < 0.2 && total < 0.3, "{shift} {total}");
    }
}

/// The first two calls of all variants but the first two.
fn with_few(mut calls: Vec<Call>) -> Vec<Call> {
    let mut seen = [0; 8];
    calls.retain(|call| {
        let own = &mut seen[usize::from(call.variant)];
        *own += 1;
        call.variant < 2 || *own <= 2
    });
    calls
}

#[test]
fn of_two_calls_what_follows_both_counts_and_what_now_and_then_follows_any_does_not() {
    let rows = reduce(with_few(shifting(&[0.0, 0.0, 3.0], 0.0)));
    let both = rows[2].shift;
    assert_eq!((rows[2].variant, both.n), (2, 2));
    assert!((both.mean - 3.0).abs() < 0.6, "{both:?}");
    let mut calls = with_few(shifting(&[0.0; 8], 0.0));
    let once = calls.iter_mut().find(|call| call.variant == 2).unwrap();
    once.shift_ns = once.shift_ns.map(|shift| 50.0 * shift);
    let rows = reduce(calls);
    let once = rows[2].shift;
    assert_eq!((rows[2].variant, once.n), (2, 2));
    assert!(once.mean.abs() < 1.0, "{once:?}");
}

/// What calls of each variant take at the two places of a loop, in us, and their numbers.
fn of_loop(us: [[f64; 2]; 2], index: impl Fn(u64) -> u64) -> Vec<Call> {
    let mut random = rand::rngs::StdRng::seed_from_u64(5);
    let one = |k: u64| {
        let (place, variant) = (k % 2, random.random_range(0..2u16));
        let us = us[usize::from(variant)][place as usize];
        let mut noise = || 0.8 + 0.4 * random.random::<f64>();
        let time_ns = 1e3 * us * noise();
        Call {
            shift_ns: Some([6.7e4, 80.0][place as usize] * noise()),
            ..call_at(index(k), variant, time_ns)
        }
    };
    (0..3000).map(one).collect()
}

/// Two dot products an iteration: ranks compute before the first, which gains little, the second follows at once.
fn dot_products(index: impl Fn(u64) -> u64) -> Vec<Call> {
    of_loop([[40.7, 15.8], [35.5, 8.4]], index)
}

#[test]
fn calls_of_a_loop_are_compared_at_their_place_in_it_and_gain_what_all_places_gain_together() {
    let truth = (35.5 + 8.4) / (40.7 + 15.8);
    let spread = |rows: &[Evidence]| {
        let of = |row: &Evidence| {
            let unit = row.time.mean;
            [row.time, row.shift, row.total].map(|of| of.variance().sqrt() / unit)
        };
        [of(&rows[0]), of(&rows[1])]
    };
    let told_apart = reduce(dot_products(|k| k));
    let ratio = told_apart[1].time.mean / told_apart[0].time.mean;
    assert!((ratio / truth - 1.0).abs() < 0.02, "{ratio} for {truth}");
    // The same calls in a program that calls at will.
    let mixed = reduce(dot_products(|k| 32 * k + ((k * 2_654_435_761) >> 16) % 32));
    for (own, without) in spread(&told_apart).into_iter().zip(spread(&mixed)) {
        for (own, without) in own.into_iter().zip(without) {
            assert!(own < 0.6 * without, "{own} beside {without}");
        }
    }
}

/// A loop one of whose calls takes twenty times as long as the other, and a variant that takes half of the default's
/// time at both.
fn halved() -> Vec<Call> {
    of_loop([[20.0, 1.0], [10.0, 0.5]], |k| k)
}

#[test]
fn a_variant_that_is_twice_as_fast_everywhere_is_so_though_places_differ_twentyfold() {
    let rows = reduce(halved());
    let faster = rows[0].time.mean / rows[1].time.mean;
    assert!((1.7..2.3).contains(&faster), "{faster}");
}

#[test]
fn a_fast_variant_that_ran_at_slow_places_alone_is_not_lost() {
    let mut calls = halved();
    let mut seen = 0;
    calls.retain(|call| {
        let is_kept = call.variant == 0 || (call.index.is_multiple_of(2) && seen < 3);
        seen += i32::from(is_kept && call.variant == 1);
        is_kept
    });
    let rows = reduce(calls);
    assert_eq!((rows[1].variant, rows[1].time.n), (1, 3));
    // A tenth of its half of the default's time or more, which noise of a fifth may make a tenth of 0.4.
    let ratio = rows[1].time.mean / rows[0].time.mean;
    assert!((0.035..0.5).contains(&ratio), "{ratio}");
    let total = rows[1].total;
    let both = rows[1].time.mean + rows[1].shift.mean;
    assert!((total.mean - both).abs() < 1e-9, "{total:?} and {both}");
}

#[test]
fn a_place_of_a_long_loop_that_takes_fifty_times_as_long_does_not_stall() {
    let mut random = rand::rngs::StdRng::seed_from_u64(9);
    let one = |k: u64| {
        let variant = random.random_range(0..2u16);
        let us = [10.0, 500.0][usize::from(k.is_multiple_of(16))] / f64::from(1 + variant);
        call_at(k, variant, 1e3 * us * (0.9 + 0.2 * random.random::<f64>()))
    };
    let rows = reduce((0..4000).map(one).collect());
    assert!(rows.iter().all(|row| row.stalls == 0), "{rows:?}");
    let ratio = rows[1].time.mean / rows[0].time.mean;
    assert!((ratio / 0.5 - 1.0).abs() < 0.05, "{ratio}");
}

/// As the race of a first job leaves it: all variants at first, then the default and the best.
#[test]
fn levels_hold_where_most_of_a_block_are_variants_that_ran_once() {
    let takes = |variant: u16| match variant {
        0 => 2e4,
        1 => 1e4,
        _ => 3e4,
    };
    let mut first: Vec<u16> = (2..42).chain([0; 12]).chain([1; 12]).collect();
    let mut second: Vec<u16> = [[0; 20].as_slice(), &[1; 44]].concat();
    let mut random = rand::rngs::StdRng::seed_from_u64(4);
    first.shuffle(&mut random);
    second.shuffle(&mut random);
    let calls = (0..).zip(first.into_iter().chain(second));
    let calls = calls.map(|(k, variant)| call_at(7 * k * k + k, variant, takes(variant)));
    let rows = reduce(calls.collect());
    let ratio = rows[1].time.mean / rows[0].time.mean;
    assert!((0.49..0.51).contains(&ratio), "{ratio}");
    for row in &rows[..2] {
        let variation = row.time.variance().sqrt() / row.time.mean;
        assert!(variation < 0.02, "{variation}");
    }
}

/// Calls of a derived type take five times as long, run the default alone, and are every third or so.
#[test]
fn what_runs_the_default_alone_makes_no_other_variant_faster() {
    let mut random = rand::rngs::StdRng::seed_from_u64(7);
    let one = |k: u64| {
        let derived = random.random::<f64>() < 0.3;
        let drawn = random.random_range(0..2u16);
        let noise = 0.8 + 0.4 * random.random::<f64>();
        let (variant, us) = if derived { (0, 50.0) } else { (drawn, 10.0) };
        Call {
            probability: 0.0,
            class: u8::from(derived) << 4,
            ..call_at(k, variant, 1e3 * us * noise)
        }
    };
    let rows = reduce((0..4000).map(one).collect());
    let ratio = rows[1].time.mean / rows[0].time.mean;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    assert!(rows.iter().all(|row| row.stalls == 0), "{rows:?}");
}

#[test]
fn what_variants_shift_is_the_same_whatever_most_calls_of_a_block_ran() {
    let truth = [0.0, -1.0, 0.0];
    let mut random = rand::rngs::StdRng::seed_from_u64(6);
    let mut calls = shifting(&truth, 0.0);
    // In the first half what shifts is rare, in the second the default; the third variant is in both alike.
    let half = calls.len() as u64 / 2;
    calls.retain(|call| {
        let rare = u16::from(call.index < half);
        call.variant != rare || random.random::<f64>() < 0.05
    });
    let rows = reduce(calls);
    for (row, truth) in rows.iter().zip(truth) {
        let shift = row.shift.mean - rows[0].shift.mean;
        assert!((shift - truth).abs() < 0.1, "{shift} for {truth}");
    }
}
