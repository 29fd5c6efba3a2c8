//! Plots of lines and bars, as SVG. All look alike: see [`style`].

mod style;

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{AsRangedCoord, DefaultFormatting, KeyPointHint, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use style::Mark;

/// A picture: a title, and bands of panels below each other.
pub struct Figure {
    pub title: String,
    pub bands: Vec<Band>,
}

/// Panels side by side, whose lines of one name have one colour and one entry in the legend.
pub struct Band {
    pub panels: Vec<Panel>,
}

pub struct Panel {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub scale: Scale,
    pub lines: Vec<Line>,
}

pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// How the axes are divided.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    Linear,
    /// The same, but y begins near the least value.
    Close,
    /// Only x by powers.
    LogX,
    LogBoth,
}

/// A bar of parts that stand on each other.
pub struct Bar {
    pub name: String,
    pub parts: Vec<(&'static str, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: i32 = 1080;
const TITLE_HEIGHT: i32 = 40;
const PANEL_HEIGHT: i32 = 320;
const MARGIN: i32 = 12;
/// So many values along x are named each.
const STOPS_MAX: usize = 7;

/// Evaluates the second expression with the mark of the n-th series, a function from a place to what is drawn there.
macro_rules! with_mark {
    ($place:expr, $mark:ident => $use:expr) => {{
        let (colour, size) = (style::colour($place), style::MARK_SIZE);
        match style::mark($place) {
            Mark::Disc => {
                let $mark = |at| Circle::new(at, size, colour.filled());
                $use
            }
            Mark::Triangle => {
                let $mark = |at| TriangleMarker::new(at, size + 1, colour.filled());
                $use
            }
            Mark::Cross => {
                let $mark = |at| Cross::new(at, size, colour.stroke_width(style::LINE_WIDTH));
                $use
            }
        }
    }};
}

/// Draws a figure.
pub fn svg(figure: &Figure) -> anyhow::Result<String> {
    let names: Vec<Vec<&str>> = figure.bands.iter().map(names).collect();
    // One legend for bands of the same lines, below the last of them.
    let has_legend = |band: usize| names.get(band) != names.get(band + 1);
    let height = |band: usize| match has_legend(band) {
        true => PANEL_HEIGHT + legend_height(&names[band]),
        false => PANEL_HEIGHT,
    };
    let all = title_height(&figure.title) + (0..names.len()).map(height).sum::<i32>();
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH as u32, all as u32));
        let mut rest = begin(area.into_drawing_area(), &figure.title)?;
        for (number, (band, names)) in figure.bands.iter().zip(&names).enumerate() {
            let (now, later) = rest.split_vertically(height(number));
            rest = later;
            let (panels, legend) = now.split_vertically(PANEL_HEIGHT);
            let columns = band.panels.len().max(1);
            for (part, panel) in panels.split_evenly((1, columns)).iter().zip(&band.panels) {
                draw(part, panel, names)?;
            }
            if has_legend(number) {
                draw_legend(&legend, names, Entry::Line)?;
            }
        }
        rest.present().map_err(failed)?;
    }
    Ok(style::finish(&text, &figure.title))
}

/// Draws bars side by side; equal parts have equal colours.
pub fn bars(title: &str, y: &str, bars: &[Bar]) -> anyhow::Result<String> {
    let parts = bars.first().map_or(&[][..], |bar| &bar.parts);
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let height = title_height(title) + PANEL_HEIGHT + legend_height(&names);
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH as u32, height as u32));
        let rest = begin(area.into_drawing_area(), title)?;
        let (panel, legend) = rest.split_vertically(PANEL_HEIGHT);
        draw_bars(&panel, y, bars, parts.len())?;
        draw_legend(&legend, &names, Entry::Box)?;
        rest.present().map_err(failed)?;
    }
    Ok(style::finish(&text, title))
}

/// A text in lines of at most so many letters, but for longer words.
pub fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What stands below the first line of a title, in lines as long as the picture is wide.
fn subtitle(title: &str) -> Vec<String> {
    let letters = ((WIDTH - 2 * MARGIN) / style::LETTER) as usize;
    let lines = title.lines().skip(1);
    lines.flat_map(|line| wrapped(line, letters)).collect()
}

fn title_height(title: &str) -> i32 {
    TITLE_HEIGHT + style::ROW * subtitle(title).len() as i32
}

