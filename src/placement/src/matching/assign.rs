//! Parts and slots that have something in common, and which part gets which slot.

use super::exact;
use crate::sort::radix;

/// What a part and a slot have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overlap {
    pub part: u32,
    pub slot: u32,
    pub weight: u64,
}

/// Up to this many parts the assignment is exact.
const EXACT_MAX: usize = 128;

/// Overlaps that are looked at while a large assignment is improved: some milliseconds.
const LOOKS_MAX: usize = 500_000;

/// The slot of each of `n` parts: those of [`pairs`]; of the others each keeps its number where that is free.
pub(super) fn permutation(n: usize, overlaps: &[Overlap]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut slots = vec![NONE; n];
    let mut taken = vec![false; n];
    for pair in pairs(n, overlaps) {
        slots[pair.part as usize] = pair.slot;
        taken[pair.slot as usize] = true;
    }
    for part in 0..n {
        if slots[part] == NONE && !taken[part] {
            (slots[part], taken[part]) = (part as u32, true);
        }
    }
    let mut free = (0u32..).zip(&taken).filter(|(_, taken)| !**taken);
    for slot in slots.iter_mut().filter(|slot| **slot == NONE) {
        *slot = free.next().expect("as many slots as parts").0;
    }
    slots
}

/// Overlaps of which no two share a part or a slot, with a large sum of weights; the largest of all up to 128 parts.
///
/// Shape: parts and slots are below `n`; no two overlaps are of the same part and slot.
pub(super) fn pairs(n: usize, overlaps: &[Overlap]) -> Vec<Overlap> {
    if overlaps.len() <= 1 {
        return overlaps.to_vec();
    }
    match n <= EXACT_MAX {
        true => exact_pairs(n, overlaps),
        false => improved_pairs(n, overlaps),
    }
}

fn exact_pairs(n: usize, overlaps: &[Overlap]) -> Vec<Overlap> {
    // Of equal sums the one in which more parts keep their number.
    let mut weights = vec![0i64; n * n];
    let scale = n as i64 + 1;
    (0..n).for_each(|i| weights[i * n + i] = 1);
    for overlap in overlaps {
        // Half of the range, so that no sum over the parts overflows.
        let weight = overlap
            .weight
            .min(i64::MAX as u64 / 2 / (n as u64 + 1).pow(2)) as i64;
        weights[overlap.part as usize * n + overlap.slot as usize] += weight * scale;
    }
    let found = exact::assignment(n, &weights);
    let is_chosen = |o: &&Overlap| found[o.part as usize] == o.slot as usize;
    overlaps.iter().filter(is_chosen).copied().collect()
}

/// Like [`pairs`], never exact: the heaviest first, then exchanges that gain.
pub(super) fn improved_pairs(n: usize, overlaps: &[Overlap]) -> Vec<Overlap> {
    let order = heaviest_first(overlaps);
    let mut state = State::new(n, overlaps);
    for &i in &order {
        let overlap = overlaps[i as usize];
        if state.of_part[overlap.part as usize] == NONE
            && state.of_slot[overlap.slot as usize] == NONE
        {
            state.join(i);
        }
    }
    let mut looks = LOOKS_MAX;
    loop {
        let mut improved = false;
        for &i in &order {
            improved |= state.exchange(i, &mut looks);
            if looks == 0 {
                break;
            }
        }
        if !improved || looks == 0 {
            break;
        }
    }
    let chosen = state.of_part.iter().filter(|&&i| i != NONE);
    chosen.map(|&i| overlaps[i as usize]).collect()
}

