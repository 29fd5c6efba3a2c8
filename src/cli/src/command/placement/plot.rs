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

/// A bar of parts that stand on each other.
pub struct Bar {
    pub name: String,
    pub parts: Vec<(&'static str, f64)>,
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

/// Draws bars side by side; equal parts have equal colours.
pub fn bars(title: &str, y: &str, bars: &[Bar]) -> anyhow::Result<String> {
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let highest = bars.iter().map(height).fold(0.0, f64::max).max(1e-9);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(-0.5..bars.len() as f64 + 0.5, 0.0..1.05 * highest)
            .map_err(failed)?;
        let name = |x: &f64| {
            let bar = (x.fract() == 0.0 && *x >= 0.0)
                .then(|| bars.get(*x as usize))
                .flatten();
            bar.map_or_else(String::new, |bar| bar.name.clone())
        };
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .x_labels(2 * bars.len() + 3)
            .x_label_formatter(&name);
        mesh.y_desc(y).draw().map_err(failed)?;
        let names = bars.first().map_or(&[][..], |bar| &bar.parts);
        for (part, (label, _)) in names.iter().enumerate() {
            let colour = Palette99::pick(part).to_rgba();
            let rectangle = |(place, bar): (usize, &Bar)| {
                let below: f64 = bar.parts[..part].iter().map(|(_, value)| value).sum();
                let (x, top) = (place as f64, below + bar.parts[part].1);
                Rectangle::new([(x - 0.35, below), (x + 0.35, top)], colour.filled())
            };
            let drawn = chart
                .draw_series(bars.iter().enumerate().map(rectangle))
                .map_err(failed)?;
            drawn.label(*label).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled())
            });
        }
        let mut labels = chart.configure_series_labels();
        labels
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(failed)?;
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
    fn every_bar_is_drawn_and_named() {
        let bar = |name: &str, wait: f64| Bar {
            name: name.to_owned(),
            parts: vec![("compute", 1.0), ("wait", wait)],
        };
        let text = bars("phases", "s", &[bar("lpt", 0.5), bar("cdp", 1.5)]).unwrap();
        for word in ["lpt", "cdp", "compute", "wait", "phases"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(text.matches("<rect").count() > 4);
        assert!(bars("none", "s", &[]).unwrap().starts_with("<svg"));
    }

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
