//! What a library chooses by itself.

mod mpich;
mod tuned;

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::library::Product;

/// By whose rules `default` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defaults {
    /// Open MPI's up to version 4.0; for want of others, those of libraries whose rules are not known here as well.
    OpenMpi40,
    /// Open MPI's since version 4.1 (`coll/tuned`). Since 5.0 it runs others between nodes, which are not known here.
    OpenMpi41,
    /// MPICH's since version 3.4, as among ranks of which one is on each node.
    Mpich,
}

impl Defaults {
    /// Of a library by its key, as in `openmpi-4.1.4`.
    pub fn of_library(key: &str) -> Defaults {
        let (library, version) = key.split_once('-').unwrap_or((key, ""));
        let mut numbers = version
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        match (library, (next(), next())) {
            ("openmpi", version) if version >= (4, 1) => Defaults::OpenMpi41,
            ("mpich", version) if version >= (3, 4) => Defaults::Mpich,
            _ => Defaults::OpenMpi40,
        }
    }

    /// Whose names of algorithms are meant.
    pub fn product(self) -> Product {
        match self {
            Defaults::OpenMpi40 | Defaults::OpenMpi41 => Product::OpenMpi,
            Defaults::Mpich => Product::Mpich,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Defaults::OpenMpi40 => "Open MPI up to 4.0",
            Defaults::OpenMpi41 => "Open MPI since 4.1",
            Defaults::Mpich => "MPICH since 3.4",
        }
    }
}

/// The variant of a call that nothing was chosen for. `bytes` are what a rank gives, in an alltoall to each other one.
pub fn default(defaults: Defaults, pattern: Pattern, bytes: u64, n_ranks: usize) -> &'static str {
    match defaults {
        Defaults::OpenMpi40 => up_to_40(pattern, bytes, n_ranks),
        Defaults::OpenMpi41 => {
            let since_41 = tuned::algorithm(pattern, bytes, n_ranks);
            since_41.unwrap_or_else(|| up_to_40(pattern, bytes, n_ranks))
        }
        Defaults::Mpich => mpich::schedule(pattern, bytes, n_ranks),
    }
}

/// As Open MPI's source has them up to version 4.0 (`coll_tuned_decision_fixed.c`).
fn up_to_40(pattern: Pattern, bytes: u64, n_ranks: usize) -> &'static str {
    let power_of_two = n_ranks.is_power_of_two();
    match pattern {
        Pattern::Allreduce if bytes < 10_000 => "p2p:recursive_doubling",
        Pattern::Allreduce => "p2p:ring",
        Pattern::Allgather => match bytes.saturating_mul(n_ranks as u64) {
            0..50_000 if power_of_two => "p2p:recursive_doubling",
            0..50_000 => "p2p:bruck:radix=2",
            _ => "p2p:ring",
        },
        Pattern::Bcast => "p2p:binomial_doubling",
        Pattern::Alltoall if bytes < 200 && n_ranks > 12 => "p2p:bruck:radix=2",
        Pattern::Alltoall => "p2p:pairwise",
        Pattern::Barrier => "p2p:dissemination",
        Pattern::Reduce => "p2p:binomial",
        Pattern::Gather => "p2p:binomial",
        Pattern::Scatter => "p2p:binomial",
        Pattern::Scan | Pattern::Exscan => "p2p:linear",
        Pattern::ReduceScatter => "p2p:pairwise",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_the_librarys_version() {
        for (key, expected) in [
            ("openmpi-4.0.7", Defaults::OpenMpi40),
            ("openmpi-4.1.4", Defaults::OpenMpi41),
            ("openmpi-4.10.0", Defaults::OpenMpi41),
            ("openmpi-5.0.11", Defaults::OpenMpi41),
            ("mpich-3.3.2", Defaults::OpenMpi40),
            ("mpich-3.4", Defaults::Mpich),
            ("mpich-4.1.2", Defaults::Mpich),
            ("intel-2021.10", Defaults::OpenMpi40),
            ("openmpi-", Defaults::OpenMpi40),
            ("", Defaults::OpenMpi40),
        ] {
            assert_eq!(Defaults::of_library(key), expected, "{key}");
        }
    }

    /// Short reductions of many ranks: a tree and a broadcast since 4.1, and one element after another where there are
    /// fewer than ranks.
    #[test]
    fn what_runs_at_a_thousand_ranks_depends_on_the_version() {
        let allreduce = |defaults, bytes, n| default(defaults, Pattern::Allreduce, bytes, n);
        assert_eq!(
            allreduce(Defaults::OpenMpi40, 8, 1024),
            "p2p:recursive_doubling"
        );
        assert_eq!(
            allreduce(Defaults::OpenMpi41, 8, 1024),
            "native:nonoverlapping"
        );
        assert_eq!(
            allreduce(Defaults::OpenMpi41, 8, 8),
            "native:recursive_doubling"
        );
        assert_eq!(
            allreduce(Defaults::OpenMpi41, 128, 48),
            "native:basic_linear",
            "16 elements on 48 ranks"
        );
        assert_eq!(
            allreduce(Defaults::OpenMpi41, 1 << 20, 48),
            "native:rabenseifner"
        );
        let alltoall = |bytes| default(Defaults::OpenMpi41, Pattern::Alltoall, bytes, 100);
        assert_eq!(alltoall(512), "native:modified_bruck");
        assert_eq!(alltoall(1 << 20), "native:pairwise");
    }
}
