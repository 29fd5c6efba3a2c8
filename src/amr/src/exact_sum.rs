//! Sums of `f64` without rounding: the same bits for every order, grouping, rank count and reduction algorithm.
//!
//! An [`ExactSum`] is a fixed-point number that spans the whole range of `f64`, held as [`WORDS`] signed words.
//! Two of them merge by adding word to word, so a sum over ranks is one allreduce of `i64` with the plain SUM. The
//! result is rounded once, at the end, to the nearest `f64`, ties to even.
//!
//! ```text
//!   words[0]           words[1]                      words[69]        words[70..73]
//!   2^-1074 .. 2^-1043 2^-1042 .. 2^-1011    ...     top, signed      NaNs, +infinities, -infinities
//! ```
//! Each word carries 32 bits of the number and has 31 spare bits for carries that have not been passed on yet.
//!
//! Long slices do not touch the words value by value. A chunk whose largest magnitude is below 2^m is split without
//! error at two fixed places. Adding and subtracting 1.5 x 2^k rounds every value to the same grid, and sums of
//! multiples of one grid are exact as long as they stay in one binade. Parts finer than both grids, which only chunks
//! that span more than 2^34 have, go through the words. Source: Rump, Ogita & Oishi, SIAM J. Sci. Comput. 31(1), 2008
//! (extraction); Neal, arXiv:1505.05571, 2015 (words).

/// Words of a sum, and so the length of the `i64` vector that an allreduce adds up (584 bytes).
pub const WORDS: usize = DIGITS + 3;

const DIGIT_BITS: usize = 32;
/// 2098 bits of `f64` range, 62 for the number of terms and 64 for [`ExactSum::times_power_of_two`].
const DIGITS: usize = 70;
const NAN: usize = DIGITS;
const POSITIVE_INFINITY: usize = DIGITS + 1;
const NEGATIVE_INFINITY: usize = DIGITS + 2;
/// Additions to one word between two carries: each adds less than 2^32, and 2^30 of them stay below 2^62.
const ADDITIONS_MAX: u32 = 1 << 30;

const LANES: usize = 8;
const CHUNK: usize = 1024;
/// A lane adds up to 2^7 values of a chunk; 2 more bits keep its sum in one binade.
const SPARE_BITS: i32 = 9;
/// The second grid starts where the first one ends: 52 bits of fraction less the spare ones.
const FOLD_BITS: i32 = 52 - SPARE_BITS;

/// A sum of `f64` values that has not been rounded.
///
/// Shape:  [`WORDS`] words, see the module's drawing; two sums of the same values may hold different words until
///         [`ExactSum::words`] has passed the carries on, which makes them equal.
/// Errors: none. NaNs and infinities are counted and decide the value as IEEE 754 has it.
/// Source: checked by `any_order_and_any_grouping_give_the_same_bits`.
#[derive(Clone, Debug)]
pub struct ExactSum {
    words: [i64; WORDS],
    additions: u32,
}

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum {
            words: [0; WORDS],
            additions: 0,
        }
    }
}

