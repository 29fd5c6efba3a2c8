//! Looks at the nodes of a job before it runs: a fixed kernel, memory, messages between neighbours, throttling.
//!
//! All ranks of a node measure at once, as they will compute at once, and all nodes do; only nodes that share a kernel
//! of the operating system, and so its cores, take turns. Nodes stand in a ring, and each exchanges messages with the
//! next one, the first ranks of both.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mpi::Comm;
use crate::pair::Pair;

#[derive(clap::Args)]
pub struct Arguments {
    /// How long the kernel computes in each round
    #[arg(long, default_value_t = 100)]
    kernel_ms: u64,
    /// What each rank copies to and fro in memory, in MiB
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory_mib: u64,
}

const SMALL: usize = 8;
const LARGE: usize = 1 << 20;
/// Round trips of each size: untimed, timed.
const TRIPS: [(usize, u32, u32); 2] = [(SMALL, 10, 200), (LARGE, 1, 10)];
const COPIES: u32 = 4;
/// Nodes compute and copy so often, and the best round counts: what is sick is so in all of them, and what disturbs a
/// healthy one for a moment is not.
const ROUNDS: usize = 3;
const HOST_BYTES: usize = 64;
/// A number that is not known.
const UNKNOWN: u64 = u64::MAX;

pub fn run(arguments: &Arguments, world: Comm) -> Value {
    let leaders = world.of_all(world.node_leader() as u64);
    let mut nodes = leaders.clone();
    nodes.sort_unstable();
    nodes.dedup();
    let kernels = world.of_all(hash(&line("/proc/sys/kernel/random/boot_id")));
    let own = kernels[world.rank];
    let sharing: Vec<u64> = nodes
        .iter()
        .copied()
        .filter(|&leader| kernels[leader as usize] == own)
        .collect();
    let turn = sharing.iter().position(|&node| node == leaders[world.rank]);
    let turns = world.maxima(&[sharing.len() as f64])[0] as usize;
    let throttled_before = throttled();
    let (mut kernel, mut memory) = (f64::INFINITY, 0.0f64);
    for now in (0..turns).cycle().take(ROUNDS * turns) {
        world.meet_asleep();
        if turn == Some(now) {
            kernel = kernel.min(kernel_ns(Duration::from_millis(arguments.kernel_ms)));
            memory = memory.max(bytes_per_ns((arguments.memory_mib as usize) << 20));
        }
    }
    world.meet_asleep();
    let throttled = match (throttled_before, throttled()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => UNKNOWN,
    };
    let pings = pings(world, &nodes, turns > 1);
    let hosts = hosts(world);
    let kernels_ns = of_all(world, kernel);
    let memories = of_all(world, memory);
    let throttles = world.of_all(throttled);
    let node = |&leader: &u64| {
        let ranks: Vec<usize> = (0..world.n_ranks)
            .filter(|&rank| leaders[rank] == leader)
            .collect();
        let of = |values: &[f64]| ranks.iter().map(|&rank| values[rank]).collect::<Vec<f64>>();
        let throttled = ranks.iter().map(|&rank| throttles[rank]).max();
        json!({
            "host": hosts[leader as usize],
            "kernel_ns": of(&kernels_ns),
            "memory_bytes_per_ns": of(&memories),
            "throttled": throttled.filter(|&n| n != UNKNOWN),
        })
    };
    let pings: Vec<Value> = pings
        .iter()
        .map(|ping| {
            let [from, to] = ping.between.map(|leader| &hosts[leader as usize]);
            json!({ "from": from, "to": to, "small_ns": ping.small_ns, "large_ns": ping.large_ns })
        })
        .collect();
    json!({
        "mode": "nodes",
        "large_bytes": LARGE,
        "nodes": nodes.iter().map(node).collect::<Vec<Value>>(),
        "pings": pings,
    })
}

/// What a unit of fixed work takes, by how many fit into the time.
fn kernel_ns(time: Duration) -> f64 {
    let (start, mut units) = (Instant::now(), 0u32);
    let mut sums = [1.0f64, 1.1, 1.2, 1.3];
    while start.elapsed() < time {
        for _ in 0..4096 {
            for sum in &mut sums {
                *sum = sum.mul_add(0.999_999, 1e-6);
            }
        }
        sums = std::hint::black_box(sums);
        units += 1;
    }
    start.elapsed().as_nanos() as f64 / f64::from(units)
}

