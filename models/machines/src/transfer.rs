//! Who predicts best what was never measured: layouts are left out in turn.
//!
//! All variants' contrasts to the default are known in the cells of the other layouts, with an error; what a
//! predictor would choose in those of the left-out one is held against the truth.

mod limit;

use colltune_core::catalogue::Variant;
use colltune_core::collective::Collective;
use colltune_core::variant::Family;
use colltune_models::evidence::Shape;
use colltune_models::predict::{Gaussian, Place, Point, Prediction, Predictor, Simulator, XgBoost};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::cost::Costs;
use crate::recipe::{Recipe, Shape2};
use crate::score::NEAR;
use crate::site::{Site, TrueCell};

pub use limit::limit;

/// One variant in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Truth {
    shape: Shape,
    /// Place in the catalogue.
    variant: usize,
    /// Logarithm of its time over the default's.
    contrast: f64,
    place: Place,
}

/// The same variant's contrast in the nearest place: what any predictor has to beat.
pub struct Nearest;

impl Predictor for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    fn predict(&self, known: &[Vec<Point>], asked: &[Vec<Place>]) -> Vec<Vec<Prediction>> {
        let of = |points: &Vec<Point>, place: &Place| {
            let away = |point: &&Point| distance(&point.place, place);
            let nearest = points.iter().min_by(|a, b| away(a).total_cmp(&away(b)));
            Prediction {
                mean: nearest.map_or(0.0, |point| point.mean),
                variance: 0.1,
            }
        };
        let both = known.iter().zip(asked);
        both.map(|(points, places)| places.iter().map(|place| of(points, place)).collect())
            .collect()
    }
}

/// All that are compared: those that can be had here.
pub fn predictors() -> Vec<&'static dyn Predictor> {
    let xgboost = XgBoost::loaded()
        .ok()
        .map(|xgboost| xgboost as &dyn Predictor);
    let own: [&dyn Predictor; 3] = [&Gaussian, &Simulator, &Nearest];
    let mut all = own.to_vec();
    all.splice(1..1, xgboost);
    all
}

fn distance(a: &Place, b: &Place) -> f64 {
    let axes = |place: &Place| [place.bytes, place.nodes, place.ppn];
    let squares = axes(a)
        .into_iter()
        .zip(axes(b))
        .map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
}

/// Layouts as a site would use them.
const LAYOUTS: [Shape2; 7] = [(1, 4), (1, 8), (2, 2), (2, 4), (4, 2), (4, 4), (8, 2)];
/// By so much a contrast is known that was measured.
const ERROR: f64 = 0.05;

/// How good predictions of a left-out layout are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transferred {
    pub cells: f64,
    /// In which the predicted choice costs at most 5 % more than the best.
    pub near: f64,
    /// In which it costs more than the default, and by more than 3 %.
    pub harmed: f64,
    /// Sum over cells of the logarithm of the choice's time over the best's.
    pub lost: f64,
    /// Intervals of 95 %, and how many hold the truth.
    pub intervals: f64,
    pub holding: f64,
    /// Sum over cells of the rank correlation of predicted and true contrasts.
    pub correlation: f64,
}

/// Leaves out each layout of a machine in turn.
pub fn leave_out(seed: u64, collectives: usize, predictor: &dyn Predictor) -> Transferred {
    each_left_out(seed, collectives, |_, _, known, asked| {
        let places = |truths: &Vec<Truth>| truths.iter().map(|truth| truth.place).collect();
        let points = |known: &Vec<(Truth, f64)>| {
            let point = |(truth, mean): &(Truth, f64)| Point {
                place: truth.place,
                mean: *mean,
                variance: ERROR * ERROR,
            };
            known.iter().map(point).collect()
        };
        let known: Vec<Vec<Point>> = known.iter().map(points).collect();
        let asked: Vec<Vec<Place>> = asked.iter().map(places).collect();
        predictor.predict(&known, &asked)
    })
}

/// Hands out by variant what is measured of the other layouts, and what is asked of the one that was left out.
fn each_left_out(
    seed: u64,
    collectives: usize,
    predict: impl Fn(&Site, Collective, &[Vec<(Truth, f64)>], &[Vec<Truth>]) -> Vec<Vec<Prediction>>,
) -> Transferred {
    let usual = Recipe::usual(0.05);
    let recipe = Recipe {
        layouts: LAYOUTS.to_vec(),
        collectives: usual.collectives[..collectives].to_vec(),
        ..usual
    };
    let site = Site::new(recipe, seed);
    let truths = truths(&site);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sum = Transferred::default();
    for left_out in LAYOUTS {
        for &collective in &site.recipe.collectives {
            let n_variants = site.variants[collective.index()].len();
            let mut known = vec![Vec::new(); n_variants];
            let mut asked = vec![Vec::new(); n_variants];
            for truth in truths
                .iter()
                .filter(|truth| truth.shape.collective == collective)
            {
                if (truth.shape.nodes, truth.shape.ppn) == left_out {
                    asked[truth.variant].push(*truth);
                } else {
                    let z: f64 = StandardNormal.sample(&mut rng);
                    known[truth.variant].push((*truth, truth.contrast + ERROR * z));
                }
            }
            let predicted = predict(&site, collective, &known, &asked);
            let all = asked
                .into_iter()
                .flatten()
                .zip(predicted.into_iter().flatten());
            let all: Vec<(Truth, Prediction)> = all.collect();
            let of_collective = |cell: &&TrueCell| {
                cell.shape.collective == collective
                    && (cell.shape.nodes, cell.shape.ppn) == left_out
            };
            for cell in site.cells.iter().filter(of_collective) {
                sum.add(
                    cell,
                    all.iter().filter(|(truth, _)| truth.shape == cell.shape),
                );
            }
        }
    }
    sum
}

