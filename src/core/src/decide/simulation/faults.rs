//! What happens to single ranks and not to the others, and what the library lets happen to all of them.

use super::{dice, happens};

/// How often something happens to a rank, in millionths of the occasions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A call with arguments that the library refuses, before the right one that the others make once.
    pub refused: u64,
    /// A type above 2 GiB, whose size the library's own numbers do not hold, where nothing is sent.
    pub unknown_size: u64,
    /// Buffers that are one and the same, which the library lets pass.
    pub aliased: u64,
    /// A rank that cannot steer the library, or that keeps our own algorithms off.
    pub unable: u64,
    /// A rank that finds in a review that our own algorithms may run no more.
    pub losing: u64,
    /// An agreement that ends with an error on all ranks of the communicator.
    pub disagreeing: u64,
    /// A rank without room for a variant.
    pub no_room: u64,
    /// A call that took place and returned an error on this rank.
    pub failing: u64,
    /// A sampled call that the program leaves by an exception from its error handler.
    pub left: u64,
    /// Arguments that our own algorithms cannot take, though the library does not refuse them.
    pub unfit: u64,
    /// No memory for a call's cell.
    pub no_memory: u64,
}

impl Faults {
    /// All that a job is to survive.
    pub const MANY: Faults = Faults {
        refused: 10_000,
        unknown_size: 200_000,
        aliased: 20_000,
        unable: 30_000,
        // Rare, as a communicator on which it happens has less to say from there on.
        losing: 500,
        disagreeing: 500,
        no_room: 5_000,
        failing: 10_000,
        left: 10_000,
        unfit: 0,
        no_memory: 0,
    };

    /// And often what takes a communicator away from the tuner.
    pub const FORSAKEN: Faults = Faults {
        losing: 50_000,
        disagreeing: 100_000,
        ..Faults::MANY
    };

    /// And what ends it, on one rank.
    pub const DEADLY: Faults = Faults {
        unfit: 3_000,
        no_memory: 1_000,
        ..Faults::MANY
    };
}

/// Which faults happen where: a function of the place, whoever asks when.
#[derive(Clone, Copy)]
pub struct Fate {
    pub seed: u64,
    pub faults: Faults,
}

impl Fate {
    /// Whether a fault of such a frequency, numbered `what`, happens to a rank at an occasion.
    fn strikes(&self, what: u64, (rank, occasion): (u32, u64), ppm: u64) -> bool {
        ppm > 0 && happens(dice(self.seed, what << 32 | u64::from(rank), occasion), ppm)
    }

    pub fn is_refused(&self, rank: u32, act: u64) -> bool {
        self.strikes(1, (rank, act), self.faults.refused)
    }

    /// Of refused calls, whether the library alone sees what is wrong, behind all that this rank does without the others.
    pub fn is_refused_late(&self, rank: u32, act: u64) -> bool {
        self.strikes(14, (rank, act), 500_000)
    }

    pub fn is_unknown(&self, rank: u32, act: u64) -> bool {
        self.strikes(2, (rank, act), self.faults.unknown_size)
    }

    pub fn is_aliased(&self, rank: u32, act: u64) -> bool {
        self.strikes(3, (rank, act), self.faults.aliased)
    }

    /// Of a communicator: whether it can steer the library, and whether our own algorithms may run.
    pub fn is_unable(&self, rank: u32, comm: u64) -> [bool; 2] {
        [4, 5].map(|what| self.strikes(what, (rank, comm), self.faults.unable))
    }

    /// In a review: an operation of a communicator, by its number there.
    pub fn loses_own_families(&self, rank: u32, (comm, position): (u32, u64)) -> bool {
        let occasion = u64::from(comm) << 32 | position;
        self.strikes(11, (rank, occasion), self.faults.losing)
    }

    /// All ranks hear the same.
    pub fn ends_in_an_error(&self, comm: u32, position: u64) -> bool {
        self.strikes(12, (comm, position), self.faults.disagreeing)
    }

    pub fn has_no_room(&self, rank: u32, occasion: u64) -> bool {
        self.strikes(6, (rank, occasion), self.faults.no_room)
    }

    pub fn fails(&self, rank: u32, act: u64) -> bool {
        self.strikes(7, (rank, act), self.faults.failing)
    }

    pub fn is_left(&self, rank: u32, act: u64) -> bool {
        self.strikes(10, (rank, act), self.faults.left)
    }

    pub fn is_unfit(&self, rank: u32, act: u64) -> bool {
        self.strikes(8, (rank, act), self.faults.unfit)
    }

    pub fn has_no_memory(&self, rank: u32, act: u64) -> bool {
        self.strikes(9, (rank, act), self.faults.no_memory)
    }
}
