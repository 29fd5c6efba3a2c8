//! Parts and slots that have something in common, and which part gets which slot.

use super::exact;
use crate::sort::radix;

/// What parts and slots have in common: one entry for each two that have. By columns, since most is looked at by one.
///
/// Shape: columns of one length; parts do not fall, and no two entries are of the same part and slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlaps {
    pub parts: Vec<u32>,
    pub slots: Vec<u32>,
    pub weights: Vec<u64>,
}

impl Overlaps {
    pub fn with_capacity(n: usize) -> Overlaps {
        Overlaps {
            parts: Vec::with_capacity(n),
            slots: Vec::with_capacity(n),
            weights: Vec::with_capacity(n),
        }
    }

    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn push(&mut self, part: u32, slot: u32, weight: u64) {
        self.parts.push(part);
        self.slots.push(slot);
        self.weights.push(weight);
    }

    pub fn clear(&mut self) {
        self.parts.clear();
        self.slots.clear();
        self.weights.clear();
    }

    /// Part, slot and weight of each.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let ends = self.parts.iter().zip(&self.slots);
        ends.zip(&self.weights)
            .map(|((&part, &slot), &weight)| (part, slot, weight))
    }

    /// The sum of the weights of those that `slot_of` has chosen.
    pub fn kept(&self, slot_of: impl Fn(u32) -> u32) -> u64 {
        let stays = self.iter().filter(|&(part, slot, _)| slot_of(part) == slot);
        stays.map(|(_, _, weight)| weight).sum()
    }
}

/// No slot, or no part.
pub(super) const NONE: u32 = u32::MAX;

/// Up to this many parts the assignment is exact.
pub(super) const EXACT_MAX: usize = 128;

/// Overlaps that are looked at while a large assignment is improved: some milliseconds.
const LOOKS_MAX: usize = 500_000;

/// The slot of each of `n` parts: those of [`pairs`]; of the others each keeps its number where that is free.
pub(super) fn permutation(n: usize, overlaps: &Overlaps) -> Vec<u32> {
    let mut slots = vec![NONE; n];
    pairs(n, overlaps, &mut Pairs::default(), &mut slots);
    complete(&mut slots);
    slots
}

/// Gives the parts that have no slot one that is free: their own number, if it is.
pub(super) fn complete(slots: &mut [u32]) {
    let mut taken = vec![false; slots.len()];
    for &slot in slots.iter().filter(|&&slot| slot != NONE) {
        taken[slot as usize] = true;
    }
    for part in 0..slots.len() {
        if slots[part] == NONE && !taken[part] {
            (slots[part], taken[part]) = (part as u32, true);
        }
    }
    let mut free = (0u32..).zip(&taken).filter(|(_, taken)| !**taken);
    for slot in slots.iter_mut().filter(|slot| **slot == NONE) {
        *slot = free.next().expect("as many slots as parts").0;
    }
}

/// Chooses overlaps of which no two share a part or a slot, with a large sum of weights; the largest of all up to 128
/// parts.
///
/// Shape: parts and slots are below `n`, and so is the length of `slots`, where the answer goes: [`NONE`] for parts
/// without one.
pub(super) fn pairs(n: usize, overlaps: &Overlaps, search: &mut Pairs, slots: &mut [u32]) {
    match n <= EXACT_MAX && overlaps.len() > 1 {
        true => exact_pairs(n, overlaps, slots),
        false => {
            search.greedy(n, overlaps);
            search.improve(overlaps);
            slots.copy_from_slice(&search.slot_of);
        }
    }
}

fn exact_pairs(n: usize, overlaps: &Overlaps, slots: &mut [u32]) {
    // Of equal sums the one in which more parts keep their number.
    let mut weights = vec![0i64; n * n];
    let scale = n as i64 + 1;
    (0..n).for_each(|i| weights[i * n + i] = 1);
    for (part, slot, weight) in overlaps.iter() {
        // Half of the range, so that no sum over the parts overflows.
        let weight = weight.min(i64::MAX as u64 / 2 / (n as u64 + 1).pow(2)) as i64;
        weights[part as usize * n + slot as usize] += weight * scale;
    }
    let found = exact::assignment(n, &weights);
    slots.fill(NONE);
    for (part, slot, _) in overlaps.iter() {
        if found[part as usize] == slot as usize {
            slots[part as usize] = slot;
        }
    }
}

