//! A window as a picture: a lane for each rank on its path.

use maud::{Markup, html};

use super::walk::{Part, Path, Piece};
use crate::text::time;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const LANE: f64 = 44.0;
const TOP: f64 = 64.0;

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
    let end = path
        .pieces
        .last()
        .map_or(1, |piece| piece.end)
        .max(begin + 1);
    let height = TOP + LANE * ranks.len() as f64 + 40.0;
    let x = |at: i64| LEFT + (WIDTH - LEFT - 20.0) * (at - begin) as f64 / (end - begin) as f64;
    let lane = |rank: u32| ranks.iter().position(|r| *r == rank).unwrap_or(0) as f64;
    let y = |rank: u32| TOP + LANE * lane(rank);
    let title = format!(
        "Critical path of step {}, window {}: {} over {} ranks",
        path.step,
        path.window,
        time(path.len() as f64),
        ranks.len()
    );
    let piece = |piece: &Piece| -> Markup {
        let name = format!(
            "rank {}: {} {}",
            piece.rank,
            piece.part.name(),
            time((piece.end - piece.begin) as f64)
        );
        let (x1, x2) = (x(piece.begin), x(piece.end));
        html! {
            @if piece.part == Part::Transit {
                line x1=(x1) y1=(y(piece.from) + 14.0) x2=(x2) y2=(y(piece.rank) + 14.0)
                    stroke=(colour(piece.part)) stroke-width="3" { title { (name) } }
            } @else {
                rect x=(x1) y=(y(piece.rank)) width=((x2 - x1).max(1.0)) height="28" fill=(colour(piece.part)) {
                    title { (name) }
                }
            }
        }
    };
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            font-family="sans-serif" font-size="13" {
            title { (title) }
            rect width=(WIDTH) height=(height) fill="white" {}
            text x="10" y="20" font-size="15" { (title) }
            @for (nth, part) in Part::ALL.into_iter().enumerate() {
                rect x=(LEFT + 120.0 * nth as f64) y="32" width="14" height="14" fill=(colour(part)) {}
                text x=(LEFT + 120.0 * nth as f64 + 20.0) y="44" { (part.name()) }
            }
            @for rank in &ranks {
                text x="10" y=(y(*rank) + 19.0) { "rank " (rank) }
            }
            @for p in &path.pieces { (piece(p)) }
            text x=(LEFT) y=(height - 12.0) { "0" }
            text x=(WIDTH - 20.0) y=(height - 12.0) text-anchor="end" { (time((end - begin) as f64)) }
        }
    };
    markup.into_string()
}
