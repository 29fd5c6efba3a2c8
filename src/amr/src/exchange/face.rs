//! Ghost values of one face: where they come from, and the copies between two views of memory. Cells hold totals.
//!
//! A face of a block, a quadrant of a face and a packed message are all the same thing here: a
//! [`View`], rows of cells at fixed distances. So one copy serves local blocks and messages alike.

use crate::exchange::view::{View, copy, dense, gather, spread};
use crate::leaf::{axis, tangents};
use crate::shape::BlockShape;
use crate::stencil::between::Plane;

/// Where the ghost values of a face come from, seen from the block that needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A block of the same level.
    Same,
    /// A quadrant of a coarser block's face.
    Coarser(u8),
    /// A finer block; it fills this quadrant.
    Finer(u8),
}

/// Which cells along a face take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Interior cells: enough for stencils without diagonals.
    Faces,
    /// Also the ghosts along lower axes, which earlier sweeps have filled: edges and corners follow.
    Corners,
    /// The ghosts along both other axes, whatever the order of the sweeps: what has not been filled yet
    /// travels in vain and is replaced by a later sweep.
    AnyOrder,
}

/// Who adds up the cells of a finer block whose coarser neighbour is on another rank. The same sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    SummedBySender,
    /// All cells travel: four times as many.
    SummedByReceiver,
}

/// What ghost values of a block of another level are taken from.
#[derive(Clone, Copy, Debug)]
pub enum Giver<'a> {
    /// One variable of a block of this rank.
    Block(&'a [f64]),
    /// What [`Faces::pack`] made.
    Packed(&'a [f64]),
}

/// How ghost values are found on one shape of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Faces {
    /// How blocks are stored, that ghost values are taken from.
    pub stored: BlockShape,
    /// The block whose ghosts are filled: the same, or a scratch block with ghosts where stored blocks
    /// have none.
    pub ghosted: BlockShape,
    pub reach: Reach,
    pub crossing: Crossing,
}

impl Faces {
    /// Values that a message carries for this face and one variable.
    pub fn packed_len(&self, face: usize, source: Source) -> usize {
        let cells: usize = match source {
            Source::Same => {
                let span = self.tangent_span(self.stored, face);
                span.map(|(_, n)| n).iter().product()
            }
            Source::Finer(_) if self.crossing == Crossing::SummedByReceiver => {
                self.stored.face_cells(axis(face))
            }
            Source::Coarser(_) | Source::Finer(_) => self.stored.face_cells(axis(face)) / 4,
        };
        match source {
            // Ghost layers of a finer block repeat those of the coarser one.
            Source::Coarser(_) => cells * self.ghosted.ghosts.div_ceil(2),
            _ => cells * self.ghosted.ghosts,
        }
    }

    /// First place and number of the cells of a whole face along its two tangents.
    fn tangent_span(&self, shape: BlockShape, face: usize) -> [(usize, usize); 2] {
        let d = axis(face);
        tangents(d).map(|t| match self.reach {
            Reach::Corners if t < d => (0, shape.padded()[t]),
            Reach::AnyOrder => (0, shape.padded()[t]),
            _ => (shape.ghosts, shape.cells[t]),
        })
    }

    fn plane(shape: BlockShape, face: usize, normal: usize, span: [(usize, usize); 2]) -> View {
        let strides = shape.strides();
        let [t0, t1] = tangents(axis(face));
        let first =
            normal * strides[axis(face)] + span[0].0 * strides[t0] + span[1].0 * strides[t1];
        View {
            first,
            strides: [strides[t0], strides[t1]],
            counts: [span[0].1, span[1].1],
        }
    }

    fn quadrant_span(shape: BlockShape, face: usize, quadrant: u8) -> [(usize, usize); 2] {
        let [t0, t1] = tangents(axis(face));
        let half = |t: usize, bit: u8| {
            let n = shape.cells[t] / 2;
            (shape.ghosts + usize::from(bit) * n, n)
        };
        [half(t0, quadrant & 1), half(t1, quadrant >> 1)]
    }

    /// The `layer`-th ghost plane from the face outwards.
    fn ghost(&self, face: usize, layer: usize) -> usize {
        let (g, n) = (self.ghosted.ghosts, self.ghosted.cells[axis(face)]);
        if face.is_multiple_of(2) {
            g - 1 - layer
        } else {
            g + n + layer
        }
    }

    /// The `layer`-th plane of the block beyond `face`, from the face outwards.
    fn beyond(shape: BlockShape, face: usize, layer: usize) -> usize {
        let (g, n) = (shape.ghosts, shape.cells[axis(face)]);
        if face.is_multiple_of(2) {
            g + n - 1 - layer
        } else {
            g + layer
        }
    }

