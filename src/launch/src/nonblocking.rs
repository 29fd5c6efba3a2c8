//! Nonblocking, persistent and neighbourhood collectives by the MPI library's own variables, as levers: one choice for each
//! operation and the whole job. Nothing runs in the job for them; the launcher passes its environment on.

use std::collections::BTreeMap;
use std::ffi::OsString;

use colltune_core::collective::Collective;
use colltune_core::levers::Arms;
use colltune_core::library::{Library, Product};
use colltune_core::record::Manner;
use colltune_core::settings::Reproducible;
use colltune_db::Passed;

use crate::levers::{Lever, is_variable};

/// What is said where nobody knows what a program calls.
pub const NOTHING_RECORDED: &str = "no nonblocking, persistent or neighbourhood collective is recorded, so nothing is tried for \
     them; `colltune tune` records them and `colltune train` counts them";

/// The arms with which a library chooses by itself; no variable is set for them.
const DEFAULTS: [&str; 2] = ["ignore", "auto"];

/// So many records of an operation by a rank in a job, and it may have been called any number of times.
const THINNED: f64 = 256.0;
/// An operation that was recorded whole and took less than this part of what all of them took is left out.
const MATTERS: f64 = 0.01;

/// What a library runs an operation by, beside its default.
struct Row {
    collective: Collective,
    is_of_neighbors: bool,
    /// Words.
    arms: &'static str,
}

const fn row(collective: Collective, arms: &'static str) -> Row {
    Row {
        collective,
        is_of_neighbors: false,
        arms,
    }
}

const fn of_neighbors(collective: Collective) -> Row {
    Row {
        collective,
        is_of_neighbors: true,
        arms: "sched_linear tsp_linear",
    }
}

/// Of 4.1 and 5.0. Left out, as their results are wrong (the test `every_arm_is_right` finds it): ring, rabenseifner of
/// iallreduce and chain, rabenseifner of ireduce with operations that do not commute, as these run or fall back to what
/// needs commuting ones (see also Open MPI's issue 9385); chain of ibcast where ranks have other types of one signature.
const OPEN_MPI: [Row; 6] = [
    row(Collective::Allreduce, "binomial recursive_doubling"),
    row(Collective::Bcast, "linear binomial knomial knomial:8"),
    row(Collective::Allgather, "recursive_doubling"),
    row(Collective::Reduce, "binomial"),
    row(Collective::Scan, "recursive_doubling"),
    row(Collective::Exscan, "recursive_doubling"),
];

/// Of 4.0, whose names all versions to 5.0 know; one that a version does not know ends MPI_Init. Left out are arms that gave
/// wrong results or ended jobs of 4.0.2: tsp_scatterv_recexch_allgatherv of ibcast, tsp_tree of igather, tsp_tree and
/// tsp_ring of ireduce, tsp_recexch of ireduce_scatter and ireduce_scatter_block, sched_auto of iallgatherv; and those for
/// calls in place alone, or that `auto` takes for what needs them.
const MPICH: [Row; 19] = [
    row(
        Collective::Allreduce,
        "sched_naive sched_smp sched_recursive_doubling sched_reduce_scatter_allgather \
         tsp_recexch_single_buffer tsp_recexch_multiple_buffer tsp_tree tsp_ring \
         tsp_recexch_reduce_scatter_recexch_allgatherv",
    ),
    row(
        Collective::Bcast,
        "sched_binomial sched_smp sched_scatter_recursive_doubling_allgather \
         sched_scatter_ring_allgather tsp_tree tsp_ring",
    ),
    row(
        Collective::Allgather,
        "sched_ring sched_brucks sched_recursive_doubling tsp_ring tsp_brucks \
         tsp_recexch_doubling tsp_recexch_halving",
    ),
    row(
        Collective::Alltoall,
        "sched_brucks sched_pairwise sched_permuted_sendrecv tsp_ring tsp_brucks \
         tsp_scattered",
    ),
    row(
        Collective::Reduce,
        "sched_smp sched_binomial sched_reduce_scatter_gather",
    ),
    row(
        Collective::Allgatherv,
        "sched_brucks sched_recursive_doubling sched_ring tsp_recexch_doubling \
         tsp_recexch_halving tsp_ring tsp_brucks",
    ),
    row(Collective::Gatherv, "sched_linear tsp_linear"),
    row(Collective::Scatter, "sched_binomial tsp_tree"),
    row(Collective::Scatterv, "sched_linear tsp_linear"),
    row(
        Collective::Alltoallv,
        "sched_blocked tsp_scattered tsp_blocked",
    ),
    row(Collective::Alltoallw, "sched_blocked tsp_blocked"),
    row(
        Collective::ReduceScatter,
        "sched_recursive_doubling sched_pairwise sched_recursive_halving",
    ),
    row(
        Collective::ReduceScatterBlock,
        "sched_recursive_doubling sched_pairwise sched_recursive_halving",
    ),
    row(
        Collective::Scan,
        "sched_smp sched_recursive_doubling tsp_recursive_doubling",
    ),
    of_neighbors(Collective::Allgather),
    of_neighbors(Collective::Allgatherv),
    of_neighbors(Collective::Alltoall),
    of_neighbors(Collective::Alltoallv),
    of_neighbors(Collective::Alltoallw),
];

