//! What pictures of a study show, as values; whoever prints them draws them.

use serde::Serialize;

/// A picture with a name that a file can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub name: String,
    pub title: String,
    #[serde(flatten)]
    pub picture: Picture,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Picture {
    /// Bars side by side, of equal parts.
    Bars { y: &'static str, bars: Vec<Bar> },
    /// Lines over x by powers.
    Lines {
        x: &'static str,
        y: &'static str,
        lines: Vec<Line>,
    },
    /// Lines over whole numbers.
    Levels {
        x: &'static str,
        y: &'static str,
        lines: Vec<Line>,
    },
    /// Who gives how much to whom: `values[from * n + to]`.
    Matrix {
        n: usize,
        what: &'static str,
        values: Vec<u64>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    pub name: String,
    pub parts: Vec<(&'static str, f64)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}
