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
    /// What is known of a variant, if a cell holds this size on so many ranks in nodes of `ppn`.
    pub fn of(
        &self,
        pattern: Pattern,
        variant: &str,
        bytes: u64,
        (n_ranks, ppn): (u32, u32),
    ) -> Option<Known> {
        let nodes = u64::from(n_ranks.div_ceil(ppn));
        let ppn = u64::from(ppn.min(n_ranks));
        let cell = self.0.iter().find(|cell| {
            (cell.collective.as_str(), cell.variant.as_str()) == (pattern.name(), variant)
                && cell.bytes.contains(&bytes)
                && cell.nodes.contains(&nodes)
                && cell.ppn.contains(&ppn)
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
    }
}