/// The operations that a library has variables for.
///
/// Errors: a sentence, where none are known.
fn rows(library: Library) -> Result<&'static [Row], String> {
    let is_known = library.known().is_ok();
    match library.product {
        Product::OpenMpi if is_known && library.is_at_least((4, 1)) => Ok(&OPEN_MPI),
        Product::Mpich if is_known && library.is_at_least((4, 0)) => Ok(&MPICH),
        product => Err(format!(
            "{} {}.{} has no variables for nonblocking, persistent and neighbourhood collectives whose results were \
             checked, so nothing is tried for them (known: Open MPI 4.1 and 5.0, MPICH 4.0 to 5.0)",
            product.title(),
            library.version.0,
            library.version.1
        )),
    }
}

/// Whether a variable decides an operation that adds.
pub fn is_reduction(library: Library, name: &str) -> bool {
    let mut all = all(library).into_iter();
    all.any(|(collective, _, lever)| lever.name == name && collective.is_reduction())
}

/// The variable that decides an operation; `None` of libraries without any.
fn variable(product: Product, row: &Row) -> Option<String> {
    let name = row.collective.name();
    match product {
        Product::OpenMpi => Some(format!("OMPI_MCA_coll_libnbc_i{name}_algorithm")),
        Product::Mpich => Some(format!(
            "MPIR_CVAR_I{}{}_INTRA_ALGORITHM",
            if row.is_of_neighbors { "NEIGHBOR_" } else { "" },
            name.to_uppercase()
        )),
        _ => None,
    }
}

/// What the launcher's environment has for these arms. `knomial:8` is the algorithm and its radix.
pub fn assignments(arms: &Arms) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let set = |(_, arm): &(&String, &String)| !DEFAULTS.contains(&arm.as_str());
    for (name, arm) in arms
        .iter()
        .filter(|(name, _)| is_variable(name))
        .filter(set)
    {
        match arm.split_once(':') {
            Some((algorithm, radix)) if name.contains("libnbc") => {
                let of_radix = name.replace("_algorithm", &format!("_{algorithm}_radix"));
                found.push((name.clone(), algorithm.to_owned()));
                found.push((of_radix, radix.to_owned()));
            }
            _ => found.push((name.clone(), arm.clone())),
        }
    }
    found
}

/// What says that the user has set a variable, which is then left alone: the environment, or a word of the line.
pub fn users_own(name: &str, line: &[OsString]) -> Option<String> {
    if !is_variable(name) {
        return None;
    }
    let part = name.strip_prefix("OMPI_MCA_").unwrap_or(name);
    let is_on_line = |word: &OsString| {
        let word = word.to_string_lossy();
        let is_in_name =
            |sign: Option<char>| sign.is_some_and(|sign| sign.is_alphanumeric() || sign == '_');
        let is_whole = |at: usize| {
            let before = word[..at].strip_suffix("OMPI_MCA_").unwrap_or(&word[..at]);
            let after = &word[at + part.len()..];
            !is_in_name(before.chars().next_back()) && !is_in_name(after.chars().next())
        };
        // {NAME} is the place of the lever's own arm.
        !word.contains(&format!("{{{name}}}"))
            && word.match_indices(part).any(|(at, _)| is_whole(at))
    };
    let place = match std::env::var_os(name) {
        Some(_) => "in the environment",
        None if line.iter().any(is_on_line) => "on the line",
        None => return None,
    };
    Some(format!("{name} is set {place}, and stays as it is"))
}

