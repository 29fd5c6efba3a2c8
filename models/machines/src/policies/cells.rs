//! What policies share: cells of a model, and plain means.

use std::collections::BTreeMap;

use colltune_core::model::{Model, Share, Source};

use crate::job::Sample;
use crate::site::{Site, TrueCell};

/// Sets what a model says of a site's cell.
pub(super) fn set(
    site: &Site,
    model: &mut Model,
    cell: usize,
    best: usize,
    shares: Vec<(usize, f64)>,
) {
    let shape = site.cells[cell].shape;
    let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
    let entries = model.cells.iter_mut();
    let mut of_cell = entries.filter(|entry| {
        entry
            .cell
            .contains(shape.collective, shape.message_bytes, nodes, ppn)
    });
    if let Some(entry) = of_cell.next() {
        entry.source = Source::Measured;
        entry.best = site.name(cell, best).to_owned();
        entry.variants = shares
            .into_iter()
            .map(|(variant, probability)| Share {
                name: site.name(cell, variant).to_owned(),
                probability,
            })
            .collect();
    }
}

/// The places of the variants that a model draws in a cell.
pub(super) fn drawn(site: &Site, model: &Model, cell: usize) -> Vec<usize> {
    let shape = site.cells[cell].shape;
    let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
    let mut entries = model.cells.iter();
    let of_cell = entries.find(|entry| {
        entry
            .cell
            .contains(shape.collective, shape.message_bytes, nodes, ppn)
    });
    let shares = of_cell
        .map(|entry| entry.variants.as_slice())
        .unwrap_or_default();
    let places = shares
        .iter()
        .filter_map(|share| site.place(cell, &share.name));
    places.collect()
}

/// Arithmetic means of times by cell and variant.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    sums: Vec<BTreeMap<usize, (f64, f64)>>,
}

impl Means {
    pub(super) fn add(&mut self, site: &Site, samples: &[Sample]) {
        self.sums.resize_with(site.cells.len(), Default::default);
        for sample in samples {
            let own = |cell: &TrueCell| cell.shape == sample.call.shape;
            if let Some(cell) = site.cells.iter().position(own) {
                let of = self.sums[cell]
                    .entry(usize::from(sample.call.variant))
                    .or_default();
                *of = (of.0 + sample.slowest_ns, of.1 + 1.0);
            }
        }
    }

    pub(super) fn of(&self, cell: usize, variant: usize) -> Option<f64> {
        self.sums.get(cell)?.get(&variant).map(|(sum, n)| sum / n)
    }
}
