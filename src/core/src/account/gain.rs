//! How much faster a job was than with the library's own choices, by what trainings have measured.

use super::{KINDS, SIZES, Together, least_bytes};
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

/// The job's time with the default over its own, where `wall_s` is its own and kinds are of `ranks` ranks. Time that
/// the default would have taken for tuned calls is added; calls that ran the default stay as they are.
pub fn estimated_gain(gains: &[f64], kinds: &[Together], ranks: f64, wall_s: f64) -> f64 {
    let saved = kinds.iter().zip(gains).map(|(kind, gain)| {
        let tuned = super::summary::share(kind.tuned, kind.calls);
        kind.ns as f64 / 1e9 / ranks * tuned * (gain - 1.0)
    });
    match wall_s > 0.0 {
        true => 1.0 + saved.sum::<f64>() / wall_s,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind;
    use super::*;
    use crate::library::{Library, Product};
    use crate::settings::Settings;

    #[test]
    fn time_that_the_default_would_have_taken_counts_for_tuned_calls_alone() {
        let library = Library {
            product: Product::Mpich,
            version: (4, 0, 2),
        };
        let mut model = Model::initial(&Settings::default(), library, "m");
        let faster =
            |bytes| move |cell: &crate::space::Cell| cell.contains(Collective::Bcast, bytes, 1, 2);
        for entry in &mut model.cells {
            if faster(40)(&entry.cell) {
                entry.gain = 3.0;
            }
        }
        let gains = gains(&model, 1, 2);
        assert_eq!(gains.iter().filter(|gain| **gain != 1.0).count(), 1);
        let mut kinds = vec![Together::default(); KINDS];
        let seen = Together {
            calls: 8,
            tuned: 2,
            ns: 4_000_000_000,
            ..Together::default()
        };
        kinds[kind(Collective::Bcast, 40)] = seen;
        kinds[kind(Collective::Allreduce, 40)] = seen;
        // 2 s a rank, a quarter of them tuned, which the default would have done in three times the time.
        let gain = estimated_gain(&gains, &kinds, 2.0, 10.0);
        assert!((gain - 1.1).abs() < 1e-12, "{gain}");
        assert_eq!(estimated_gain(&gains, &kinds, 2.0, 0.0), 1.0);
        assert_eq!(estimated_gain(&[], &kinds, 2.0, 1.0), 1.0);
    }
}