/// Draws ground and title; gives what is below.
fn begin<'a>(area: Area<'a>, title: &str) -> anyhow::Result<Area<'a>> {
    area.fill(&style::GROUND.day).map_err(failed)?;
    let (top, rest) = area.split_vertically(title_height(title));
    let name = title.lines().next().unwrap_or_default();
    let name = Text::new(name.to_owned(), (MARGIN, MARGIN), style::title());
    top.draw(&name).map_err(failed)?;
    for (nth, line) in (0..).zip(subtitle(title)) {
        let place = (MARGIN, TITLE_HEIGHT - 4 + style::ROW * nth);
        let words = Text::new(line, place, style::words());
        top.draw(&words).map_err(failed)?;
    }
    Ok(rest)
}

/// The lines of a band, each once, in their order.
fn names(band: &Band) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in band.panels.iter().flat_map(|panel| &panel.lines) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    names
}

/// What an entry of a legend shows.
#[derive(Clone, Copy)]
enum Entry {
    Line,
    Box,
}

const SAMPLE: i32 = 26;

fn entry_width(name: &str) -> i32 {
    SAMPLE + 8 + style::LETTER * name.chars().count() as i32 + 16
}

/// Where each entry stands: they fill rows.
fn legend_places(names: &[&str]) -> Vec<(i32, i32)> {
    let (mut x, mut y) = (MARGIN, 4);
    let mut places = Vec::new();
    for name in names {
        if x > MARGIN && x + entry_width(name) > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + style::ROW);
        }
        places.push((x, y));
        x += entry_width(name);
    }
    places
}

fn legend_height(names: &[&str]) -> i32 {
    let last = legend_places(names).last().map_or(0, |(_, y)| *y);
    last + style::ROW + MARGIN
}

fn draw_legend(area: &Area<'_>, names: &[&str], entry: Entry) -> anyhow::Result<()> {
    for (place, (name, (x, y))) in names.iter().zip(legend_places(names)).enumerate() {
        let colour = style::colour(place);
        let middle = y + style::ROW / 2 - 1;
        match entry {
            Entry::Line => {
                let ends = [(x, middle), (x + SAMPLE, middle)];
                let line = PathElement::new(ends, colour.stroke_width(style::LINE_WIDTH));
                area.draw(&line).map_err(failed)?;
                let at = (x + SAMPLE / 2, middle);
                with_mark!(place, mark => area.draw(&mark(at)).map_err(failed)?);
            }
            Entry::Box => {
                let corners = [(x + 6, middle - 6), (x + SAMPLE - 2, middle + 6)];
                area.draw(&Rectangle::new(corners, colour.filled()))
                    .map_err(failed)?;
            }
        }
        let words = Text::new((*name).to_owned(), (x + SAMPLE + 8, y + 2), style::words());
        area.draw(&words).map_err(failed)?;
    }
    Ok(())
}

/// An axis on which chosen values are named.
struct Stops<A> {
    axis: A,
    stops: Vec<f64>,
}

impl Stops<RangedCoordf64> {
    fn new((low, high): (f64, f64), stops: Vec<f64>) -> Self {
        let axis = (low..high).into();
        Stops { axis, stops }
    }
}

impl Stops<LogCoord<f64>> {
    /// By powers: the values themselves are named where they are few, else round ones.
    fn logarithmic((low, high): (f64, f64), values: &[f64]) -> Self {
        let axis = (low..high).log_scale().into();
        let stops = match values.len() {
            0..=STOPS_MAX => values.to_vec(),
            _ => round_between(low, high),
        };
        Stops { axis, stops }
    }
}

/// 1, 2 and 5 times powers of ten, or those powers where there are many; of less than a decade evenly apart.
fn round_between(low: f64, high: f64) -> Vec<f64> {
    let is_inside = |value: &f64| (low..=high).contains(value);
    if low <= 0.0 || !high.is_finite() {
        return Vec::new();
    }
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let times = |steps: &'static [f64]| -> Vec<f64> {
        let all = powers
            .clone()
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(is_inside).collect()
    };
    let fine = times(&[1.0, 2.0, 5.0]);
    if fine.len() > STOPS_MAX {
        return times(&[1.0]);
    }
    if fine.len() > 2 {
        return fine;
    }
    let rough = (high - low) / 4.0;
    let step = 10f64.powf(rough.log10().floor());
    let step = step * (rough / step).ceil();
    let first = (low / step).ceil() as u64;
    let evenly = (first..first + STOPS_MAX as u64).map(|place| place as f64 * step);
    evenly.filter(is_inside).collect()
}

impl<A: Ranged<ValueType = f64>> Ranged for Stops<A> {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.axis.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.stops.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.axis.range()
    }
}

