//! What all figures share: scales, axes, and the frame of sentence, picture and table.

use maud::{Markup, html};

/// From a value to a place in the picture.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    kind: ScaleKind,
    domain: [f64; 2],
    range: [f64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ScaleKind {
    Linear,
    Log,
}

impl Scale {
    pub fn linear(domain: [f64; 2], range: [f64; 2]) -> Scale {
        Scale {
            kind: ScaleKind::Linear,
            domain: apart(domain),
            range,
        }
    }

    /// Both ends are above zero.
    pub fn log(domain: [f64; 2], range: [f64; 2]) -> Scale {
        let domain = domain.map(|end| end.max(f64::MIN_POSITIVE).ln());
        Scale {
            kind: ScaleKind::Log,
            domain: apart(domain),
            range,
        }
    }

    pub fn at(&self, value: f64) -> f64 {
        let value = match self.kind {
            ScaleKind::Linear => value,
            ScaleKind::Log => value.max(f64::MIN_POSITIVE).ln(),
        };
        let share = (value - self.domain[0]) / (self.domain[1] - self.domain[0]);
        self.range[0] + share.clamp(0.0, 1.0) * (self.range[1] - self.range[0])
    }

    /// Round values inside, at most about so many.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        match self.kind {
            ScaleKind::Linear => linear_ticks(self.domain, most),
            ScaleKind::Log => log_ticks(self.domain, most),
        }
    }
}

fn apart([lo, hi]: [f64; 2]) -> [f64; 2] {
    if hi > lo && (hi - lo).is_finite() {
        [lo, hi]
    } else {
        [lo - 0.5, lo + 0.5]
    }
}

fn linear_ticks([lo, hi]: [f64; 2], most: usize) -> Vec<f64> {
    let rough = (hi - lo) / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    let first = (lo / step).ceil() as i64;
    let ticks = (first..first + 2 * most as i64 + 2).map(|place| place as f64 * step);
    ticks.take_while(|tick| *tick <= hi + step * 1e-9).collect()
}

fn log_ticks([lo, hi]: [f64; 2], most: usize) -> Vec<f64> {
    let decades = |steps: &[f64]| -> Vec<f64> {
        let ln10 = std::f64::consts::LN_10;
        let powers = (lo / ln10).floor() as i32..=(hi / ln10).ceil() as i32;
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        all.filter(|tick| (lo - 1e-9..=hi + 1e-9).contains(&tick.ln()))
            .collect()
    };
    // Within less than a decade round values of a straight scale stand close enough.
    if hi - lo < 1.5 {
        return linear_ticks([lo.exp(), hi.exp()], most);
    }
    let [fine, rough] = [&[1.0, 2.0, 5.0][..], &[1.0]].map(decades);
    let ticks = if fine.len() <= most + 2 || rough.len() < 2 {
        fine
    } else {
        rough
    };
    let step = ticks.len().div_ceil(most.max(1)).max(1);
    ticks.into_iter().step_by(step).collect()
}

/// A coordinate: a tenth of a pixel is fine enough.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A figure: heading, what it says in a sentence, the picture, and its numbers as a table.
pub struct Figure<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub says: Markup,
    pub picture: Markup,
    pub legend: Markup,
    pub table: Markup,
}

impl Figure<'_> {
    pub fn draw(self) -> Markup {
        html! {
            figure aria-labelledby=(self.id) {
                h3 id=(self.id) { (self.title) }
                p { (self.says) }
                section.scroll tabindex="0" aria-label={ (self.title) ": picture" } { (self.picture) }
                (self.legend)
                details {
                    summary { "The numbers of “" (self.title) "” as a table" }
                    section.scroll tabindex="0" aria-label={ (self.title) ": table" } { (self.table) }
                }
            }
        }
    }
}

/// A picture of so many pixels; `name` is what it is called where it cannot be seen.
pub fn svg(width: f64, height: f64, name: &str, inside: Markup) -> Markup {
    html! {
        svg role="img" aria-label=(name) width=(px(width)) height=(px(height))
            viewBox={ "0 0 " (px(width)) " " (px(height)) } { (inside) }
    }
}

