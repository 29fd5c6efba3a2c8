//! The rows and how they travel to the rank that writes them.

/// What a rank spends its time with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Compute,
    Pack,
    Wait,
    Unpack,
    Allreduce,
    Refine,
    Place,
    Migrate,
    Output,
}

impl Phase {
    pub const ALL: [Phase; 9] = [
        Phase::Compute,
        Phase::Pack,
        Phase::Wait,
        Phase::Unpack,
        Phase::Allreduce,
        Phase::Refine,
        Phase::Place,
        Phase::Migrate,
        Phase::Output,
    ];

    /// Its name in the column `phase`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Compute => "compute",
            Phase::Pack => "pack",
            Phase::Wait => "wait",
            Phase::Unpack => "unpack",
            Phase::Allreduce => "allreduce",
            Phase::Refine => "refine",
            Phase::Place => "place",
            Phase::Migrate => "migrate",
            Phase::Output => "output",
        }
    }
}

/// What a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Ghost values for a neighbour of the same level.
    GhostSame,
    /// Ghost values for finer neighbours.
    GhostToFiner,
    /// Ghost values for a coarser neighbour.
    GhostToCoarser,
    /// A message with ghost values of several kinds, whose bytes are counted as theirs.
    GhostMixed,
    /// Fluxes for the correction at a coarser neighbour.
    Flux,
    /// Blocks that are joined or change owner.
    Block,
    /// Allreduces: checksums, time steps, agreements.
    Reduction,
    /// Other collectives, mostly what the mesh itself costs: marks, costs, pictures.
    Metadata,
    /// Copies between blocks of one rank: no message, but bytes.
    Local,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::GhostSame,
        Kind::GhostToFiner,
        Kind::GhostToCoarser,
        Kind::GhostMixed,
        Kind::Flux,
        Kind::Block,
        Kind::Reduction,
        Kind::Metadata,
        Kind::Local,
    ];

    /// Its name in the column `kind`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::GhostSame => "ghost_same",
            Kind::GhostToFiner => "ghost_to_finer",
            Kind::GhostToCoarser => "ghost_to_coarser",
            Kind::GhostMixed => "ghost_mixed",
            Kind::Flux => "flux",
            Kind::Block => "block",
            Kind::Reduction => "reduction",
            Kind::Metadata => "metadata",
            Kind::Local => "local",
        }
    }
}

/// Time of one rank in one phase of one step.
///
/// Units:  nanoseconds of wall time, summed over the parts of the step that belong to the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRow {
    pub step: u64,
    pub rank: u32,
    pub phase: Phase,
    pub time_ns: u64,
}

/// What one rank sent in one step, or gave to collectives, whose calls count as messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRow {
    pub step: u64,
    pub rank: u32,
    pub kind: Kind,
    pub messages: u64,
    pub bytes: u64,
}

/// What one block cost its owner in one step.
///
/// Shape:  `block` is the leaf's level and coordinates in one word, as the mesh packs them.
/// Units:  nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRow {
    pub step: u64,
    pub rank: u32,
    pub block: u64,
    pub level: u8,
    pub compute_ns: u64,
}

/// Rows of all kinds, collected on a rank or gathered from a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub phases: Vec<PhaseRow>,
    pub messages: Vec<MessageRow>,
    pub blocks: Vec<BlockRow>,
}

