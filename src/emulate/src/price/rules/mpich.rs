//! What MPICH chooses since version 3.4, by ranks and bytes: its source has it as one tree of conditions, which is
//! built in (`maint/tuning/coll/mpir/generic.json`) and searched on every call (`src/mpi/coll/src/csel.c`). For the
//! calls below that tree is the same from 3.4 to 5.0, but for the name of the barrier's algorithm. The variables that
//! look as if they set its bounds (`MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE` and the like) do not, for blocking calls.
//!
//! The rules are those for built-in operations, which commute, out of place, and for blocks of one length: gatherv and
//! scatterv are linear, alltoallv is always scattered. Elements are taken for eight bytes.
//!
//! The algorithms run across all ranks as one, which is what happens where no ranks share a node. Where ranks share
//! nodes the usual device, ch4, divides some calls (`maint/tuning/coll/ch4/generic.json`): a part inside each node,
//! and one among one rank of each node, whose algorithm the same rules choose by the number of nodes. Inside a node
//! allreduce, reduce, bcast and barrier go through shared memory, from the fifth call of these on and unless
//! `MPI_THREAD_MULTIPLE` was granted. So divided are
//!
//! - every allreduce (on a single node all of it inside the node), reduce and barrier,
//! - every scan whose ranks lie node after node,
//! - every bcast on fewer than 8 ranks, and on more those below 512 KiB on a power of two of ranks, below 12 KiB on
//!   other numbers.
//!
//! A flat schedule cannot tell this: here they cost what the flat algorithm costs on all ranks, which on full nodes is
//! not what the library runs. Longer broadcasts and all other collectives are flat on ch4, too.

use colltune_core::algorithm::pattern::Pattern;

const ELEMENT_BYTES: u64 = 8;

