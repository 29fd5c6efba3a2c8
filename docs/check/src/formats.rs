//! The parts of the pages of formats: drawings and fields from the sources, columns from files as they are written.

use std::cell::OnceCell;
use std::fs::File;
use std::path::{Path, PathBuf};

use colltune_amr::telemetry::rows::{Column, Table};
use colltune_core::account::{CAUSES, JobFacts, JobSummary, KINDS, Scope};
use colltune_db::hosts::HostRow;
use colltune_db::test_support::{LIBRARY, Run};
use colltune_db::{Database, TrainOptions, hosts, train};
use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use crate::source::{constant, drawing, fields, literal, row, table, variants};

const RECORD: &str = "src/core/src/record.rs";
const FLIGHT: &str = "src/core/src/flight.rs";
const MODEL: &str = "src/core/src/model.rs";
const GENERATION: &str = "tuning-db/src/generation.rs";
const CALIBRATION: &str = "src/core/src/calibration.rs";
const OWNERS: &str = "tuning-db/src/owners.rs";
const SUMMARY: &str = "src/core/src/account/summary.rs";
const STATISTICS: &str = "models/src/statistics.rs";
const CHECKPOINT: &str = "src/amr/src/run/checkpoint.rs";
const COSTS: &str = "src/emulate/src/cost/model.rs";
const MEMORY: &str = "src/emulate/src/cost/memory.rs";
const EMULATED: &str = "src/lab/src/emulate/run/report.rs";
const VALIDATED: &str = "src/bench/src/validate/protocol.rs";
const REPLAYED: &str = "src/lab/src/placement/replay/follow.rs";

