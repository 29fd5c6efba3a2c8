//! Sums of each variable over the domain, without rounding, and what they must keep to.

use crate::exact_sum::{ExactSum, WORDS};
use crate::field::Field;
use crate::field::Slot;
use crate::ranks::{Op, Ranks};

const TAG: i32 = 120;

/// Why a run cannot go on. Every rank finds the same.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Broken {
    #[error("variable {var} is not finite at step {step}, stage {stage}: its sum is {sum}")]
    NotFinite {
        step: u64,
        stage: u64,
        var: usize,
        sum: f64,
    },
    #[error(
        "the sum of variable {var} is not conserved at step {step}, stage {stage}: {sum} after {before}, \
         a relative difference of {difference:e} above the tolerance {tolerance:e}"
    )]
    NotConserved {
        step: u64,
        stage: u64,
        var: usize,
        sum: f64,
        before: f64,
        difference: f64,
        tolerance: f64,
    },
    #[error("the gas breaks down before step {step}: {what}")]
    NotPhysical { step: u64, what: String },
    #[error("failed to place blocks at step {step}: {what}")]
    Placement { step: u64, what: String },
    #[error("rank {rank} needs {n_blocks} blocks at step {step}; --max_blocks allows {most}")]
    TooManyBlocks {
        step: u64,
        rank: usize,
        n_blocks: i64,
        most: usize,
    },
    #[error("failed to make room for blocks at step {step}: {what}")]
    NoRoom { step: u64, what: String },
    #[error("failed to write a picture at step {step}: {what}")]
    Picture { step: u64, what: String },
    #[error("failed at step {step}: {what}")]
    Output { step: u64, what: String },
    #[error("failed to restart from {what}")]
    Restart { what: String },
    #[error("invariant broken at step {step}: {what}")]
    Invalid { step: u64, what: String },
}

/// The sums of the last check, and the first ones (none while drift is not followed).
#[derive(Clone, Debug, Default)]
pub struct Checksums {
    pub first: Vec<f64>,
    pub last: Vec<f64>,
    pub drift_max: f64,
}

/// Adds the interior of one variable of the blocks in `slots`.
pub fn add(field: &Field, slots: &[Slot], var: usize, sum: &mut ExactSum) {
    let (shape, nx) = (field.shape(), field.shape().cells[0]);
    for &slot in slots {
        let cells = field.var(slot, var);
        if shape.ghosts == 0 {
            sum.add_slice(cells);
            continue;
        }
        sum.add_rows(shape.rows().map(|row| &cells[row..row + nx]));
    }
}

/// The same as one rounded number, in another order.
pub fn quick(field: &Field, slots: &[Slot], var: usize) -> f64 {
    let (shape, nx) = (field.shape(), field.shape().cells[0]);
    let mut sum = 0.0;
    for &slot in slots {
        let cells = field.var(slot, var);
        let mut lanes = [0.0; 8];
        for row in shape.rows() {
            let mut parts = cells[row..row + nx].chunks_exact(8);
            for part in &mut parts {
                lanes.iter_mut().zip(part).for_each(|(lane, x)| *lane += x);
            }
            let rest = parts.remainder().iter();
            lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane += x);
        }
        sum += lanes.iter().sum::<f64>();
    }
    sum
}

/// The sums over all ranks, by one allreduce of all words.
pub fn reduce(ranks: &dyn Ranks, own: &[ExactSum]) -> Vec<f64> {
    let mut words: Vec<i64> = own.iter().flat_map(ExactSum::words).collect();
    ranks.allreduce_i64(&mut words, Op::Sum);
    values(&words)
}

/// The sums over all ranks, without any collective call.
pub fn gather(ranks: &dyn Ranks, own: &[ExactSum]) -> Vec<f64> {
    let words: Vec<i64> = own.iter().flat_map(ExactSum::words).collect();
    if ranks.rank() != 0 {
        let bits = words.iter().map(|&word| f64::from_bits(word as u64));
        drop(ranks.finish(ranks.start_send(0, TAG, bits.collect())));
        return ranks.finish(ranks.start_receive(0, TAG, vec![0.0; own.len()]));
    }
    let mut total = words;
    for from in 1..ranks.n_ranks() {
        let buffer = vec![0.0; total.len()];
        let part = ranks.finish(ranks.start_receive(from, TAG, buffer));
        for (word, bits) in total.iter_mut().zip(part) {
            *word += bits.to_bits() as i64;
        }
    }
    let sums = values(&total);
    for to in 1..ranks.n_ranks() {
        drop(ranks.finish(ranks.start_send(to, TAG, sums.clone())));
    }
    sums
}

fn values(words: &[i64]) -> Vec<f64> {
    let sums = words.chunks_exact(WORDS);
    sums.map(|words| {
        let words = words.try_into().expect("chunks of this size");
        ExactSum::from_words(words).value()
    })
    .collect()
}

impl Checksums {
    /// Takes new sums of variables from `first_var` on; `conserved` says which must keep their sum.
    ///
    /// Errors: a sum that is not finite, or one that differs by more than `tolerance` from the last.
    pub fn accept(
        &mut self,
        (step, stage): (u64, u64),
        first_var: usize,
        sums: &[f64],
        tolerance: f64,
        conserved: impl Fn(usize) -> bool,
    ) -> Result<(), Broken> {
        for (var, &sum) in (first_var..).zip(sums) {
            if !sum.is_finite() {
                return Err(Broken::NotFinite {
                    step,
                    stage,
                    var,
                    sum,
                });
            }
            if !conserved(var) {
                self.last[var] = sum;
                continue;
            }
            let before = self.last[var];
            let difference = relative(sum, before);
            if difference > tolerance {
                return Err(Broken::NotConserved {
                    step,
                    stage,
                    var,
                    sum,
                    before,
                    difference,
                    tolerance,
                });
            }
            if let Some(&first) = self.first.get(var) {
                self.drift_max = self.drift_max.max(relative(sum, first));
            }
            self.last[var] = sum;
        }
        Ok(())
    }
}

/// How far `a` is from `b`, in units of `b`.
pub fn relative(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { ((a - b) / b).abs() }
}
