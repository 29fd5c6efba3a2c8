//! The structures of the header, field by field.

use placement::{Machine, Octant};

/// `colltune_placement_problem`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Problem {
    pub struct_size: usize,
    pub blocks: usize,
    pub costs: *const f64,
    pub ranks: u32,
    pub ranks_per_node: u32,
    pub octants: *const Octant,
    pub dimensions: u8,
    pub root_level: u8,
    pub graph_offsets: *const u64,
    pub graph_neighbours: *const u32,
    pub graph_bytes: *const u64,
    pub graph_edges: usize,
    pub owners: *const u32,
    pub blocks_per_rank_max: u32,
    pub bytes_per_block: u64,
    pub machine: *const Machine,
    pub threads: u32,
    pub reserved: u32,
    pub speeds: *const f64,
    pub matching: u32,
    pub reserved_too: u32,
    pub memory_of_blocks: *const u64,
    pub memory_of_ranks: *const u64,
}

/// Where the structure ended in the first version of the header; an older caller's is no smaller.
#[cfg(target_pointer_width = "64")]
pub const PROBLEM_SIZE_MIN: usize = 120;
#[cfg(not(target_pointer_width = "64"))]
pub const PROBLEM_SIZE_MIN: usize = std::mem::offset_of!(Problem, reserved);

/// `colltune_traffic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Traffic {
    pub messages: u64,
    pub bytes: u64,
}

/// `colltune_placement_certificate`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C)]
pub struct Certificate {
    pub struct_size: usize,
    pub makespan: f64,
    pub mean: f64,
    pub bound: f64,
    pub gap: f64,
    pub optimal: i32,
    pub contiguity: i32,
    pub blocks_per_rank_max: u32,
    pub same_rank: Traffic,
    pub same_node: Traffic,
    pub remote: Traffic,
    pub curve_score: f64,
    pub migrated_blocks: u64,
    pub migrated_bytes: u64,
    pub hash: u64,
    pub ranks_over_memory: u64,
    pub over_memory_max: u64,
}

/// Where the structure ended in the first version of the header.
pub const CERTIFICATE_SIZE_MIN: usize = 136;

/// `colltune_contact_bytes`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Contact {
    pub face: u64,
    pub edge: u64,
    pub corner: u64,
}

const _: () = assert!(size_of::<Octant>() == 16);
const _: () = assert!(size_of::<Machine>() == 32);
const _: () = assert!(size_of::<Certificate>() == CERTIFICATE_SIZE_MIN + 16);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<Problem>() == 152 && std::mem::offset_of!(Problem, speeds) == PROBLEM_SIZE_MIN
);
