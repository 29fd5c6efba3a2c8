//! Rows of cells in memory, and the copies between two of them.

use crate::stencil::between::Plane;

/// Rows of cells in a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub first: usize,
    /// Between cells of a row, and between rows.
    pub strides: [usize; 2],
    pub counts: [usize; 2],
}

pub(super) fn dense(counts: [usize; 2]) -> View {
    View {
        first: 0,
        strides: [1, counts[0]],
        counts,
    }
}

impl View {
    pub fn row(&self, j: usize) -> usize {
        self.first + j * self.strides[1]
    }

    pub fn of(self, cells: &[f64]) -> Plane<'_> {
        Plane {
            cells: &cells[self.first..],
            strides: self.strides,
        }
    }

    pub fn quadrant(self, quadrant: u8) -> View {
        let counts = self.counts.map(|n| n / 2);
        let upper = [usize::from(quadrant & 1), usize::from(quadrant >> 1)];
        let along = |t: usize| upper[t] * counts[t] * self.strides[t];
        View {
            first: self.first + along(0) + along(1),
            counts,
            ..self
        }
    }
}

pub(super) fn copy(to: &mut [f64], to_view: View, from: &[f64], from_view: View) {
    debug_assert_eq!(to_view.counts, from_view.counts);
    let [n, rows] = to_view.counts;
    for j in 0..rows {
        let (to, from) = (&mut to[to_view.row(j)..], &from[from_view.row(j)..]);
        let [ts, fs] = [to_view.strides[0], from_view.strides[0]];
        if ts == 1 && fs == 1 {
            copy_row(&mut to[..n], &from[..n]);
        } else {
            let (to, from) = (&mut to[..(n - 1) * ts + 1], &from[..(n - 1) * fs + 1]);
            for i in 0..n {
                to[i * ts] = from[i * fs];
            }
        }
    }
}

/// A quarter of each coarse value into two by two fine ones: cells hold totals.
pub(super) fn spread(to: &mut [f64], fine: View, from: &[f64], coarse: View) {
    let [n, rows] = coarse.counts;
    let [s0, s1] = fine.strides;
    for j in 0..rows {
        let (to, from) = (&mut to[fine.row(2 * j)..], &from[coarse.row(j)..]);
        for i in 0..n {
            let value = from[i * coarse.strides[0]] * 0.25;
            let at = 2 * i * s0;
            to[at] = value;
            to[at + s0] = value;
            to[at + s1] = value;
            to[at + s0 + s1] = value;
        }
    }
}

/// Sums of two by two fine values.
pub(super) fn gather(to: &mut [f64], coarse: View, from: &[f64], fine: View) {
    let [n, rows] = coarse.counts;
    let [s0, s1] = fine.strides;
    for j in 0..rows {
        let (to, from) = (&mut to[coarse.row(j)..], &from[fine.row(2 * j)..]);
        for i in 0..n {
            let at = 2 * i * s0;
            to[i * coarse.strides[0]] =
                (from[at] + from[at + s0]) + (from[at + s1] + from[at + s0 + s1]);
        }
    }
}

/// Copies a row. Rows are short, and the usual lengths need no call when they are known here.
#[inline(always)]
pub fn copy_row(to: &mut [f64], from: &[f64]) {
    #[inline(always)]
    fn fixed<const N: usize>(to: &mut [f64], from: &[f64]) {
        let to: &mut [f64; N] = to.try_into().expect("the caller matched the length");
        *to = *from.first_chunk().expect("the caller matched the length");
    }
    match to.len() {
        2 => fixed::<2>(to, from),
        4 => fixed::<4>(to, from),
        5 => fixed::<5>(to, from),
        6 => fixed::<6>(to, from),
        8 => fixed::<8>(to, from),
        10 => fixed::<10>(to, from),
        12 => fixed::<12>(to, from),
        16 => fixed::<16>(to, from),
        _ => to.copy_from_slice(from),
    }
}