/// The schedule of ours that does on two ranks or more what the library's choice does, or what comes nearest. `bytes`
/// are what a rank gives, in an alltoall to each other one.
pub fn schedule(pattern: Pattern, bytes: u64, n_ranks: usize) -> &'static str {
    let power_of_two = n_ranks.is_power_of_two();
    let power = 1u64 << n_ranks.max(1).ilog2();
    let few_elements = bytes / ELEMENT_BYTES < power;
    let all_bytes = bytes.saturating_mul(n_ranks as u64);
    match pattern {
        // Up to 8 bytes the tree says so as well; that is one element.
        Pattern::Allreduce if few_elements => "p2p:recursive_doubling",
        Pattern::Allreduce => "p2p:rabenseifner",
        Pattern::Bcast if n_ranks < 8 || bytes <= 12 << 10 => "p2p:binomial",
        Pattern::Bcast if power_of_two && bytes <= 512 << 10 => "p2p:scatter_allgather",
        // Nearest: the library's ring carries again what the tree has brought.
        Pattern::Bcast => "p2p:scatter_allgather_ring",
        Pattern::Reduce if bytes <= 2 << 10 || few_elements => "p2p:binomial",
        // Nearest off a power of two, where the library folds other ranks.
        Pattern::Reduce => "p2p:rabenseifner",
        Pattern::Allgather if power_of_two && all_bytes < 512 << 10 => "p2p:recursive_doubling",
        Pattern::Allgather if !power_of_two && all_bytes < 80 << 10 => "p2p:bruck:radix=2",
        Pattern::Allgather => "p2p:ring",
        // The tree has this for 8 ranks, too, but there the search takes "fewer than 8" for "up to 8".
        Pattern::Alltoall if n_ranks > 8 && bytes <= 256 => "p2p:bruck:radix=2",
        // Nearest on a power of two, where the library's pairs are those of an exclusive or.
        Pattern::Alltoall if bytes > 32 << 10 => "p2p:pairwise",
        Pattern::Alltoall if n_ranks <= 32 => "p2p:scattered:window=64",
        // Nearest: the library waits for each 32 before it begins the next, so that about half are under way.
        Pattern::Alltoall => "p2p:scattered:window=16",
        // Nearest: the library's ranks exchange with the farthest first, ours with their neighbours.
        Pattern::ReduceScatter if bytes < 512 << 10 => "p2p:recursive_halving",
        // Nearest: the library has one block under way at a time.
        Pattern::ReduceScatter => "p2p:pairwise",
        Pattern::Gather | Pattern::Scatter => "p2p:binomial",
        // Nearest: the library's ranks exchange in pairs what ours hand upwards, in as many rounds.
        Pattern::Scan | Pattern::Exscan => "p2p:recursive_doubling",
        Pattern::Barrier => "p2p:dissemination:radix=2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_are_scattered_once_each_rank_of_the_power_of_two_has_an_element() {
        for (bytes, n_ranks, name) in [
            (8, 2, "p2p:recursive_doubling"),
            (15, 2, "p2p:recursive_doubling"),
            (16, 2, "p2p:rabenseifner"),
            (31, 7, "p2p:recursive_doubling"),
            (32, 7, "p2p:rabenseifner"),
            (8191, 1024, "p2p:recursive_doubling"),
            (8192, 1024, "p2p:rabenseifner"),
        ] {
            let found = schedule(Pattern::Allreduce, bytes, n_ranks);
            assert_eq!(found, name, "{bytes} bytes, {n_ranks} ranks");
        }
        for (bytes, n_ranks, name) in [
            (2048, 2, "p2p:binomial"),
            (2049, 2, "p2p:rabenseifner"),
            (4095, 1000, "p2p:binomial"),
            (4096, 1000, "p2p:rabenseifner"),
        ] {
            let found = schedule(Pattern::Reduce, bytes, n_ranks);
            assert_eq!(found, name, "{bytes} bytes, {n_ranks} ranks");
        }
        for (bytes, n_ranks, name) in [
            (524_287, 48, "p2p:recursive_halving"),
            (524_288, 48, "p2p:pairwise"),
        ] {
            let found = schedule(Pattern::ReduceScatter, bytes, n_ranks);
            assert_eq!(found, name, "{bytes} bytes, {n_ranks} ranks");
        }
    }

    #[test]
    fn a_bcast_is_a_tree_up_to_12_kib_and_on_fewer_than_8_ranks() {
        for (bytes, n_ranks, name) in [
            (1 << 20, 4, "p2p:binomial"),
            (1 << 20, 7, "p2p:binomial"),
            (12_288, 8, "p2p:binomial"),
            (12_289, 8, "p2p:scatter_allgather"),
            (524_288, 8, "p2p:scatter_allgather"),
            (524_289, 8, "p2p:scatter_allgather_ring"),
            (12_288, 9, "p2p:binomial"),
            (12_289, 9, "p2p:scatter_allgather_ring"),
        ] {
            let found = schedule(Pattern::Bcast, bytes, n_ranks);
            assert_eq!(found, name, "{bytes} bytes, {n_ranks} ranks");
        }
    }

    #[test]
    fn an_allgather_goes_by_all_bytes_and_an_alltoall_by_those_of_one_pair() {
        for (bytes, n_ranks, name) in [
            (65_535, 8, "p2p:recursive_doubling"),
            (65_536, 8, "p2p:ring"),
            (16_383, 5, "p2p:bruck:radix=2"),
            (16_384, 5, "p2p:ring"),
        ] {
            let found = schedule(Pattern::Allgather, bytes, n_ranks);
            assert_eq!(found, name, "{bytes} bytes, {n_ranks} ranks");
        }
        for (bytes, n_ranks, name) in [
            (8, 8, "p2p:scattered:window=64"),
            (256, 9, "p2p:bruck:radix=2"),
            (257, 9, "p2p:scattered:window=64"),
            (32_768, 32, "p2p:scattered:window=64"),
            (32_768, 33, "p2p:scattered:window=16"),
            (32_768, 4, "p2p:scattered:window=64"),
            (32_769, 4, "p2p:pairwise"),
            (32_769, 33, "p2p:pairwise"),
        ] {
            let found = schedule(Pattern::Alltoall, bytes, n_ranks);
            assert_eq!(found, name, "{bytes} bytes, {n_ranks} ranks");
        }
    }
}
