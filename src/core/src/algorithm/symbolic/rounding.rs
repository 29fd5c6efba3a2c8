//! Sums that round, by every schedule of an allreduce: a second witness beside the trees, which are computed here.

use super::claims::programs;
use super::geometry::{Delivery, Geometry, Memory};
use super::sum::Sum;
use super::world::run;
use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{InPlace, Row, rows};
use crate::algorithm::schedule::{Case, Order};
use crate::select::mix;

/// What the operations of a rank compute of the ranks' numbers, with the source first where the operation commutes.
fn computed(sum: &Sum<u8>, numbers: &[f32], operation: fn(f32, f32) -> f32, keeps: bool) -> f32 {
    match sum {
        Sum::Of(rank) => numbers[usize::from(*rank)],
        Sum::Both(both) => {
            let [source, target] =
                [&both.source, &both.target].map(|one| computed(one, numbers, operation, keeps));
            match (keeps, both.order) {
                (true, Order::SourceLast) => operation(target, source),
                _ => operation(source, target),
            }
        }
    }
}

/// As libraries take the larger: of zeros of both signs, or of a number and what is none, the second operand.
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Floats of widely different exponents; now and then a zero of either sign, and of the larger one none at all.
fn number(draw: u64, may_be_none: bool) -> f32 {
    let sign = if draw & 1 == 0 { 1.0 } else { -1.0 };
    match draw >> 1 & 15 {
        0 => 0.0 * sign,
        1 if may_be_none => f32::NAN,
        _ => {
            sign * (1.0 + (draw >> 8 & 0xffff) as f32 / 65536.0)
                * ((draw >> 32 & 63) as f32 - 32.0).exp2()
        }
    }
}

fn cases(row: &Row, n_ranks: usize) -> Vec<Case> {
    let values = row.values().into_iter();
    let mut cases: Vec<Case> = values
        .map(|values| row.case(0, n_ranks, 0, values, 300_000))
        .collect();
    cases.dedup();
    cases
}

fn memories(row: &Row) -> &'static [Memory] {
    match row.in_place {
        InPlace::Shared => &[Memory::Separate, Memory::Shared],
        InPlace::Copied => &[Memory::Separate],
    }
}

/// Whether the ranks have the same bits of sums and maxima of some numbers each.
fn check(row: &Row, case: Case, memory: Memory, seed: u64) {
    let programs = programs(row, case, memory);
    let parts_per_block = programs[0].parts_per_block as usize;
    let geometry = Geometry {
        pattern: row.pattern,
        n_ranks: case.n_ranks,
        root: 0,
        parts_per_block,
        blocks: &[parts_per_block as u64],
        memory,
    };
    let world = run(&programs, geometry, Delivery::Alternating).expect("it was proved");
    for (operation, may_be_none) in [
        ((|a, b| a + b) as fn(f32, f32) -> f32, false),
        (larger, true),
    ] {
        for keeps in [false, true] {
            for chunk in 0..parts_per_block {
                let draw = |rank: usize| mix(seed, (rank << 20 | chunk) as u64);
                let numbers = (0..case.n_ranks).map(|rank| number(draw(rank), may_be_none));
                let numbers: Vec<f32> = numbers.collect();
                let bits = |rank: usize| {
                    let content = world.output(rank)[chunk].as_ref().expect("it was proved");
                    computed(&content.sum, &numbers, operation, keeps).to_bits()
                };
                let first = bits(0);
                for rank in 1..case.n_ranks {
                    assert_eq!(
                        bits(rank),
                        first,
                        "{}: {case:?}, {memory:?}, seed {seed}: rank {rank}, {numbers:?}",
                        row.name
                    );
                }
            }
        }
    }
}

#[test]
fn ranks_have_the_same_bits_of_sums_that_round_and_of_maxima_of_what_has_no_order() {
    let mut checked = 0;
    for row in rows(Pattern::Allreduce) {
        for n_ranks in (2..=33).filter(|&n| row.fits(n)) {
            for (nth, case) in cases(row, n_ranks).into_iter().enumerate() {
                for &memory in memories(row) {
                    check(row, case, memory, (n_ranks * 100 + nth) as u64);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 300, "{checked} cases");
}

#[test]
fn the_numbers_show_an_association_that_differs() {
    let numbers = [1e6, -1e6, 1e-2, 1e-2];
    let of = |rank: u8| Sum::Of(rank);
    let both = |a, b| Sum::both(a, b, Order::SourceFirst);
    let from_first = both(both(both(of(0), of(1)), of(2)), of(3));
    let from_third = both(both(of(0), both(of(1), of(2))), of(3));
    let [first, third] =
        [from_first, from_third].map(|sum| computed(&sum, &numbers, |a, b| a + b, true).to_bits());
    assert_ne!(first, third);
    let drawn = (0..20_000).map(|draw| number(mix(7, draw), false));
    let drawn: Vec<f32> = drawn.collect();
    let differ = drawn.chunks_exact(3).filter(|three| {
        let (a, b, c) = (three[0], three[1], three[2]);
        ((a + b) + c).to_bits() != (a + (b + c)).to_bits()
    });
    assert!(differ.count() > 100);
}
