//! What is reported of each study: published figures beside ours.

use serde::Serialize;

/// All studies, and what is had elsewhere.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Evidence {
    /// Small studies, to see that they run.
    pub quick: bool,
    pub studies: Vec<Reproduction>,
    pub elsewhere: Vec<Elsewhere>,
}

/// One study, or why there is none.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    pub name: String,
    pub paper: String,
    pub command: String,
    /// None where it was measured before.
    pub seconds: Option<f64>,
    /// Errors: why it could not be run here.
    pub found: Result<Findings, String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    pub source: String,
    pub rows: Vec<Judged>,
    pub assumptions: Vec<String>,
}

/// One number of a figure, or a row of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Judged {
    pub id: String,
    pub what: String,
    /// None where the paper has no number.
    pub paper: Vec<Option<f64>>,
    pub ours: Vec<f64>,
    pub tolerance: String,
    pub verdict: String,
    pub note: String,
}

/// Figures that need more than this command: real jobs, or parts that are not built.
#[derive(Clone, Debug, Serialize)]
pub struct Elsewhere {
    pub ids: &'static str,
    pub what: &'static str,
    pub paper: &'static str,
    /// How they are had, or that they are not.
    pub how: &'static str,
}

impl Reproduction {
    /// How many rows have this verdict.
    pub fn count(&self, verdict: &str) -> usize {
        let rows = self.found.iter().flat_map(|findings| &findings.rows);
        rows.filter(|row| row.verdict == verdict).count()
    }
}
