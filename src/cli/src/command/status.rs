//! `colltune status`: what is known about each cell, and what is chosen there.
//!
//! ```text
//! $ colltune status --db ./hydra.db
//! $ colltune status --db ./hydra.db --json | jq '.cells[] | select(.gain > 1.1) | .best'
//! ```

mod columns;
mod prometheus;
mod why;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use colltune_core::account::JobSummary;
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::levers::learned::LearnedLever;
use colltune_core::model::{SCHEMA, Source};
use colltune_core::variant::Size;
use colltune_db::site::SiteFolder;
use colltune_db::{DataKey, Database, Generation, Passed, generation, levers, runs};
use colltune_files::site::is_site;
use colltune_models::Control;
use colltune_models::choice::WRONG;
use colltune_models::statistics::CellStatistics;
use serde::Serialize;

use super::publish;
use super::train::counted;
use crate::asked;
use crate::ledger::Ledger;
use crate::published::is_known;
use colltune_output::failure::{usage, wrong};
use colltune_output::parse::collective;
use colltune_output::progress;
use colltune_output::{aligned, print};
use columns::COLUMNS;

/// Prints the table, or JSON.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let site = site(args)?;
    let db = colltune_launch::database::open(&args.db)?;
    if let Err(error) = db.settings_without_prior() {
        progress::hint(format_args!(
            "jobs with this database run untuned: failed to {error}"
        ));
    }
    let generations = generations(&db, args)?;
    if generations.is_empty() && site.is_none() {
        // Where nothing was ever recorded, is it a database at all?
        Database::open_to_change(&args.db)?;
    }
    let text = if let Some(variant) = args.variant() {
        why_text(&db, &generations, variant, args)?
    } else if args.json {
        json(&db, &generations, site.as_ref(), args)?
    } else if args.prometheus {
        prometheus::text(&generations, &runs::times(&db, &mut Vec::new()))
    } else {
        let from = site
            .as_ref()
            .map_or(String::new(), publish::Report::sentence);
        from + &table(&db, &generations, args)
    };
    print(&text)
}

/// The site folder that is asked about, where it is one.
fn site(args: &Args) -> anyhow::Result<Option<publish::Report>> {
    match is_site(&args.db) {
        true => Ok(Some(publish::Report::of(&SiteFolder::open(&args.db)?)?)),
        false => Ok(None),
    }
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune status --db ./hydra.db
      The measured cells: what part of the time each has, how many calls were timed, which variant
      is best, how much faster than the default it is, and how likely each variant is to be drawn.
  colltune status --db ./hydra.db --json
      What is known of each cell and variant: times, gains, intervals, reasons.

  colltune status --db ./hydra.db --sort gain --min-gain 1.1 --collective allreduce --why
      Where it pays, and why each variant may or may not replace the default.

  colltune status --db ./hydra.db --collective bcast --why native:pipeline:segsize=8KiB
      Why that variant of the catalogue is not drawn, in each measured cell and summed over the
      others: excluded by the site, its family off, calls that lack what it needs, found too slow by
      `calibrate`, or measured and worse. Then what the newest jobs left out of their calls.

  colltune status --db ./hydra.db --prometheus >/var/lib/node_exporter/colltune.prom
      Numbers for a dashboard, by the text-file collector.

A row is a cell: a `collective`, ranges of message `bytes`, `nodes` and ranks per node (`ppn`).
`time` is its share of the time in all collectives, by what the newest jobs account for (of frequent
short calls few are recorded), `waiting` how much of it is waiting for late ranks, which no variant
takes away. `calls` were timed. `best` runs where nothing is sampled. `gain` is the default's time
over the best variant's with its 95 % interval; where none is shown, the best variant is the
default. `drawn most` are the variants that sampled calls are likeliest to draw. The last line has
the whole times of all jobs that ended with this database, and what those of them saved that ran
what was learned, by what trainings had measured.
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database, or a site folder
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// Print the cells as JSON
    #[arg(long)]
    json: bool,
    /// Print numbers for a site's dashboards, in the text format of Prometheus
    #[arg(long, conflicts_with_all = ["json", "why", "all", "collective", "min_gain"])]
    prometheus: bool,
    /// The MPI library and version, where the database holds several: openmpi-4.1.4
    #[arg(long, value_name = "KEY")]
    library: Option<String>,
    /// Only the cells of this collective
    #[arg(long, value_parser = collective(), value_name = "NAME")]
    collective: Option<Collective>,
    /// Only cells with this gain or more, as in 1.1
    #[arg(long, value_name = "GAIN")]
    min_gain: Option<f64>,
    /// By share of the time, by gain, or by name and size
    #[arg(long, value_enum, default_value = "time")]
    sort: Sort,
    /// Say of each variant why it may replace the default, or why not; of VARIANT why it is not drawn
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "VARIANT")]
    why: Option<String>,
    /// Show predicted cells too
    #[arg(long, conflicts_with = "json")]
    all: bool,
}

