//! `colltune export`: the best choices as tables that the MPI libraries read themselves.
//!
//! ```text
//! $ colltune export --db ./hydra.db --format openmpi --nodes 4 --ppn 16 -o tables
//! $ . tables/activate.sh
//! $ mpirun -n 64 ./solver          # no preload
//! ```

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use colltune_core::environment;
use colltune_core::levers::{self, Arms};
use colltune_core::library::{Library, Product};
use colltune_core::model::Source;
use colltune_core::spelling::quoted;
use colltune_db::Database;
use colltune_db::generation;
use colltune_db::site::Tables;
use colltune_models::statistics::CellStatistics;

use super::lever;
use super::train::counted;
use crate::export::notes::{Notes, PredictedNote};
use crate::export::plan::JobShape;
use crate::export::{intel, mpich, openmpi};
use crate::published::{self, Published};
use colltune_output::failure::usage;
use colltune_output::progress;
use colltune_output::{is_stdout, print, write as write_file};

/// Writes the tables.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let shape = shape(args)?;
    let is_database = |db: PathBuf| args.output.canonicalize().is_ok_and(|output| output == db);
    if args.db.canonicalize().is_ok_and(is_database) {
        return Err(usage(format!(
            "export into the database itself: name another folder, such as {}",
            args.db.join("tables").display()
        )));
    }
    let published = published::load(&args.db, args.library.as_deref(), args.format.product())?;
    let files = files(&args.db, &published, args.format, shape)?;
    match is_stdout(&args.output) {
        true => printed(args.format, &files)?,
        false => write(&args.output, &files)?,
    }
    summary(args, &published, &files);
    Ok(())
}

/// Writes the tables of every trained library of a database below `folder`, each in its own format, and says how many
/// cells depart from the default there by an algorithm of the library's own.
pub fn every(db: &Path, folder: &Path) -> anyhow::Result<Vec<(PathBuf, usize)>> {
    let mut written = Vec::new();
    let all = of_libraries(db)?.into_iter();
    for (tables, n_departing) in all.filter(|(tables, _)| !tables.files.is_empty()) {
        let folder = folder.join(tables.key.to_string());
        write(&folder, &tables.files)?;
        written.push((folder, n_departing));
    }
    Ok(written)
}

/// The tables of every trained library of a database.
pub fn of_every(db: &Path) -> anyhow::Result<Vec<Tables>> {
    let all = of_libraries(db)?;
    Ok(all.into_iter().map(|(tables, _)| tables).collect())
}

/// These, each in the library's own format, and how many cells depart from the default in them; no files where a library
/// reads none.
fn of_libraries(db: &Path) -> anyhow::Result<Vec<(Tables, usize)>> {
    let mut all = Vec::new();
    let trained = generation::trained(&Database::open(db)?)?;
    // A table made of the others would lose the settings that their users made.
    for key in trained.into_iter().filter(|key| key.told.is_none()) {
        let library = key.library;
        let published = published::load(db, Some(&key.to_string()), library.product)?;
        let format = Format::of(library);
        let files = format.map(|format| files(db, &published, format, None));
        let files = files.transpose()?.unwrap_or_default();
        all.push((Tables { key, files }, n_departing(&published, library)));
    }
    Ok(all)
}

/// In how many cells an algorithm of the library's own takes the default's place.
fn n_departing(published: &Published, library: Library) -> usize {
    let departs = |cell: &&CellStatistics| cell.native(library).is_some();
    published.cells.iter().filter(departs).count()
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune export --db ./hydra.db --format openmpi -o tables
      rules.conf, activate.sh and notes.json for the library of the database.
  . tables/activate.sh && mpirun -n 64 ./solver
      Run with the tables, without colltune.
  colltune export --db ./hydra.db --format openmpi --nodes 4 --ppn 16 -o tables
      For jobs of 4 nodes with 16 ranks each: Open MPI's rules know ranks, not nodes.
  colltune export --db ./hydra.db --format openmpi -o - | less
      The table alone, to standard output.

Where no variant that was measured replaces the default (`status --why`), the tables keep the
library's own choice. notes.json says what the format could not hold. For programs that
read cells and variants: `status --json`, and `query` on its tables cells and variants.
Exit codes: 0 done, 1 failed, 2 wrong usage.")]
pub struct Args {
    /// The tuning database
    #[arg(long, env = "COLLTUNE_DB", hide_env_values = true, value_name = "DIR")]
    db: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: Format,
    /// The MPI library and version, where the database holds several: openmpi-4.1.4
    #[arg(long, value_name = "KEY")]
    library: Option<String>,
    /// Nodes of the jobs that the table is for
    #[arg(long, value_name = "N", requires = "ppn", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    nodes: Option<u64>,
    /// Ranks on each node of these jobs
    #[arg(long, value_name = "N", requires = "nodes", value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    ppn: Option<u64>,
    /// The folder to write to, made if it does not exist; `-` prints the table alone
    #[arg(short, long, value_name = "OUTDIR")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Rules file of Open MPI 4.1 and 5.0
    Openmpi,
    /// Selection files of MPICH 4.0 to 5.0
    Mpich,
    /// Variables of Intel MPI
    Intel,
}

impl Format {
    /// What a library reads itself.
    const fn of(library: Library) -> Option<Format> {
        match library.product {
            Product::OpenMpi => Some(Format::Openmpi),
            Product::Mpich => Some(Format::Mpich),
            Product::Intel => Some(Format::Intel),
            Product::Cray | Product::Mvapich => None,
        }
    }

    const fn product(self) -> Product {
        match self {
            Format::Openmpi => Product::OpenMpi,
            Format::Mpich => Product::Mpich,
            Format::Intel => Product::Intel,
        }
    }
}

fn shape(args: &Args) -> anyhow::Result<Option<JobShape>> {
    let shape = args
        .nodes
        .zip(args.ppn)
        .map(|(nodes, ppn)| JobShape { nodes, ppn });
    if let Some(JobShape { nodes, ppn }) = shape.filter(|shape| shape.nodes * shape.ppn > 1 << 21) {
        return Err(usage(format!(
            "export for {nodes} nodes of {ppn} ranks: more than {} ranks",
            1 << 21
        )));
    }
    Ok(shape)
}

/// The files of a format: names and contents.
fn files(
    db: &Path,
    published: &Published,
    format: Format,
    shape: Option<JobShape>,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let library: Library = published.library.parse()?;
    let mut notes = Notes {
        schema: 1,
        library: published.library.clone(),
        machine: published.machine.clone(),
        generation: published.generation,
        format: format
            .to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned()),
        predicted: predicted(published, library),
        ..Notes::default()
    };
    let mut files = match format {
        Format::Openmpi => {
            let rules = openmpi::rules_file(published, library, shape, &mut notes);
            vec![("rules.conf", rules), ("activate.sh", openmpi::activate())]
        }
        Format::Intel => {
            let variables = intel::variables(published, library, shape, &mut notes);
            vec![("activate.sh", intel::activate(&variables))]
        }
        Format::Mpich => {
            let files = mpich::files(published, library, shape, &mut notes)?;
            vec![
                ("mpir.json", files.mpir),
                ("ch4.json", files.ch4),
                ("activate.sh", mpich::activate()),
            ]
        }
    };
    let variables = lever::variables(&colltune_launch::database::open(db)?, library);
    let scripts = files.iter_mut().filter(|(name, _)| *name == "activate.sh");
    scripts.for_each(|(_, text)| *text += &told(&published.levers, &variables));
    files.push(("notes.json", serde_json::to_string_pretty(&notes)? + "\n"));
    Ok(files)
}

