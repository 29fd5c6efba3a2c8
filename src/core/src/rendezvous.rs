//! How ranks meet at the start: who asks the launcher how often, and what is said there.
//!
//! The ranks of a node that found each other are a group, and one of them asks for all. A group says hello under
//! its lowest rank. Rank 0 need not know any rank's node: the lowest rank that it has not heard of yet is always the
//! lowest of its own group, so the next name to look up is known, however ranks are spread over nodes. A rank that
//! met no other is a group of one.

use std::time::Duration;

/// What the launcher's one name server is asked at most in a second by all clients together, while they wait.
const LOOKUPS_PER_SECOND: u32 = 10_000;
const PAUSE_FIRST: Duration = Duration::from_micros(50);
const PAUSE_LAST: Duration = Duration::from_millis(10);
/// Room for a group's ranks in one hello; a name server may keep no more than 255 characters of all.
const RANKS_CHARACTERS: usize = 120;

/// What one group says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The name it is looked up by: the lowest of its ranks.
    pub lowest: u32,
    /// Its ranks, and what they all run: `1-127 colltune 0.1.0 for ...`.
    pub text: String,
}

/// The hellos of some ranks that run the same: as many as their ranks need room for.
///
/// Shape: `ranks` ascends; each rank is in one hello.
pub fn hellos(ranks: &[u32], identity: &str) -> Vec<Hello> {
    let mut hellos: Vec<Hello> = Vec::new();
    let mut begun: Option<(u32, String)> = None;
    for run in runs(ranks) {
        let text = run.text();
        begun = match begun {
            Some((lowest, before)) if before.len() + 1 + text.len() <= RANKS_CHARACTERS => {
                Some((lowest, format!("{before},{text}")))
            }
            full => {
                hellos.extend(full.map(|full| complete(full, identity)));
                Some((run.first, text))
            }
        };
    }
    hellos.extend(begun.map(|last| complete(last, identity)));
    hellos
}

fn complete((lowest, ranks): (u32, String), identity: &str) -> Hello {
    let text = format!("{ranks} {identity}");
    Hello { lowest, text }
}

/// Ranks at even distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    last: u32,
    step: u32,
}

impl Run {
    fn text(self) -> String {
        match self {
            Run { first, last, .. } if first == last => first.to_string(),
            Run {
                first,
                last,
                step: 1,
            } => format!("{first}-{last}"),
            Run { first, last, step } => format!("{first}-{last}/{step}"),
        }
    }

    fn parse(text: &str) -> Option<Run> {
        let (ends, step) = text.split_once('/').unwrap_or((text, "1"));
        let (first, last) = ends.split_once('-').unwrap_or((ends, ends));
        let (first, last, step) = (first.parse().ok()?, last.parse().ok()?, step.parse().ok()?);
        (first <= last && step > 0).then_some(Run { first, last, step })
    }
}

/// The fewest runs that a walk from the lowest rank on finds.
fn runs(ranks: &[u32]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some(run) if run.first == run.last => (run.last, run.step) = (rank, rank - run.first),
            Some(run) if rank - run.last == run.step => run.last = rank,
            _ => runs.push(Run {
                first: rank,
                last: rank,
                step: 1,
            }),
        }
    }
    // Two ranks far apart may belong to other runs better: as single ones they cost no more room.
    runs
}

/// Rank 0's list of whom it has heard of.
#[derive(Clone, Debug)]
pub struct RollCall {
    identity: String,
    heard: Vec<bool>,
    lowest_missing: u32,
}

impl RollCall {
    /// Rank 0 has heard of itself; `identity` is what it runs.
    pub fn new(n_ranks: u32, identity: &str) -> RollCall {
        let mut heard = vec![false; n_ranks as usize];
        heard[0] = true;
        RollCall {
            identity: identity.to_owned(),
            heard,
            lowest_missing: 1,
        }
    }

    /// The rank whose hello is to be looked up next; `None`: all are here.
    pub fn next(&self) -> Option<u32> {
        (self.lowest_missing < self.heard.len() as u32).then_some(self.lowest_missing)
    }

    /// Takes the hello that was found under `self.next()`.
    ///
    /// Errors: a sentence about who runs something else, or a hello that makes no sense.
    pub fn hear(&mut self, text: &str) -> Result<(), String> {
        let lowest = self.lowest_missing;
        let (ranks, identity) = text.split_once(' ').unwrap_or((text, ""));
        if identity != self.identity {
            let own = &self.identity;
            return Err(format!(
                "rank {lowest} runs with another build or other settings ({identity}) than rank 0 ({own})"
            ));
        }
        let parsed: Option<Vec<Run>> = ranks.split(',').map(Run::parse).collect();
        let runs = parsed
            .filter(|runs| {
                runs[0].first == lowest
                    && runs
                        .iter()
                        .all(|run| (run.last as usize) < self.heard.len())
            })
            .ok_or_else(|| format!("rank {lowest} answers with nonsense ({ranks})"))?;
        for run in runs {
            for rank in (run.first..=run.last).step_by(run.step as usize) {
                self.heard[rank as usize] = true;
            }
        }
        while self.heard.get(self.lowest_missing as usize) == Some(&true) {
            self.lowest_missing += 1;
        }
        Ok(())
    }
}

/// How long a client waits between two questions to the name server.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pause: Duration,
    least: Duration,
}

impl Pace {
    /// The pace of one of `n_clients` that all wait at the same time.
    pub fn of(n_clients: u32) -> Pace {
        let least = Duration::from_secs(1) * n_clients / LOOKUPS_PER_SECOND;
        Pace {
            pause: PAUSE_FIRST.max(least),
            least,
        }
    }

    /// The next pause: they grow to 10 ms, or to what keeps all clients together below the limit.
    pub fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_LAST).max(self.least);
        pause
    }
}

#[cfg(test)]
#[path = "rendezvous/tests.rs"]
mod tests;
