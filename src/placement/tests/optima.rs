//! LPT with swaps against proved optima.
//!
//! `data/optima.csv` holds the optima of 50 seeded cases in each stratum, and what HiGHS made of them;
//! `examples/optima.rs` made it and tells how.

use colltune_placement::generate::{Stratum, small};
use colltune_placement::optimum::optimum;
use colltune_placement::{Policy, Problem, makespan, place};

/// A line of the file.
struct Proved {
    stratum: Stratum,
    seed: u64,
    blocks: usize,
    ranks: u32,
    optimum: f64,
    highs_bound: f64,
    highs_best: f64,
    proof: &'static str,
}

fn proved() -> Vec<Proved> {
    let text = include_str!("data/optima.csv");
    text.lines().skip(1).map(read).collect()
}

fn read(line: &'static str) -> Proved {
    let cells: Vec<&str> = line.split(',').collect();
    let of_name = |stratum: &Stratum| stratum.name() == cells[0];
    Proved {
        stratum: Stratum::ALL.into_iter().find(of_name).unwrap(),
        seed: cells[1].parse().unwrap(),
        blocks: cells[3].parse().unwrap(),
        ranks: cells[4].parse().unwrap(),
        optimum: cells[5].parse().unwrap(),
        highs_bound: cells[6].parse().unwrap(),
        highs_best: cells[7].parse().unwrap(),
        proof: cells[8],
    }
}

fn is_long() -> bool {
    std::env::var_os("COLLTUNE_LONG").is_some_and(|value| value == "1")
}

fn found(policy: &str, stratum: Stratum, seed: u64) -> f64 {
    let case = small(stratum, seed);
    let problem = Problem::new(&case.costs, case.ranks).unwrap();
    let policy: Policy = policy.parse().unwrap();
    makespan(&problem, &place(&policy, &problem).unwrap().owners)
}

#[test]
fn the_file_holds_every_case_once_and_its_facts_fit() {
    let all = proved();
    assert_eq!(all.len(), Stratum::ALL.len() * Stratum::CASES as usize);
    for (index, proved) in all.iter().enumerate() {
        assert_eq!(
            proved.stratum,
            Stratum::ALL[index / Stratum::CASES as usize]
        );
        assert_eq!(proved.seed, index as u64 % Stratum::CASES);
        let case = small(proved.stratum, proved.seed);
        assert_eq!(
            (proved.blocks, proved.ranks),
            (case.costs.len(), case.ranks)
        );
        assert!(proved.highs_bound <= proved.optimum && proved.optimum <= proved.highs_best);
        let is_decided = proved.highs_bound == proved.highs_best;
        assert_eq!(
            is_decided,
            proved.proof != "subsets",
            "{:?} {}",
            proved.stratum,
            proved.seed
        );
    }
}

#[test]
fn the_optima_are_found_again_by_dynamic_programming() {
    // Up to 18 blocks take milliseconds, 24 seconds.
    let most = if is_long() { 24 } else { 18 };
    let mut again = 0;
    for proved in proved().iter().filter(|proved| proved.blocks <= most) {
        let case = small(proved.stratum, proved.seed);
        // From above: every better makespan is looked for.
        let known = proved.optimum + 2.0;
        assert_eq!(
            optimum(&case.costs, case.ranks, known),
            Some(proved.optimum)
        );
        again += 1;
    }
    assert!(again >= 80, "{again}");
}

#[test]
fn lpt_with_swaps_meets_the_optimum_where_it_must_and_is_within_a_percent_elsewhere() {
    let all = proved();
    for (stratum, least) in Stratum::ALL.into_iter().zip([50, 40, 43, 43]) {
        let (mut met, mut worst, mut lpt_met) = (0, 0.0f64, 0);
        for proved in all.iter().filter(|proved| proved.stratum == stratum) {
            let swapped = found("lpt-swap", stratum, proved.seed);
            assert!(
                swapped >= proved.optimum,
                "{stratum:?} {}: {swapped}",
                proved.seed
            );
            met += u32::from(swapped == proved.optimum);
            worst = worst.max(swapped / proved.optimum - 1.0);
            lpt_met += u32::from(found("lpt", stratum, proved.seed) == proved.optimum);
            if proved.proof == "subsets" {
                let Proved {
                    seed,
                    highs_bound,
                    highs_best,
                    optimum,
                    ..
                } = proved;
                println!(
                    "{}, seed {seed}: HiGHS proves [{highs_bound}, {highs_best}], the optimum is {optimum}, here {swapped}",
                    stratum.name()
                );
            }
        }
        println!(
            "{}: {met} of 50 optimal (LPT {lpt_met}), worst gap {:.2} %",
            stratum.name(),
            100.0 * worst
        );
        assert!(met >= least, "{}: {met} of 50", stratum.name());
        assert!(worst <= 0.01, "{}: {worst}", stratum.name());
        assert!(
            stratum == Stratum::UpToTwo || lpt_met < 40,
            "the cases are not trivial"
        );
    }
}

#[cfg(feature = "ilp")]
#[test]
fn highs_proves_the_same_again() {
    // Every eighth case for a second; all of them for longer in the long form.
    let (policy, every) = if is_long() {
        ("ilp:20", 1)
    } else {
        ("ilp:1", 8)
    };
    for proved in proved().iter().step_by(every) {
        let case = small(proved.stratum, proved.seed);
        let problem = Problem::new(&case.costs, case.ranks).unwrap();
        let placement = place(&policy.parse().unwrap(), &problem).unwrap();
        let found = placement.certify(&problem).unwrap();
        assert!(found.bound <= proved.optimum && proved.optimum <= found.makespan);
        assert!(found.optimal.is_none() || found.makespan == proved.optimum);
    }
}