/// Tells programs that ask about levers what was chosen for most of their epochs, and the library what was chosen for its
/// variables, where the user has not set them.
fn told(arms: &Arms, variables: &[(String, String)]) -> String {
    let set =
        |(name, value): &(String, String)| format!("export {name}=\"${{{name}:-{value}}}\"\n");
    let variables: String = variables.iter().map(set).collect();
    if arms.is_empty() {
        return variables;
    }
    variables
        + &format!(
            "# For programs that ask about their own options; over several nodes Open MPI's mpirun passes it on by -x {0}.\n\
         export {0}={1}\n",
            environment::LEVERS,
            quoted(&levers::spell(arms))
        )
}

/// The cells whose choice was not measured.
fn predicted(published: &Published, library: Library) -> Vec<PredictedNote> {
    let cells = published.cells.iter();
    let cells = cells.filter(|cell| cell.source == Source::Predicted);
    cells
        .filter_map(|cell| {
            let (winner, _) = cell.native(library)?;
            Some(PredictedNote {
                cell: cell.cell.to_string(),
                winner: winner.name.clone(),
            })
        })
        .collect()
}

/// Writes each file so that a running job never reads half a table.
fn write(folder: &Path, files: &[(&'static str, String)]) -> anyhow::Result<()> {
    for (name, text) in files {
        write_file(folder, name, text)?;
    }
    Ok(())
}

/// Prints the one file that is the table; what is beside it says how to use it, and what it could not hold.
///
/// Errors: of usage, where the library reads two.
fn printed(format: Format, files: &[(&'static str, String)]) -> anyhow::Result<()> {
    let beside =
        |name: &str| name == "notes.json" || name == "activate.sh" && format != Format::Intel;
    let tables: Vec<_> = files.iter().filter(|(name, _)| !beside(name)).collect();
    match tables[..] {
        [(_, text)] => print(text),
        _ => {
            let names: Vec<_> = tables.iter().map(|(name, _)| *name).collect();
            Err(usage(format!(
                "print the tables: they are {} files, {}; name a folder with -o",
                names.len(),
                names.join(" and ")
            )))
        }
    }
}

fn summary(args: &Args, published: &Published, files: &[(&'static str, String)]) {
    let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
    if !is_stdout(&args.output) {
        progress::hint(format_args!(
            "generation {} of {} written to {}: {}",
            published.generation,
            published.library,
            args.output.display(),
            names.join(", ")
        ));
    }
    if let Ok(library) = published.library.parse() {
        match predicted(published, library).len() {
            0 => {}
            n => progress::hint(format_args!(
                "the choices of {n} cells are predicted and not measured; notes.json lists them"
            )),
        }
        match n_departing(published, library) {
            0 => progress::hint(format_args!(
                "in no cell an algorithm of the library's own was shown to be faster, so the table changes nothing"
            )),
            n => progress::hint(format_args!(
                "in {} an algorithm of the library's own replaces its default",
                counted(n as u64, "cell")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_tells_programs_the_arms_whatever_stands_in_them() {
        let arms = Arms::from([("placement".to_owned(), "cplx:50;'x'".to_owned())]);
        let script = told(&arms, &[]) + "printf %s \"$COLLTUNE_LEVERS\"";
        let shell = std::process::Command::new("sh")
            .args(["-c", &script])
            .output();
        let told = String::from_utf8(shell.expect("there is a shell").stdout).expect("it is text");
        assert_eq!(levers::parse(&told), arms, "{script}");
    }
}