/// A search that is never exact: the heaviest first, then exchanges that gain. What it holds is used again.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// The slot of each part.
    pub slot_of: Vec<u32>,
    /// The weight of that.
    held: Vec<u64>,
    /// The part of each slot.
    part_of: Vec<u32>,
    /// Overlaps from the heaviest to the lightest.
    order: Vec<u32>,
    /// Where each part's overlaps begin.
    first: Vec<u32>,
    /// Overlaps by slot, and where each slot's end.
    by_slot: Vec<u32>,
    ends: Vec<u32>,
    heaviest: u64,
}

impl Pairs {
    /// The heaviest first.
    pub fn greedy(&mut self, n: usize, overlaps: &Overlaps) {
        debug_assert!(overlaps.parts.is_sorted());
        self.heaviest = overlaps.weights.iter().copied().max().unwrap_or(0);
        heaviest_first(overlaps, self.heaviest, &mut self.order);
        reset(&mut self.slot_of, n, NONE);
        reset(&mut self.part_of, n, NONE);
        reset(&mut self.held, n, 0);
        for &i in &self.order {
            let i = i as usize;
            let (part, slot) = (overlaps.parts[i] as usize, overlaps.slots[i] as usize);
            if self.slot_of[part] == NONE && self.part_of[slot] == NONE {
                self.slot_of[part] = slot as u32;
                self.part_of[slot] = part as u32;
                self.held[part] = overlaps.weights[i];
            }
        }
    }

    /// Exchanges that gain, until there is none or enough was looked at.
    pub fn improve(&mut self, overlaps: &Overlaps) {
        // Whoever has the heaviest of all has no better one.
        if (self.slot_of.iter().zip(&self.held))
            .all(|(&slot, &held)| slot != NONE && held == self.heaviest)
        {
            return;
        }
        self.index(overlaps);
        let order = std::mem::take(&mut self.order);
        let mut looks = LOOKS_MAX;
        loop {
            let mut improved = false;
            for &i in &order {
                improved |= self.exchange(overlaps, i as usize, &mut looks);
                if looks == 0 {
                    break;
                }
            }
            if !improved || looks == 0 {
                break;
            }
        }
        self.order = order;
    }

    /// Finds the overlaps of each part and slot.
    fn index(&mut self, overlaps: &Overlaps) {
        let n = self.slot_of.len();
        reset(&mut self.first, n + 1, 0);
        reset(&mut self.ends, n + 1, 0);
        for (&part, &slot) in overlaps.parts.iter().zip(&overlaps.slots) {
            self.first[part as usize + 1] += 1;
            self.ends[slot as usize] += 1;
        }
        let mut sum = 0;
        for i in 0..n {
            self.first[i + 1] += self.first[i];
            // For the moment where those of each slot begin.
            sum += std::mem::replace(&mut self.ends[i], sum);
        }
        self.ends[n] = sum;
        self.by_slot.resize(overlaps.len(), 0);
        for (i, &slot) in (0u32..).zip(&overlaps.slots) {
            let place = &mut self.ends[slot as usize];
            self.by_slot[*place as usize] = i;
            *place += 1;
        }
    }

    fn row_of_part(&self, part: u32) -> std::ops::Range<usize> {
        self.first[part as usize] as usize..self.first[part as usize + 1] as usize
    }

    fn row_of_slot(&self, slot: u32) -> &[u32] {
        let from = match slot {
            0 => 0,
            slot => self.ends[slot as usize - 1],
        };
        &self.by_slot[from as usize..self.ends[slot as usize] as usize]
    }

    fn weight_of(&self, part: u32) -> u64 {
        match part {
            NONE => 0,
            part => self.held[part as usize],
        }
    }

