//! Scatter down a binomial tree, then allgather: round the ring, or by recursive doubling.
//!
//! Cost: ceil(log2 n) rounds for the scatter, then n - 1 (ring) or log2 n (recursive doubling,
//! n a power of two) rounds; the root sends 2(n-1)/n of the message.
//! Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005.

use crate::algorithm::schedule::{Buffer, Case, Part, Schedule, Step};
use crate::algorithm::tree;

/// Chunk `c` is the share of the rank whose relative number is `c`.
fn scatter(case: Case) -> impl Iterator<Item = Step> {
    let n = case.n_ranks;
    let relative = case.relative();
    let node = tree::knomial(relative, n, 2);
    let subtree = move |v| Part::range(Buffer::Output, v, tree::knomial_span(v, n, 2));
    let receive = node
        .parent
        .map(|parent| Step::receive(case.absolute(parent), subtree(relative)));
    let children = node.children.into_iter();
    let send = children.map(move |child| Step::send(case.absolute(child), subtree(child)));
    receive.into_iter().chain(send)
}

/// Allgather round the ring of relative ranks.
pub fn ring(case: Case) -> Schedule {
    let n = case.n_ranks;
    let relative = case.relative();
    // What the tree brought beyond the own share must not come again, so only what is missing
    // travels: chunk `c` is missing on its neighbour above unless that one's subtree has it.
    let has = move |v: usize, chunk: usize| v <= chunk && chunk < v + tree::knomial_span(v, n, 2);
    let allgather = (0..n - 1).flat_map(move |round| {
        let sent = (relative + n - round) % n;
        let received = (relative + 2 * n - round - 1) % n;
        let next = (relative + 1) % n;
        let chunk = |c| Part::range(Buffer::Output, c, 1);
        let send = (!has(next, sent)).then(|| Step::send(case.above(1), chunk(sent)));
        let receive =
            (!has(relative, received)).then(|| Step::receive(case.below(1), chunk(received)));
        send.into_iter().chain(receive)
    });
    Schedule::new(n, scatter(case).chain(allgather))
}

/// Allgather by recursive doubling of relative ranks; needs a power of two of them.
pub fn recursive_doubling(case: Case) -> Schedule {
    let n = case.n_ranks;
    let relative = case.relative();
    let allgather = (0..n.ilog2()).flat_map(move |round| {
        let len = 1 << round;
        let other = relative ^ len;
        let group = |v: usize| Part::range(Buffer::Output, v & !(len - 1), len);
        // A group within what the tree brought does not come again; to the root, whose buffer may be constant, nothing does.
        let wants = move |v: usize| tree::knomial_span(v, n, 2) <= len;
        let send = wants(other).then(|| Step::send(case.absolute(other), group(relative)));
        let receive = wants(relative).then(|| Step::receive(case.absolute(other), group(other)));
        send.into_iter().chain(receive)
    });
    Schedule::new(n, scatter(case).chain(allgather))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, find, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_the_message() {
        for name in ["scatter_allgather", "scatter_allgather_ring"] {
            proved(Pattern::Bcast, name);
        }
    }

    #[test]
    fn rounds_are_those_promised() {
        let doubling = find(Pattern::Bcast, "scatter_allgather");
        let ring = find(Pattern::Bcast, "scatter_allgather_ring");
        for n in 2..=64usize {
            let share = 10;
            let elements = share * n as u64;
            let rounds = cost(ring, Case::new(0, n), elements).rounds;
            assert!(rounds < log_ceil(n, 2) + n, "n = {n}: {rounds}");
            if n.is_power_of_two() {
                let cost = cost(doubling, Case::new(0, n), elements);
                assert_eq!(cost.rounds, 2 * log_ceil(n, 2), "n = {n}");
                assert_eq!(cost.elements, 2 * (n as u64 - 1) * share, "n = {n}");
            }
        }
    }
}
