//! What updates cost by the memory that they reach into: a small working set stays in the processor's cache.

use colltune_amr::settings::Settings;
use colltune_amr::shape::BlockShape;
use serde::{Deserialize, Serialize};

use crate::traffic::groups;

/// What updates cost by the memory that they reach into; empty where nothing was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Of cells, by what all of a rank's blocks take.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<MemoryCost>,
    /// Of those beside finer neighbours besides, by what the variables take that are exchanged together: neighbours'
    /// faces are read and written again before those of other variables are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside_finer: Vec<MemoryCost>,
}

/// One measured size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryCost {
    /// Cells of a block.
    pub cells: [u16; 3],
    /// What a rank reaches into, ghosts included.
    pub working_set_mib: f64,
    /// An update of a cell's variable.
    pub update_ns: f64,
}

/// How many times as long as with the dearest memory a rank takes for the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowness {
    pub updates: f64,
    pub beside_finer: f64,
}

impl Slowness {
    /// As with the dearest memory.
    pub const NONE: Slowness = Slowness {
        updates: 1.0,
        beside_finer: 1.0,
    };
}

impl Memory {
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &MemoryCost> {
        self.updates.iter().chain(&self.beside_finer)
    }

    /// Whether there is a 0 where none can be.
    pub(super) fn has_nothing(&self) -> bool {
        let without = self
            .all()
            .any(|one| one.n_cells() == 0 || one.working_set_mib == 0.0);
        without || self.updates.iter().any(|one| one.update_ns == 0.0)
    }

    /// Of a rank with so many blocks.
    pub fn slowness(&self, settings: &Settings, n_blocks: usize) -> Slowness {
        if self.is_empty() {
            return Slowness::NONE;
        }
        let shape = settings.shape;
        Slowness {
            updates: slowness(&self.updates, shape, resident_mib(shape, n_blocks)),
            beside_finer: slowness(&self.beside_finer, shape, exchanged_mib(settings, n_blocks)),
        }
    }
}

impl MemoryCost {
    fn n_cells(&self) -> usize {
        self.cells.iter().map(|&n| usize::from(n)).product()
    }

    fn is_of(&self, shape: BlockShape) -> bool {
        self.cells.map(usize::from) == shape.cells
    }
}

/// What so many blocks take.
pub fn resident_mib(shape: BlockShape, n_blocks: usize) -> f64 {
    (n_blocks * shape.block_len() * size_of::<f64>()) as f64 / f64::from(1 << 20)
}

/// What those of their variables take that are exchanged together.
pub fn exchanged_mib(settings: &Settings, n_blocks: usize) -> f64 {
    let together = groups(settings).into_iter().max().unwrap_or(0);
    resident_mib(settings.shape, n_blocks) * together as f64 / settings.shape.n_vars as f64
}

/// How many times as long as at the dearest measured size updates take that reach into so much memory: 1 where nothing
/// was measured.
///
/// Blocks of a shape that was not measured cost what those with the nearest number of cells do. Between two sizes the
/// logarithm of the memory decides, beyond the least and the greatest nothing changes.
fn slowness(measured: &[MemoryCost], shape: BlockShape, working_set_mib: f64) -> f64 {
    let own = shape.interior_cells();
    let nearest = measured
        .iter()
        .min_by_key(|one| (!one.is_of(shape), one.n_cells().abs_diff(own)));
    let dearest = measured.iter().map(|one| one.update_ns).fold(0.0, f64::max);
    let Some(nearest) = nearest.filter(|_| dearest > 0.0) else {
        return 1.0;
    };
    let same = measured.iter().filter(|one| one.cells == nearest.cells);
    let mut curve: Vec<&MemoryCost> = same.collect();
    curve.sort_by(|a, b| a.working_set_mib.total_cmp(&b.working_set_mib));
    let above = curve.partition_point(|one| one.working_set_mib <= working_set_mib);
    let update_ns = match (above.checked_sub(1).map(|i| curve[i]), curve.get(above)) {
        (Some(below), Some(above)) => {
            let way = (working_set_mib / below.working_set_mib).ln()
                / (above.working_set_mib / below.working_set_mib).ln();
            below.update_ns + way * (above.update_ns - below.update_ns)
        }
        (Some(only), None) => only.update_ns,
        (None, _) => curve[0].update_ns,
    };
    update_ns / dearest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BlockShape = BlockShape {
        cells: [6, 6, 6],
        ghosts: 1,
        n_vars: 256,
    };

    fn at(cells: u16, working_set_mib: f64, update_ns: f64) -> MemoryCost {
        MemoryCost {
            cells: [cells; 3],
            working_set_mib,
            update_ns,
        }
    }

    #[test]
    fn ranks_with_little_memory_are_faster_and_nothing_changes_beyond_what_was_measured() {
        assert_eq!(resident_mib(SHAPE, 4), 4.0);
        assert_eq!(slowness(&[], SHAPE, 4.0), 1.0);
        let measured = [at(6, 32.0, 4.0), at(6, 2.0, 2.0), at(6, 8.0, 2.0)];
        let of = |n| slowness(&measured, SHAPE, resident_mib(SHAPE, n));
        assert_eq!([of(0), of(1), of(2), of(8)], [0.5; 4]);
        assert!((of(16) - 0.75).abs() < 1e-12, "half the way in logarithms");
        assert_eq!([of(32), of(4096)], [1.0; 2]);
    }

    #[test]
    fn blocks_that_were_not_measured_cost_what_the_nearest_do() {
        let measured = [at(4, 1.0, 5.0), at(8, 1.0, 3.0), at(16, 1.0, 1.0)];
        assert_eq!(slowness(&measured, SHAPE, 1.0), 1.0, "4^3 is nearer to 6^3");
        let bigger = BlockShape {
            cells: [12, 12, 12],
            ..SHAPE
        };
        assert_eq!(slowness(&measured, bigger, 1.0), 3.0 / 5.0);
        let own = [at(4, 1.0, 5.0), at(6, 1.0, 2.0)];
        assert_eq!(slowness(&own, SHAPE, 1.0), 2.0 / 5.0);
    }
}
