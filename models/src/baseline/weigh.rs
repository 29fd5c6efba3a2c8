//! From times to the probabilities with which sampled calls draw the variants.

/// How strongly time decides: a variant that is slower by this share weighs 1/e of the best.
pub const TEMPERATURE: f64 = 0.1;
/// The least probability of a variant, unless `explore_total` leaves less for it.
pub const FLOOR: f64 = 0.03;
/// The least probability of the default while others are drawn: every gain is measured against it.
pub const DEFAULT_SHARE: f64 = 0.05;

/// One variant, as weighing sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weighed {
    /// Logarithm of the time it may have at best, in ns; `None`: nothing is known about it.
    pub log_time: Option<f64>,
    /// Too slow to be drawn again.
    pub dominated: bool,
}

/// How much a cell is explored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exploring {
    /// All variants but the best share at most this much.
    AtMost(f64),
    /// Too little is known: time decides softly (the temperature), and nobody is the best yet. The
    /// default is drawn like the fastest, because all others are compared with it.
    Widely(f64),
}

/// The least probability of a drawn variant among `n` of them.
pub fn floor(n: usize, explore_total: f64) -> f64 {
    if n < 2 {
        0.0
    } else {
        FLOOR.min(explore_total / (n - 1) as f64)
    }
}

/// Turns times into selection probabilities (soft-min with an exploration floor).
///
/// Shape:  `variants` are those that the cell may draw, place 0 the default, `best` a place in it;
///         the result is as long and sums to 1.
/// Units:  logarithms of nanoseconds in, dimensionless out; every variant that is not dominated
///         gets at least [`floor`], the default also at least [`DEFAULT_SHARE`] of what may be
///         explored. The best and the default are never dominated.
/// Source: Hunold & Steiner, PMBS 2022, section III-e.
pub fn weigh(
    variants: &[Weighed],
    best: usize,
    exploring: Exploring,
    explore_total: f64,
) -> Vec<f64> {
    let drawn: Vec<usize> = (0..variants.len())
        .filter(|&place| place == 0 || place == best || !variants[place].dominated)
        .collect();
    let known = drawn.iter().filter_map(|&place| variants[place].log_time);
    let fastest = known.clone().fold(f64::INFINITY, f64::min);
    // What nobody has tried may be as good as the middle of the others.
    let mut sorted: Vec<f64> = known.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let unknown = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let temperature = match exploring {
        Exploring::AtMost(_) => TEMPERATURE,
        Exploring::Widely(temperature) => temperature,
    };
    let weight = |place: usize| {
        let log_time = variants[place].log_time.unwrap_or(unknown);
        if place == 0 && matches!(exploring, Exploring::Widely(_)) {
            1.0
        } else if fastest.is_finite() {
            (-(log_time - fastest) / temperature).exp()
        } else {
            1.0
        }
    };
    let mut result = vec![0.0; variants.len()];
    if drawn.len() == 1 {
        result[drawn[0]] = 1.0;
        return result;
    }
    if sorted.is_empty() && matches!(exploring, Exploring::Widely(_)) {
        drawn
            .iter()
            .for_each(|&place| result[place] = 1.0 / drawn.len() as f64);
        return result;
    }
    let floor = floor(drawn.len(), explore_total);
    let (takers, total): (Vec<usize>, f64) = match exploring {
        Exploring::AtMost(most) => (
            drawn
                .iter()
                .copied()
                .filter(|&place| place != best)
                .collect(),
            most,
        ),
        Exploring::Widely(_) => (drawn.clone(), 1.0),
    };
    let least = |place: usize| {
        // The default's extra is taken from what is left above the floors.
        let spare = (total - floor * takers.len() as f64).max(0.0);
        if place == 0 {
            floor.max((floor + spare).min(DEFAULT_SHARE))
        } else {
            floor
        }
    };
    let spare = (total - takers.iter().map(|&place| least(place)).sum::<f64>()).max(0.0);
    let weights: f64 = takers.iter().map(|&place| weight(place)).sum();
    for &place in &takers {
        let soft = if weights > 0.0 {
            weight(place) / weights
        } else {
            1.0 / takers.len() as f64
        };
        result[place] = least(place) + spare * soft;
    }
    if let Exploring::AtMost(_) = exploring {
        result[best] = 1.0 - takers.iter().map(|&place| result[place]).sum::<f64>();
    }
    round(&mut result);
    result
}

/// Rounds to millionths, which keeps files small, and leaves the sum at 1.
fn round(probabilities: &mut [f64]) {
    let Some(largest) =
        (0..probabilities.len()).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]))
    else {
        return;
    };
    let mut rest = 1_000_000i64;
    for (place, probability) in probabilities.iter_mut().enumerate() {
        let millionths = (*probability * 1e6).round() as i64;
        if place != largest {
            rest -= millionths;
            *probability = millionths as f64 / 1e6;
        }
    }
    probabilities[largest] = rest as f64 / 1e6;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(times: &[f64]) -> Vec<Weighed> {
        times
            .iter()
            .map(|time| Weighed {
                log_time: Some(time.ln()),
                dominated: false,
            })
            .collect()
    }

    #[test]
    fn floor_keeps_every_variant_alive() {
        for n in [2, 3, 5, 6, 7, 21, 50] {
            let times: Vec<f64> = (0..n).map(|k| 1000.0 * 2f64.powi(k)).collect();
            for best in [0, n as usize - 1] {
                let shares = weigh(&timed(&times), best, Exploring::AtMost(0.15), 0.15);
                let floor = floor(n as usize, 0.15);
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                assert!(
                    shares.iter().all(|share| *share >= floor - 2e-6),
                    "{shares:?}"
                );
                assert!(shares[best] >= 0.85 - 1e-4, "{n}: {shares:?}");
            }
        }
    }

    #[test]
    fn faster_variants_are_drawn_more_often_and_dominated_ones_never() {
        let mut variants = timed(&[1000.0, 900.0, 1100.0, 20_000.0]);
        variants[3].dominated = true;
        let shares = weigh(&variants, 1, Exploring::AtMost(0.15), 0.15);
        assert!(shares[1] > shares[0] && shares[0] > shares[2], "{shares:?}");
        assert_eq!(shares[3], 0.0);
        let broad = weigh(&variants, 1, Exploring::Widely(0.3), 0.15);
        assert!(broad[1] < 0.6 && broad[2] > 0.1, "{broad:?}");
    }

    #[test]
    fn the_default_stays_in_play_and_nothing_known_is_uniform() {
        let shares = weigh(
            &timed(&[90_000.0, 900.0, 1100.0, 1000.0, 950.0]),
            1,
            Exploring::AtMost(0.15),
            0.15,
        );
        assert!(shares[0] >= 0.049, "{shares:?}");
        let unknown = [Weighed {
            log_time: None,
            dominated: false,
        }; 4];
        assert_eq!(weigh(&unknown, 0, Exploring::Widely(0.3), 0.15), [0.25; 4]);
        assert_eq!(
            weigh(&unknown[..1], 0, Exploring::AtMost(0.15), 0.15),
            [1.0]
        );
        assert_eq!(
            weigh(&unknown, 0, Exploring::AtMost(0.0), 0.0),
            [1.0, 0.0, 0.0, 0.0]
        );
    }
}
