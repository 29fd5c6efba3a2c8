//! How long a schedule takes on a machine of two levels, in the manner of LogGP.
//!
//! Every message costs its sender and its receiver an overhead, occupies its sender for the gap
//! or for its bytes, whichever is longer, and arrives a latency after its bytes have left. Inside
//! a node the sender is one rank; between nodes it is the whole node, whose ranks share one port
//! out and one port in, each of which lets a burst through at once after it was idle. Combining and copying cost per
//! byte. Ranks begin together. Waiting follows the rules of [`Plan`](super::plan::Plan): program order, what chunks demand, and the window;
//! that receives are posted too late is not modelled.
//!
//! Where ranks share cores (`taking_turns`), what they do goes on one after another, each waits until its core comes
//! round to it, and what a message inside a node takes is the receiver's work. A sender that asks first waits until
//! the receiver has looked.
//!
//! Ranks are advanced in the order of their clocks, and messages between nodes stand among them with
//! their own time, so that both ends' shared ports serve in the order of time. Steps are generated as
//! they are needed, and ranks that do the same stand for each other ([`symmetry`]).
//!
//! Source: Alexandrov, Ionescu, Schauser & Scheiman, LogGP, SPAA 1995.

mod machine;
pub use machine::{Cores, Impossible, Link, Machine};

pub mod path;
pub mod symmetry;

mod rank;
mod taking_turns;
mod world;

use std::collections::HashMap;

use super::pattern::Pattern;
use super::registry::{Row, Values};
use super::schedule::{Case, Schedule};
use symmetry::Fold;
use world::{Block, Found};

/// The time at which the last rank is done.
///
/// Shape:  `node_of[rank]` is the node of each rank; nodes are numbered from 0.
/// Units:  `message_bytes` as the collective defines its message size; nanoseconds out.
pub fn makespan_ns(
    row: &Row,
    values: Values,
    node_of: &[u32],
    message_bytes: u64,
    machine: &Machine,
) -> f64 {
    let case = row.case(0, node_of.len(), 0, values, message_bytes);
    case_ns(row, case, node_of, message_bytes as f64, machine)
}

/// How often a rank or a message has its turn until the last rank is done: the work of [`makespan_ns`].
pub fn turns(
    row: &Row,
    values: Values,
    node_of: &[u32],
    message_bytes: u64,
    machine: &Machine,
) -> u64 {
    let case = row.case(0, node_of.len(), 0, values, message_bytes);
    found(row, case, node_of, message_bytes as f64, machine).turns
}

/// A pipeline runs steadily where each of its segments costs what the one before did: from the first of these
/// numbers of segments to the second as much as from the second to the third. Otherwise twice as many are
/// looked at, until they are all.
const LOOKED_AT: [usize; 3] = [24, 36, 48];
/// What a segment costs may differ by so much of it.
const STEADY: f64 = 0.02;

/// What was simulated of one row with certain values on certain nodes of a machine, by segments and the
/// bits of the message's bytes. Long messages in segments of one length share their simulations.
pub type Known = HashMap<(usize, u64), f64>;

/// [`makespan_ns`], where the time of a long pipeline is continued from shorter ones with segments of the
/// same length, once these run steadily; `None` where it would take more than `steps_max` steps. What it
/// simulates is `known` to estimates for other sizes of message.
pub fn estimate_ns(
    known: &mut Known,
    row: &Row,
    values: Values,
    node_of: &[u32],
    message_bytes: u64,
    machine: &Machine,
    steps_max: usize,
) -> Option<f64> {
    let case = row.case(0, node_of.len(), 0, values, message_bytes);
    let segments = case.segments;
    let mut time = |simulated: usize| {
        let bytes = message_bytes as f64 * simulated as f64 / segments as f64;
        let case = Case {
            segments: simulated,
            ..case
        };
        if let Some(found) = known.get(&(simulated, bytes.to_bits())) {
            return Some(*found);
        }
        if steps(row, case, node_of, steps_max) >= steps_max {
            return None;
        }
        let found = case_ns(row, case, node_of, bytes, machine);
        known.insert((simulated, bytes.to_bits()), found);
        Some(found)
    };
    let mut looked_at = LOOKED_AT;
    while looked_at[2] < segments {
        let [first, second, third] = looked_at;
        let longest = time(third)?;
        let middle = time(second)?;
        let before = (middle - time(first)?) / (second - first) as f64;
        let each = (longest - middle) / (third - second) as f64;
        if (each - before).abs() <= STEADY * each {
            return Some(longest + each * (segments - third) as f64);
        }
        looked_at = looked_at.map(|segments| 2 * segments);
    }
    time(segments)
}