/// The overlaps from the heaviest to the lightest; of equal ones those that keep their number, then as they stand.
fn heaviest_first(overlaps: &[Overlap]) -> Vec<u32> {
    let heaviest = overlaps.iter().map(|o| o.weight).max().unwrap_or(0);
    let lightness = |o: &Overlap| (heaviest - o.weight) << 1 | u64::from(o.part != o.slot);
    if heaviest < 1 << 31 {
        let words = (0u64..).zip(overlaps);
        let words = words.map(|(i, o)| lightness(o) << 32 | i).collect();
        return radix(words).into_iter().map(|word| word as u32).collect();
    }
    let mut order: Vec<u32> = (0..overlaps.len() as u32).collect();
    order.sort_by_key(|&i| {
        let overlap = &overlaps[i as usize];
        (!overlap.weight, overlap.part != overlap.slot)
    });
    order
}

const NONE: u32 = u32::MAX;

/// Pairs so far, as places in the list of overlaps, and the list by part and by slot.
struct State<'a> {
    overlaps: &'a [Overlap],
    of_part: Vec<u32>,
    of_slot: Vec<u32>,
    by_part: Rows,
    by_slot: Rows,
}

/// The overlaps of each part, or of each slot.
struct Rows {
    ends: Vec<u32>,
    entries: Vec<u32>,
}

impl Rows {
    fn new(n: usize, keys: impl Iterator<Item = u32> + Clone) -> Rows {
        let mut ends = vec![0u32; n + 1];
        keys.clone().for_each(|key| ends[key as usize + 1] += 1);
        (1..=n).for_each(|i| ends[i] += ends[i - 1]);
        let mut next = ends.clone();
        let mut entries = vec![0; ends[n] as usize];
        for (i, key) in (0u32..).zip(keys) {
            entries[next[key as usize] as usize] = i;
            next[key as usize] += 1;
        }
        Rows { ends, entries }
    }

    fn of(&self, key: u32) -> &[u32] {
        let key = key as usize;
        &self.entries[self.ends[key] as usize..self.ends[key + 1] as usize]
    }
}

impl<'a> State<'a> {
    fn new(n: usize, overlaps: &'a [Overlap]) -> Self {
        State {
            overlaps,
            of_part: vec![NONE; n],
            of_slot: vec![NONE; n],
            by_part: Rows::new(n, overlaps.iter().map(|overlap| overlap.part)),
            by_slot: Rows::new(n, overlaps.iter().map(|overlap| overlap.slot)),
        }
    }

    fn join(&mut self, i: u32) {
        let Overlap { part, slot, .. } = self.overlaps[i as usize];
        self.of_part[part as usize] = i;
        self.of_slot[slot as usize] = i;
    }

    fn part(&mut self, i: u32) {
        if i != NONE {
            let Overlap { part, slot, .. } = self.overlaps[i as usize];
            self.of_part[part as usize] = NONE;
            self.of_slot[slot as usize] = NONE;
        }
    }

    fn weight(&self, i: u32) -> u64 {
        match i {
            NONE => 0,
            i => self.overlaps[i as usize].weight,
        }
    }

