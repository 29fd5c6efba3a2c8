//! Small cases for comparisons with proved optima, in strata of blocks per rank.

use super::costs::{Distribution, costs};
use super::random::Random;

/// How many blocks a rank has on average; what makes a case easy or hard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stratum {
    UpToTwo,
    TwoToThree,
    ThreeToFive,
    AboveFive,
}

impl Stratum {
    pub const ALL: [Stratum; 4] = [
        Stratum::UpToTwo,
        Stratum::TwoToThree,
        Stratum::ThreeToFive,
        Stratum::AboveFive,
    ];

    /// Cases of a stratum in comparisons.
    pub const CASES: u64 = 50;

    /// The name in tables: the blocks per rank that belong to the stratum.
    pub fn name(self) -> &'static str {
        match self {
            Stratum::UpToTwo => "up to 2",
            Stratum::TwoToThree => "2 to 3",
            Stratum::ThreeToFive => "3 to 5",
            Stratum::AboveFive => "above 5",
        }
    }

    fn holds(self, blocks: usize, ranks: usize) -> bool {
        let share = blocks as f64 / ranks as f64;
        match self {
            Stratum::UpToTwo => share <= 2.0,
            Stratum::TwoToThree => share > 2.0 && share <= 3.0,
            Stratum::ThreeToFive => share > 3.0 && share <= 5.0,
            Stratum::AboveFive => share > 5.0,
        }
    }
}

/// A problem that can be solved to the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Small {
    pub distribution: Distribution,
    pub costs: Vec<f64>,
    pub ranks: u32,
}

/// Case `seed` of a stratum: 8 to 24 blocks on 2 to 16 ranks, each distribution in turn.
pub fn small(stratum: Stratum, seed: u64) -> Small {
    let mut random = Random::new(Random::at(seed, stratum as u64));
    let distribution = Distribution::ALL[seed as usize % 3];
    loop {
        let (blocks, ranks) = (8 + random.below(17), 2 + random.below(15));
        if stratum.holds(blocks, ranks) {
            return Small {
                distribution,
                costs: costs(distribution, random.bits(), blocks),
                ranks: ranks as u32,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_belongs_to_its_stratum_alone() {
        for stratum in Stratum::ALL {
            for seed in 0..Stratum::CASES {
                let Small { costs, ranks, .. } = small(stratum, seed);
                let of = |s: &&Stratum| s.holds(costs.len(), ranks as usize);
                assert_eq!(Stratum::ALL.iter().find(of), Some(&stratum));
                assert_eq!(Stratum::ALL.iter().filter(of).count(), 1);
                assert!((8..=24).contains(&costs.len()) && (2..=16).contains(&ranks));
            }
            assert_ne!(small(stratum, 0), small(stratum, 3));
        }
    }
}
