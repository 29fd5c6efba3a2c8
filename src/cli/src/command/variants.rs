//! `colltune variants`: what can be drawn, forced and exported.
//!
//! ```text
//! $ colltune variants --mpi openmpi --collective bcast
//! ```

use clap::builder::TypedValueParser;
use colltune_core::catalogue::{self, Need, Steering, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::{Library, Product};
use colltune_core::variant::Size;
use serde::Serialize;

use colltune_launch::library::reference;
use colltune_output::parse::{self, Listed};
use colltune_output::{aligned, print};

/// Prints the catalogue.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let rows = rows(args);
    let text = if args.json {
        serde_json::to_string(&Json {
            schema: 1,
            variants: &rows,
        })? + "\n"
    } else {
        table(&rows)
    };
    print(&text)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  colltune variants
  colltune variants --mpi openmpi --collective bcast
  colltune variants --mpi mpich-5.0.2
  colltune run --force 'bcast=native:pipeline:segsize=32KiB' -- mpirun -n 8 ./solver
      A name from the list, on every call that has what the variant needs.

`default` is the library's own choice and always applies; `native` variants are the library's own
algorithms, `p2p` are colltune's schedules, `node` its shared memory inside the nodes. A call that
lacks what a drawn or forced variant needs runs `default`.")]
pub struct Args {
    /// Only this MPI library, or a version of it, as in openmpi-5.0.11
    #[arg(long, value_parser = library(), value_name = "LIBRARY")]
    mpi: Option<Library>,
    /// Only this collective
    #[arg(long, value_parser = parse::collective(), value_name = "COLLECTIVE")]
    collective: Option<Collective>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An MPI library by its name, as of the version that the catalogue begins with, or by its key. The names are listed.
fn library() -> impl TypedValueParser<Value = Library> {
    Listed {
        names: Product::ALL.map(Product::name).to_vec(),
        read: |text| match Product::from_name(text) {
            Some(product) => Ok(reference(product)),
            None => text.parse().map_err(|_| {
                let names = Product::ALL.map(Product::name).join(", ");
                format!("allowed: {names}, or with a version, as in mpich-5.0.2")
            }),
        },
    }
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    variants: &'a [Row],
}

#[derive(Serialize)]
struct Row {
    mpi: &'static str,
    collective: Collective,
    name: String,
    /// How the library itself calls it; `null` for the default and for our own algorithms.
    library_name: Option<String>,
    needs: Vec<String>,
}

fn rows(args: &Args) -> Vec<Row> {
    let libraries = match args.mpi {
        Some(library) => vec![library],
        None => Product::ALL.map(reference).to_vec(),
    };
    let collectives: Vec<Collective> = Collective::ALL
        .into_iter()
        .filter(|collective| args.collective.is_none_or(|only| only == *collective))
        .collect();
    libraries
        .into_iter()
        .flat_map(|library| {
            collectives
                .iter()
                .flat_map(move |collective| of(library, *collective))
        })
        .collect()
}

fn of(library: Library, collective: Collective) -> impl Iterator<Item = Row> {
    catalogue::variants(library, collective)
        .into_iter()
        .map(move |variant| Row {
            mpi: library.product.name(),
            collective,
            library_name: match variant.steering {
                Steering::None => None,
                Steering::OpenMpi { algorithm, .. } => {
                    Some(format!("coll_tuned_{collective}_algorithm={algorithm}"))
                }
                Steering::Mpich { algorithm } => Some(format!(
                    "MPIR_CVAR_{}_INTRA_ALGORITHM={algorithm}",
                    collective.name().to_uppercase()
                )),
                Steering::Intel { preset } => Some(format!(
                    "I_MPI_ADJUST_{}={preset}",
                    collective.name().to_uppercase()
                )),
            },
            needs: needs(&variant),
            name: variant.name.to_string(),
        })
}

fn needs(variant: &Variant) -> Vec<String> {
    let of_call = variant.needs.iter().map(|need| in_words(variant, *need));
    let across = variant.needs_across.iter();
    let across = across.map(|need| format!("{} between the nodes", in_words(variant, *need)));
    of_call.chain(across).collect()
}

/// A need in words, with the variant's own number where it has one.
fn in_words(variant: &Variant, need: Need) -> String {
    match (need, variant.name.segsize) {
        (Need::MessageAboveSegment, Some(size)) => format!("a message above {}", Size(size)),
        (Need::TwoSegments, Some(size)) => format!("a message of at least {}", Size(2 * size)),
        (Need::ShareAboveSegment, Some(size)) => {
            format!("a message above {} per rank", Size(size))
        }
        (Need::SegmentPerRank, Some(size)) => {
            format!("a message of at least {} per rank", Size(size))
        }
        _ => need.describe().to_owned(),
    }
}

fn table(rows: &[Row]) -> String {
    let cells = |row: &Row| vec![row.name.clone(), row.needs.join(", ")];
    let aligned = aligned(&rows.iter().map(cells).collect::<Vec<_>>(), |_| true);
    let mut text = String::new();
    let mut last = None;
    for (row, line) in rows.iter().zip(aligned.lines()) {
        if last != Some((row.mpi, row.collective)) {
            let gap = if last.is_some() { "\n" } else { "" };
            text.push_str(&format!("{gap}{} {}\n", row.mpi, row.collective));
            last = Some((row.mpi, row.collective));
        }
        text.push_str(&format!("  {line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_of_the_catalogue_is_listed_with_its_needs() {
        let rows = rows(&Args {
            mpi: None,
            collective: None,
            json: false,
        });
        let known: usize = Product::ALL
            .into_iter()
            .map(|product| catalogue::all(reference(product)).len())
            .sum();
        assert_eq!(rows.len(), known);
        let text = table(&rows);
        assert!(text.contains("native:pipeline:segsize=32KiB"));
        assert!(text.contains("a message above 32KiB"));
        assert!(text.contains("a power-of-two number of ranks"));
    }
}
