//! Whether the ranks of a node have to share processors: what cpusets, bindings and quotas leave them.
//!
//! How many processors a machine has says nothing of that: `taskset`, Slurm and containers give a job some of them.

use bincode::{Decode, Encode};

use crate::roster::hash_bytes;

/// The processors that a rank may run on, a bit for each; none where there are more than the list holds.
pub type Mask = [u64; MASK_WORDS];

/// 1,024 processors, as many as the C library's own list has.
pub const MASK_WORDS: usize = 16;

/// A mask in a few bytes, for what every rank holds of every other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Allowed {
    /// Of a regular mask its pattern; of another one a hash.
    word: u64,
    /// Of an irregular mask the number of processors; 0 of a regular one.
    irregular: u16,
}

/// Runs of processors of the same length at the same distances: a core with its threads, a socket, every second one.
///
/// In this order: the first processor, processors of a run, from one run's begin to the next one's, and runs.
type Pattern = [u16; 4];

impl Allowed {
    pub fn of(mask: &Mask) -> Allowed {
        let pattern = pattern(mask);
        if spread(pattern) == *mask {
            let word = pattern.iter().fold(0, |word, &n| word << 16 | u64::from(n));
            return Allowed { word, irregular: 0 };
        }
        let bytes: Vec<u8> = mask.iter().flat_map(|word| word.to_le_bytes()).collect();
        let processors: u32 = mask.iter().map(|word| word.count_ones()).sum();
        Allowed {
            word: hash_bytes(3, &bytes),
            irregular: processors as u16,
        }
    }

    fn mask(self) -> Option<Mask> {
        let pattern = std::array::from_fn(|place| (self.word >> (48 - 16 * place)) as u16);
        (self.irregular == 0).then(|| spread(pattern))
    }
}

/// That of a regular mask; of another one whatever.
fn pattern(mask: &Mask) -> Pattern {
    let is_in = |n: usize| n < MASK_WORDS * 64 && mask[n / 64] >> (n % 64) & 1 == 1;
    let from = |n: usize, wanted| (n..=MASK_WORDS * 64).find(|&n| is_in(n) == wanted);
    let Some(first) = from(0, true) else {
        return [0; 4];
    };
    let run = from(first, false).unwrap_or(first) - first;
    let distance = from(first + run, true).map_or(0, |second| second - first);
    let processors: u32 = mask.iter().map(|word| word.count_ones()).sum();
    [first, run, distance, processors as usize / run.max(1)].map(|n| n as u16)
}

fn spread([first, run, distance, runs]: Pattern) -> Mask {
    let mut mask = [0; MASK_WORDS];
    for at in 0..usize::from(runs) {
        let begin = usize::from(first) + at * usize::from(distance);
        for n in begin..begin + usize::from(run) {
            if let Some(word) = mask.get_mut(n / 64) {
                *word |= 1 << (n % 64);
            }
        }
    }
    mask
}

/// Whether ranks have to share processors, as [`are_crowded`] says of their masks; where several masks are irregular,
/// which may overlap, they are taken to. What a rank does not know of its own is left out.
///
/// Shape: the processors of each rank of one node.
pub fn share(allowed: &[Allowed]) -> bool {
    let known = allowed.iter().filter(|own| **own != Allowed::default());
    let known: Vec<Allowed> = known.copied().collect();
    let masks: Option<Vec<Mask>> = known.iter().map(|own| own.mask()).collect();
    match (masks, known.first()) {
        (Some(masks), _) => are_crowded(&masks),
        (None, Some(first)) if known.iter().all(|own| own == first) => {
            known.len() > usize::from(first.irregular)
        }
        (None, _) => true,
    }
}

/// How much processor time a group of processes may have, as a number of processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Quota {
    /// Alike for ranks that share it, and for no others of their node.
    pub group: u64,
    /// 0 where there is no limit.
    pub processors: u32,
}

/// Whether ranks have to share processors: more of them than there are processors may run on those of one rank alone, or
/// on all together.
///
/// Shape: one mask for each rank; one that is empty crowds everybody.
pub fn are_crowded(masks: &[Mask]) -> bool {
    let union = masks.iter().fold([0; MASK_WORDS], |union: Mask, mask| {
        std::array::from_fn(|word| union[word] | mask[word])
    });
    let crowded = |within: &Mask| {
        let inside = |mask: &&Mask| mask.iter().zip(within).all(|(own, all)| own & !all == 0);
        let room: u32 = within.iter().map(|word| word.count_ones()).sum();
        masks.iter().filter(inside).count() > room as usize
    };
    crowded(&union) || masks.iter().any(crowded)
}

/// Whether a group of ranks has more members than its quota gives processors.
///
/// Shape: the quota of each rank of one node.
pub fn are_rationed(quotas: &[Quota]) -> bool {
    let members = |group| quotas.iter().filter(|other| other.group == group).count();
    let mut limited = quotas.iter().filter(|quota| quota.processors > 0);
    limited.any(|quota| members(quota.group) > quota.processors as usize)
}

