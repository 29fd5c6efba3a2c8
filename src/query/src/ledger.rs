//! The ledger's tables: jobs of whatever mode, and where their time went.

use std::sync::Arc;

use colltune_core::account::{Exit, JobSummary, OfSize};
use colltune_core::collective::Collective;
use colltune_core::levers;
use colltune_db::{Database, runs as recorded};
use rusqlite::types::Value;

use crate::table::{Field, INTEGER, Opened, REAL, TEXT, made, text, whole};

/// The columns of `runs`.
const RUNS: &[Field<JobSummary>] = &[
    Field("job", TEXT, |run| text(&run.job)),
    Field("program", TEXT, |run| text(&run.program)),
    Field("arguments_hash", TEXT, |run| text(&run.arguments_hash)),
    Field("label", TEXT, |run| text(&run.label)),
    Field("levers", TEXT, |run| text(&levers::spell(&run.levers))),
    Field("library", TEXT, |run| text(&run.library)),
    Field("machine", TEXT, |run| text(&run.machine)),
    Field("mode", TEXT, |run| text(&run.mode)),
    Field("exit", TEXT, |run| match run.exit {
        Exit::Finalized => text("finalized"),
        Exit::Missing => text("missing"),
    }),
    Field("generation", INTEGER, |run| whole(run.generation)),
    Field("nodes", INTEGER, |run| whole(run.nodes)),
    Field("ppn", INTEGER, |run| whole(run.ppn)),
    Field("ranks", INTEGER, |run| whole(run.ranks)),
    Field("seed", INTEGER, |run| whole(run.seed)),
    Field("started_unix_ms", INTEGER, |run| whole(run.started_unix_ms)),
    Field("wall_s", REAL, |run| Value::Real(run.wall_s)),
    Field("collectives_s", REAL, |run| {
        Value::Real(run.collectives_s.mean)
    }),
    Field("waiting_share", REAL, |run| run.waiting_share.into()),
    Field("overhead_s", REAL, |run| Value::Real(run.overhead_s.mean)),
    Field("calls", INTEGER, |run| whole(run.calls)),
    Field("passed", INTEGER, |run| whole(run.passed)),
    Field("sampled", INTEGER, |run| whole(run.sampled)),
    Field("tuned_share", REAL, |run| Value::Real(run.tuned_share)),
    Field("best_possible_gain", REAL, |run| {
        Value::Real(run.best_possible_gain)
    }),
    Field("estimated_gain", REAL, |run| run.estimated_gain.into()),
    Field("refused_calls", INTEGER, |run| {
        let meant = run.refused.iter().filter(|one| one.was_meant());
        whole(meant.fold(0, |sum: u64, one| sum.saturating_add(one.calls)))
    }),
    Field("shares_processors", INTEGER, |run| {
        whole(u64::from(run.shares_processors))
    }),
];

/// One collective and range of sizes of a job.
#[derive(Clone)]
struct OfJob {
    run: Arc<JobSummary>,
    collective: Collective,
    size: OfSize,
}

/// The columns of `run_collectives`; times are those of a rank, in the mean.
const COLLECTIVES: &[Field<OfJob>] = &[
    Field("job", TEXT, |row| text(&row.run.job)),
    Field("program", TEXT, |row| text(&row.run.program)),
    Field("library", TEXT, |row| text(&row.run.library)),
    Field("mode", TEXT, |row| text(&row.run.mode)),
    Field("generation", INTEGER, |row| whole(row.run.generation)),
    Field("wall_s", REAL, |row| Value::Real(row.run.wall_s)),
    Field("collective", TEXT, |row| text(row.collective.name())),
    Field("message_bytes", INTEGER, |row| whole(row.size.bytes)),
    Field("calls", INTEGER, |row| whole(row.size.calls)),
    Field("seconds", REAL, |row| Value::Real(row.size.seconds)),
    Field("tuned_share", REAL, |row| Value::Real(row.size.tuned_share)),
    Field("waiting_share", REAL, |row| row.size.waiting_share.into()),
];

pub fn runs(db: &Database, warnings: &mut Vec<String>) -> Opened {
    let runs = recorded::all(db, warnings);
    made(RUNS, move || Ok(runs.clone()))
}

pub fn collectives(db: &Database, warnings: &mut Vec<String>) -> Opened {
    let runs = recorded::all(db, warnings).into_iter().map(Arc::new);
    let parts = |run: Arc<JobSummary>| {
        let by_collective = run.by_collective.clone().into_iter();
        by_collective.flat_map(move |part| {
            let run = Arc::clone(&run);
            part.by_size.into_iter().map(move |size| OfJob {
                run: Arc::clone(&run),
                collective: part.collective,
                size,
            })
        })
    };
    let rows: Vec<OfJob> = runs.flat_map(parts).collect();
    made(COLLECTIVES, move || Ok(rows.clone()))
}
