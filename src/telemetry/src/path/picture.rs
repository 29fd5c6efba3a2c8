//! A window as a picture: a lane for each rank on its path.

use maud::{Markup, html};

use super::walk::{Part, Path, Piece};
use crate::drawing::{self, ticks};
use crate::text::time;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = WIDTH - 44.0;
const LANE: f64 = 44.0;
const BAR: f64 = 28.0;
const TOP: f64 = 76.0;

fn colour(part: Part) -> &'static str {
    // The palette of Okabe and Ito, which colour-blind readers tell apart.
    match part {
        Part::Work => "#0072b2",
        Part::Post => "#e69f00",
        Part::Copy => "#f0e442",
        Part::Transit => "#d55e00",
        Part::Wait => "#999999",
        Part::Unpack => "#009e73",
    }
}

/// The path as SVG, time from left to right.
pub fn svg(path: &Path) -> String {
    let ranks: Vec<u32> = path.ranks().into_iter().collect();
    let begin = path.pieces.first().map_or(0, |piece| piece.begin);
    let last = path.pieces.last();
    let len = last
        .map_or(1, |piece| piece.end.saturating_sub(begin))
        .max(1) as f64;
    let bottom = TOP + LANE * ranks.len() as f64;
    let at = |ns: f64| LEFT + (RIGHT - LEFT) * ns / len;
    let x = |ns: i64| at(ns.saturating_sub(begin) as f64);
    let lane = |rank: u32| ranks.iter().position(|r| *r == rank).unwrap_or(0) as f64;
    let y = |rank: u32| TOP + LANE * lane(rank);
    let title = format!(
        "The critical path before the collective in step {}, window {}: {} over {}",
        path.step,
        path.window,
        time(path.len() as f64),
        match ranks.len() {
            1 => "1 rank".to_owned(),
            n => format!("{n} ranks"),
        }
    );
    let piece = |piece: &Piece| -> Markup {
        let took = time(piece.end.saturating_sub(piece.begin) as f64);
        let name = format!("rank {}: {} {took}", piece.rank, piece.part.name());
        let (x1, x2) = (x(piece.begin), x(piece.end));
        html! {
            @if piece.part == Part::Transit {
                line x1=(px(x1)) y1=(y(piece.from) + BAR / 2.0) x2=(px(x2)) y2=(y(piece.rank) + BAR / 2.0)
                    stroke=(colour(piece.part)) stroke-width="3" { title { (name) ", from rank " (piece.from) } }
            } @else {
                rect x=(px(x1)) y=(y(piece.rank)) width=(px((x2 - x1).max(1.0))) height=(BAR) fill=(colour(piece.part)) {
                    title { (name) }
                }
            }
        }
    };
    let there: Vec<Part> = Part::ALL
        .into_iter()
        .filter(|part| path.pieces.iter().any(|piece| piece.part == *part))
        .collect();
    let inside = html! {
        @for (nth, part) in there.iter().enumerate() {
            rect x=(LEFT + 120.0 * nth as f64) y="42" width="14" height="14" fill=(colour(*part)) {}
            text x=(LEFT + 120.0 * nth as f64 + 20.0) y="54" { (part.name()) }
        }
        @for tick in ticks(len) {
            line.line x1=(px(at(tick))) x2=(px(at(tick))) y1=(TOP - 6.0) y2=(bottom) {}
            text.soft x=(px(at(tick))) y=(bottom + 16.0) text-anchor="middle" { (at_axis(tick)) }
        }
        @for rank in &ranks {
            text x="12" y=(y(*rank) + 19.0) { "rank " (rank) }
        }
        @for p in &path.pieces { (piece(p)) }
    };
    drawing::svg(WIDTH, bottom + 28.0, &title, inside)
}

/// A round time, without digits that say nothing.
fn at_axis(ns: f64) -> String {
    let text = time(ns);
    match text.split_once(' ') {
        Some(("0", _)) => "0".to_owned(),
        Some((digits, unit)) if digits.contains('.') => {
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits} {unit}")
        }
        _ => text,
    }
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_at_the_axis_are_short() {
        let said = [0.0, 1e7, 2.5e6, 2e5, 500.0].map(at_axis);
        assert_eq!(said, ["0", "10 ms", "2.5 ms", "200 us", "500 ns"]);
    }
}
