//! What measured cells say of contrasts elsewhere: of cells and variants without data a mean and an honest interval,
//! of those with data a prior that their own data had no part in.

mod gaussian;
mod simulator;
mod xgboost;

use colltune_core::settings::Predicting;

pub use gaussian::Gaussian;
pub use simulator::Simulator;
pub use xgboost::XgBoost;

/// Where a contrast is, in logarithms to the base 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// log2(bytes + 1).
    pub bytes: f64,
    pub nodes: f64,
    pub ppn: f64,
    /// The logarithm of how many times as long as another variant the simulator finds it; 0 where it says nothing.
    pub simulated: f64,
}

/// An estimated contrast log(t_v / t_default) with the variance of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub place: Place,
    pub mean: f64,
    pub variance: f64,
}

/// What is expected of a true contrast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    pub mean: f64,
    pub variance: f64,
}

/// One way to predict the contrasts of one collective's variants.
///
/// Shape: `known[v]` are the points of variant `v`, `asked[v]` the places at which it is to be predicted; results
/// have the same shape.
pub trait Predictor: Sync {
    fn name(&self) -> &'static str;

    fn predict(&self, known: &[Vec<Point>], asked: &[Vec<Place>]) -> Vec<Vec<Prediction>>;

    /// For each known point what the others say of it.
    fn leave_out(&self, known: &[Vec<Point>]) -> Vec<Vec<Prediction>> {
        let mut result: Vec<Vec<Prediction>> = known.iter().map(|_| Vec::new()).collect();
        let folds: Vec<_> = (0..FOLDS)
            .map(|fold| {
                let part = |inside: bool| {
                    move |(index, _): &(usize, &Point)| (index % FOLDS == fold) == inside
                };
                let others: Vec<Vec<Point>> = known
                    .iter()
                    .map(|points| {
                        points
                            .iter()
                            .enumerate()
                            .filter(part(false))
                            .map(|(_, point)| *point)
                            .collect()
                    })
                    .collect();
                let asked: Vec<Vec<Place>> = known
                    .iter()
                    .map(|points| {
                        points
                            .iter()
                            .enumerate()
                            .filter(part(true))
                            .map(|(_, point)| point.place)
                            .collect()
                    })
                    .collect();
                self.predict(&others, &asked)
            })
            .collect();
        for (variant, points) in known.iter().enumerate() {
            result[variant] = (0..points.len())
                .map(|index| folds[index % FOLDS][variant][index / FOLDS])
                .collect();
        }
        result
    }
}

const FOLDS: usize = 5;

/// The predictor that the settings name.
pub fn chosen(predicting: Predicting) -> &'static dyn Predictor {
    match predicting {
        Predicting::Xgboost => &XgBoost,
        Predicting::GaussianProcess => &Gaussian,
        Predicting::Simulator => &Simulator,
    }
}

/// Contrasts beyond this factor, in logarithms, are as good as infinite.
const CONTRAST_MAX: f64 = 2.5;

/// The variance of contrasts that one point counts for where there is none.
const GUESS: f64 = 0.02;

/// What is common to the variants of a collective: the mean contrast, its variance between variants, and that
/// between the cells of a variant.
#[derive(Clone, Copy, Debug)]
struct Spread {
    mean: f64,
    between_variants: f64,
    between_cells: f64,
}

impl Spread {
    fn of(known: &[Vec<Point>]) -> Spread {
        let clipped = |point: &Point| point.mean.clamp(-CONTRAST_MAX, CONTRAST_MAX);
        let points = || known.iter().flatten();
        let n_points = points().count() as f64;
        let noise = |point: &Point| point.variance.min(1.0);
        let overall = points().map(clipped).sum::<f64>() / n_points.max(1.0);
        let beyond_noise = points()
            .map(|point| (clipped(point) - overall).powi(2) - noise(point))
            .sum::<f64>();
        // One guess keeps little data from saying too much; a half of it is each variant's, the other its cells'.
        let total = (beyond_noise.max(0.0) + GUESS) / (n_points + 1.0);
        let (mut means, mut squares, mut freedom) = (Vec::new(), 0.0, 0.0);
        for points in known.iter().filter(|points| !points.is_empty()) {
            let n = points.len() as f64;
            let mean = points.iter().map(clipped).sum::<f64>() / n;
            let own_noise = points.iter().map(noise).sum::<f64>();
            squares += points
                .iter()
                .map(|point| (clipped(point) - mean).powi(2))
                .sum::<f64>()
                - own_noise * (n - 1.0) / n;
            freedom += n - 1.0;
            means.push((mean, own_noise / n / n));
        }
        let n = means.len() as f64;
        let mean = means.iter().map(|(mean, _)| mean).sum::<f64>() / (n + 1.0);
        let variance = means
            .iter()
            .map(|(one, noise)| (one - mean).powi(2) - noise)
            .sum::<f64>();
        let pooled = |sum: f64, freedom: f64| {
            ((sum.max(0.0) + 3.0 * total / 2.0) / (freedom + 3.0)).max(1e-4)
        };
        Spread {
            mean,
            between_variants: pooled(variance, n),
            between_cells: pooled(squares, freedom),
        }
    }

    fn unknown(&self) -> Prediction {
        Prediction {
            mean: self.mean,
            variance: self.between_variants + self.between_cells,
        }
    }
}