/// A mark on a page, and what makes the text that it stands for.
pub type Part = (&'static str, fn() -> String);

pub const PARTS: [Part; 35] = [
    ("causes", causes),
    ("undrawn", || {
        variants("src/core/src/prior/reason.rs", "Undrawn")
    }),
    ("versions", versions),
    ("database", || drawing("tuning-db/src/lib.rs", "text")),
    ("trace", || drawing(RECORD, "text")),
    ("trace header", || fields(RECORD, "Header")),
    ("flight", || drawing(FLIGHT, "text")),
    ("flight header", || fields(FLIGHT, "Header")),
    ("model", || fields(MODEL, "Model")),
    ("cell", || fields(MODEL, "CellRow")),
    ("meta", || fields(GENERATION, "Meta")),
    ("cell statistics", || fields(STATISTICS, "CellStatistics")),
    ("variant statistics", || {
        fields(STATISTICS, "VariantStatistics")
    }),
    ("calibration", || drawing(CALIBRATION, "toml")),
    ("machine", || {
        drawing("src/emulate/src/machine/model.rs", "toml")
    }),
    ("costs", || drawing(COSTS, "toml")),
    ("level costs", || fields(COSTS, "LevelCosts")),
    ("phase costs", || fields(COSTS, "PhaseCosts")),
    ("noise costs", || fields(COSTS, "NoiseCosts")),
    ("memory costs", || fields(MEMORY, "MemoryCost")),
    ("owners", || drawing(OWNERS, "toml")),
    ("summary", || fields(SUMMARY, "JobSummary")),
    ("records", || columns(&format!("{LIBRARY}/data"))),
    ("evidence", || columns(&format!("{LIBRARY}/evidence"))),
    ("runs", || columns("runs")),
    ("hosts", || columns("hosts.parquet")),
    ("telemetry", telemetry),
    ("call log", || fields("shim/src/call_log.rs", "Line")),
    ("reports", reports),
    ("emulated", || fields(EMULATED, "Report")),
    ("emulated run", || {
        fields("src/emulate/src/outcome.rs", "Outcome")
    }),
    ("emulated messages", || {
        fields("src/emulate/src/traffic.rs", "Locality")
    }),
    ("replicas", || fields(EMULATED, "Replicas")),
    ("replayed", || fields(REPLAYED, "Totals")),
    ("replayed step", || fields(REPLAYED, "Judged")),
];

/// Each cause that a job counts.
fn causes() -> String {
    let rows = CAUSES.iter().map(|one| {
        let calls = match one.scope {
            Scope::Job => "all",
            Scope::Communicator => "of a communicator",
            Scope::Cell => "of a cell on a communicator",
            Scope::Call => "those alone",
        };
        let remedy = match one.remedy {
            "" => String::new(),
            remedy => format!("; {remedy}"),
        };
        row(one.name, calls, &format!("{}{remedy}", one.reason))
    });
    table(["cause", "calls", "why, and what to do"], rows)
}

/// Each format, its version as its files say it, and where that stands in the sources.
fn versions() -> String {
    let schema =
        |what: &str, file: &str| row(what, &constant(file, "SCHEMA"), &format!("`{file}`"));
    let magic = |what: &str, file: &str| {
        let value = format!("`{}`", constant(file, "MAGIC"));
        row(what, &value, &format!("`{file}`"))
    };
    let rows = [
        magic("JOB.RANK.trace", RECORD),
        magic("rank-N.flight", FLIGHT),
        schema("probabilities.json", MODEL),
        schema("cells.json, meta.json", GENERATION),
        schema("calibration.toml", CALIBRATION),
        schema("prior.json, ratios.json", "src/core/src/prior/simulated.rs"),
        schema("JOB.run, --summary", SUMMARY),
        schema("runs/*.parquet", "tuning-db/src/runs/tables.rs"),
        schema("evidence/*.parquet", "tuning-db/src/evidence.rs"),
        schema("hosts.parquet", "tuning-db/src/hosts.rs"),
        schema("dropped.json", "tuning-db/src/dropped.rs"),
        schema("tune/*.json", "src/cli/src/command/tune/state.rs"),
        schema("site.json", "src/core/src/site.rs"),
        schema("costs.toml", COSTS),
        row(
            "checkpoint.json",
            &format!("`{}`", constant(CHECKPOINT, "FORMAT")),
            &format!("`{CHECKPOINT}`"),
        ),
        row(
            "telemetry",
            &constant("src/amr/src/telemetry/about.rs", "VERSION"),
            "`src/amr/src/telemetry/about.rs`",
        ),
    ];
    table(["file", "version", "said in"], rows)
}

/// Each report of `colltune-lab` and `colltune-bench` as JSON, its version, and where it is set.
fn reports() -> String {
    let report = |what: &str, command: &str| {
        let file = format!("src/{command}.rs");
        row(what, &literal(&file, "schema"), &format!("`{file}`"))
    };
    let rows = [
        report("emulate.json", "lab/src/emulate/run"),
        report("emulate-whatif.json", "lab/src/emulate/whatif"),
        row(
            "emulate-validate-ROW.json",
            &constant(VALIDATED, "SCHEMA"),
            &format!("`{VALIDATED}`"),
        ),
        report("placement-bench.json", "lab/src/placement/bench"),
        report("placement-replay.json", "lab/src/placement/replay"),
        report("placement-comm.json", "bench/src/comm"),
    ];
    table(["file", "version", "said in"], rows)
}

/// A database that has been trained once, of synthetic runs.
struct Trained(tempfile::TempDir);

thread_local! {
    static TRAINED: OnceCell<Trained> = const { OnceCell::new() };
}

impl Trained {
    fn new() -> Trained {
        let folder = colltune_tests::folder();
        let settings = "machine = \"testing\"\n";
        std::fs::write(folder.path().join("colltune.toml"), settings).expect("a new folder");
        let db = Database::create_or_open(folder.path()).expect("a new database");
        Run::new("made", 1)
            .write(&db.incoming())
            .expect("the folder is there");
        let facts = JobFacts {
            job: "made".to_owned(),
            ..JobFacts::default()
        };
        let summary = JobSummary::new(facts, &vec![Default::default(); KINDS]);
        std::fs::write(db.incoming().join("made.run"), summary.line()).expect("written");
        let host = HostRow {
            unix_ms: 1,
            host: "n1".to_owned(),
            ranks: 2,
            kernel_ns: 1.0,
            memory_bytes_per_ns: 1.0,
            small_ns: 1.0,
            large_ns: 1.0,
            throttled: Some(0),
        };
        hosts::remember(&db, &[host]).expect("written");
        train(&db, TrainOptions::default(), &|_| ()).expect("runs like others");
        Trained(folder)
    }

    /// The first Parquet file at a place, or in the folder that is there.
    fn file(&self, place: &str) -> PathBuf {
        let path = self.0.path().join(place);
        if path.is_file() {
            return path;
        }
        let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut files = entries.map(|entry| entry.expect("an entry").path());
        let is_parquet = |path: &PathBuf| path.extension().is_some_and(|end| end == "parquet");
        files.find(is_parquet).expect("a training wrote it")
    }
}

/// The columns of a file of the database, and what its footer says beside them.
fn columns(place: &str) -> String {
    TRAINED.with(|trained| columns_of(&trained.get_or_init(Trained::new).file(place)))
}

fn columns_of(file: &Path) -> String {
    let reader = SerializedFileReader::new(File::open(file).expect("it is there"));
    let reader = reader.expect("a file of ours");
    let metadata = reader.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let listed = columns.iter().map(|column| {
        let may_be_unknown = column.max_def_level() > 0;
        let missing = if may_be_unknown { "may be unknown" } else { "" };
        row(column.name(), kind(column), missing)
    });
    let keys = metadata.key_value_metadata().into_iter().flatten();
    let keys: Vec<String> = keys
        .filter(|pair| pair.key.starts_with("colltune"))
        .map(|pair| format!("`{}`", pair.key))
        .collect();
    let footer = match keys.len() {
        0 => String::new(),
        _ => format!("\nIn the footer: {}.\n", keys.join(", ")),
    };
    table(["column", "type", ""], listed) + &footer
}

/// A column's type in words; whole numbers of the database are unsigned.
fn kind(column: &ColumnDescriptor) -> &'static str {
    use parquet::basic::Type;
    match (column.logical_type_ref(), column.physical_type()) {
        (Some(LogicalType::String), _) => "text",
        (_, Type::INT64) => "64-bit integer",
        (_, Type::INT32) => "32-bit integer",
        (_, Type::DOUBLE) => "double",
        (_, Type::BOOLEAN) => "boolean",
        (_, Type::BYTE_ARRAY) => "text",
        (_, other) => panic!("a column of type {other}"),
    }
}

fn telemetry() -> String {
    let tables = Table::ALL.map(|one| {
        let columns = one.columns().iter().map(|column| {
            let (kind, what) = match column {
                Column::Long(_) => ("64-bit integer", String::new()),
                Column::Int(_) => ("32-bit integer", String::new()),
                Column::OrNone(_) => ("32-bit integer", "-1 for none".to_owned()),
                Column::Byte(_) => ("8-bit integer", String::new()),
                Column::Host(_) => ("text", "a host's name".to_owned()),
                Column::Lever(_) => ("text", "a lever's name".to_owned()),
                Column::Arm(_) => ("text", "the name of one of its arms".to_owned()),
                Column::Name(_, names) => ("text", listed(names)),
            };
            row(column.name(), kind, &what)
        });
        format!(
            "## `{}`\n\n{}",
            one.name(),
            table(["column", "type", ""], columns)
        )
    });
    tables.join("\n")
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
