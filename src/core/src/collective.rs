//! The MPI collectives that colltune tunes, and what "message size" means for each.

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// A tuned MPI collective operation.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Encode, Decode,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Collective {
    Allreduce = 0,
    Bcast = 1,
    Allgather = 2,
    Alltoall = 3,
    Reduce = 4,
}

impl Collective {
    /// Every collective, in the order of its number.
    pub const ALL: [Collective; 5] = [
        Collective::Allreduce,
        Collective::Bcast,
        Collective::Allgather,
        Collective::Alltoall,
        Collective::Reduce,
    ];

    /// The name in files, settings and on the command line: `allreduce`.
    pub const fn name(self) -> &'static str {
        match self {
            Collective::Allreduce => "allreduce",
            Collective::Bcast => "bcast",
            Collective::Allgather => "allgather",
            Collective::Alltoall => "alltoall",
            Collective::Reduce => "reduce",
        }
    }

    pub fn from_name(name: &str) -> Option<Collective> {
        Self::ALL
            .into_iter()
            .find(|collective| collective.name() == name)
    }

    pub const fn index(self) -> usize {
        self as usize
    }

    pub fn from_index(index: usize) -> Option<Collective> {
        Self::ALL.get(index).copied()
    }

    /// Whether the call combines contributions with an operation, so that count and type are
    /// facts that all ranks share.
    pub const fn is_reduction(self) -> bool {
        matches!(self, Collective::Allreduce | Collective::Reduce)
    }
}

impl std::fmt::Display for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_the_same_collective() {
        for (index, collective) in Collective::ALL.into_iter().enumerate() {
            assert_eq!(collective.index(), index);
            assert_eq!(Collective::from_index(index), Some(collective));
            assert_eq!(Collective::from_name(collective.name()), Some(collective));
        }
        assert_eq!(Collective::from_name("Allreduce"), None);
        assert_eq!(Collective::from_index(Collective::ALL.len()), None);
    }
}
