//! One exchange of messages as the axes need it: by sender, then by receiver.

use std::sync::Arc;

use colltune_amr::telemetry::Freight;

use crate::counting::sort_by_number;
use crate::traffic::Sweep;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// Messages that are posted together and then waited for, and what ranks copy meanwhile.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub freight: Freight,
    /// By sender, then by receiver.
    pub messages: Vec<Message>,
    /// By message: what is read to pack it, in bytes from the dearest memory; empty where that is what it sends.
    pub read_bytes: Vec<f64>,
    /// Where each rank's messages begin, and the end.
    pub starts: Vec<u32>,
    /// By rank: faces filled from own blocks, and their bytes.
    pub links: Vec<u64>,
    pub copied_bytes: Vec<u64>,
    /// Blocks that go to new owners; what goes of blocks that are joined is none.
    pub moved_blocks: u64,
    /// What ghosts are made of, for so many variables.
    pub sweep: Option<(Arc<Sweep>, u64)>,
}

impl Exchange {
    /// Messages in any order.
    pub fn new(freight: Freight, n_ranks: usize, mut messages: Vec<Message>) -> Exchange {
        let mut spare = Vec::new();
        sort_by_number(&mut messages, &mut spare, n_ranks, |message| message.to);
        sort_by_number(&mut messages, &mut spare, n_ranks, |message| message.from);
        let starts = starts(n_ranks, &messages);
        Exchange {
            freight,
            messages,
            starts,
            read_bytes: Vec::new(),
            links: Vec::new(),
            copied_bytes: Vec::new(),
            moved_blocks: 0,
            sweep: None,
        }
    }

    /// Ghosts of `n_vars` variables; fluxes are no ghosts, and are copied for nothing. A value for a coarser neighbour is
    /// made of so many, and ranks are as slow as `slowness` says.
    pub fn of_sweep(
        freight: Freight,
        sweep: &Arc<Sweep>,
        n_vars: u64,
        (reads, slowness): (u64, &[f64]),
    ) -> Exchange {
        let message = |flow: &crate::traffic::Flow| Message {
            from: flow.from,
            to: flow.to,
            bytes: 8 * n_vars * flow.n_values(),
        };
        let messages: Vec<Message> = sweep.flows.iter().map(message).collect();
        let read = |flow: &crate::traffic::Flow| {
            slowness[flow.from as usize] * (8 * n_vars * flow.n_read(reads)) as f64
        };
        let n_ranks = sweep.links.len();
        let copies = freight == Freight::Ghost;
        let times = |n: &u64| 8 * n_vars * n;
        Exchange {
            starts: starts(n_ranks, &messages),
            freight,
            messages,
            read_bytes: sweep.flows.iter().map(read).collect(),
            links: if copies {
                sweep.links.clone()
            } else {
                Vec::new()
            },
            copied_bytes: match copies {
                true => sweep.copied.iter().map(times).collect(),
                false => Vec::new(),
            },
            moved_blocks: 0,
            sweep: Some((Arc::clone(sweep), n_vars)),
        }
    }

    /// Bytes of a message that are read to pack it.
    pub fn read_bytes(&self, place: usize) -> f64 {
        let bytes = self.messages[place].bytes as f64;
        self.read_bytes.get(place).copied().unwrap_or(bytes)
    }

    pub fn of_rank(&self, rank: usize) -> std::ops::Range<usize> {
        self.starts[rank] as usize..self.starts[rank + 1] as usize
    }
}

fn starts(n_ranks: usize, messages: &[Message]) -> Vec<u32> {
    let mut starts = vec![0u32; n_ranks + 1];
    for message in messages {
        starts[message.from as usize + 1] += 1;
    }
    for rank in 0..n_ranks {
        starts[rank + 1] += starts[rank];
    }
    starts
}
