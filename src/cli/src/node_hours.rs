//! What the recorded calls took, and what they would have taken.

use colltune_core::library::Library;
use colltune_core::variant::DEFAULT;
use colltune_models::statistics::CellStatistics;
use serde::Serialize;

use crate::comparison::percent;
use crate::ledger::node_time;

/// Node-hours of the recorded calls with one way of choosing alone, by the medians of a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct NodeHours {
    pub with_default: f64,
    pub with_choices: f64,
    /// Tables can name the library's own algorithms only.
    pub with_tables: f64,
}

impl NodeHours {
    pub fn of(cells: &[CellStatistics], library: Library) -> NodeHours {
        let mut sum = NodeHours::default();
        for cell in cells {
            let time_ns = |name: &str| cell.variant(name).and_then(|one| one.time_ns.median);
            let Some(default_ns) = time_ns(DEFAULT) else {
                continue;
            };
            let calls = cell.samples() as f64;
            let node_hours = calls * default_ns * cell.cell.nodes.lo as f64 / 3.6e12;
            let after = |gain: f64| node_hours / gain.max(f64::MIN_POSITIVE);
            let native = cell.native(library).and_then(|(one, _)| one.contrast);
            sum.with_default += node_hours;
            sum.with_choices += after(cell.gain);
            sum.with_tables += after(native.map_or(1.0, |contrast| contrast.gain));
        }
        sum
    }

    /// A line; empty where nothing is known.
    pub fn sentence(self) -> String {
        if self.with_default <= 0.0 {
            return String::new();
        }
        format!(
            "the recorded calls take {} with the default, {} with what is chosen: {} less{}\n",
            node_time(self.with_default),
            node_time(self.with_choices),
            self.saved(self.with_choices),
            match self.with_tables < self.with_default && self.with_tables != self.with_choices {
                true => format!(" ({} with tables alone)", self.saved(self.with_tables)),
                false => String::new(),
            }
        )
    }

    /// What tables save; `None` where that is nothing.
    pub fn of_tables(self) -> Option<String> {
        (self.with_tables < self.with_default).then(|| {
            format!(
                "with tables the recorded calls take up to {} less time than with the default, with what `exploit` runs {}",
                self.saved(self.with_tables),
                self.saved(self.with_choices)
            )
        })
    }

    fn saved(self, with: f64) -> String {
        percent((self.with_default - with) / self.with_default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::collective::Collective;
    use colltune_core::model::Source;
    use colltune_core::space::{Cell, Range};
    use colltune_models::statistics::{Contrast, Interval, VariantStatistics};

    fn library() -> Library {
        "openmpi-4.1.4".parse().unwrap()
    }

    /// A cell of 4 nodes whose default takes `default_ns`; the gain of an algorithm of the library's beside the best's.
    fn cell(samples: u64, default_ns: f64, gain: f64, native: f64) -> CellStatistics {
        let range = |lo, hi| Range { lo, hi: Some(hi) };
        let of_default = VariantStatistics {
            name: DEFAULT.to_owned(),
            samples,
            time_ns: Interval {
                median: Some(default_ns),
                ..Interval::default()
            },
            ..VariantStatistics::default()
        };
        let contrast = Contrast {
            gain: native,
            lo: native,
            hi: native,
        };
        let of_native = VariantStatistics {
            name: "native:ring".to_owned(),
            contrast: Some(contrast),
            replaces_default: native > 1.0,
            ..VariantStatistics::default()
        };
        CellStatistics {
            source: Source::Measured,
            best: "node:shm".to_owned(),
            gain,
            variants: vec![of_default, of_native],
            ..CellStatistics::unknown(Cell {
                collective: Collective::Allreduce,
                bytes: range(8, 16),
                nodes: range(4, 8),
                ppn: range(1, 2),
            })
        }
    }

    #[test]
    fn they_are_calls_by_time_by_nodes_and_shrink_with_the_gain() {
        // 9 million calls of 1 ms on 4 nodes are 10 node-hours; twice as fast in half of them.
        let cells = [
            cell(4_500_000, 1e6, 2.0, 1.25),
            cell(4_500_000, 1e6, 1.0, 1.0),
        ];
        let sum = NodeHours::of(&cells, library());
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(sum.with_default, 10.0) && close(sum.with_choices, 7.5));
        assert!(close(sum.with_tables, 9.0));
        let said = sum.sentence();
        assert!(
            said.contains("10.00 node-hours")
                && said.contains("25 % less (10 % with tables alone)")
        );
        let tables = sum.of_tables().unwrap();
        assert!(
            tables.contains("10 % less") && tables.ends_with("25 %"),
            "{tables}"
        );
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        let nothing = NodeHours::of(&[], library());
        assert_eq!(
            (nothing.sentence(), nothing.of_tables()),
            (String::new(), None)
        );
        let kept = NodeHours::of(&[cell(1000, 1e6, 1.0, 1.0)], library());
        assert_eq!(kept.of_tables(), None);
        assert!(!kept.sentence().contains("tables"));
    }
}
