//! What trainings have measured of each kind of call.

use super::{KINDS, SIZES, least_bytes};
use crate::collective::Collective;
use crate::model::Model;

/// Of each kind of call, by the cell of the whole world that holds the middle of its sizes: the default's time over that
/// of the cell's choice. Kinds without a choice, or that nobody measured, have 1.
pub fn gains(model: &Model, nodes: u64, ppn: u64) -> Vec<f64> {
    let mut gains = vec![1.0; KINDS];
    for collective in Collective::ALL {
        for size in 0..SIZES {
            let middle = 2 * least_bytes(size);
            let entry = model
                .cells
                .iter()
                .find(|entry| entry.cell.contains(collective, middle, nodes, ppn));
            gains[collective.index() * SIZES + size] = entry.map_or(1.0, |entry| entry.gain);
        }
    }
    gains
}

#[cfg(test)]
mod tests {
    use super::super::kind;
    use super::*;
    use crate::library::{Library, Product};
    use crate::settings::Settings;

    #[test]
    fn a_kind_has_the_gain_of_the_cell_that_holds_it() {
        let library = Library {
            product: Product::Mpich,
            version: (4, 0, 2),
        };
        let mut model = Model::initial(&Settings::default(), library, "m");
        for entry in &mut model.cells {
            if entry.cell.contains(Collective::Bcast, 40, 1, 2) {
                entry.gain = 3.0;
            }
        }
        let gains = gains(&model, 1, 2);
        assert_eq!(gains.iter().filter(|gain| **gain != 1.0).count(), 1);
        assert_eq!(gains[kind(Collective::Bcast, 40)], 3.0);
    }
}