/// About how many steps a simulation takes, counted on a few ranks: a root may have many alone.
fn steps(row: &Row, case: Case, node_of: &[u32], most: usize) -> usize {
    let simulated = fold(row, node_of).period.max(1);
    let count = |rank: usize, most: usize| {
        let rank = rank.min(case.n_ranks.saturating_sub(1));
        let schedule = (row.schedule)(Case { rank, ..case });
        schedule.steps.take(most).count()
    };
    let others = [1, simulated / 2, simulated - 1].map(|rank| count(rank, most / simulated + 1));
    let others = others.into_iter().max().unwrap_or(0);
    count(0, most).saturating_add(others.saturating_mul(simulated))
}

fn case_ns(row: &Row, case: Case, node_of: &[u32], message_bytes: f64, machine: &Machine) -> f64 {
    found(row, case, node_of, message_bytes, machine).makespan_ns
}

fn found(row: &Row, case: Case, node_of: &[u32], message_bytes: f64, machine: &Machine) -> Found {
    let schedule = |rank| (row.schedule)(Case { rank, ..case });
    let block = block(row, node_of, message_bytes);
    world::run(schedule, node_of, block, machine, fold(row, node_of))
}

fn block(row: &Row, node_of: &[u32], message_bytes: f64) -> Block {
    let bytes = match row.pattern {
        Pattern::ReduceScatter => message_bytes / node_of.len().max(1) as f64,
        _ => message_bytes,
    };
    let unit_bytes = match row.pattern.is_reduction() {
        true => ELEMENT_BYTES,
        false => 1.0,
    };
    Block { bytes, unit_bytes }
}

/// Most reductions are of doubles.
const ELEMENT_BYTES: f64 = 8.0;

/// So many ranks are all simulated; of more, those that stand for all.
const WHOLE_MAX: usize = 256;

fn fold(row: &Row, node_of: &[u32]) -> Fold {
    if node_of.len() <= WHOLE_MAX {
        Fold::none(node_of.len())
    } else {
        Fold::new(row.symmetry, node_of)
    }
}