impl ExactSum {
    /// Adds one value.
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let (exponent, fraction) = ((bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
        let negative = bits >> 63 == 1;
        match exponent {
            0x7ff if fraction != 0 => self.words[NAN] += 1,
            0x7ff if negative => self.words[NEGATIVE_INFINITY] += 1,
            0x7ff => self.words[POSITIVE_INFINITY] += 1,
            // A subnormal number has the weight of exponent 1 without the leading bit.
            0 => self.add_scaled(signed(fraction, negative), 0),
            _ => self.add_scaled(signed(fraction | 1 << 52, negative), exponent as usize - 1),
        }
    }

    /// Adds all values of a slice; above 0.5e9 values a second where their magnitudes differ by less than 2^34 within
    /// each 1024 of them.
    pub fn add_slice(&mut self, values: &[f64]) {
        for chunk in values.chunks(CHUNK) {
            self.add_chunk(chunk);
        }
    }

    /// Adds rows of values, such as the interior rows of a block between its ghost cells.
    ///
    /// Short rows are collected into chunks first, so that a row of 8 costs per value about what a long slice does.
    pub fn add_rows<'a>(&mut self, rows: impl IntoIterator<Item = &'a [f64]>) {
        let mut chunk = [0.0; CHUNK];
        let mut filled = 0;
        for row in rows {
            let mut rest = row;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(CHUNK - filled));
                chunk[filled..filled + now.len()].copy_from_slice(now);
                (filled, rest) = (filled + now.len(), later);
                if filled == CHUNK {
                    self.add_chunk(&chunk);
                    filled = 0;
                }
            }
        }
        self.add_chunk(&chunk[..filled]);
    }

    /// Adds another sum: the same as having added its values.
    pub fn merge(&mut self, other: &ExactSum) {
        self.carry();
        for (word, more) in self.words.iter_mut().zip(other.words()) {
            *word += more;
        }
        self.additions = 2;
    }

    /// Multiplies the sum by 2^`shift`, exactly.
    ///
    /// With it, cells of several levels are weighted by their volumes: a cell has 8 times the volume of one a level
    /// finer.
    /// Errors: panics above 60, the room that the words leave.
    pub fn times_power_of_two(&mut self, shift: u32) {
        assert!(shift <= 60, "a sum is shifted by at most 60 bits");
        let mut left = shift;
        while left > 0 {
            // Digits are below 2^32 after a carry: shifted by 31 bits they still fit.
            let now = left.min(31);
            self.carry();
            self.words[..DIGITS]
                .iter_mut()
                .for_each(|word| *word <<= now);
            self.additions = ADDITIONS_MAX - 1;
            left -= now;
        }
    }

    /// The words, every carry passed on: what an allreduce with SUM adds up. Equal sums have equal words.
    ///
    /// Adding the words of up to 2^30 ranks does not overflow.
    pub fn words(&self) -> [i64; WORDS] {
        let mut sum = self.clone();
        sum.carry();
        sum.words
    }

    /// The sum that `words` stand for, after an allreduce of them.
    pub fn from_words(words: [i64; WORDS]) -> Self {
        let mut sum = ExactSum {
            words,
            additions: ADDITIONS_MAX - 1,
        };
        sum.carry();
        sum
    }

    /// The sum, rounded once to the nearest `f64`, ties to even.
    ///
    /// An empty sum and one of zeros, whatever their signs, is +0. A sum beyond the largest `f64` is infinite.
    pub fn value(&self) -> f64 {
        let infinite = (
            self.words[POSITIVE_INFINITY] != 0,
            self.words[NEGATIVE_INFINITY] != 0,
        );
        match (self.words[NAN] != 0, infinite) {
            (true, _) | (_, (true, true)) => f64::NAN,
            (_, (true, false)) => f64::INFINITY,
            (_, (false, true)) => f64::NEG_INFINITY,
            _ => self.rounded(),
        }
    }

    fn rounded(&self) -> f64 {
        let mut digits = self.clone();
        digits.carry();
        let negative = digits.words[DIGITS - 1] < 0;
        if negative {
            digits.words[..DIGITS]
                .iter_mut()
                .for_each(|word| *word = -*word);
            digits.additions = ADDITIONS_MAX - 1;
            digits.carry();
        }
        let magnitude = f64::from_bits(rounded_bits(&digits.words[..DIGITS]));
        if negative { -magnitude } else { magnitude }
    }

    /// Adds `integer` x 2^(`shift` - 1074).
    fn add_scaled(&mut self, integer: i64, shift: usize) {
        let place = shift / DIGIT_BITS;
        let wide = i128::from(integer) << (shift % DIGIT_BITS);
        let digit = |index: usize| (wide >> (index * DIGIT_BITS)) as i64 & 0xffff_ffff;
        self.words[place] += digit(0);
        self.words[place + 1] += digit(1);
        self.words[place + 2] += (wide >> (2 * DIGIT_BITS)) as i64;
        self.additions += 1;
        if self.additions >= ADDITIONS_MAX {
            self.carry();
        }
    }

    /// Brings every word but the top one into 0 .. 2^32.
    fn carry(&mut self) {
        if self.additions == 0 {
            return;
        }
        let mut carry = 0;
        for word in &mut self.words[..DIGITS - 1] {
            let full = *word + carry;
            *word = full & 0xffff_ffff;
            carry = full >> DIGIT_BITS;
        }
        self.words[DIGITS - 1] += carry;
        self.additions = 0;
    }

    fn add_chunk(&mut self, values: &[f64]) {
        debug_assert!(values.len() <= CHUNK);
        let (whole, rest) = values.as_chunks::<LANES>();
        rest.iter().for_each(|&value| self.add(value));
        match Grids::above(whole).and_then(|grids| grids.fold(whole)) {
            Some(folded) => {
                self.add_scaled(folded.coarse, folded.shift);
                self.add_scaled(folded.fine, folded.shift - FOLD_BITS as usize);
            }
            None => whole
                .as_flattened()
                .iter()
                .for_each(|&value| self.add(value)),
        }
    }
}

