//! From calls to evidence: block by block, so that only what met is compared.
//!
//! A block is 64 calls in a row of one run, communicator and shape, more where the program's loop is long. Its calls met
//! the same machine, so their log times are level of their place + effect of the variant + noise. A place is one in the
//! loop ([`super::round`]) and a class: a variant that does not apply to calls of some class is not compared with the
//! default's there. Both are fitted in turns by medians, which a rare stall does not move. By what places differ in their levels the
//! times are corrected, as a sum: so a variant's mean stays that over all places. The moments are taken of the corrected
//! times over the block's level, so that means stay means. What a fast variant saves at a slow place may be more than
//! it takes elsewhere. Where few of its calls stood at others, its mean is held at a tenth of its typical time.
//!
//! Behind a call in a hundred or so a rank has lost its core, and what follows takes many times as long, whatever ran.
//! The means of what variants shift would be means of that. So a shift far from its variant's middle counts as one at a
//! distance that the others keep (winsorised means; Tukey & McLaughlin, Sankhya A 25, 1963).

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::select::mix;
use rayon::prelude::*;

use super::round::{self, WINDOW};
use super::{COPY, Call, Evidence, Shape};

/// What is left over at the end joins the block before, if it is a smaller share of one than this.
const SHORT_SHARE: usize = 4;
const SHORT: usize = WINDOW / SHORT_SHARE;
/// A call that took so many times as long as its variant typically does in its block is a stall.
pub(crate) const STALL: f64 = 8.0;
/// Corrected by its places a variant's mean is this share of its typical time at the least.
const CORRECTED_LEAST: f64 = 0.1;
/// Runs with more sizes of a layout than this, and few calls of each, have them binned to an eighth of an octave.
const SIZES_MAX: usize = 16;
const CALLS_PER_SIZE: usize = 64;
const ROUNDS: usize = 8;
/// So many calls of a variant in a run tell the middle of its shifts.
const CALLS_OF_MIDDLE: usize = 4;
/// Shifts count up to so many standard deviations from the middle, if that is a typical call's time or more.
const SHIFT_REACH: f64 = 4.0;
const SHIFT_REACH_LEAST: f64 = 1.0;
/// The standard deviation of a normal distribution whose median distance from its middle is 1.
const DEVIATION: f64 = 1.4826;

/// What calls were reduced to.
#[derive(Clone, Debug, Default)]
pub struct Reduced {
    pub evidence: Vec<Evidence>,
    /// Half of the default's calls once more, as of a separate variant ([`COPY`]).
    pub copies: Vec<Evidence>,
}

/// Reduces calls to evidence, in whatever order they come.
pub fn reduce(calls: Vec<Call>) -> Vec<Evidence> {
    reduce_with_copies(calls).evidence
}

/// Reduces calls to evidence, in whatever order they come, and says of half of the default's calls what they say alone.
pub fn reduce_with_copies(mut calls: Vec<Call>) -> Reduced {
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
    let reduced: Vec<(Vec<Evidence>, Option<Evidence>)> = layouts
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
                .map(of_shape)
                .collect::<Vec<_>>()
        })
        .collect();
    let mut all = Reduced::default();
    for (evidence, copy) in reduced {
        all.evidence.extend(evidence);
        all.copies.extend(copy);
    }
    all
}

/// Whether a call of the default is one of the half that stands for a separate variant. It follows from numbers that
/// all ranks share, and not from the call's place in a loop.
fn is_of_copy(call: &Call) -> bool {
    call.variant == 0 && mix(call.comm, call.index) & 1 == 1
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

/// The calls of one run at one shape, with their blocks, and places within these.
struct Group<'a> {
    calls: &'a [Call],
    block_of: Vec<usize>,
    n_blocks: usize,
    place_of: Vec<usize>,
    n_places: usize,
    /// Places of the variants that occur, by number.
    variants: BTreeMap<u16, usize>,
}

