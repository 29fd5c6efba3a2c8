//! The ledger's tables: jobs of whatever mode, and where their time went.

use std::sync::Arc;

use colltune_core::account::{Exit, JobSummary, OfSize};
use colltune_core::collective::Collective;
use colltune_db::runs as recorded;
use rusqlite::types::Value;

use crate::decoded::Domain::{Integer, Real, Text};
use crate::made::{Field, Made, empty, text, whole};
use crate::queried::Queried;
use crate::relation::{Journal, Relation};

/// The columns of `runs`.
const RUNS: &[Field<JobSummary>] = &[
    Field::new("job", Text, |run| text(&run.job)),
    Field::new("program", Text, |run| text(&run.program)),
    Field::new("arguments_hash", Text, |run| text(&run.arguments_hash)),
    Field::new("label", Text, |run| text(&run.label)),
    Field::new("library", Text, |run| text(&run.library)),
    Field::new("machine", Text, |run| text(&run.machine)),
    Field::new("mode", Text, |run| text(&run.mode)),
    Field::new("exit", Text, |run| match run.exit {
        Exit::Finalized => text("finalized"),
        Exit::Missing => text("missing"),
    }),
    Field::new("generation", Integer, |run| whole(run.generation)),
    Field::new("nodes", Integer, |run| whole(run.nodes)),
    Field::new("ppn", Integer, |run| whole(run.ppn)),
    Field::new("ranks", Integer, |run| whole(run.ranks)),
    Field::new("seed", Integer, |run| whole(run.seed)),
    Field::new("started_unix_ms", Integer, |run| whole(run.started_unix_ms)),
    Field::new("wall_s", Real, |run| Value::Real(run.wall_s)),
    Field::new("collectives_s", Real, |run| {
        Value::Real(run.collectives_s.mean)
    }),
    Field::new("waiting_share", Real, |run| run.waiting_share.into()),
    Field::new("overhead_s", Real, |run| Value::Real(run.overhead_s.mean)),
    Field::new("calls", Integer, |run| whole(run.calls)),
    Field::new("passed", Integer, |run| whole(run.passed)),
    Field::new("sampled", Integer, |run| whole(run.sampled)),
    Field::new("tuned_share", Real, |run| Value::Real(run.tuned_share)),
    Field::new("best_possible_gain", Real, |run| {
        Value::Real(run.best_possible_gain)
    }),
    Field::new("estimated_gain", Real, |run| run.estimated_gain.into()),
    Field::new("refused_calls", Integer, |run| {
        whole(run.refused.iter().map(|one| one.calls).sum())
    }),
    Field::new("shares_processors", Integer, |run| {
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
    Field::new("job", Text, |row| text(&row.run.job)),
    Field::new("program", Text, |row| text(&row.run.program)),
    Field::new("library", Text, |row| text(&row.run.library)),
    Field::new("mode", Text, |row| text(&row.run.mode)),
    Field::new("generation", Integer, |row| whole(row.run.generation)),
    Field::new("wall_s", Real, |row| Value::Real(row.run.wall_s)),
    Field::new("collective", Text, |row| text(row.collective.name())),
    Field::new("message_bytes", Integer, |row| whole(row.size.bytes)),
    Field::new("calls", Integer, |row| whole(row.size.calls)),
    Field::new("seconds", Real, |row| Value::Real(row.size.seconds)),
    Field::new("tuned_share", Real, |row| Value::Real(row.size.tuned_share)),
    Field::new("waiting_share", Real, |row| row.size.waiting_share.into()),
];

pub fn runs(asked: &Queried, journal: &Journal) -> Relation {
    of_rows(RUNS, all(asked, journal))
}

pub fn collectives(asked: &Queried, journal: &Journal) -> Relation {
    let parts = |run: JobSummary| {
        let run = Arc::new(run);
        let of_collective = run.by_collective.clone().into_iter();
        of_collective.flat_map(move |part| {
            let run = run.clone();
            let sizes = part.by_size.into_iter();
            sizes.map(move |size| OfJob {
                run: run.clone(),
                collective: part.collective,
                size,
            })
        })
    };
    let rows = all(asked, journal).into_iter().flat_map(parts);
    of_rows(COLLECTIVES, rows.collect())
}

fn all(asked: &Queried, journal: &Journal) -> Vec<JobSummary> {
    let mut warnings = Vec::new();
    let all = recorded::all(&asked.db, &mut warnings);
    warnings.into_iter().for_each(|one| journal.warn(one));
    all
}

fn of_rows<T: Clone + Send + Sync>(fields: &'static [Field<T>], rows: Vec<T>) -> Relation {
    let mut relation = empty(&[], fields);
    let rows = Arc::new(rows);
    relation.fragments.push(Box::new(Made {
        constants: Vec::new(),
        fields,
        n_rows: rows.len() as u64,
        make: move || Ok(rows.to_vec()),
    }));
    relation
}
