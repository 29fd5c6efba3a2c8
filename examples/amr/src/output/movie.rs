//! A run as an animated PNG: pictures of one slice whose colours mean the same in all of them.
//!
//! How far the values reach is known when the run is over. Until then frames lie in a file beside the movie, so that
//! they need no memory.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::OutputError;
use super::picture::{Caption, io_error, paint, value_range};
use super::publish::publish;
use super::raster::{Tile, decode, encode};

/// Milliseconds that a frame is shown; the last one stays longer.
const FRAME_MS: u16 = 200;
const LAST_MS: u16 = 2000;

/// A movie under way. What is not finished leaves nothing.
#[derive(Debug)]
pub struct Movie {
    path: PathBuf,
    pixels: u32,
    spool: PathBuf,
    file: BufWriter<File>,
    captions: Vec<Caption>,
    range: [f32; 2],
}

impl Movie {
    /// Errors: `OutputError` where nothing can be written beside `path`.
    pub fn create(path: &Path, pixels: u32) -> Result<Movie, OutputError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let spool = path.with_file_name(format!(".{name}.frames"));
        let file = File::create(&spool).map_err(|error| OutputError {
            path: path.to_owned(),
            error,
        })?;
        Ok(Movie {
            path: path.to_owned(),
            pixels,
            spool,
            file: BufWriter::with_capacity(1 << 18, file),
            captions: Vec::new(),
            range: [f32::INFINITY, f32::NEG_INFINITY],
        })
    }

    /// Takes a frame.
    ///
    /// Errors: `OutputError`, such as a full disk.
    pub fn add(&mut self, tiles: &[Tile], caption: Caption) -> Result<(), OutputError> {
        let [low, high] = value_range(tiles);
        self.range = [self.range[0].min(low), self.range[1].max(high)];
        self.captions.push(caption);
        let bytes = encode(tiles);
        let length = (bytes.len() as u64).to_le_bytes();
        let written = self.file.write_all(&length);
        let written = written.and_then(|()| self.file.write_all(&bytes));
        written.map_err(|error| self.failed(error))
    }

    /// Paints all frames and puts the movie in its place; without frames there is none.
    ///
    /// Errors: `OutputError`; what stood there before still does.
    pub fn finish(mut self) -> Result<(), OutputError> {
        if self.captions.is_empty() {
            return Ok(());
        }
        let flushed = self.file.flush();
        flushed.map_err(|error| self.failed(error))?;
        let spool = File::open(&self.spool);
        let mut spool = BufReader::new(spool.map_err(|error| self.failed(error))?);
        publish(&self.path, |file| self.encode(&mut spool, file))
    }

    fn encode(&self, spool: &mut impl Read, file: &mut BufWriter<File>) -> io::Result<()> {
        let size = paint(self.pixels, &[], &Caption::default(), self.range);
        let mut encoder = png::Encoder::new(file, size.width, size.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let frames = self.captions.len() as u32;
        // It begins anew for ever.
        encoder.set_animated(frames, 0).map_err(io_error)?;
        let mut writer = encoder.write_header().map_err(io_error)?;
        for (number, caption) in self.captions.iter().enumerate() {
            let mut length = [0; 8];
            spool.read_exact(&mut length)?;
            let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
            spool.read_exact(&mut bytes)?;
            let tiles = decode(&bytes).ok_or_else(|| io::Error::other("a frame is damaged"))?;
            let is_last = number + 1 == self.captions.len();
            let shown = if is_last { LAST_MS } else { FRAME_MS };
            writer.set_frame_delay(shown, 1000).map_err(io_error)?;
            let canvas = paint(self.pixels, &tiles, caption, self.range);
            writer.write_image_data(&canvas.rgb).map_err(io_error)?;
        }
        writer.finish().map_err(io_error)
    }

    fn failed(&self, error: io::Error) -> OutputError {
        OutputError {
            path: self.path.clone(),
            error,
        }
    }
}

impl Drop for Movie {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.spool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(value: f32) -> Vec<Tile> {
        vec![Tile {
            first: [0, 0],
            size: [64, 64],
            level: 0,
            owner: 0,
            values: vec![value; 64 * 64],
        }]
    }

    #[test]
    fn frames_share_their_colours_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.png");
        let mut movie = Movie::create(&path, 64).expect("created");
        for value in [1.0, 2.0, 4.0] {
            let caption = Caption {
                title: format!("time {value}"),
                n_ranks: 1,
                ..Caption::default()
            };
            movie.add(&tiles(value), caption).expect("added");
        }
        let captions = movie.captions.clone();
        movie.finish().expect("finished");
        let names = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(names, 1, "the movie alone");
        let file = BufReader::new(File::open(&path).expect("there"));
        let mut reader = png::Decoder::new(file).read_info().expect("a png");
        let animation = reader.info().animation_control.expect("an animation");
        assert_eq!((animation.num_frames, animation.num_plays), (3, 0));
        let mut image = vec![0; reader.output_buffer_size().expect("small")];
        for (value, caption) in [1.0, 2.0, 4.0].into_iter().zip(&captions) {
            reader.next_frame(&mut image).expect("a frame");
            assert_eq!(image, paint(64, &tiles(value), caption, [1.0, 4.0]).rgb);
        }
    }

    #[test]
    fn a_movie_that_is_given_up_or_has_no_frames_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.png");
        let mut movie = Movie::create(&path, 64).expect("created");
        movie.add(&tiles(1.0), Caption::default()).expect("added");
        drop(movie);
        Movie::create(&path, 64)
            .expect("created")
            .finish()
            .expect("no frames");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        let error = Movie::create(Path::new("/no/such/folder/run.png"), 64).expect_err("no folder");
        assert!(
            error.to_string().contains("/no/such/folder/run.png"),
            "{error}"
        );
    }
}
