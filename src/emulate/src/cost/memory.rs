//! What updates cost by the memory that a rank's blocks take: few of them stay in the processor's cache.

use colltune_amr::shape::BlockShape;
use serde::{Deserialize, Serialize};

/// One measured size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryCost {
    /// Cells of a block.
    pub cells: [u16; 3],
    /// What a rank's blocks take, their ghosts included.
    pub resident_mib: f64,
    /// An update of a cell's variable.
    pub cell_ns: f64,
}

impl MemoryCost {
    fn n_cells(&self) -> usize {
        self.cells.iter().map(|&n| usize::from(n)).product()
    }

    /// Whether there is a 0 where none can be.
    pub(super) fn has_nothing(&self) -> bool {
        self.n_cells() == 0 || self.resident_mib == 0.0 || self.cell_ns == 0.0
    }

    fn is_of(&self, shape: BlockShape) -> bool {
        self.cells.map(usize::from) == shape.cells
    }
}

/// What so many blocks take.
pub fn resident_mib(shape: BlockShape, n_blocks: usize) -> f64 {
    (n_blocks * shape.block_len() * size_of::<f64>()) as f64 / f64::from(1 << 20)
}

/// How many times as long as at the dearest measured size a rank's updates take: 1 where nothing was measured.
///
/// Blocks of a shape that was not measured cost what those with the nearest number of cells do. Between two sizes the
/// logarithm of the memory decides, beyond the least and the greatest nothing changes.
pub fn slowness(measured: &[MemoryCost], shape: BlockShape, n_blocks: usize) -> f64 {
    let own = shape.interior_cells();
    let Some(nearest) = measured
        .iter()
        .min_by_key(|one| (!one.is_of(shape), one.n_cells().abs_diff(own)))
    else {
        return 1.0;
    };
    let same = measured.iter().filter(|one| one.cells == nearest.cells);
    let mut curve: Vec<&MemoryCost> = same.collect();
    curve.sort_by(|a, b| a.resident_mib.total_cmp(&b.resident_mib));
    let dearest = measured.iter().map(|one| one.cell_ns).fold(0.0, f64::max);
    let resident = resident_mib(shape, n_blocks);
    let above = curve.partition_point(|one| one.resident_mib <= resident);
    let cell_ns = match (above.checked_sub(1).map(|i| curve[i]), curve.get(above)) {
        (Some(below), Some(above)) => {
            let way = (resident / below.resident_mib).ln()
                / (above.resident_mib / below.resident_mib).ln();
            below.cell_ns + way * (above.cell_ns - below.cell_ns)
        }
        (Some(only), None) => only.cell_ns,
        (None, _) => curve[0].cell_ns,
    };
    cell_ns / dearest
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BlockShape = BlockShape {
        cells: [6, 6, 6],
        ghosts: 1,
        n_vars: 256,
    };

    fn at(cells: u16, resident_mib: f64, cell_ns: f64) -> MemoryCost {
        MemoryCost {
            cells: [cells; 3],
            resident_mib,
            cell_ns,
        }
    }

    #[test]
    fn ranks_with_little_memory_are_faster_and_nothing_changes_beyond_what_was_measured() {
        assert_eq!(resident_mib(SHAPE, 4), 4.0);
        assert_eq!(slowness(&[], SHAPE, 4), 1.0);
        let measured = [at(6, 32.0, 4.0), at(6, 2.0, 2.0), at(6, 8.0, 2.0)];
        let of = |n| slowness(&measured, SHAPE, n);
        assert_eq!([of(0), of(1), of(2), of(8)], [0.5; 4]);
        assert!((of(16) - 0.75).abs() < 1e-12, "half the way in logarithms");
        assert_eq!([of(32), of(4096)], [1.0; 2]);
    }

    #[test]
    fn blocks_that_were_not_measured_cost_what_the_nearest_do() {
        let measured = [at(4, 1.0, 5.0), at(8, 1.0, 3.0), at(16, 1.0, 1.0)];
        assert_eq!(slowness(&measured, SHAPE, 1), 1.0, "4^3 is nearer to 6^3");
        let bigger = BlockShape {
            cells: [12, 12, 12],
            ..SHAPE
        };
        assert_eq!(slowness(&measured, bigger, 1), 3.0 / 5.0);
        let own = [at(4, 1.0, 5.0), at(6, 1.0, 2.0)];
        assert_eq!(slowness(&own, SHAPE, 1), 2.0 / 5.0);
    }
}
