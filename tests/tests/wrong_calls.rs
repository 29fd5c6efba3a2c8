//! Wrong calls of every blocking collective are answered as without the shim: the same error class on
//! every rank, and the same error handler, as often and with the same communicator. From Fortran, too.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::variant::Family;
use colltune_tests::{
    FORTRAN_INTERFACES, Job, Mpi, Outcome, folder, fortran, job, on_each_library,
};

const RANKS: u32 = 2;
/// Of the blocks that the program sends, with all ranks' together.
const BYTES_MAX: u64 = 4096;

/// Mistakes that a bare library dies of, or that one rank alone notices while the others wait. More of
/// them, as another version may have, are found out by the program's end.
const DEADLY_OPENMPI: &[&str] = &[
    "from-and-to-nowhere:*",
    "from-nowhere:*",
    "in-place-everywhere:gather",
    "in-place-everywhere:gatherv",
    "in-place-everywhere:reduce",
    "in-place-twice:exscan",
    "into-its-own-buffer:allgatherv",
    "into-its-own-buffer:gather",
    "into-its-own-buffer:gatherv",
    "into-place:exscan",
    "of-a-freed-type:*",
    "of-a-type-that-is-not-committed:scatterv",
    "on-a-freed-communicator:*",
    "one-negative-count:allgatherv",
    "one-negative-count:scatterv",
    "receives-a-negative-count:allgatherv",
    "sends-a-negative-count:scatter",
    "sends-a-negative-count:scatterv",
    "to-nowhere:*",
    "too-much:scatter",
    "with-a-freed-operation:*",
    "without-a-communicator:allgather",
    "without-a-send-type:scatterv",
    "without-counts:allgatherv",
    "without-counts:scatterv",
    "without-displacements:scatterv",
];
const DEADLY_MPICH: &[&str] = &[
    "from-nowhere:scatter",
    "from-nowhere:scatterv",
    "in-place-everywhere:bcast",
    "in-place-everywhere:gather",
    "in-place-everywhere:gatherv",
    "in-place-everywhere:reduce",
    "in-place-twice:gather",
    "in-place-twice:gatherv",
    "in-place-twice:reduce",
    "in-place-twice:scatter",
    "in-place-twice:scatterv",
    "into-its-own-buffer:allgather",
    "into-its-own-buffer:allgatherv",
    "into-its-own-buffer:scatter",
    "into-its-own-buffer:scatterv",
    "into-place:scatter",
    "into-place:scatterv",
    "of-a-freed-type:*",
    "one-negative-count:scatterv",
    "sends-a-negative-count:scatter",
    "sends-a-negative-count:scatterv",
    "too-much:scatterv",
    "with-a-freed-operation:allreduce",
    "with-a-negative-count:allreduce",
    "with-a-negative-count:exscan",
    "with-a-negative-count:reduce",
    "with-a-negative-count:reduce_scatter_block",
    "with-a-negative-count:scan",
    "without-a-send-type:scatter",
    "without-a-send-type:scatterv",
    "without-counts:allgatherv",
    "without-counts:alltoallv",
    "without-counts:alltoallw",
    "without-counts:gatherv",
    "without-counts:reduce_scatter",
    "without-counts:scatterv",
    "without-displacements:allgatherv",
    "without-displacements:alltoallv",
    "without-displacements:alltoallw",
    "without-displacements:gatherv",
    "without-displacements:scatterv",
];

/// The same of the Fortran program's, for which Open MPI makes null of a handle that there is not.
const DEADLY_FORTRAN_OPENMPI: &[&str] = &[
    "of-no-such-type:allreduce",
    "of-no-such-type:exscan",
    "of-no-such-type:reduce",
    "of-no-such-type:reduce_scatter",
    "of-no-such-type:reduce_scatter_block",
    "of-no-such-type:scan",
    "with-no-such-operation:allreduce",
    "with-no-such-operation:exscan",
    "with-no-such-operation:reduce",
    "with-no-such-operation:reduce_scatter",
    "with-no-such-operation:reduce_scatter_block",
    "with-no-such-operation:scan",
];
const DEADLY_FORTRAN_MPICH: &[&str] = &[
    "negative-count:allreduce",
    "negative-count:exscan",
    "negative-count:reduce",
    "negative-count:reduce_scatter_block",
    "negative-count:scan",
];

