//! The picture of a slice: field, refinement levels and owners side by side, as PNG or SVG.

use std::io::{self, Write as _};
use std::path::Path;

use super::OutputError;
use super::publish::publish;
use super::raster::Tile;

const GAP: u32 = 8;
const BACKGROUND: [u8; 3] = [255; 3];
const OUTLINE: [u8; 3] = [128; 3];

/// What a panel's colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panel {
    Field,
    Level,
    Owner,
}

const PANELS: [Panel; 3] = [Panel::Field, Panel::Level, Panel::Owner];

/// Writes the three panels next to each other as a PNG: the field from its least value (dark) to its largest (light)
/// with the blocks' outlines, the levels, the owners.
///
/// Shape:  `tiles` are those of all ranks; `pixels` is the plane's, so the picture is 3 `pixels` and two gaps wide.
///         The slower axis of the plane points upward.
/// Errors: `OutputError`; nothing half-written is left.
pub fn write_png(path: &Path, pixels: u32, tiles: &[Tile]) -> Result<(), OutputError> {
    let (width, image) = paint(pixels, tiles);
    publish(path, |file| {
        let mut encoder = png::Encoder::new(file, width, pixels);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(io_error)?;
        writer.write_image_data(&image).map_err(io_error)?;
        writer.finish().map_err(io_error)
    })
}

fn io_error(error: png::EncodingError) -> io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Writes the blocks that the plane cuts as an SVG: a rectangle each, coloured by owner, darker on finer levels.
///
/// Errors: `OutputError`.
pub fn write_svg(path: &Path, pixels: u32, tiles: &[Tile]) -> Result<(), OutputError> {
    publish(path, |file| {
        writeln!(
            file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {pixels} {pixels}\" stroke=\"#282828\" \
             stroke-width=\"{}\">",
            f64::from(pixels) / 1000.0
        )?;
        for tile in tiles {
            let [r, g, b] = shade(owner_colour(tile.owner), tile.level);
            let ([x, y], [width, height]) = (tile.first, tile.size);
            let top = pixels - y - height;
            writeln!(
                file,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"#{r:02x}{g:02x}{b:02x}\">\
                 <title>rank {}, level {}</title></rect>",
                tile.owner, tile.level
            )?;
        }
        writeln!(file, "</svg>")
    })
}

/// Width of the picture and its pixels, row after row from the top.
fn paint(pixels: u32, tiles: &[Tile]) -> (u32, Vec<u8>) {
    let width = PANELS.len() as u32 * (pixels + GAP) - GAP;
    let mut image: Vec<u8> = BACKGROUND
        .iter()
        .copied()
        .cycle()
        .take((width * pixels * 3) as usize)
        .collect();
    let values = || {
        tiles
            .iter()
            .flat_map(|tile| &tile.values)
            .copied()
            .filter(|value| value.is_finite())
    };
    let (low, high) = (
        values().fold(f32::INFINITY, f32::min),
        values().fold(f32::NEG_INFINITY, f32::max),
    );
    let deepest = tiles.iter().map(|tile| tile.level).max().unwrap_or(0);
    for (place, panel) in PANELS.into_iter().enumerate() {
        for tile in tiles {
            for b in 0..tile.size[1] {
                for a in 0..tile.size[0] {
                    // Outlines only where a block is large enough to show something inside them.
                    let on_edge = (a == 0 || b == 0) && tile.size[0].min(tile.size[1]) >= 6;
                    let colour = match panel {
                        _ if on_edge => OUTLINE,
                        Panel::Field => {
                            field_colour(tile.values[(b * tile.size[0] + a) as usize], low, high)
                        }
                        Panel::Level => {
                            cubehelix(f64::from(tile.level + 1) / f64::from(deepest + 2))
                        }
                        Panel::Owner => owner_colour(tile.owner),
                    };
                    let x = place as u32 * (pixels + GAP) + tile.first[0] + a;
                    let y = pixels - 1 - (tile.first[1] + b);
                    image[((y * width + x) * 3) as usize..][..3].copy_from_slice(&colour);
                }
            }
        }
    }
    (width, image)
}