impl Rows {
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty() && self.messages.is_empty() && self.blocks.is_empty()
    }

    /// Moves the rows of another collection behind these.
    pub fn append(&mut self, mut other: Rows) {
        self.phases.append(&mut other.phases);
        self.messages.append(&mut other.messages);
        self.blocks.append(&mut other.blocks);
    }

    /// The rows as bytes, to be sent: three counts, then five little-endian words a row (the last of a phase's
    /// row is 0).
    pub fn encode(&self) -> Vec<u8> {
        let counts = [self.phases.len(), self.messages.len(), self.blocks.len()].map(|n| n as u64);
        let phases = self.phases.iter().map(|row| {
            let phase = Phase::ALL
                .iter()
                .position(|phase| *phase == row.phase)
                .expect("one of all");
            [row.step, row.rank.into(), phase as u64, row.time_ns, 0]
        });
        let messages = self.messages.iter().map(|row| {
            let kind = Kind::ALL
                .iter()
                .position(|kind| *kind == row.kind)
                .expect("one of all");
            [
                row.step,
                row.rank.into(),
                kind as u64,
                row.messages,
                row.bytes,
            ]
        });
        let blocks = self.blocks.iter().map(|row| {
            [
                row.step,
                row.rank.into(),
                row.block,
                row.level.into(),
                row.compute_ns,
            ]
        });
        let rows = phases.chain(messages).chain(blocks).flatten();
        counts
            .into_iter()
            .chain(rows)
            .flat_map(u64::to_le_bytes)
            .collect()
    }

    /// Inverse of [`Rows::encode`]; `None` for bytes that are no rows.
    pub fn decode(bytes: &[u8]) -> Option<Rows> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (counts, words) = words.split_first_chunk::<3>()?;
        let (rows, odd) = words.as_chunks::<5>();
        let [phases, messages, blocks] = counts.map(|n| n as usize);
        let total = phases.checked_add(messages)?.checked_add(blocks)?;
        if total != rows.len() || !odd.is_empty() || !rest.is_empty() {
            return None;
        }
        let (phases, rows) = rows.split_at(phases);
        let (messages, blocks) = rows.split_at(messages);
        let phase = |&[step, rank, phase, time_ns, _]: &[u64; 5]| {
            let (rank, phase) = (u32::try_from(rank).ok()?, *Phase::ALL.get(phase as usize)?);
            Some(PhaseRow {
                step,
                rank,
                phase,
                time_ns,
            })
        };
        let message = |&[step, rank, kind, messages, bytes]: &[u64; 5]| {
            let (rank, kind) = (u32::try_from(rank).ok()?, *Kind::ALL.get(kind as usize)?);
            Some(MessageRow {
                step,
                rank,
                kind,
                messages,
                bytes,
            })
        };
        let block = |&[step, rank, block, level, compute_ns]: &[u64; 5]| {
            let (rank, level) = (u32::try_from(rank).ok()?, u8::try_from(level).ok()?);
            Some(BlockRow {
                step,
                rank,
                block,
                level,
                compute_ns,
            })
        };
        Some(Rows {
            phases: phases.iter().map(phase).collect::<Option<_>>()?,
            messages: messages.iter().map(message).collect::<Option<_>>()?,
            blocks: blocks.iter().map(block).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::telemetry) fn sample(step: u64, rank: u32) -> Rows {
        let phases = Phase::ALL.iter().zip(1..).map(|(&phase, n)| PhaseRow {
            step,
            rank,
            phase,
            time_ns: 10 * n,
        });
        let messages = Kind::ALL.iter().zip(1..).map(|(&kind, n)| MessageRow {
            step,
            rank,
            kind,
            messages: n,
            bytes: 64 * n,
        });
        let block = BlockRow {
            step,
            rank,
            block: u64::MAX - 1,
            level: 3,
            compute_ns: 77,
        };
        Rows {
            phases: phases.collect(),
            messages: messages.collect(),
            blocks: vec![block],
        }
    }

    #[test]
    fn rows_survive_being_sent_and_damage_is_seen() {
        let mut rows = sample(4, 1);
        rows.append(sample(5, 2));
        let bytes = rows.encode();
        assert_eq!(Rows::decode(&bytes), Some(rows));
        assert_eq!(
            Rows::decode(&Rows::default().encode()),
            Some(Rows::default())
        );
        assert_eq!(Rows::decode(&bytes[..bytes.len() - 8]), None);
        assert_eq!(Rows::decode(&bytes[..bytes.len() - 1]), None);
        let mut foreign = bytes;
        foreign[8 * 3 + 8 * 2] = 99;
        assert_eq!(Rows::decode(&foreign), None, "no such phase");
    }

    #[test]
    fn names_in_the_files_are_all_different() {
        let names: std::collections::HashSet<&str> =
            Phase::ALL.iter().map(|phase| phase.name()).collect();
        assert_eq!(names.len(), Phase::ALL.len());
        let names: std::collections::HashSet<&str> =
            Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
    }
}
