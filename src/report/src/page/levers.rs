//! Levers that programs ask about: what is chosen of each, and a forest plot of its arms.

use std::cmp::Reverse;

use colltune_core::levers::asked::ARMS_MAX;
use colltune_core::levers::learned::{LearnedArm, LearnedLever};
use colltune_statistics::Interval;
use maud::{Markup, html};

use super::draw::{Column, Figure, Scale, bottom_axis, px, svg, table};
use super::words::{count, cut, factor, interval, joined, percent};
use crate::levers::{choice, gains, place};

/// So many places, those with most epochs, are shown.
const PLACES_MAX: usize = 20;
const ROW: f64 = 20.0;
const TOP: f64 = 18.0;
/// The longest name, and how wide a letter of the chosen one's is at the most: it is bold.
const LETTERS: usize = 34;
const BOLD: f64 = 8.0;
/// Right of the names the plot, and right of that the next draw.
const PLOT: f64 = 380.0;
const DRAW: f64 = 110.0;
/// Intervals are cut off so many times beyond all estimates, or one arm that hardly ran presses the others flat.
const BEYOND: f64 = 2.0;
const UNKNOWN: &str = "not yet known";

pub fn section(levers: &[LearnedLever]) -> Markup {
    let mut places: Vec<&LearnedLever> = levers.iter().collect();
    places.sort_by_key(|one| Reverse(one.epochs));
    let n_more = places.len().saturating_sub(PLACES_MAX);
    html! {
        p {
            "A program asks by " code { "colltune_choose" } " which arm of a choice of its own an epoch runs with. "
            "The gain of an arm is the first arm’s time over this arm’s, for the same work. "
            "The first arm runs without the tuner."
        }
        @for (number, one) in places.iter().take(PLACES_MAX).enumerate() { (figure(number, one)) }
        @if n_more > 0 { p { "Not shown: " (count(n_more as u64, "place")) " with fewer epochs." } }
    }
}

fn figure(number: usize, one: &LearnedLever) -> Markup {
    let title = place(one);
    let arms: Vec<Row> = (one.arms.iter().zip(gains(one)).take(ARMS_MAX))
        .map(|(arm, gain)| Row {
            arm,
            gain,
            is_best: arm.name == one.best,
        })
        .collect();
    let n_more = one.arms.len() - arms.len();
    Figure {
        id: &format!("lever-{number}"),
        title: &title,
        says: html! {
            "With " (one.library) " on " (count(one.ranks, "rank")) ": " (joined(&choice(one))) ". "
            @if one.is_settled { "Settled: further epochs are expected to gain next to nothing." }
            @else { "Not settled: further epochs may change the choice." }
            @if n_more > 0 { " Not shown: " (count(n_more as u64, "arm")) "." }
        },
        picture: forest(&title, &arms),
        legend: html! {},
        table: numbers(&title, &arms),
    }
    .draw()
}

/// An arm as it is shown.
struct Row<'a> {
    arm: &'a LearnedArm,
    gain: Option<Interval>,
    is_best: bool,
}

fn forest(title: &str, arms: &[Row]) -> Markup {
    let name = |row: &Row| cut(&row.arm.name, LETTERS);
    let longest = arms.iter().map(|row| name(row).chars().count()).max();
    let left = 8.0 + BOLD * longest.unwrap_or(0) as f64 + 8.0;
    let right = left + PLOT;
    let ends = ends(arms);
    let scale = Scale::log(ends, [left, right]);
    let one = px(scale.at(1.0));
    let bottom = TOP + ROW * arms.len() as f64;
    let inside = html! {
        (bottom_axis(&scale, TOP, bottom, factor))
        line.floor x1=(one) x2=(one) y1=(px(TOP)) y2=(px(bottom)) { title { "as fast as the first arm" } }
        text.small x=(px(right)) y=(px(bottom + 31.0)) text-anchor="end" {
            "gain over the first arm with its 95 % interval; logarithmic"
        }
        text.small x=(px(right + 12.0)) y="11" { "next draw" }
        @for (place, row) in arms.iter().enumerate() {
            @let y = TOP + ROW * (place as f64 + 0.5);
            text.strong[row.is_best] x=(px(left - 8.0)) y=(px(y + 4.0)) text-anchor="end" { (name(row)) }
            @match row.gain {
                Some(gain) => g.dot.best[row.is_best] {
                    title { (row.arm.name) ": " (interval(gain)) }
                    line x1=(px(scale.at(gain.low))) x2=(px(scale.at(gain.high))) y1=(px(y)) y2=(px(y)) {}
                    @if gain.low < ends[0] { path d={ "M" (px(left)) " " (px(y)) "l7 -4v8z" } { title { "down to " (factor(gain.low)) } } }
                    @if gain.high > ends[1] { path d={ "M" (px(right)) " " (px(y)) "l-7 -4v8z" } { title { "up to " (factor(gain.high)) } } }
                    circle cx=(px(scale.at(gain.value))) cy=(px(y)) r="4" {}
                },
                None => text.small.halo x=(px(left + 6.0)) y=(px(y + 4.0)) { (UNKNOWN) },
            }
            text x=(px(right + 12.0)) y=(px(y + 4.0)) { (percent(row.arm.probability)) @if row.is_best { ", chosen" } }
        }
    };
    svg(
        right + DRAW,
        bottom + 36.0,
        &format!("Gains of the arms of {title} over the first one, with their 95 % intervals"),
        inside,
    )
}

