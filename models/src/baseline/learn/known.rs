//! What is known about the variants of one cell, and what follows from it.

use std::collections::BTreeSet;

use colltune_core::catalogue::Variant;
use colltune_core::model::{CellModel, Share, Source};

use crate::baseline::compare::{Comparison, DOUBT, Effect, SAMPLES_LEAST};
use crate::baseline::weigh::{Exploring, TEMPERATURE, Weighed, weigh};
use crate::statistics::{CellStatistics, Interval, VariantStatistics};

/// A variant is not drawn again where it is surely slower than the fastest by this factor.
const TIMES_FASTEST_TO_DOMINATE: f64 = 10.0;
/// Samples per variant below which a cell is explored widely.
const SAMPLES_TO_NARROW: u64 = 4;
/// The temperature of wide exploration, see [`Exploring::Widely`].
const WIDE_TEMPERATURE: f64 = 0.3;
/// A rival that may be faster than the best by this share, at [`OPEN_DOUBT`] standard errors, keeps
/// the race open until it has this many samples.
const WORTH_ASKING: f64 = 0.05;
const OPEN_DOUBT: f64 = 2.0;
const SAMPLES_TO_CLOSE: u64 = 128;

/// What is known about the variants of one cell.
pub(super) struct Known<'a> {
    pub(super) variants: &'a [Variant],
    pub(super) predicted: &'a [Option<f64>],
    pub(super) explore_total: f64,
}

