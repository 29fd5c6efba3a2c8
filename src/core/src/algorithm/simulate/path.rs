//! What the longest path of a schedule carries, on any number of ranks: the simulator's answer on few ranks and in few
//! segments, continued.
//!
//! Messages are counted on a machine where a message takes one unit whatever it holds, bytes on one where nothing but
//! bytes takes time. Both counts grow with the ranks as a constant, a logarithm, the ranks or their square does; three
//! numbers of ranks tell which. A pipeline grows by the same with each segment. What is counted depends on nothing else,
//! and takes longer than a job may take to start: it stands in `paths.txt`, which a test writes.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::algorithm::registry::{ROWS, Scheduled};
use crate::shape::Load;

/// Powers of four, twice: so a tree of radix 2, 4 or 8 grows by whole levels.
const RANKS: [usize; 3] = [2, 8, 32];
/// From the first to the second a pipeline grows as it does from then on.
const SEGMENTS: [usize; 2] = [2, 4];
/// What a test counted; the first line names the columns.
const COUNTED: &str = include_str!("paths.txt");

/// Of one schedule, by [`SEGMENTS`] and [`RANKS`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Path {
    messages: [[f64; 3]; 2],
    /// Segments that the longest path carries, by number of segments and of ranks.
    carried: [[f64; 3]; 2],
}

type Key = (usize, usize, usize, bool);

static KNOWN: LazyLock<HashMap<Key, Path>> = LazyLock::new(|| {
    let names = ROWS
        .iter()
        .map(|row| format!("{:?} {}", row.pattern, row.name));
    let places: HashMap<String, usize> = names.zip(0..).collect();
    COUNTED
        .lines()
        .filter_map(|line| read(line, &places))
        .collect()
});

fn read(line: &str, places: &HashMap<String, usize>) -> Option<(Key, Path)> {
    let mut words = line.split(' ');
    let name = format!("{} {}", words.next()?, words.next()?);
    let [radix, window] = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
    let key = (*places.get(&name)?, radix, window, words.next()? == "cut");
    let mut counts = || -> Option<[[f64; 3]; 2]> {
        let mut all = [[0.0; 3]; 2];
        for count in all.as_flattened_mut() {
            *count = words.next()?.parse().ok()?;
        }
        Some(all)
    };
    let (messages, carried) = (counts()?, counts()?);
    Some((key, Path { messages, carried }))
}

/// What a call carries that runs a schedule on so many ranks with a root or without; `None` of a schedule that was not
/// counted.
///
/// Units: `bytes` as the collective counts its size.
pub fn load(own: &Scheduled, n_ranks: u32, bytes: u64) -> Option<Load> {
    let (row, values) = (own.row(), own.values);
    let segments = row.segments(bytes, n_ranks as usize, values.segsize) as f64;
    let path = KNOWN.get(&key(own))?;
    let at = |counts: [[f64; 3]; 2]| {
        let [from, to] = SEGMENTS.map(|segments| segments as f64);
        let each = |which: usize| (counts[1][which] - counts[0][which]) / (to - from);
        let each = continued([each(0), each(1), each(2)], n_ranks);
        (continued(counts[0], n_ranks) + each * (segments - from)).max(0.0)
    };
    Some(Load {
        messages: at(path.messages),
        bytes: at(path.carried) / segments * bytes as f64,
    })
}

fn key(own: &Scheduled) -> Key {
    let values = own.values;
    (own.place(), values.radix, values.window, values.segsize > 0)
}

/// A count on any number of ranks, by those on [`RANKS`].
fn continued([few, some, many]: [f64; 3], n_ranks: u32) -> f64 {
    let (first, second) = (some - few, many - some);
    let along = |n: f64| match () {
        () if second > 0.0 && second >= 8.0 * first => n * n,
        () if second > 0.0 && second >= 2.0 * first => n,
        () => log2(n),
    };
    let n = f64::from(n_ranks.max(2));
    let [low, middle, high] = RANKS.map(|n_ranks| along(n_ranks as f64));
    if n <= RANKS[1] as f64 {
        return few + first * (along(n) - low) / (middle - low);
    }
    // What ever less comes to comes to an end.
    let ends = n > RANKS[2] as f64 && (second <= 0.0 || second < first / 3.0);
    let further = if ends { high } else { along(n) };
    some + second * (further - middle) / (high - middle)
}

