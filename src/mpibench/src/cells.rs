//! The cells that a mode works on, as the command line names them.

use colltune_core::collective::Collective;
use colltune_core::variant::Size;

/// A collective and a message size.
pub type Cell = (Collective, usize);

/// The cells that a mode works on.
#[derive(clap::Args)]
pub struct CellArguments {
    /// Collectives, each with every size.
    #[arg(long, value_delimiter = ',', default_value = "allreduce,bcast,allgather,alltoall,reduce",
          value_parser = read_collective)]
    collectives: Vec<Collective>,
    /// Message sizes in bytes, KiB or MiB, in each collective's own meaning (for allgather one rank's block).
    #[arg(long, value_delimiter = ',', default_value = "8,64,512,4KiB,32KiB,256KiB", value_parser = read_size)]
    sizes: Vec<usize>,
    /// Single cells such as `allreduce:8,bcast:32KiB`, in place of --collectives and --sizes.
    #[arg(long, value_delimiter = ',', value_parser = read_cell)]
    cells: Vec<Cell>,
}

impl CellArguments {
    pub fn list(&self) -> Vec<Cell> {
        if !self.cells.is_empty() {
            return self.cells.clone();
        }
        let pairs = |&collective| self.sizes.iter().map(move |&size| (collective, size));
        self.collectives.iter().flat_map(pairs).collect()
    }
}

fn read_collective(text: &str) -> Result<Collective, String> {
    let known = || Collective::ALL.map(Collective::name).join(", ");
    Collective::from_name(text).ok_or_else(|| format!("unknown collective (allowed: {})", known()))
}

fn read_size(text: &str) -> Result<usize, String> {
    let Size(bytes) = text.parse().map_err(|error| format!("failed to {error}"))?;
    // Blocks are counted by a C int, and every rank holds one per rank.
    if bytes <= 1 << 30 {
        Ok(bytes as usize)
    } else {
        Err("at most 1GiB".to_owned())
    }
}

fn read_cell(text: &str) -> Result<Cell, String> {
    let (collective, size) = text
        .split_once(':')
        .ok_or("it looks like COLLECTIVE:SIZE, as in bcast:32KiB")?;
    Ok((read_collective(collective)?, read_size(size)?))
}
