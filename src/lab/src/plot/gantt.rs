//! Rows of a time axis each, in coloured parts: a Gantt chart.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{
    Entry, MARGIN, WIDTH, begin, draw_legend, failed, legend_height, style, title_height, told,
};

/// A row and its parts, none of which begins before the one above it in the list ends.
pub struct Row {
    pub name: String,
    pub parts: Vec<Part>,
}

/// From `begin` to `end`, in the colour of one of the chart's names.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub of: usize,
    pub begin: f64,
    pub end: f64,
}

/// Pixels of a row.
const ROW_HEIGHT: i32 = 22;
const AXIS_HEIGHT: i32 = 58;

/// Draws rows from top to bottom over a common axis `x`; `names` are what parts are of.
///
/// Errors: what the drawing library refuses.
pub fn gantt(title: &str, x: &str, names: &[&str], rows: &[Row]) -> anyhow::Result<String> {
    let panel_height = ROW_HEIGHT * rows.len().max(1) as i32 + AXIS_HEIGHT;
    let height = title_height(title) + panel_height + legend_height(names);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH as u32, height as u32));
        let rest = begin(area.into_drawing_area(), title)?;
        let (panel, legend) = rest.split_vertically(panel_height);
        draw(&panel, x, rows)?;
        draw_legend(&legend, names, Entry::Box)?;
        rest.present().map_err(failed)?;
    }
    Ok(style::finish(&text, title))
}

fn draw(area: &super::Area<'_>, x: &str, rows: &[Row]) -> anyhow::Result<()> {
    let parts = || rows.iter().flat_map(|row| &row.parts);
    let begin = parts().map(|part| part.begin).fold(f64::INFINITY, f64::min);
    let end = parts()
        .map(|part| part.end)
        .fold(f64::NEG_INFINITY, f64::max);
    let (begin, end) = match begin < end {
        true => (begin, end),
        false => (0.0, 1.0),
    };
    let n = rows.len().max(1) as f64;
    // The first row is on top.
    let middle = |nth: usize| n - 1.0 - nth as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(38)
        .y_label_area_size(72)
        .build_cartesian_2d::<RangedCoordf64, RangedCoordf64>(
            (begin..end).into(),
            (-0.5..n - 0.5).into(),
        )
        .map_err(failed)?;
    let name = |y: &f64| {
        let place = n - 1.0 - y;
        let nth = place.round();
        let row = ((place - nth).abs() < 1e-9 && nth >= 0.0).then(|| rows.get(nth as usize));
        row.flatten()
            .map_or_else(String::new, |row| row.name.clone())
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh()
        .x_desc(x)
        .x_labels(10)
        .y_labels(2 * rows.len() + 3)
        .x_label_formatter(&told)
        .y_label_formatter(&name)
        .label_style(style::words())
        .axis_desc_style(style::words())
        .axis_style(style::FAINT.day)
        .bold_line_style(style::FAINT.day)
        .light_line_style(style::GROUND.day);
    mesh.draw().map_err(failed)?;
    for (nth, row) in rows.iter().enumerate() {
        let y = middle(nth);
        let rectangle = |part: &Part| {
            let corners = [(part.begin, y - 0.4), (part.end, y + 0.4)];
            Rectangle::new(corners, style::colour(part.of).filled())
        };
        chart
            .draw_series(row.parts.iter().map(rectangle))
            .map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_named_from_the_top_and_every_part_has_the_colour_of_its_name() {
        let row = |name: &str, parts: &[(usize, f64, f64)]| Row {
            name: name.to_owned(),
            parts: parts
                .iter()
                .map(|&(of, begin, end)| Part { of, begin, end })
                .collect(),
        };
        let rows = [
            row("rank 0", &[(0, 1.0, 2.0), (1, 2.0, 2.5)]),
            row("rank 1", &[(0, 1.0, 2.5)]),
        ];
        let text = gantt("step < 7", "ms", &["compute", "late"], &rows).unwrap();
        assert!(text.contains("<title>step &lt; 7</title>"));
        let place = |name: &str| {
            let at = text.find(&format!("\n{name}\n")).expect("named");
            let tag = &text[text[..at].rfind("<text").expect("a text")..at];
            let y = tag.split(" y=\"").nth(1).expect("a place");
            y.split('"').next().unwrap().parse::<i32>().expect("pixels")
        };
        assert!(place("rank 0") < place("rank 1"));
        let (_, drawn) = text.split_once("</style>").expect("a style");
        let of = |nth: usize| {
            let RGBColor(r, g, b) = style::colour(nth);
            let fill = format!("fill=\"#{r:02X}{g:02X}{b:02X}\"");
            drawn.matches(&fill).count()
        };
        // One of each colour is the legend's.
        assert_eq!((of(0), of(1), of(2)), (3, 2, 0));
        let one = gantt("one", "ms", &["compute"], &rows[..1]).unwrap();
        assert!(one.contains("\nrank 0\n"));
        gantt("nothing", "ms", &["compute"], &[]).unwrap();
    }
}
