//! What was measured of levers, and the draw of an arm.

/// One lever with the arms that rows name.
#[derive(Clone, Copy, Debug)]
pub struct Lever {
    pub n_arms: usize,
    /// The first so many may be drawn; place 0 is what runs where nothing better is known.
    pub n_offered: usize,
    /// What was chosen before.
    pub before: Option<usize>,
}

/// What was measured once.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub block: usize,
    /// By lever.
    pub arms: Vec<usize>,
    pub moment: Option<Moment>,
    /// The logarithm of the time, or of the time for the same work.
    pub log_time: f64,
}

/// How far a row is into its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Runs with the same number had the same arguments.
    pub arguments: usize,
    pub epoch: usize,
}

/// The epochs of one run in which a program asked, in their order: each one's arm, and the logarithm of its time for the
/// same work.
pub struct Epochs {
    /// Runs with the same number were made in the same way.
    pub way: usize,
    /// That of the first one.
    pub first: Moment,
    pub epochs: Vec<(usize, f64)>,
}

/// A row for each epoch. Those of one run are a block of their own, which what is slower in all of it does not move, where
/// they tell arms apart. A run with one arm is one row, its median, beside the others of its kind.
pub fn rows_of_epochs(runs: &[Epochs]) -> Vec<Row> {
    let ways = runs.iter().map(|run| run.way + 1).max().unwrap_or(0);
    let rows = runs.iter().enumerate().flat_map(|(number, run)| {
        let first = run.epochs.first().map(|(arm, _)| *arm);
        let differ = run.epochs.iter().any(|(arm, _)| Some(*arm) != first);
        let row = |block, arm, moment, log_time| Row {
            block,
            arms: vec![arm],
            moment,
            log_time,
        };
        match (differ, first) {
            (false, Some(arm)) => {
                let mut times: Vec<f64> = run.epochs.iter().map(|(_, time)| *time).collect();
                times.sort_unstable_by(f64::total_cmp);
                vec![row(run.way, arm, None, times[times.len() / 2])]
            }
            _ => {
                let moment = |after: usize| Moment {
                    epoch: run.first.epoch + after,
                    ..run.first
                };
                let epochs = run.epochs.iter().enumerate();
                epochs
                    .map(|(after, &(arm, log_time))| {
                        row(ways + number, arm, Some(moment(after)), log_time)
                    })
                    .collect()
            }
        }
    });
    rows.collect()
}

/// The place that a number from 0 to 1 falls on, by weights.
pub fn drawn(weights: &[f64], at: f64) -> usize {
    let mut left = at * weights.iter().sum::<f64>();
    let last = weights
        .iter()
        .rposition(|weight| *weight > 0.0)
        .unwrap_or(0);
    let falls = |weight: &f64| {
        left -= weight;
        left < 0.0
    };
    weights
        .iter()
        .position(falls)
        .map_or(last, |place| place.min(last))
}