    /// Takes overlap `i` in place of the pairs that it shares a part or slot with, if with the best free overlaps of
    /// those who lose theirs that gains; says whether it did. Counts down what may still be looked at.
    fn exchange(&mut self, overlaps: &Overlaps, i: usize, looks: &mut usize) -> bool {
        let (part, slot) = (overlaps.parts[i], overlaps.slots[i]);
        let weight = overlaps.weights[i];
        // The part that loses this slot may take a free one, and the slot that loses this part a free one.
        let left_slot = self.slot_of[part as usize];
        if left_slot == slot {
            return false;
        }
        let left_part = self.part_of[slot as usize];
        let lost = self.weight_of(part) + self.weight_of(left_part);
        *looks = looks.saturating_sub(1);
        let most = |end: u32| if end == NONE { 0 } else { self.heaviest };
        let mut gained = weight;
        if gained
            .saturating_add(most(left_part))
            .saturating_add(most(left_slot))
            <= lost
        {
            return false;
        }
        // The slot that the part finds.
        let mut for_part: Option<(u32, u64)> = None;
        if left_part != NONE {
            let row = self.row_of_part(left_part);
            *looks = looks.saturating_sub(row.len());
            for j in row {
                let other = overlaps.slots[j];
                let is_free =
                    other != slot && (other == left_slot || self.part_of[other as usize] == NONE);
                if is_free && for_part.is_none_or(|(_, known)| known < overlaps.weights[j]) {
                    for_part = Some((other, overlaps.weights[j]));
                }
            }
            gained += for_part.map_or(0, |(_, weight)| weight);
            if gained.saturating_add(most(left_slot)) <= lost {
                return false;
            }
        }
        // The part that the slot finds, unless it was found itself.
        let mut for_slot: Option<(u32, u64)> = None;
        if left_slot != NONE && for_part.is_none_or(|(found, _)| found != left_slot) {
            let row = self.row_of_slot(left_slot);
            *looks = looks.saturating_sub(row.len());
            for &j in row {
                let other = overlaps.parts[j as usize];
                let is_left = other == left_part && for_part.is_none();
                let is_free = other != part && (is_left || self.slot_of[other as usize] == NONE);
                let weight = overlaps.weights[j as usize];
                if is_free && for_slot.is_none_or(|(_, known)| known < weight) {
                    for_slot = Some((other, weight));
                }
            }
            gained += for_slot.map_or(0, |(_, weight)| weight);
        }
        if gained <= lost {
            return false;
        }
        if left_part != NONE {
            self.slot_of[left_part as usize] = NONE;
            self.held[left_part as usize] = 0;
        }
        if left_slot != NONE {
            self.part_of[left_slot as usize] = NONE;
        }
        self.join(part, slot, weight);
        if let Some((found, weight)) = for_part {
            self.join(left_part, found, weight);
        }
        if let Some((found, weight)) = for_slot {
            self.join(found, left_slot, weight);
        }
        true
    }

    fn join(&mut self, part: u32, slot: u32, weight: u64) {
        self.slot_of[part as usize] = slot;
        self.part_of[slot as usize] = part;
        self.held[part as usize] = weight;
    }
}

fn reset<T: Clone>(column: &mut Vec<T>, n: usize, value: T) {
    column.clear();
    column.resize(n, value);
}