/// A logarithm: linear between powers of two. The ranks decide by it, and those of two machines may have other rounding in
/// their mathematical libraries.
fn log2(n: f64) -> f64 {
    let whole = (n as u64).max(1).ilog2();
    f64::from(whole) + n / (1u64 << whole) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::pattern::Pattern;
    use crate::algorithm::registry::{Parameter, Row, Values};
    use crate::algorithm::schedule::Case;
    use crate::algorithm::simulate::symmetry::Fold;
    use crate::algorithm::simulate::{Cores, Link, Machine, block, world};

    /// Bytes of a segment that is simulated: every rank's share of it holds elements.
    const SEGMENT_BYTES: f64 = (1u64 << 20) as f64;

    const MESSAGE: Link = Link {
        latency_ns: 1.0,
        overhead_ns: 0.0,
        gap_ns: 1.0,
        per_byte_ns: 0.0,
        rendezvous_bytes: f64::INFINITY,
        burst_bytes: 0.0,
    };
    const SEGMENT: Link = Link {
        latency_ns: 0.0,
        gap_ns: 0.0,
        per_byte_ns: 1.0 / SEGMENT_BYTES,
        ..MESSAGE
    };

    fn simulated(row: &Row, values: Values) -> Path {
        let cuts = |parameter: &Parameter| matches!(parameter, Parameter::Segsize(..));
        let is_cut = values.segsize > 0 && row.parameters.iter().any(cuts);
        let of = |link: Link| {
            let count =
                |segments| RANKS.map(|n_ranks| makespan(row, values, n_ranks, segments, link));
            match is_cut {
                true => SEGMENTS.map(count),
                false => [count(1); 2],
            }
        };
        Path {
            messages: of(MESSAGE),
            carried: of(SEGMENT),
        }
    }

    /// In units of the link, where each rank has a node of its own.
    fn makespan(row: &Row, values: Values, n_ranks: usize, segments: usize, link: Link) -> f64 {
        let case = Case {
            segments,
            ..row.case(0, n_ranks, 0, values, 0)
        };
        let node_of: Vec<u32> = (0..n_ranks as u32).collect();
        let machine = Machine {
            inside: link,
            between: link,
            reduce_per_byte_ns: 0.0,
            copy_per_byte_ns: 0.0,
            cores: Cores::ENOUGH,
        };
        let schedule = |rank| (row.schedule)(Case { rank, ..case });
        let block = block(row, &node_of, segments as f64 * SEGMENT_BYTES);
        let fold = Fold::new(row.symmetry, &node_of);
        world::run(schedule, &node_of, block, &machine, fold).makespan_ns
    }

    /// `COLLTUNE_BLESS=1` writes the file anew.
    #[test]
    fn what_was_counted_is_what_the_simulator_counts() {
        let mut seen = std::collections::HashSet::new();
        let mut text = "pattern algorithm radix window whole|cut; messages on 2, 8, 32 ranks of 2, then of 4 segments (of 1 where \
                        whole); segments carried, likewise\n"
            .to_owned();
        for own in every().filter(|own| seen.insert(key(own))) {
            let (row, values) = (own.row(), own.values);
            let path = simulated(row, values);
            let cut = if values.segsize > 0 { "cut" } else { "whole" };
            text += &format!(
                "{:?} {} {} {} {cut}",
                row.pattern, row.name, values.radix, values.window
            );
            for count in [path.messages, path.carried].as_flattened().as_flattened() {
                text += &format!(" {count}");
            }
            text.push('\n');
        }
        if std::env::var_os("COLLTUNE_BLESS").is_some_and(|value| value == "1") {
            let path = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/src/algorithm/simulate/paths.txt"
            );
            return std::fs::write(path, &text).unwrap();
        }
        assert_eq!(text, COUNTED, "COLLTUNE_BLESS=1 writes it anew");
        assert!(every().all(|own| KNOWN.contains_key(&key(&own))));
        assert_eq!(KNOWN.len(), seen.len());
    }

    fn every() -> impl Iterator<Item = Scheduled> {
        let rows = ROWS.iter().enumerate();
        rows.flat_map(|(place, row)| {
            let values = row.values().into_iter();
            values.map(move |values| Scheduled::new(place, values))
        })
    }

    fn named(pattern: Pattern, name: &str) -> Scheduled {
        let is_named = |own: &Scheduled| {
            own.row().pattern == pattern && own.row().variant(own.values).to_string() == name
        };
        every().find(is_named).expect(name)
    }

    fn of(pattern: Pattern, name: &str, n_ranks: u32, bytes: u64) -> (f64, f64) {
        let load = load(&named(pattern, name), n_ranks, bytes).unwrap();
        (load.messages, load.bytes / bytes as f64)
    }

    #[test]
    fn closed_forms_are_met_on_many_ranks() {
        use Pattern::{Allgather, Allreduce, Bcast};
        const KIB: u64 = 1 << 10;
        let n = 4096;
        let close = |(messages, blocks): (f64, f64), wanted: (f64, f64)| {
            let off = |found: f64, wanted: f64| (found / wanted - 1.0).abs();
            assert!(off(messages, wanted.0) < 0.05, "{messages} for {wanted:?}");
            assert!(off(blocks, wanted.1) < 0.05, "{blocks} for {wanted:?}");
        };
        let chain = of(Bcast, "p2p:chain:segsize=4KiB", n, 16 * KIB);
        close(chain, (4.0 + 4094.0, (4.0 + 4094.0) / 4.0));
        close(of(Bcast, "p2p:binomial", n, KIB), (12.0, 12.0));
        close(of(Bcast, "p2p:knomial:radix=4", n, KIB), (18.0, 18.0));
        close(of(Allreduce, "p2p:ring", n, 1 << 20), (2.0 * 4095.0, 2.0));
        close(of(Allreduce, "p2p:rabenseifner", n, 1 << 20), (24.0, 2.0));
        close(of(Allgather, "p2p:bruck:radix=2", n, KIB), (12.0, 4095.0));
    }

    #[test]
    fn it_is_what_the_simulator_says_of_other_numbers_of_ranks() {
        let mut compared = 0;
        for own in every() {
            let (row, values) = (own.row(), own.values);
            for n_ranks in [64, 128].into_iter().filter(|n| row.fits(*n)) {
                // Long lists of chunks take the simulator long.
                let segments = if values.segsize == 0 { 1 } else { 6 };
                if row.parameters.iter().any(is_share_cut) && n_ranks * segments > 400 {
                    continue;
                }
                let bytes = values.segsize * segments as u64;
                let found = load(&own, n_ranks as u32, bytes.max(1)).unwrap();
                if row.segments(bytes, n_ranks, values.segsize) != segments {
                    continue;
                }
                let wanted =
                    [MESSAGE, SEGMENT].map(|link| makespan(row, values, n_ranks, segments, link));
                let carried = found.bytes / bytes.max(1) as f64 * segments as f64;
                for (found, wanted) in [(found.messages, wanted[0]), (carried, wanted[1])] {
                    let ratio = found / wanted.max(1e-9);
                    let is_near = wanted == 0.0 && found == 0.0 || (0.5..2.0).contains(&ratio);
                    assert!(
                        is_near,
                        "{} on {n_ranks}: {found} for {wanted}",
                        row.variant(values)
                    );
                    compared += 1;
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }

    fn is_share_cut(parameter: &Parameter) -> bool {
        use crate::algorithm::registry::Cut;
        matches!(parameter, Parameter::Segsize(Cut::Share, _))
    }

    #[test]
    fn it_is_total_and_hardly_ever_falls_with_the_ranks() {
        let ranks = (0..=32).map(|bits| u32::try_from(1u64 << bits).unwrap_or(u32::MAX));
        let ranks: Vec<u32> = [0].into_iter().chain(ranks).collect();
        for own in every() {
            let name = own.row().variant(own.values);
            for bytes in (0..=40)
                .step_by(4)
                .map(|bits| 1u64 << bits)
                .chain([0, u64::MAX])
            {
                let mut before = 0.0;
                for &n_ranks in &ranks {
                    let Load {
                        messages,
                        bytes: carried,
                    } = load(&own, n_ranks, bytes).unwrap();
                    assert!(
                        messages.is_finite() && messages >= 0.0,
                        "{name} {n_ranks} {bytes}"
                    );
                    assert!(
                        carried.is_finite() && carried >= 0.0,
                        "{name} {n_ranks} {bytes}"
                    );
                    // Shares of the message get shorter, so there are fewer segments of them.
                    let is_share = own.row().parameters.iter().any(is_share_cut);
                    let grows = is_share || messages >= 0.8 * before;
                    assert!(grows, "{name} {n_ranks} {bytes}");
                    before = messages;
                }
            }
        }
    }
}
