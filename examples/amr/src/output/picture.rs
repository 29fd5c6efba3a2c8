//! The picture of a slice: field, refinement levels and owners side by side, each with what its colours mean.
//!
//! ```text
//! title, time; what is shown
//! +-------+ bar  +-------+ level 0  12   +-------+ rank 0  31
//! | field | of   | level | level 1  48   | owner | rank 1  29
//! +-------+ the field    +-------+ ...   +-------+ ...
//! 0 . x . 1
//! ```
//! The font and the colour maps are in the program, so pictures look the same everywhere.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::OutputError;
use super::canvas::{Anchor, Canvas, Colour, FAINT, Face, INK, mixed};
use super::colours::{self, RANKS_TOLD_APART};
use super::publish::publish;
use super::raster::Tile;

/// Room round and between the parts, in pixels.
const MARGIN: u32 = 16;
const TITLE: u32 = 56;
const HEADING: u32 = 26;
const LEFT: u32 = 52;
const BELOW: u32 = 44;
const SIDE: u32 = 148;
const BAR: u32 = 18;
const ROW: u32 = 20;
/// Blocks with smaller edges have no outline: nothing could be seen inside.
const OUTLINED: u32 = 6;

/// What the picture says in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    pub title: String,
    /// One line below it.
    pub about: String,
    /// What the colours of the field are.
    pub field: String,
    /// The plane's axes, the faster one first.
    pub axes: [&'static str; 2],
    pub n_ranks: u32,
    /// The finest level that the run may have, so that a level has one colour in all its pictures.
    pub deepest: u8,
}

/// What a panel's colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Panel {
    Field,
    Level,
    Owner,
}

const PANELS: [Panel; 3] = [Panel::Field, Panel::Level, Panel::Owner];

/// Writes the three panels next to each other as a PNG.
///
/// Shape:  `tiles` are those of all ranks; `pixels` is the plane's. The slower axis of the plane points upward.
/// Errors: `OutputError`; nothing half-written is left.
pub fn write_png(
    path: &Path,
    pixels: u32,
    tiles: &[Tile],
    caption: &Caption,
) -> Result<(), OutputError> {
    let canvas = paint(pixels, tiles, caption, value_range(tiles));
    publish(path, |file| {
        let mut encoder = png::Encoder::new(file, canvas.width, canvas.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(io_error)?;
        writer.write_image_data(&canvas.rgb).map_err(io_error)?;
        writer.finish().map_err(io_error)
    })
}

pub(super) fn io_error(error: png::EncodingError) -> io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// The least and the largest number.
pub(super) fn value_range(tiles: &[Tile]) -> [f32; 2] {
    let values = tiles.iter().flat_map(|tile| &tile.values).copied();
    let numbers = values.filter(|value| value.is_finite());
    numbers.fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], value| {
        [low.min(value), high.max(value)]
    })
}

/// Where a panel's image begins.
fn place(nth: u32, pixels: u32) -> [u32; 2] {
    let wide = LEFT + pixels + SIDE;
    [MARGIN + nth * wide + LEFT, MARGIN + TITLE + HEADING]
}

