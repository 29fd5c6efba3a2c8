//! The tables, and how their rows travel to the rank that writes them.

/// Declares an enumeration whose values have names in the files.
macro_rules! named {
    ($(#[$doc:meta])* $kind:ident { $($(#[$of:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $kind { $($(#[$of])* $value,)* }

        impl $kind {
            pub const ALL: [$kind; [$($name),*].len()] = [$($kind::$value),*];
            pub const NAMES: [&str; $kind::ALL.len()] = [$($name),*];

            /// Its name in the files.
            pub fn name(self) -> &'static str {
                $kind::NAMES[self as usize]
            }
        }
    };
}

named! {
    /// What a rank spends its time with. Phases exclude each other.
    #[derive(Default)]
    Phase {
        Compute = "compute",
        Pack = "pack",
        /// Copies between blocks of this rank.
        Copy = "copy",
        Wait = "wait",
        Unpack = "unpack",
        /// The arithmetic of checksums.
        Sum = "sum",
        Allreduce = "allreduce",
        Allgather = "allgather",
        /// Asking whether any rank has failed.
        Agree = "agree",
        Refine = "refine",
        Place = "place",
        Migrate = "migrate",
        Output = "output",
        #[default]
        Other = "other",
    }
}

impl Phase {
    /// Whether other ranks are waited for in it.
    pub fn waits(self) -> bool {
        matches!(
            self,
            Phase::Wait | Phase::Allreduce | Phase::Allgather | Phase::Agree
        )
    }
}

named! {
    /// What a message carries.
    Kind {
        /// Ghost values for a neighbour of the same level.
        GhostSame = "ghost_same",
        /// Ghost values for finer neighbours.
        GhostToFiner = "ghost_to_finer",
        /// Ghost values for a coarser neighbour.
        GhostToCoarser = "ghost_to_coarser",
        /// A message with ghost values of several kinds, whose bytes are counted as theirs.
        GhostMixed = "ghost_mixed",
        /// Fluxes for the correction at a coarser neighbour.
        Flux = "flux",
        /// Blocks that are joined or change owner.
        Block = "block",
        /// Allreduces: checksums, time steps, agreements.
        Reduction = "reduction",
        /// Other collectives, mostly what the mesh itself costs: marks, costs, pictures.
        Metadata = "metadata",
        /// Copies between blocks of one rank: no message, but bytes.
        Local = "local",
    }
}

named! {
    /// What goes from one rank to another.
    Freight {
        Ghost = "ghost",
        Flux = "flux",
        Block = "block",
    }
}

named! {
    /// The collective call that ends a window.
    Meeting {
        Allreduce = "allreduce",
        Allgather = "allgather",
        Agree = "agree",
        Scan = "scan",
        Alltoall = "alltoall",
        Broadcast = "broadcast",
        Barrier = "barrier",
    }
}

named! {
    /// Where a block lies, as its cost goes.
    Class {
        Plain = "plain",
        NearShock = "near_shock",
    }
}

