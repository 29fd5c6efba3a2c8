//! Pixels to draw on: rectangles and words.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

pub type Colour = [u8; 3];

pub const WHITE: Colour = [255; 3];
pub const INK: Colour = [34; 3];
/// Of ticks, frames and what is said by the way.
pub const FAINT: Colour = [110; 3];

/// A picture of which nothing is drawn yet but the white ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canvas {
    pub width: u32,
    pub height: u32,
    /// Row after row from the top.
    pub rgb: Vec<u8>,
}

/// How words look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    Plain,
    Bold,
    Title,
}

/// Which part of the words stands at the place that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Middle,
    Right,
}

impl Face {
    fn parts(self) -> (FontWeight, RasterHeight) {
        match self {
            Face::Plain => (FontWeight::Regular, RasterHeight::Size16),
            Face::Bold => (FontWeight::Bold, RasterHeight::Size16),
            Face::Title => (FontWeight::Bold, RasterHeight::Size20),
        }
    }

    /// Pixels that words take.
    pub fn width(self, words: &str) -> u32 {
        let (weight, height) = self.parts();
        (get_raster_width(weight, height) * words.chars().count()) as u32
    }

    pub fn height(self) -> u32 {
        self.parts().1.val() as u32
    }
}

impl Canvas {
    pub fn new(width: u32, height: u32) -> Canvas {
        Canvas {
            width,
            height,
            rgb: vec![255; (width * height * 3) as usize],
        }
    }

    pub fn at(&self, [x, y]: [u32; 2]) -> Colour {
        let place = ((y * self.width + x) * 3) as usize;
        [self.rgb[place], self.rgb[place + 1], self.rgb[place + 2]]
    }

    /// Sets a pixel; one outside the picture is not drawn.
    pub fn set(&mut self, [x, y]: [u32; 2], colour: Colour) {
        if x < self.width && y < self.height {
            let place = ((y * self.width + x) * 3) as usize;
            self.rgb[place..place + 3].copy_from_slice(&colour);
        }
    }

    pub fn fill(&mut self, [x, y]: [u32; 2], [width, height]: [u32; 2], colour: Colour) {
        for row in y..y + height {
            (x..x + width).for_each(|column| self.set([column, row], colour));
        }
    }

    /// The outline of a rectangle, inside it.
    pub fn frame(&mut self, [x, y]: [u32; 2], [width, height]: [u32; 2], colour: Colour) {
        self.fill([x, y], [width, 1], colour);
        self.fill([x, y + height - 1], [width, 1], colour);
        self.fill([x, y], [1, height], colour);
        self.fill([x + width - 1, y], [1, height], colour);
    }

    /// Writes words whose top is at `y`. What the font lacks is a question mark.
    pub fn write(
        &mut self,
        [x, y]: [u32; 2],
        anchor: Anchor,
        face: Face,
        ink: Colour,
        words: &str,
    ) {
        let (weight, height) = face.parts();
        let mut left = match anchor {
            Anchor::Left => x,
            Anchor::Middle => x.saturating_sub(face.width(words) / 2),
            Anchor::Right => x.saturating_sub(face.width(words)),
        };
        for letter in words.chars() {
            let raster = get_raster(letter, weight, height)
                .or_else(|| get_raster('?', weight, height))
                .expect("the font has a question mark");
            for (down, row) in (y..).zip(raster.rows()) {
                for (across, &strength) in (left..).zip(row) {
                    if strength > 0 && across < self.width && down < self.height {
                        let colour = mixed(self.at([across, down]), ink, strength);
                        self.set([across, down], colour);
                    }
                }
            }
            left += raster.width() as u32;
        }
    }
}

/// `over` laid on `under` with a strength of 255 at most.
pub fn mixed(under: Colour, over: Colour, strength: u8) -> Colour {
    let share = f64::from(strength) / 255.0;
    std::array::from_fn(|part| {
        let (under, over) = (f64::from(under[part]), f64::from(over[part]));
        (under + (over - under) * share).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_where_their_anchor_says_and_nothing_is_drawn_outside() {
        let columns = |anchor| {
            let mut canvas = Canvas::new(100, 30);
            canvas.write([50, 5], anchor, Face::Plain, INK, "a|b");
            let inked = |x: &u32| (0..30).any(|y| canvas.at([*x, y]) != WHITE);
            let columns: Vec<u32> = (0..100).filter(inked).collect();
            (columns[0], columns[columns.len() - 1])
        };
        let wide = Face::Plain.width("a|b");
        let (left, middle, right) = (
            columns(Anchor::Left),
            columns(Anchor::Middle),
            columns(Anchor::Right),
        );
        assert!(left.0 >= 50 && left.1 < 50 + wide);
        assert!(middle.0 >= 50 - wide / 2 && middle.1 <= 50 + wide / 2);
        assert!(right.0 >= 50 - wide && right.1 < 50);
        let mut canvas = Canvas::new(10, 10);
        canvas.write([5, 5], Anchor::Left, Face::Title, INK, "WW\u{1f600}");
        canvas.fill([8, 8], [9, 9], INK);
        assert_eq!(canvas.at([9, 9]), INK);
        assert_eq!(mixed([0, 100, 255], [255, 100, 0], 51), [51, 100, 204]);
    }
}