/// The overlaps from the heaviest to the lightest; of equal ones those that keep their number, then as they stand.
fn heaviest_first(overlaps: &Overlaps, heaviest: u64, order: &mut Vec<u32>) {
    /// So many places of a count are cheaper to clear than overlaps are to sort in another way.
    const FEW: usize = 64;
    const PLACES: usize = 2048;
    let all = || overlaps.iter();
    let lightness =
        |(part, slot, weight): (u32, u32, u64)| (heaviest - weight) << 1 | u64::from(part != slot);
    order.clear();
    if heaviest < PLACES as u64 / 2 && overlaps.len() > FEW {
        let mut counts = [0u32; PLACES];
        all().for_each(|one| counts[lightness(one) as usize] += 1);
        let mut place = 0;
        for count in &mut counts[..2 * heaviest as usize + 2] {
            place += std::mem::replace(count, place);
        }
        order.resize(overlaps.len(), 0);
        for (i, one) in (0u32..).zip(all()) {
            let place = &mut counts[lightness(one) as usize];
            order[*place as usize] = i;
            *place += 1;
        }
    } else if heaviest < 1 << 31 {
        let words = (0u64..).zip(all());
        let words = words.map(|(i, one)| lightness(one) << 32 | i);
        if overlaps.len() > FEW {
            order.extend(radix(words.collect()).into_iter().map(|word| word as u32));
            return;
        }
        let mut few = [0u64; FEW];
        let few = &mut few[..overlaps.len()];
        few.iter_mut()
            .zip(words)
            .for_each(|(one, word)| *one = word);
        few.sort_unstable();
        order.extend(few.iter().map(|&word| word as u32));
    } else {
        order.extend(0..overlaps.len() as u32);
        order.sort_by_key(|&i| {
            let i = i as usize;
            let is_other = overlaps.parts[i] != overlaps.slots[i];
            (!overlaps.weights[i], is_other)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    fn random_overlaps(random: &mut Random, n: usize, blocks: usize) -> Overlaps {
        let mut sums = std::collections::BTreeMap::new();
        for _ in 0..blocks {
            let key = (random.below(n) as u32, random.below(n) as u32);
            *sums.entry(key).or_insert(0) += 1;
        }
        let mut overlaps = Overlaps::default();
        for ((part, slot), weight) in sums {
            overlaps.push(part, slot, weight);
        }
        overlaps
    }

    fn sum(overlaps: &Overlaps, slots: &[u32]) -> u64 {
        overlaps.kept(|part| slots[part as usize])
    }

    #[test]
    fn what_is_improved_is_within_some_percent_of_what_is_exact() {
        let mut random = Random::new(9);
        let (mut improved, mut exact) = (0, 0);
        let mut search = Pairs::default();
        for case in 0..60 {
            let n = 40 + random.below(80);
            let overlaps = random_overlaps(&mut random, n, n * (2 + case % 7) / 2);
            search.greedy(n, &overlaps);
            let greedy = sum(&overlaps, &search.slot_of);
            search.improve(&overlaps);
            let found = &search.slot_of;
            let mut slots = vec![false; n];
            for &slot in found.iter().filter(|&&slot| slot != NONE) {
                assert!(!std::mem::replace(&mut slots[slot as usize], true));
            }
            assert_eq!(search.held.iter().sum::<u64>(), sum(&overlaps, found));
            let mut best = vec![NONE; n];
            exact_pairs(n, &overlaps, &mut best);
            let best = sum(&overlaps, &best);
            assert!((greedy..=best).contains(&sum(&overlaps, found)));
            improved += sum(&overlaps, found);
            exact += best;
        }
        println!("{improved} of {exact}");
        assert!(100 * improved >= 97 * exact, "{improved} of {exact}");
    }

    #[test]
    fn the_heaviest_come_first_however_heavy_they_are() {
        let mut random = Random::new(6);
        for (most, n) in [1, 3, 1000, 5000, 1 << 30, 1 << 40]
            .into_iter()
            .flat_map(|most| [(most, 40), (most, 500)])
        {
            let mut overlaps = Overlaps::default();
            for _ in 0..n {
                let [part, slot] = [20, 20].map(|n| random.below(n) as u32);
                overlaps.push(part, slot, random.below(most) as u64);
            }
            let mut expected: Vec<u32> = (0..n).collect();
            expected.sort_by_key(|&i| {
                let i = i as usize;
                let is_other = overlaps.parts[i] != overlaps.slots[i];
                (std::cmp::Reverse(overlaps.weights[i]), is_other)
            });
            let heaviest = overlaps.weights.iter().copied().max().unwrap_or(0);
            let mut found = vec![7];
            heaviest_first(&overlaps, heaviest, &mut found);
            assert_eq!(found, expected, "{most}");
        }
        let mut none = vec![7];
        heaviest_first(&Overlaps::default(), 0, &mut none);
        assert_eq!(none, [0; 0]);
    }

    #[test]
    fn a_permutation_gives_each_slot_once_and_the_rest_keep_their_numbers() {
        let mut overlaps = Overlaps::default();
        assert_eq!(permutation(3, &overlaps), [0, 1, 2]);
        overlaps.push(2, 4, 3);
        assert_eq!(permutation(5, &overlaps), [0, 1, 4, 3, 2]);
        let mut random = Random::new(4);
        for n in [1, 2, 100, 128, 129, 1000] {
            let mut found = permutation(n, &random_overlaps(&mut random, n, 3 * n));
            found.sort_unstable();
            assert_eq!(found, (0..n as u32).collect::<Vec<_>>());
        }
    }
}
