//! Pictures of studies as SVG.

use std::fmt::Write as _;

use colltune_emulate::study::{Figure, Picture};

use crate::plot::{self, Band, Bar, Line, Panel, Scale};

/// A picture as SVG.
pub fn svg(figure: &Figure) -> anyhow::Result<String> {
    match &figure.picture {
        Picture::Bars { y, bars } => {
            let bar = |bar: &colltune_emulate::study::Bar| Bar {
                name: bar.name.clone(),
                parts: bar.parts.clone(),
            };
            let bars: Vec<Bar> = bars.iter().map(bar).collect();
            plot::bars(&figure.title, y, &bars)
        }
        Picture::Lines { x, y, lines } | Picture::Levels { x, y, lines } => {
            let scale = match figure.picture {
                Picture::Levels { .. } => Scale::Linear,
                _ => Scale::LogBoth,
            };
            let line = |line: &colltune_emulate::study::Line| Line {
                name: line.name.clone(),
                points: line.points.clone(),
            };
            plot::svg(&plot::Figure {
                title: figure.title.clone(),
                bands: vec![Band {
                    panels: vec![Panel {
                        title: String::new(),
                        x,
                        y,
                        scale,
                        lines: lines.iter().map(line).collect(),
                    }],
                }],
            })
        }
        Picture::Matrix { n, what, values } => Ok(matrix(&figure.title, what, *n, values)),
    }
}

/// Pixels of a matrix's edge, and of what stands round it.
const EDGE: f64 = 640.0;
const MARGIN: f64 = 48.0;
/// Of a line below the picture, and how many letters it has room for.
const ROW: f64 = 18.0;
const LETTERS: usize = 96;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// From row to column; the darker, the more. Pairs that have nothing are empty. What stands below the first line of the
/// title is written below the picture.
fn matrix(title: &str, what: &str, n: usize, values: &[u64]) -> String {
    let cell = EDGE / n.max(1) as f64;
    let most = values.iter().copied().max().unwrap_or(0);
    let (name, more) = title.split_once('\n').unwrap_or((title, ""));
    let below = plot::wrapped(more, LETTERS);
    let width = EDGE + 2.0 * MARGIN;
    let height = EDGE + 3.0 * MARGIN + ROW * below.len() as f64;
    let (title, name) = (escaped(title), escaped(name));
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"15\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"30\" font-size=\"18\">{name}</text>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">\n\
         <rect width=\"{EDGE}\" height=\"{EDGE}\" fill=\"none\" stroke=\"#767676\"/>\n"
    );
    for (place, &value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
        let (row, column) = (place / n, place % n);
        // The least of them can still be seen.
        let shade = 0.25 + 0.75 * value as f64 / most as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{cell:.2}\" height=\"{cell:.2}\" fill=\"#14508c\" \
             fill-opacity=\"{shade:.2}\"/>",
            cell * column as f64,
            cell * row as f64,
        );
    }
    let bottom = EDGE + 2.0 * MARGIN;
    let _ = writeln!(
        text,
        "</g>\n<text x=\"{MARGIN}\" y=\"{bottom}\">from rank (down) to rank (right), 0 to {}; darkest: {most} \
         {what}</text>",
        n.saturating_sub(1),
    );
    for (nth, line) in below.iter().enumerate() {
        let y = bottom + ROW * (nth + 1) as f64;
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"{y}\" font-size=\"12\">{}</text>",
            escaped(line)
        );
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_has_a_square_for_each_pair_that_has_something_and_says_the_most() {
        let figure = Figure {
            name: "m".to_owned(),
            title: "Messages\nmachine m (assumed: a < b)".to_owned(),
            picture: Picture::Matrix {
                n: 3,
                what: "messages",
                values: vec![0, 7, 0, 2, 0, 0, 0, 1, 0],
            },
        };
        let text = svg(&figure).unwrap();
        assert_eq!(text.matches("fill-opacity").count(), 3);
        assert!(text.contains("darkest: 7 messages") && text.contains("<title>Messages\n"));
        assert!(text.contains(">Messages</text>"), "{text}");
        assert!(
            text.contains(">machine m (assumed: a &lt; b)</text>"),
            "{text}"
        );
        assert!(text.ends_with("</text>\n</svg>\n"), "{text}");
        assert!(
            text.contains("fill-opacity=\"1.00\""),
            "the most is darkest"
        );
    }
}
