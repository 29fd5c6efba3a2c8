//! Lines over a common axis, as SVG.

use anyhow::anyhow;
use plotters::prelude::*;

/// One line of a plot.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// One panel; panels stand below each other and share the colours of their lines.
pub struct Panel {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub scale: Scale,
    pub lines: Vec<Line>,
}

/// How the axes are divided.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    Linear,
    /// Only x by powers.
    LogX,
    LogBoth,
}

const WIDTH: u32 = 900;
const HEIGHT: u32 = 420;

/// Draws the panels.
pub fn svg(panels: &[Panel]) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let size = (WIDTH, HEIGHT * panels.len().max(1) as u32);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        for (part, panel) in area
            .split_evenly((panels.len().max(1), 1))
            .iter()
            .zip(panels)
        {
            draw(part, panel)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(text)
}

fn draw(
    area: &DrawingArea<SVGBackend, plotters::coord::Shift>,
    panel: &Panel,
) -> anyhow::Result<()> {
    let points = || {
        panel
            .lines
            .iter()
            .flat_map(|line| line.points.iter().copied())
    };
    let (x, y) = (range(points().map(|p| p.0)), range(points().map(|p| p.1)));
    let mut builder = ChartBuilder::on(area);
    builder
        .caption(&panel.title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70);
    macro_rules! chart {
        ($x:expr, $y:expr) => {{
            let mut chart = builder.build_cartesian_2d($x, $y).map_err(failed)?;
            let mut mesh = chart.configure_mesh();
            mesh.x_desc(panel.x)
                .y_desc(panel.y)
                .draw()
                .map_err(failed)?;
            for (index, line) in panel.lines.iter().enumerate() {
                let colour = Palette99::pick(index).to_rgba();
                let series = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2));
                let drawn = chart.draw_series(series.point_size(3)).map_err(failed)?;
                drawn.label(&line.name).legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
            }
            let mut labels = chart.configure_series_labels();
            labels
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK.mix(0.3))
                .draw()
                .map_err(failed)?;
        }};
    }
    match panel.scale {
        Scale::Linear => chart!(x.0..x.1, y.0.min(0.0)..y.1),
        Scale::LogX => chart!((x.0..x.1).log_scale(), y.0.min(0.0)..y.1),
        Scale::LogBoth => chart!((x.0..x.1).log_scale(), (y.0..y.1).log_scale()),
    }
    Ok(())
}

/// From the least to the greatest value with a little room; never empty.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
    match low < high {
        true => (low, high + 0.05 * (high - low)),
        false if low.is_finite() => (0.9 * low, 1.1 * low + 1e-3),
        false => (0.0, 1.0),
    }
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("draw the plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_and_named() {
        for scale in [Scale::Linear, Scale::LogX, Scale::LogBoth] {
            let line = |name: &str, points: Vec<(f64, f64)>| Line {
                name: name.to_owned(),
                points,
            };
            let lines = vec![
                line("lpt", vec![(512.0, 0.1), (4096.0, 2.0)]),
                line("one", vec![(512.0, 1.0)]),
                line("empty", vec![]),
            ];
            let panel = Panel {
                title: "time".to_owned(),
                x: "ranks",
                y: "ms",
                scale,
                lines,
            };
            let text = svg(&[panel]).unwrap();
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
            assert!(text.contains("lpt") && text.contains("ranks") && text.contains("polyline"));
        }
        assert!(svg(&[]).unwrap().starts_with("<svg"));
    }
}
