//! What pictures have in common: words and grounds by day and by night, as in the report's page.

use maud::{Markup, PreEscaped, html};

const STYLE: &str = "text{fill:#1b1f24}.ground{fill:#fff}.soft{fill:#57606a}.line{stroke:#d0d7de}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#12161b}.soft{fill:#a3adb8}.line{stroke:#3a434d}}";

/// A picture of so many pixels with its title above.
pub fn svg(width: f64, height: f64, title: &str, inside: Markup) -> String {
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}"))
            role="img" font-family="system-ui,sans-serif" font-size="13" {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.ground width=(width) height=(height) {}
            text x="12" y="26" font-size="17" { (title) }
            (inside)
        }
    };
    markup.into_string()
}

/// Round numbers from 0 to below `end`, some four to nine of them.
pub fn ticks(end: f64) -> Vec<f64> {
    if end.is_nan() || end <= 0.0 || end.is_infinite() {
        return vec![0.0];
    }
    let power = 10f64.powf((end / 4.0).log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|times| times * power);
    let fits = |step: &f64| end / step <= 9.0;
    let step = steps.into_iter().find(fits).unwrap_or(10.0 * power);
    let ticks = (0..10).map(|place| f64::from(place) * step);
    ticks.take_while(|tick| *tick < end).collect()
}

/// Bytes in a few letters.
pub fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        b if b >= (1u64 << 30) as f64 => format!("{:.1} GiB", bytes / (1u64 << 30) as f64),
        b if b >= (1u64 << 20) as f64 => format!("{:.1} MiB", bytes / (1u64 << 20) as f64),
        b if b >= 1024.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_round_and_below_the_end() {
        assert_eq!(ticks(8.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(ticks(128.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]);
        for end in [0.03, 1.0, 17.0, 4e9] {
            let found = ticks(end);
            assert!((4..=10).contains(&found.len()), "{end}: {found:?}");
            assert!(found.iter().all(|tick| *tick < end), "{end}: {found:?}");
        }
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ticks(odd), [0.0]);
        }
    }

    #[test]
    fn bytes_have_units() {
        let said = [12.0, 2048.0, 3e6, 5e9].map(bytes);
        assert_eq!(said, ["12 B", "2.0 KiB", "2.9 MiB", "4.7 GiB"]);
    }
}