/// A column: its name, and what its words mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Long(&'static str),
    Int(&'static str),
    /// An integer that may be -1, for none.
    OrNone(&'static str),
    Byte(&'static str),
    Name(&'static str, &'static [&'static str]),
    /// The name of a host, by its number.
    Host(&'static str),
    /// The name of a lever, by its number.
    Lever(&'static str),
    /// The name of an arm, by its number among those of the lever in the column before.
    Arm(&'static str),
}

impl Column {
    pub fn name(self) -> &'static str {
        match self {
            Column::Long(name) | Column::Int(name) | Column::OrNone(name) => name,
            Column::Byte(name) | Column::Name(name, _) | Column::Host(name) => name,
            Column::Lever(name) | Column::Arm(name) => name,
        }
    }

    fn may_be(self, word: u64) -> bool {
        match self {
            Column::Long(_) => true,
            Column::Int(_) | Column::Host(_) | Column::Lever(_) | Column::Arm(_) => {
                u32::try_from(word).is_ok()
            }
            Column::OrNone(_) => word == NONE || i32::try_from(word).is_ok(),
            Column::Byte(_) => u8::try_from(word).is_ok(),
            Column::Name(_, names) => word < names.len() as u64,
        }
    }
}

/// The word of [`Column::OrNone`] for none.
pub const NONE: u64 = u64::MAX;

named! {
    /// The tables; one file each for a group of ranks.
    Table {
        Phases = "phases",
        Messages = "messages",
        Blocks = "blocks",
        Windows = "windows",
        Rounds = "rounds",
        Partners = "partners",
        Ranks = "ranks",
        Spans = "spans",
        Epochs = "epochs",
    }
}

impl Table {
    /// Its columns in order; every table has `rank`, and begins with a step.
    pub fn columns(self) -> &'static [Column] {
        use Column::{Arm, Byte, Host, Int, Lever, Long, Name, OrNone};
        match self {
            Table::Phases => &[
                Long("step"),
                Int("rank"),
                Name("phase", &Phase::NAMES),
                Long("time_ns"),
            ],
            Table::Messages => &[
                Long("step"),
                Int("rank"),
                Name("kind", &Kind::NAMES),
                Long("messages"),
                Long("bytes"),
            ],
            Table::Blocks => &[
                Long("step"),
                Int("rank"),
                Long("block"),
                Byte("level"),
                Long("compute_ns"),
                Name("class", &Class::NAMES),
                Int("iterations"),
            ],
            Table::Windows => &[
                Long("step"),
                Int("window"),
                Int("rank"),
                Name("collective", &Meeting::NAMES),
                Long("bytes"),
                Long("begin_ns"),
                Long("arrive_ns"),
                Long("leave_ns"),
                Long("compute_ns"),
                Long("pack_ns"),
                Long("copy_ns"),
                Long("wait_ns"),
                Long("unpack_ns"),
                Long("sum_ns"),
                Long("cpu_ns"),
                Int("rounds"),
            ],
            Table::Rounds => &[
                Long("step"),
                Int("window"),
                Int("round"),
                Int("rank"),
                Long("begin_ns"),
                Long("posted_ns"),
                Long("served_ns"),
                Long("last_ns"),
                OrNone("last_from"),
                Long("done_ns"),
                Long("messages"),
                Long("bytes"),
            ],
            Table::Partners => &[
                Long("first_step"),
                Long("last_step"),
                Int("rank"),
                Int("partner"),
                Name("kind", &Freight::NAMES),
                Long("messages"),
                Long("bytes"),
            ],
            Table::Ranks => &[
                Long("step"),
                Int("rank"),
                Host("host"),
                Int("node"),
                Int("core"),
                Int("clock"),
                Long("voluntary"),
                Long("involuntary"),
                Long("faults"),
            ],
            Table::Spans => &[
                Long("step"),
                Int("rank"),
                Name("phase", &Phase::NAMES),
                Long("begin_ns"),
                Long("time_ns"),
            ],
            Table::Epochs => &[
                Long("step"),
                Int("rank"),
                Lever("lever"),
                Arm("arm"),
                Long("steps"),
                Long("cell_updates"),
                Long("time_ns"),
            ],
        }
    }

    fn rank_column(self) -> usize {
        let mut columns = self.columns().iter();
        let place = columns.position(|column| column.name() == "rank");
        place.expect("every table has the rank")
    }
}

/// Rows of all tables, collected on a rank or gathered from a group; a word for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    words: [Vec<u64>; Table::ALL.len()],
}

impl Rows {
    pub fn push<const N: usize>(&mut self, table: Table, row: [u64; N]) {
        assert_eq!(N, table.columns().len(), "{}", table.name());
        debug_assert!(is_row(table, &row), "{}: {row:?}", table.name());
        self.words[table as usize].extend(row);
    }

    pub fn of(&self, table: Table) -> impl ExactSizeIterator<Item = &[u64]> + Clone {
        self.words[table as usize].chunks_exact(table.columns().len())
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(Vec::is_empty)
    }

    /// Moves the rows of another collection behind these.
    pub fn append(&mut self, mut other: Rows) {
        for (words, others) in self.words.iter_mut().zip(&mut other.words) {
            words.append(others);
        }
    }

    /// Sorts each table by step, then by rank: readers skip what they do not need.
    pub fn sort(&mut self) {
        for table in Table::ALL {
            let rank = table.rank_column();
            let mut rows: Vec<&[u64]> = self.of(table).collect();
            rows.sort_by_key(|row| (row[0], row[rank]));
            self.words[table as usize] = rows.concat();
        }
    }

    /// The rows as bytes, to be sent: a count of rows for each table, then their little-endian words.
    pub fn encode(&self) -> Vec<u8> {
        let counts = Table::ALL.map(|table| self.of(table).len() as u64);
        let words = counts.iter().chain(self.words.iter().flatten());
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Inverse of [`Rows::encode`]; `None` for bytes that are no rows.
    pub fn decode(bytes: &[u8]) -> Option<Rows> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (counts, mut words) = words.split_first_chunk::<{ Table::ALL.len() }>()?;
        let mut rows = Rows::default();
        for (table, &count) in Table::ALL.into_iter().zip(counts) {
            let width = table.columns().len();
            let n_words = usize::try_from(count).ok()?.checked_mul(width)?;
            let (own, others) = words.split_at_checked(n_words)?;
            if !own.chunks_exact(width).all(|row| is_row(table, row)) {
                return None;
            }
            rows.words[table as usize] = own.to_vec();
            words = others;
        }
        (words.is_empty() && rest.is_empty()).then_some(rows)
    }
}

fn is_row(table: Table, row: &[u64]) -> bool {
    let mut columns = table.columns().iter().zip(row);
    columns.all(|(column, &word)| column.may_be(word))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of each table, phase and kind.
    pub(in crate::telemetry) fn sample(step: u64, rank: u64) -> Rows {
        let mut rows = Rows::default();
        for (phase, n) in (0..).zip(1..=Phase::ALL.len() as u64) {
            rows.push(Table::Phases, [step, rank, phase, 10 * n]);
        }
        for (kind, n) in (0..).zip(1..=Kind::ALL.len() as u64) {
            rows.push(Table::Messages, [step, rank, kind, n, 64 * n]);
        }
        rows.push(Table::Blocks, [step, rank, u64::MAX - 1, 3, 77, 1, 16]);
        let times = [100, 200, 300, 50, 10, 10, 10, 10, 10, 80];
        let [
            begin,
            arrive,
            leave,
            compute,
            pack,
            copy,
            wait,
            unpack,
            sum,
            cpu,
        ] = times;
        let window = [
            step, 0, rank, 2, 4, begin, arrive, leave, compute, pack, copy, wait, unpack, sum, cpu,
            1,
        ];
        rows.push(Table::Windows, window);
        rows.push(
            Table::Rounds,
            [step, 0, 0, rank, 100, 110, 120, 130, NONE, 140, 0, 0],
        );
        rows.push(Table::Partners, [step, step, rank, rank + 1, 0, 2, 640]);
        rows.push(Table::Ranks, [step, rank, 0, 0, 5, 0, 1, 2, 3]);
        rows.push(Table::Epochs, [step, rank, 1, 0, 5, 640, 77]);
        rows
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
        foreign[8 * Table::ALL.len() + 8 * 2] = 99;
        assert_eq!(Rows::decode(&foreign), None, "no such phase");
    }

    #[test]
    fn rows_of_a_group_are_sorted_by_step_then_rank() {
        let mut rows = sample(5, 0);
        for (step, rank) in [(4, 0), (5, 1), (4, 1)] {
            rows.append(sample(step, rank));
        }
        rows.sort();
        for table in Table::ALL {
            let rank = table.rank_column();
            let keys: Vec<[u64; 2]> = rows.of(table).map(|row| [row[0], row[rank]]).collect();
            assert!(keys.is_sorted(), "{}: {keys:?}", table.name());
        }
        // Phases of a step keep their order.
        let first: Vec<u64> = rows.of(Table::Phases).map(|row| row[2]).take(3).collect();
        assert_eq!(first, [0, 1, 2]);
    }

    #[test]
    fn names_in_the_files_are_all_different() {
        fn differ(names: &[&str]) {
            let different: std::collections::HashSet<&&str> = names.iter().collect();
            assert_eq!(different.len(), names.len(), "{names:?}");
        }
        differ(&Phase::NAMES);
        differ(&Kind::NAMES);
        differ(&Table::NAMES);
        for table in Table::ALL {
            let names: Vec<&str> = table.columns().iter().map(|c| c.name()).collect();
            differ(&names);
            assert!(["step", "first_step"].contains(&names[0]), "{names:?}");
        }
    }
}
