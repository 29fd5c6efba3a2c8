//! `probabilities.json`: what is accepted can be asked for every call's cell.
#![no_main]

use colltune_core::classify::{CellsBySize, Layout};
use colltune_core::collective::Collective;
use colltune_core::library::{Library, Product};
use colltune_core::model::Model;
use colltune_core::select::Chooser;
use libfuzzer_sys::fuzz_target;

const LIBRARY: Library = Library {
    product: Product::OpenMpi,
    version: (4, 1, 4),
};

fuzz_target!(|text: &str| {
    let Ok(model) = Model::from_json(text, LIBRARY) else {
        return;
    };
    for (n_ranks, nodes) in [(1, 1), (8, 2), (4096, 4096)] {
        let ppn = n_ranks / nodes;
        let reached = Model::from_json_within(text, LIBRARY, nodes.into(), ppn.into());
        assert!(reached.is_ok_and(|reached| reached.cells.len() <= model.cells.len()));
        let layout = Layout {
            n_ranks,
            nodes,
            ppn,
        };
        for collective in Collective::ALL {
            let cells = CellsBySize::new(&model, collective, layout);
            let ends = model.cells.iter().flat_map(|entry| {
                let (first, last) = (entry.cell.bytes.lo, entry.cell.bytes.last());
                [first.saturating_sub(1), first, last, last.saturating_add(1)]
            });
            for bytes in ends.chain([0, 4096, u64::MAX]) {
                if let Some(place) = cells.position(bytes) {
                    let entry = &model.cells[cells.cells()[place] as usize];
                    assert!(
                        entry
                            .cell
                            .contains(collective, bytes, nodes.into(), ppn.into())
                    );
                    let shares = entry.variants.iter().zip(0u16..);
                    let weights: Vec<_> = shares
                        .map(|(share, place)| (place, share.probability))
                        .collect();
                    let _ = Chooser::new(&weights).draw(|| bytes);
                }
            }
        }
    }
});
