//! What a run shows: VTK files for ParaView, and pictures of a slice, all published whole or not at all.
//!
//! Nothing here communicates. Each rank writes the VTK file of its own blocks; for a picture each rank renders the
//! tiles of its blocks, rank 0 paints them.

pub mod publish;

pub mod view;

pub mod vtk;

pub mod raster;

pub mod slice;

use std::path::PathBuf;

use thiserror::Error;

pub use view::BlockView;

/// Why a file was not written. What stood under its name before is untouched.
#[derive(Debug, Error)]
#[error("failed to write {path}: {error}")]
pub struct OutputError {
    pub path: PathBuf,
    pub error: std::io::Error,
}
