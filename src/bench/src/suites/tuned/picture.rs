//! The times of all cells over the message size, a panel per collective.

use colltune_core::collective::Collective;
use colltune_lab::plot::{Band, Figure, Line, Panel, Scale, svg};
use colltune_statistics::median;

use super::super::choices::Choices;
use super::super::jobs::Cell;
use super::super::ways::{DEFAULT_WAY, MEASURED, TUNED_WAY};

/// Median times of a call, bare library against tuned, as SVG.
pub fn picture(place: &str, cells: &[Cell], choices: &Choices) -> anyhow::Result<String> {
    let line = |name: &str, way: usize, collective: Collective| Line {
        name: name.to_owned(),
        points: cells
            .iter()
            .filter(|(of, _)| *of == collective)
            .map(|&cell| (cell.1 as f64, median(choices.of(way, cell)) / 1e3))
            .collect(),
    };
    let panel = |collective: &Collective| Panel {
        title: collective.to_string(),
        x: "message, bytes",
        y: "us per call",
        scale: Scale::LogBoth,
        lines: vec![
            line("library's own choice", DEFAULT_WAY, *collective),
            line("tuned by colltune", TUNED_WAY, *collective),
        ],
    };
    let (above, below) = MEASURED.split_at(MEASURED.len().div_ceil(2));
    let band = |collectives: &[Collective]| Band {
        panels: collectives.iter().map(panel).collect(),
    };
    svg(&Figure {
        title: format!("Median time of a collective call\n{place}"),
        bands: vec![band(above), band(below)],
    })
}
