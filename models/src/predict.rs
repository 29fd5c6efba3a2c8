//! What measured cells say of contrasts elsewhere: of cells and variants without data a mean and an honest interval,
//! of those with data a prior that their own data had no part in.

mod gaussian;
mod simulator;
mod xgboost;

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

/// The predictor of that name in the settings.
pub fn named(name: &str) -> Box<dyn Predictor> {
    match name {
        "xgboost" => Box::new(XgBoost),
        "simulator" => Box::new(Simulator),
        _ => Box::new(Gaussian),
    }
}

/// Contrasts beyond this factor, in logarithms, are as good as infinite.
const CONTRAST_MAX: f64 = 2.5;

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
        let (mut means, mut squares, mut noise, mut freedom) = (Vec::new(), 0.0, 0.0, 0.0);
        for points in known.iter().filter(|points| !points.is_empty()) {
            let n = points.len() as f64;
            let mean = points.iter().map(clipped).sum::<f64>() / n;
            squares += points
                .iter()
                .map(|point| (clipped(point) - mean).powi(2))
                .sum::<f64>();
            noise += points
                .iter()
                .map(|point| point.variance.min(1.0))
                .sum::<f64>()
                * (n - 1.0)
                / n;
            freedom += n - 1.0;
            means.push((
                mean,
                points
                    .iter()
                    .map(|point| point.variance.min(1.0))
                    .sum::<f64>()
                    / n
                    / n,
            ));
        }
        // Three guesses of a half keep little data from saying too much.
        let between_cells = ((squares - noise + 3.0 * 0.25) / (freedom + 3.0)).max(1e-4);
        let n = means.len() as f64;
        let mean = means.iter().map(|(mean, _)| mean).sum::<f64>() / (n + 1.0);
        let variance = means
            .iter()
            .map(|(one, noise)| (one - mean).powi(2) - noise)
            .sum::<f64>();
        Spread {
            mean,
            between_variants: ((variance + 3.0 * 0.25) / (n + 3.0)).max(1e-4),
            between_cells,
        }
    }

    fn unknown(&self) -> Prediction {
        Prediction {
            mean: self.mean,
            variance: self.between_variants + self.between_cells,
        }
    }
}
