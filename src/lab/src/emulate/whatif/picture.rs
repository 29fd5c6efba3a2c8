//! Which lever gives more, by cells to a block's edge and by ranks.

use std::fmt::Write as _;

use super::case::Case;

const STYLE: &str = "text{fill:#1b1f24}.ground{fill:#fff}.tile{fill:#1b1f24}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#12161b}.tile{fill:#1b1f24}}";
const PLACEMENT: &str = "#4a90d9";
const ALGORITHM: &str = "#e8912d";
/// A lever that gives less than this share gives nothing.
const LEAST: f64 = 0.001;
const WIDE: f64 = 232.0;
const TALL: f64 = 116.0;
const LEFT: f64 = 92.0;
const TOP: f64 = 92.0;

fn sorted<T: Ord + Copy>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A tile for each case: its colour is that of the lever that gives more, the darker the more it gives.
pub fn svg(cases: &[Case], title: &str) -> String {
    let columns = sorted(cases.iter().map(|case| case.ranks));
    let rows = sorted(cases.iter().map(|case| case.cells));
    let width = (LEFT + WIDE * columns.len() as f64 + 20.0).max(720.0);
    let bottom = TOP + TALL * rows.len() as f64;
    let height = bottom + 76.0;
    let title = escaped(title);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"system-ui,sans-serif\" font-size=\"13\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n\
         <text x=\"12\" y=\"26\" font-size=\"17\">{title}</text>\n\
         <text x=\"{LEFT}\" y=\"54\">ranks</text>\n<text x=\"12\" y=\"{}\">cells</text>\n",
        TOP - 14.0
    );
    for (column, ranks) in columns.iter().enumerate() {
        let x = LEFT + WIDE * (column as f64 + 0.5);
        let y = TOP - 14.0;
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{ranks}</text>"
        );
    }
    for (row, cells) in rows.iter().enumerate() {
        let y = TOP + TALL * (row as f64 + 0.5) + 5.0;
        let name = cells.map_or_else(|| "own".to_owned(), |n| format!("{n}^3"));
        let _ = writeln!(text, "<text x=\"12\" y=\"{y}\">{name}</text>");
    }
    for case in cases {
        let column = columns.binary_search(&case.ranks).expect("one of them");
        let row = rows.binary_search(&case.cells).expect("one of them");
        let at = (LEFT + WIDE * column as f64, TOP + TALL * row as f64);
        tile(&mut text, at, case);
    }
    let y = bottom + 30.0;
    for (nth, (colour, words)) in [
        (PLACEMENT, "placement gives more"),
        (ALGORITHM, "the algorithm gives more"),
        ("#ffffff", "neither gives anything"),
    ]
    .iter()
    .enumerate()
    {
        let x = LEFT + 204.0 * nth as f64;
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{colour}\" stroke=\"#767676\"/>\
             <text x=\"{}\" y=\"{y}\">{words}</text>",
            y - 12.0,
            x + 20.0
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"12\" y=\"{}\">Shares are of today's time; a colour is full from half of it on. Below them stands the \
         best pair.</text>",
        y + 28.0
    );
    text + "</svg>\n"
}

fn tile(text: &mut String, (x, y): (f64, f64), case: &Case) {
    let levers = &case.levers;
    let (colour, gain) = match levers.placement >= levers.algorithm {
        true => (PLACEMENT, levers.placement),
        false => (ALGORITHM, levers.algorithm),
    };
    // Half of the time is as dark as it gets.
    let shade = match gain > LEAST {
        true => 0.2 + 0.8 * (2.0 * gain).min(1.0),
        false => 0.0,
    };
    let _ = writeln!(
        text,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDE}\" height=\"{TALL}\" fill=\"#ffffff\" stroke=\"#767676\"/>\
         <rect class=\"case\" x=\"{x}\" y=\"{y}\" width=\"{WIDE}\" height=\"{TALL}\" fill=\"{colour}\" \
         fill-opacity=\"{shade:.2}\"/>"
    );
    let lines = [
        format!("placement {:.1} %", 100.0 * levers.placement),
        format!("algorithm {:.1} %", 100.0 * levers.algorithm),
        format!("both {:.1} %", 100.0 * levers.both),
        levers.best_policy.clone(),
        levers.best_variant.clone(),
    ]
    .map(|line| escaped(&line));
    for (nth, line) in lines.iter().enumerate() {
        let _ = writeln!(
            text,
            "<text class=\"tile\" x=\"{}\" y=\"{}\">{line}</text>",
            x + 12.0,
            y + 24.0 + 20.0 * nth as f64
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_emulate::whatif::Grid;

    fn case(cells: u32, ranks: usize, total_s: [[f64; 2]; 2]) -> Case {
        let grid = Grid {
            policies: vec!["a".to_owned(), "b".to_owned()],
            variants: vec!["c".to_owned(), "d".to_owned()],
            total_s: total_s.map(Vec::from).to_vec(),
        };
        Case {
            cells: Some(cells),
            ranks,
            levers: grid.levers(),
            grid,
        }
    }

    #[test]
    fn a_tile_has_the_colour_of_the_lever_that_gives_more() {
        let cases = [
            case(4, 8, [[10.0, 5.0], [9.0, 4.5]]),
            case(16, 8, [[10.0, 9.0], [5.0, 4.5]]),
            case(16, 64, [[10.0, 10.0], [10.0, 10.0]]),
        ];
        let text = svg(&cases, "a < b");
        let tiles: Vec<&str> = text
            .split("class=\"case\"")
            .skip(1)
            .map(|tile| tile.split("/>").next().expect("a tile"))
            .collect();
        assert!(tiles[0].contains(ALGORITHM) && tiles[0].contains("\"1.00\""));
        assert!(tiles[1].contains(PLACEMENT) && tiles[1].contains("\"1.00\""));
        assert!(
            tiles[2].contains("\"0.00\""),
            "nothing is gained: {}",
            tiles[2]
        );
        assert!(text.contains("16^3") && text.contains("a &lt; b"));
        let named = |name: &str| text.matches(&format!(">{name}</text>")).count();
        assert_eq!(
            (named("b"), named("d")),
            (2, 2),
            "the best pair, where anything is gained"
        );
    }
}
