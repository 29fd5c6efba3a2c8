//! What a tuning database knows of the times of collectives on a machine.

use std::ops::RangeInclusive;

use colltune_core::algorithm::pattern::Pattern;

/// A variant at sizes and shapes of which something is known.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnedCell {
    pub collective: String,
    pub variant: String,
    pub bytes: RangeInclusive<u64>,
    pub nodes: RangeInclusive<u64>,
    pub ppn: RangeInclusive<u64>,
    pub known: Known,
}

impl LearnedCell {
    fn is_of(&self, pattern: Pattern, variant: &str) -> bool {
        (self.collective.as_str(), self.variant.as_str()) == (pattern.name(), variant)
    }

    /// Whether it is about so many ranks in nodes of `ppn`.
    fn holds(&self, shape: (u32, u32)) -> bool {
        let (nodes, ppn) = nodes_and_ppn(shape);
        self.nodes.contains(&nodes) && self.ppn.contains(&ppn)
    }
}

/// Nodes, and ranks on each, of so many ranks in nodes of `ppn`.
fn nodes_and_ppn((n_ranks, ppn): (u32, u32)) -> (u64, u64) {
    (n_ranks.div_ceil(ppn).into(), ppn.min(n_ranks).into())
}

/// What is known of a variant; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// The median of what it took.
    Measured(f64),
    /// What it should take, where others were measured and it was not.
    Predicted(f64),
    /// The default's time over its own, where nothing was measured.
    Gain(f64),
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned(pub Vec<LearnedCell>);

impl Learned {
    /// Whether a variant was measured, at whatever size and shape.
    pub fn has_measured(&self, pattern: Pattern, variant: &str) -> bool {
        let mut cells = self.0.iter();
        cells.any(|cell| cell.is_of(pattern, variant) && matches!(cell.known, Known::Measured(_)))
    }

    /// Where a variant was measured that is nearest to this: on how many ranks in nodes of `ppn` and at which size, and what
    /// it took. The number of nodes counts before the size.
    pub fn nearest(
        &self,
        pattern: Pattern,
        variant: &str,
        bytes: u64,
        shape: (u32, u32),
    ) -> Option<(usize, u64, f64)> {
        let (nodes, ppn) = nodes_and_ppn(shape);
        let of = self.0.iter().filter(|cell| cell.is_of(pattern, variant));
        let measured = of.filter_map(|cell| match cell.known {
            Known::Measured(time) if cell.ppn.contains(&ppn) => {
                let inside = |value: u64, range: &RangeInclusive<u64>| {
                    value.clamp(*range.start(), *range.end())
                };
                Some((inside(nodes, &cell.nodes), inside(bytes, &cell.bytes), time))
            }
            _ => None,
        });
        let away = |a: u64, b: u64| ((a.max(1) as f64).ln() - (b.max(1) as f64).ln()).abs();
        let order = |of: &(u64, u64, f64)| (away(of.0, nodes), away(of.1, bytes));
        let nearest = measured.min_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        nearest.map(|(there, bytes, time)| {
            let n_ranks = if there == nodes {
                u64::from(shape.0)
            } else {
                there * ppn
            };
            (n_ranks as usize, bytes, time)
        })
    }

    /// What is known of a variant, if a cell holds this size on so many ranks in nodes of `ppn`.
    pub fn of(
        &self,
        pattern: Pattern,
        variant: &str,
        bytes: u64,
        shape: (u32, u32),
    ) -> Option<Known> {
        let cell = self.0.iter().find(|cell| {
            cell.is_of(pattern, variant) && cell.bytes.contains(&bytes) && cell.holds(shape)
        })?;
        Some(cell.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_at_its_own_size_and_shape_only() {
        let learned = Learned(vec![LearnedCell {
            collective: "allreduce".to_owned(),
            variant: "native:basic_linear".to_owned(),
            bytes: 1..=8,
            nodes: 4..=4,
            ppn: 2..=2,
            known: Known::Measured(5.0),
        }]);
        let of = |variant, bytes, shape| learned.of(Pattern::Allreduce, variant, bytes, shape);
        assert_eq!(
            of("native:basic_linear", 8, (8, 2)),
            Some(Known::Measured(5.0))
        );
        for (variant, bytes, shape) in [
            ("native:ring", 8, (8, 2)),
            ("native:basic_linear", 9, (8, 2)),
            ("native:basic_linear", 8, (8, 4)),
            ("native:basic_linear", 8, (6, 2)),
        ] {
            assert_eq!(of(variant, bytes, shape), None);
        }
        assert_eq!(
            learned.of(Pattern::Bcast, "native:basic_linear", 8, (8, 2)),
            None
        );
        let nearest = |shape| learned.nearest(Pattern::Allreduce, "native:basic_linear", 64, shape);
        assert_eq!(nearest((8, 2)), Some((8, 8, 5.0)));
        assert_eq!(nearest((7, 2)), Some((7, 8, 5.0)), "four nodes as well");
        assert_eq!(nearest((4, 2)), Some((8, 8, 5.0)), "on twice as many");
        assert_eq!(nearest((8, 4)), None);
    }
}
