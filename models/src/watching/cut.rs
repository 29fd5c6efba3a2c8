//! Means of runs, and their sums on both sides of a cut.

/// The mean of a run in a series: a logarithm, and the variance that the noise of its calls leaves it.
#[derive(Clone, Copy, Debug)]
pub struct RunMean {
    pub run: u32,
    pub value: f64,
    pub variance: f64,
}

impl RunMean {
    /// Where runs differ by so much more, as a variance.
    pub fn weight(&self, differ: f64) -> f64 {
        1.0 / (differ + self.variance)
    }
}

/// A weighted mean in the making.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeanSum {
    pub weight: f64,
    pub sum: f64,
}

impl MeanSum {
    pub fn add(&mut self, value: f64, weight: f64) {
        self.weight += weight;
        self.sum += weight * value;
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    pub fn of_run(self, run: u32) -> RunMean {
        RunMean {
            run,
            value: self.mean(),
            variance: 1.0 / self.weight,
        }
    }
}

/// Sums over the runs on one side of a cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct CutSide {
    pub runs: f64,
    pub weight: f64,
    sum: f64,
    squares: f64,
}

impl CutSide {
    pub fn with(self, run: &RunMean, differ: f64) -> CutSide {
        let weight = run.weight(differ);
        CutSide {
            runs: self.runs + 1.0,
            weight: self.weight + weight,
            sum: self.sum + weight * run.value,
            squares: self.squares + weight * run.value * run.value,
        }
    }

    pub fn without(self, other: CutSide) -> CutSide {
        CutSide {
            runs: self.runs - other.runs,
            weight: self.weight - other.weight,
            sum: self.sum - other.sum,
            squares: self.squares - other.squares,
        }
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    /// Squared distances from the mean, in sum.
    pub fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.sum / self.weight).max(0.0)
    }

    /// The variance of the mean as these runs alone have it.
    pub fn own_variance(&self) -> f64 {
        self.scatter() / (self.runs - 1.0) / self.weight
    }
}

/// Both sides of a cut in one series.
#[derive(Clone, Copy, Debug, Default)]
pub struct CutSides {
    pub older: CutSide,
    pub newer: CutSide,
}

impl CutSides {
    /// By how much values rose, weighed by how well both sides together tell; nothing where only one is known.
    pub fn rise(&self) -> MeanSum {
        let CutSides { older, newer } = self;
        let mut rise = MeanSum::default();
        if older.runs > 0.0 && newer.runs > 0.0 {
            let weight = older.weight * newer.weight / (older.weight + newer.weight);
            rise.add(newer.mean() - older.mean(), weight);
        }
        rise
    }

    /// Moves a run from the newer side to the older.
    pub fn age(&mut self, run: &RunMean, differ: f64) {
        self.older = self.older.with(run, differ);
        self.newer = self.newer.without(CutSide::default().with(run, differ));
    }
}
