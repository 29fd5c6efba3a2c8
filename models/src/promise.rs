//! What a program may still gain, and what more jobs would find of it.
//!
//! A true contrast is what a variant has in all cells of its collective + what it has in this one. Either comes from a
//! mixture of normal distributions around 0, of widths from none to large, whose weights all cells tell together: where
//! nothing differs the narrow ones win, and a few variants that differ keep a wide one. What the default of a cell was
//! lucky by is in all its contrasts. Of draws of the posterior (Gibbs sampling) more jobs are
//! played, and what would be chosen behind them counts by what it truly gains.
//!
//! Sources: the mixture: Stephens, Biostatistics 18, 2017; what data to come are worth: Raiffa & Schlaifer, Applied
//! Statistical Decision Theory, 1961.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, StandardNormal};

/// Widths of the mixture.
const WIDTHS: [f64; 7] = [0.0, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8];
/// Contrasts for which each width counts before any data.
const WEIGHTS: [f64; WIDTHS.len()] = [10.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const SWEEPS: usize = 240;
/// Sweeps that forget where they began.
const SWEEPS_FIRST: usize = 40;
/// Standard errors by which a choice is faster: it is wrong with 5 % at the most.
const SURE: f64 = 1.645;

/// So few runs say nothing.
const RUNS_OF_UNSEEN: f64 = 1e-3;

/// What is known of one variant: log(t_v / t_default) with the variance that is its own.
#[derive(Clone, Copy, Debug)]
pub struct Contestant {
    /// The same for the same variant in other cells of its collective.
    pub kin: u32,
    pub mean: f64,
    pub variance: f64,
    /// What its stalls cost beyond the default's, in times of a call.
    pub stalls: f64,
    /// Runs behind it.
    pub runs: f64,
}

impl Contestant {
    /// One of which nothing is known but what others are like. A run tells it with this variance.
    pub fn unseen(kin: u32, of_run: f64) -> Contestant {
        Contestant {
            kin,
            mean: 0.0,
            variance: of_run / RUNS_OF_UNSEEN,
            stalls: 0.0,
            runs: RUNS_OF_UNSEEN,
        }
    }
}

/// One cell of a program.
#[derive(Clone, Debug)]
pub struct Prospect {
    /// Its share of the program's time, and the part of that without waiting.
    pub share: f64,
    pub work: f64,
    pub contestants: Vec<Contestant>,
    /// The variance that all its contrasts share with the default.
    pub shared: f64,
    /// Runs behind them.
    pub runs: f64,
}

/// Shares of the program's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// Expected of knowing all of the truth.
    pub known: f64,
    /// Expected of what more jobs would find.
    pub found: f64,
}

/// What `more` jobs like those so far promise, if a variant has to be faster by the share `least`.
pub fn promise(prospects: &[Prospect], more: f64, least: f64, seed: u64) -> Promise {
    let mut random = StdRng::seed_from_u64(seed);
    let mut cells: Vec<Chain> = prospects.iter().map(Chain::new).collect();
    let mut families = Families::new(prospects);
    let (mut of_cells, mut of_families) = (Mixture::new(), Mixture::new());
    let mut sum = Promise::default();
    for sweep in 0..SWEEPS {
        for cell in &mut cells {
            cell.draw_luck(&families, &mut random);
        }
        families.sweep(&cells, &mut of_families, &mut random);
        for cell in &mut cells {
            cell.sweep(&families, &mut of_cells, &mut random);
        }
        of_cells.learn(&mut random);
        of_families.learn(&mut random);
        if sweep >= SWEEPS_FIRST {
            for cell in &cells {
                sum.known += cell.prospect.share * cell.best();
                sum.found += cell.prospect.share * cell.play(more, least, &mut random);
            }
        }
    }
    let n = (SWEEPS - SWEEPS_FIRST) as f64;
    Promise {
        known: sum.known / n,
        found: sum.found / n,
    }
}

/// Normal distributions around 0, and how many values are of each.
struct Mixture {
    weights: [f64; WIDTHS.len()],
    counts: [f64; WIDTHS.len()],
}

impl Mixture {
    fn new() -> Mixture {
        Mixture {
            weights: WEIGHTS,
            counts: WEIGHTS,
        }
    }

