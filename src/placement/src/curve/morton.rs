//! Morton order: the coordinates' bits interleaved, x in the lowest place.

use super::octant::{LEVEL_MAX, Octant};

pub(super) fn key_2d(octant: Octant) -> u64 {
    spread_2(octant.x) | spread_2(octant.y) << 1
}

pub(super) fn key_3d(octant: Octant) -> u64 {
    spread_3(octant.x) | spread_3(octant.y) << 1 | spread_3(octant.z) << 2
}

pub(super) fn octant_2d(key: u64, level: u8) -> Octant {
    let octant = Octant::new(gather_2(key), gather_2(key >> 1), 0, LEVEL_MAX);
    octant.ancestor(level)
}

pub(super) fn octant_3d(key: u64, level: u8) -> Octant {
    let octant = Octant::new(
        gather_3(key),
        gather_3(key >> 1),
        gather_3(key >> 2),
        LEVEL_MAX,
    );
    octant.ancestor(level)
}

/// Moves bit i to bit 2i.
fn spread_2(v: u32) -> u64 {
    let mut v = u64::from(v) & 0x1f_ffff;
    v = (v | v << 16) & 0x0000_ffff_0000_ffff;
    v = (v | v << 8) & 0x00ff_00ff_00ff_00ff;
    v = (v | v << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    v = (v | v << 2) & 0x3333_3333_3333_3333;
    (v | v << 1) & 0x5555_5555_5555_5555
}

/// Moves bit i to bit 3i.
fn spread_3(v: u32) -> u64 {
    let mut v = u64::from(v) & 0x1f_ffff;
    v = (v | v << 32) & 0x001f_0000_0000_ffff;
    v = (v | v << 16) & 0x001f_0000_ff00_00ff;
    v = (v | v << 8) & 0x100f_00f0_0f00_f00f;
    v = (v | v << 4) & 0x10c3_0c30_c30c_30c3;
    (v | v << 2) & 0x1249_2492_4924_9249
}

fn gather_2(key: u64) -> u32 {
    let mut v = key & 0x5555_5555_5555_5555;
    v = (v | v >> 1) & 0x3333_3333_3333_3333;
    v = (v | v >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    v = (v | v >> 4) & 0x00ff_00ff_00ff_00ff;
    v = (v | v >> 8) & 0x0000_ffff_0000_ffff;
    (v | v >> 16) as u32 & 0x1f_ffff
}

fn gather_3(key: u64) -> u32 {
    let mut v = key & 0x1249_2492_4924_9249;
    v = (v | v >> 2) & 0x10c3_0c30_c30c_30c3;
    v = (v | v >> 4) & 0x100f_00f0_0f00_f00f;
    v = (v | v >> 8) & 0x001f_0000_ff00_00ff;
    v = (v | v >> 16) & 0x001f_0000_0000_ffff;
    (v | v >> 32) as u32 & 0x1f_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bits_are_x_then_y_then_z() {
        for (x, y, z, key) in [
            (1, 0, 0, 1),
            (0, 1, 0, 2),
            (0, 0, 1, 4),
            (3, 5, 1, 0b010_001_111),
        ] {
            assert_eq!(key_3d(Octant::new(x, y, z, LEVEL_MAX)), key);
        }
        assert_eq!(key_2d(Octant::new(3, 5, 0, LEVEL_MAX)), 0b10_01_11);
    }
}