/// A table. `head` says of each column whether it holds numbers.
pub fn table(caption: &str, head: &[(&str, Column)], rows: Markup) -> Markup {
    html! {
        table {
            caption { (caption) }
            thead { tr {
                @for (name, column) in head { th scope="col" class=[column.class()] { (name) } }
            } }
            tbody { (rows) }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Words,
    Number,
}

impl Column {
    fn class(self) -> Option<&'static str> {
        (self == Column::Number).then_some("n")
    }
}

/// The vertical axis at the left of a plot, with lines across it to `right`.
pub fn left_axis(scale: &Scale, left: f64, right: f64, tell: impl Fn(f64) -> String) -> Markup {
    html! {
        @for tick in scale.ticks(5) {
            line.grid x1=(px(left)) x2=(px(right)) y1=(px(scale.at(tick))) y2=(px(scale.at(tick))) {}
            text x=(px(left - 6.0)) y=(px(scale.at(tick) + 4.0)) text-anchor="end" { (tell(tick)) }
        }
    }
}

/// Pixels that a character of a tick takes at most, and those beside a plot.
const CHARACTER: f64 = 6.8;
const BESIDE: f64 = 12.0;
/// Pixels between two words.
const APART: f64 = 4.0;

/// The horizontal axis below a plot.
pub fn bottom_axis(scale: &Scale, top: f64, bottom: f64, tell: impl Fn(f64) -> String) -> Markup {
    let ticks = scale.ticks(5);
    html! {
        @for tick in &ticks {
            line.grid x1=(px(scale.at(*tick))) x2=(px(scale.at(*tick))) y1=(px(top)) y2=(px(bottom)) {}
        }
        @for word in words_below(scale, &ticks, tell) {
            text x=(px(word.x)) y=(px(bottom + 15.0)) text-anchor=(word.anchor) { (word.text) }
        }
    }
}

/// What stands below a tick.
struct Word {
    x: f64,
    anchor: &'static str,
    /// At most, where it ends.
    end: f64,
    text: String,
}

/// In the middle of its tick, but never farther beside the plot than there is room, and not where the word before it
/// stands.
fn words_below(scale: &Scale, ticks: &[f64], tell: impl Fn(f64) -> String) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let limit = scale.range[1] + BESIDE;
    for tick in ticks {
        let text = tell(*tick);
        let width = CHARACTER * text.chars().count() as f64;
        let middle = scale.at(*tick);
        let end = (middle + width / 2.0).min(limit);
        let (x, anchor) = match end < limit {
            true => (middle, "middle"),
            false => (limit, "end"),
        };
        if words
            .last()
            .is_none_or(|word| word.end + APART <= end - width)
        {
            words.push(Word {
                x,
                anchor,
                end,
                text,
            });
        }
    }
    words
}

/// The class of the n-th of several series: a colour, and a dash for those who see no colours.
pub fn series(place: usize) -> String {
    format!("s{}", place % 8)
}

/// What a colour stands for.
pub fn swatch(class: &str) -> Markup {
    html! {
        svg.swatch aria-hidden="true" width="26" height="12" viewBox="0 0 26 12" {
            line.series.(class) x1="1" x2="25" y1="6" y2="6" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_below_an_axis_end_beside_it_and_stand_on_no_other() {
        // From 20 us to 2.1 ms, 270 pixels: the last word has to move to the left, onto the one before.
        let scale = Scale::log([2e4, 2.1e6], [60.0, 330.0]);
        let ticks = [2e4, 1e5, 5e5, 1e6, 2e6];
        let tell = |ns: f64| format!("{:.2} ms", ns / 1e6);
        let words = words_below(&scale, &ticks, tell);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["0.02 ms", "0.10 ms", "0.50 ms", "2.00 ms"]);
        let width = CHARACTER * 7.0;
        assert!(
            words
                .windows(2)
                .all(|pair| pair[0].end < pair[1].end - width)
        );
        assert!(words.iter().all(|word| word.end <= 330.0 + BESIDE));
        assert_eq!([words[0].anchor, words[3].anchor], ["middle", "end"]);
    }

    #[test]
    fn scales_reach_both_ends_and_ticks_are_round() {
        let scale = Scale::linear([0.0, 10.0], [100.0, 0.0]);
        assert_eq!(
            [0.0, 5.0, 10.0, 99.0].map(|value| scale.at(value)),
            [100.0, 50.0, 0.0, 0.0]
        );
        assert_eq!(scale.ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let log = Scale::log([1.0, 1000.0], [0.0, 3.0]);
        assert!((log.at(10.0) - 1.0).abs() < 1e-9);
        assert_eq!(log.ticks(5).len(), 4);
        let near = Scale::log([1.1, 2.9], [0.0, 3.0]);
        assert_eq!(near.ticks(5), [1.5, 2.0, 2.5]);
        for odd in [[1.0, 1.0], [f64::NAN, 1.0], [0.0, 0.0]] {
            assert!(Scale::linear(odd, [0.0, 1.0]).ticks(5).len() < 20);
            assert!(Scale::log(odd, [0.0, 1.0]).ticks(5).len() < 20);
        }
        assert_eq!([px(1.0), px(1.25), px(-0.04)], ["1", "1.2", "-0"]);
    }
}