/// For each family a list that forces one variant of it for every collective that has one.
fn forced(mpi: Mpi) -> Vec<String> {
    let families = [Family::Native, Family::P2p, Family::Node];
    let force = |family| {
        let of = |collective| {
            let mut variants = catalogue::variants(mpi.library(), collective).into_iter();
            variants.find(|variant| {
                variant.name.family == family && variant.possible(RANKS, 1, BYTES_MAX)
            })
        };
        let parts = Collective::ALL.into_iter().filter_map(of);
        let parts = parts.map(|variant| format!("{}={}", variant.collective, variant.name));
        parts.collect::<Vec<_>>().join(";")
    };
    families.map(force).to_vec()
}

/// Runs the program, leaving out what kills it; the outcome of the run that survived.
fn bare(mpi: Mpi, handler: &str, left_out: &mut Vec<String>) -> Outcome {
    loop {
        let outcome = run(job(RANKS).mpi(mpi), handler, left_out);
        let end = |line: &str| {
            let (how, what) = line.split_once(": ")?;
            ["dies", "hangs"].contains(&how).then(|| what.to_owned())
        };
        let Some(deadly) = outcome.stderr.lines().find_map(end) else {
            outcome.succeeds();
            return outcome;
        };
        assert!(!left_out.contains(&deadly), "{deadly} is not left out");
        eprintln!("{}: the bare library does not survive {deadly}", mpi.name());
        left_out.push(deadly);
    }
}

/// Every communicator is set up in its first call. Within a smaller budget that may be put off to a mistake that one rank
/// alone notices, where the others then wait for its next call.
fn tuned(mpi: Mpi) -> Job {
    let job = job(RANKS).mpi(mpi).preload();
    job.env("COLLTUNE_SETUP_AFTER", "1")
        .env("COLLTUNE_EXPLORE_BUDGET", "1")
}

fn run(job: Job, handler: &str, left_out: &[String]) -> Outcome {
    let arguments: Vec<&str> = std::iter::once(handler)
        .chain(left_out.iter().map(String::as_str))
        .collect();
    job.run("wrong_calls", &arguments)
}

/// Mistakes that the ranks answer differently, or that the library lets pass. What the others do where
/// one rank alone notices something is an accident of the algorithm: some wait, some have sent already.
fn one_sided(bare: &Outcome) -> Vec<String> {
    let mut classes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in lines(bare) {
        let (what, answer) = line.split_once(" rank ").expect("a rank answers");
        let class = answer.split(' ').nth(2).unwrap_or_default();
        let what = what.strip_suffix("_c").unwrap_or(what);
        classes.entry(what).or_default().insert(class);
    }
    let legal =
        |what: &str| what.starts_with("nothing:") || what.starts_with("into-its-own-buffer:");
    let tells = |what: &str, classes: &BTreeSet<&str>| {
        classes.len() == 1 && (!classes.contains("0") || legal(what))
    };
    let left = classes
        .iter()
        .filter(|(what, classes)| !tells(what, classes));
    // Messages that are too long show where an algorithm happens to receive them.
    let long = ["too-much:*", "root-sends-more:*"].map(str::to_owned);
    left.map(|(what, _)| (*what).to_owned())
        .chain(long)
        .collect()
}

/// Compares answer by answer, so that a difference can be read.
#[track_caller]
fn agrees(tuned: &Outcome, bare: &Outcome) {
    tuned.succeeds();
    let answers: BTreeSet<&str> = lines(bare).collect();
    for with in lines(tuned) {
        let what = with.split(": class").next().unwrap_or_default();
        let without = lines(bare)
            .find(|line| line.starts_with(what))
            .unwrap_or_default();
        tuned.claim(
            answers.contains(with),
            &format!("{without}\nbecame\n{with}"),
        );
    }
}