impl Args {
    /// The variant that is asked about.
    fn variant(&self) -> Option<&str> {
        self.why.as_deref().filter(|name| !name.is_empty())
    }

    /// Whether a cell of which something is known is asked for.
    fn wants(&self, cell: &CellStatistics) -> bool {
        let collective = cell.cell.collective;
        (self.json || self.all || cell.source == Source::Measured)
            && self.collective.is_none_or(|name| name == collective)
            && self.min_gain.is_none_or(|least| cell.gain >= least)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    Time,
    Gain,
    Name,
}

/// The cells that are asked for, in the order that is asked for. About the others nothing is known.
fn chosen<'a>(generation: &'a Generation, args: &Args) -> Vec<&'a CellStatistics> {
    let wanted = |cell: &&CellStatistics| is_known(cell) && args.wants(cell);
    let mut cells: Vec<&CellStatistics> = generation.cells.iter().filter(wanted).collect();
    match args.sort {
        Sort::Time => cells.sort_by(|a, b| b.time_share.total_cmp(&a.time_share)),
        Sort::Gain => cells.sort_by(|a, b| b.gain.total_cmp(&a.gain)),
        // The order of the tuning space.
        Sort::Name => {}
    }
    cells
}

fn generations(db: &Database, args: &Args) -> anyhow::Result<Vec<Generation>> {
    let mut libraries = db.keys()?;
    if let Some(key) = &args.library {
        let library: DataKey = key.parse().map_err(usage)?;
        if !libraries.contains(&library) {
            return Err(wrong(format!(
                "{} holds no {key}: {}",
                db.root().display(),
                listed(&libraries)
            )));
        }
        libraries = vec![library];
    } else if let trained @ [_, ..] = &generation::trained(db)?[..] {
        libraries = trained.to_vec();
    }
    if args.json {
        libraries = DataKey::usual(libraries);
    }
    if args.json && libraries.len() > 1 {
        return Err(usage(format!(
            "choose a library: {}; name one with --library",
            listed(&libraries)
        )));
    }
    libraries
        .into_iter()
        .map(|library| Ok(Generation::load(db, library)?))
        .collect()
}

fn listed(libraries: &[DataKey]) -> String {
    let names: Vec<String> = libraries.iter().map(DataKey::to_string).collect();
    if names.is_empty() {
        "it holds no library yet".to_owned()
    } else {
        format!("it holds {}", names.join(", "))
    }
}

/// The contents of `status --json`.
#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    library: Option<String>,
    machine: String,
    generation: u64,
    /// The most that exploring may take of a cell's draws once little is left to find, as the settings have it today.
    explore_total: f64,
    /// The component of the library that `default` is of; empty where no run says so.
    #[serde(skip_serializing_if = "str::is_empty")]
    component: &'a str,
    /// What the jobs with this database took, of every library.
    ledger: Ledger,
    cells: Vec<&'a CellStatistics>,
    /// What is in force of levers that programs ask about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levers: Vec<LearnedLever>,
    /// Where these tables come from, if they are a site folder's.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a publish::Report>,
    /// In how many cells a copy of the default would have replaced it, of how many that can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<ControlSaid>,
    /// Why nothing is to be gained; empty where something may be.
    #[serde(skip_serializing_if = "str::is_empty")]
    nothing_to_gain: &'a str,
    /// Calls that passed through untuned: nonblocking, persistent and neighbourhood collectives.
    passed: &'a [Passed],
}