/// The levers for what was recorded of a program, those with most time first, and what there is to say. Reductions are
/// left alone where their bits are to be the same.
pub fn levers(
    library: Library,
    passed: &[Passed],
    line: &[OsString],
    reproducible: Reproducible,
) -> (Vec<Lever>, Vec<String>) {
    let rows = match rows(library) {
        Ok(rows) => rows,
        Err(sentence) => return (Vec::new(), vec![sentence]),
    };
    let mut said = Vec::new();
    let mut levers = Vec::new();
    let called = called(passed);
    if called.is_empty() {
        said.push(NOTHING_RECORDED.to_owned());
    }
    let all_ns: f64 = called.iter().map(|one| one.ns).sum();
    for one in &called {
        let manner = if one.is_of_neighbors {
            "neighbourhood "
        } else {
            "nonblocking "
        };
        let title = format!("{manner}{}", one.collective);
        let fits = |row: &&Row| {
            (row.collective, row.is_of_neighbors) == (one.collective, one.is_of_neighbors)
        };
        let found = rows.iter().find(fits);
        let found = found.and_then(|row| Some((variable(library.product, row)?, row.arms)));
        match found {
            None => said.push(format!("{title}: {library} has no variable for it")),
            Some(_) if reproducible != Reproducible::Off && one.collective.is_reduction() => {
                said.push(format!("{title}: left alone, as `reproducible` is set"));
            }
            Some(_) if one.is_whole && one.ns < MATTERS * all_ns => {
                said.push(format!("{title}: it is called too seldom to matter"));
            }
            Some((name, arms)) => match users_own(&name, line) {
                Some(sentence) => said.push(sentence),
                None => levers.push(lever(name, arms, library.product)),
            },
        }
    }
    (levers, said)
}

/// All that a library has variables for, those of neighbourhoods marked: what a test tries.
pub fn all(library: Library) -> Vec<(Collective, bool, Lever)> {
    let rows = rows(library).unwrap_or_default().iter();
    let lever_of = |row: &Row| {
        let lever = lever(variable(library.product, row)?, row.arms, library.product);
        Some((row.collective, row.is_of_neighbors, lever))
    };
    rows.filter_map(lever_of).collect()
}

/// The lever of a variable with what is offered for it; `None` where it is in no table.
pub fn known(library: Library, name: &str) -> Option<Lever> {
    let mut levers = all(library).into_iter().map(|(_, _, lever)| lever);
    levers.find(|lever| lever.name == name)
}

fn lever(name: String, arms: &str, product: Product) -> Lever {
    let first = DEFAULTS[usize::from(product != Product::OpenMpi)];
    let arms = std::iter::once(first).chain(arms.split(' '));
    Lever {
        name,
        arms: arms.map(str::to_owned).collect(),
    }
}

/// How long a recorded call took from its start to its end, in the mean; `None` where none was recorded.
pub fn mean_s(passed: &[Passed]) -> Option<f64> {
    let n: u64 = passed.iter().map(|one| one.records).sum();
    let ns = passed
        .iter()
        .map(|one| one.records as f64 * one.median_ns as f64);
    (n > 0).then(|| ns.sum::<f64>() / n as f64 / 1e9)
}

/// What was recorded of one operation, whatever its sizes.
struct Called {
    collective: Collective,
    is_of_neighbors: bool,
    /// Of a rank in all jobs, recorded calls alone.
    ns: f64,
    /// Whether every call was recorded.
    is_whole: bool,
}