/// As [`makespan_ns`], for any schedules whose blocks are all `block_bytes` long.
pub fn schedules_ns(
    schedule: impl Fn(usize) -> Schedule,
    node_of: &[u32],
    block_bytes: f64,
    machine: &Machine,
) -> f64 {
    let fold = Fold::none(node_of.len());
    let block = Block {
        bytes: block_bytes,
        unit_bytes: 1.0,
    };
    world::run(schedule, node_of, block, machine, fold).makespan_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::registry::{ROWS, find};
    use crate::algorithm::schedule::Buffer;
    use crate::algorithm::schedule::{Order, Part, Step};
    use crate::algorithm::simulate::symmetry::Symmetry;
    use crate::algorithm::simulate::taking_turns::TakingTurns;

    const LINK: Link = Link {
        latency_ns: 1000.0,
        overhead_ns: 100.0,
        gap_ns: 50.0,
        per_byte_ns: 0.1,
        rendezvous_bytes: f64::INFINITY,
        burst_bytes: 0.0,
    };
    const MACHINE: Machine = Machine {
        inside: LINK,
        between: LINK,
        reduce_per_byte_ns: 0.05,
        copy_per_byte_ns: 0.0,
        cores: Cores::ENOUGH,
    };
    const VALUES: Values = Values {
        segsize: 0,
        radix: 2,
        window: 1,
    };

    fn one_rank_per_node(n: u32) -> Vec<u32> {
        (0..n).collect()
    }

    fn time(pattern: Pattern, name: &str, n: u32, bytes: u64, machine: &Machine) -> f64 {
        let row = find(pattern, name).unwrap();
        makespan_ns(row, VALUES, &one_rank_per_node(n), bytes, machine)
    }

    fn assert_close(found: f64, expected: f64, what: &str) {
        let bound = 1e-9 * expected.abs().max(1.0);
        assert!(
            (found - expected).abs() <= bound,
            "{what}: {found}, expected {expected}"
        );
    }

    /// Both overheads and the latency.
    const START: f64 = 1200.0;

    #[test]
    fn recursive_doubling_takes_its_closed_form() {
        for (n, q) in [(2, 1.0), (8, 3.0), (64, 6.0), (1024, 10.0)] {
            let m = 4096.0;
            let found = time(Pattern::Allreduce, "recursive_doubling", n, 4096, &MACHINE);
            assert_close(
                found,
                q * (START + 0.1 * m + 0.05 * m),
                "recursive doubling",
            );
        }
    }

    #[test]
    fn ring_and_circulant_allreduce_take_their_closed_forms() {
        for n in [2u32, 5, 16, 37] {
            let m = f64::from(n) * 4000.0;
            let nf = f64::from(n);
            let moved = (nf - 1.0) / nf * m;
            let work = 2.0 * moved * 0.1 + moved * 0.05;
            let ring = time(Pattern::Allreduce, "ring", n, m as u64, &MACHINE);
            assert_close(ring, 2.0 * (nf - 1.0) * START + work, "ring");
            let rounds = f64::from(n.next_power_of_two().ilog2());
            let circulant = time(Pattern::Allreduce, "circulant", n, m as u64, &MACHINE);
            if n.is_power_of_two() {
                assert_close(circulant, 2.0 * rounds * START + work, "circulant");
            } else {
                // A round of fewer blocks than the last does not wait for all of it.
                assert!(circulant <= 2.0 * rounds * START + work);
                assert!(circulant >= rounds * START + work);
            }
        }
    }

    #[test]
    fn a_pipelined_chain_takes_its_closed_form() {
        let free = Link {
            overhead_ns: 0.0,
            gap_ns: 0.0,
            ..LINK
        };
        let machine = Machine {
            inside: free,
            between: free,
            ..MACHINE
        };
        let row = find(Pattern::Bcast, "chain").unwrap();
        for (n, segments) in [(2, 4), (9, 16), (30, 64)] {
            let segment = 1000.0;
            let values = Values {
                segsize: 1000,
                ..VALUES
            };
            let bytes = 1000 * segments;
            let found = makespan_ns(row, values, &one_rank_per_node(n), bytes, &machine);
            let hop = 1000.0 + 0.1 * segment;
            let expected = f64::from(n - 1) * hop + (segments - 1) as f64 * 0.1 * segment;
            assert_close(found, expected, "chain");
        }
    }

    #[test]
    fn ranks_of_a_node_share_its_port_and_are_near_each_other() {
        let inside = Link {
            latency_ns: 10.0,
            overhead_ns: 0.0,
            gap_ns: 0.0,
            per_byte_ns: 0.01,
            ..LINK
        };
        let between = Link {
            overhead_ns: 0.0,
            gap_ns: 0.0,
            ..LINK
        };
        let machine = Machine {
            inside,
            between,
            ..MACHINE
        };
        let pair = |distance: usize| {
            move |rank: usize| {
                use crate::algorithm::schedule::Buffer;
                let own = Part::range(Buffer::Input, 0, 1);
                let theirs = Part::range(Buffer::Output, 0, 1);
                let peer = (rank + distance) % 8;
                let from = (rank + 8 - distance) % 8;
                let steps = [Step::send(peer, own), Step::receive(from, theirs)];
                Schedule::new(1, steps.into_iter())
            }
        };
        let node_of = [0, 0, 0, 0, 1, 1, 1, 1];
        // Four messages leave each node one after another; the fourth waits for three.
        let across = schedules_ns(pair(4), &node_of, 1000.0, &machine);
        assert_close(across, 4.0 * 100.0 + 1000.0, "between nodes");
        let alone = schedules_ns(pair(4), &[0, 1, 2, 3, 4, 5, 6, 7], 1000.0, &machine);
        assert_close(alone, 100.0 + 1000.0, "one rank per node");
        let near = schedules_ns(pair(4), &[0; 8], 1000.0, &machine);
        assert_close(near, 10.0 + 10.0, "inside a node");
        let asking = Link {
            rendezvous_bytes: 1000.0,
            ..inside
        };
        let asking = Machine {
            inside: asking,
            ..machine
        };
        let asked = schedules_ns(pair(4), &[0; 8], 1000.0, &asking);
        assert_close(asked, 3.0 * 10.0 + 10.0, "inside a node, asking first");
        let bursts = |burst_bytes| {
            let between = Link {
                burst_bytes,
                ..between
            };
            let machine = Machine { between, ..machine };
            schedules_ns(pair(4), &node_of, 1000.0, &machine)
        };
        // Of the four messages' bytes so many are there at once.
        assert_close(bursts(1500.0), 2.5 * 100.0 + 1000.0, "with a burst");
        assert_close(bursts(1e6), 1000.0, "all in a burst");
    }

    #[test]
    fn ranks_that_share_a_core_work_one_after_another_and_wait_for_their_turn() {
        let shared = |turn_ns| Machine {
            cores: Cores {
                per_node: 1.0,
                turn_ns,
            },
            ..MACHINE
        };
        let works = |_| {
            let [source, target] = [Buffer::Input, Buffer::Output].map(|of| Part::range(of, 0, 1));
            let step = Step::reduce(source, target, Order::SourceFirst);
            Schedule::new(1, std::iter::once(step))
        };
        let each = 1000.0 * MACHINE.reduce_per_byte_ns;
        let apart = schedules_ns(works, &[0; 8], 1000.0, &MACHINE);
        assert_close(apart, each, "a core for each");
        let together = schedules_ns(works, &[0; 8], 1000.0, &shared(0.0));
        assert_close(together, 8.0 * each, "one core");
        let turns = schedules_ns(works, &[0; 8], 1000.0, &shared(20.0));
        assert_close(turns, 8.0 * each + 7.0 * 20.0, "one core and turns");
        // A rank and its neighbour, which looks 300 ns after it and every 600 ns from then on.
        let message = |rank: usize| {
            let step = match rank {
                0 => Step::send(1, Part::range(Buffer::Input, 0, 1)),
                _ => Step::receive(0, Part::range(Buffer::Output, 0, 1)),
            };
            Schedule::new(1, std::iter::once(step))
        };
        let comes = schedules_ns(message, &[0; 2], 10.0, &shared(300.0));
        assert_close(comes, 100.0 + 300.0 + 2.0 * 600.0 + 100.0 + 1.0, "a turn");
        // Simulated nodes on one core are no less apart, but take turns.
        let nodes = Machine {
            cores: Cores {
                per_node: 0.25,
                turn_ns: 0.0,
            },
            ..MACHINE
        };
        let of_four = schedules_ns(works, &[0, 1, 2, 3], 1000.0, &nodes);
        assert_close(of_four, 4.0 * each, "four nodes on one core");
    }

    #[test]
    fn every_row_comes_to_its_end_on_cores_that_are_shared() {
        for per_node in [0.5, 1.0, 2.0, 3.0] {
            let machine = Machine {
                cores: Cores {
                    per_node,
                    turn_ns: 700.0,
                },
                inside: Link {
                    rendezvous_bytes: 4096.0,
                    ..LINK
                },
                ..MACHINE
            };
            for (nodes, ppn) in [(1, 8), (4, 2), (3, 3), (2, 4)] {
                let node_of: Vec<u32> = (0..nodes * ppn).map(|rank| rank / ppn).collect();
                for row in ROWS.iter().filter(|row| row.fits(node_of.len())) {
                    for values in row.values() {
                        for bytes in [1, 8, 64, 4096, 100_000, 1 << 20] {
                            let case = row.case(0, node_of.len(), 0, values, bytes);
                            let schedule = |rank| (row.schedule)(Case { rank, ..case });
                            let (block, fold) =
                                (block(row, &node_of, bytes as f64), fold(row, &node_of));
                            let turns = TakingTurns::new(&machine.cores, &node_of[..fold.period]);
                            let found =
                                world::followed(&schedule, &node_of, block, &machine, fold, turns);
                            let what = row.variant(values);
                            assert!(found.is_some(), "{what} of {bytes} B on {nodes} x {ppn}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn long_pipelines_are_estimated_from_short_ones() {
        let node_of: Vec<u32> = (0..24).map(|rank| rank / 4).collect();
        let mut continued = 0;
        for row in ROWS.iter().filter(|row| row.fits(24)) {
            for values in row.values() {
                let bytes = 6 << 20;
                let exact = makespan_ns(row, values, &node_of, bytes, &MACHINE);
                let known = &mut Known::default();
                let estimate = estimate_ns(known, row, values, &node_of, bytes, &MACHINE, 1 << 24);
                let estimate = estimate.expect("few steps");
                let segments = row.segments(bytes, 24, values.segsize);
                assert!(
                    (estimate / exact - 1.0).abs() < 0.05,
                    "{}: {segments} segments take {exact:.0} ns simulated in full and {estimate:.0} ns as \
                     continued from fewer, more than 5 % apart: what a segment costs changes so late or so slowly \
                     that two stretches of LOOKED_AT are alike before it does. Nothing is wrong with the \
                     schedule; LOOKED_AT has to begin later, or STEADY to be less.",
                    row.variant(values)
                );
                continued += usize::from(segments > LOOKED_AT[2]);
            }
        }
        assert!(continued > 8);
        let ring = find(Pattern::Allgather, "ring").unwrap();
        let few = estimate_ns(
            &mut Known::default(),
            ring,
            VALUES,
            &node_of,
            8,
            &MACHINE,
            50,
        );
        assert_eq!(few, None);
    }

    #[test]
    fn a_pipeline_that_is_steady_late_is_simulated_until_it_is() {
        /// From the 40th segment on each is sent twice.
        fn late(case: Case) -> Schedule {
            let messages = (0..case.segments).flat_map(|segment| {
                let times = if segment < 40 { 1 } else { 2 };
                std::iter::repeat_n(segment, times)
            });
            let steps = messages.filter_map(move |segment| match case.rank {
                0 => Some(Step::send(1, Part::range(Buffer::Input, segment, 1))),
                1 => Some(Step::receive(0, Part::range(Buffer::Output, segment, 1))),
                _ => None,
            });
            Schedule::new(case.segments, steps)
        }
        let chain = find(Pattern::Bcast, "chain").unwrap();
        let row = Row {
            schedule: late,
            ..*chain
        };
        let values = Values {
            segsize: 4096,
            ..VALUES
        };
        let (bytes, node_of) = (512 * 4096, [0, 1]);
        let exact = makespan_ns(&row, values, &node_of, bytes, &MACHINE);
        let known = &mut Known::default();
        let estimate = estimate_ns(known, &row, values, &node_of, bytes, &MACHINE, 1 << 20);
        let ratio = estimate.expect("few steps") / exact;
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
        assert!(known.len() < 8, "it is not simulated in full");
    }

    /// The times of all ranks simulated, and of those that stand for all.
    fn whole_and_folded(row: &Row, values: Values, nodes: u32, ppn: u32) -> [f64; 2] {
        let node_of: Vec<u32> = (0..nodes * ppn).map(|rank| rank / ppn).collect();
        let slower = Link {
            latency_ns: 7000.0,
            per_byte_ns: 0.9,
            ..LINK
        };
        let machine = Machine {
            between: slower,
            ..MACHINE
        };
        let case = row.case(0, node_of.len(), 0, values, 100_000);
        let folds = [Fold::none(node_of.len()), Fold::new(row.symmetry, &node_of)];
        folds.map(|fold| {
            let schedule = |rank| (row.schedule)(Case { rank, ..case });
            let block = Block {
                bytes: 100_000.0,
                unit_bytes: 1.0,
            };
            world::run(schedule, &node_of, block, &machine, fold).makespan_ns
        })
    }

    #[test]
    fn the_ranks_that_stand_for_all_take_the_time_of_all_that_stay_in_step() {
        for (nodes, ppn) in [(4, 4), (8, 2), (6, 3), (16, 1), (12, 1), (1, 8), (3, 6)] {
            let n_ranks = (nodes * ppn) as usize;
            for row in ROWS.iter().filter(|row| row.fits(n_ranks)) {
                for values in row.values() {
                    let [whole, folded] = whole_and_folded(row, values, nodes, ppn);
                    let what = format!("{} on {nodes} x {ppn}", row.variant(values));
                    // Ranks that share ports are served in turn, and fall out of step.
                    let least = match (nodes == 1 || ppn == 1, row.symmetry) {
                        (false, _) => 0.74,
                        // What came is combined in rank order, so ranks wait in different orders.
                        (true, Symmetry::Exchange(2..)) => 0.98,
                        (true, _) => 0.999,
                    };
                    let range = least * whole..1.001 * whole;
                    assert!(range.contains(&folded), "{what}: {folded}, {whole}");
                }
            }
        }
    }

    #[test]
    fn an_allreduce_of_logarithmic_rounds_takes_few_turns_on_many_ranks() {
        let (nodes, ppn) = (1024, 32);
        let node_of: Vec<u32> = (0..nodes * ppn).map(|rank| rank / ppn).collect();
        let n = node_of.len();
        for (name, turns_max) in [
            // Those that look the same from every node are simulated on one or two.
            ("recursive_doubling", 64 * 64),
            ("rabenseifner", 64 * 64),
            ("circulant", 64 * 64),
            ("recursive_multiplying", 2 * 64 * 64),
            // The others have a turn or two for each message.
            ("reduce_bcast", 2 * n * 4),
        ] {
            let row = find(Pattern::Allreduce, name).unwrap();
            for values in row.values() {
                let turns = turns(row, values, &node_of, 1 << 20, &Machine::TYPICAL);
                let name = row.variant(values);
                assert!(turns <= turns_max as u64, "{name}: {turns} turns");
            }
        }
    }

    #[test]
    fn every_row_comes_to_its_end_and_no_faster_machine_is_slower() {
        let slower = Link {
            latency_ns: 9000.0,
            per_byte_ns: 0.7,
            ..LINK
        };
        let slower = Machine {
            between: slower,
            ..MACHINE
        };
        let node_of: Vec<u32> = (0..32).map(|rank| rank / 4).collect();
        for row in ROWS.iter().filter(|row| row.fits(32)) {
            for values in row.values() {
                let [fast, slow] = [MACHINE, slower]
                    .map(|machine| makespan_ns(row, values, &node_of, 1 << 20, &machine));
                assert!(fast > 0.0, "{} takes no time", row.variant(values));
                assert!(
                    fast < slow,
                    "{}: {fast} against {slow}",
                    row.variant(values)
                );
            }
        }
    }
}