/// The negative control as people and programs read it.
#[derive(Serialize)]
struct ControlSaid {
    #[serde(flatten)]
    control: Control,
    /// The share of cells in which chance alone may make the copy win.
    expected: f64,
}

fn json(
    db: &Database,
    generations: &[Generation],
    site: Option<&publish::Report>,
    args: &Args,
) -> anyhow::Result<String> {
    let settings = db.settings()?;
    let explore_total = settings.explore_total;
    let ledger = Ledger::read(db);
    let json = match generations.first() {
        None => Json {
            schema: SCHEMA,
            library: None,
            machine: db.machine(&settings),
            generation: 0,
            explore_total,
            component: "",
            ledger,
            cells: Vec::new(),
            levers: levers::learned(db, &mut Vec::new()),
            site,
            control: None,
            nothing_to_gain: "",
            passed: &[],
        },
        Some(generation) => Json {
            schema: SCHEMA,
            library: Some(generation.key.to_string()),
            machine: generation.model.machine.clone(),
            generation: generation.number,
            explore_total,
            component: (generation.meta.as_ref()).map_or("", |meta| &meta.component),
            ledger,
            cells: chosen(generation, args),
            levers: levers::learned(db, &mut Vec::new()),
            site,
            control: control(generation).map(|control| ControlSaid {
                control,
                expected: WRONG,
            }),
            nothing_to_gain: (generation.meta.as_ref()).map_or("", |meta| &meta.nothing_to_gain),
            passed: generation.meta.as_ref().map_or(&[], |meta| &meta.passed),
        },
    };
    let mut text = serde_json::to_string(&json).context("write JSON")?;
    text.push('\n');
    Ok(text)
}

/// Why one variant is not drawn, in the libraries that are asked about.
fn why_text(
    db: &Database,
    generations: &[Generation],
    variant: &str,
    args: &Args,
) -> anyhow::Result<String> {
    let settings = db.settings()?;
    let asked = (variant, args.collective);
    let mut reports = Vec::new();
    let mut unknown = None;
    for generation in generations {
        let library = generation.library.to_string();
        let is_its = |run: &JobSummary| run.library == library;
        let runs = runs::newest_and_waiting(db, is_its, &mut Vec::new());
        match why::Report::of(generation, &settings, asked, &runs, |cell| args.wants(cell)) {
            Ok(report) => reports.push(report),
            // Of several libraries one may have it.
            Err(error) => unknown = Some(error),
        }
    }
    if let Some(error) = unknown.filter(|_| reports.is_empty()) {
        return Err(error);
    }
    match (&reports[..], args.json) {
        ([], _) => bail!(
            "tell why {variant} is not drawn: {} holds no library yet; start jobs with `colltune run --db {} -- mpirun ...`",
            db.root().display(),
            db.in_shell()
        ),
        ([report, ..], true) => Ok(serde_json::to_string(report).context("write JSON")? + "\n"),
        (reports, false) => {
            let texts: Vec<String> = reports.iter().map(why::Report::text).collect();
            Ok(texts.join("\n"))
        }
    }
}

fn table(db: &Database, generations: &[Generation], args: &Args) -> String {
    let levers = asked::table(&levers::learned(db, &mut Vec::new()));
    if generations.is_empty() && !levers.is_empty() {
        return levers + &Ledger::read(db).sentence();
    }
    if generations.is_empty() {
        return format!(
            "no runs yet: start jobs with `colltune run --db {} -- mpirun ...`\n",
            db.in_shell()
        );
    }
    generations
        .iter()
        .map(|generation| table_of(db, generation, args))
        .collect::<Vec<_>>()
        .join("\n")
        + &levers
        + &Ledger::read(db).sentence()
}

