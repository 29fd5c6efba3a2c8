//! What a library's algorithms do, as schedules of ours that send the same messages.
//!
//! One table for all libraries, whose names mean the same; algorithms that are missing, as those with levels and
//! undocumented ones, have no prior. Sources: `ompi/mca/coll/base` and `src/mpi/coll` for the messages; for what they
//! are called and cost, Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005, and Pjesivac-Grbovic et al., Cluster
//! Computing 10(2), 2007.

use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{self, Cut, Parameter, Row, Values};
use crate::algorithm::schedule::{self, Buffer, Case, Part, Schedule};
use crate::algorithm::{bcast, reduce};
use crate::collective::Collective;
use crate::library::Product;

/// One of the schedules that an algorithm is like; several follow one another.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pattern: Pattern,
    form: Form,
    radix: Count,
    window: Count,
    pub bytes: Share,
}

/// How many bytes a part's call has, of the whole's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    Whole,
    Half,
    /// One rank's part of a message.
    OfRank,
    /// All ranks' blocks together.
    OfAll,
}

impl Share {
    pub fn of(self, bytes: u64, n_ranks: u32) -> u64 {
        let n_ranks = u64::from(n_ranks.max(1));
        match self {
            Share::Whole => bytes,
            Share::Half => bytes.div_ceil(2),
            Share::OfRank => bytes.div_ceil(n_ranks),
            Share::OfAll => bytes.saturating_mul(n_ranks),
        }
    }
}

/// Which schedule.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// The row of that name.
    Ours(&'static str),
    /// As many chains as the radix says.
    Chains,
    /// Ranks of two halves exchange a message.
    Exchange,
}

#[derive(Clone, Copy, Debug)]
enum Count {
    Fixed(usize),
    Ranks,
}

impl Step {
    /// The row that is simulated, with its parameters; `None` where it is not for so many ranks.
    pub fn scheduled(&self, segsize: u64, n_ranks: u32) -> Option<(Row, Values)> {
        let count = |count: Count| match count {
            Count::Fixed(count) => count,
            Count::Ranks => (n_ranks as usize).max(2),
        };
        let row = match self.form {
            Form::Ours(name) => *registry::find(self.pattern, name)?,
            Form::Chains => chains(self.pattern)?,
            Form::Exchange => Row {
                schedule: exchange,
                parameters: &[],
                needs: &[],
                ..*registry::find(Allgather, "ring")?
            },
        };
        // A library cuts more than we do.
        let cuts = |parameter: &Parameter| matches!(parameter, Parameter::Segsize(..));
        let parameters = match row.parameters.iter().any(cuts) {
            true => row.parameters,
            false => CUT,
        };
        let values = Values {
            segsize,
            radix: count(self.radix),
            window: count(self.window),
        };
        let row = Row { parameters, ..row };
        row.fits(n_ranks as usize).then_some((row, values))
    }
}

const CUT: &[Parameter] = &[Parameter::Segsize(Cut::Message, &[0])];

fn chains(pattern: Pattern) -> Option<Row> {
    let schedule = match pattern {
        Bcast => bcast::chain::several,
        Reduce => reduce::chain::several,
        _ => return None,
    };
    let chain = registry::find(pattern, "chain")?;
    Some(Row { schedule, ..*chain })
}

fn exchange(case: Case) -> Schedule {
    let half = case.n_ranks / 2;
    let steps = [
        schedule::Step::receive(case.below(half), Part::range(Buffer::Output, 0, 1)),
        schedule::Step::send(case.above(half), Part::range(Buffer::Input, 0, 1)),
    ];
    Schedule::new(1, steps.into_iter())
}

const fn ours(pattern: Pattern, name: &'static str) -> Step {
    Step {
        pattern,
        form: Form::Ours(name),
        radix: Count::Fixed(2),
        window: Count::Fixed(1),
        bytes: Share::Whole,
    }
}

/// Four chains, Open MPI's default.
const fn four_chains(pattern: Pattern) -> Step {
    Step {
        form: Form::Chains,
        ..ours(pattern, "").radix(4)
    }
}

/// The root meets every rank by itself.
const fn flat(pattern: Pattern) -> Step {
    Step {
        radix: Count::Ranks,
        ..ours(pattern, "knomial")
    }
}

const EXCHANGE: Step = Step {
    form: Form::Exchange,
    ..ours(Allgather, "")
};

