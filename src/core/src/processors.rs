//! Whether the ranks of a node have to share processors: what cpusets, bindings and quotas leave them.
//!
//! How many processors a machine has says nothing of that: `taskset`, Slurm and containers give a job some of them.

use bincode::{Decode, Encode};

/// The processors that a rank may run on, a bit for each; none where there are more than the list holds.
pub type Mask = [u64; MASK_WORDS];

/// 1,024 processors, as many as the C library's own list has.
pub const MASK_WORDS: usize = 16;

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
