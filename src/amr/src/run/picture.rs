//! Pictures of a slice through the middle: first variable, levels and owners.

use super::agree::agree;
use super::state::Run;
use crate::checksum::Broken;
use crate::output::BlockView;
use crate::output::publish::make_folder;
use crate::output::raster::{Plane, Tile, decode, encode, render};
use crate::output::slice::write_slice;
use crate::shape::BlockShape;

const PIXELS: u32 = 512;

impl Run<'_> {
    /// Writes `mesh.NNNNNN.png` when `--plot_freq` says so.
    ///
    /// Errors: rank 0 cannot write it; every rank returns the error.
    pub(super) fn picture(&self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        if options.plot_freq == 0 || !step.is_multiple_of(options.plot_freq) {
            return Ok(());
        }
        let tiles = self.tiles();
        let complaint = match self.ranks.rank() {
            0 => self.show(step, &tiles).err(),
            _ => None,
        };
        let failed = |what| Err(Broken::Picture { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }

    /// The tiles of all ranks, on every rank.
    fn tiles(&self) -> Vec<Tile> {
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
        let own = render(plane, shape, self.mesh.grid.roots, 0, &views);
        let all = self.ranks.allgather_bytes(&encode(&own));
        let tiles = all.iter().map(|bytes| decode(bytes));
        let tiles: Option<Vec<_>> = tiles.collect();
        let tiles = tiles.expect("encoded just now");
        tiles.into_iter().flatten().collect()
    }

    /// What rank 0 does with the tiles.
    fn show(&self, step: u64, tiles: &[Tile]) -> Result<(), String> {
        let options = &self.settings.options;
        make_folder(&options.plot_folder)?;
        let path = options.plot_folder.join(format!("mesh.{step:06}.png"));
        let n_ranks = self.ranks.n_ranks();
        let texts = [
            ("Title", format!("step {step}, time {}", self.time)),
            (
                "Description",
                format!(
                    "{} blocks, {n_ranks} ranks, placement {}; slice at z = 0.5: variable 0, levels, owners",
                    self.mesh.len(),
                    self.balancer.policy()
                ),
            ),
        ];
        let of = (options.num_refine, n_ranks as u32);
        write_slice(&path, PIXELS, tiles, of, &texts).map_err(|error| error.to_string())
    }
}