fn called(passed: &[Passed]) -> Vec<Called> {
    let mut all: BTreeMap<(Collective, bool), Called> = BTreeMap::new();
    for one in passed {
        let is_of_neighbors = one.manner.starts_with(Manner::Neighborhood.name());
        let ranks = f64::from(one.nodes.max(1)) * f64::from(one.ppn.max(1));
        let records = one.records as f64 / ranks;
        let entry = all.entry((one.collective, is_of_neighbors));
        let entry = entry.or_insert(Called {
            collective: one.collective,
            is_of_neighbors,
            ns: 0.0,
            is_whole: true,
        });
        entry.ns += records * one.median_ns as f64;
        entry.is_whole &= records < THINNED;
    }
    let mut called: Vec<Called> = all.into_values().collect();
    called.sort_by(|one, other| other.ns.total_cmp(&one.ns));
    called
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(collective: Collective, manner: Manner, records: u64, median_ns: u64) -> Passed {
        Passed {
            collective,
            manner: manner.name().to_owned(),
            bytes: [8, 16],
            nodes: 1,
            ppn: 2,
            records,
            median_ns,
        }
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn found(library: &str, called: &[Passed], line: &str) -> (Vec<String>, String) {
        let line = words(line);
        let (levers, said) = levers(library.parse().unwrap(), called, &line, Reproducible::Off);
        let names = levers.into_iter().map(|lever| lever.name);
        (names.collect(), said.join("; "))
    }

    #[test]
    fn what_was_called_becomes_a_lever_and_what_was_not_does_not() {
        let called = [
            passed(Collective::Bcast, Manner::Nonblocking, 1000, 10),
            passed(Collective::Bcast, Manner::Persistent, 1000, 10),
            passed(Collective::Allreduce, Manner::Nonblocking, 100, 9000),
            passed(Collective::Scan, Manner::Nonblocking, 2, 10),
            passed(Collective::Alltoall, Manner::Neighborhood, 600, 20),
            passed(Collective::Gather, Manner::Nonblocking, 600, 20),
        ];
        let (names, said) = found("openmpi-4.1.4", &called, "mpirun ./a");
        // Those with most time come first, and an operation of few calls is left out where all were recorded.
        let expected =
            ["allreduce", "bcast"].map(|op| format!("OMPI_MCA_coll_libnbc_i{op}_algorithm"));
        assert_eq!(names, expected, "{said}");
        for part in [
            "nonblocking scan: it is called too seldom",
            "neighbourhood alltoall: openmpi-4.1.4 has no variable",
            "nonblocking gather: openmpi-4.1.4 has no variable",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let (names, _) = found("mpich-4.0.2", &called, "mpirun ./a");
        assert_eq!(names[2], "MPIR_CVAR_INEIGHBOR_ALLTOALL_INTRA_ALGORITHM");
        let (names, said) = found("mpich-4.0.2", &[], "mpirun ./a");
        assert!(names.is_empty() && said.contains("is recorded"), "{said}");
    }

    #[test]
    fn libraries_and_versions_that_nobody_tried_get_a_sentence_and_the_same_bits_no_other_sum() {
        let called = [passed(Collective::Allreduce, Manner::Nonblocking, 1000, 10)];
        for (library, title) in [
            ("openmpi-4.0.7", "Open MPI 4.0"),
            ("openmpi-6.0.0", "Open MPI 6.0"),
            ("mpich-3.4.3", "MPICH 3.4"),
            ("mpich-6.0.0", "MPICH 6.0"),
            ("intel-2021.19.0", "Intel MPI 2021.19"),
            ("cray-8.1.26", "Cray MPICH 8.1"),
        ] {
            let (names, said) = found(library, &called, "mpirun ./a");
            assert!(names.is_empty() && said.starts_with(title), "{said}");
        }
        for library in [
            "openmpi-4.1.0",
            "openmpi-5.0.9",
            "mpich-4.0.0",
            "mpich-5.0.1",
        ] {
            let library: Library = library.parse().unwrap();
            assert_eq!(levers(library, &called, &[], Reproducible::Off).0.len(), 1);
            let (none, said) = levers(library, &called, &[], Reproducible::Strict);
            assert!(
                none.is_empty() && said[0].contains("reproducible"),
                "{said:?}"
            );
        }
    }

    #[test]
    fn what_the_user_sets_on_the_line_is_left_alone_and_said() {
        let called = [passed(Collective::Bcast, Manner::Nonblocking, 1000, 10)];
        for line in [
            "mpirun --mca coll_libnbc_ibcast_algorithm 2 ./a",
            "mpirun -x OMPI_MCA_coll_libnbc_ibcast_algorithm=2 ./a",
            "env OMPI_MCA_coll_libnbc_ibcast_algorithm=2 mpirun ./a",
        ] {
            let (names, said) = found("openmpi-4.1.4", &called, line);
            assert!(names.is_empty(), "{line}");
            assert!(
                said.contains("_ibcast_algorithm is set on the line, and stays"),
                "{said}"
            );
        }
    }

    #[test]
    fn every_lever_begins_with_the_default_which_sets_nothing() {
        for (library, default) in [("openmpi-4.1.4", "ignore"), ("mpich-4.0.2", "auto")] {
            for (_, _, lever) in all(library.parse().unwrap()) {
                assert_eq!(lever.arms[0], default);
                assert!(
                    is_variable(&lever.name) && lever.arms.len() > 1,
                    "{lever:?}"
                );
                let first = Arms::from([(lever.name.clone(), default.to_owned())]);
                assert_eq!(assignments(&first), []);
                // It is a lever as any other, so that lines can name it.
                let text = format!("{}={}", lever.name, lever.arms.join(","));
                assert_eq!(Lever::parse(&text), Ok(lever));
            }
        }
        let name = "OMPI_MCA_coll_libnbc_ibcast_algorithm";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let arms = Arms::from([pair(name, "knomial:8"), pair("block", "knomial:8")]);
        let radix = pair("OMPI_MCA_coll_libnbc_ibcast_knomial_radix", "8");
        assert_eq!(assignments(&arms), [pair(name, "knomial"), radix]);
    }
}