fn draw(area: &Area<'_>, panel: &Panel, names: &[&str]) -> anyhow::Result<()> {
    let points = || {
        panel
            .lines
            .iter()
            .flat_map(|line| line.points.iter().copied())
    };
    let (x, y) = (range(points().map(|p| p.0)), range(points().map(|p| p.1)));
    let from_zero = y.0.min(0.0)..y.1;
    let mut stops: Vec<f64> = points().map(|point| point.0).collect();
    stops.sort_by(f64::total_cmp);
    stops.dedup();
    match panel.scale {
        Scale::Close => {
            let least = y.0 - 0.1 * (y.1 - y.0);
            let x = Stops::new(x, stops);
            draw_on(area, panel, names, x, least..y.1)
        }
        Scale::Linear if stops.len() <= STOPS_MAX => {
            let x = Stops::new(x, stops);
            draw_on(area, panel, names, x, from_zero)
        }
        Scale::Linear => draw_on(area, panel, names, x.0..x.1, from_zero),
        Scale::LogX => {
            let x = Stops::logarithmic(x, &stops);
            draw_on(area, panel, names, x, from_zero)
        }
        Scale::LogBoth => {
            let x = Stops::logarithmic(x, &stops);
            let y = Stops {
                stops: round_between(y.0, y.1),
                axis: LogCoord::from((y.0..y.1).log_scale()),
            };
            draw_on(area, panel, names, x, y)
        }
    }
}

fn draw_on<X, Y>(area: &Area<'_>, panel: &Panel, names: &[&str], x: X, y: Y) -> anyhow::Result<()>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, style::heading())
        .margin(MARGIN)
        .x_label_area_size(38)
        .y_label_area_size(62)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc(panel.x)
        .y_desc(panel.y)
        .x_labels((area.dim_in_pixel().0 / 64) as usize)
        .y_labels(6)
        .label_style(style::words())
        .axis_desc_style(style::words())
        .axis_style(style::FAINT.day)
        .bold_line_style(style::FAINT.day)
        .light_line_style(style::GROUND.day)
        .x_label_formatter(&told)
        .y_label_formatter(&told);
    mesh.draw().map_err(failed)?;
    for line in &panel.lines {
        let place = names.iter().position(|name| *name == line.name);
        let place = place.unwrap_or(0);
        let stroke = style::colour(place).stroke_width(style::LINE_WIDTH);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), stroke))
            .map_err(failed)?;
        if line.points.len() <= style::MARKED_POINTS_MAX {
            let points = line.points.iter().copied();
            with_mark!(place, mark => chart.draw_series(points.map(mark)).map_err(failed)?);
        }
    }
    Ok(())
}

