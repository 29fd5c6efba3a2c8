//! `colltune query`: SQL over a database and telemetry.
//!
//! ```text
//! $ colltune query --db ./hydra.db "SELECT collective, best, gain FROM cells WHERE in_force = 1"
//! $ colltune query --telemetry ./telemetry "SELECT phase, sum(time_ns) / 1e9 AS s FROM phases GROUP BY phase"
//! ```

use std::io::{BufWriter, ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use colltune_query::answer::{CsvLines, Grid, JsonRows, ParquetOut, Sink};
use colltune_query::{Engine, QueryError, examples, schema};

use colltune_output::failure::{usage, wrong};
use colltune_output::progress;
use colltune_output::{is_stdout, print};

/// Prints or writes the answer.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if args.examples {
        return print(examples::TEXT);
    }
    if args.db.is_none() && args.telemetry.is_empty() {
        return Err(wrong("nothing to ask: give --db DIR or --telemetry FOLDER"));
    }
    let engine = colltune_query::open(args.db.as_deref(), &args.telemetry)?;
    let answered = answer(&engine, args);
    for warning in engine.take_warnings() {
        progress::hint(warning);
    }
    answered
}

fn answer(engine: &Engine, args: &Args) -> anyhow::Result<()> {
    if args.schema {
        return print(&schema::text(engine));
    }
    let sql = args.sql()?;
    let memory_bytes = args.memory_bytes();
    Engine::limit_memory(memory_bytes)?;
    let out = BufWriter::new(std::io::stdout().lock());
    let mut sink: Box<dyn Sink + '_> = match &args.output {
        Some(path) => {
            let stdout = is_stdout(path).then(|| Path::new("/dev/stdout"));
            Box::new(ParquetOut::new(stdout.unwrap_or(path), memory_bytes))
        }
        None if args.csv => Box::new(CsvLines::new(out)),
        None if args.json => Box::new(JsonRows::new(out)),
        None => Box::new(Grid::new(out, width())),
    };
    match engine.ask(&sql, sink.as_mut()) {
        // Whoever reads has seen enough.
        Err(QueryError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error @ QueryError::Sql(_)) => Err(usage(error)),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}

/// Columns of the terminal, where there is one.
fn width() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = stdout
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(stdout));
    let columns = size?.ok()?.ws_col;
    (columns > 0).then_some(columns.into())
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune query --db ./hydra.db \"SELECT collective, variant, count(*) FROM calls GROUP BY 1, 2\"
  colltune query --telemetry ./telemetry --csv \"SELECT step, rank, sum(time_ns) FROM phases GROUP BY 1, 2\"
  colltune query --db ./hydra.db -o cells.parquet \"SELECT * FROM cells WHERE in_force = 1\"
  colltune query --db ./hydra.db --schema            the tables, their columns, types and units
  colltune query --examples                          ten queries to begin with

SQL is SQLite's, with median, quantile(x, p), stddev, mad, corr, spearman and geomean. Nothing can
be changed by a query. The columns that a query names are read into memory, and no others. Files
that cannot be read are left out and named. Several telemetry folders are told apart by the column
`folder`.
Exit codes: 0 done, 1 failed, 2 wrong usage, such as SQL with errors.")]
pub struct Args {
    /// The query; `-` reads it from standard input
    #[arg(value_name = "SQL", required_unless_present_any = ["schema", "examples"], allow_hyphen_values = true)]
    sql: Option<String>,
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// A folder with telemetry, as colltune-amr --telemetry DIR writes it; may be given again
    #[arg(long, value_name = "DIR")]
    telemetry: Vec<PathBuf>,
    /// The most memory for tables and sorting, in GiB; half of what is free unless given
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory: Option<u64>,
    /// Print CSV
    #[arg(long, conflicts_with_all = ["json", "output"])]
    csv: bool,
    /// Print JSON, an object for each row
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Write a Parquet file; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the tables, their columns, types and units
    #[arg(long, conflicts_with = "sql")]
    schema: bool,
    /// Print ten queries to begin with
    #[arg(long, conflicts_with_all = ["sql", "schema"])]
    examples: bool,
}

impl Args {
    fn memory_bytes(&self) -> u64 {
        let free_kib = || {
            let text = std::fs::read_to_string("/proc/meminfo").ok()?;
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemAvailable:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        match self.memory {
            Some(gib) => gib << 30,
            None => free_kib().map_or(2 << 30, |kib| kib << 9),
        }
    }

    fn sql(&self) -> anyhow::Result<String> {
        let sql = self.sql.as_deref().unwrap_or("");
        // A query may begin with a comment, which looks like an option.
        if sql.starts_with("--") && !sql.contains('\n') {
            return Err(wrong(format!(
                "unknown option {}; `colltune query --help` lists them",
                sql.split_whitespace().next().unwrap_or(sql)
            )));
        }
        if sql != "-" {
            return Ok(sql.to_owned());
        }
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.context("read the query from standard input")?;
        Ok(text)
    }
}