/// The whole picture; the field's colours reach over `range`.
pub(super) fn paint(pixels: u32, tiles: &[Tile], caption: &Caption, range: [f32; 2]) -> Canvas {
    let [right, top] = place(PANELS.len() as u32, pixels);
    let mut canvas = Canvas::new(right - LEFT + MARGIN, top + pixels + BELOW + MARGIN);
    let write = |canvas: &mut Canvas, y, face, ink, words: &str| {
        let most = (canvas.width - 2 * MARGIN) / face_width(face);
        let words: String = words.chars().take(most as usize).collect();
        canvas.write([MARGIN, y], Anchor::Left, face, ink, &words);
    };
    write(&mut canvas, MARGIN, Face::Title, INK, &caption.title);
    write(&mut canvas, MARGIN + 26, Face::Plain, FAINT, &caption.about);
    let levels_met = tiles.iter().map(|tile| tile.level);
    let deepest = levels_met.max().unwrap_or(0).max(caption.deepest);
    for (nth, panel) in (0..).zip(PANELS) {
        let at = place(nth, pixels);
        let colour = |tile: &Tile, pixel: usize| match panel {
            Panel::Field => colours::of_value(tile.values[pixel], range),
            Panel::Level => colours::of_level(tile.level, deepest),
            Panel::Owner => colours::of_rank(tile.owner, caption.n_ranks),
        };
        tiles
            .iter()
            .for_each(|tile| paint_tile(&mut canvas, at, pixels, tile, colour));
        frame(&mut canvas, at, pixels, caption.axes);
        let heading = match panel {
            Panel::Field => &caption.field,
            Panel::Level => "refinement level",
            Panel::Owner => "owner",
        };
        canvas.write([at[0], at[1] - 22], Anchor::Left, Face::Bold, INK, heading);
        let side = [at[0] + pixels + 14, at[1]];
        match panel {
            Panel::Field => field_bar(&mut canvas, side, pixels, range, tiles),
            Panel::Level => levels(&mut canvas, side, tiles, deepest),
            Panel::Owner => owners(&mut canvas, side, pixels, tiles, caption.n_ranks),
        }
    }
    canvas
}

fn face_width(face: Face) -> u32 {
    face.width("0").max(1)
}

fn paint_tile(
    canvas: &mut Canvas,
    at: [u32; 2],
    pixels: u32,
    tile: &Tile,
    colour: impl Fn(&Tile, usize) -> Colour,
) {
    let [width, height] = tile.size;
    let is_outlined = width.min(height) >= OUTLINED;
    for b in 0..height {
        for a in 0..width {
            let mut pixel = colour(tile, (b * width + a) as usize);
            if is_outlined && (a == 0 || b == 0) {
                pixel = mixed(pixel, [128; 3], 190);
            }
            let (x, y) = (tile.first[0] + a, pixels - 1 - (tile.first[1] + b));
            canvas.set([at[0] + x, at[1] + y], pixel);
        }
    }
}

/// Frame, ticks and names of the axes; the domain is the unit cube.
fn frame(canvas: &mut Canvas, [x, y]: [u32; 2], pixels: u32, axes: [&str; 2]) {
    canvas.frame([x - 1, y - 1], [pixels + 2, pixels + 2], FAINT);
    let bottom = y + pixels;
    // Their words need room.
    let quarters: &[u32] = if pixels >= 256 {
        &[0, 1, 2, 3, 4]
    } else {
        &[0, 4]
    };
    const NAMES: [&str; 5] = ["0", "0.25", "0.5", "0.75", "1"];
    for &quarter in quarters {
        let (along, words) = (quarter * pixels / 4, NAMES[quarter as usize]);
        canvas.fill([x + along, bottom + 1], [1, 5], FAINT);
        canvas.write(
            [x + along, bottom + 7],
            Anchor::Middle,
            Face::Plain,
            INK,
            words,
        );
        canvas.fill([x - 6, bottom - along], [5, 1], FAINT);
        let middle = (bottom - along).saturating_sub(Face::Plain.height() / 2);
        canvas.write([x - 9, middle], Anchor::Right, Face::Plain, INK, words);
    }
    let (middle, name) = (
        x + pixels / 2,
        format!("{} (length of the domain)", axes[0]),
    );
    let name = if pixels >= 256 { &name } else { axes[0] };
    canvas.write(
        [middle, bottom + 24],
        Anchor::Middle,
        Face::Plain,
        INK,
        name,
    );
    let between = y + pixels * 3 / 8 - Face::Plain.height() / 2;
    canvas.write([x - 30, between], Anchor::Right, Face::Plain, INK, axes[1]);
}