impl Transferred {
    fn add<'a>(&mut self, cell: &TrueCell, said: impl Iterator<Item = &'a (Truth, Prediction)>) {
        let said: Vec<&(Truth, Prediction)> = said.collect();
        let least = said.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        let chosen = least.filter(|(_, prediction)| prediction.mean < 0.0);
        let contrast = chosen.map_or(0.0, |(truth, _)| truth.contrast);
        let best = (cell.best_ns() / cell.default_ns()).ln();
        self.cells += 1.0;
        self.near += f64::from(u8::from(contrast - best <= NEAR.ln()));
        self.harmed += f64::from(u8::from(contrast > -(0.97_f64.ln())));
        self.lost += contrast - best;
        let truth = said.iter().map(|(truth, _)| truth.contrast);
        let means: Vec<f64> = said.iter().map(|(_, prediction)| prediction.mean).collect();
        self.correlation += correlation(&truth.collect::<Vec<_>>(), &means).unwrap_or(0.0);
        for (truth, prediction) in said {
            let half = 1.96 * prediction.variance.max(0.0).sqrt();
            self.intervals += 1.0;
            self.holding += f64::from(u8::from((truth.contrast - prediction.mean).abs() <= half));
        }
    }
}

/// The truth of all cells, with what the simulator says of them.
fn truths(site: &Site) -> Vec<Truth> {
    let mut simulator = Costs::simulated(site.recipe.base);
    let mut truths = Vec::new();
    for cell in &site.cells {
        let Shape {
            message_bytes,
            nodes,
            ppn,
            ..
        } = cell.shape;
        let variants = &site.variants[cell.shape.collective.index()];
        // Shared memory is no schedule.
        let known = |variant: &Variant| variant.name.family != Family::Node;
        let mut time = |variant: &Variant| {
            let time = simulator.of(variant, message_bytes, nodes, ppn);
            time.filter(|_| known(variant))
        };
        let times: Vec<Option<f64>> = variants.iter().map(&mut time).collect();
        let least = times
            .iter()
            .flatten()
            .copied()
            .fold(f64::INFINITY, f64::min);
        for variant in (1..variants.len()).filter(|&place| cell.arms[place].is_some()) {
            truths.push(Truth {
                shape: cell.shape,
                variant,
                contrast: (cell.cost_of(variant) / cell.default_ns()).ln(),
                place: Place {
                    bytes: (message_bytes as f64 + 1.0).log2(),
                    nodes: f64::from(nodes).log2(),
                    ppn: f64::from(ppn).log2(),
                    simulated: times[variant].map_or(0.0, |time| (time / least).ln()),
                },
            });
        }
    }
    truths
}

/// Spearman's rank correlation; `None` for fewer than three values, or where all are alike.
pub fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let ranks = |values: &[f64]| -> Vec<f64> {
        let rank = |value: &f64| {
            let below = values.iter().filter(|other| *other < value).count();
            let equal = values.iter().filter(|other| *other == value).count();
            below as f64 + (equal as f64 - 1.0) / 2.0
        };
        values.iter().map(rank).collect()
    };
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    (a.len() >= 3 && scale > 0.0).then(|| product(&a, &b) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use colltune_core::settings::Settings;
    use colltune_models::predict::chosen;

    /// Machines of the figures in the documents, on which nothing was tuned.
    const MACHINES: [u64; 2] = [81, 82];
    /// Of these the trees are held against the first alone: they take long to grow.
    const SLOW: &str = "xgboost";

    fn on(machines: &[u64], predictor: &dyn Predictor) -> Vec<Transferred> {
        let of = |&seed: &u64| leave_out(seed, 2, predictor);
        machines.iter().map(of).collect()
    }

    /// The share of the cells of these machines in which the predicted choice is near the best.
    fn near(found: &[Transferred]) -> f64 {
        let sum = |of: fn(&Transferred) -> f64| found.iter().map(of).sum::<f64>();
        sum(|one| one.near) / sum(|one| one.cells)
    }

    #[test]
    fn the_default_predictor_is_nearer_to_the_truth_than_the_others() {
        let default = chosen(Settings::default().predictor).expect("it needs no library");
        let own = on(&MACHINES, default);
        for other in predictors() {
            if other.name() == default.name() {
                continue;
            }
            let n = match other.name() {
                SLOW => 1,
                _ => MACHINES.len(),
            };
            let (of_other, of_default) = (near(&on(&MACHINES[..n], other)), near(&own[..n]));
            let told = format!("{}: {of_other:.3} beside {of_default:.3}", other.name());
            println!("{told}");
            assert!(of_default > of_other, "{told}");
        }
        let intervals: f64 = own.iter().map(|one| one.intervals).sum();
        let coverage = own.iter().map(|one| one.holding).sum::<f64>() / intervals;
        println!("{coverage:.3} of {intervals} intervals hold the truth");
        assert!(coverage >= 0.85, "{coverage}");
    }

    #[test]
    fn what_is_near_says_more_than_the_order_of_chance() {
        let found = leave_out(1, 1, &Nearest);
        assert_eq!(found.cells, (LAYOUTS.len() * 6) as f64);
        assert!(found.correlation / found.cells > 0.3, "{found:?}");
    }
}