impl Step {
    const fn radix(self, radix: usize) -> Step {
        Step {
            radix: Count::Fixed(radix),
            ..self
        }
    }

    /// All messages at once.
    const fn at_once(self) -> Step {
        Step {
            window: Count::Ranks,
            ..self
        }
    }

    const fn each(self, bytes: Share) -> Step {
        Step { bytes, ..self }
    }
}

use Pattern::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Exscan, Gather, Reduce, ReduceScatter, Scan,
    Scatter,
};

/// By what a collective moves: algorithms' names, and what they are like.
type Rows = &'static [(Pattern, &'static [&'static str], &'static [Step])];

/// What names mean in Open MPI alone.
const OPENMPI: Rows = &[(Bcast, &["binomial"], &[ours(Bcast, "binomial_doubling")])];

#[rustfmt::skip]
const ALIKE: Rows = &[
    (Allreduce, &["basic_linear"], &[flat(Reduce), flat(Bcast)]),
    (Allreduce, &["nonoverlapping", "tree"], &[ours(Reduce, "binomial"), ours(Bcast, "binomial")]),
    (Allreduce, &["knomial"], &[ours(Reduce, "knomial").radix(4), ours(Bcast, "knomial").radix(4)]),
    (Allreduce, &["recursive_doubling", "recexch"], &[ours(Allreduce, "recursive_doubling")]),
    (Allreduce, &["recursive_multiplying"], &[ours(Allreduce, "recursive_multiplying").radix(4)]),
    (Allreduce, &["ring"], &[ours(Allreduce, "ring")]),
    (Allreduce, &["segmented_ring"], &[ours(Allreduce, "segmented_ring")]),
    (
        Allreduce,
        &["rabenseifner", "reduce_scatter_allgather", "k_reduce_scatter_allgather"],
        &[ours(Allreduce, "rabenseifner")],
    ),
    (Bcast, &["basic_linear"], &[flat(Bcast)]),
    (Bcast, &["chain"], &[four_chains(Bcast)]),
    (Bcast, &["pipeline"], &[ours(Bcast, "chain")]),
    // Each half goes down one side of the tree; then ranks of both sides exchange them.
    (Bcast, &["split_binary_tree"], &[ours(Bcast, "binary_tree").each(Share::Half), EXCHANGE.each(Share::Half)]),
    (Bcast, &["binary_tree", "tree"], &[ours(Bcast, "binary_tree")]),
    (Bcast, &["binomial"], &[ours(Bcast, "binomial")]),
    (Bcast, &["knomial"], &[ours(Bcast, "knomial").radix(4)]),
    (
        Bcast,
        &["scatter_allgather", "scatter_recursive_doubling_allgather"],
        &[ours(Scatter, "binomial").each(Share::OfRank), ours(Allgather, "bruck").each(Share::OfRank)],
    ),
    (Bcast, &["scatter_allgather_ring", "scatter_ring_allgather"], &[ours(Bcast, "scatter_allgather_ring")]),
    (Allgather, &["default"], &[ours(Gather, "linear").at_once(), ours(Bcast, "binomial").each(Share::OfAll)]),
    (Allgather, &["bruck", "brucks"], &[ours(Allgather, "bruck")]),
    (Allgather, &["recursive_doubling", "two_proc"], &[ours(Allgather, "recursive_doubling")]),
    (Allgather, &["ring"], &[ours(Allgather, "ring")]),
    (Allgather, &["neighbor"], &[ours(Allgather, "neighbour_exchange")]),
    (
        Alltoall,
        &["linear", "linear_sync", "basic_linear", "scattered", "isend_irecv+waitall"],
        &[ours(Alltoall, "scattered").at_once()],
    ),
    (Alltoall, &["pairwise", "pairwise_sendrecv_replace", "two_proc"], &[ours(Alltoall, "pairwise")]),
    (Alltoall, &["modified_bruck", "brucks", "bruck"], &[ours(Alltoall, "bruck")]),
    (Reduce, &["linear"], &[flat(Reduce)]),
    (Reduce, &["chain"], &[four_chains(Reduce)]),
    (Reduce, &["pipeline"], &[ours(Reduce, "chain")]),
    (Reduce, &["binary", "in-order_binary"], &[ours(Reduce, "in_order")]),
    (Reduce, &["binomial"], &[ours(Reduce, "binomial")]),
    (Reduce, &["knomial"], &[ours(Reduce, "knomial").radix(4)]),
    (Reduce, &["rabenseifner", "reduce_scatter_gather"], &[ours(Reduce, "rabenseifner")]),
    (Gather, &["basic_linear", "linear"], &[ours(Gather, "linear").at_once()]),
    (Gather, &["linear_sync"], &[ours(Gather, "linear")]),
    (Gather, &["binomial"], &[ours(Gather, "binomial")]),
    (Scatter, &["basic_linear", "linear_nb", "linear"], &[ours(Scatter, "linear").at_once()]),
    (Scatter, &["binomial"], &[ours(Scatter, "binomial")]),
    (
        ReduceScatter,
        &["non-overlapping", "basic_linear"],
        &[ours(Reduce, "binomial"), ours(Scatter, "linear").at_once().each(Share::OfRank)],
    ),
    (ReduceScatter, &["recursive_halving", "butterfly", "noncommutative"], &[ours(ReduceScatter, "recursive_halving")]),
    (ReduceScatter, &["ring", "pairwise"], &[ours(ReduceScatter, "pairwise")]),
    (ReduceScatter, &["recursive_doubling"], &[ours(Allreduce, "recursive_doubling")]),
    (Scan, &["linear"], &[ours(Scan, "linear")]),
    (Scan, &["recursive_doubling", "partial_results_gathering"], &[ours(Scan, "recursive_doubling")]),
    (Exscan, &["linear"], &[ours(Exscan, "linear")]),
    (Exscan, &["recursive_doubling", "partial_results_gathering"], &[ours(Exscan, "recursive_doubling")]),
    (Barrier, &["linear"], &[flat(Reduce), flat(Bcast)]),
    (Barrier, &["double_ring"], &[ours(Bcast, "chain"), ours(Bcast, "chain")]),
    (
        Barrier,
        &["recursive_doubling", "bruck", "two_proc", "dissemination", "k_dissemination", "recexch"],
        &[ours(Barrier, "dissemination")],
    ),
    (Barrier, &["tree"], &[ours(Reduce, "binomial"), ours(Bcast, "binomial")]),
];