/// The colours of the field and the values that they stand for.
fn field_bar(canvas: &mut Canvas, [x, y]: [u32; 2], pixels: u32, range: [f32; 2], tiles: &[Tile]) {
    let [low, high] = range.map(f64::from);
    let values = tiles.iter().flat_map(|tile| &tile.values);
    let has_others = values.into_iter().any(|value| !value.is_finite());
    if low > high {
        canvas.write([x, y], Anchor::Left, Face::Plain, INK, "no numbers");
        return;
    }
    // The last rows are for what is no number.
    let height = if has_others { pixels - 2 * ROW } else { pixels };
    for row in 0..height {
        let share = 1.0 - (f64::from(row) + 0.5) / f64::from(height);
        let colour = colours::of_share(if low < high { share } else { 0.5 });
        canvas.fill([x, y + row], [BAR, 1], colour);
    }
    let ticks = colours::ticks(low, high);
    for (&tick, words) in ticks.iter().zip(colours::labels(&ticks)) {
        let share = if low < high {
            (tick - low) / (high - low)
        } else {
            0.5
        };
        let row = y + ((1.0 - share) * f64::from(height - 1)).round() as u32;
        canvas.fill([x + BAR, row], [5, 1], FAINT);
        let top = row.saturating_sub(Face::Plain.height() / 2);
        canvas.write([x + BAR + 9, top], Anchor::Left, Face::Plain, INK, &words);
    }
    if has_others {
        entry(
            canvas,
            [x, y + pixels - ROW],
            colours::NOT_A_NUMBER,
            "no number",
        );
    }
}

/// One line of a legend.
fn entry(canvas: &mut Canvas, [x, y]: [u32; 2], colour: Colour, words: &str) {
    canvas.fill([x, y + 2], [BAR, 13], colour);
    canvas.write([x + BAR + 8, y], Anchor::Left, Face::Plain, INK, words);
}

fn levels(canvas: &mut Canvas, [x, y]: [u32; 2], tiles: &[Tile], deepest: u8) {
    canvas.write([x, y], Anchor::Left, Face::Plain, FAINT, "blocks cut");
    for (row, level) in (1..).zip((0..=deepest).rev()) {
        let count = tiles.iter().filter(|tile| tile.level == level).count();
        let words = format!("{level}: {count}");
        entry(
            canvas,
            [x, y + row * ROW],
            colours::of_level(level, deepest),
            &words,
        );
    }
}

