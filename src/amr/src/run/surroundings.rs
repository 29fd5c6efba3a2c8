//! What a run finds out about its machine before it starts, for policies and triggers that ask: nodes and links.

use std::path::Path;

use colltune_core::algorithm::simulate;
use colltune_core::calibration::Calibration;
use colltune_placement::{Link, Machine};

use crate::checksum::Broken;
use crate::placement::topology::Topology;
use crate::ranks::Ranks;
use crate::settings::Settings;
use crate::telemetry::host::{Place, numbered};

/// The nodes of the job's ranks, and what `--machine` says of messages; none under `--compat`.
///
/// Errors: the machine's file cannot be used, by the words of the first rank, which reads it.
pub(super) fn topology(ranks: &dyn Ranks, settings: &Settings) -> Result<Option<Topology>, Broken> {
    if settings.options.compat {
        return Ok(None);
    }
    let links = match &settings.options.machine {
        Some(path) => Some(links(ranks, path)?),
        None => None,
    };
    let nodes = match settings.options.ranks_per_node {
        Some(n) => (0..ranks.n_ranks() as u64)
            .map(|rank| rank / u64::from(n))
            .collect(),
        None => {
            let all = ranks.allgather_bytes(&Place::here().encode());
            let places: Vec<Place> = all.iter().map(|place| Place::decode(place)).collect();
            numbered(places.iter().map(|place| place.host.as_str())).0
        }
    };
    Ok(Some(Topology::new(&nodes, links)))
}

/// The first rank's file, on all ranks alike.
fn links(ranks: &dyn Ranks, path: &Path) -> Result<Machine, Broken> {
    let read = match ranks.rank() {
        0 => read(path).map(Some),
        _ => Ok(None),
    };
    let (read, complaint) = match read {
        Ok(links) => (links, None),
        Err(what) => (None, Some(what)),
    };
    if let Some(what) = super::agree::agree(ranks, complaint) {
        return Err(Broken::Placement { step: 0, what });
    }
    let mut numbers = read.map_or([0.0; 4], |machine| {
        let Machine { same_node, remote } = machine;
        [
            same_node.latency,
            same_node.per_byte,
            remote.latency,
            remote.per_byte,
        ]
    });
    ranks.broadcast_f64(0, &mut numbers);
    let link = |first: usize| Link {
        latency: numbers[first],
        per_byte: numbers[first + 1],
    };
    Ok(Machine {
        same_node: link(0),
        remote: link(2),
    })
}

fn read(path: &Path) -> Result<Machine, String> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read --machine {file}: {error}"))?;
    let calibration = Calibration::from_toml(&text)
        .map_err(|error| format!("--machine {file}: failed to {error}"))?;
    let machine = calibration.machine();
    Ok(Machine {
        same_node: link(&machine.inside),
        remote: link(&machine.between),
    })
}

/// Seconds, as measured costs are.
fn link(link: &simulate::Link) -> Link {
    Link {
        latency: 1e-9 * (link.latency_ns + 2.0 * link.overhead_ns),
        per_byte: 1e-9 * link.per_byte_ns,
    }
}
