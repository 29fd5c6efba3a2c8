//! Compares what collectives return with what they must return.
//!
//! Values are small whole numbers, so that sums in any order and any association are exact: a
//! difference is never a matter of rounding. Receive buffers are filled with a mark before each
//! call, and what a call must not touch is compared too.

use colltune_core::collective::Collective;
use serde_json::{Value, json};

use crate::cells::{Cell, CellArguments};
use crate::mpi::{Buffers, Call, Comm, Element};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    cells: CellArguments,
    /// How often each call is repeated.
    #[arg(long, default_value_t = 20)]
    repetitions: usize,
}

const MARK: u8 = 0xa5;
/// MPICH 4.0.2 itself dies in a larger MPI_Reduce in place at a root other than 0, seen at 40 KiB on
/// 2 and 3 ranks: its reduce_scatter_gather reads MPI_IN_PLACE as an address.
const REDUCE_IN_PLACE_MAX: usize = 2048;

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let cells = arguments.cells.list();
    let mut wrong = Vec::new();
    let mut checked = 0u64;
    for repetition in 0..arguments.repetitions {
        for call in cells
            .iter()
            .flat_map(|&cell| calls(cell, world, repetition))
        {
            checked += 1;
            if let Some(problem) = run_one(call, world, repetition) {
                eprintln!("rank {}: {problem}", world.rank);
                wrong.push(problem);
            }
        }
    }
    let wrong_max = world.maxima(&[wrong.len() as f64])[0] as u64;
    json!({ "mode": "reference-check", "checked": checked, "wrong": wrong_max, "first": wrong.first() })
}

/// The call in its forms: roots at both ends for rooted ones, in place and not.
fn calls((collective, message_bytes): Cell, world: Comm, repetition: usize) -> Vec<Call> {
    let roots = if collective.has_root() {
        vec![0, world.n_ranks - 1, repetition % world.n_ranks]
    } else {
        vec![0]
    };
    let forms = |root: usize| match collective {
        Collective::Bcast | Collective::Barrier => &[false][..],
        Collective::Reduce if root > 0 && message_bytes > REDUCE_IN_PLACE_MAX => &[false],
        _ => &[false, true],
    };
    let call = |(root, &in_place)| Call {
        collective,
        message_bytes,
        root,
        in_place,
    };
    roots
        .into_iter()
        .flat_map(|root| forms(root).iter().map(move |form| (root, form)))
        .map(call)
        .collect()
}

/// What a call gets and must return.
struct Expected {
    send: Vec<u8>,
    /// What the receive buffer holds before.
    recv: Vec<u8>,
    result: Vec<u8>,
}

/// Runs a call on known data; says what is wrong with the result.
fn run_one(call: Call, world: Comm, repetition: usize) -> Option<String> {
    let element = Element::for_bytes(call.message_bytes);
    let mut expected = expected(call, world, element, repetition);
    // The receive buffer is not touched where MPI_IN_PLACE stands for it.
    let scatters = matches!(call.collective, Collective::Scatter | Collective::Scatterv);
    if scatters && call.in_place && world.rank == call.root {
        expected.result.clone_from(&expected.recv);
    }
    let Expected { send, recv, result } = expected;
    let mut buffers = Buffers::new(call.message_bytes, world.n_ranks);
    fill(&mut buffers.send, &send);
    fill(&mut buffers.recv, &recv);
    world.run(call, &mut buffers);

    let got = bytes_of(&buffers.recv, result.len());
    let sent = bytes_of(&buffers.send, send.len());
    let differs = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b);
    differs(&got, &result)
        .map(|at| format!("{call:?}, repetition {repetition}: byte {at} is wrong"))
        .or_else(|| {
            differs(&sent, &send)
                .map(|at| format!("{call:?}: byte {at} of the send buffer has changed"))
        })
}

