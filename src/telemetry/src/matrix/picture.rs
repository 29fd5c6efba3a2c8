//! The matrix as a heat map.

use maud::html;

use super::Matrix;

const EDGE: f64 = 640.0;
const MARGIN: f64 = 70.0;
/// Squares along an edge; ranks share one where there are more.
const SQUARES_MAX: u32 = 256;

/// Bytes by giver (rows) and taker (columns), the darker the more, on a logarithmic scale.
pub fn svg(matrix: &Matrix) -> String {
    let per_square = matrix.n_ranks.div_ceil(SQUARES_MAX).max(1);
    let n = matrix.n_ranks.div_ceil(per_square).max(1);
    let mut sums = std::collections::BTreeMap::new();
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
    let title = format!(
        "Bytes a step by giver and taker, {} ranks, steps {} to {}",
        matrix.n_ranks, matrix.steps[0], matrix.steps[1]
    );
    let at = |square: u32| MARGIN + edge * f64::from(square);
    let (width, height) = (EDGE + 2.0 * MARGIN + 60.0, EDGE + 2.0 * MARGIN);
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) role="img"
            font-family="sans-serif" font-size="13" {
            title { (title) }
            rect width=(width) height=(height) fill="white" {}
            text x=(MARGIN) y="24" font-size="15" { (title) }
            text x=(MARGIN) y=(MARGIN - 12.0) { "to rank 0" }
            text x=(MARGIN + EDGE) y=(MARGIN - 12.0) text-anchor="end" { (matrix.n_ranks.saturating_sub(1)) }
            text x="8" y=(MARGIN + 14.0) { "from 0" }
            text x="8" y=(MARGIN + EDGE) { (matrix.n_ranks.saturating_sub(1)) }
            rect x=(MARGIN) y=(MARGIN) width=(EDGE) height=(EDGE) fill="none" stroke="#888" {}
            @for (&(from, to), &bytes) in &sums {
                rect x=(format!("{:.2}", at(to))) y=(format!("{:.2}", at(from))) width=(format!("{edge:.2}"))
                    height=(format!("{edge:.2}")) fill=(shade(bytes)) {
                    title { (from * per_square) " to " (to * per_square) ": " (format!("{bytes:.0}")) " bytes a step" }
                }
            }
            @for nth in 0..=16u32 {
                rect x=(MARGIN + EDGE + 20.0) y=(MARGIN + 12.0 * f64::from(16 - nth)) width="16" height="12"
                    fill=(colour(f64::from(nth) / 16.0)) {}
            }
            text x=(MARGIN + EDGE + 42.0) y=(MARGIN + 12.0) { (format!("{most:.1e}")) }
            text x=(MARGIN + EDGE + 42.0) y=(MARGIN + 204.0) { (format!("{least:.1e}")) }
        }
    };
    markup.into_string()
}

/// From light to dark: even steps for the eye, in print and for colour-blind readers.
fn colour(share: f64) -> String {
    const STOPS: [[f64; 3]; 3] = [
        [237.0, 248.0, 251.0],
        [65.0, 155.0, 190.0],
        [8.0, 40.0, 95.0],
    ];
    let at = share.clamp(0.0, 1.0) * 2.0;
    let (low, part) = ((at.floor() as usize).min(1), at - at.floor().min(1.0));
    let of = |i: usize| STOPS[low][i] + part * (STOPS[low + 1][i] - STOPS[low][i]);
    format!("#{:02x}{:02x}{:02x}", of(0) as u8, of(1) as u8, of(2) as u8)
}
