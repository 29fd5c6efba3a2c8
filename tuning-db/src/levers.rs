//! What the ledger says of a program's levers: which arms its runs had, and how long they took.

mod file;
pub use file::learned;

mod expected;
pub use expected::{Expected, expect};

mod asked;
pub(crate) use asked::learn;

use colltune_core::account::JobSummary;
use colltune_core::levers::Arms;
use colltune_models::levers::{Lever, Row};

use crate::database::Database;
use crate::dropped::Dropped;
use crate::runs;

/// Modes in which jobs run what was chosen.
const CHOSEN: [&str; 2] = ["exploit", "tables"];

/// Reads the newest runs of a line for levers with the arms that are offered now. Arms are known by name: others that ran
/// stand behind those. Runs on other nodes or ranks than the newest one are other programs.
pub fn rows(
    db: &Database,
    line_hash: &str,
    levers: &[(&str, &[String])],
) -> (Vec<Lever>, Vec<Row>) {
    // What cannot be read a training says.
    let dropped = Dropped::of(db);
    let is_of_line = |run: &JobSummary| {
        let has = |name: &str| run.levers.contains_key(name);
        let is_dropped = dropped.as_ref().is_ok_and(|dropped| dropped.has(&run.job));
        run.arguments_hash == line_hash && levers.iter().all(|(name, _)| has(name)) && !is_dropped
    };
    let mut found = runs::newest_and_waiting(db, is_of_line, &mut Vec::new());
    let layout = |run: &JobSummary| (run.ranks, run.nodes, run.machine.clone());
    if let Some(newest) = found.last().map(layout) {
        found.retain(|run| layout(run) == newest);
    }
    let mut names: Vec<Vec<String>> = levers.iter().map(|(_, arms)| arms.to_vec()).collect();
    let mut blocks = Vec::new();
    let mut rows = Vec::new();
    for run in &found {
        let time_s = run.whole_s.unwrap_or(run.wall_s);
        if time_s <= 0.0 {
            continue;
        }
        let block = (&run.mode, &run.library, run.whole_s.is_some());
        rows.push(Row {
            moment: None,
            work: 1.0,
            block: place(&mut blocks, block),
            arms: places(&mut names, levers, &run.levers),
            log_time: time_s.ln(),
        });
    }
    let ran_chosen = |run: &&JobSummary| CHOSEN.contains(&run.mode.as_str());
    let before = found.iter().rev().find(ran_chosen);
    let before = before.map(|run| places(&mut names, levers, &run.levers));
    let known = names.iter().zip(levers).enumerate();
    let known = known.map(|(lever, (names, (_, offered)))| Lever {
        n_arms: names.len(),
        n_offered: offered.len(),
        before: before.as_ref().map(|arms| arms[lever]),
    });
    (known.collect(), rows)
}

/// The first arms of a line's levers, as the newest run that only looked had them.
pub fn first_arms(db: &Database, line_hash: &str) -> Option<Arms> {
    let is_first = |run: &JobSummary| run.arguments_hash == line_hash && run.mode == "record";
    lines(db, is_first, |_| true).pop().map(|run| run.levers)
}

/// Of each line the newest of its runs with the most levers of these names, the newest line last.
pub fn lines(
    db: &Database,
    is_run: impl Fn(&JobSummary) -> bool,
    is_lever: impl Fn(&str) -> bool,
) -> Vec<JobSummary> {
    let n_levers = |run: &JobSummary| run.levers.keys().filter(|name| is_lever(name)).count();
    let has = |run: &JobSummary| is_run(run) && n_levers(run) > 0;
    let mut found: Vec<JobSummary> = Vec::new();
    for run in runs::newest_and_waiting(db, has, &mut Vec::new()) {
        let is_less = |other: &JobSummary| n_levers(other) > n_levers(&run);
        let is_same = |other: &JobSummary| other.arguments_hash == run.arguments_hash;
        if !found.iter().any(|other| is_same(other) && is_less(other)) {
            found.retain(|other| !is_same(other));
            found.push(run);
        }
    }
    found
}

fn places(names: &mut [Vec<String>], levers: &[(&str, &[String])], ran: &Arms) -> Vec<usize> {
    let levers = levers.iter().zip(names);
    let places = levers.map(|((name, _), names)| place(names, ran[*name].clone()));
    places.collect()
}

/// Where a value stands; it is added where it is new.
fn place<T: PartialEq>(values: &mut Vec<T>, value: T) -> usize {
    let known = values.iter().position(|other| *other == value);
    known.unwrap_or_else(|| {
        values.push(value);
        values.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use colltune_core::account::{JobFacts, KINDS};

    use super::*;

    #[test]
    fn runs_of_the_line_and_layout_tell_arms_by_name_and_whole_times_apart() {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::create_or_open(folder.path()).unwrap();
        let mut at = 0;
        let mut run = |hash: &str, arm: &str, mode: &str, ranks: u64, whole_s: Option<f64>| {
            at += 1;
            let facts = JobFacts {
                job: format!("job-{at}"),
                mode: mode.to_owned(),
                arguments_hash: hash.to_owned(),
                levers: Arms::from([("a".to_owned(), arm.to_owned())]),
                ranks,
                nodes: 1,
                ppn: ranks,
                started_unix_ms: at,
                wall_ns: 1_000_000_000,
                ..JobFacts::default()
            };
            let whole = JobSummary {
                whole_s,
                ..JobSummary::new(facts, &vec![Default::default(); KINDS])
            };
            std::fs::write(db.incoming().join(format!("job-{at}.run")), whole.line()).unwrap();
        };
        run("line", "y", "record", 4, None);
        run("line", "y", "explore", 4, None);
        run("line", "x", "record", 2, Some(2.0));
        run("other", "x", "explore", 2, None);
        run("line", "z", "exploit", 2, None);
        run("line", "y", "explore", 2, Some(3.0));
        let arms = ["x", "y"].map(str::to_owned);
        let (levers, rows) = rows(&db, "line", &[("a", &arms)]);
        let lever = (levers[0].n_arms, levers[0].n_offered, levers[0].before);
        assert_eq!(lever, (3, 2, Some(2)));
        let told: Vec<_> = rows.iter().map(|row| (row.block, row.arms[0])).collect();
        assert_eq!(told, [(0, 0), (1, 2), (2, 1)]);
        assert_eq!(rows[2].log_time, 3f64.ln());
        assert_eq!(first_arms(&db, "line").unwrap()["a"], "x");
    }
}
