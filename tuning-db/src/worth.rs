//! Whether the programs that a training learns from spend enough of their time in collectives, by what their jobs said
//! of themselves at the end.
//!
//! `colltune tune` asks that before it tries anything; jobs that were started by hand are asked here.

use std::collections::{BTreeMap, BTreeSet};

use colltune_core::account::{Exit, WORTH_TUNING};

use crate::runs::Times;

/// Fewer jobs say nothing of a program on so many ranks.
const JOBS_LEAST: usize = 3;

/// Why nothing is to be gained in the programs of these jobs, however fast collectives are; empty where something may be,
/// where the program of a job is not known, and where too few jobs of one have ended.
pub(crate) fn nothing_to_gain(jobs: &BTreeSet<&str>, ledger: &[Times], library: &str) -> String {
    let of_library = || ledger.iter().filter(move |run| run.library == library);
    let learned_from: Vec<&Times> = of_library()
        .filter(|run| jobs.contains(run.job.as_str()))
        .collect();
    if learned_from.is_empty() || learned_from.len() < jobs.len() {
        return String::new();
    }
    let program = |run: &Times| (run.program.clone(), run.ranks);
    let mut shares: BTreeMap<(String, u64), Vec<f64>> = learned_from
        .into_iter()
        .map(|run| (program(run), Vec::new()))
        .collect();
    let ended = of_library().filter(|run| run.exit == Exit::Finalized && run.wall_s > 0.0);
    for run in ended {
        if let Some(shares) = shares.get_mut(&program(run)) {
            shares.push(run.work_s / run.wall_s);
        }
    }
    let most = shares.values().flatten().copied().fold(0.0, f64::max);
    if most >= WORTH_TUNING || shares.values().any(|of| of.len() < JOBS_LEAST) {
        return String::new();
    }
    let percent = format!("{:.2} %", 100.0 * most);
    format!(
        "the time in collectives beyond waiting is {percent} of the whole, so at most {percent} can be gained"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "openmpi-4.1.4";

    fn run(job: &str, program: &str, ranks: u64, share: f64) -> Times {
        Times {
            job: job.to_owned(),
            program: program.to_owned(),
            library: LIBRARY.to_owned(),
            exit: Exit::Finalized,
            nodes: 1,
            ranks,
            wall_s: 100.0,
            collectives_s: 100.0 * share,
            work_s: 100.0 * share,
            saved_s: 0.0,
        }
    }

    fn said(ledger: &[Times], jobs: &[&str]) -> String {
        nothing_to_gain(&jobs.iter().copied().collect(), ledger, LIBRARY)
    }

    #[test]
    fn three_jobs_that_hardly_call_end_exploring_and_one_that_does_keeps_it() {
        let mut ledger = vec![run("a", "sort", 8, 0.005), run("b", "sort", 8, 0.004)];
        assert_eq!(said(&ledger, &["a", "b"]), "");
        // It counts whatever its mode was.
        ledger.push(run("c", "sort", 8, 0.001));
        assert_eq!(
            said(&ledger, &["a", "b"]),
            "the time in collectives beyond waiting is 0.50 % of the whole, so at most 0.50 % can be gained"
        );
        assert_eq!(said(&ledger, &[]), "", "nothing was learned from");
        // Other ranks are another program, and so is another library.
        ledger.push(run("d", "sort", 64, 0.3));
        ledger.push(Times {
            library: "mpich-4.0.2".to_owned(),
            ..run("e", "sort", 8, 0.3)
        });
        assert!(!said(&ledger, &["a", "b"]).is_empty());
        assert_eq!(said(&ledger, &["a", "b", "d"]), "");
        ledger.push(run("f", "sort", 8, 0.02));
        assert_eq!(said(&ledger, &["a", "b"]), "");
    }

    #[test]
    fn jobs_of_which_nobody_knows_what_they_ran_keep_it_and_those_that_died_need_others_of_their_program()
     {
        let mut ledger: Vec<Times> = ["a", "b", "c"]
            .map(|job| run(job, "sort", 8, 0.005))
            .to_vec();
        assert_eq!(said(&ledger, &["a", "unknown"]), "");
        let died = |program: &str| Times {
            exit: Exit::Missing,
            wall_s: 0.0,
            ..run("died", program, 8, 0.0)
        };
        ledger.push(died("sort"));
        assert!(!said(&ledger, &["a", "died"]).is_empty());
        ledger[3] = died("solver");
        assert_eq!(said(&ledger, &["a", "died"]), "");
    }
}
