//! The matrix as a heat map.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::Matrix;
use crate::drawing::{self, bytes, ticks};

const EDGE: f64 = 640.0;
const LEFT: f64 = 76.0;
const TOP: f64 = 84.0;
/// Right of the map: the colours and what they mean.
const BESIDE: f64 = 130.0;
/// Squares along an edge; ranks share one where there are more.
const SQUARES_MAX: u32 = 256;
const SHADES: u32 = 16;

/// Bytes by giver (rows) and taker (columns), the darker the more, on a logarithmic scale.
pub fn svg(matrix: &Matrix) -> String {
    let per_square = matrix.n_ranks.div_ceil(SQUARES_MAX).max(1);
    let n = matrix.n_ranks.div_ceil(per_square).max(1);
    let mut sums = BTreeMap::new();
    for cell in &matrix.cells {
        let key = (cell.from / per_square, cell.to / per_square);
        *sums.entry(key).or_insert(0.0) += cell.bytes;
    }
    let most = sums.values().copied().fold(1.0, f64::max);
    let least = sums
        .values()
        .copied()
        .filter(|x| *x > 0.0)
        .fold(most, f64::min);
    let edge = EDGE / f64::from(n);
    let shade = |bytes: f64| {
        let share = match most > least {
            true => (bytes.max(least) / least).ln() / (most / least).ln(),
            false => 1.0,
        };
        colour(share)
    };
    let n_ranks = matrix.n_ranks;
    let (title, span) = match matrix.steps {
        Some([first, last]) => (
            format!(
                "Who gives how much to whom in a step: {n_ranks} ranks, steps {first} to {last}"
            ),
            "in a step",
        ),
        None => (
            format!("Who sends how much to whom: {n_ranks} ranks"),
            "in all",
        ),
    };
    let ranks = |square: u32| {
        let first = square * per_square;
        let last = (first + per_square - 1).min(matrix.n_ranks.saturating_sub(1));
        match first < last {
            true => format!("ranks {first} to {last}"),
            false => format!("rank {first}"),
        }
    };
    let inside = html! {
        // The colours are those of a light ground.
        rect x=(LEFT) y=(TOP) width=(EDGE) height=(EDGE) fill="#fff" stroke="#888" {}
        @for (&(from, to), &sum) in &sums {
            rect x=(format!("{:.2}", LEFT + edge * f64::from(to))) y=(format!("{:.2}", TOP + edge * f64::from(from)))
                width=(format!("{edge:.2}")) height=(format!("{edge:.2}")) fill=(shade(sum)) {
                title { (ranks(from)) " to " (ranks(to)) ": " (bytes(sum)) ", " (format!("{sum:.0}")) " bytes" (if matrix.steps.is_some() { " a step" } else { "" }) }
            }
        }
        (axes(matrix.n_ranks, edge / f64::from(per_square)))
        (scale(least, most, span))
    };
    let (width, height) = (LEFT + EDGE + BESIDE, TOP + EDGE + 20.0);
    drawing::svg(width, height, &title, inside)
}

/// Numbers of ranks above and at the left, in the middle of their rows and columns; a rank is `edge` wide.
fn axes(n_ranks: u32, edge: f64) -> Markup {
    let ticks: Vec<f64> = ticks(f64::from(n_ranks.max(1)));
    let ticks = ticks.into_iter().filter(|tick| tick.fract() == 0.0);
    let ticks: Vec<(f64, f64)> = ticks.map(|tick| (tick, edge * (tick + 0.5))).collect();
    let middle = TOP + EDGE / 2.0;
    html! {
        text.soft x=(LEFT + EDGE / 2.0) y=(TOP - 28.0) text-anchor="middle" { "to rank" }
        text.soft x="20" y=(middle) text-anchor="middle" transform=(format!("rotate(-90 20 {middle})")) { "from rank" }
        @for (rank, at) in ticks {
            text x=(format!("{:.1}", LEFT + at)) y=(TOP - 8.0) text-anchor="middle" { (rank) }
            text x=(LEFT - 8.0) y=(format!("{:.1}", TOP + at + 4.5)) text-anchor="end" { (rank) }
        }
    }
}

/// The colours from the least to the most, and white for none.
fn scale(least: f64, most: f64, span: &str) -> Markup {
    const TALL: f64 = 12.0;
    let (x, top) = (LEFT + EDGE + 20.0, TOP + 20.0);
    let words = x + 24.0;
    let end = top + TALL * f64::from(SHADES + 1);
    // In the middle of a scale of powers.
    let middle = (least * most).sqrt();
    html! {
        text.soft x=(x) y=(top - 8.0) { (span) }
        @for nth in 0..=SHADES {
            rect x=(x) y=(top + TALL * f64::from(SHADES - nth)) width="16" height=(TALL + 0.5)
                fill=(colour(f64::from(nth) / f64::from(SHADES))) {}
        }
        text x=(words) y=(top + 10.0) { (bytes(most)) }
        @if most > least {
            text x=(words) y=((top + end) / 2.0 + 4.0) { (bytes(middle)) }
            text x=(words) y=(end - 1.0) { (bytes(least)) }
        }
        rect x=(x) y=(end + 12.0) width="16" height=(TALL) fill="#fff" stroke="#888" {}
        text x=(words) y=(end + 22.5) { "nothing" }
    }
}

/// From light to dark: even steps for the eye, in print and for colour-blind readers.
fn colour(share: f64) -> String {
    const STOPS: [[f64; 3]; 3] = [
        [214.0, 234.0, 243.0],
        [65.0, 155.0, 190.0],
        [8.0, 40.0, 95.0],
    ];
    let at = share.clamp(0.0, 1.0) * 2.0;
    let (low, part) = ((at.floor() as usize).min(1), at - at.floor().min(1.0));
    let of = |i: usize| STOPS[low][i] + part * (STOPS[low + 1][i] - STOPS[low][i]);
    format!("#{:02x}{:02x}{:02x}", of(0) as u8, of(1) as u8, of(2) as u8)
}