fn of_shape(calls: &[Call]) -> (Vec<Evidence>, Option<Evidence>) {
    let group = Group::new(calls);
    let variant_of: Vec<usize> = calls
        .iter()
        .map(|call| group.variants[&call.variant])
        .collect();
    let logs: Vec<f64> = calls
        .iter()
        .map(|call| call.time_ns.max(1.0).ln())
        .collect();
    let linked = linked(&group, &variant_of);
    let (expected, effects) = fit(&group, &variant_of, &linked, |index| Some(logs[*index]));
    let drift = drift(&group, &variant_of, &linked, &logs, &effects, &expected);
    let blocks = levels(&group, &expected);
    let (component, meets) = components(&group, &variant_of);
    let log_level = |index: usize| blocks[group.block_of[index]] + drift[index];
    let n = group.variants.len();
    let parts: [fn(&Call) -> Option<f64>; 2] = [|call| call.shift_ns, |call| call.after_ns];
    let [shifts, afters] = parts.map(|of| behind(&group, &variant_of, &linked, (log_level, of)));
    let counts = variant_of
        .iter()
        .fold(vec![0u32; n], |mut counts, &variant| {
            counts[variant] += 1;
            counts
        });
    let mut sums = vec![Evidence::nothing(calls[0].run, calls[0].shape, calls[0].variant); n];
    let mut copy = Evidence::nothing(calls[0].run, calls[0].shape, COPY);
    let mut level_sums = vec![(0.0, 0.0); n];
    for (index, call) in calls.iter().enumerate() {
        let (variant, block) = (variant_of[index], group.block_of[index]);
        let log_level = log_level(index);
        let level = log_level.exp();
        let time = call.time_ns.max(1.0) / level;
        // By how much calls of its place take longer than those of all.
        let of_place = (expected[index] - blocks[block]).exp() - 1.0;
        // Few calls do not say what is typical: one that stalled must not pass for the variant's own time.
        let most = if counts[variant] < 4 {
            0.0
        } else {
            f64::INFINITY
        };
        let typical = effects[variant].clamp(0.0, most).exp();
        let entry = &mut level_sums[component[variant]];
        *entry = (entry.0 + log_level, entry.1 + 1.0);
        let seen = Seen {
            time,
            of_place,
            typical,
            work: (call.work_ns / level).clamp(0.0, time),
            shift: shifts[index],
            after: afters[index],
            meets: meets[block] || n == 1,
        };
        let own = &mut sums[variant];
        (own.variant, own.component) = (call.variant, component[variant] as u16);
        seen.count_in(own);
        if is_of_copy(call) {
            copy.component = own.component;
            seen.count_in(&mut copy);
        }
    }
    let of_default = group.variants.get(&0).map(|&place| effects[place]);
    let of_copy = of_default
        .filter(|_| copy.calls > 0)
        .map(|effect| (&mut copy, effect));
    for (own, effect) in sums.iter_mut().zip(effects.iter().copied()).chain(of_copy) {
        // By few calls, most of which stalled, a variant's effect is that of a stall.
        let lacks = CORRECTED_LEAST * effect.min(0.0).exp() - own.time.mean;
        for of in [&mut own.time, &mut own.total] {
            if of.n > 0 {
                of.mean += lacks.max(0.0);
            }
        }
        own.work /= own.calls as f64;
        let (sum, count) = level_sums[usize::from(own.component)];
        own.level_ns = (sum / count).exp();
    }
    (sums, (copy.calls > 0).then_some(copy))
}

/// One call beside the level of its block.
struct Seen {
    time: f64,
    of_place: f64,
    /// What its variant typically takes.
    typical: f64,
    work: f64,
    shift: Option<f64>,
    after: Option<f64>,
    /// Whether its block knows several variants, or there is but one.
    meets: bool,
}

impl Seen {
    fn count_in(&self, own: &mut Evidence) {
        own.calls += 1;
        own.work += self.work;
        // A place of the loop may always take many times as long as the others.
        if self.time > STALL * self.typical * (1.0 + self.of_place).max(1.0) {
            own.stalls += 1;
            own.stall_excess += self.time - self.typical;
        } else if self.meets {
            let time = self.time - self.of_place;
            own.time.push(time);
            if let Some(shift) = self.shift {
                own.shift.push(shift);
                own.total.push(time + shift);
                if let Some(after) = self.after {
                    own.after.push(after);
                    own.whole.push(time + shift + after);
                }
            }
        }
    }
}

