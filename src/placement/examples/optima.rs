//! Proves the optima of the small cases and prints them as `tests/data/optima.csv` holds them:
//! `cargo run --release -p colltune-placement --features ilp --example optima -- 4 > src/placement/tests/data/optima.csv`.
//! The argument is HiGHS's time for one case in seconds. What it has proved then stands in `highs_bound`
//! and `highs_best`, and `proof` says whether it was enough: `lower bound` where the costs alone prove
//! the optimum, `HiGHS`, or `subsets` where HiGHS did not get that far. All optima that are not proved
//! by the costs are computed by dynamic programming over subsets as well, and have to agree.

use colltune_placement::generate::{Stratum, small};
use colltune_placement::optimum::optimum;
use colltune_placement::{Policy, Problem, Proof, place};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).unwrap_or("5".to_owned());
    let policy: Policy = format!("ilp:{seconds}").parse()?;
    println!("stratum,seed,distribution,blocks,ranks,optimum,highs_bound,highs_best,proof");
    for stratum in Stratum::ALL {
        for seed in 0..Stratum::CASES {
            let case = small(stratum, seed);
            let problem = Problem::new(&case.costs, case.ranks)?;
            let found = place(&policy, &problem)?.certify(&problem)?;
            let best = match found.optimal {
                Some(Proof::LowerBound) => found.makespan,
                _ => optimum(&case.costs, case.ranks, found.makespan).ok_or("too large")?,
            };
            let proof = match found.optimal {
                Some(Proof::LowerBound) => "lower bound",
                Some(Proof::Policy) => "HiGHS",
                None => "subsets",
            };
            if found.optimal.is_some() && best != found.makespan {
                return Err(format!(
                    "{stratum:?} {seed}: HiGHS has proved {}, but {best} is possible",
                    found.makespan
                )
                .into());
            }
            println!(
                "{},{seed},{},{},{},{best},{},{},{proof}",
                stratum.name(),
                case.distribution,
                case.costs.len(),
                case.ranks,
                found.bound,
                found.makespan
            );
        }
    }
    Ok(())
}