    /// A value that was seen with an error of this variance, and the width that it is of.
    fn draw(&mut self, seen: f64, variance: f64, random: &mut StdRng) -> (f64, usize) {
        let likelihood = |width: f64| {
            let total = width * width + variance;
            (-0.5 * seen * seen / total).exp() / total.sqrt()
        };
        let mut each = WIDTHS.map(likelihood);
        for (of, weight) in each.iter_mut().zip(self.weights) {
            *of *= weight;
        }
        let mut left = random.random::<f64>() * each.iter().sum::<f64>();
        let drawn = each.iter().position(|of| {
            left -= of;
            left < 0.0
        });
        // What lies beyond all widths is of the widest.
        let drawn = drawn.unwrap_or(WIDTHS.len() - 1);
        self.counts[drawn] += 1.0;
        let kept = WIDTHS[drawn].powi(2) / (WIDTHS[drawn].powi(2) + variance);
        let value = kept * seen + (kept * variance).sqrt() * normal(random);
        (value, drawn)
    }

    fn learn(&mut self, random: &mut StdRng) {
        let drawn = |count: f64| Gamma::new(count, 1.0).map_or(count, |gamma| gamma.sample(random));
        self.weights = self.counts.map(drawn);
        self.counts = WEIGHTS;
    }
}

/// What variants have in all cells of their collectives.
struct Families {
    effects: HashMap<u32, f64>,
    order: Vec<u32>,
}

impl Families {
    fn new(prospects: &[Prospect]) -> Families {
        let all = prospects.iter().flat_map(|cell| &cell.contestants);
        let mut order: Vec<u32> = all.map(|one| one.kin).collect();
        order.sort_unstable();
        order.dedup();
        Families {
            effects: order.iter().map(|&kin| (kin, 0.0)).collect(),
            order,
        }
    }

    /// Draws them anew, whatever the cells' own parts are of the widths that they have.
    fn sweep(&mut self, cells: &[Chain], mixture: &mut Mixture, random: &mut StdRng) {
        let mut sums: HashMap<u32, (f64, f64)> = HashMap::new();
        for cell in cells {
            for (one, width) in cell.prospect.contestants.iter().zip(&cell.widths) {
                let precision = 1.0 / (one.variance + WIDTHS[*width].powi(2));
                let sum = sums.entry(one.kin).or_default();
                *sum = (
                    sum.0 + precision * (one.mean + cell.luck),
                    sum.1 + precision,
                );
            }
        }
        for kin in &self.order {
            let (sum, precision) = sums[kin];
            let (effect, _) = mixture.draw(sum / precision, 1.0 / precision, random);
            self.effects.insert(*kin, effect);
        }
    }

    fn of(&self, one: &Contestant) -> f64 {
        self.effects[&one.kin]
    }
}

/// One cell's state of the sampler.
struct Chain<'a> {
    prospect: &'a Prospect,
    /// By how much the default was slower than it is, in logarithms.
    luck: f64,
    /// The widths that the variants' own parts are of.
    widths: Vec<usize>,
    truths: Vec<f64>,
}

impl Chain<'_> {
    fn new(prospect: &Prospect) -> Chain<'_> {
        let n = prospect.contestants.len();
        Chain {
            luck: 0.0,
            widths: vec![0; n],
            truths: vec![0.0; n],
            prospect,
        }
    }

    /// Draws what the default was lucky by, whatever the variants' own parts are of the widths that they have.
    fn draw_luck(&mut self, families: &Families, random: &mut StdRng) {
        let (mut precision, mut sum) = (1.0 / self.prospect.shared.max(1e-9), 0.0);
        for (one, width) in self.prospect.contestants.iter().zip(&self.widths) {
            let own = 1.0 / (one.variance + WIDTHS[*width].powi(2));
            precision += own;
            sum += own * (families.of(one) - one.mean);
        }
        self.luck = sum / precision + normal(random) / precision.sqrt();
    }

    fn sweep(&mut self, families: &Families, mixture: &mut Mixture, random: &mut StdRng) {
        for (place, one) in self.prospect.contestants.iter().enumerate() {
            let common = families.of(one);
            let seen = one.mean + self.luck - common;
            let (own, width) = mixture.draw(seen, one.variance, random);
            (self.truths[place], self.widths[place]) = (common + own, width);
        }
    }

    /// What a variant gains, as a share of the default's time; at most the part without waiting.
    fn gain(&self, place: usize) -> f64 {
        let one = self.prospect.contestants[place];
        (1.0 - self.truths[place].exp() - one.stalls).min(self.prospect.work)
    }

    fn best(&self) -> f64 {
        (0..self.truths.len())
            .map(|place| self.gain(place))
            .fold(0.0, f64::max)
    }

    /// What is gained by what is chosen behind so many more jobs; all are weighed alike.
    fn play(&self, more: f64, least: f64, random: &mut StdRng) -> f64 {
        let Prospect {
            contestants,
            shared,
            runs,
            ..
        } = self.prospect;
        // By so much more jobs vary less than those so far, and such a share of what is known then stems from these.
        let scale = |runs: f64| runs / more;
        let kept = |runs: f64| runs / (runs + more);
        let luck = (shared * scale(*runs)).sqrt() * normal(random);
        let edge = (1.0 - least).ln();
        let mut chosen = (f64::INFINITY, 0.0);
        for (place, (one, truth)) in contestants.iter().zip(&self.truths).enumerate() {
            let seen = truth - luck + (one.variance * scale(one.runs)).sqrt() * normal(random);
            let own = kept(one.runs);
            let mean = own * one.mean + (1.0 - own) * seen;
            let error = (shared * kept(*runs) + one.variance * own).sqrt();
            let cost = mean.exp() + one.stalls;
            if cost.ln() + SURE * error < edge && cost < chosen.0 {
                chosen = (cost, self.gain(place));
            }
        }
        chosen.1
    }
}

