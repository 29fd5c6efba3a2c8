//! Pictures of a slice through the middle: first variable, levels and owners; one by one, and as a movie.

use super::agree::agree;
use super::state::Run;
use crate::checksum::Broken;
use crate::output::BlockView;
use crate::output::movie::Movie;
use crate::output::picture::{Caption, write_png};
use crate::output::publish::make_folder;
use crate::output::raster::{Plane, Tile, decode, encode, render};
use crate::settings::Work;
use crate::shape::BlockShape;

const PIXELS: u32 = 512;

impl Run<'_> {
    /// Writes `mesh.NNNNNN.png` when `--plot_freq` says so, and takes a frame of the movie when `--movie_freq` does.
    ///
    /// Errors: rank 0 cannot write it; every rank is told.
    pub(super) fn picture(&mut self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        let plots = options.plot_freq > 0 && step.is_multiple_of(options.plot_freq);
        let moves = options.movie.is_some() && step.is_multiple_of(options.movie_freq);
        if !plots && !moves {
            return Ok(());
        }
        let tiles = self.tiles();
        let complaint = match self.ranks.rank() {
            0 => self.show(step, &tiles, plots, moves).err(),
            _ => None,
        };
        let failed = |what| Err(Broken::Picture { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }

    /// Paints the movie, once the run is over.
    ///
    /// Errors: rank 0 cannot write it; every rank is told.
    pub(super) fn close_movie(&mut self, step: u64) -> Result<(), Broken> {
        if self.settings.options.movie.is_none() {
            return Ok(());
        }
        let finished = self.movie.take().map_or(Ok(()), Movie::finish);
        let complaint = finished.err().map(|error| error.to_string());
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
    fn show(&mut self, step: u64, tiles: &[Tile], plots: bool, moves: bool) -> Result<(), String> {
        let options = &self.settings.options;
        let caption = self.caption(step);
        if plots {
            make_folder(&options.plot_folder)?;
            let path = options.plot_folder.join(format!("mesh.{step:06}.png"));
            write_png(&path, PIXELS, tiles, &caption).map_err(|error| error.to_string())?;
        }
        let Some(path) = options.movie.as_ref().filter(|_| moves) else {
            return Ok(());
        };
        if self.movie.is_none() {
            let movie = Movie::create(path, PIXELS).map_err(|error| error.to_string())?;
            self.movie = Some(movie);
        }
        let movie = self.movie.as_mut().expect("made just now");
        let added = movie.add(tiles, caption);
        added.map_err(|error| error.to_string())
    }

    fn caption(&self, step: u64) -> Caption {
        let (options, n_ranks) = (&self.settings.options, self.ranks.n_ranks());
        let problem = match (&options.deck, self.settings.work) {
            (Some(deck), _) => {
                let file = std::path::Path::new(deck).file_stem().unwrap_or_default();
                file.to_string_lossy().into_owned()
            }
            (None, Work::Euler) => "Sedov blast".to_owned(),
            (None, _) => format!("stencil of {} points", options.stencil),
        };
        let levels = self.mesh.per_level();
        let present: Vec<usize> = (0..levels.len()).filter(|&i| levels[i] > 0).collect();
        let levels = match &present[..] {
            [one] => format!("on level {one}"),
            [first, .., last] => format!("on levels {first} to {last}"),
            [] => String::new(),
        };
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let n_blocks = self.mesh.len();
        // Four digits that say something.
        let before = self.time.abs().max(1e-12).log10().floor();
        let digits = (3.0 - before).clamp(0.0, 9.0) as usize;
        let digits = if self.time == 0.0 { 0 } else { digits };
        let placement = self.settings.placement.to_string();
        Caption {
            title: format!("{problem}: step {step}, time {:.digits$}", self.time),
            about: format!(
                "{n_blocks} block{} {levels}, {n_ranks} rank{}, placement {placement}; slice at z = 0.5",
                plural(n_blocks),
                plural(n_ranks)
            ),
            field: match self.settings.work {
                Work::Euler => "density (1: undisturbed gas)".to_owned(),
                _ => "variable 0 (sum over a cell)".to_owned(),
            },
            axes: ["x", "y"],
            n_ranks: n_ranks as u32,
            deepest: options.num_refine,
        }
    }
}