impl<'a> Group<'a> {
    fn new(calls: &'a [Call]) -> Group<'a> {
        let (mut block_of, mut n_blocks) = (Vec::with_capacity(calls.len()), 0);
        let (mut place_of, mut n_places) = (Vec::with_capacity(calls.len()), 0);
        for comm in calls.chunk_by(|a, b| a.comm == b.comm) {
            let length = round::length(comm);
            let block = round::window(length);
            let rest = comm.len() % block;
            let blocks = (comm.len() / block + usize::from(rest >= block / SHORT_SHARE)).max(1);
            let classes: BTreeSet<u8> = comm.iter().map(|call| call.class).collect();
            let classes: Vec<u8> = classes.into_iter().collect();
            for (index, call) in comm.iter().enumerate() {
                let own = (index / block).min(blocks - 1);
                let of_loop = own * length as usize + (call.index % length) as usize;
                let class = classes.binary_search(&call.class);
                block_of.push(n_blocks + own);
                place_of.push(n_places + of_loop * classes.len() + class.unwrap_or(0));
            }
            n_blocks += blocks;
            n_places += blocks * length as usize * classes.len();
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
            place_of,
            n_places,
            variants,
        }
    }
}

/// By call whether its variant stood at other places, too: what stood at one alone says nothing of that place's level,
/// as its own effect takes up whatever it has. Where nothing stood at two places all calls count.
fn linked(group: &Group, variant_of: &[usize]) -> Vec<bool> {
    let mut only = vec![None; group.variants.len()];
    let mut stood_at_two = vec![false; group.variants.len()];
    for (&variant, &place) in variant_of.iter().zip(&group.place_of) {
        stood_at_two[variant] |= *only[variant].get_or_insert(place) != place;
    }
    let any = stood_at_two.contains(&true);
    variant_of
        .iter()
        .map(|&variant| stood_at_two[variant] || !any)
        .collect()
}

/// By call the level of its place, and effects by variant, of what is known of the calls. Levels follow from the calls
/// that are linked, at places that have any.
fn fit(
    group: &Group,
    variant_of: &[usize],
    linked: &[bool],
    value: impl Fn(&usize) -> Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let mut of_place = vec![Vec::new(); group.n_places];
    let mut of_variant = vec![Vec::new(); group.variants.len()];
    for index in 0..variant_of.len() {
        if let Some(value) = value(&index) {
            of_place[group.place_of[index]].push((index, value));
            of_variant[variant_of[index]].push((index, value));
        }
    }
    for calls in &mut of_place {
        if calls.iter().any(|(index, _)| linked[*index]) {
            calls.retain(|(index, _)| linked[*index]);
        }
    }
    let mut levels = vec![0.0; group.n_places];
    let mut effects = vec![0.0; group.variants.len()];
    for _ in 0..ROUNDS {
        for (level, calls) in levels.iter_mut().zip(&of_place) {
            let beyond = calls.iter();
            *level = median(beyond.map(|&(index, value)| value - effects[variant_of[index]]));
        }
        for (effect, calls) in effects.iter_mut().zip(&of_variant) {
            let beyond = calls.iter();
            *effect = median(beyond.map(|&(index, value)| value - levels[group.place_of[index]]));
        }
        // Effects stand beside the group's typical call.
        let middle = median(variant_of.iter().map(|&variant| effects[variant]));
        effects.iter_mut().for_each(|effect| *effect -= middle);
        levels.iter_mut().for_each(|level| *level += middle);
    }
    (
        group.place_of.iter().map(|&place| levels[place]).collect(),
        effects,
    )
}

/// By block the logarithm of what a typical call takes in the mean over the places of its calls.
fn levels(group: &Group, expected: &[f64]) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); group.n_blocks];
    for (&block, expected) in group.block_of.iter().zip(expected) {
        let sum = &mut sums[block];
        *sum = (sum.0 + expected.exp(), sum.1 + 1.0);
    }
    sums.into_iter().map(|(sum, n)| f64::ln(sum / n)).collect()
}

