//! Pictures of a slice through the middle: first variable, levels and owners.

use super::state::Run;
use crate::checksum::Broken;
use crate::output::BlockView;
use crate::output::picture::write_png;
use crate::output::raster::{Plane, decode, encode, render};
use crate::shape::BlockShape;

const PIXELS: u32 = 512;

impl Run<'_> {
    /// Writes `mesh.NNNNNN.png` when `--plot_freq` says so.
    ///
    /// Errors: rank 0 cannot write it; every rank is told.
    pub(super) fn picture(&mut self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        if options.plot_freq == 0 || !step.is_multiple_of(options.plot_freq) {
            return Ok(());
        }
        let (rank, field) = (self.ranks.rank(), &self.blocks.field);
        let views: Vec<BlockView> = self
            .mesh
            .own(rank)
            .map(|i| BlockView {
                leaf: self.mesh.leaves()[i],
                owner: rank as u32,
                cells: field.var(self.blocks.slots[i], 0),
            })
            .collect();
        let plane = Plane {
            axis: 2,
            position: 0.5,
            pixels: PIXELS,
        };
        let shape = BlockShape {
            n_vars: 1,
            ..self.settings.shape
        };
        let tiles = render(plane, shape, self.mesh.grid.roots, 0, &views);
        let all = self.ranks.allgather_bytes(&encode(&tiles));
        let mut failed = [0];
        let mut what = String::from("see rank 0");
        if rank == 0 {
            let tiles: Option<Vec<_>> = all.iter().map(|bytes| decode(bytes)).collect();
            let tiles: Vec<_> = tiles
                .expect("encoded just now")
                .into_iter()
                .flatten()
                .collect();
            let path = options.plot_folder.join(format!("mesh.{step:06}.png"));
            if let Err(error) = write_png(&path, PIXELS, &tiles) {
                (failed, what) = ([1], error.to_string());
            }
        }
        self.ranks.agree_max(&mut failed);
        match failed {
            [0] => Ok(()),
            _ => Err(Broken::Picture { step, what }),
        }
    }
}
