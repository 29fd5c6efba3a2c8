//! What a tuning says at its end, and where it stands when it is cut short.

use super::session::{Session, tables};
use super::state::{Choice, End, JOBS_MAX, State};
use colltune_core::catalogue;

use crate::command::compare::summary_of;
use crate::command::export;
use crate::command::output::print;
use crate::command::train::counted;
use crate::comparison::{Account, Verdict, percent, seconds};
use crate::failure::Stopped;

/// Where an earlier invocation was.
pub fn place(state: &State) -> String {
    let of_these = match (state.n_explored(), state.pairs.len()) {
        (0, _) => String::new(),
        (n_explored, 0) => format!(", {n_explored} of which tried variants"),
        (_, n_pairs) => format!(
            ", with {} of the comparison",
            counted(n_pairs as u64, "pair")
        ),
    };
    format!(
        "Going on where it was, after {}{of_these}.",
        counted(state.n_jobs() as u64, "job")
    )
}

/// What a training found, where that is news.
pub fn learned(state: &State) -> Option<String> {
    let (n_jobs, changed) = (state.n_learned(), state.n_changed());
    let after = match n_jobs {
        1 => "After 1 job that tried variants".to_owned(),
        _ => format!("After {n_jobs} jobs that tried variants"),
    };
    if state.is_stable() {
        return Some(format!(
            "{after}: what is chosen is stable, {}. Now with and without colltune.",
            chosen(state)
        ));
    }
    if n_jobs >= JOBS_MAX {
        return Some(format!(
            "{after} what is chosen still changes; it is compared as it is, {}.",
            chosen(state)
        ));
    }
    let so_far = || state.so_far().map_or_else(String::new, so_far);
    match changed {
        Some(0) => None,
        Some(_) => Some(format!("{after}: {}{}.", chosen(state), so_far())),
        None => Some(format!(
            "{after}: {}. (A cell is a collective with messages of some sizes, on so many nodes and ranks.)",
            chosen(state)
        )),
    }
}

fn chosen(state: &State) -> String {
    let choices = state.choices();
    let other = |choice: &&Choice| !catalogue::is_default(&choice.best);
    let n_cells = match choices.len() {
        1 => "the one cell that matters".to_owned(),
        n_cells => format!("the {n_cells} cells that matter"),
    };
    match choices.iter().filter(other).count() {
        0 => format!("the default in {n_cells}"),
        n_other if n_other == choices.len() => {
            format!("another variant than the default in {n_cells}")
        }
        n_other => format!("another variant than the default in {n_other} of {n_cells}"),
    }
}

/// How the newest jobs that explored did.
fn so_far(ratio: f64) -> String {
    format!("; jobs that try variants are {ratio:.2} times as fast as with the default")
}

/// An error with what is kept; one that says so itself is left as it is.
pub fn kept(error: anyhow::Error, session: &Session) -> anyhow::Error {
    let state = &session.kept.state;
    match error.downcast::<Stopped>() {
        Ok(stopped) if stopped.message.contains("is kept") => stopped.into(),
        Ok(Stopped { message, code }) => Stopped {
            message: format!(
                "{message}. What was done is kept, {}; the same line goes on from here",
                counted(state.n_jobs() as u64, "job")
            ),
            code,
        }
        .into(),
        Err(error) => error,
    }
}

/// The last words: what it gained, what it cost, where the tables are, and how to go on.
pub fn report(session: &Session, end: End) -> anyhow::Result<()> {
    let state = &session.kept.state;
    let cost = format!(
        "It cost {} and {}.\n",
        counted(state.n_jobs() as u64, "job"),
        seconds(state.spent_s)
    );
    if end == End::NothingToGain {
        return print(&format!(
            "Run the program as before; --anyway tunes it all the same. {cost}"
        ));
    }
    let mut text = String::new();
    if let Some(comparison) = state.comparison() {
        let told: Vec<_> = state
            .accounts
            .iter()
            .filter_map(|one| one.summary.clone())
            .collect();
        let with = Account::of(&session.with);
        text += &summary_of(&comparison, state.pairs.len(), &Account::of(&told), &with);
    }
    text += &cost;
    if let Some(ratio) = state.exploring() {
        text += &match ratio {
            slower if slower > 1.0 => format!(
                "The jobs that tried variants took {} longer than with the default.\n",
                percent(slower - 1.0)
            ),
            faster => format!(
                "The jobs that tried variants took {} less time than with the default.\n",
                percent(1.0 - faster)
            ),
        };
    }
    for (folder, n_rules) in export::every(session.db.root(), &tables(&session.db))? {
        text += &match n_rules {
            0 => {
                "No table: no algorithm of the MPI library's own replaces its default.\n".to_owned()
            }
            _ => format!(
                "Tables for jobs without colltune ({} with another algorithm than the default): . {}/activate.sh\n",
                counted(n_rules as u64, "cell"),
                folder.display()
            ),
        };
    }
    let line = session.trials.line.iter();
    let line: Vec<_> = line.map(|word| quoted(&word.to_string_lossy())).collect();
    // Nobody should preload for nothing.
    let gained = state
        .comparison()
        .is_some_and(|found| found.verdict == Verdict::Faster);
    let advice = match gained {
        true => "From now on",
        false => "No gain is shown, so run the program as before; what was chosen runs by",
    };
    let told = session.trials.tuner.mpi.as_deref();
    let mpi = told.map_or_else(String::new, |library| format!("--mpi {library} "));
    text += &format!(
        "{advice}: colltune run --db {} --mode exploit {mpi}-- {}\n",
        quoted(&session.db.root().to_string_lossy()),
        line.join(" ")
    );
    print(&text)
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