    /// The `layer`-th interior plane of the block itself, from the face inwards.
    fn inside(&self, face: usize, layer: usize) -> usize {
        Faces::beyond(self.ghosted, face ^ 1, layer)
    }

    /// Fills the ghosts of `to` from a block of this rank.
    pub fn copy(&self, face: usize, source: Source, to: &mut [f64], from: &[f64]) {
        let (stored, ghosted) = (self.stored, self.ghosted);
        for layer in 0..ghosted.ghosts {
            let ghost = self.ghost(face, layer);
            match source {
                Source::Same => {
                    let span = self.tangent_span(ghosted, face);
                    let to_view = Faces::plane(ghosted, face, ghost, span);
                    copy(to, to_view, from, self.given(face, layer));
                }
                Source::Coarser(q) => {
                    let fine = Faces::plane(ghosted, face, ghost, fine_span(ghosted, face));
                    let view = self.given_quadrant(face, layer / 2, q);
                    spread(to, fine, from, view);
                }
                Source::Finer(q) => {
                    let span = Faces::quadrant_span(ghosted, face, q);
                    let view = Faces::plane(ghosted, face, ghost, span);
                    self.coarsen(face, layer, to, view, from);
                }
            }
        }
        debug_assert_eq!(from.len(), stored.cells_per_var());
        if source != Source::Same {
            self.fill_rim(face, to);
        }
    }

    /// What a block of the same level gives from `layer` planes beyond `face`.
    fn given(&self, face: usize, layer: usize) -> View {
        let span = self.tangent_span(self.stored, face);
        Faces::plane(
            self.stored,
            face,
            Faces::beyond(self.stored, face, layer),
            span,
        )
    }

    /// What a coarser block gives: one quadrant of its plane.
    fn given_quadrant(&self, face: usize, layer: usize, quadrant: u8) -> View {
        let span = Faces::quadrant_span(self.stored, face, quadrant);
        Faces::plane(
            self.stored,
            face,
            Faces::beyond(self.stored, face, layer),
            span,
        )
    }

    fn coarsen(&self, face: usize, layer: usize, to: &mut [f64], to_view: View, from: &[f64]) {
        let normal = Faces::beyond(self.stored, face, layer);
        let fine = Faces::plane(self.stored, face, normal, fine_span(self.stored, face));
        gather(to, to_view, from, fine);
    }

    /// Appends what the owner of `from` sends for one variable.
    pub fn pack(&self, face: usize, source: Source, from: &[f64], out: &mut Vec<f64>) {
        let start = out.len();
        out.resize(start + self.packed_len(face, source), 0.0);
        let mut rest = &mut out[start..];
        let n_layers = match source {
            Source::Coarser(_) => self.ghosted.ghosts.div_ceil(2),
            _ => self.ghosted.ghosts,
        };
        let per_layer = rest.len() / n_layers;
        for layer in 0..n_layers {
            let (now, later) = rest.split_at_mut(per_layer);
            rest = later;
            match source {
                Source::Same => {
                    let view = self.given(face, layer);
                    copy(now, dense(view.counts), from, view);
                }
                Source::Coarser(q) => {
                    let view = self.given_quadrant(face, layer, q);
                    copy(now, dense(view.counts), from, view);
                }
                Source::Finer(_) if self.crossing == Crossing::SummedByReceiver => {
                    let normal = Faces::beyond(self.stored, face, layer);
                    let view =
                        Faces::plane(self.stored, face, normal, fine_span(self.stored, face));
                    copy(now, dense(view.counts), from, view);
                }
                Source::Finer(_) => {
                    let counts = fine_span(self.stored, face).map(|(_, n)| n / 2);
                    self.coarsen(face, layer, now, dense(counts), from);
                }
            }
        }
    }

    /// Fills the ghosts of `to` from what `pack` made.
    pub fn unpack(&self, face: usize, source: Source, to: &mut [f64], packed: &[f64]) {
        let n_packed = match source {
            Source::Coarser(_) => self.ghosted.ghosts.div_ceil(2),
            _ => self.ghosted.ghosts,
        };
        let per_layer = packed.len() / n_packed;
        for layer in 0..self.ghosted.ghosts {
            let ghost = self.ghost(face, layer);
            let now = |layer: usize| &packed[layer * per_layer..][..per_layer];
            match source {
                Source::Same => {
                    let span = self.tangent_span(self.ghosted, face);
                    let view = Faces::plane(self.ghosted, face, ghost, span);
                    copy(to, view, now(layer), dense(view.counts));
                }
                Source::Coarser(_) => {
                    let span = fine_span(self.ghosted, face);
                    let view = Faces::plane(self.ghosted, face, ghost, span);
                    let counts = view.counts.map(|n| n / 2);
                    spread(to, view, now(layer / 2), dense(counts));
                }
                Source::Finer(q) => {
                    let span = Faces::quadrant_span(self.ghosted, face, q);
                    let view = Faces::plane(self.ghosted, face, ghost, span);
                    match self.crossing {
                        Crossing::SummedBySender => copy(to, view, now(layer), dense(view.counts)),
                        Crossing::SummedByReceiver => {
                            let fine = view.counts.map(|n| 2 * n);
                            gather(to, view, now(layer), dense(fine));
                        }
                    }
                }
            }
        }
        if source != Source::Same {
            self.fill_rim(face, to);
        }
    }

