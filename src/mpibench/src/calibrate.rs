//! Measures what the simulator wants to know: latency, overhead, gap and time per byte of a message
//! inside a node and between nodes, from which size on a send waits for its receive, and what
//! combining and copying cost.
//!
//! One pair of ranks measures at a time; the others wait in a barrier as they would in a collective. What one rank does
//! alone it does while they sleep. At the end all send at once, which networks may not carry at the pace of one pair.
//! Where there are fewer cores that ranks may use than ranks, a pair inside a node measures twice: while
//! the others sleep, for what a message takes, and while they wait, for how long a turn of theirs is.
//! Latency is what remains of half a round trip without both ends' overhead. Overhead is the time that posting a
//! message takes, and the gap is the time between messages of a stream. The time per byte is the slope of half a
//! round trip over the longest messages.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mpi::{self, Comm};
use crate::neighbours::{Exchange, Pattern};
use crate::pair::Pair;

#[derive(clap::Args)]
pub struct Arguments {
    /// Blocks of each measurement, of which the median counts
    #[arg(long, default_value_t = 7)]
    repetitions: usize,
    /// About how long a block takes
    #[arg(long, default_value_t = 4000)]
    block_us: u64,
}

const SMALL: usize = 8;
/// More is no burst but a slope that was measured wrong.
const BURST_MAX: f64 = (1 << 20) as f64;
/// Sizes of which half a round trip is measured; the slope is that of the last two.
const SIZES: [usize; 5] = [SMALL, 1 << 12, 1 << 16, 1 << 18, 1 << 20];
/// Untimed round trips before those that count.
const WARMUP: u32 = 20;
/// Messages of a stream.
const STREAM: usize = 64;
/// Bytes that are combined and copied: they fit a core's second cache.
const LOCAL: usize = 1 << 17;

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let leaders = world.of_all(world.node_leader() as u64);
    let mut nodes: Vec<u64> = leaders.clone();
    nodes.sort_unstable();
    nodes.dedup();
    let inside = (0..world.n_ranks)
        .find(|&rank| leaders[rank] != rank as u64)
        .map(|rank| (leaders[rank] as usize, rank));
    let between = nodes
        .get(1)
        .map(|&other| (nodes[0] as usize, other as usize));
    let cores_per_node = cores_allowed(world) / nodes.len() as f64;
    let ppn = world.n_ranks as f64 / nodes.len() as f64;
    let shared = cores_per_node > 0.0 && cores_per_node < ppn;
    let measure = |pair: Option<(usize, usize)>, others: Others| match pair {
        Some(pair) => level(arguments, world, pair, others),
        None => Value::Null,
    };
    let between = measure(between, Others::Wait);
    let waited = measure(inside, Others::Wait);
    let (inside, cores) = match shared {
        true => {
            let turn_ns = turn_ns(&waited, ppn / cores_per_node);
            let cores = json!({ "per_node": whole(cores_per_node), "turn_ns": turn_ns });
            (measure(inside, Others::Sleep), cores)
        }
        false => (waited, Value::Null),
    };
    let local = alone(world, 0, || {
        let repeat = |work: &mut dyn FnMut()| per_byte_ns(arguments, work);
        let (from, mut to) = (vec![1.0f64; LOCAL / 8], vec![1.0f64; LOCAL / 8]);
        let reduce = repeat(&mut || mpi::reduce_local(&from, &mut to));
        let copy = repeat(&mut || {
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&mut to);
        });
        vec![reduce, copy]
    });
    let loaded_per_byte_ns = loaded_per_byte_ns(arguments, world, &leaders);
    json!({
        "mode": "calibrate",
        "nodes": nodes.len(),
        "reduce_per_byte_ns": local[0],
        "copy_per_byte_ns": local[1],
        "loaded_per_byte_ns": loaded_per_byte_ns,
        "inside": inside,
        "between": between,
        "cores": cores,
    })
}

