//! Bine alltoall: exchanges over Bine distances, the nearest first. Each carries the blocks for the
//! ranks that the peer has yet to meet, its own and those that came for them.
//!
//! Cost, n = 2^q: q rounds; n/2 blocks sent per rank in each. Needs: a power-of-two number of ranks.
//! Blocks are equally long, and travel through two buffers on their way.
//! Source: De Sensi et al., Bine trees, SC 2025, arXiv 2508.17311.

use crate::algorithm::bine::{blocks, peer};
use crate::algorithm::schedule::{Buffer, Case, Part, Parts, Schedule, Step, Temporary};

/// Blocks that came from others and are to go on. Exchanges use them in turn, so that what comes never
/// waits for what goes.
const HELD: [Buffer; 2] = [Buffer::Temporary(0), Buffer::Temporary(1)];

/// A block on a rank: whose it is, for whom, and where it lies.
#[derive(Clone, Copy)]
struct Block {
    source: usize,
    destination: usize,
    place: (Buffer, usize),
}

/// One chunk per block.
pub fn schedule(case: Case) -> Schedule {
    let (rank, n) = (case.rank, case.n_ranks);
    assert!(n.is_power_of_two());
    let mut held: Vec<Block> = (0..n)
        .map(|destination| Block {
            source: rank,
            destination,
            place: (Buffer::Input, destination),
        })
        .collect();
    let mut steps = Vec::new();
    for k in 0..n.ilog2() {
        let other = peer(rank, k, n);
        let (kept, theirs) = (blocks(rank, k, n), blocks(other, k, n));
        let last = k + 1 == n.ilog2();
        let into = HELD[k as usize % 2];
        let mut used = vec![false; n];
        let places = held.iter().map(|block| block.place);
        places
            .filter(|place| place.0 == into)
            .for_each(|place| used[place.1] = true);
        let free = (0..n).filter(|&place| !used[place]);
        let (mut sent, rest): (Vec<Block>, Vec<Block>) = held
            .into_iter()
            .partition(|block| theirs.binary_search(&block.destination).is_ok());
        let mut others_sources = origins(other, k, n);
        others_sources.sort_unstable();
        let coming = others_sources
            .iter()
            .flat_map(|&source| kept.iter().map(move |&destination| (source, destination)));
        let received: Vec<Block> = coming
            .zip(free)
            .map(|((source, destination), place)| Block {
                source,
                destination,
                place: match last {
                    true => (Buffer::Output, source),
                    false => (into, place),
                },
            })
            .collect();
        sent.sort_unstable_by_key(|block| (block.source, block.destination));
        steps.push(Step::send(other, parts(&sent)));
        steps.push(Step::receive(other, parts(&received)));
        held = rest.into_iter().chain(received).collect();
    }
    let here = held.into_iter().map(|block| {
        let (buffer, place) = block.place;
        Step::copy(
            Part::range(buffer, place, 1),
            Part::range(Buffer::Output, block.source, 1),
        )
    });
    let copies =
        here.filter(|step| !matches!(step, Step::Copy { source, target } if source == target));
    let steps: Vec<Step> = steps.into_iter().chain(copies).collect();
    Schedule::new(1, steps.into_iter())
        .temporary(Temporary::whole(n))
        .temporary(Temporary::whole(n))
}

/// Whose blocks a rank has before the exchange of order `k`.
fn origins(rank: usize, k: u32, n: usize) -> Vec<usize> {
    let mut ranks = vec![rank];
    for order in (0..k).rev() {
        let met: Vec<usize> = ranks.iter().map(|&rank| peer(rank, order, n)).collect();
        ranks.extend(met);
    }
    ranks
}

/// Blocks in their order, as parts; neighbours together.
fn parts(blocks: &[Block]) -> Parts {
    let mut parts: Vec<Part> = Vec::new();
    for block in blocks {
        let (buffer, place) = block.place;
        match parts.last_mut() {
            Some(last) if last.buffer == buffer && (last.first + last.len) as usize == place => {
                last.len += 1;
                last.stride += 1;
            }
            _ => parts.push(Part::range(buffer, place, 1)),
        }
    }
    Parts::Many(parts)
}

#[cfg(test)]
mod tests {
    use crate::algorithm::proof::{Case, Pattern, cost, proved};

    #[test]
    fn every_rank_ends_with_the_block_that_each_rank_has_for_it() {
        let row = proved(Pattern::Alltoall, "bine");
        for q in 1..=6 {
            let n = 1 << q;
            let cost = cost(row, Case::new(0, n), 10);
            assert_eq!(cost.rounds, q);
            assert_eq!(cost.messages, q);
            assert_eq!(cost.elements, 10 * (n as u64 / 2) * q as u64);
        }
    }
}
