//! Puts a report together: reads the database once, and asks each part of the page.

use colltune_core::account::JobSummary;
use colltune_core::context::DataKey;
use colltune_core::model::{Model, Source};
use colltune_core::settings::Settings;
use colltune_db::evidence::{Said, Store};
use colltune_db::{Database, Generation, Verdicts, generation, runs};
use colltune_models::statistics::CellStatistics;

use crate::history::{GENERATIONS_MAX, Past};
use crate::question::Question;
use crate::report::{Report, ReportError};
use crate::unseen::Sources;
use crate::{cells, head, history, levers, programs, unseen, whole_runs};

/// Reads a database. What cannot be read is left out and named in the report.
///
/// Errors: `Library` for one that is asked for and not there; `Db` for settings that cannot be read, or a folder.
pub fn read(db: &Database, question: &Question) -> Result<Report, ReportError> {
    let mut warnings = Vec::new();
    let settings = db.settings()?;
    let machine = db.machine(&settings);
    let keys = db.keys()?;
    let ledger = runs::all(db, &mut warnings);
    let key = choose(db, question, &keys, &mut warnings)?;
    let Some(key) = key else {
        return Ok(without_data(db, machine, &ledger, question, warnings));
    };
    let runs = of_library(&ledger, &key, question);
    let said = said(db, &key, &mut warnings)?;
    let in_force = match Generation::load(db, key.clone()) {
        Ok(generation) => generation,
        Err(error) => {
            warnings.push(format!("failed to {error}; what was learned is left out"));
            untrained(&key, &settings, &machine)
        }
    };
    let (past, predicted) = past(db, &in_force, &settings, &mut warnings)?;
    let sources = Sources {
        db,
        generation: &in_force,
        settings: &settings,
        said: &said,
        question,
    };
    let told: Vec<&JobSummary> = (runs.iter().copied())
        .filter(|run| run.mode != JobSummary::BARE)
        .collect();
    let programs = programs::programs(Some(&in_force), question, &said, &told);
    let verdicts = Verdicts::of(db, &key).unwrap_or_else(|error| {
        warnings.push(format!(
            "failed to {error}; what whole programs said is left out"
        ));
        Verdicts::default()
    });
    let mut report = Report {
        schema: Report::SCHEMA,
        head: head::head(
            Some(&in_force),
            in_force.model.machine.clone(),
            &keys,
            &said,
            &runs,
            verdicts,
        ),
        programs,
        cells: cells::cells(&in_force, question),
        histories: history::histories(&in_force, &past, question, settings.explore_total),
        unseen: unseen::unseen(&sources, &predicted, &mut warnings),
        whole_runs: whole_runs::whole_runs(&runs, question),
        levers: levers::learned(db, Some(&key), question, &runs, &mut warnings),
        warnings: Vec::new(),
    };
    warnings.sort();
    warnings.dedup();
    report.warnings = warnings;
    Ok(report)
}

/// How many measured cells of the generation in force have come to rest, as in figure 3, and how many there are.
///
/// Errors: `Db` for settings or a generation that cannot be read; older ones that cannot are gaps.
pub fn cells_at_rest(db: &Database, key: &DataKey) -> Result<(usize, usize), ReportError> {
    let settings = db.settings()?;
    let in_force = Generation::load(db, key.clone())?;
    let (past, _) = past(db, &in_force, &settings, &mut Vec::new())?;
    let histories = history::histories(
        &in_force,
        &past,
        &Question::default(),
        settings.explore_total,
    );
    Ok((histories.cells_at_rest, histories.cells))
}

