//! Circulant n-block allgather: every rank's block is broadcast at the same time in the rounds of the
//! circulant n-block bcast, and what goes to one rank in one round goes as one message.
//!
//! Cost: segments - 1 + ceil(log2 n) rounds for any n; n - 1 blocks sent and received by the ranks
//! on average, in messages of at most n - 1 segments. Blocks may differ in length.
//! Source: Traeff, arXiv 2205.10072 and 2407.18004.

use crate::algorithm::bcast::circulant::{Transfer, Transfers};
use crate::algorithm::schedule::{Buffer, Case, Part, Parts, Schedule, Step};

/// Messages of a round have to come before most of the next round's can leave.
const WINDOW: usize = 2;

/// Each block is `segments` chunks.
pub fn schedule(case: Case) -> Schedule {
    let segments = case.segments;
    let roots = (0..case.n_ranks).map(|root| Transfers::new(Case { root, ..case }));
    let mut roots: Vec<_> = roots.map(Transfers::into_iter).collect();
    let rounds = std::iter::from_fn(move || {
        let round: Option<Vec<Transfer>> = roots.iter_mut().map(Iterator::next).collect();
        round.filter(|round| !round.is_empty())
    });
    let steps = rounds.flat_map(move |round| {
        let to = message(segments, round.iter().map(|transfer| transfer.to));
        let from = message(segments, round.iter().map(|transfer| transfer.from));
        let send = to.map(|(peer, what)| Step::send(peer, what));
        let receive = from.map(|(peer, into)| Step::receive(peer, into));
        send.into_iter().chain(receive)
    });
    let own = Step::copy(
        Part::range(Buffer::Input, 0, segments),
        Part::range(Buffer::Output, case.rank * segments, segments),
    );
    Schedule::new(segments, std::iter::once(own).chain(steps)).window(WINDOW)
}

/// The segments of all roots that go one way in one round, which is to or from one peer.
fn message(
    segments: usize,
    transfers: impl Iterator<Item = Option<(usize, usize)>>,
) -> Option<(usize, Parts)> {
    let (mut peer, mut parts) = (None, Vec::new());
    for (root, transfer) in transfers.enumerate() {
        if let Some((rank, segment)) = transfer {
            peer = Some(rank);
            parts.push(Part::range(Buffer::Output, root * segments + segment, 1));
        }
    }
    peer.map(|peer| (peer, Parts::Many(parts)))
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, log_ceil, proved};

    #[test]
    fn every_rank_ends_with_every_block() {
        let row = proved(Pattern::Allgather, "circulant_blocks");
        for n in 1..=33 {
            for segments in [1, 3, 4] {
                let case = Case::new(0, n).segments(segments);
                let cost = cost(row, case, 12);
                let rounds = if n == 1 {
                    0
                } else {
                    segments - 1 + log_ceil(n, 2)
                };
                assert_eq!(cost.rounds, rounds, "n = {n}");
                let all = (n * (n - 1) * 12) as u64;
                assert_eq!(
                    cost.all_elements, all,
                    "n = {n}: every block comes to each rank once"
                );
            }
        }
    }
}