fn table_of(db: &Database, generation: &Generation, args: &Args) -> String {
    let mut text = match &generation.meta {
        None => format!(
            "{}: not trained yet, run `colltune train --db {}`\n",
            generation.key,
            db.in_shell()
        ),
        Some(meta) => format!(
            "{} on {}: generation {}, learned from {} runs and {} calls\n",
            generation.key, meta.machine, generation.number, meta.runs, meta.calls
        ),
    };
    let component = (generation.meta.as_ref()).map_or("", |meta| &meta.component);
    if !component.is_empty() {
        text.push_str(&format!(
            "default is what the library's {component} chooses\n"
        ));
    }
    text.push_str(&as_published(generation));
    let shown = chosen(generation, args);
    if !shown.is_empty() {
        text.push_str(&cells_table(&shown, args));
    }
    let measured = generation
        .cells
        .iter()
        .filter(|cell| cell.source == Source::Measured);
    let hidden = measured.count().saturating_sub(shown.len());
    match hidden {
        0 => {}
        1 => text.push_str("1 measured cell is not asked for\n"),
        _ => text.push_str(&format!("{hidden} measured cells are not asked for\n")),
    }
    if let Some(Control { cells, won }) = control(generation) {
        text.push_str(&format!(
            "control: a copy of the default would have replaced it in {won} of {cells} cells; by chance alone in {:.0} %\n",
            100.0 * WRONG
        ));
    }
    let told = generation.meta.as_ref();
    if let Some(why) = told
        .map(|meta| &meta.nothing_to_gain)
        .filter(|why| !why.is_empty())
    {
        text.push_str(&format!("nothing to gain, so exploring has ended: {why}\n"));
    }
    for cell in shown.iter().filter(|cell| cell.drift != 0.0) {
        text.push_str(&format!(
            "drift: {} takes {:.2} times as long in the newest runs as before\n",
            cell.cell,
            cell.drift.exp2()
        ));
    }
    let passed = generation
        .meta
        .as_ref()
        .map_or(&[][..], |meta| &meta.passed);
    if !passed.is_empty() {
        text.push_str("recorded, and left to the library (`tune --lever nonblocking` may try its algorithms):\n");
        text.push_str(&aligned(&passed_rows(passed), |_| true));
    }
    text
}

/// What is to be known of a generation that was learned as published.
fn as_published(generation: &Generation) -> String {
    if generation.model.learner.is_usual() {
        return String::new();
    }
    let is_predicted = |cell: &&CellStatistics| {
        cell.source == Source::Predicted && !catalogue::is_default(&cell.best)
    };
    let predicted = generation.cells.iter().filter(is_predicted).count();
    format!(
        "learner: {}, as published: the most probable variant runs, in {} by prediction alone (--all shows them)\n",
        generation.model.learner.name(),
        counted(predicted as u64, "cell")
    )
}

/// The control of a training, where any cell could tell.
fn control(generation: &Generation) -> Option<Control> {
    let control = generation.meta.as_ref()?.control?;
    (control.cells > 0).then_some(control)
}

fn passed_rows(passed: &[Passed]) -> Vec<Vec<String>> {
    let head = [
        "collective",
        "manner",
        "bytes",
        "nodes",
        "ppn",
        "records",
        "median",
    ];
    let row = |row: &Passed| {
        let [lo, hi] = row.bytes;
        [
            row.collective.to_string(),
            row.manner.replace('_', " "),
            format!("[{}, {})", Size(lo), Size(hi)),
            row.nodes.to_string(),
            row.ppn.to_string(),
            row.records.to_string(),
            format!("{:.1} us", row.median_ns as f64 / 1e3),
        ]
        .to_vec()
    };
    std::iter::once(head.map(str::to_owned).to_vec())
        .chain(passed.iter().map(row))
        .collect()
}