/// Where the axis begins and ends.
fn ends(arms: &[Row]) -> [f64; 2] {
    let known = || arms.iter().filter_map(|row| row.gain);
    let least = known().map(|gain| gain.value).fold(1.0, f64::min);
    let most = known().map(|gain| gain.value).fold(1.0, f64::max);
    let low = known().map(|gain| gain.low).fold(least, f64::min);
    let high = known().map(|gain| gain.high).fold(most, f64::max);
    let (low, high) = (low.max(least / BEYOND), high.min(most * BEYOND));
    [(low / 1.02).min(0.95), (high * 1.02).max(1.05)]
}

fn numbers(title: &str, arms: &[Row]) -> Markup {
    let head = [
        ("arm", Column::Words),
        ("gain over the first arm", Column::Number),
        ("95 % interval", Column::Number),
        ("next draw", Column::Number),
        ("chosen", Column::Words),
    ];
    let rows = html! {
        @for row in arms {
            tr {
                th scope="row" { (row.arm.name) }
                @match row.gain {
                    Some(gain) => { td.n { (factor(gain.value)) } td.n { (factor(gain.low)) " to " (factor(gain.high)) } }
                    None => { td.n { (UNKNOWN) } td.n { (UNKNOWN) } }
                }
                td.n { (percent(row.arm.probability)) }
                td { @if row.is_best { "chosen" } }
            }
        }
    };
    table(&format!("The arms of {title}"), &head, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levers::tests::lever;

    #[test]
    fn each_arm_has_a_row_the_chosen_one_is_marked_and_names_are_words() {
        let mut one = lever();
        one.arms[0].name = "<b>contiguous</b>".to_owned();
        one.program = "<i>app".to_owned();
        let page = section(&[one]).into_string();
        assert!(!page.contains("<b>") && !page.contains("<i>"), "{page}");
        assert!(page.contains("&lt;i&gt;app at 4 nodes x 2, size 8 to 16"));
        for arm in ["&lt;b&gt;contiguous&lt;/b&gt;", "lpt", "cplx:50"] {
            assert!(page.contains(&format!(">{arm}</text>")), "{arm}: {page}");
            assert!(
                page.contains(&format!("<th scope=\"row\">{arm}</th>")),
                "{arm}"
            );
        }
        assert!(page.contains("openmpi-4.1.4 on 8 ranks: lpt is chosen after 90 epochs, 1.200"));
        assert!(page.contains("Not settled") && page.contains("50\u{a0}%, chosen</text>"));
        assert_eq!(page.matches("<g class=\"dot best\">").count(), 1);
        assert!(page.contains("aria-label=\"Gains of the arms of placement"));
    }

    #[test]
    fn what_is_not_known_has_words_and_no_bar_and_what_is_far_away_is_cut_off() {
        let mut one = lever();
        let drawn = |one: &LearnedLever| {
            let page = section(std::slice::from_ref(one)).into_string();
            let bars = page.matches("<g class=\"dot").count();
            (bars, page.matches("not yet known</text>").count(), page)
        };
        let (bars, unknown, page) = drawn(&one);
        assert_eq!((bars, unknown), (2, 1));
        assert!(!page.contains("17976931") && !page.contains("down to"));
        one.arms[2].gain = [1.1, 0.1, 90.0];
        let (bars, unknown, page) = drawn(&one);
        assert_eq!((bars, unknown), (3, 0));
        assert!(page.contains("down to 0.10") && page.contains("up to 90.0"));
        // A program that asked alone knows nothing but its first arm.
        one.arms[1].gain = [1.0, 0.0, f64::MAX];
        one.arms.truncate(2);
        assert_eq!(drawn(&one).0, 1);
    }

    #[test]
    fn places_and_arms_beyond_the_most_are_counted() {
        let mut many = vec![lever(); PLACES_MAX + 2];
        many[21].epochs = 91;
        many[21].arms = vec![many[21].arms[1].clone(); ARMS_MAX + 1];
        let page = section(&many).into_string();
        assert!(page.contains("Not shown: 2 places with fewer epochs."));
        let (first, _) = page.split_once("lever-1").expect("a second one");
        assert!(first.contains("Not shown: 1 arm.") && first.contains("91 epochs"));
    }
}
