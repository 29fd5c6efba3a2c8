//! Times of collectives that were measured on a machine.

use std::ops::RangeInclusive;

use colltune_core::algorithm::pattern::Pattern;

/// What a variant took where it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCell {
    pub collective: String,
    pub variant: String,
    pub bytes: RangeInclusive<u64>,
    pub nodes: RangeInclusive<u64>,
    pub ppn: RangeInclusive<u64>,
    /// The median.
    pub time_ns: f64,
}

/// All that was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured(pub Vec<MeasuredCell>);

impl Measured {
    /// What a variant took, if a cell holds this size on so many ranks in nodes of `ppn`.
    pub fn ns(
        &self,
        pattern: Pattern,
        variant: &str,
        bytes: u64,
        (n_ranks, ppn): (u32, u32),
    ) -> Option<f64> {
        let nodes = u64::from(n_ranks.div_ceil(ppn));
        let ppn = u64::from(ppn.min(n_ranks));
        let cell = self.0.iter().find(|cell| {
            (cell.collective.as_str(), cell.variant.as_str()) == (pattern.name(), variant)
                && cell.bytes.contains(&bytes)
                && cell.nodes.contains(&nodes)
                && cell.ppn.contains(&ppn)
        })?;
        Some(cell.time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_at_its_own_size_and_shape_only() {
        let measured = Measured(vec![MeasuredCell {
            collective: "allreduce".to_owned(),
            variant: "native:basic_linear".to_owned(),
            bytes: 1..=8,
            nodes: 4..=4,
            ppn: 2..=2,
            time_ns: 5.0,
        }]);
        let ns = |variant, bytes, shape| measured.ns(Pattern::Allreduce, variant, bytes, shape);
        assert_eq!(ns("native:basic_linear", 8, (8, 2)), Some(5.0));
        for (variant, bytes, shape) in [
            ("native:ring", 8, (8, 2)),
            ("native:basic_linear", 9, (8, 2)),
            ("native:basic_linear", 8, (8, 4)),
            ("native:basic_linear", 8, (6, 2)),
        ] {
            assert_eq!(ns(variant, bytes, shape), None);
        }
        assert_eq!(
            measured.ns(Pattern::Bcast, "native:basic_linear", 8, (8, 2)),
            None
        );
    }
}
