//! Stalls behind calls: whether they are a variant's own, and what it pays for them.
//!
//! What comes behind calls is the program's for the most part, and that may stall at any time, whatever ran. But variants
//! are drawn at random: each stall of a run comes behind a variant's call with the probability that is the variant's
//! share of the calls. One that has more of them than chance gives it, beside all others or beside the default alone,
//! provokes them, and pays for what it has beyond what those have. Others are nobody's own.
//!
//! Source: the conditional test: Przyborowski & Wilenski, Biometrika 31, 1940; that one binomial tail bounds that of
//! several runs: Hoeffding, Ann. Math. Stat. 27, 1956.

use std::collections::BTreeMap;

use statrs::distribution::{Binomial, DiscreteCDF};

use super::stalls::{RATES, Stalls};
use crate::evidence::{Evidence, Shape};

/// Of cells in which no variant provokes stalls behind its calls, the share in which any one seems to.
const WRONG: f64 = 0.01;

/// Calls, and how many of them a stall came behind, with what excess.
#[derive(Clone, Copy, Debug, Default)]
struct Aftermath {
    calls: f64,
    stalls: u64,
    excess: f64,
}

/// What comes behind a variant's calls, and behind others' in the same runs and shapes.
#[derive(Clone, Copy, Debug, Default)]
struct StallContrast {
    own: Aftermath,
    /// Stalls behind its own and the others' calls, and how many of them chance gives to the variant.
    all_stalls: u64,
    expected: f64,
    /// The excess behind the others' calls, for as many calls as its own.
    excess_of_others: f64,
}

/// Of the variants of a cell behind whose calls the program stalls more often than behind others'.
pub fn of_cell(rows: &[&Evidence]) -> BTreeMap<u16, Stalls> {
    let mut strata: BTreeMap<(u32, Shape), BTreeMap<u16, Aftermath>> = BTreeMap::new();
    let mut stalls: BTreeMap<u16, u64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.behind_n > 0) {
        let of_run = strata.entry((row.run, row.shape)).or_default();
        of_run.entry(row.variant).or_default().add(Aftermath {
            calls: row.behind_n as f64,
            stalls: row.behind_stalls,
            excess: row.behind_excess,
        });
        *stalls.entry(row.variant).or_default() += row.behind_stalls;
    }
    // Beside two kinds of others (Bonferroni's bound).
    let wrong = WRONG / (2 * stalls.len()) as f64;
    let suspects = stalls.iter().filter(|(_, stalls)| **stalls > 0);
    let of = |(&variant, _): (&u16, &u64)| {
        let all = StallContrast::new(&strata, variant, |_| true);
        let default = StallContrast::new(&strata, variant, |other| other == 0);
        let provoked = [all, default].into_iter();
        let provoked = provoked.filter(|one| one.chance() < wrong);
        let dearest = provoked.max_by(|a, b| a.stalls().mean().total_cmp(&b.stalls().mean()))?;
        Some((variant, dearest.stalls()))
    };
    suspects.filter_map(of).collect()
}

impl Aftermath {
    fn add(&mut self, other: Aftermath) {
        self.calls += other.calls;
        self.stalls += other.stalls;
        self.excess += other.excess;
    }
}

impl StallContrast {
    fn new(
        strata: &BTreeMap<(u32, Shape), BTreeMap<u16, Aftermath>>,
        variant: u16,
        is_asked: impl Fn(u16) -> bool,
    ) -> StallContrast {
        let mut sum = StallContrast::default();
        for of_run in strata.values() {
            let Some(&own) = of_run.get(&variant) else {
                continue;
            };
            let mut others = Aftermath::default();
            let asked = |(other, _): &(&u16, &Aftermath)| **other != variant && is_asked(**other);
            of_run
                .iter()
                .filter(asked)
                .for_each(|(_, of)| others.add(*of));
            if others.calls > 0.0 {
                let stalls = own.stalls + others.stalls;
                sum.own.add(own);
                sum.all_stalls += stalls;
                sum.expected += stalls as f64 * own.calls / (own.calls + others.calls);
                sum.excess_of_others += own.calls * others.excess / others.calls;
            }
        }
        sum
    }

    /// How likely chance gives the variant as many stalls or more.
    fn chance(&self) -> f64 {
        if self.own.stalls as f64 <= self.expected {
            return 1.0;
        }
        let share = self.expected / self.all_stalls as f64;
        let stalls = Binomial::new(share, self.all_stalls);
        stalls.map_or(1.0, |stalls| stalls.sf(self.own.stalls - 1))
    }

    fn stalls(&self) -> Stalls {
        let Aftermath {
            calls,
            stalls,
            excess,
        } = self.own;
        let stalls = stalls as f64;
        Stalls {
            provokes: 1.0,
            rate: (RATES.0 + stalls, RATES.1 + calls - stalls),
            size: ((excess / stalls).ln(), (1.0 / (1.0 + stalls)).sqrt()),
            all_pay: self.excess_of_others / calls,
        }
    }
}
