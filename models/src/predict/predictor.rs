//! What predictors take, and what they say.

/// Where a contrast is, in logarithms to the base 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// log2(bytes + 1).
    pub bytes: f64,
    pub nodes: f64,
    pub ppn: f64,
    /// The logarithm of how many times as long as the fastest the simulator finds it; 0 where it says nothing.
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

/// Parts of which each is predicted from the others.
pub(super) const FOLDS: usize = 5;