    /// What lies beyond `face` in a block of the same level, which is stored without ghosts.
    pub fn beyond_same<'a>(&self, face: usize, from: &'a [f64]) -> Plane<'a> {
        self.given(face, 0).of(from)
    }

    /// What a wall at `face` of a block without ghosts mirrors: the cells inside.
    pub fn beyond_wall<'a>(&self, face: usize, own: &'a [f64]) -> Plane<'a> {
        let normal = Faces::beyond(self.stored, face ^ 1, 0);
        let span = self.tangent_span(self.stored, face);
        Faces::plane(self.stored, face, normal, span).of(own)
    }

    /// A plane of ghost values without gaps, as messages between blocks of one level hold it.
    pub fn beyond_packed<'a>(&self, face: usize, cells: &'a [f64]) -> Plane<'a> {
        dense(fine_span(self.stored, face).map(|(_, n)| n)).of(cells)
    }

    /// Fills a plane of ghost values without gaps, or the quadrant of it that `source` says, from a block
    /// of another level: there is one layer of ghosts.
    pub fn fill_plane(&self, face: usize, source: Source, to: &mut [f64], from: Giver) {
        debug_assert_eq!(self.ghosted.ghosts, 1);
        let counts = fine_span(self.stored, face).map(|(_, n)| n);
        let halves = counts.map(|n| n / 2);
        match (source, from) {
            (Source::Same, _) => unreachable!("used where it lies"),
            (Source::Coarser(q), Giver::Block(from)) => {
                let coarse = self.given_quadrant(face, 0, q);
                spread(to, dense(counts), from, coarse);
            }
            (Source::Coarser(_), Giver::Packed(from)) => {
                spread(to, dense(counts), from, dense(halves));
            }
            (Source::Finer(q), Giver::Block(from)) => {
                let to_view = dense(counts).quadrant(q);
                self.coarsen(face, 0, to, to_view, from);
            }
            (Source::Finer(q), Giver::Packed(from)) => {
                let to_view = dense(counts).quadrant(q);
                match self.crossing {
                    Crossing::SummedBySender => copy(to, to_view, from, dense(halves)),
                    Crossing::SummedByReceiver => gather(to, to_view, from, dense(counts)),
                }
            }
        }
    }

    /// Ghosts beyond the domain mirror the cells inside.
    pub fn reflect(&self, face: usize, cells: &mut [f64]) {
        let span = self.tangent_span(self.ghosted, face);
        for layer in 0..self.ghosted.ghosts {
            let to = Faces::plane(self.ghosted, face, self.ghost(face, layer), span);
            let from = Faces::plane(self.ghosted, face, self.inside(face, layer), span);
            for row in 0..to.counts[1] {
                let (to, from) = (
                    to.first + row * to.strides[1],
                    from.first + row * from.strides[1],
                );
                let stride = self.ghosted.strides()[tangents(axis(face))[0]];
                if stride == 1 {
                    cells.copy_within(from..from + span[0].1, to);
                } else {
                    for i in 0..span[0].1 {
                        cells[to + i * stride] = cells[from + i * stride];
                    }
                }
            }
        }
    }

    /// Beside a face between levels nothing fills the edges that diagonal stencils read: the nearest
    /// ghost of the face does, so that they never hold what the slot held before.
    fn fill_rim(&self, face: usize, cells: &mut [f64]) {
        if self.reach == Reach::Faces {
            return;
        }
        let (shape, d) = (self.ghosted, axis(face));
        let (g, strides) = (shape.ghosts, shape.strides());
        let [t0, t1] = tangents(d);
        let nearest = |t: usize, i: usize| i.clamp(g, g + shape.cells[t] - 1);
        for layer in 0..g {
            let plane = self.ghost(face, layer) * strides[d];
            for j in 0..shape.padded()[t1] {
                for i in 0..shape.padded()[t0] {
                    let (ni, nj) = (nearest(t0, i), nearest(t1, j));
                    let from = plane + ni * strides[t0] + nj * strides[t1];
                    cells[plane + i * strides[t0] + j * strides[t1]] = cells[from];
                }
            }
        }
    }
}

fn fine_span(shape: BlockShape, face: usize) -> [(usize, usize); 2] {
    tangents(axis(face)).map(|t| (shape.ghosts, shape.cells[t]))
}