    /// Takes overlap `i` in place of the pairs that it shares a part or slot with, if with the best free overlaps of
    /// those who lose theirs that gains; says whether it did. Counts down what may still be looked at.
    fn exchange(&mut self, i: u32, looks: &mut usize) -> bool {
        let Overlap { part, slot, weight } = self.overlaps[i as usize];
        let (mine, theirs) = (self.of_part[part as usize], self.of_slot[slot as usize]);
        if mine == i {
            return false;
        }
        let lost = self.weight(mine) + self.weight(theirs);
        // The part that loses this slot may take a free one, and the slot that loses this part a free one.
        let left_part = (theirs != NONE).then(|| self.overlaps[theirs as usize].part);
        let left_slot = (mine != NONE).then(|| self.overlaps[mine as usize].slot);
        let part_is_free =
            |p: u32| p != part && (self.of_part[p as usize] == NONE || Some(p) == left_part);
        let slot_is_free =
            |s: u32| s != slot && (self.of_slot[s as usize] == NONE || Some(s) == left_slot);
        let mut best = |row: &[u32], taken: Option<u32>| -> Option<u32> {
            *looks = looks.saturating_sub(row.len());
            let free = row.iter().copied().filter(|&j| {
                let other = self.overlaps[j as usize];
                let is_taken = taken.is_some_and(|taken| {
                    let taken = self.overlaps[taken as usize];
                    other.part == taken.part || other.slot == taken.slot
                });
                part_is_free(other.part) && slot_is_free(other.slot) && !is_taken
            });
            free.fold(None, |best: Option<u32>, j| match best {
                Some(known) if self.weight(known) >= self.weight(j) => best,
                _ => Some(j),
            })
        };
        let for_part = left_part.and_then(|part| best(self.by_part.of(part), None));
        let for_slot = left_slot.and_then(|slot| best(self.by_slot.of(slot), for_part));
        *looks = looks.saturating_sub(1);
        let found = [for_part, for_slot].into_iter().flatten();
        if weight + found.clone().map(|j| self.weight(j)).sum::<u64>() <= lost {
            return false;
        }
        self.part(mine);
        self.part(theirs);
        self.join(i);
        found.for_each(|j| self.join(j));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    fn random_overlaps(random: &mut Random, n: usize, blocks: usize) -> Vec<Overlap> {
        let mut sums = std::collections::BTreeMap::new();
        for _ in 0..blocks {
            let key = (random.below(n) as u32, random.below(n) as u32);
            *sums.entry(key).or_insert(0) += 1;
        }
        let overlaps = sums.into_iter();
        overlaps
            .map(|((part, slot), weight)| Overlap { part, slot, weight })
            .collect()
    }

    fn sum(pairs: &[Overlap]) -> u64 {
        pairs.iter().map(|pair| pair.weight).sum()
    }

    #[test]
    fn what_is_improved_is_within_some_percent_of_what_is_exact() {
        let mut random = Random::new(9);
        let (mut improved, mut exact) = (0, 0);
        for case in 0..60 {
            let n = 40 + random.below(80);
            let overlaps = random_overlaps(&mut random, n, n * (2 + case % 7) / 2);
            let found = improved_pairs(n, &overlaps);
            let (mut parts, mut slots) = (vec![false; n], vec![false; n]);
            for pair in &found {
                assert!(!std::mem::replace(&mut parts[pair.part as usize], true));
                assert!(!std::mem::replace(&mut slots[pair.slot as usize], true));
            }
            let best = sum(&exact_pairs(n, &overlaps));
            assert!(sum(&found) <= best);
            improved += sum(&found);
            exact += best;
        }
        println!("{improved} of {exact}");
        assert!(100 * improved >= 97 * exact, "{improved} of {exact}");
    }

    #[test]
    fn the_heaviest_come_first_however_heavy_they_are() {
        let mut random = Random::new(6);
        for most in [1, 3, 1000, 1 << 30, 1 << 40] {
            let overlaps: Vec<Overlap> = (0..500)
                .map(|_| Overlap {
                    part: random.below(20) as u32,
                    slot: random.below(20) as u32,
                    weight: random.below(most) as u64,
                })
                .collect();
            let mut expected: Vec<u32> = (0..500).collect();
            expected.sort_by_key(|&i| {
                let overlap = overlaps[i as usize];
                (
                    std::cmp::Reverse(overlap.weight),
                    overlap.part != overlap.slot,
                )
            });
            assert_eq!(heaviest_first(&overlaps), expected, "{most}");
        }
        assert_eq!(heaviest_first(&[]), [0; 0]);
    }

    #[test]
    fn a_permutation_gives_each_slot_once_and_the_rest_keep_their_numbers() {
        let overlaps = [Overlap {
            part: 2,
            slot: 4,
            weight: 3,
        }];
        assert_eq!(permutation(5, &overlaps), [0, 1, 4, 3, 2]);
        assert_eq!(permutation(3, &[]), [0, 1, 2]);
        let mut random = Random::new(4);
        for n in [1, 2, 100, 128, 129, 1000] {
            let mut found = permutation(n, &random_overlaps(&mut random, n, 3 * n));
            found.sort_unstable();
            assert_eq!(found, (0..n as u32).collect::<Vec<_>>());
        }
    }
}