impl Known<'_> {
    /// Places in the catalogue of the variants that a cell may draw, `default` first.
    fn drawable(&self, entry: &CellModel) -> Vec<usize> {
        let names: BTreeSet<&str> = entry
            .variants
            .iter()
            .map(|share| share.name.as_str())
            .collect();
        (0..self.variants.len())
            .filter(|&place| {
                place == 0 || names.contains(self.variants[place].name.to_string().as_str())
            })
            .collect()
    }

    pub(super) fn measure(&self, entry: &mut CellModel, comparison: &Comparison) -> CellStatistics {
        let drawable = self.drawable(entry);
        let effects = &comparison.effects;
        let pessimistic = |place: usize| {
            effects[place].map_or(f64::INFINITY, |effect| {
                effect.log_time + effect.error.slower
            })
        };
        let best = drawable
            .iter()
            .copied()
            .filter(|&place| comparison.beats(place, 0))
            .min_by(|&a, &b| pessimistic(a).total_cmp(&pessimistic(b)))
            .unwrap_or(0);
        let fastest = effects
            .iter()
            .flatten()
            .map(|effect| effect.log_time)
            .fold(f64::INFINITY, f64::min);
        let weighed: Vec<Weighed> = drawable
            .iter()
            .map(|&place| match effects[place] {
                Some(effect) => Weighed {
                    log_time: Some(effect.log_time - (OPEN_DOUBT * effect.error.faster).min(0.5)),
                    dominated: effect.samples >= 3
                        && effect.log_time - DOUBT * effect.error.faster
                            > fastest + TIMES_FASTEST_TO_DOMINATE.ln(),
                },
                None => Weighed {
                    log_time: self.beside_the_default(place, effects),
                    dominated: false,
                },
            })
            .collect();
        let enough = comparison.samples() >= SAMPLES_TO_NARROW * drawable.len() as u64;
        let comparable = effects[0].is_some_and(|effect| effect.samples >= SAMPLES_LEAST);
        let exploring = if !(enough && comparable) {
            self.widely(WIDE_TEMPERATURE)
        } else if drawable
            .iter()
            .any(|&place| place != best && is_open(effects[place], effects[best]))
        {
            self.widely(TEMPERATURE)
        } else {
            Exploring::AtMost(self.explore_total)
        };
        let gain = effects[0]
            .zip(effects[best])
            .map_or(1.0, |(default, best)| {
                (default.log_time - best.log_time).exp()
            });
        let interval = |place: usize| match effects[place] {
            Some(Effect {
                log_time, error, ..
            }) => {
                // 95 %; the error also has to cover how far the cell's typical call is known.
                let half = |error: f64| (1.96 * error).min(20.0);
                let (lo, hi) = (log_time - half(error.faster), log_time + half(error.slower));
                let [median, lo, hi] = [log_time, lo, hi].map(|log| Some(round_ns(log.exp())));
                Interval { median, lo, hi }
            }
            None => predicted_time(self.beside_the_default(place, effects)),
        };
        let samples = |place: usize| effects[place].map_or(0, |effect| effect.samples);
        self.conclude(
            entry,
            Source::Measured,
            best,
            gain,
            (&drawable, &weighed, exploring),
            samples,
            interval,
        )
    }

    pub(super) fn predict(
        &self,
        entry: &mut CellModel,
        is_convincing: impl Fn(usize) -> bool,
    ) -> CellStatistics {
        let drawable = self.drawable(entry);
        let time = |place: usize| self.predicted[place].unwrap_or(f64::INFINITY);
        let best = drawable
            .iter()
            .copied()
            .filter(|&place| place > 0 && is_convincing(place))
            .min_by(|&a, &b| time(a).total_cmp(&time(b)))
            .unwrap_or(0);
        let weighed: Vec<Weighed> = drawable
            .iter()
            .map(|&place| Weighed {
                log_time: self.predicted[place],
                dominated: false,
            })
            .collect();
        let gain = if best == 0 {
            1.0
        } else {
            (time(0) - time(best)).exp()
        };
        let interval = |place: usize| predicted_time(self.predicted[place]);
        self.conclude(
            entry,
            Source::Predicted,
            best,
            gain,
            (&drawable, &weighed, self.widely(WIDE_TEMPERATURE)),
            |_| 0,
            interval,
        )
    }

    fn widely(&self, temperature: f64) -> Exploring {
        // A site that forbids exploring means it.
        if self.explore_total > 0.0 {
            Exploring::Widely(temperature)
        } else {
            Exploring::AtMost(0.0)
        }
    }

    /// The predicted time of a variant without samples, on the scale of the cell's own default.
    fn beside_the_default(&self, place: usize, effects: &[Option<Effect>]) -> Option<f64> {
        Some(self.predicted[place]? - self.predicted[0]? + effects[0]?.log_time)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call for each source of knowledge, and no other caller"
    )]
    fn conclude(
        &self,
        entry: &mut CellModel,
        source: Source,
        best: usize,
        gain: f64,
        (drawable, weighed, exploring): (&[usize], &[Weighed], Exploring),
        samples: impl Fn(usize) -> u64,
        interval: impl Fn(usize) -> Interval,
    ) -> CellStatistics {
        let best_drawn = drawable
            .iter()
            .position(|&place| place == best)
            .unwrap_or(0);
        let shares = weigh(weighed, best_drawn, exploring, self.explore_total);
        let share_of = |place: usize| {
            drawable
                .iter()
                .position(|&other| other == place)
                .map_or(0.0, |index| shares[index])
        };
        let name = |place: usize| self.variants[place].name.to_string();
        entry.source = source;
        entry.best = name(best);
        entry.variants = drawable
            .iter()
            .zip(&shares)
            .filter(|(_, share)| **share > 0.0)
            .map(|(&place, &probability)| Share {
                name: name(place),
                probability,
            })
            .collect();
        let listed = (0..self.variants.len())
            .filter(|place| drawable.contains(place) || samples(*place) > 0);
        let variants = listed
            .map(|place| VariantStatistics {
                name: name(place),
                samples: samples(place),
                probability: share_of(place),
                time_ns: interval(place),
                replaces_default: source == Source::Measured && place != 0 && place == best,
                ..VariantStatistics::default()
            })
            .collect();
        CellStatistics {
            cell: entry.cell,
            source,
            best: name(best),
            gain: (gain * 1e4).round() / 1e4,
            variants,
            ..CellStatistics::unknown(entry.cell)
        }
    }
}

/// Whether more samples may show that `rival` is clearly faster than the best so far.
fn is_open(rival: Option<Effect>, best: Option<Effect>) -> bool {
    let (Some(rival), Some(best)) = (rival, best) else {
        return false; // what has no samples by now does not apply here
    };
    let error = best.error.slower.hypot(rival.error.faster);
    let may_gain = best.log_time - rival.log_time + OPEN_DOUBT * error;
    rival.samples < SAMPLES_TO_CLOSE && may_gain > WORTH_ASKING
}

fn predicted_time(log_time: Option<f64>) -> Interval {
    Interval {
        median: log_time.map(|log| round_ns(log.exp())),
        lo: None,
        hi: None,
    }
}

fn round_ns(time: f64) -> f64 {
    (time * 10.0).round() / 10.0
}