/// The library that is asked for, else of the usual ones that with the most runs.
fn choose(
    db: &Database,
    question: &Question,
    keys: &[DataKey],
    warnings: &mut Vec<String>,
) -> Result<Option<DataKey>, ReportError> {
    if let Some(key) = &question.library {
        return match keys.contains(key) {
            true => Ok(Some(key.clone())),
            false => Err(ReportError::Library {
                key: key.clone(),
                path: db.root().to_owned(),
                found: keys.to_vec(),
            }),
        };
    }
    let mut most: Option<(usize, &DataKey)> = None;
    let keys = DataKey::usual(keys.to_vec());
    for key in &keys {
        let n_runs = match keys.len() {
            1 => 0,
            _ => Store::open(db, key, warnings)?.runs().count(),
        };
        if most.is_none_or(|(other, _)| n_runs > other) {
            most = Some((n_runs, key));
        }
    }
    Ok(most.map(|(_, key)| key.clone()))
}

fn of_library<'a>(
    ledger: &'a [JobSummary],
    key: &DataKey,
    question: &Question,
) -> Vec<&'a JobSummary> {
    let library = key.library.to_string();
    let labelled = |run: &&JobSummary| {
        question
            .label
            .as_ref()
            .is_none_or(|label| *label == run.label)
    };
    ledger
        .iter()
        .filter(|run| run.library == library)
        .filter(labelled)
        .collect()
}

fn said(db: &Database, key: &DataKey, warnings: &mut Vec<String>) -> Result<Said, ReportError> {
    let store = Store::open(db, key, warnings)?;
    Ok(store.read(key.library, warnings))
}

fn untrained(key: &DataKey, settings: &Settings, machine: &str) -> Generation {
    Generation {
        number: 0,
        key: key.clone(),
        library: key.library,
        model: Model::initial(settings, key.library, machine),
        cells: Vec::new(),
        meta: None,
    }
}

/// What one generation said of cells that it had no data of.
type Predicted = (u64, Vec<CellStatistics>);

/// The generations that led to the one in force, the oldest first, with gaps; generation 0 as it would be today.
fn past(
    db: &Database,
    in_force: &Generation,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<(Vec<Past>, Vec<Predicted>), ReportError> {
    let key = &in_force.key;
    let on_disk = generation::numbers(db, key)?;
    let first = in_force.number.saturating_sub(GENERATIONS_MAX as u64);
    let mut past = Vec::new();
    let mut predicted = Vec::new();
    for number in first..=in_force.number {
        let found = match number {
            0 => {
                let model = Model::initial(settings, key.library, &in_force.model.machine);
                past.push(Past {
                    number,
                    runs: 0,
                    model: Some(model),
                });
                continue;
            }
            _ if number == in_force.number => Some(in_force.clone()),
            _ if !on_disk.contains(&number) => None,
            _ => Generation::load_number(db, key.clone(), number)
                .map_err(|error| warnings.push(format!("failed to {error}; it is a gap")))
                .ok(),
        };
        past.push(Past {
            number,
            runs: found
                .as_ref()
                .and_then(|one| one.meta.as_ref())
                .map_or(0, |meta| meta.runs),
            model: found.as_ref().map(|one| one.model.clone()),
        });
        if let Some(mut found) = found {
            found.cells.retain(|cell| cell.source == Source::Predicted);
            predicted.push((number, found.cells));
        }
    }
    Ok((past, predicted))
}

fn without_data(
    db: &Database,
    machine: String,
    ledger: &[JobSummary],
    question: &Question,
    mut warnings: Vec<String>,
) -> Report {
    let runs: Vec<&JobSummary> = ledger.iter().collect();
    let nothing = Said {
        runs: Vec::new(),
        jobs: Vec::new(),
        sequences: Vec::new(),
        evidence: Vec::new(),
        copies: Vec::new(),
        passed: Vec::new(),
        seconds: 0.0,
        unknown: 0,
    };
    let programs = programs::programs(None, question, &nothing, &runs);
    Report {
        schema: Report::SCHEMA,
        head: head::head(None, machine, &[], &nothing, &runs, Verdicts::default()),
        programs,
        cells: Default::default(),
        histories: Default::default(),
        unseen: Default::default(),
        whole_runs: whole_runs::whole_runs(&runs, question),
        levers: levers::learned(db, None, question, &runs, &mut warnings),
        warnings,
    }
}