/// How many processors a cgroup's `cpu.max` gives, rounded up; `None` where it limits nothing, or is none.
pub fn of_cpu_max(text: &str) -> Option<u32> {
    let mut words = text.split_ascii_whitespace();
    let (quota_us, period_us) = (words.next()?, words.next()?);
    let (quota_us, period_us): (u64, u64) = (quota_us.parse().ok()?, period_us.parse().ok()?);
    let processors = quota_us.checked_div(period_us)? + u64::from(quota_us % period_us > 0);
    u32::try_from(processors.max(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(processors: impl IntoIterator<Item = usize>) -> Mask {
        processors
            .into_iter()
            .fold([0; MASK_WORDS], |mut mask, processor| {
                mask[processor / 64] |= 1 << (processor % 64);
                mask
            })
    }

    /// As `sched_getaffinity` gave them on each rank of these lines.
    #[test]
    fn recorded_jobs_are_crowded_where_their_ranks_outnumber_their_processors() {
        let on = |ranks, processors: &[usize]| vec![mask(processors.iter().copied()); ranks];
        let all = |n| (0..n).collect::<Vec<_>>();
        // `taskset -c 0,1 mpiexec -n 8` on a host of 64 processors, and what its pairs would see of themselves.
        assert!(are_crowded(&on(8, &[0, 1])));
        assert!(!are_crowded(&on(2, &[0, 1])));
        // `mpiexec -n 64` there, and with `--oversubscribe -n 65`.
        assert!(!are_crowded(&on(64, &all(64))));
        assert!(are_crowded(&on(65, &all(64))));
        // `--bind-to core`, and two jobs' worth of ranks bound to the same cores.
        let bound: Vec<_> = (0..128).map(|rank| mask([rank])).collect();
        assert!(!are_crowded(&bound));
        assert!(are_crowded(&[bound.clone(), bound[..1].to_vec()].concat()));
        // `--bind-to socket`, one socket over-full although the node is not.
        let sockets = |first, second| [on(first, &all(32)), vec![mask(32..64); second]].concat();
        assert!(!are_crowded(&sockets(32, 32)));
        assert!(are_crowded(&sockets(33, 20)));
        // Two ranks bound to one core each, and a third that may use both.
        assert!(are_crowded(&[mask([3]), mask([900]), mask([3, 900])]));
        assert!(!are_crowded(&[]));
    }

    #[test]
    fn regular_masks_are_known_exactly_and_irregular_ones_that_differ_are_taken_to_overlap() {
        let even = (0..128).step_by(2).collect::<Vec<_>>();
        let regular = [
            vec![0],
            vec![1023],
            (0..1024).collect(),
            (32..64).collect(),
            vec![3, 67],
            [0..32, 64..96].into_iter().flatten().collect(),
            even.clone(),
            vec![],
        ];
        for processors in regular {
            let own = mask(processors.iter().copied());
            assert_eq!(Allowed::of(&own).mask(), Some(own), "{processors:?}");
        }
        let odd = mask([0, 1, 5, 40]);
        assert_eq!(Allowed::of(&odd).mask(), None);
        let share_of = |masks: &[Mask]| {
            let allowed: Vec<_> = masks.iter().map(Allowed::of).collect();
            share(&allowed)
        };
        // One mask for all.
        assert!(!share_of(&[odd; 4]));
        assert!(share_of(&[odd; 5]));
        // Others beside it, which this cannot tell from it.
        assert!(share_of(&[odd, mask([500])]));
        assert!(share_of(&[odd, mask([500, 501, 503])]));
        // A core of two threads for each rank, and sockets whose processors are numbered by turns.
        let cores: Vec<_> = (0..64).map(|core| mask([core, core + 64])).collect();
        assert!(!share_of(&cores));
        assert!(share_of(
            &[cores.clone(), cores[..2].to_vec(), cores[..1].to_vec()].concat()
        ));
        let sockets = [
            vec![mask(even.iter().copied()); 64],
            vec![mask(even.iter().map(|n| n + 1)); 64],
        ];
        assert!(!share_of(&sockets.concat()));
        assert!(share_of(&[sockets.concat(), vec![mask([1])]].concat()));
        // Who knows nothing of his own says nothing.
        assert!(!share_of(&[[0; MASK_WORDS], mask([1])]));
        assert!(!share_of(&[]));
    }

    #[test]
    fn a_quota_rations_the_ranks_that_share_it() {
        let quota = |group, processors| Quota { group, processors };
        assert!(are_rationed(&[quota(7, 2); 3]));
        assert!(!are_rationed(&[quota(7, 3); 3]));
        assert!(!are_rationed(&[quota(7, 0); 300]));
        // A container for each rank.
        let containers: Vec<_> = (0..9).map(|group| quota(group, 1)).collect();
        assert!(!are_rationed(&containers));
    }

    #[test]
    fn what_a_cgroup_may_use_is_read_of_its_file() {
        assert_eq!(of_cpu_max("200000 100000\n"), Some(2));
        assert_eq!(of_cpu_max("150000 100000"), Some(2));
        assert_eq!(of_cpu_max("5000 100000"), Some(1));
        for none in ["max 100000", "", "100000", "x y", "1 0", "99999999999999 1"] {
            assert_eq!(of_cpu_max(none), None, "{none:?}");
        }
    }
}
