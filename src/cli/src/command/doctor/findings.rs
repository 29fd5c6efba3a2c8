//! What `colltune doctor` finds: one line per check as it goes, or all of it as JSON at the end.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use colltune_output::{json, tell};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "fail",
        }
    }

    const fn style(self) -> Style {
        let color = match self {
            Verdict::Ok => AnsiColor::Green,
            Verdict::Warn => AnsiColor::Yellow,
            Verdict::Fail => AnsiColor::Red,
        };
        color.on_default()
    }
}

#[derive(Serialize)]
struct Finding {
    verdict: Verdict,
    found: String,
    /// The command or the step that mends it; there is one wherever something is not well.
    remedy: Option<String>,
}

/// All findings so far.
pub struct Findings {
    as_json: bool,
    all: Vec<Finding>,
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    checks: &'a [Finding],
}

impl Findings {
    pub fn new(as_json: bool) -> Findings {
        let all = Vec::new();
        Findings { as_json, all }
    }

    pub fn ok(&mut self, found: impl std::fmt::Display) {
        self.add(Verdict::Ok, found.to_string(), None);
    }

    pub fn warn(&mut self, found: impl std::fmt::Display, remedy: impl std::fmt::Display) {
        self.add(Verdict::Warn, found.to_string(), Some(remedy.to_string()));
    }

    pub fn fail(&mut self, found: impl std::fmt::Display, remedy: impl std::fmt::Display) {
        self.add(Verdict::Fail, found.to_string(), Some(remedy.to_string()));
    }

    /// Whether a check failed; what is for programs is printed now.
    pub fn end(&self) -> anyhow::Result<bool> {
        if self.as_json {
            let checks = &self.all;
            json(&Json { schema: 1, checks })?;
        }
        Ok(self.all.iter().any(|one| one.verdict == Verdict::Fail))
    }

    fn add(&mut self, verdict: Verdict, found: String, remedy: Option<String>) {
        if !self.as_json {
            let style = verdict.style();
            let remedy = remedy
                .as_ref()
                .map_or_else(String::new, |remedy| format!("; {remedy}"));
            tell(format_args!(
                "{style}{:4}{style:#}  {found}{remedy}",
                verdict.word()
            ));
        }
        self.all.push(Finding {
            verdict,
            found,
            remedy,
        });
    }
}
