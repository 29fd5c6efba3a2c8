//! From calls to evidence: block by block, so that only what met is compared.
//!
//! A block is 64 calls in a row of one run, communicator and shape. Its calls met the same machine, so their log
//! times are level of the block + effect of the variant + noise. Both are fitted in turns by medians, which a rare
//! stall does not move; the moments are then taken of times over levels, so that means stay means.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{Call, Evidence, Shape};

/// Calls in a block; what is left over at the end joins the block before, if it is short.
const BLOCK: usize = 64;
const SHORT: usize = 16;
/// A call that took so many times as long as its variant typically does in its block is a stall.
pub(crate) const STALL: f64 = 8.0;
/// Runs with more sizes of a layout than this, and few calls of each, have them binned to an eighth of an octave.
const SIZES_MAX: usize = 16;
const CALLS_PER_SIZE: usize = 64;
const ROUNDS: usize = 8;

/// Reduces calls to evidence, in whatever order they come.
pub fn reduce(mut calls: Vec<Call>) -> Vec<Evidence> {
    calls.par_sort_unstable_by_key(|call| {
        let Shape {
            collective,
            nodes,
            ppn,
            n_ranks,
            ..
        } = call.shape;
        (call.run, collective, nodes, ppn, n_ranks)
    });
    let layouts: Vec<&mut [Call]> = calls
        .chunk_by_mut(|a, b| {
            let layout = |call: &Call| {
                (
                    call.run,
                    Shape {
                        message_bytes: 0,
                        ..call.shape
                    },
                )
            };
            layout(a) == layout(b)
        })
        .collect();
    layouts
        .into_par_iter()
        .flat_map_iter(|layout| {
            bin(layout);
            layout.sort_unstable_by(|a, b| {
                let key = |call: &Call| {
                    (
                        call.shape,
                        call.comm,
                        call.index,
                        call.start_ns,
                        call.variant,
                    )
                };
                key(a).cmp(&key(b)).then(a.time_ns.total_cmp(&b.time_ns))
            });
            layout
                .chunk_by(|a, b| a.shape == b.shape)
                .flat_map(of_shape)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn bin(layout: &mut [Call]) {
    let mut sizes: Vec<u64> = layout.iter().map(|call| call.shape.message_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() <= SIZES_MAX || layout.len() >= CALLS_PER_SIZE * sizes.len() {
        return;
    }
    for call in layout {
        let bytes = &mut call.shape.message_bytes;
        if *bytes >= 16 {
            *bytes = ((8.0 * (*bytes as f64).log2()).floor() / 8.0).exp2().ceil() as u64;
        }
    }
}

/// The calls of one run at one shape, with their blocks.
struct Group<'a> {
    calls: &'a [Call],
    block_of: Vec<usize>,
    n_blocks: usize,
    /// Places of the variants that occur, by number.
    variants: BTreeMap<u16, usize>,
}

fn of_shape(calls: &[Call]) -> Vec<Evidence> {
    let group = Group::new(calls);
    let variant_of: Vec<usize> = calls
        .iter()
        .map(|call| group.variants[&call.variant])
        .collect();
    let logs: Vec<f64> = calls
        .iter()
        .map(|call| call.time_ns.max(1.0).ln())
        .collect();
    let (mut levels, effects) = fit(&group, &variant_of, &logs);
    take_out_drift(&group, &variant_of, &logs, &effects, &mut levels);
    let (component, meets) = components(&group, &variant_of);
    let shifts = typical_shifts(&group);
    let counts =
        variant_of
            .iter()
            .fold(vec![0u32; group.variants.len()], |mut counts, &variant| {
                counts[variant] += 1;
                counts
            });
    let n = group.variants.len();
    let mut sums = vec![Evidence::nothing(calls[0].run, calls[0].shape, calls[0].variant); n];
    let mut level_sums = vec![(0.0, 0.0); n];
    for (index, call) in calls.iter().enumerate() {
        let (variant, block) = (variant_of[index], group.block_of[index]);
        let own = &mut sums[variant];
        (own.variant, own.component) = (call.variant, component[variant] as u16);
        own.calls += 1;
        let level = levels[index].exp();
        let time = call.time_ns.max(1.0) / level;
        // Few calls do not say what is typical: one that stalled must not pass for the variant's own time.
        let most = if counts[variant] < 4 {
            0.0
        } else {
            f64::INFINITY
        };
        let typical = effects[variant].clamp(0.0, most).exp();
        own.work += (call.work_ns / level).clamp(0.0, time);
        let entry = &mut level_sums[component[variant]];
        *entry = (entry.0 + levels[index], entry.1 + 1.0);
        if time > STALL * typical {
            own.stalls += 1;
            own.stall_excess += time - typical;
        } else if meets[block] || n == 1 {
            own.time.push(time);
            if let Some(shift) = call.shift_ns {
                let shift = ((shift - shifts[block]) / level).clamp(-STALL, STALL);
                own.shift.push(shift);
                own.total.push(time + shift);
            }
        }
    }
    for own in &mut sums {
        own.work /= own.calls as f64;
        let (sum, count) = level_sums[usize::from(own.component)];
        own.level_ns = (sum / count).exp();
    }
    sums
}

impl<'a> Group<'a> {
    fn new(calls: &'a [Call]) -> Group<'a> {
        let mut block_of = Vec::with_capacity(calls.len());
        let mut n_blocks = 0;
        for comm in calls.chunk_by(|a, b| a.comm == b.comm) {
            let rest = comm.len() % BLOCK;
            let blocks = (comm.len() / BLOCK + usize::from(rest >= SHORT)).max(1);
            block_of
                .extend((0..comm.len()).map(|place| n_blocks + (place / BLOCK).min(blocks - 1)));
            n_blocks += blocks;
        }
        let mut variants: BTreeMap<u16, usize> =
            calls.iter().map(|call| (call.variant, 0)).collect();
        variants
            .values_mut()
            .enumerate()
            .for_each(|(place, slot)| *slot = place);
        Group {
            calls,
            block_of,
            n_blocks,
            variants,
        }
    }
}

/// Levels by call (all calls of a block share theirs) and effects by variant, both of log times.
fn fit(group: &Group, variant_of: &[usize], logs: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut of_block = vec![Vec::new(); group.n_blocks];
    let mut of_variant = vec![Vec::new(); group.variants.len()];
    for index in 0..logs.len() {
        of_block[group.block_of[index]].push(index);
        of_variant[variant_of[index]].push(index);
    }
    let mut levels = vec![0.0; group.n_blocks];
    let mut effects = vec![0.0; group.variants.len()];
    for _ in 0..ROUNDS {
        for (level, calls) in levels.iter_mut().zip(&of_block) {
            *level = median(
                calls
                    .iter()
                    .map(|&index| logs[index] - effects[variant_of[index]]),
            );
        }
        for (effect, calls) in effects.iter_mut().zip(&of_variant) {
            *effect = median(
                calls
                    .iter()
                    .map(|&index| logs[index] - levels[group.block_of[index]]),
            );
        }
        // Effects stand beside the group's typical call.
        let middle = median(variant_of.iter().map(|&variant| effects[variant]));
        effects.iter_mut().for_each(|effect| *effect -= middle);
        levels.iter_mut().for_each(|level| *level += middle);
    }
    (
        group.block_of.iter().map(|&block| levels[block]).collect(),
        effects,
    )
}

/// Adds to the levels of a block the straight line of its residuals, where it is more than noise.
fn take_out_drift(
    group: &Group,
    variant_of: &[usize],
    logs: &[f64],
    effects: &[f64],
    levels: &mut [f64],
) {
    let mut start = 0;
    while start < logs.len() {
        let block = group.block_of[start];
        let n = group.block_of[start..]
            .iter()
            .take_while(|&&other| other == block)
            .count();
        let residual = |index: usize| logs[index] - levels[index] - effects[variant_of[index]];
        let half = n / 2;
        if half >= SHORT / 2 {
            let (first, second) = (start..start + half, start + half..start + n);
            let rise = median(second.clone().map(residual)) - median(first.clone().map(residual));
            let spread = 1.4826 * median((start..start + n).map(|index| residual(index).abs()));
            if rise.abs() > 3.0 * 1.2533 * spread * (2.0 / half as f64).sqrt() {
                let slope = rise / half as f64;
                let middle = (n as f64 - 1.0) / 2.0;
                for (index, level) in levels[start..start + n].iter_mut().enumerate() {
                    *level += slope * (index as f64 - middle);
                }
            }
        }
        start += n;
    }
}

/// The component of each variant, and for each block whether several variants meet in it.
fn components(group: &Group, variant_of: &[usize]) -> (Vec<usize>, Vec<bool>) {
    let mut first = vec![usize::MAX; group.n_blocks];
    let mut meets = vec![false; group.n_blocks];
    let mut component: Vec<usize> = (0..group.variants.len()).collect();
    for (index, &variant) in variant_of.iter().enumerate() {
        let block = group.block_of[index];
        if first[block] == usize::MAX {
            first[block] = variant;
        }
        let (one, other) = (component[first[block]], component[variant]);
        meets[block] |= first[block] != variant;
        if one != other {
            let joined = one.min(other);
            component
                .iter_mut()
                .filter(|of| **of == one || **of == other)
                .for_each(|of| *of = joined);
        }
    }
    (component, meets)
}

/// By block what typically comes behind a call, whatever its variant.
fn typical_shifts(group: &Group) -> Vec<f64> {
    let mut shifts = vec![Vec::new(); group.n_blocks];
    for (call, &block) in group.calls.iter().zip(&group.block_of) {
        shifts[block].extend(call.shift_ns);
    }
    shifts
        .into_iter()
        .map(|shifts| median(shifts.into_iter()))
        .collect()
}

/// The median; 0 of no values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return *value;
    }
    let other = below.iter().copied().max_by(f64::total_cmp);
    (*value + other.unwrap_or(*value)) / 2.0
}
