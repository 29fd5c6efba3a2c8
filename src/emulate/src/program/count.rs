//! Messages and bytes of operations by rank and kind, as telemetry counts them.

use std::sync::Arc;

use colltune_amr::mesh::Mesh;
use colltune_amr::settings::Settings;
use colltune_amr::telemetry::{Freight, Kind, Meeting, Traffic};

use super::epoch::Sweeps;
use super::{Exchange, Operation};
use crate::cost::Memory;
use crate::traffic::groups;

/// Adds what each rank sends in an operation.
pub fn count(operation: &Operation, traffic: &mut [Traffic]) {
    match operation {
        Operation::Work { .. } | Operation::Alike { .. } => {}
        Operation::Exchange(exchange) => count_exchange(exchange, traffic),
        Operation::Collective(call) if !call.is_counted => {}
        Operation::Collective(call) => {
            let kind = match call.meeting {
                Meeting::Allreduce | Meeting::Agree => Kind::Reduction,
                Meeting::Barrier => return,
                _ => Kind::Metadata,
            };
            for (rank, traffic) in traffic.iter_mut().enumerate() {
                let bytes = call.by_rank.as_ref().map_or(call.bytes, |all| all[rank]);
                traffic.add(kind, 1, bytes);
            }
        }
    }
}

fn count_exchange(exchange: &Exchange, traffic: &mut [Traffic]) {
    match (&exchange.sweep, exchange.freight) {
        (Some((sweep, n_vars)), Freight::Ghost) => {
            for flow in &sweep.flows {
                let traffic = &mut traffic[flow.from as usize];
                traffic.add(flow.kind(), 1, 0);
                for (kind, values) in flow.by_kind() {
                    traffic.add(kind, 0, 8 * n_vars * values);
                }
            }
            let copies = exchange.links.iter().zip(&exchange.copied_bytes);
            for (traffic, (&links, &bytes)) in traffic.iter_mut().zip(copies) {
                traffic.add(Kind::Local, links, bytes);
            }
        }
        (_, freight) => {
            let kind = match freight {
                Freight::Flux => Kind::Flux,
                _ => Kind::Block,
            };
            for message in &exchange.messages {
                traffic[message.from as usize].add(kind, 1, message.bytes);
            }
        }
    }
}

/// What a rank has to do for the messages of ghosts and fluxes in a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageWork {
    /// Bytes that are read to pack what it sends, from the dearest memory.
    pub read_bytes: f64,
    pub received_messages: u64,
    pub received_bytes: u64,
}

/// By rank, in a step on `mesh`, where memory costs this.
pub fn message_work(
    (settings, memory): (&Settings, &Memory),
    mesh: &Mesh,
    n_ranks: usize,
    step: u64,
) -> Vec<MessageWork> {
    let sweeps = Sweeps::new((settings, memory), mesh, n_ranks);
    let mut all = vec![MessageWork::default(); n_ranks];
    let mut add = |exchange: &Arc<Exchange>, times: u64| {
        for (place, message) in exchange.messages.iter().enumerate() {
            all[message.from as usize].read_bytes += times as f64 * exchange.read_bytes(place);
            let to = &mut all[message.to as usize];
            to.received_messages += times;
            to.received_bytes += times * message.bytes;
        }
    };
    for n_vars in groups(settings) {
        let exchanges = sweeps.ghosts(n_vars);
        exchanges.iter().for_each(|e| add(e, settings.stages));
    }
    if let Some(flux) = &sweeps.flux {
        add(flux, settings.stages);
        // Before its marks the gas is asked with fresh ghosts.
        let freq = settings.options.refine_freq;
        if freq > 0 && step.is_multiple_of(freq) && settings.options.num_refine > 0 {
            sweeps
                .ghosts(settings.shape.n_vars as u64)
                .iter()
                .for_each(|e| add(e, 1));
        }
    }
    all
}
