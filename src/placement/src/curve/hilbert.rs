//! Hilbert order by state tables that the compiler computes.
//!
//! From the coarsest level down, each level's digit follows from one bit of each coordinate and
//! from the state: the corner at which the curve enters the cell, and the axis along which it
//! leaves. A digit depends on coarser levels only, which is what makes keys prefixes of finer ones.
//! Source: Hamilton, "Compact Hilbert Indices", Dalhousie CS-2006-07, whose formulas fill the tables.

use super::octant::{LEVEL_MAX, Octant};

/// `digit` and following state for each state and each child, and the same by digit.
struct Tables<const STATES: usize, const CHILDREN: usize> {
    by_child: [[(u8, u8); CHILDREN]; STATES],
    by_digit: [[(u8, u8); CHILDREN]; STATES],
}

static SQUARE: Tables<8, 4> = tables(2);
static CUBE: Tables<24, 8> = tables(3);

const fn tables<const STATES: usize, const CHILDREN: usize>(n: u32) -> Tables<STATES, CHILDREN> {
    let mut tables = Tables {
        by_child: [[(0, 0); CHILDREN]; STATES],
        by_digit: [[(0, 0); CHILDREN]; STATES],
    };
    let mut state = 0;
    while state < STATES {
        let (entry, axis) = (state as u32 / n, state as u32 % n);
        let mut child = 0;
        while child < CHILDREN {
            let turned = rotate_right(child as u32 ^ entry, axis + 1, n);
            let digit = gray_inverse(turned);
            let next_entry = entry ^ rotate_left(entry_corner(digit), axis + 1, n);
            let next_axis = (axis + exit_axis(digit, n) + 1) % n;
            let next = (next_entry * n + next_axis) as u8;
            tables.by_child[state][child] = (digit as u8, next);
            tables.by_digit[state][digit as usize] = (child as u8, next);
            child += 1;
        }
        state += 1;
    }
    tables
}

const fn rotate_right(v: u32, by: u32, n: u32) -> u32 {
    let by = by % n;
    (v >> by | v << (n - by)) & ((1 << n) - 1)
}

const fn rotate_left(v: u32, by: u32, n: u32) -> u32 {
    rotate_right(v, n - by % n, n)
}

const fn gray(v: u32) -> u32 {
    v ^ v >> 1
}

/// For at most three bits.
const fn gray_inverse(v: u32) -> u32 {
    v ^ v >> 1 ^ v >> 2
}

/// The corner at which the curve enters the child that it visits as number `digit`.
const fn entry_corner(digit: u32) -> u32 {
    if digit == 0 {
        0
    } else {
        gray((digit - 1) / 2 * 2)
    }
}

/// The axis along which the curve crosses the child that it visits as number `digit`.
const fn exit_axis(digit: u32, n: u32) -> u32 {
    match digit {
        0 => 0,
        even if even % 2 == 0 => (even - 1).trailing_ones() % n,
        odd => odd.trailing_ones() % n,
    }
}

pub(super) fn key_2d(octant: Octant) -> u64 {
    let (mut key, mut state) = (0, 0);
    for bit in (LEVEL_MAX - octant.level..LEVEL_MAX).rev() {
        let child = (octant.x >> bit & 1) | (octant.y >> bit & 1) << 1;
        let (digit, next) = SQUARE.by_child[state][child as usize];
        (key, state) = (key << 2 | u64::from(digit), usize::from(next));
    }
    key << (2 * (LEVEL_MAX - octant.level))
}

pub(super) fn key_3d(octant: Octant) -> u64 {
    let (mut key, mut state) = (0, 0);
    for bit in (LEVEL_MAX - octant.level..LEVEL_MAX).rev() {
        let (x, y, z) = (
            octant.x >> bit & 1,
            octant.y >> bit & 1,
            octant.z >> bit & 1,
        );
        let (digit, next) = CUBE.by_child[state][(x | y << 1 | z << 2) as usize];
        (key, state) = (key << 3 | u64::from(digit), usize::from(next));
    }
    key << (3 * (LEVEL_MAX - octant.level))
}

pub(super) fn octant_2d(key: u64, level: u8) -> Octant {
    let (mut octant, mut state) = (Octant::ROOT, 0);
    for bit in (LEVEL_MAX - level..LEVEL_MAX).rev() {
        let (child, next) = SQUARE.by_digit[state][(key >> (2 * bit) & 3) as usize];
        octant.x |= u32::from(child & 1) << bit;
        octant.y |= u32::from(child >> 1) << bit;
        state = usize::from(next);
    }
    Octant { level, ..octant }
}

pub(super) fn octant_3d(key: u64, level: u8) -> Octant {
    let (mut octant, mut state) = (Octant::ROOT, 0);
    for bit in (LEVEL_MAX - level..LEVEL_MAX).rev() {
        let (child, next) = CUBE.by_digit[state][(key >> (3 * bit) & 7) as usize];
        octant.x |= u32::from(child & 1) << bit;
        octant.y |= u32::from(child >> 1 & 1) << bit;
        octant.z |= u32::from(child >> 2) << bit;
        state = usize::from(next);
    }
    Octant { level, ..octant }
}
