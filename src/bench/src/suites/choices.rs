//! Which way is best in a cell, without crediting luck. Pure.

use colltune_statistics::{geometric_mean, lower_bound, median, ratios, upper_bound};

use super::jobs::Cell;
use super::ways::{CONTROL_WAY, DEFAULT_WAY, ONE_BATCH_WAY, TUNED_WAY, Times, Way};

/// The measured times, asked cell by cell.
pub struct Choices<'a> {
    pub ways: &'a [Way],
    pub times: &'a Times,
    /// Trainings behind the tuned times, each with as many rounds as the others, one after the other.
    pub trainings: usize,
}

impl Choices<'_> {
    pub fn of(&self, way: usize, cell: Cell) -> &[f64] {
        self.times.get(&(way, cell)).map_or(&[], Vec::as_slice)
    }

    pub fn is_slower(&self, cell: Cell) -> bool {
        upper_bound(&ratios(
            self.of(DEFAULT_WAY, cell),
            self.of(TUNED_WAY, cell),
        )) < 1.0
    }

    /// The one-sided lower 95 % bound of default over another way, over trainings: each chose for itself. Over rounds
    /// where there is one training alone.
    pub fn at_least(&self, way: usize, cell: Cell) -> f64 {
        let of_rounds = ratios(self.of(DEFAULT_WAY, cell), self.of(way, cell));
        let together = match self.trainings {
            0 | 1 => 1,
            trainings => (of_rounds.len() / trainings).max(1),
        };
        let of_trainings = of_rounds.chunks_exact(together).map(geometric_mean);
        lower_bound(&of_trainings.collect::<Vec<_>>())
    }

    /// The fixed choices that were measured in a cell: the default and the native variants.
    fn fixed(&self, cell: Cell) -> impl Iterator<Item = (usize, &[f64])> {
        let ways = (0..self.ways.len())
            .filter(|way| ![TUNED_WAY, CONTROL_WAY, ONE_BATCH_WAY].contains(way));
        ways.map(move |way| (way, self.of(way, cell)))
            .filter(|(_, times)| !times.is_empty())
    }

    fn best_way(&self, cell: Cell, counts: impl Fn(usize) -> bool) -> (usize, f64) {
        let time = |times: &[f64]| {
            let chosen: Vec<f64> = (0..times.len())
                .filter(|round| counts(*round))
                .map(|round| times[round])
                .collect();
            median(&chosen)
        };
        let timed = self.fixed(cell).map(|(way, times)| (way, time(times)));
        timed
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or((DEFAULT_WAY, f64::NAN))
    }

    /// Name and median time of the best fixed choice by the rounds that count.
    pub fn best(&self, cell: Cell, counts: impl Fn(usize) -> bool) -> (String, f64) {
        let (way, time) = self.best_way(cell, counts);
        (
            self.ways[way]
                .names
                .get(&cell.0)
                .cloned()
                .unwrap_or_default(),
            time,
        )
    }

    /// For each round the time of the choice that was best in the other half of the rounds.
    fn best_of_other_half(&self, cell: Cell) -> Vec<f64> {
        let best = [1, 0].map(|other| self.best_way(cell, |round| round % 2 == other).0);
        let rounds = self.of(TUNED_WAY, cell).len();
        (0..rounds)
            .map(|round| self.of(best[round % 2], cell)[round])
            .collect()
    }

    pub fn best_over_tuned(&self, cell: Cell) -> Vec<f64> {
        ratios(&self.best_of_other_half(cell), self.of(TUNED_WAY, cell))
    }

    pub fn default_over_best(&self, cell: Cell) -> Vec<f64> {
        ratios(self.of(DEFAULT_WAY, cell), &self.best_of_other_half(cell))
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::collective::Collective;
    use colltune_core::variant::DEFAULT;

    use super::super::jobs::Tuner;
    use super::*;

    const CELL: Cell = (Collective::Bcast, 8);

    fn way(name: &str) -> Way {
        Way {
            tuner: Tuner::Bare,
            cells: vec![CELL],
            names: [(CELL.0, name.to_owned())].into(),
        }
    }

    #[test]
    fn the_best_choice_is_found_on_one_half_and_compared_on_the_other() {
        let ways = [DEFAULT, "tuned", DEFAULT, "tuned", "lucky", "steady"].map(way);
        let rows = [
            [10.0, 10.0, 10.0, 10.0],
            [5.0, 5.0, 5.0, 5.0],
            [3.0, 3.0, 3.0, 3.0],
            [2.0, 2.0, 2.0, 2.0],
            [1.0, 9.0, 1.0, 9.0],
            [4.0, 4.0, 4.0, 4.0],
        ];
        let times: Times = rows
            .iter()
            .enumerate()
            .map(|(way, times)| ((way, CELL), times.to_vec()))
            .collect();
        let choices = Choices {
            ways: &ways,
            times: &times,
            trainings: 1,
        };
        // `lucky` looks best in the even rounds, and is compared in the odd ones, where it is not.
        assert_eq!(choices.best_of_other_half(CELL), [4.0, 9.0, 4.0, 9.0]);
        assert_eq!(choices.best(CELL, |_| true), ("steady".to_owned(), 4.0));
        assert!(!choices.is_slower(CELL));
    }

    #[test]
    fn what_a_cell_has_at_least_of_the_default_is_known_by_its_trainings_and_not_by_their_rounds() {
        let ways = [DEFAULT, "tuned"].map(way);
        // The first training made the cell faster and the second slower, which each of its rounds shows.
        let times: Times = [
            ((DEFAULT_WAY, CELL), vec![1.0; 8]),
            (
                (TUNED_WAY, CELL),
                vec![0.8, 0.81, 0.8, 0.81, 1.1, 1.11, 1.1, 1.11],
            ),
        ]
        .into();
        let of = |trainings| {
            let choices = Choices {
                ways: &ways,
                times: &times,
                trainings,
            };
            choices.at_least(TUNED_WAY, CELL)
        };
        assert!((0.9..1.1).contains(&of(1)), "{}", of(1));
        assert!(of(2) < 0.5, "{}", of(2));
        assert!(of(4) < of(1), "{}", of(4));
    }
}