/// What one of the library's algorithms is like.
pub fn alike(product: Product, collective: Collective, algorithm: &str) -> Option<&'static [Step]> {
    of_pattern(product, Pattern::of(collective)?, algorithm)
}

/// The same by what the collective moves.
pub fn of_pattern(product: Product, pattern: Pattern, algorithm: &str) -> Option<&'static [Step]> {
    let own = match product {
        Product::OpenMpi => OPENMPI,
        Product::Mpich | Product::Intel | Product::Cray | Product::Mvapich => &[],
    };
    let mut rows = own.iter().chain(ALIKE);
    let found = rows.find(|(of, names, _)| *of == pattern && names.contains(&algorithm));
    found.map(|(.., steps)| *steps)
}

/// The algorithms of any library that are like schedules of ours.
pub fn algorithms(pattern: Pattern) -> impl Iterator<Item = &'static str> {
    let rows = ALIKE.iter().filter(move |(of, ..)| *of == pattern);
    rows.flat_map(|(_, names, _)| names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::library::Library;
    use crate::variant::Family;

    #[test]
    fn every_algorithm_with_a_shape_is_like_schedules_of_ours_and_no_line_stands_for_none() {
        let mut named = std::collections::HashSet::new();
        let libraries = [
            "openmpi-4.1.4",
            "mpich-4.0.2",
            "mpich-5.0.2",
            "intel-2021.19.0",
        ];
        for library in libraries.map(|library| library.parse::<Library>().unwrap()) {
            for variant in catalogue::all(library) {
                let name = &variant.name;
                if name.family != Family::Native {
                    continue;
                }
                let found = alike(library.product, variant.collective, &name.algorithm);
                assert!(
                    found.is_some() || variant.shape.is_none(),
                    "{library} {} {name}",
                    variant.collective
                );
                let steps = found.unwrap_or_default();
                let runs = steps.iter().all(|step| step.scheduled(0, 8).is_some());
                assert!(runs, "{library} {} {name}", variant.collective);
                named.insert((Pattern::of(variant.collective), name.algorithm.clone()));
            }
        }
        for (pattern, names, _) in OPENMPI.iter().chain(ALIKE) {
            for name in *names {
                let stands = (Some(*pattern), (*name).to_owned());
                assert!(named.contains(&stands), "{} {name}", pattern.name());
            }
        }
    }
}
