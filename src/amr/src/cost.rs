//! Uneven work on purpose: extra solver iterations per block, and ranks that are made slower.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::telemetry::clock::cpu_ns;

/// Iterations per level, near a shock, and the most that chance gives.
const PER_LEVEL: u32 = 4;
const NEAR_SHOCK: u32 = 16;
const RANDOM_END: u64 = 17;

/// Which blocks need extra iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostModel {
    #[default]
    Uniform,
    /// In proportion to the level.
    Level,
    /// Where the pressure jumps, as a stiff source term behind a shock would.
    Shock,
    /// By chance, the same for a block whoever owns it.
    Random(u64),
}

impl FromStr for CostModel {
    type Err = String;

    fn from_str(name: &str) -> Result<CostModel, String> {
        let seed = name.strip_prefix("random:").map(str::parse);
        match (name, seed) {
            ("uniform", _) => Ok(CostModel::Uniform),
            ("level", _) => Ok(CostModel::Level),
            ("shock", _) => Ok(CostModel::Shock),
            (_, Some(Ok(seed))) => Ok(CostModel::Random(seed)),
            _ => Err("uniform, level, shock and random:SEED are possible".into()),
        }
    }
}

impl CostModel {
    /// Extra iterations for a block; `is_near_shock` is asked by the shock model only.
    pub fn iterations(self, leaf: crate::leaf::Leaf, is_near_shock: impl FnOnce() -> bool) -> u32 {
        match self {
            CostModel::Uniform => 0,
            CostModel::Level => PER_LEVEL * u32::from(leaf.level),
            CostModel::Shock if is_near_shock() => NEAR_SHOCK,
            CostModel::Shock => 0,
            CostModel::Random(seed) => {
                let word = seed.to_le_bytes().into_iter();
                let bytes: Vec<u8> = word.chain(leaf.packed().to_le_bytes()).collect();
                (twox_hash::XxHash3_64::oneshot(&bytes) % RANDOM_END) as u32
            }
        }
    }
}

/// Newton steps for a root in every cell; the result changes nothing.
pub fn iterate(cells: &[f64], iterations: u32) {
    if iterations == 0 {
        return;
    }
    let mut sum = 0.0;
    for &cell in cells {
        let square = 1.0 + cell * cell;
        let mut root = square;
        for _ in 0..iterations {
            root = 0.5 * (root + square / root);
        }
        sum += root;
    }
    std::hint::black_box(sum);
}

/// How much slower this rank is made, so that a test sees it found.
#[derive(Clone, Copy, Debug)]
pub struct Slowness {
    factor: f64,
}

impl Default for Slowness {
    fn default() -> Slowness {
        Slowness { factor: 1.0 }
    }
}

/// Ranks that are made slower, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    ranks: RangeInclusive<usize>,
    factor: f64,
    steps: RangeInclusive<u64>,
}

impl FromStr for Slow {
    type Err = String;

    fn from_str(text: &str) -> Result<Slow, String> {
        fn range<T: FromStr + Copy>(text: &str) -> Option<RangeInclusive<T>> {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            Some(first.parse().ok()?..=last.parse().ok()?)
        }
        let mut parts = text.split(':');
        let slow = (|| {
            let slow = Slow {
                ranks: range(parts.next()?)?,
                factor: parts.next()?.parse().ok()?,
                steps: parts.next().map_or(Some(0..=u64::MAX), range)?,
            };
            (slow.factor.is_finite() && parts.next().is_none()).then_some(slow)
        })();
        slow.ok_or_else(|| "RANK[-RANK]:FACTOR[:FIRST-LAST] is possible".into())
    }
}

impl Slowness {
    /// Of `rank` in `step`.
    pub fn of(slow: &[Slow], rank: usize, step: u64) -> Slowness {
        let mut of = slow
            .iter()
            .filter(|slow| slow.ranks.contains(&rank) && slow.steps.contains(&step));
        of.next().map_or_else(Slowness::default, |slow| Slowness {
            factor: slow.factor,
        })
    }

    /// Before work: the processor time so far, where it matters.
    pub fn begin(self) -> Option<u64> {
        (self.factor > 1.0).then(|| {
            LazyLock::force(&READING_NS);
            cpu_ns()
        })
    }

    /// After work: goes on until it has taken as many times as long.
    pub fn end(self, begin: Option<u64>) {
        let Some(begin) = begin else { return };
        let reading = *READING_NS;
        let work = (cpu_ns() - begin).saturating_sub(reading);
        // Both readings so far have taken time, and the last one will be half a reading late.
        let end = begin + (work as f64 * self.factor) as u64;
        while cpu_ns() + reading + reading / 2 < end {
            std::hint::spin_loop();
        }
    }
}

/// What it takes to read this thread's processor time: some kernels need longer for it than a small block.
static READING_NS: LazyLock<u64> = LazyLock::new(|| {
    let readings = (0..64).map(|_| {
        let begin = cpu_ns();
        cpu_ns() - begin
    });
    readings.min().unwrap_or(0)
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::Leaf;

    #[test]
    fn models_are_read_by_name_and_make_blocks_uneven() {
        let leaf = |level, x| Leaf {
            level,
            at: [x, 0, 0],
        };
        let of = |name: &str, leaf| {
            let model: CostModel = name.parse().expect("a name");
            model.iterations(leaf, || true)
        };
        assert_eq!(of("uniform", leaf(3, 0)), 0);
        assert_eq!((of("level", leaf(0, 0)), of("level", leaf(2, 0))), (0, 8));
        assert_eq!(of("shock", leaf(0, 0)), NEAR_SHOCK);
        assert_eq!(CostModel::Shock.iterations(leaf(0, 0), || false), 0);
        let random: Vec<u32> = (0..64).map(|x| of("random:5", leaf(6, x))).collect();
        let other: Vec<u32> = (0..64).map(|x| of("random:6", leaf(6, x))).collect();
        assert!(random != other && random.contains(&0) && random.contains(&16));
        for name in ["random", "random:x", "levels", ""] {
            assert!(name.parse::<CostModel>().is_err(), "{name}");
        }
    }
}
