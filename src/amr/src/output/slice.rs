//! A slice as a PNG: three squares side by side, the first variable, the refinement levels and the owners.
//!
//! What a picture has no words for (the step, what the colours reach over) is in its text chunks.

use std::io;
use std::path::Path;

use super::OutputError;
use super::publish::publish;
use super::raster::Tile;

type Colour = [u8; 3];

/// Between the squares, in pixels.
const MARGIN: u32 = 8;
const N_SQUARES: u32 = 3;
/// Blocks with smaller edges have no outline: nothing could be seen inside.
const OUTLINED: u32 = 6;
/// From low to high: dark to bright, also for those who see no colours.
const RAMP: [Colour; 5] = [
    [20, 20, 70],
    [70, 50, 140],
    [180, 60, 110],
    [240, 140, 60],
    [250, 240, 120],
];

/// Writes the squares; `texts` are keywords with what belongs to them, `deepest` the finest level that the run may have.
///
/// Shape:  `tiles` are those of all ranks; `pixels` is the plane's. The slower axis of the plane points upward.
/// Errors: `OutputError`; nothing half-written is left.
pub fn write_slice(
    path: &Path,
    pixels: u32,
    tiles: &[Tile],
    (deepest, n_ranks): (u8, u32),
    texts: &[(&str, String)],
) -> Result<(), OutputError> {
    let range = value_range(tiles);
    let (width, rgb) = paint(pixels, tiles, (deepest, n_ranks), range);
    publish(path, |file| {
        let mut encoder = png::Encoder::new(file, width, pixels);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let colours = ("Colours", format!("{} to {}", range[0], range[1]));
        for (keyword, text) in texts.iter().chain([&colours]) {
            let added = encoder.add_text_chunk((*keyword).to_owned(), text.clone());
            added.map_err(io_error)?;
        }
        let mut writer = encoder.write_header().map_err(io_error)?;
        writer.write_image_data(&rgb).map_err(io_error)?;
        writer.finish().map_err(io_error)
    })
}

fn io_error(error: png::EncodingError) -> io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// The least and the largest number; 0 and 0 without any.
fn value_range(tiles: &[Tile]) -> [f32; 2] {
    let values = tiles.iter().flat_map(|tile| &tile.values).copied();
    let numbers = values.filter(|value| value.is_finite());
    let range = numbers.map(|value| [value; 2]);
    let wider = |[low, high]: [f32; 2], [value, _]: [f32; 2]| [low.min(value), high.max(value)];
    range.reduce(wider).unwrap_or_default()
}

/// The width, and the pixels row by row.
fn paint(
    pixels: u32,
    tiles: &[Tile],
    (deepest, n_ranks): (u8, u32),
    [low, high]: [f32; 2],
) -> (u32, Vec<u8>) {
    let width = N_SQUARES * (pixels + MARGIN) - MARGIN;
    let mut rgb = vec![255; 3 * width as usize * pixels as usize];
    let share = |part: f32, whole: f32| if whole > 0.0 { part / whole } else { 0.0 };
    for tile in tiles {
        let level = on_ramp(share(f32::from(tile.level), f32::from(deepest)));
        let owner = of_rank(tile.owner, n_ranks);
        let [columns, rows] = tile.size;
        for (b, a) in (0..rows).flat_map(|b| (0..columns).map(move |a| (b, a))) {
            let value = tile.values[(b * columns + a) as usize];
            // NaN is grey.
            let field = match value.is_finite() {
                true => on_ramp(share(value - low, high - low)),
                false => [128; 3],
            };
            let outlines = columns.min(rows) >= OUTLINED && (a == 0 || b == 0);
            let (x, y) = (tile.first[0] + a, pixels - 1 - (tile.first[1] + b));
            for (nth, colour) in (0..).zip([field, level, owner]) {
                let at = 3 * (y * width + nth * (pixels + MARGIN) + x) as usize;
                let shown = colour.map(|part| if outlines { part / 2 + 64 } else { part });
                rgb[at..at + 3].copy_from_slice(&shown);
            }
        }
    }
    (width, rgb)
}

/// The colour at a share from 0 to 1.
fn on_ramp(share: f32) -> Colour {
    let at = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f32;
    let below = (at as usize).min(RAMP.len() - 2);
    let part = at - below as f32;
    std::array::from_fn(|i| {
        let [low, high] = [RAMP[below][i], RAMP[below + 1][i]].map(f32::from);
        (low + part * (high - low)).round() as u8
    })
}

/// Ranks that follow each other are far apart on the ramp.
fn of_rank(rank: u32, n_ranks: u32) -> Colour {
    const GOLDEN: f32 = 0.618_034;
    match n_ranks {
        0..=5 => on_ramp(rank as f32 / 4.0),
        _ => on_ramp((rank as f32 * GOLDEN).fract()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn tile(x: u32, level: u8, owner: u32, value: f32) -> Tile {
        Tile {
            first: [x, 0],
            size: [4, 8],
            level,
            owner,
            values: vec![value; 32],
        }
    }

    #[test]
    fn a_slice_reads_back_as_painted_with_its_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mesh.png");
        let tiles = [tile(0, 0, 0, 1.0), tile(4, 2, 1, 3.0)];
        let texts = [("Title", "step 7".to_owned())];
        write_slice(&path, 8, &tiles, (2, 2), &texts).expect("written");
        let file = BufReader::new(std::fs::File::open(&path).expect("there"));
        let mut reader = png::Decoder::new(file).read_info().expect("a png");
        let mut image = vec![0; reader.output_buffer_size().expect("small")];
        reader.next_frame(&mut image).expect("a frame");
        let (width, rgb) = paint(8, &tiles, (2, 2), [1.0, 3.0]);
        assert_eq!((reader.info().size(), &image), ((width, 8), &rgb));
        let words = reader.info().uncompressed_latin1_text.iter();
        let words: Vec<_> = words.map(|chunk| chunk.text.as_str()).collect();
        assert_eq!(words, ["step 7", "1 to 3"]);
        // The lowest and the highest value and level, and two ranks.
        let at = |x: u32| &rgb[3 * x as usize..][..3];
        assert_eq!([at(0), at(7)], [RAMP[0], RAMP[4]]);
        assert_eq!([at(16), at(23)], [RAMP[0], RAMP[4]]);
        assert_ne!(at(32), at(39));
        assert_eq!(at(8), [255; 3], "between the squares");
    }

    #[test]
    fn values_that_are_no_numbers_or_all_the_same_are_painted() {
        let mut broken = [tile(0, 0, 0, f32::NAN), tile(4, 0, 0, 2.0)];
        assert_eq!(value_range(&broken), [2.0, 2.0]);
        let rgb = paint(8, &broken, (0, 1), value_range(&broken)).1;
        assert_eq!(rgb[..3], [128; 3]);
        assert_eq!(rgb[12..15], RAMP[0]);
        broken[1].values.fill(f32::INFINITY);
        assert_eq!(value_range(&broken), [0.0; 2]);
    }
}
