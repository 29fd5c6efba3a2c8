//! Who predicts best what was never measured: layouts are left out in turn.
//!
//! All variants' contrasts to the default are known in the cells of the other layouts, with an error; what a
//! predictor would choose in those of the left-out one is held against the truth.

use colltune_core::algorithm::simulate::Machine;
use colltune_core::catalogue::Variant;
use colltune_core::variant::Family;
use colltune_models::evidence::Shape;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::cost::Costs;
use crate::recipe::{Recipe, Shape2};
use crate::site::Site;

/// One variant in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub shape: Shape,
    /// Place in the catalogue.
    pub variant: usize,
    /// Logarithm of its time over the default's, as measured or, of what is asked for, as it truly is.
    pub contrast: f64,
    /// The contrast's standard error.
    pub error: f64,
    /// Logarithm of its simulated time over the least of the library's algorithms; `None` where it is not simulated.
    pub simulated: Option<f64>,
}

/// Predicts contrasts where nothing was measured.
pub trait Predictor: Sync {
    fn name(&self) -> &'static str;

    /// One contrast for each point asked for, whose own contrast it must not read; `None`: it cannot say.
    fn predict(&self, known: &[Point], asked: &[Point]) -> Vec<Option<f64>>;
}

/// All of them.
pub const PREDICTORS: [&dyn Predictor; 2] = [&SimulatorAlone, &Nearest];

/// That of the same variant in the nearest cell of the same collective.
pub struct Nearest;

impl Predictor for Nearest {
    fn name(&self) -> &'static str {
        "nearest"
    }

    fn predict(&self, known: &[Point], asked: &[Point]) -> Vec<Option<f64>> {
        let of = |point: &Point| {
            let same = known.iter().filter(|other| {
                other.variant == point.variant && other.shape.collective == point.shape.collective
            });
            let near = same.min_by(|a, b| {
                distance(a.shape, point.shape).total_cmp(&distance(b.shape, point.shape))
            });
            near.map(|near| near.contrast)
        };
        asked.iter().map(of).collect()
    }
}

/// What the simulator says, and nothing that was measured.
pub struct SimulatorAlone;

impl Predictor for SimulatorAlone {
    fn name(&self) -> &'static str {
        "simulator"
    }

    fn predict(&self, _: &[Point], asked: &[Point]) -> Vec<Option<f64>> {
        asked.iter().map(|point| point.simulated).collect()
    }
}

fn distance(a: Shape, b: Shape) -> f64 {
    let log = |count: u64| (count as f64 + 1.0).log2();
    let axes = |shape: Shape| {
        [
            log(shape.message_bytes),
            log(shape.nodes.into()),
            log(shape.ppn.into()),
        ]
    };
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
    /// Sum over cells of the rank correlation of predicted and true contrasts.
    pub correlation: f64,
}

/// Leaves out each layout of a machine in turn.
pub fn leave_out(seed: u64, collectives: usize, predictor: &dyn Predictor) -> Transferred {
    let usual = Recipe::usual(0.05);
    let recipe = Recipe {
        layouts: LAYOUTS.to_vec(),
        collectives: usual.collectives[..collectives].to_vec(),
        ..usual
    };
    let site = Site::new(recipe, seed);
    let points = points(&site);
    let mut sum = Transferred::default();
    for left_out in LAYOUTS {
        let is_left_out = |point: &Point| (point.shape.nodes, point.shape.ppn) == left_out;
        let (asked, known): (Vec<Point>, Vec<Point>) =
            points.iter().partition(|point| is_left_out(point));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let known: Vec<Point> = known
            .into_iter()
            .map(|point| {
                let z: f64 = StandardNormal.sample(&mut rng);
                Point {
                    contrast: point.contrast + ERROR * z,
                    error: ERROR,
                    ..point
                }
            })
            .collect();
        let predicted = predictor.predict(&known, &asked);
        let all: Vec<(Point, f64)> = asked
            .into_iter()
            .zip(predicted)
            .filter_map(|(point, predicted)| Some((point, predicted?)))
            .collect();
        for cell in site
            .cells
            .iter()
            .filter(|cell| (cell.shape.nodes, cell.shape.ppn) == left_out)
        {
            let own: Vec<&(Point, f64)> = all
                .iter()
                .filter(|(point, _)| point.shape == cell.shape)
                .collect();
            let chosen = own
                .iter()
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .filter(|(_, predicted)| *predicted < 0.0);
            let contrast = chosen.map_or(0.0, |(point, _)| point.contrast);
            let best = (cell.best_ns() / cell.default_ns()).ln();
            sum.cells += 1.0;
            sum.near += f64::from(u8::from(contrast - best <= crate::score::NEAR.ln()));
            sum.harmed += f64::from(u8::from(contrast > -(0.97_f64.ln())));
            let (truth, said): (Vec<f64>, Vec<f64>) = own
                .iter()
                .map(|(point, said)| (point.contrast, *said))
                .unzip();
            sum.correlation += correlation(&truth, &said).unwrap_or(0.0);
        }
    }
    sum
}

/// The truth of all cells, with what the simulator says of them.
fn points(site: &Site) -> Vec<Point> {
    let base: Machine = site.recipe.base;
    let mut simulator = Costs::simulated(base);
    let mut points = Vec::new();
    for cell in &site.cells {
        let Shape {
            message_bytes,
            nodes,
            ppn,
            ..
        } = cell.shape;
        let variants = &site.variants[cell.shape.collective.index()];
        let times: Vec<Option<f64>> = variants
            .iter()
            .map(|variant| simulator.of(variant, message_bytes, nodes, ppn))
            .collect();
        let native = |place: &usize| variants[*place].is_steered();
        let least = (0..variants.len())
            .filter(native)
            .filter_map(|place| times[place])
            .fold(f64::INFINITY, f64::min);
        // Shared memory is no schedule.
        let knows = |variant: &Variant| least.is_finite() && variant.name.family != Family::Node;
        for place in (1..variants.len()).filter(|&place| cell.arms[place].is_some()) {
            points.push(Point {
                shape: cell.shape,
                variant: place,
                contrast: (cell.cost_of(place) / cell.default_ns()).ln(),
                error: 0.0,
                simulated: times[place]
                    .filter(|_| knows(&variants[place]))
                    .map(|time| (time / least).ln()),
            });
        }
    }
    points
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

    #[test]
    fn what_is_near_says_more_than_the_order_of_chance() {
        let found = leave_out(1, 1, &Nearest);
        assert_eq!(found.cells, (LAYOUTS.len() * 6) as f64);
        assert!(found.correlation / found.cells > 0.3, "{found:?}");
    }
}