fn owners(canvas: &mut Canvas, [x, y]: [u32; 2], pixels: u32, tiles: &[Tile], n_ranks: u32) {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for tile in tiles {
        *counts.entry(tile.owner).or_default() += 1;
    }
    let fitting = (pixels / ROW).saturating_sub(1);
    if n_ranks <= RANKS_TOLD_APART.min(fitting) {
        canvas.write([x, y], Anchor::Left, Face::Plain, FAINT, "blocks cut");
        for (row, rank) in (1..).zip(0..n_ranks) {
            let count = counts.get(&rank).copied().unwrap_or(0);
            let words = format!("rank {rank}: {count}");
            entry(
                canvas,
                [x, y + row * ROW],
                colours::of_rank(rank, n_ranks),
                &words,
            );
        }
        return;
    }
    for row in 0..pixels {
        let rank = u64::from(n_ranks - 1) * u64::from(pixels - 1 - row) / u64::from(pixels - 1);
        canvas.fill(
            [x, y + row],
            [BAR, 1],
            colours::of_rank(rank as u32, n_ranks),
        );
    }
    for tick in 0..=4 {
        let rank = u64::from(n_ranks - 1) * tick / 4;
        let row = y + pixels - 1 - (u64::from(pixels - 1) * rank / u64::from(n_ranks - 1)) as u32;
        canvas.fill([x + BAR, row], [5, 1], FAINT);
        let top = row.saturating_sub(Face::Plain.height() / 2);
        let words = format!("rank {rank}");
        canvas.write([x + BAR + 9, top], Anchor::Left, Face::Plain, INK, &words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::colours::{of_level, of_rank, of_share};

    fn tiles() -> Vec<Tile> {
        let tile = |first: [u32; 2], owner: u32, level: u8, value: f32| Tile {
            first,
            size: [40, 80],
            level,
            owner,
            values: vec![value; 40 * 80],
        };
        vec![tile([0, 0], 0, 0, 1.0), tile([40, 0], 7, 2, 3.0)]
    }

    fn caption(n_ranks: u32) -> Caption {
        Caption {
            title: "a run, step 3".to_owned(),
            about: "two blocks".to_owned(),
            field: "density".to_owned(),
            axes: ["x", "y"],
            n_ranks,
            deepest: 0,
        }
    }

    #[test]
    fn a_level_has_one_colour_whatever_levels_a_slice_meets() {
        let caption = Caption {
            deepest: 5,
            ..caption(8)
        };
        let colour = |tiles: &[Tile], x: u32| {
            let [left, top] = place(1, 80);
            paint(80, tiles, &caption, [1.0, 3.0]).at([left + x, top + 40])
        };
        let both = tiles();
        assert_eq!(colour(&both, 20), of_level(0, 5));
        assert_eq!(colour(&both[..1], 20), of_level(0, 5));
    }

    #[test]
    fn a_written_png_reads_back_as_painted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("slice.png");
        write_png(&path, 80, &tiles(), &caption(8)).expect("written");
        let file = io::BufReader::new(std::fs::File::open(&path).expect("there"));
        let mut reader = png::Decoder::new(file).read_info().expect("a png");
        let mut image = vec![0; reader.output_buffer_size().expect("small")];
        let info = reader.next_frame(&mut image).expect("a frame");
        let painted = paint(80, &tiles(), &caption(8), [1.0, 3.0]);
        assert_eq!((info.width, info.height), (painted.width, painted.height));
        assert_eq!(image, painted.rgb);
    }

    #[test]
    fn panels_show_field_level_and_owner_and_their_legends_the_same_colours() {
        for n_ranks in [2, 8, 300] {
            let canvas = paint(80, &tiles(), &caption(n_ranks), [1.0, 3.0]);
            let pixel = |nth, x: u32| {
                let [left, top] = place(nth, 80);
                canvas.at([left + x, top + 40])
            };
            assert_eq!((pixel(0, 20), pixel(0, 60)), (of_share(0.0), of_share(1.0)));
            assert_eq!(
                (pixel(1, 20), pixel(1, 60)),
                (of_level(0, 2), of_level(2, 2))
            );
            let ranks = [0, 7].map(|rank| of_rank(rank, n_ranks));
            assert_eq!([pixel(2, 20), pixel(2, 60)], ranks);
            for (nth, colours) in [
                (0, [of_share(0.006), of_share(0.994)]),
                (1, [of_level(0, 2), of_level(2, 2)]),
            ] {
                let [left, top] = place(nth, 80);
                for colour in colours {
                    let beside =
                        (top..top + 80).any(|y| canvas.at([left + 80 + 14 + 3, y]) == colour);
                    assert!(beside, "{colour:?} beside panel {nth}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_is_red_and_said_and_nothing_at_all_is_a_picture_too() {
        let mut broken = tiles();
        broken[1].values.fill(f32::NAN);
        let canvas = paint(80, &broken, &caption(8), value_range(&broken));
        let [left, top] = place(0, 80);
        assert_eq!(canvas.at([left + 60, top + 40]), colours::NOT_A_NUMBER);
        assert_eq!(
            canvas.at([left + 80 + 14 + 3, top + 80 - 10]),
            colours::NOT_A_NUMBER
        );
        broken[0].values.fill(f32::INFINITY);
        paint(80, &broken, &caption(8), value_range(&broken));
        paint(80, &[], &caption(1), value_range(&[]));
    }
}
