//! `colltune-lab simulate`: how long colltune's own algorithms would take on a machine of any size.
//!
//! ```text
//! $ colltune-lab simulate --ranks 1024x32 --collective allreduce
//! $ colltune-lab simulate --ranks 4x2 --collective bcast --bytes 8,64KiB --db ./hydra.db --json
//! ```

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::TypedValueParser;
use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::registry::{self, Row, Values};
use colltune_core::algorithm::simulate::{Known, Link, Machine, estimate_ns};
use colltune_core::calibration::{self, Calibration};
use colltune_core::library::Library;
use colltune_core::variant::Size;
use colltune_db::Database;
use colltune_files::{SETTINGS_BYTES_MAX, read_text};
use serde::Serialize;

use colltune_output::failure::usage;
use colltune_output::parse::named;
use colltune_output::{self, print};

/// Prints the table, or JSON.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let (machine, source) = machine(args)?;
    let node_of = args.ranks.node_of();
    let predictions: Vec<Prediction> = registry::rows(args.collective)
        .filter(|row| row.fits(node_of.len()))
        .flat_map(|row| row.values().into_iter().map(move |values| (row, values)))
        .map(|(row, values)| predict(args, row, values, &node_of, &machine))
        .collect();
    let text = if args.json {
        json(args, &machine, &source, &predictions)?
    } else {
        table(args, &source, &predictions)
    };
    print(&text)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune-lab simulate --ranks 1024x32 --collective allreduce
      1024 nodes with 32 ranks each, on a usual machine.
  colltune-lab simulate --ranks 4x2 --collective bcast --db ./hydra.db
      With the parameters that `colltune calibrate --db ./hydra.db` measured.

Times are of the last rank, all ranks beginning together, in the manner of LogGP on two levels; the
ranks of a node share one port to the network. Sizes are in the collective's own meaning. Dashes
stand where a variant does not apply, and where the simulation would take more than --steps steps.
Long pipelines are simulated in part and continued.")]
pub struct Args {
    /// NODESxRANKS-PER-NODE, or the ranks of one node
    #[arg(long, value_parser = shape, value_name = "SHAPE")]
    ranks: Shape,
    /// The collective
    #[arg(long, value_parser = pattern(), value_name = "COLLECTIVE")]
    collective: Pattern,
    /// Message sizes
    #[arg(long, value_delimiter = ',', value_parser = size, value_name = "SIZES",
          default_value = "8,512,4KiB,32KiB,256KiB,2MiB")]
    bytes: Vec<u64>,
    /// The tuning database whose calibration is used
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: Option<PathBuf>,
    /// The MPI library and version, where the database holds several calibrations: openmpi-4.1.4
    #[arg(long, value_name = "KEY", requires = "db")]
    library: Option<Library>,
    /// The most steps that one simulation may take
    #[arg(long, default_value_t = 50_000_000, value_name = "N")]
    steps: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Nodes, and ranks on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    nodes: u32,
    ppn: u32,
}

impl Shape {
    fn node_of(self) -> Vec<u32> {
        (0..self.nodes * self.ppn)
            .map(|rank| rank / self.ppn)
            .collect()
    }
}

/// More ranks than this are more than a machine's memory.
const RANKS_MAX: u32 = 1 << 20;

fn shape(text: &str) -> Result<Shape, String> {
    let (nodes, ppn) = text.split_once('x').unwrap_or(("1", text));
    let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0);
    match number(nodes).zip(number(ppn)) {
        Some((nodes, ppn)) if nodes.checked_mul(ppn).is_some_and(|n| n <= RANKS_MAX) => {
            Ok(Shape { nodes, ppn })
        }
        Some(_) => Err(format!("at most {RANKS_MAX} ranks")),
        None => Err("it looks like 1024x32, nodes x ranks per node".to_owned()),
    }
}

fn pattern() -> impl TypedValueParser<Value = Pattern> {
    named(Pattern::ALL.map(Pattern::name), |text| {
        Pattern::ALL
            .into_iter()
            .find(|pattern| pattern.name() == text)
    })
}

fn size(text: &str) -> Result<u64, String> {
    let Size(bytes) = text.parse().map_err(|error| format!("failed to {error}"))?;
    Ok(bytes)
}

/// The machine, and where its parameters come from.
fn machine(args: &Args) -> anyhow::Result<(Machine, String)> {
    let usual = || (Machine::TYPICAL, "usual parameters".to_owned());
    let Some(db) = &args.db else {
        return Ok(usual());
    };
    let db = Database::open(db)?;
    let calibrated: Vec<Library> = db
        .libraries()?
        .into_iter()
        .filter(|library| args.library.is_none_or(|only| only == *library))
        .filter(|library| db.calibration(*library).is_file())
        .collect();
    let library = match calibrated[..] {
        [library] => library,
        [] if args.library.is_none() => return Ok(usual()),
        [] => anyhow::bail!(
            "find {} in {}: `colltune calibrate` writes it",
            calibration::FILE,
            db.root().display()
        ),
        _ => {
            return Err(usage(
                "simulate: the database has several calibrations, name one by --library",
            ));
        }
    };
    let file = db.calibration(library);
    let text =
        read_text(&file, SETTINGS_BYTES_MAX).with_context(|| format!("read {}", file.display()))?;
    let calibration =
        Calibration::from_toml(&text).with_context(|| format!("use {}", file.display()))?;
    Ok((
        calibration.machine(),
        format!("{}, {library}", calibration.machine),
    ))
}