/// By call the straight line of the residuals of its block, where it is more than noise.
fn drift(
    group: &Group,
    variant_of: &[usize],
    linked: &[bool],
    logs: &[f64],
    effects: &[f64],
    expected: &[f64],
) -> Vec<f64> {
    let mut lines = vec![0.0; logs.len()];
    let mut start = 0;
    while start < logs.len() {
        let block = group.block_of[start];
        let n = group.block_of[start..]
            .iter()
            .take_while(|&&other| other == block)
            .count();
        let residual = |index: usize| logs[index] - expected[index] - effects[variant_of[index]];
        let half = n / 2;
        let told = |calls: std::ops::Range<usize>| -> Vec<f64> {
            calls.filter(|index| linked[*index]).map(residual).collect()
        };
        let (first, second) = (told(start..start + half), told(start + half..start + n));
        let fewer = first.len().min(second.len());
        if fewer >= SHORT / 2 {
            let middle = |of: &[f64]| median(of.iter().copied());
            let rise = middle(&second) - middle(&first);
            let both = first.iter().chain(&second);
            let spread = DEVIATION * median(both.map(|residual| residual.abs()));
            if rise.abs() > 3.0 * 1.2533 * spread * (2.0 / fewer as f64).sqrt() {
                let slope = rise / half as f64;
                let middle = (n as f64 - 1.0) / 2.0;
                for (index, line) in lines[start..start + n].iter_mut().enumerate() {
                    *line = slope * (index as f64 - middle);
                }
            }
        }
        start += n;
    }
    lines
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

/// By call one part `of` what comes behind it, beyond what does at its place, in times of a typical call. That is fitted
/// beside the variants' effects: the draws differ from block to block, and with them what comes behind most calls.
fn behind(
    group: &Group,
    variant_of: &[usize],
    linked: &[bool],
    (log_level, of): (impl Fn(usize) -> f64, fn(&Call) -> Option<f64>),
) -> Vec<Option<f64>> {
    let known = |index: &usize| of(&group.calls[*index]);
    let (expected, _) = fit(group, variant_of, linked, known);
    let own = |(index, call): (usize, &Call)| {
        let beyond = of(call)? - expected[index];
        Some(beyond / log_level(index).exp())
    };
    let mut behind: Vec<Option<f64>> = group.calls.iter().enumerate().map(own).collect();
    let bounds = bounds(&behind, variant_of, group.variants.len());
    for (own, &variant) in behind.iter_mut().zip(variant_of) {
        *own = own.map(|own| own.clamp(bounds[variant][0], bounds[variant][1]));
    }
    behind
}

/// By variant the least and the most that a shift of its calls counts, [`STALL`] at the utmost: about its own middle.
/// The middle of few calls is unknown; where such variants shift much in most of their calls all of that counts.
fn bounds(shifts: &[Option<f64>], variant_of: &[usize], n: usize) -> Vec<[f64; 2]> {
    let mut of_variant: Vec<Vec<f64>> = vec![Vec::new(); n];
    for (shift, &variant) in shifts.iter().zip(variant_of) {
        of_variant[variant].extend(*shift);
    }
    let middle =
        |own: &Vec<f64>| (own.len() >= CALLS_OF_MIDDLE).then(|| median(own.iter().copied()));
    let middles: Vec<Option<f64>> = of_variant.iter().map(middle).collect();
    let reach = |with_middle: bool| {
        let of_kind = of_variant
            .iter()
            .zip(&middles)
            .filter(|(_, middle)| middle.is_some() == with_middle);
        let away = of_kind.flat_map(|(own, middle)| {
            let middle = middle.unwrap_or(0.0);
            own.iter().map(move |shift| (shift - middle).abs())
        });
        (SHIFT_REACH * DEVIATION * median(away)).clamp(SHIFT_REACH_LEAST, STALL)
    };
    let (reach, reach_of_few) = (reach(true), reach(false));
    let known = || middles.iter().copied().flatten();
    let (least, most) = (known().fold(0.0, f64::min), known().fold(0.0, f64::max));
    let bounds = |middle: &Option<f64>| {
        let (least, most) = match *middle {
            Some(middle) => (middle - reach, middle + reach),
            None => (least - reach_of_few, most + reach_of_few),
        };
        [least, most].map(|bound| bound.clamp(-STALL, STALL))
    };
    middles.iter().map(bounds).collect()
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