fn signed(magnitude: u64, negative: bool) -> i64 {
    if negative {
        -(magnitude as i64)
    } else {
        magnitude as i64
    }
}

/// The bits of the nearest `f64` to the non-negative number in `digits`, whose unit is 2^-1074.
fn rounded_bits(digits: &[i64]) -> u64 {
    let Some(top) = digits.iter().rposition(|&digit| digit != 0) else {
        return 0;
    };
    let top_bits = 64 - digits[top].leading_zeros() as usize;
    let length = top * DIGIT_BITS + top_bits;
    // Three digits hold at least 65 significant bits, or the whole number.
    let below = |down: usize| {
        if top >= down {
            digits[top - down] as u128
        } else {
            0
        }
    };
    let head = below(0) << 64 | below(1) << 32 | below(2);
    let sticky = top >= 3 && digits[..top - 2].iter().any(|&digit| digit != 0);
    // `head` is the number divided by 2^(32 (top - 2)); a number of up to 53 bits is its own bit pattern, because
    // the encodings of subnormal and of the first normal numbers are consecutive.
    if length <= 53 {
        return (head >> (64 - 32 * top.min(2))) as u64;
    }
    let dropped = top_bits + 64 - 53;
    let (kept, lost) = (head >> dropped, head & ((1 << dropped) - 1));
    let half = 1u128 << (dropped - 1);
    let up = lost > half || (lost == half && (sticky || kept & 1 == 1));
    // The leading bit of `kept` adds one to the exponent, and a carry out of the fraction another: both are meant.
    let bits = ((length as u64 - 53) << 52) + kept as u64 + u64::from(up);
    bits.min(f64::INFINITY.to_bits())
}

/// The two numbers that round the values of a chunk to a coarse grid and what is left of them to a fine one.
#[derive(Clone, Copy)]
struct Grids {
    coarse: f64,
    fine: f64,
}

/// The two sums of a chunk, each in its grid's unit; the coarse unit is 2^(`shift` - 1074).
struct Folded {
    coarse: i64,
    fine: i64,
    shift: usize,
}

impl Grids {
    /// `None` for infinities and where a grid would leave the range of `f64`. NaNs are not seen here.
    fn above(groups: &[[f64; LANES]]) -> Option<Grids> {
        let mut largest = [0.0f64; LANES];
        for group in groups {
            for (largest, value) in largest.iter_mut().zip(group) {
                let magnitude = value.abs();
                *largest = if magnitude > *largest {
                    magnitude
                } else {
                    *largest
                };
            }
        }
        let largest = largest.into_iter().fold(0.0, f64::max);
        let exponent = (largest.to_bits() >> 52) as i32; // the chunk is below 2^(exponent - 1022)
        // Where all is tiny or zero the grids stay where their numbers are normal; zeros lie on any grid.
        let coarse = (exponent + 1 + SPARE_BITS).max(FOLD_BITS + 60);
        let fine = coarse - FOLD_BITS;
        let power = |exponent: i32| f64::from_bits((exponent as u64) << 52 | 1 << 51);
        (coarse < 0x7fe).then(|| Grids {
            coarse: power(coarse),
            fine: power(fine),
        })
    }

    /// `None` where something is finer than both grids, or not a number.
    fn fold(self, groups: &[[f64; LANES]]) -> Option<Folded> {
        let (mut coarse, mut fine) = ([self.coarse; LANES], [self.fine; LANES]);
        let mut left = [0u64; LANES];
        for group in groups {
            for lane in 0..LANES {
                let value = group[lane];
                let sum = coarse[lane] + value;
                let rest = value - (sum - coarse[lane]);
                coarse[lane] = sum;
                let sum = fine[lane] + rest;
                let rest = rest - (sum - fine[lane]);
                fine[lane] = sum;
                left[lane] |= rest.to_bits();
            }
        }
        // The shift drops the sign of a zero.
        if left.iter().any(|bits| bits << 1 != 0) {
            return None;
        }
        // Grid number and sum are in one binade, so the difference of their bit patterns counts grid units.
        let units = |sums: [f64; LANES], grid: f64| -> i64 {
            sums.iter()
                .map(|sum| sum.to_bits() as i64 - grid.to_bits() as i64)
                .sum()
        };
        let shift = (self.coarse.to_bits() >> 52) as usize - 1;
        Some(Folded {
            coarse: units(coarse, self.coarse),
            fine: units(fine, self.fine),
            shift,
        })
    }
}

#[cfg(test)]
mod tests;