fn draw_bars(area: &Area<'_>, y: &str, bars: &[Bar], n_parts: usize) -> anyhow::Result<()> {
    let height = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let highest = bars.iter().map(height).fold(0.0, f64::max).max(1e-9);
    let x: std::ops::Range<f64> = -0.5..bars.len().max(1) as f64 - 0.5;
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .x_label_area_size(30)
        .y_label_area_size(62)
        .build_cartesian_2d::<RangedCoordf64, RangedCoordf64>(
            x.into(),
            (0.0..1.05 * highest).into(),
        )
        .map_err(failed)?;
    let name = |x: &f64| {
        let is_bar = x.fract() == 0.0 && *x >= 0.0;
        let bar = is_bar.then(|| bars.get(*x as usize)).flatten();
        bar.map_or_else(String::new, |bar| bar.name.clone())
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .x_labels(2 * bars.len() + 3)
        .x_label_formatter(&name)
        .y_label_formatter(&told)
        .label_style(style::words())
        .axis_desc_style(style::words())
        .axis_style(style::FAINT.day)
        .bold_line_style(style::FAINT.day)
        .light_line_style(style::GROUND.day);
    mesh.y_desc(y).draw().map_err(failed)?;
    for part in 0..n_parts {
        let colour = style::colour(part);
        let rectangle = |(place, bar): (usize, &Bar)| {
            let below: f64 = bar.parts[..part].iter().map(|(_, value)| value).sum();
            let (x, top) = (place as f64, below + bar.parts[part].1);
            Rectangle::new([(x - 0.35, below), (x + 0.35, top)], colour.filled())
        };
        chart
            .draw_series(bars.iter().enumerate().map(rectangle))
            .map_err(failed)?;
    }
    Ok(())
}

/// An axis's value in few letters.
fn told(value: &f64) -> String {
    let size = value.abs();
    if size < 1e-12 {
        "0".to_owned()
    } else if !(1e-4..1e7).contains(&size) {
        format!("{value:.0e}")
    } else if size >= 1e4 && value.fract() == 0.0 {
        // Thousands apart: 131 072.
        let digits = format!("{value:.0}");
        let head = digits.len() - 3;
        format!("{}\u{202f}{}", &digits[..head], &digits[head..])
    } else {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
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

    /// Every tag is closed, and nothing lies outside the picture.
    fn is_sound(text: &str) {
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        assert!(text.contains("role=\"img\"") && text.contains("prefers-color-scheme:dark"));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn every_bar_is_drawn_and_named() {
        let bar = |name: &str, wait: f64| Bar {
            name: name.to_owned(),
            parts: vec![("compute", 1.0), ("wait", wait)],
        };
        let text = bars("phases", "s", &[bar("lpt", 0.5), bar("cdp", 1.5)]).unwrap();
        is_sound(&text);
        for word in ["lpt", "cdp", "compute", "wait", "<title>phases</title>"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(text.matches("<rect").count() > 4);
        is_sound(&bars("none", "s", &[]).unwrap());
    }

    #[test]
    fn what_stands_below_a_title_is_wrapped_and_has_room() {
        let said = "a word of it ".repeat(30);
        let lines = wrapped(&said, 40);
        assert!(lines.iter().all(|line| line.len() <= 40), "{lines:?}");
        assert_eq!(lines.join(" "), said.trim_end());
        assert_eq!(wrapped("", 40), [""; 0]);
        assert_eq!(title_height("phases"), TITLE_HEIGHT);
        let title = format!("phases\n{said}");
        assert_eq!(title_height(&title), TITLE_HEIGHT + 3 * style::ROW);
        let text = bars(&title, "s", &[]).unwrap();
        is_sound(&text);
        assert_eq!(text.matches("\nphases\n").count(), 1, "{text}");
    }

    #[test]
    fn every_line_is_drawn_and_named_once_for_all_panels_of_a_band() {
        for scale in [Scale::Linear, Scale::Close, Scale::LogX, Scale::LogBoth] {
            let line = |name: &str, points: Vec<(f64, f64)>| Line {
                name: name.to_owned(),
                points,
            };
            let panel = |title: &str| Panel {
                title: title.to_owned(),
                x: "ranks",
                y: "ms",
                scale,
                lines: vec![
                    line("lpt", vec![(512.0, 0.1), (131_072.0, 2.0)]),
                    line("one<two", vec![(512.0, 1.0)]),
                    line("empty", vec![]),
                ],
            };
            let panels = vec![panel("time"), panel("space")];
            let figure = Figure {
                title: "a <b> & c".to_owned(),
                bands: vec![Band { panels }],
            };
            let text = svg(&figure).unwrap();
            is_sound(&text);
            assert_eq!(text.matches("\nlpt\n").count(), 1, "{text}");
            let [one, other] = [panel("time"), panel("again")].map(|panel| Band {
                panels: vec![panel],
            });
            let bands = vec![one, other];
            let twice = svg(&Figure {
                title: String::new(),
                bands,
            });
            assert_eq!(
                twice.unwrap().matches("\nlpt\n").count(),
                1,
                "one legend for both"
            );
            assert_eq!(
                (
                    text.matches("\ntime\n").count(),
                    text.matches("\nspace\n").count()
                ),
                (1, 1)
            );
            assert!(text.contains("a &lt;b> &amp; c") && text.contains("one&lt;two"));
        }
        let nothing = Figure {
            title: String::new(),
            bands: vec![Band { panels: vec![] }],
        };
        is_sound(&svg(&nothing).unwrap());
    }

    #[test]
    fn an_axis_by_powers_has_words_however_short_it_is() {
        assert_eq!(round_between(110.0, 620.0), [200.0, 400.0, 600.0]);
        assert_eq!(
            round_between(300.0, 420.0),
            [300.0, 330.0, 360.0, 390.0, 420.0]
        );
        assert_eq!(round_between(0.9, 60.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(round_between(1e-3, 1e3).len(), 7);
        for odd in [(0.0, 1.0), (-1.0, 1.0), (1.0, f64::INFINITY), (5.0, 5.0)] {
            assert!(round_between(odd.0, odd.1).len() <= STOPS_MAX);
        }
        // Few values are named themselves: 512 and 2048 ranks.
        let axis = Stops::logarithmic((512.0, 2150.0), &[512.0, 2048.0]);
        assert_eq!(axis.stops, [512.0, 2048.0]);
    }

    #[test]
    fn values_are_told_in_few_letters_and_legends_wrap() {
        let words = [0.0, 0.25, 3.0, 131_072.0, 1e-9, 2e9].map(|value| told(&value));
        assert_eq!(words, ["0", "0.25", "3", "131\u{202f}072", "1e-9", "2e9"]);
        let long = ["a policy with a long name"; 9];
        let places = legend_places(&long);
        assert!(places.last().unwrap().1 > places[0].1);
        assert!(
            places
                .iter()
                .all(|(x, _)| x + entry_width(long[0]) <= WIDTH)
        );
    }
}