fn expected(call: Call, world: Comm, element: Element, repetition: usize) -> Expected {
    let Comm { rank, n_ranks, .. } = world;
    let bytes = call.message_bytes;
    let block = |rank: usize, part: usize| values(element, bytes, seed(rank, part, repetition));
    let blocks = |ranks: &mut dyn Iterator<Item = Vec<u8>>| ranks.flatten().collect::<Vec<u8>>();
    let sum_of = |ranks: usize| combine(element, (0..ranks).map(|rank| block(rank, 0)));
    let marked = |blocks: usize| vec![MARK; blocks * bytes];
    let at_root = rank == call.root;
    let in_place = call.in_place;
    let gathered = || blocks(&mut (0..n_ranks).map(|rank| block(rank, 0)));
    let own_in = |mut all: Vec<u8>| {
        all[rank * bytes..][..bytes].copy_from_slice(&block(rank, 0));
        all
    };
    // One block each, which may lie in the receive buffer.
    let reduced = |result: Vec<u8>, given: bool| Expected {
        send: block(rank, 0),
        recv: if given { block(rank, 0) } else { marked(1) },
        result,
    };
    match call.collective {
        Collective::Allreduce => reduced(sum_of(n_ranks), in_place),
        Collective::Reduce if at_root => reduced(sum_of(n_ranks), in_place),
        Collective::Reduce => reduced(marked(1), false),
        Collective::Scan => reduced(sum_of(rank + 1), in_place),
        // The result of rank 0 is undefined.
        Collective::Exscan => reduced(sum_of(rank), in_place),
        Collective::ReduceScatter | Collective::ReduceScatterBlock => {
            reduced(own_part(call, world, element, &sum_of(n_ranks)), in_place)
        }
        Collective::Bcast => Expected {
            send: Vec::new(),
            recv: if at_root { block(rank, 0) } else { marked(1) },
            result: block(call.root, 0),
        },
        Collective::Allgather | Collective::Allgatherv => Expected {
            send: block(rank, 0),
            recv: if in_place {
                own_in(marked(n_ranks))
            } else {
                marked(n_ranks)
            },
            result: gathered(),
        },
        Collective::Gather | Collective::Gatherv => Expected {
            send: block(rank, 0),
            recv: if in_place && at_root {
                own_in(marked(n_ranks))
            } else {
                marked(n_ranks)
            },
            result: if at_root { gathered() } else { marked(n_ranks) },
        },
        Collective::Scatter | Collective::Scatterv => Expected {
            send: blocks(&mut (0..n_ranks).map(|part| block(rank, part))),
            recv: marked(1),
            result: block(call.root, rank),
        },
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => {
            let outgoing = blocks(&mut (0..n_ranks).map(|part| block(rank, part)));
            Expected {
                recv: if in_place {
                    outgoing.clone()
                } else {
                    marked(n_ranks)
                },
                send: outgoing,
                result: blocks(&mut (0..n_ranks).map(|other| block(other, rank))),
            }
        }
        Collective::Barrier => Expected {
            send: Vec::new(),
            recv: marked(1),
            result: marked(1),
        },
    }
}

/// This rank's part of a sum, as reduce_scatter cuts it.
fn own_part(call: Call, world: Comm, element: Element, sum: &[u8]) -> Vec<u8> {
    let count = sum.len() / element.bytes();
    let (share, rest) = (count / world.n_ranks, count % world.n_ranks);
    let (first, length) = match call.collective {
        Collective::ReduceScatterBlock => (world.rank * share, share),
        _ => (
            world.rank * share + world.rank.min(rest),
            share + usize::from(world.rank < rest),
        ),
    };
    sum[first * element.bytes()..][..length * element.bytes()].to_vec()
}

fn seed(rank: usize, part: usize, repetition: usize) -> usize {
    7 * rank + 3 * part + repetition
}

/// `bytes` bytes of data: small whole numbers.
fn values(element: Element, bytes: usize, seed: usize) -> Vec<u8> {
    match element {
        Element::Byte => (0..bytes)
            .map(|place| ((place + seed) % 251) as u8)
            .collect(),
        Element::Double => (0..bytes / 8)
            .flat_map(|place| (((place + seed) % 1009) as f64).to_ne_bytes())
            .collect(),
    }
}

fn combine(element: Element, contributions: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let pair = |a: Vec<u8>, b: Vec<u8>| match element {
        Element::Byte => a.iter().zip(&b).map(|(a, b)| a ^ b).collect::<Vec<u8>>(),
        Element::Double => {
            let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
            a.iter()
                .zip(b)
                .flat_map(|(a, b)| (f64::from_ne_bytes(*a) + f64::from_ne_bytes(*b)).to_ne_bytes())
                .collect()
        }
    };
    contributions.reduce(pair).unwrap_or_default()
}

fn fill(words: &mut [u64], bytes: &[u8]) {
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut whole = [MARK; 8];
        whole[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(whole);
    }
}

fn bytes_of(words: &[u64], length: usize) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .take(length)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_and_bytes_are_combined_by_exclusive_or() {
        let sum = combine(
            Element::Double,
            (0..3).map(|rank| values(Element::Double, 16, rank)),
        );
        assert_eq!(sum, [3.0f64, 6.0].map(f64::to_ne_bytes).concat());
        assert_eq!(
            combine(Element::Byte, [vec![1, 2], vec![3, 2]].into_iter()),
            [2, 0]
        );
    }

    #[test]
    fn words_keep_bytes_in_order() {
        let bytes: Vec<u8> = (0..13).collect();
        let mut words = [0; 2];
        fill(&mut words, &bytes);
        assert_eq!(bytes_of(&words, 13), bytes);
    }
}