/// The cells as a table, each with its variants' reasons where they are asked for.
fn cells_table(cells: &[&CellStatistics], args: &Args) -> String {
    let head = COLUMNS
        .iter()
        .map(|column| column.name.to_owned())
        .collect();
    let row = |cell: &&CellStatistics| COLUMNS.iter().map(|column| (column.of)(cell)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(cells.iter().map(row)).collect();
    let table = aligned(&rows, |_| true);
    if args.why.is_none() {
        return table;
    }
    let mut lines = table.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or(""));
    for (line, cell) in lines.zip(cells) {
        text.push_str(&format!("{line}\n"));
        for variant in cell.variants.iter().filter(|one| !one.reason.is_empty()) {
            text.push_str(&format!("    {}: {}\n", variant.name, variant.reason));
        }
        if !cell.settled.is_empty() {
            text.push_str(&format!("    settled: {}\n", cell.settled));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use colltune_core::model::Model;
    use colltune_core::settings::Settings;
    use colltune_models::Learned;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> Args {
        Line::parse_from([&["status", "--db", "DIR"], words].concat()).args
    }

    /// A database with what a training knows of four cells.
    fn database(folder: &std::path::Path) -> Database {
        let db = Database::create_or_open(folder).unwrap();
        let key: DataKey = "openmpi-4.1.4".parse().unwrap();
        let settings = Settings::default();
        let model = Model {
            generation: 1,
            ..Model::initial(&settings, key.library, "test")
        };
        let known = |collective: Collective, place: usize, source, time_share, gain| {
            let cells = settings.space.cells().map(|(cell, _)| cell);
            let mut cells = cells.filter(|cell| cell.collective == collective);
            CellStatistics {
                source,
                time_share,
                gain,
                ..CellStatistics::unknown(cells.nth(place).unwrap())
            }
        };
        let learned = Learned {
            model,
            statistics: vec![
                known(Collective::Allreduce, 1, Source::Measured, 0.2, 1.5),
                known(Collective::Allreduce, 4, Source::Measured, 0.5, 1.05),
                known(Collective::Allreduce, 5, Source::Predicted, 0.0, 1.0),
                known(Collective::Bcast, 2, Source::Measured, 0.3, 1.2),
            ],
            calls: 9,
            work: 1.0,
            control: Default::default(),
            nothing_to_gain: String::new(),
            notes: Vec::new(),
        };
        let meta = r#"{ "schema": 2, "generation": 1, "library": "openmpi-4.1.4", "machine": "test",
            "colltune_version": "0", "created_unix_ms": 0, "seed": 1, "runs": 1, "records": 9, "calls": 9,
            "cells_measured": 3, "learn_ms": 1 }"#;
        let meta = serde_json::from_str(meta).unwrap();
        generation::publish(&db, &key, &learned, &settings.space, &meta).unwrap();
        db
    }

    #[test]
    fn cells_are_shown_by_collective_and_gain_and_in_the_order_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let db = database(folder.path());
        let shown = |words: &[&str]| {
            let args = parsed(words);
            let generations = generations(&db, &args).unwrap();
            let cells = chosen(&generations[0], &args);
            cells.iter().map(|cell| cell.gain).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[]), [1.05, 1.2, 1.5], "by the share of the time");
        assert_eq!(shown(&["--sort", "time"]), shown(&[]));
        assert_eq!(shown(&["--sort", "gain"]), [1.5, 1.2, 1.05]);
        assert_eq!(shown(&["--sort", "name"]), [1.5, 1.05, 1.2]);
        assert_eq!(shown(&["--min-gain", "1.2"]), [1.2, 1.5]);
        assert_eq!(shown(&["--min-gain", "2"]), Vec::<f64>::new());
        assert_eq!(shown(&["--collective", "allreduce"]), [1.05, 1.5]);
        assert_eq!(shown(&["--collective", "reduce"]), Vec::<f64>::new());
        assert_eq!(shown(&["--all"]).len(), 4);
        let all = ["--collective", "allreduce", "--min-gain", "1.02"];
        assert_eq!(
            shown(&[&all[..], &["--sort", "gain"]].concat()),
            [1.5, 1.05]
        );
        // What is left out is counted, and JSON leaves it out, too.
        let args = parsed(&["--min-gain", "1.2"]);
        let text = table(&db, &generations(&db, &args).unwrap(), &args);
        assert!(
            text.contains("\n1 measured cell is not asked for\n"),
            "{text}"
        );
        assert!(text.contains("1.50x") && !text.contains("1.05x"), "{text}");
        let args = parsed(&["--min-gain", "2"]);
        let text = table(&db, &generations(&db, &args).unwrap(), &args);
        assert!(
            text.contains("\n3 measured cells are not asked for\n"),
            "{text}"
        );
        let args = parsed(&["--json", "--collective", "bcast"]);
        let text = json(&db, &generations(&db, &args).unwrap(), None, &args).unwrap();
        let said: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(said["cells"].as_array().unwrap().len(), 1);
        assert_eq!(said["cells"][0]["gain"], 1.2);
    }

    #[test]
    fn why_exploring_ended_and_what_drifts_is_told_and_no_cell_of_which_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let db = database(folder.path());
        let mut generations = generations(&db, &parsed(&[])).unwrap();
        let text = table(&db, &generations, &parsed(&[]));
        assert!(!text.contains("nothing to gain"), "{text}");
        assert!(!text.contains("drift: "), "{text}");

        assert!(!text.contains("control: "), "{text}");

        let why = "at most 0.5 % of the time";
        let generation = &mut generations[0];
        let meta = generation.meta.as_mut().unwrap();
        meta.nothing_to_gain = why.to_owned();
        meta.control = Some(Control { cells: 7, won: 1 });
        let mut cells = generation.cells.iter_mut();
        let drifting = cells.find(|cell| cell.gain == 1.5).unwrap();
        drifting.drift = 1.0;
        let ended = format!("nothing to gain, so exploring has ended: {why}\n");
        let drifts = format!(
            "drift: {} takes 2.00 times as long in the newest runs as before\n",
            drifting.cell
        );
        let mut unknown = generation.cells.iter().filter(|cell| !is_known(cell));
        assert!(unknown.any(|cell| cell.cell.collective == Collective::Alltoall));

        let all_words: [&[&str]; 2] = [&[], &["--all"]];
        for (words, n_known) in all_words.into_iter().zip([3, 4]) {
            let text = table(&db, &generations, &parsed(words));
            assert!(text.contains(&ended), "{words:?}");
            assert!(text.contains(&drifts), "{words:?}");
            assert!(text.contains("replaced it in 1 of 7 cells"), "{text}");
            assert_eq!(text.matches("drift: ").count(), 1, "{words:?}");
            let is_row = |line: &&str| line.starts_with("allreduce ") || line.starts_with("bcast ");
            assert_eq!(text.lines().filter(is_row).count(), n_known, "{words:?}");
            assert!(!text.contains("alltoall"), "{words:?}");
        }
        // Of cells that are not asked for no drift is told.
        let text = table(&db, &generations, &parsed(&["--collective", "bcast"]));
        assert!(text.contains(&ended), "{text}");
        assert!(!text.contains("drift: "), "{text}");

        let text = json(&db, &generations, None, &parsed(&["--json"])).unwrap();
        let said: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(said["nothing_to_gain"], why);
        let control = serde_json::json!({ "cells": 7, "won": 1, "expected": 0.01 });
        assert_eq!(said["control"], control);
        let cells = said["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 4);
        assert!(cells.iter().all(|cell| cell["collective"] != "alltoall"));
        let drifting: Vec<_> = cells.iter().filter(|cell| cell["drift"] != 0.0).collect();
        assert_eq!(drifting.len(), 1);
        assert_eq!(drifting[0]["gain"], 1.5);
        assert_eq!(drifting[0]["drift"], 1.0);
    }
}
