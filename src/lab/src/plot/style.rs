//! How every plot looks: colours, fonts, widths, by day and by night. The report's page has the same colours.

use plotters::prelude::*;

/// A colour by day and its like by night.
#[derive(Clone, Copy)]
pub struct Tint {
    pub day: RGBColor,
    night: &'static str,
}

const fn tint(day: (u8, u8, u8), night: &'static str) -> Tint {
    Tint {
        day: RGBColor(day.0, day.1, day.2),
        night,
    }
}

pub const GROUND: Tint = tint((0xff, 0xff, 0xff), "#12161b");
pub const INK: Tint = tint((0x1b, 0x1f, 0x24), "#e6edf3");
pub const FAINT: Tint = tint((0xd0, 0xd7, 0xde), "#3a434d");

/// Of series: colours that colour-blind readers tell apart, on both grounds.
const SERIES: [Tint; 8] = [
    tint((0x00, 0x72, 0xb2), "#5ab1ee"),
    tint((0xc0, 0x4f, 0x00), "#ff9a57"),
    tint((0x00, 0x7f, 0x5f), "#43cf9f"),
    tint((0xb0, 0x52, 0x8f), "#ec9fd0"),
    tint((0x7a, 0x60, 0x00), "#dcc04e"),
    tint((0x2f, 0x8f, 0xc4), "#9ad6ff"),
    tint((0x63, 0x40, 0xb0), "#b9a2ff"),
    tint((0x44, 0x4c, 0x56), "#c4ccd4"),
];

pub const LINE_WIDTH: u32 = 2;
pub const MARK_SIZE: i32 = 4;
/// Lines with more points have no marks on them.
pub const MARKED_POINTS_MAX: usize = 24;
const FAMILY: &str = "sans-serif";
/// Sizes of titles, of headings over panels, and of everything else.
const TITLE: u32 = 18;
const HEADING: u32 = 15;
const WORDS: u32 = 12;
/// Pixels of a letter in words, more or less: the picture does not know its reader's font.
pub const LETTER: i32 = 7;
pub const ROW: i32 = 18;

/// The colour of the n-th series.
pub fn colour(place: usize) -> RGBColor {
    SERIES[place % SERIES.len()].day
}

/// The shape of the n-th series' marks: where colours come again, they are others.
#[derive(Clone, Copy, PartialEq)]
pub enum Mark {
    Disc,
    Triangle,
    Cross,
}

pub fn mark(place: usize) -> Mark {
    // Neighbours in a legend differ in both.
    match (place % SERIES.len() + place / SERIES.len()) % 3 {
        0 => Mark::Disc,
        1 => Mark::Triangle,
        _ => Mark::Cross,
    }
}

pub fn title() -> TextStyle<'static> {
    (FAMILY, TITLE).into_font().color(&INK.day)
}

pub fn heading() -> TextStyle<'static> {
    (FAMILY, HEADING).into_font().color(&INK.day)
}

pub fn words() -> TextStyle<'static> {
    (FAMILY, WORDS).into_font().color(&INK.day)
}

/// Names a drawn picture for those who cannot see it, and tells viewers its colours by night.
pub fn finish(drawn: &str, name: &str) -> String {
    let end = drawn.find('>').map_or(0, |end| end + 1);
    let (tag, rest) = drawn.split_at(end);
    let mut night = String::new();
    for Tint { day, night: dark } in [GROUND, INK, FAINT].iter().chain(&SERIES) {
        let RGBColor(r, g, b) = day;
        let day = format!("#{r:02X}{g:02X}{b:02X}");
        night += &format!("[fill=\"{day}\"]{{fill:{dark}}}[stroke=\"{day}\"]{{stroke:{dark}}}");
    }
    let name = name.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "{} role=\"img\">\n<title>{name}</title>\n<style>@media(prefers-color-scheme:dark){{{night}}}</style>{rest}",
        tag.trim_end_matches('>')
    )
}
