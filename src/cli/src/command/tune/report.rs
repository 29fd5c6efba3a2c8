//! What a tuning says at its end, and where it stands when it is cut short.

use std::path::{Path, PathBuf};

use colltune_core::levers::learned::LearnedLever;
use colltune_core::levers::{Arms, escaped};
use colltune_core::spelling::quoted;
use colltune_db::generation;
use colltune_statistics::Interval;
use serde::Serialize;

use super::session::{Session, tables};
use super::state::End;
use crate::asked;
use crate::command::compare::summary_of;
use crate::command::export;
use crate::command::lever;
use crate::command::train::counted;
use crate::command::verdict::{Judged, Vetoed};
use crate::comparison::{Account, Comparison, Verdict, seconds};
use crate::together::Round;
use colltune_launch::levers::filled;
use colltune_launch::nonblocking;
use colltune_output::failure::Stopped;
use colltune_output::{json, print};

/// An error with what is kept; one that says so itself is left as it is.
pub fn kept(error: anyhow::Error, session: &Session) -> anyhow::Error {
    let state = &session.kept.state;
    match error.downcast::<Stopped>() {
        Ok(stopped) if stopped.message.contains("is kept") => stopped.into(),
        Ok(Stopped { message, code }) => Stopped {
            message: format!(
                "{message}. What was done is kept, {}; run the same command again to continue",
                counted(state.n_jobs() as u64, "job")
            ),
            code,
        }
        .into(),
        Err(error) => error,
    }
}

/// The contents of `tune --json`.
#[derive(Serialize)]
struct Json {
    schema: u32,
    /// Of the levers what is chosen, by name.
    levers: Arms,
    /// What was learned of levers that the program asks about.
    asked: Vec<LearnedLever>,
    /// Whole times with neither, levers, collectives, both.
    rounds: Vec<Round>,
    database: PathBuf,
    end: End,
    /// Whether the choices stayed the same over the last trainings, and were not compared as they were.
    stable: bool,
    /// Over all invocations.
    jobs: usize,
    spent_s: f64,
    /// Null where nothing was compared.
    comparison: Option<Comparison>,
    account_without: Option<Account>,
    account_with: Option<Account>,
    /// Whole time of a job that tried variants over that of one with the default; null where too few ran to tell.
    exploring: Option<Interval>,
    tables: Vec<Tables>,
    /// What is withdrawn, as the program is slower with it.
    vetoed: Vec<Vetoed>,
    /// Why no verdict is recorded, or why nothing is withdrawn though the program is slower.
    why_not_vetoed: Option<String>,
    /// The line that runs what was chosen; null where nothing can be gained, or the program is slower.
    exploit: Option<String>,
}

/// Tables for jobs without colltune.
#[derive(Serialize)]
struct Tables {
    folder: PathBuf,
    /// Cells with another algorithm than the default.
    cells: usize,
}

impl Json {
    fn of(session: &Session, end: End, judged: &Judged) -> anyhow::Result<Json> {
        let state = &session.kept.state;
        let is_slower = is_slower(state.comparison().as_ref());
        let ends = end == End::NothingToGain || is_slower;
        let told: Vec<_> = (state.accounts.iter())
            .filter_map(|one| one.summary.clone())
            .collect();
        let written = match ends {
            true => Vec::new(),
            false => export::every(session.db.root(), &tables(&session.db))?,
        };
        Ok(Json {
            schema: 2,
            levers: lever::chosen(&session.levers, &session.learned()),
            asked: session.asked(),
            rounds: state.rounds.clone(),
            database: session.db.root().to_owned(),
            end,
            stable: state.is_stable(),
            jobs: state.n_jobs(),
            spent_s: state.spent_s,
            comparison: state.comparison(),
            account_without: Account::of(&told),
            account_with: Account::of(&state.with),
            exploring: state.exploring(),
            tables: (written.into_iter())
                .map(|(folder, cells)| Tables { folder, cells })
                .collect(),
            vetoed: judged.vetoed.clone(),
            why_not_vetoed: judged.why_not.clone(),
            exploit: (!ends).then(|| exploit(session)),
        })
    }
}

