//! The mesh with its fields and owners for ParaView, every few steps.

use super::agree::agree;
use super::state::Run;
use crate::checksum::Broken;
use crate::output::BlockView;
use crate::output::publish::make_folder;
use crate::output::vtk::Vtk;
use crate::settings::Work;
use crate::shape::BlockShape;

const GAS: [&str; 5] = [
    "density",
    "momentum_x",
    "momentum_y",
    "momentum_z",
    "energy",
];

impl Run<'_> {
    /// Writes `mesh` files when `--vtk` and `--vtk_freq` say so: all variables of a gas, the first of a
    /// stencil's.
    ///
    /// Errors: a rank cannot write its file; every rank returns the error.
    pub(super) fn write_vtk(&mut self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        let Some(folder) = options
            .vtk
            .as_ref()
            .filter(|_| step.is_multiple_of(options.vtk_freq))
        else {
            return Ok(());
        };
        let (ranks, field) = (self.ranks, &self.blocks.field);
        let names = match self.settings.work {
            Work::Euler => &GAS[..],
            _ => &["variable_0"],
        };
        let vtk = Vtk {
            folder: folder.clone(),
            fields: (0..)
                .zip(names)
                .map(|(var, &name)| (name.into(), var))
                .collect(),
            shape: BlockShape {
                n_vars: names.len(),
                ..self.settings.shape
            },
            roots: self.mesh.grid.roots,
        };
        let views: Vec<BlockView> = self
            .mesh
            .own(ranks.rank())
            .map(|i| BlockView {
                leaf: self.mesh.leaves()[i],
                owner: ranks.rank() as u32,
                cells: match self.settings.work {
                    Work::Euler => field.block(self.blocks.slots[i]),
                    _ => field.var(self.blocks.slots[i], 0),
                },
            })
            .collect();
        let written = make_folder(folder);
        let written = written.and_then(|()| {
            let piece = vtk.write_piece(step, ranks.rank(), &views);
            piece.map(drop).map_err(|error| error.to_string())
        });
        let failed = |what| Err(Broken::Output { step, what });
        if let Some(what) = agree(ranks, written.err()) {
            return failed(what);
        }
        self.vtk_steps.push((step, self.time));
        let mut complaint = None;
        if ranks.rank() == 0 {
            let index = vtk.write_index(step, ranks.n_ranks());
            let series = index.and_then(|()| vtk.write_series(&self.vtk_steps));
            complaint = series.err().map(|error| error.to_string());
        }
        agree(ranks, complaint).map_or(Ok(()), failed)
    }
}
