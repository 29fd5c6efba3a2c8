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
    /// In any unit.
    pub work: f64,
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

/// An epoch of a run.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// How many came before it.
    pub number: usize,
    pub arm: usize,
    pub work: f64,
    /// The logarithm of its time for one unit of the work.
    pub log_time: f64,
}

/// The epochs of one run in which a program asked, in their order.
pub struct Epochs {
    /// Runs with the same number were made in the same way.
    pub way: usize,
    /// The same of arguments.
    pub arguments: usize,
    pub epochs: Vec<Epoch>,
}

/// A row for each epoch. Those of one run are a block of their own, which what is slower in all of it does not move, where
/// they tell arms apart. A run with one arm is one row beside the others of its kind: its time for its work, the slowest
/// tenth of it taken to be as slow as the next.
pub fn rows_of_epochs(runs: &[Epochs]) -> Vec<Row> {
    let ways = runs.iter().map(|run| run.way + 1).max().unwrap_or(0);
    let rows = runs.iter().enumerate().flat_map(|(number, run)| {
        let differ = run.epochs.windows(2).any(|two| two[0].arm != two[1].arm);
        let row = |block, epoch: &Epoch, moment| Row {
            block,
            arms: vec![epoch.arm],
            moment,
            work: epoch.work,
            log_time: epoch.log_time,
        };
        if differ {
            let moment = |epoch: &Epoch| Moment {
                arguments: run.arguments,
                epoch: epoch.number,
            };
            let epochs = run.epochs.iter();
            return epochs
                .map(|epoch| row(ways + number, epoch, Some(moment(epoch))))
                .collect();
        }
        let whole = whole(&run.epochs);
        whole
            .iter()
            .map(|epoch| row(run.way, epoch, None))
            .collect::<Vec<Row>>()
    });
    rows.collect()
}

/// All epochs of one arm as one; none where there are none.
fn whole(epochs: &[Epoch]) -> Option<Epoch> {
    let mut slow: Vec<f64> = epochs.iter().map(|epoch| epoch.log_time).collect();
    slow.sort_unstable_by(f64::total_cmp);
    let most = slow[(slow.len().checked_sub(1)? * 9) / 10];
    let work: f64 = epochs.iter().map(|epoch| epoch.work).sum();
    let time = |epoch: &Epoch| epoch.work * (epoch.log_time.min(most) - most).exp();
    let time: f64 = epochs.iter().map(time).sum();
    Some(Epoch {
        work,
        log_time: most + (time / work).ln(),
        ..epochs[0]
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_one_arm_is_one_row_of_its_time_for_its_work() {
        let epoch = |number: usize, work: f64, seconds: f64| Epoch {
            number,
            arm: 1,
            work,
            log_time: (seconds / work).ln(),
        };
        let run = |epochs| Epochs {
            way: 0,
            arguments: 0,
            epochs,
        };
        // Ten times the work takes twenty times as long; a checkpoint counts no more than that.
        let mut epochs: Vec<Epoch> = (0..9).map(|number| epoch(number, 1.0, 1.0)).collect();
        epochs.extend([
            epoch(9, 10.0, 20.0),
            epoch(10, 10.0, 20.0),
            epoch(11, 1.0, 50.0),
        ]);
        let rows = rows_of_epochs(&[run(epochs), run(Vec::new())]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].arms.clone(), rows[0].moment), (vec![1], None));
        let expected = (9.0 + 20.0 + 20.0 + 2.0) / 30.0_f64;
        assert!((rows[0].log_time - expected.ln()).abs() < 1e-12, "{rows:?}");
    }
}
