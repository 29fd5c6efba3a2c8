//! What a study found, number by number.

use serde::Serialize;

use super::figure::Figure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Inside the tolerance.
    Reproduced,
    /// The order holds, the values do not.
    ShapeOnly,
    NotReproduced,
    /// A number that was set, or shown without a claim.
    NotJudged,
}

impl Verdict {
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::ShapeOnly => "shape only",
            Verdict::NotReproduced => "not reproduced",
            Verdict::NotJudged => "not judged",
        }
    }
}

/// One number of a figure, or a row of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub id: &'static str,
    pub what: String,
    /// One for each place of the row; none where the paper has no number.
    pub paper: Vec<Option<f64>>,
    pub ours: Vec<f64>,
    pub tolerance: String,
    pub verdict: Verdict,
    /// What was set instead of predicted.
    pub note: String,
}

/// A study as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    pub name: &'static str,
    pub source: &'static str,
    pub columns: Vec<String>,
    pub findings: Vec<Finding>,
    pub assumptions: Vec<String>,
    pub figures: Vec<Figure>,
}

impl Verdict {
    /// Reproduced, or not at all.
    pub fn of(holds: bool) -> Verdict {
        match holds {
            true => Verdict::Reproduced,
            false => Verdict::NotReproduced,
        }
    }

    /// Reproduced where the values are near enough, and a shape where only the order holds.
    pub fn of_both(values: bool, order: bool) -> Verdict {
        match (values, order) {
            (true, true) => Verdict::Reproduced,
            (false, true) => Verdict::ShapeOnly,
            (_, false) => Verdict::NotReproduced,
        }
    }
}

/// Whether all of ours lie within so many points of the paper's.
pub fn within(paper: &[Option<f64>], ours: &[f64], points: f64) -> bool {
    let pairs = paper.iter().zip(ours);
    pairs
        .filter_map(|(paper, ours)| Some((paper.as_ref()?, ours)))
        .all(|(paper, ours)| (paper - ours).abs() <= points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_within_if_each_of_its_numbers_is() {
        let paper = [Some(50.0), None, Some(20.0)];
        assert!(within(&paper, &[51.0, 99.0, 19.0], 1.0));
        assert!(!within(&paper, &[51.1, 99.0, 19.0], 1.0));
    }
}