/// Red for what is no number.
fn field_colour(value: f32, low: f32, high: f32) -> [u8; 3] {
    if !value.is_finite() {
        return [255, 0, 0];
    }
    let range = f64::from(high) - f64::from(low);
    cubehelix(if range > 0.0 {
        (f64::from(value) - f64::from(low)) / range
    } else {
        0.5
    })
}

/// A colour whose brightness rises evenly with `share` from 0 to 1, also for colour-blind eyes and in grey print.
///
/// Source: Green, Bull. Astron. Soc. India 39, 2011, with its standard parameters.
fn cubehelix(share: f64) -> [u8; 3] {
    let angle = 2.0 * std::f64::consts::PI * (0.5 / 3.0 + 1.0 - 1.5 * share);
    let amplitude = 0.5 * share * (1.0 - share);
    let (sin, cos) = angle.sin_cos();
    [(-0.14861, 1.78277), (-0.29227, -0.90649), (1.97294, 0.0)].map(|(by_cos, by_sin)| {
        let part = share + amplitude * (by_cos * cos + by_sin * sin);
        (255.0 * part.clamp(0.0, 1.0)).round() as u8
    })
}

/// Neighbouring ranks get hues far apart: steps of the golden ratio round the circle.
fn owner_colour(owner: u32) -> [u8; 3] {
    let hue = 6.0 * (f64::from(owner) * 0.618_033_988_749_895).fract();
    [0.0, 4.0, 2.0].map(|shift| {
        let ramp = (((hue + shift) % 6.0 - 3.0).abs() - 1.0).clamp(0.0, 1.0);
        (255.0 * (0.35 + 0.6 * ramp)).round() as u8
    })
}

fn shade(colour: [u8; 3], level: u8) -> [u8; 3] {
    let factor = 0.88f64.powi(i32::from(level));
    colour.map(|part| (f64::from(part) * factor) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles() -> Vec<Tile> {
        let tile = |first: [u32; 2], owner: u32, level: u8, value: f32| Tile {
            first,
            size: [4, 8],
            level,
            owner,
            values: vec![value; 32],
        };
        vec![tile([0, 0], 0, 0, 1.0), tile([4, 0], 7, 2, 3.0)]
    }

    #[test]
    fn a_written_png_reads_back_as_painted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("slice.png");
        write_png(&path, 8, &tiles()).expect("written");
        let file = io::BufReader::new(std::fs::File::open(&path).expect("there"));
        let mut reader = png::Decoder::new(file).read_info().expect("a png");
        let mut image = vec![0; reader.output_buffer_size().expect("small")];
        let info = reader.next_frame(&mut image).expect("a frame");
        assert_eq!((info.width, info.height), (40, 8));
        assert_eq!(image, paint(8, &tiles()).1);
    }

    #[test]
    fn panels_show_field_level_and_owner() {
        let (width, image) = paint(8, &tiles());
        let pixel = |x: u32| {
            <[u8; 3]>::try_from(&image[((3 * width + x) * 3) as usize..][..3]).expect("a pixel")
        };
        assert_eq!((pixel(1), pixel(5)), (cubehelix(0.0), cubehelix(1.0)));
        assert_eq!((pixel(17), pixel(21)), (cubehelix(0.25), cubehelix(0.75)));
        assert_eq!((pixel(33), pixel(37)), (owner_colour(0), owner_colour(7)));
        assert_eq!(pixel(9), BACKGROUND);
    }

    #[test]
    fn colours_run_from_black_to_white_and_owners_differ() {
        assert_eq!((cubehelix(0.0), cubehelix(1.0)), ([0; 3], [255; 3]));
        let owners: std::collections::HashSet<[u8; 3]> = (0..64).map(owner_colour).collect();
        assert!(owners.len() > 60, "{}", owners.len());
        assert_eq!(field_colour(f32::NAN, 0.0, 1.0), [255, 0, 0]);
    }

    #[test]
    fn an_svg_has_a_rectangle_for_each_block() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("slice.svg");
        write_svg(&path, 8, &tiles()).expect("written");
        let text = std::fs::read_to_string(&path).expect("there");
        assert_eq!(text.matches("<rect ").count(), 2);
        assert!(
            text.contains("<title>rank 7, level 2</title>") && text.ends_with("</svg>\n"),
            "{text}"
        );
    }
}