/// Bytes of a message in an exchange under load; what is measured is the slope between these.
const LOADED_BYTES: [usize; 2] = [1 << 17, 1 << 18];
/// Messages that leave a node in it, about, and how many of one rank's at most.
const LOADED_MESSAGES: usize = 32;
const PARTNERS_MAX: usize = 16;

/// What each byte that leaves a node takes while all ranks send to other nodes and receive from them; none on one node.
fn loaded_per_byte_ns(arguments: &Arguments, world: Comm, node_of: &[u64]) -> Option<f64> {
    let pairs = loaded_pairs(node_of);
    let mut leaving = BTreeMap::new();
    for &(from, _) in &pairs {
        *leaving.entry(node_of[from]).or_insert(0usize) += 1;
    }
    let most = leaving.into_values().max()?;
    let [short, long] = LOADED_BYTES.map(|bytes| {
        let messages = pairs.iter().map(|&(from, to)| (from, to, bytes));
        let pattern = Pattern {
            name: "loaded".to_owned(),
            messages: messages.collect(),
        };
        let mut exchange = Exchange::new(&pattern, world.rank);
        // The first round connects ranks.
        exchange.round();
        let rounds = (0..arguments.repetitions.max(1)).map(|_| {
            world.synchronise();
            let start = Instant::now();
            exchange.round();
            start.elapsed().as_nanos() as f64
        });
        median(world.maxima(&rounds.collect::<Vec<_>>()))
    });
    let bytes = most * (LOADED_BYTES[1] - LOADED_BYTES[0]);
    Some(((long - short) / bytes as f64).max(0.0))
}

/// From whom to whom: each rank to some of those on other nodes, evenly spread among them from the next one on.
fn loaded_pairs(node_of: &[u64]) -> Vec<(usize, usize)> {
    let n = node_of.len();
    let mut on_node = BTreeMap::new();
    for node in node_of {
        *on_node.entry(node).or_insert(0usize) += 1;
    }
    let ppn = on_node.into_values().max().unwrap_or(1);
    let n_partners = (LOADED_MESSAGES / ppn).clamp(1, PARTNERS_MAX);
    let of_rank = |from: usize| {
        let behind = (1..n).map(move |away| (from + away) % n);
        let others: Vec<usize> = behind.filter(|&to| node_of[to] != node_of[from]).collect();
        let n_own = n_partners.min(others.len());
        (0..n_own).map(move |place| (from, others[place * others.len() / n_own]))
    };
    (0..n).flat_map(of_rank).collect()
}

/// What the ranks that do not measure do meanwhile.
#[derive(Clone, Copy)]
enum Others {
    Wait,
    Sleep,
}

/// How many cores the ranks may run on, all together. Simulated nodes on one machine share its cores.
fn cores_allowed(world: Comm) -> f64 {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let status = read("/proc/self/status");
    let own = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let own = listed(own.unwrap_or_default());
    let mut machine = DefaultHasher::new();
    read("/proc/sys/kernel/random/boot_id").hash(&mut machine);
    let machines = world.of_all(machine.finish());
    let words =
        world.maxima(&[own.iter().max().map_or(0, |core| core / 64 + 1) as f64])[0] as usize;
    let mut allowed = BTreeMap::new();
    for word in 0..words {
        let bits = own.iter().filter(|core| *core / 64 == word);
        let masks = world.of_all(bits.fold(0, |mask, core| mask | 1 << (core % 64)));
        for (machine, mask) in machines.iter().zip(masks) {
            *allowed.entry((*machine, word)).or_insert(0) |= mask;
        }
    }
    allowed
        .into_values()
        .map(u64::count_ones)
        .sum::<u32>()
        .into()
}

