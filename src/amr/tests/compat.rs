//! `--compat` against miniAMR 1.7: the collective calls of every rank, in order.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Instant;

use colltune_amr::options;
use colltune_amr::ranks::{CollectiveKind, Numbers, Op, Ranks, Request, Tag, threads};
use colltune_amr::run;
use colltune_amr::settings::Settings;

/// Logs of whole runs of miniAMR, by `examples/amr/calls-of-miniamr`, which says how to read them.
const OF_MINIAMR: &str = include_str!("miniamr-1.7-calls.txt");

/// Ranks that log their collective calls as miniAMR's were logged.
struct Logged<R> {
    ranks: R,
    log: Rc<RefCell<String>>,
}

impl<R: Deref<Target: Ranks>> Logged<R> {
    fn note(&self, kind: &str, size: usize, n: usize, op: &str) {
        let n_ranks = self.ranks.n_ranks();
        let mut log = self.log.borrow_mut();
        writeln!(log, "{kind} {size} x {n} {op} of {n_ranks}").expect("a string takes all");
    }
}

fn name(op: Op) -> &'static str {
    match op {
        Op::Sum => "sum",
        Op::Min => "min",
        Op::Max => "max",
    }
}

impl<R: Deref<Target: Ranks>> Ranks for Logged<R> {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn n_ranks(&self) -> usize {
        self.ranks.n_ranks()
    }

    fn start_send(&self, to: usize, tag: Tag, data: Vec<f64>) -> Request {
        self.ranks.start_send(to, tag, data)
    }

    fn start_receive(&self, from: usize, tag: Tag, buffer: Vec<f64>) -> Request {
        self.ranks.start_receive(from, tag, buffer)
    }

    fn send(&self, to: usize, tag: Tag, data: &[f64]) {
        self.ranks.send(to, tag, data);
    }

    fn is_complete(&self, message: &Request) -> bool {
        self.ranks.is_complete(message)
    }

    fn finish(&self, request: Request) -> Vec<f64> {
        self.ranks.finish(request)
    }

    fn finish_any(&self, requests: &mut Vec<Option<Request>>) -> Option<(usize, Vec<f64>)> {
        self.ranks.finish_any(requests)
    }

    fn collective(&self, kind: CollectiveKind, numbers: Numbers) {
        let size = match numbers {
            Numbers::I32(_) => 4,
            _ => 8,
        };
        let n = numbers.bytes() / size;
        match kind {
            CollectiveKind::Allreduce(op) => self.note("allreduce", size, n, name(op)),
            CollectiveKind::Scan => self.note("scan", size, n, "sum"),
            CollectiveKind::Alltoall => self.note("alltoall", size, n / self.n_ranks(), "-"),
            CollectiveKind::Broadcast(_) => self.note("bcast", size, n, "-"),
            CollectiveKind::Barrier => self.note("barrier", 0, 0, "-"),
        }
        self.ranks.collective(kind, numbers);
    }

    fn allgather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.note("allgather", 1, own.len(), "-");
        self.ranks.allgather_bytes(own)
    }

    fn split(&self, colour: usize) -> Box<dyn Ranks> {
        self.note("split", 0, 0, "-");
        let (ranks, log) = (self.ranks.split(colour), Rc::clone(&self.log));
        Box::new(Logged { ranks, log })
    }
}

/// The log of each rank.
fn logs(n_ranks: usize, line: &str) -> Vec<String> {
    let words = format!("colltune-amr {line} --compat");
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    threads::run(n_ranks, |ranks| {
        let options = options::parse(words.clone()).expect("a good line");
        let settings = Settings::new(options, n_ranks).unwrap_or_else(|r| panic!("{}", r.text));
        let log = Rc::new(RefCell::default());
        let logged = Logged {
            ranks,
            log: Rc::clone(&log),
        };
        run::run(&logged, &settings, Instant::now(), &mut |_| {}).expect("a good run");
        drop(logged);
        log.take()
    })
}

fn counted(log: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for call in log.lines() {
        *counts.entry(call).or_insert(0) += 1;
    }
    counts
}

fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn every_rank_makes_the_collective_calls_of_miniamr_in_its_order() {
    let mut n_runs = 0;
    for run in OF_MINIAMR.split("run ").skip(1) {
        let (head, rest) = run.split_once('\n').expect("a line");
        let (n_ranks, line) = head.split_once(' ').expect("ranks and arguments");
        let n_ranks: usize = n_ranks.parse().expect("a number");
        let (ranks, calls): (Vec<&str>, Vec<&str>) =
            rest.lines().partition(|line| line.starts_with("rank "));
        let calls = calls.into_iter().map(|line| {
            let (n, call) = line.split_once(' ').expect("a number and a call");
            (call, n.parse().expect("a number"))
        });
        let logs = logs(n_ranks, line);
        let calls: BTreeMap<&str, usize> = calls.collect();
        assert_eq!(counted(&logs[0]), calls, "{head}");
        let own = logs.iter().enumerate().map(|(rank, log)| {
            let n = log.lines().count();
            format!("rank {rank}: {n} calls {:016x}", fnv_1a(log))
        });
        assert_eq!(own.collect::<Vec<_>>(), ranks, "{head}");
        n_runs += 1;
    }
    assert_eq!(n_runs, 9);
}

/// Allreduces of rank 0 by bytes.
fn allreduces(n_ranks: usize, line: &str) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for (call, n) in counted(&logs(n_ranks, line)[0]) {
        let words: Vec<&str> = call.split(' ').collect();
        if words[0] == "allreduce" {
            let [size, count] = [words[1], words[3]].map(|n| n.parse::<usize>().expect("a number"));
            *counts.entry(size * count).or_insert(0) += n;
        }
    }
    counts
}

/// Blocks of eight cells instead of the originals: cells decide no call.
#[test]
fn the_tables_problems_make_its_allreduces() {
    let small = "--nx 2 --ny 2 --nz 2";
    let ompicolltune = format!("{small} --num_tsteps 120 --npx 2");
    let found = allreduces(2, &ompicolltune);
    let expected = [
        (4, 726),
        (8, 19_515),
        (20, 75),
        (40, 240),
        (48, 150),
        (1112, 3),
        (1136, 1),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    let sphere = format!(
        "{small} --num_refine 4 --init_y 2 --init_z 2 --npx 2 --num_tsteps 50 --num_objects 1 \
         --object 2 0 -.01 -.01 -.01 0 0 0 0 0 0 .009 .009 .009"
    );
    let found = allreduces(2, &sphere);
    let expected = [
        (4, 744),
        (8, 8139),
        (20, 33),
        (40, 165),
        (256, 23),
        (1112, 3),
        (1136, 1),
    ];
    assert_eq!(found, BTreeMap::from(expected));
}