/// The last words: what it gained, what it cost, where the tables are, and how to go on.
pub fn report(session: &Session, end: End, judged: &Judged) -> anyhow::Result<()> {
    if session.as_json {
        return json(&Json::of(session, end, judged)?);
    }
    let state = &session.kept.state;
    let cost = format!(
        "It cost {} and {}.\n",
        counted(state.n_jobs() as u64, "job"),
        seconds(state.spent_s)
    );
    let untried = session.untried().unwrap_or_default();
    if end == End::NothingToGain {
        return print(&format!(
            "{untried}Run the program as before; --anyway tunes it all the same. {cost}"
        ));
    }
    let mut text = String::new();
    if let Some(comparison) = state.comparison() {
        let told: Vec<_> = state
            .accounts
            .iter()
            .filter_map(|one| one.summary.clone())
            .collect();
        let with = Account::of(&state.with);
        if state.rounds.is_empty() {
            text += &summary_of(&comparison, state.pairs.len(), &Account::of(&told), &with);
        }
    }
    text += &crate::together::text(&state.rounds);
    for (one, learned) in session.levers.iter().zip(session.learned()) {
        text += &format!("{}\n", lever::sentence(one, &learned));
    }
    for one in session.asked() {
        text += &format!("{}\n", asked::sentence(&one));
    }
    text += &untried;
    text += &cost;
    if let Some(Interval { low, value, high }) = state.exploring() {
        text += &format!(
            "The jobs that tried variants took {value:.3} times as long as with the default (95 % interval {low:.3} to \
             {high:.3}).\n"
        );
    }
    if is_slower(state.comparison().as_ref()) {
        let alone = match crate::together::levers(&state.rounds).0 > 1.0 {
            true => format!("The levers alone gain: {}\n", plain(session)),
            false => String::new(),
        };
        return print(&(text + &judged.text() + &refuted(&tables(&session.db)) + &alone));
    }
    text += &judged.text();
    let written = export::every(session.db.root(), &tables(&session.db))?;
    let trained = generation::trained(&session.db)?;
    if written.is_empty() && trained.iter().any(|key| key.told.is_some()) {
        text += "No table: in these jobs the MPI library was told which algorithms to run, or reductions kept a fixed \
                 order, which a table would not say.\n";
    }
    let library = session.library();
    let name = library.map(|library| library.to_string());
    let of_library = written.iter().map(|one| one.0.clone());
    let folder = of_library.into_iter().find(|folder| {
        let of = folder
            .file_name()
            .map(|of| of.to_string_lossy().into_owned());
        name.is_some() && of == name
    });
    for (folder, n_rules) in written {
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
    let exported = library.map(|library| lever::variables(&session.db, library));
    let set = assigned(&exported.unwrap_or_default());
    if let Some(folder) = folder.filter(|_| !set.is_empty()) {
        text += &format!(
            "{}/activate.sh sets the chosen variables: {set}\n",
            folder.display()
        );
    }
    // Nobody should preload for nothing.
    let gained = state
        .comparison()
        .is_some_and(|found| found.verdict == Verdict::Faster)
        || crate::together::is_faster(&state.rounds);
    let advice = match gained {
        true => "From now on",
        false => "No gain is shown, so run the program as before; what was chosen runs by",
    };
    let line = match state
        .rounds
        .first()
        .is_some_and(|round| round.seconds.len() == 2)
        // Ranks on other nodes would not hear of the arms without it.
        && asked::changed(&session.asked()).1.is_empty()
    {
        true => plain(session),
        false => exploit(session),
    };
    text += &format!("{advice}: {line}\n");
    print(&text)
}

fn is_slower(found: Option<&Comparison>) -> bool {
    found.is_some_and(|found| found.verdict == Verdict::Slower)
}

/// How to go on where the program is slower with what was chosen.
fn refuted(tables: &Path) -> String {
    let mut text = String::new();
    if tables.is_dir() {
        text += &format!(
            "No tables were written; those in {} are of an earlier training, so do not use them for this program.\n",
            tables.display()
        );
    } else {
        text += "No tables were written.\n";
    }
    text + "Run the program as before; the same line of `colltune tune` tries variants anew.\n"
}

/// The line with the arms that are chosen, without colltune.
fn plain(session: &Session) -> String {
    let chosen = lever::chosen(&session.levers, &session.learned());
    let line = filled(&session.trials.line, &chosen);
    let line: Vec<_> = (line.iter())
        .map(|word| quoted(&word.to_string_lossy()).to_string())
        .collect();
    match variables(session) {
        set if set.is_empty() => line.join(" "),
        set => format!("env {set} {}", line.join(" ")),
    }
}

/// What the chosen arms set in the environment.
fn variables(session: &Session) -> String {
    let set = nonblocking::assignments(&lever::chosen(&session.levers, &session.learned()));
    assigned(&set)
}

fn assigned(set: &[(String, String)]) -> String {
    let set = set
        .iter()
        .map(|(name, value)| format!("{name}={}", quoted(value)));
    set.collect::<Vec<_>>().join(" ")
}

/// The line that runs what was chosen.
fn exploit(session: &Session) -> String {
    let line = session.trials.line.iter();
    let line: Vec<_> = line.map(|word| quoted(&word.to_string_lossy())).collect();
    let told = session.trials.tuner.mpi.as_deref();
    let mpi = told.map_or_else(String::new, |library| format!("--mpi {library} "));
    let levers = session.levers.iter().map(|lever| {
        let arms = (lever.arms.iter()).map(|arm| escaped(arm, ','));
        let arms = arms.collect::<Vec<_>>().join(",");
        format!("--lever {} ", quoted(&format!("{}={arms}", lever.name)))
    });
    let levers: String = levers.collect();
    format!(
        "colltune run --db {} --mode exploit {mpi}{levers}-- {}",
        session.db.in_shell(),
        line.join(" ")
    )
}
