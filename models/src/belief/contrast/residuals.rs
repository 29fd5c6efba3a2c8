//! What a fit leaves of the means of runs, and what that says of the variances that it assumed.

/// An observation in a fit.
#[derive(Clone, Copy)]
pub struct Weighed {
    pub arm: usize,
    pub mean: f64,
    pub weight: f64,
    /// The part of its variance that is the run's.
    pub of_run: f64,
    pub tells: f64,
}

/// Squared residuals in units of their variances, and how many they are expected to be. Each counts by the share of its
/// variance that is meant: the mean of one call, which is all noise, says nothing of what runs differ by. Where both
/// are equal, the variance between runs is that of restricted maximum likelihood.
///
/// Source: Harville, J. Am. Stat. Assoc. 72, 1977.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub squares: f64,
    pub expected: f64,
    /// What the degrees of freedom follow from: the sum of shares, each times the part of the variance that is meant,
    /// and that of their squares.
    shares: (f64, f64),
}

impl Sum {
    fn push(&mut self, share: f64, part: f64, (squares, expected): (f64, f64)) {
        self.add(Sum {
            squares: share * squares,
            expected: share * expected,
            shares: (share * part * expected, share * share * expected),
        });
    }

    pub fn add(&mut self, other: Sum) {
        self.squares += other.squares;
        self.expected += other.expected;
        self.shares.0 += other.shares.0;
        self.shares.1 += other.shares.1;
    }

    /// With how many degrees of freedom they tell the variance. Source: Satterthwaite, Biometrics 2, 1946.
    pub fn freedom(&self) -> f64 {
        match self.shares.1 {
            0.0 => 0.0,
            squares => self.shares.0.powi(2) / squares,
        }
    }
}

/// What estimates leave of the observations.
pub struct Residuals {
    /// Of all observations, what they say of the variance between runs.
    pub of_runs: Sum,
    /// By arm the parts that are the calls'; by group those that are the run's.
    pub by_arm: Vec<Sum>,
    pub by_group: Vec<Sum>,
}

impl Residuals {
    pub fn new(groups: &[Vec<Weighed>], effects: &[f64], n_estimated: usize) -> Residuals {
        let mut found = Residuals {
            of_runs: Sum::default(),
            by_arm: vec![Sum::default(); effects.len()],
            by_group: vec![Sum::default(); groups.len()],
        };
        // By arm its information were it alone.
        let mut alone = vec![0.0; effects.len()];
        for group in groups {
            let total = total(group);
            for one in group {
                alone[one.arm] += one.weight * (1.0 - one.weight / total);
            }
        }
        let estimated = n_estimated as f64 / (n_estimated + 1) as f64;
        for (group, of_group) in groups.iter().zip(&mut found.by_group) {
            let (total, level) = (total(group), level(group, |arm| effects[arm]));
            for one in group {
                let squares = one.weight * (one.mean - effects[one.arm] - level).powi(2);
                // A degree of freedom less its part in the level, and in its arm's estimate.
                let left = (1.0 - one.weight / total)
                    * (1.0 - estimated * one.weight / alone[one.arm]).max(0.0);
                let (of_run, of_calls) = (one.of_run, 1.0 - one.of_run);
                let of_runs = &mut found.of_runs;
                of_runs.push(one.tells * of_run, of_run, (squares, left));
                found.by_arm[one.arm].push(of_calls, of_calls, (squares, left));
                of_group.push(of_run, of_run, (squares, 1.0));
            }
        }
        found
    }
}

pub fn total(group: &[Weighed]) -> f64 {
    group.iter().map(|one| one.weight).sum()
}

/// The level of a group whose arms have these effects.
pub fn level(group: &[Weighed], at: impl Fn(usize) -> f64) -> f64 {
    let sum = |one: &Weighed| one.weight * (one.mean - at(one.arm));
    group.iter().map(sum).sum::<f64>() / total(group)
}