fn normal(random: &mut StdRng) -> f64 {
    StandardNormal.sample(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten cells of twenty variants, seen with runs that differ by so much, behind so many of them.
    fn prospects(run_effect: f64, runs: f64, seed: u64, truth: fn(usize) -> f64) -> Vec<Prospect> {
        let mut random = StdRng::seed_from_u64(seed);
        let variance = run_effect * run_effect / runs;
        let cell = |cell: usize| {
            let luck = variance.sqrt() * normal(&mut random);
            let mut one = |place: usize| Contestant {
                kin: (100 * (cell / 2) + place) as u32,
                mean: truth(place) - luck + variance.sqrt() * normal(&mut random),
                variance,
                stalls: 0.0,
                runs,
            };
            Prospect {
                share: 0.1,
                work: 1.0,
                contestants: (0..19).map(&mut one).collect(),
                shared: variance,
                runs,
            }
        };
        (0..10).map(cell).collect()
    }

    #[test]
    fn where_all_are_equal_ten_more_jobs_mostly_promise_nothing_and_where_one_of_twenty_is_faster_they_do()
     {
        // Runs that differ by 15 % say after eight what those that differ by 5 % say after three.
        for (run_effect, runs, least) in [(0.05, 3.0, 17), (0.15, 8.0, 12)] {
            let nothing = |seed: &u64| {
                let none = prospects(run_effect, runs, *seed, |_| 0.0);
                promise(&none, 10.0, 0.01, 1).found < 0.02
            };
            let told = (0..20).filter(nothing).count();
            assert!(told >= least, "{run_effect}: {told} of 20");
        }
        for seed in 0..5 {
            let one = |place: usize| if place == 7 { 0.8_f64.ln() } else { 0.0 };
            let some = promise(&prospects(0.05, 3.0, seed, one), 10.0, 0.01, 1);
            assert!((0.15..0.25).contains(&some.found), "{seed}: {some:?}");
        }
    }

    #[test]
    fn untried_variants_promise_as_much_as_others_of_the_program_differ_by() {
        // What is found in a cell of the ten if nothing of it is known.
        let of_first = |truth: fn(usize) -> f64| {
            let mut cells = prospects(0.05, 10.0, 1, truth);
            for cell in &mut cells[1..] {
                cell.share = 0.0;
            }
            for one in &mut cells[0].contestants {
                *one = Contestant::unseen(1000 + one.kin, 0.005);
            }
            promise(&cells, 10.0, 0.01, 1).found
        };
        // Of a tenth of the program's time a tenth.
        let equal = of_first(|_| 0.0);
        assert!(equal < 0.01, "{equal}");
        // Where half the variants take half the time of the others.
        let unlike = of_first(|place| if place % 2 == 0 { 0.0 } else { -0.7 });
        assert!(unlike > 0.02, "{unlike}");
    }

    #[test]
    fn nothing_promises_nothing() {
        assert_eq!(promise(&[], 10.0, 0.01, 1), Promise::default());
    }
}
