//! Messages that are counted while a run is listed.

use colltune_amr::telemetry::Freight;

use crate::program::{Operation, Phase};

/// Where an operation stands in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Stages,
    Refinement,
}

pub fn computes(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Work {
            phase: Phase::Compute,
            ..
        }
    )
}

/// What is counted while a run is listed.
#[derive(Default)]
pub struct Tally {
    pub n_messages: f64,
    pub message_bytes: f64,
    pub moved_blocks: u64,
    pub block_bytes: u64,
    /// From, to and messages: of the first stage, and of the refinement.
    pub ghosts: Vec<(u32, u32, u64)>,
    pub moves: Vec<(u32, u32, u64)>,
    stage: Vec<(u32, u32, u64)>,
    refinement: Vec<(u32, u32, u64)>,
    n_computed: usize,
}

impl Tally {
    pub fn new(block_bytes: u64) -> Tally {
        Tally {
            block_bytes,
            ..Tally::default()
        }
    }

    /// Counts an operation's messages.
    pub fn add(&mut self, section: Section, operation: &Operation) {
        self.n_computed += usize::from(computes(operation));
        let Operation::Exchange(exchange) = operation else {
            return;
        };
        match (section, exchange.freight) {
            (Section::Stages, Freight::Ghost) => {
                self.n_messages += exchange.messages.len() as f64;
                self.message_bytes += exchange
                    .messages
                    .iter()
                    .map(|m| m.bytes as f64)
                    .sum::<f64>();
                if self.n_computed == 0 {
                    let all = exchange.messages.iter().map(|m| (m.from, m.to, 1));
                    self.stage.extend(all);
                }
            }
            (Section::Refinement, Freight::Block) => {
                self.moved_blocks += exchange.moved_blocks;
                let blocks = |bytes: u64| bytes.div_ceil(self.block_bytes);
                let all = exchange.messages.iter();
                self.refinement
                    .extend(all.map(|m| (m.from, m.to, blocks(m.bytes))));
            }
            _ => {}
        }
    }

    /// Ends the steps between two refinements.
    pub fn end_epoch(&mut self) {
        self.n_computed = 0;
        self.ghosts = std::mem::take(&mut self.stage);
        let refinement = std::mem::take(&mut self.refinement);
        if !refinement.is_empty() {
            self.moves = refinement;
        }
    }
}