/// The answers; a library may print more at its end.
fn lines(outcome: &Outcome) -> impl Iterator<Item = &str> {
    outcome
        .stdout
        .lines()
        .filter(|line| line.contains(": class "))
}

on_each_library! {
    fn the_library_answers_as_ever(mpi: Mpi) {
        let deadly = if mpi.is_openmpi() { DEADLY_OPENMPI } else { DEADLY_MPICH };
        let mut left_out: Vec<String> = deadly.iter().map(|&mistake| mistake.to_owned()).collect();
        for handler in ["own", "return"] {
            let bare = bare(mpi, handler, &mut left_out);
            assert!(lines(&bare).filter(|line| !line.contains("class 0 ")).count() > 200, "{}", bare.stdout);
            assert!(lines(&bare).any(|line| line.starts_with("nothing:barrier") && line.contains("class 0 ")));
            assert_eq!(bare.stdout.contains("handler 1 times on this communicator"), handler == "own");
            let tuned = || tuned(mpi);
            for mode in ["off", "record"] {
                let db = folder();
                let passed = run(tuned().db(db.path()).mode(mode).seed(4), handler, &left_out);
                agrees(&passed, &bare);
                passed.claim(lines(&passed).count() == lines(&bare).count(), "answers are missing");
            }
            let left_out = [left_out.as_slice(), &one_sided(&bare)].concat();
            let db = folder();
            let drawn = run(tuned().db(db.path()).mode("explore").seed(4), handler, &left_out);
            agrees(&drawn, &bare);
            assert!(lines(&drawn).count() > lines(&bare).count() * 3 / 5);
            for force in forced(mpi) {
                agrees(&run(tuned().force(&force), handler, &left_out), &bare);
            }
        }
    }

    /// Others are in the right call by then. So many communicators as a handler calls on push this one out of the cache.
    fn a_call_that_one_rank_makes_wrong_and_then_right_is_made_once(mpi: Mpi) {
        for words in [["1", "11", "0"], ["7", "9", "300"]] {
            let run = |job: Job| {
                job.run("wrong_then_right", &words).succeeds().prints("ok\n");
            };
            run(job(RANKS).mpi(mpi));
            for every in [false, true] {
                let db = folder();
                let tuned = job(RANKS).mpi(mpi).preload().db(db.path()).mode("explore").seed(3);
                run(match every {
                    false => tuned,
                    true => tuned
                        .env("COLLTUNE_SETUP_AFTER", "1")
                        .env("COLLTUNE_EXPLORE_BUDGET", "1")
                        .env("COLLTUNE_FAMILIES", "native,node,p2p"),
                });
            }
        }
    }

    /// An argument that is not significant at a rank may lack type and count: that computes the same.
    fn fortran_programs_get_the_librarys_answers(mpi: Mpi) {
        let left_out = if mpi.is_openmpi() { DEADLY_FORTRAN_OPENMPI } else { DEADLY_FORTRAN_MPICH };
        let programs = folder();
        for interface in FORTRAN_INTERFACES {
            let program = programs.path().join(interface);
            let Some(()) = fortran(mpi, "fortran_wrong_calls", &[format!("-D{interface}")], &program) else { return };
            let run = |job: Job| job.run(&program.to_string_lossy(), left_out);
            let bare = run(job(RANKS).mpi(mpi));
            bare.succeeds();
            let of = |class: &str| lines(&bare).filter(|line| line.contains(class)).count();
            assert!(of("class 0,") >= 50 && of("class") - of("class 0,") >= 130, "{}", bare.stdout);
            let tuned = || tuned(mpi);
            let mut outcomes = Vec::new();
            for mode in ["off", "record", "explore"] {
                let db = folder();
                let tuned = tuned().db(db.path()).mode(mode).seed(6);
                outcomes.push(run(tuned.env("COLLTUNE_FAMILIES", "native,node,p2p")));
            }
            outcomes.extend(forced(mpi).iter().map(|force| run(tuned().force(force))));
            for outcome in outcomes {
                agrees(&outcome, &bare);
                outcome.claim(lines(&outcome).count() == of("class"), "answers are missing");
            }
        }
    }
}