#[derive(Serialize)]
struct Prediction {
    variant: String,
    /// One per size; `null` where the variant does not apply or takes too many steps.
    time_ns: Vec<Option<f64>>,
}

fn predict(
    args: &Args,
    row: &Row,
    values: Values,
    node_of: &[u32],
    machine: &Machine,
) -> Prediction {
    let mut known = Known::default();
    let time = |&bytes: &u64| {
        let in_one_piece =
            values.segsize > 0 && row.segments(bytes, node_of.len(), values.segsize) == 1;
        (!in_one_piece)
            .then(|| estimate_ns(&mut known, row, values, node_of, bytes, machine, args.steps))
            .flatten()
    };
    Prediction {
        variant: row.variant(values).to_string(),
        time_ns: args.bytes.iter().map(time).collect(),
    }
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    collective: &'static str,
    nodes: u32,
    ppn: u32,
    source: &'a str,
    inside: Link,
    between: Link,
    reduce_per_byte_ns: f64,
    copy_per_byte_ns: f64,
    bytes: &'a [u64],
    variants: &'a [Prediction],
}

fn json(
    args: &Args,
    machine: &Machine,
    source: &str,
    predictions: &[Prediction],
) -> anyhow::Result<String> {
    let json = Json {
        schema: 1,
        collective: args.collective.name(),
        nodes: args.ranks.nodes,
        ppn: args.ranks.ppn,
        source,
        inside: machine.inside,
        between: machine.between,
        reduce_per_byte_ns: machine.reduce_per_byte_ns,
        copy_per_byte_ns: machine.copy_per_byte_ns,
        bytes: &args.bytes,
        variants: predictions,
    };
    Ok(serde_json::to_string(&json)? + "\n")
}

fn table(args: &Args, source: &str, predictions: &[Prediction]) -> String {
    let Shape { nodes, ppn } = args.ranks;
    let best: Vec<f64> = (0..args.bytes.len())
        .map(|column| {
            let times = predictions.iter().filter_map(|of| of.time_ns[column]);
            times.fold(f64::INFINITY, f64::min)
        })
        .collect();
    let row = |prediction: &Prediction| {
        let times = prediction.time_ns.iter().zip(&best);
        let cells = times.map(|(time, best)| match time {
            None => "-".to_owned(),
            Some(time) if time <= best => format!("*{:.1}", time / 1e3),
            Some(time) => format!("{:.1}", time / 1e3),
        });
        std::iter::once(prediction.variant.clone())
            .chain(cells)
            .collect()
    };
    let sizes: Vec<String> = args
        .bytes
        .iter()
        .map(|bytes| Size(*bytes).to_string())
        .collect();
    let header: Vec<&str> = std::iter::once("")
        .chain(sizes.iter().map(String::as_str))
        .collect();
    format!(
        "{} on {nodes} x {ppn} ranks, predicted microseconds ({source})\n{}",
        args.collective.name(),
        colltune_output::table(&header, &predictions.iter().map(row).collect::<Vec<_>>())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_nodes_by_ranks() {
        assert_eq!(
            shape("1024x32"),
            Ok(Shape {
                nodes: 1024,
                ppn: 32
            })
        );
        assert_eq!(shape("8"), Ok(Shape { nodes: 1, ppn: 8 }));
        for text in ["", "x", "0x4", "4x", "-1x2", "4x2x1", "1048576x32"] {
            assert!(shape(text).is_err(), "{text}");
        }
        assert_eq!(Shape { nodes: 2, ppn: 2 }.node_of(), [0, 0, 1, 1]);
    }

    #[test]
    fn the_fastest_of_each_size_is_marked() {
        let args = Args {
            ranks: Shape { nodes: 16, ppn: 4 },
            collective: Pattern::Allreduce,
            bytes: vec![8, 1 << 22],
            db: None,
            library: None,
            steps: 1 << 22,
            json: false,
        };
        let node_of = args.ranks.node_of();
        let predictions: Vec<Prediction> = registry::rows(Pattern::Allreduce)
            .flat_map(|row| row.values().into_iter().map(move |values| (row, values)))
            .map(|(row, values)| predict(&args, row, values, &node_of, &Machine::TYPICAL))
            .collect();
        let text = table(&args, "usual", &predictions);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(text.matches('*').count(), 2, "{text}");
        assert!(!line("p2p:ring")[1].starts_with('*'));
        // A message of one segment is that of the variant in one piece.
        assert_eq!(line("p2p:segmented_ring:segsize=16KiB")[1], "-");
        let number = |text: &str| text.trim_start_matches('*').parse::<f64>().unwrap();
        assert!(number(&line("p2p:ring")[1]) > 3.0 * number(&line("p2p:recursive_doubling")[1]));
        assert!(number(&line("p2p:ring")[2]) < number(&line("p2p:recursive_doubling")[2]));
    }
}