/// Bytes read and written in a nanosecond; the best of some copies, of which the first finds pages to touch.
fn bytes_per_ns(bytes: usize) -> f64 {
    let from = vec![1u64; bytes / 8];
    let mut to = vec![2u64; bytes / 8];
    let mut best = 0.0f64;
    for _ in 0..COPIES {
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        best = best.max(2.0 * bytes as f64 / start.elapsed().as_nanos().max(1) as f64);
    }
    best
}

/// Half round trips between the first ranks of two nodes.
struct Ping {
    between: [u64; 2],
    small_ns: f64,
    large_ns: f64,
}

/// Each node with the next one. Where `alone`, one pair at a time; else those that have no node in common at once.
fn pings(world: Comm, nodes: &[u64], alone: bool) -> Vec<Ping> {
    let n = nodes.len();
    let n_pairs = if n > 2 { n } else { n / 2 };
    let pairs: Vec<[u64; 2]> = (0..n_pairs)
        .map(|k| [nodes[k], nodes[(k + 1) % n]])
        .collect();
    let phase = |k: usize| match alone {
        true => k,
        // Of an odd ring the last pair has a node in common with either neighbour.
        false if n % 2 == 1 && k + 1 == n => 2,
        false => k % 2,
    };
    let n_phases = (0..n_pairs).map(|k| phase(k) + 1).max().unwrap_or(0);
    let mut own = [f64::NAN; 2];
    for now in 0..n_phases {
        world.meet_asleep();
        let of_phase = pairs.iter().enumerate().filter(|(k, _)| phase(*k) == now);
        for (_, &[one, other]) in of_phase {
            let rank = world.rank as u64;
            if rank == one {
                own = trips(&mut Pair::new(world, other as usize, LARGE));
            } else if rank == other {
                answer(&mut Pair::new(world, one as usize, LARGE));
            }
        }
    }
    world.meet_asleep();
    let [small, large] = own.map(|value| of_all(world, value));
    let ping = |between: &[u64; 2]| Ping {
        between: *between,
        small_ns: small[between[0] as usize],
        large_ns: large[between[0] as usize],
    };
    pairs.iter().map(ping).collect()
}

/// Half a round trip of each size, at the twentieth part of them from the least: what others' work on these processors
/// adds to most of them is no fault of the link.
fn trips(pair: &mut Pair) -> [f64; 2] {
    TRIPS.map(|(bytes, untimed, timed)| {
        let mut times: Vec<f64> = (0..untimed + timed)
            .map(|_| {
                let start = Instant::now();
                pair.send(bytes);
                pair.receive(bytes);
                start.elapsed().as_nanos() as f64 / 2.0
            })
            .skip(untimed as usize)
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 20]
    })
}

fn answer(pair: &mut Pair) {
    for (bytes, untimed, timed) in TRIPS {
        for _ in 0..untimed + timed {
            pair.receive(bytes);
            pair.send(bytes);
        }
    }
}

/// How often the processors of this host were throttled since it booted, where the system counts that.
fn throttled() -> Option<u64> {
    let processors = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
    let counts = processors.flatten().filter_map(|processor| {
        let counts = processor.path().join("thermal_throttle");
        let of = |name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(counts.join(name)).ok()?;
            text.trim().parse().ok()
        };
        of("core_throttle_count").map(|n| n + of("package_throttle_count").unwrap_or(0))
    });
    let counts: Vec<u64> = counts.collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

fn of_all(world: Comm, number: f64) -> Vec<f64> {
    let words = world.of_all(number.to_bits());
    words.into_iter().map(f64::from_bits).collect()
}

/// The names of all ranks' hosts.
fn hosts(world: Comm) -> Vec<String> {
    let mut bytes = line("/proc/sys/kernel/hostname").into_bytes();
    bytes.resize(HOST_BYTES, 0);
    let (words, _) = bytes.as_chunks::<8>();
    let columns: Vec<Vec<u64>> = words
        .iter()
        .map(|word| world.of_all(u64::from_le_bytes(*word)))
        .collect();
    let name = |rank: usize| {
        let bytes: Vec<u8> = columns
            .iter()
            .flat_map(|column| column[rank].to_le_bytes())
            .take_while(|byte| *byte != 0)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (0..world.n_ranks).map(name).collect()
}

fn line(file: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.trim().to_owned()
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