/// The numbers of a list such as `0-3,8`.
fn listed(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// So many cores for a node, or one for so many nodes.
fn whole(cores: f64) -> f64 {
    match cores >= 1.0 {
        true => cores.round(),
        false => 1.0 / (1.0 / cores).round(),
    }
}

/// A round trip between ranks whose cores are shared takes a round of turns: the answer is there before it is over.
fn turn_ns(waited: &Value, ranks_per_core: f64) -> f64 {
    let one_way_ns = waited["one_way_ns"][0][1].as_f64();
    one_way_ns.map_or(TURN_NS, |time| 2.0 * time / ranks_per_core)
}

/// A turn where no two ranks of a node could measure it.
const TURN_NS: f64 = 1000.0;

const EAGER_LEAST: usize = 256;

/// Sizes of which is asked whether they are sent without asking, up to the longest.
fn eager_sizes() -> impl Iterator<Item = usize> {
    let longest = SIZES[SIZES.len() - 1];
    std::iter::successors(Some(EAGER_LEAST), |bytes| Some(bytes * 2))
        .take_while(move |&bytes| bytes <= longest)
}

/// What `rank` measures while the others sleep, on all ranks.
fn alone(world: Comm, rank: usize, measure: impl FnOnce() -> Vec<f64>) -> Vec<f64> {
    let values = if world.rank == rank {
        measure()
    } else {
        Vec::new()
    };
    world.meet_asleep();
    let count = world.maxima(&[values.len() as f64])[0] as usize;
    let mut own = vec![0.0; count];
    own[..values.len()].copy_from_slice(&values);
    world.maxima(&own)
}

fn per_byte_ns(arguments: &Arguments, work: &mut dyn FnMut()) -> f64 {
    let once = |work: &mut dyn FnMut(), calls: u32| {
        let start = Instant::now();
        (0..calls).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    let calls = calls_in_block(arguments, once(work, 5));
    let blocks = (0..arguments.repetitions.max(1)).map(|_| once(work, calls));
    median(blocks.collect()) / LOCAL as f64
}

fn calls_in_block(arguments: &Arguments, one_ns: f64) -> u32 {
    (arguments.block_us as f64 * 1e3 / one_ns.max(1.0)).clamp(2.0, 10_000.0) as u32
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One level, measured by two ranks.
fn level(
    arguments: &Arguments,
    world: Comm,
    (first, second): (usize, usize),
    others: Others,
) -> Value {
    let bytes_max = SIZES[SIZES.len() - 1];
    let mut measured = vec![0.0; SIZES.len() + 3];
    if world.rank == first {
        let mut pair = Pair::new(world, second, bytes_max);
        measured = ask(arguments, &mut pair);
    } else if world.rank == second {
        answer(arguments, &mut Pair::new(world, first, bytes_max));
    }
    match others {
        Others::Wait => world.synchronise(),
        Others::Sleep => world.meet_asleep(),
    }
    let measured = world.maxima(&measured);
    let (one_way, rest) = measured.split_at(SIZES.len());
    link(one_way, rest[0], rest[1], rest[2])
}

/// The parameters. `eager_bytes` is the longest message that is sent without asking.
fn link(one_way_ns: &[f64], overhead_ns: f64, gap_ns: f64, eager_bytes: f64) -> Value {
    // Both ends' overheads are part of the way of a message, which cannot be shorter than they are.
    let overhead_ns = overhead_ns.min(one_way_ns[0] / 3.0);
    let last = SIZES.len() - 1;
    let bytes = (SIZES[last] - SIZES[last - 1]) as f64;
    let per_byte_ns = ((one_way_ns[last] - one_way_ns[last - 1]) / bytes).max(0.0);
    // What messages are earlier than their bytes allow.
    let saved = |(&bytes, &time): (&usize, &f64)| {
        (one_way_ns[0] + bytes as f64 * per_byte_ns - time) / per_byte_ns.max(f64::MIN_POSITIVE)
    };
    let burst_bytes = SIZES.iter().zip(one_way_ns).skip(1).map(saved);
    let latency_ns = one_way_ns[0] - 2.0 * overhead_ns;
    json!({
        "latency_ns": latency_ns.max(0.0),
        "overhead_ns": overhead_ns,
        "gap_ns": gap_ns,
        "per_byte_ns": per_byte_ns,
        "burst_bytes": burst_bytes.fold(0.0, f64::max).min(BURST_MAX),
        "rendezvous_bytes": (eager_bytes < SIZES[last] as f64).then_some(2.0 * eager_bytes),
        "one_way_ns": SIZES.iter().zip(one_way_ns).collect::<Vec<_>>(),
    })
}

/// Round trips of every size, a stream, and eager sends: the half that measures.
fn ask(arguments: &Arguments, pair: &mut Pair) -> Vec<f64> {
    let mut measured = Vec::new();
    for bytes in SIZES {
        let trips = |pair: &mut Pair, trips: u32| {
            let start = Instant::now();
            for _ in 0..trips {
                pair.send(bytes);
                pair.receive(bytes);
            }
            start.elapsed().as_nanos() as f64 / f64::from(trips) / 2.0
        };
        let one = trips(pair, WARMUP);
        let count = calls_in_block(arguments, 2.0 * one);
        pair.tell(count);
        let blocks = (0..arguments.repetitions.max(1)).map(|_| trips(pair, count));
        measured.push(median(blocks.collect()));
    }
    let streams = (0..arguments.repetitions.max(1)).map(|_| {
        let start = Instant::now();
        let posting = pair.stream(SMALL, STREAM);
        pair.receive(0);
        [posting, start.elapsed()].map(|time: Duration| time.as_nanos() as f64 / STREAM as f64)
    });
    let streams: Vec<[f64; 2]> = streams.collect();
    measured.extend([0, 1].map(|which| median(streams.iter().map(|of| of[which]).collect())));
    // The longest of those that are all eager from the shortest on.
    let mut eager = EAGER_LEAST / 2;
    for bytes in eager_sizes() {
        if pair.is_eager(bytes) && bytes == 2 * eager {
            eager = bytes;
        }
    }
    measured.push(eager as f64);
    measured
}

/// The half that answers.
fn answer(arguments: &Arguments, pair: &mut Pair) {
    for bytes in SIZES {
        let trips = |pair: &mut Pair, count: u32| {
            for _ in 0..count {
                pair.receive(bytes);
                pair.send(bytes);
            }
        };
        trips(pair, WARMUP);
        let count = pair.hear();
        (0..arguments.repetitions.max(1)).for_each(|_| trips(pair, count));
    }
    for _ in 0..arguments.repetitions.max(1) {
        (0..STREAM).for_each(|_| pair.receive(SMALL));
        pair.send(0);
    }
    for bytes in eager_sizes() {
        pair.receive_late(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_sends_to_other_nodes_alone_and_every_node_receives_as_much_as_it_sends() {
        for (n_nodes, ppn) in [(2, 1), (2, 2), (4, 2), (3, 24), (4, 128)] {
            let n = n_nodes * ppn;
            let in_blocks: Vec<u64> = (0..n).map(|rank| rank / ppn).collect();
            let in_turns: Vec<u64> = (0..n).map(|rank| rank % n_nodes).collect();
            for node_of in [in_blocks, in_turns] {
                let pairs = loaded_pairs(&node_of);
                assert!(pairs.iter().all(|&(from, to)| node_of[from] != node_of[to]));
                let count = |is: &dyn Fn(&(usize, usize)) -> bool| {
                    pairs.iter().filter(|pair| is(pair)).count()
                };
                for rank in 0..n as usize {
                    let sends = count(&|(from, _)| *from == rank);
                    assert!(
                        (1..=PARTNERS_MAX).contains(&sends),
                        "{n_nodes} x {ppn}: {sends}"
                    );
                }
                for node in 0..n_nodes {
                    let out = count(&|&(from, _)| node_of[from] == node);
                    let into = count(&|&(_, to)| node_of[to] == node);
                    assert_eq!(out, into, "{n_nodes} x {ppn}, node {node}");
                }
            }
        }
        assert!(loaded_pairs(&[0, 0, 0]).is_empty() && loaded_pairs(&[0]).is_empty());
    }
}
