//! Our policies against the published ones.

use colltune_placement::generate::Distribution;
use colltune_placement::published::{RIVALS, instance};
use colltune_placement::{Policy, Problem, makespan, place};

#[test]
fn on_average_no_policy_is_worse_than_the_published_one() {
    // Seeded instances of each distribution.
    let instances = match std::env::var_os("COLLTUNE_LONG") {
        Some(_) => 1_000,
        None => 40,
    };
    let mut worse_on_average = Vec::new();
    for distribution in Distribution::ALL {
        for (name, published) in RIVALS {
            let policy: Policy = name.parse().unwrap();
            let mut ratios = Vec::new();
            for seed in 0..instances {
                let (costs, ranks) = instance(distribution, seed);
                let Some(theirs) = published.place(&costs, ranks) else {
                    continue;
                };
                let problem = Problem::new(&costs, ranks).unwrap();
                let ours = place(&policy, &problem).unwrap().owners;
                ratios.push(makespan(&problem, &ours) / makespan(&problem, &theirs));
            }
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            let worse = ratios.iter().filter(|&&ratio| ratio > 1.0).count();
            let worst = ratios.iter().copied().fold(0.0, f64::max);
            println!(
                "{distribution:12} {name:20} {published:10} {mean:.4}, worse {worse} of {}, worst {worst:.4}",
                ratios.len()
            );
            assert!(ratios.len() > instances as usize / 8);
            if mean > 1.0 {
                worse_on_average.push(format!(
                    "{name} against {published}, {distribution}: {mean}"
                ));
            }
        }
    }
    assert!(worse_on_average.is_empty(), "{worse_on_average:#?}");
}
