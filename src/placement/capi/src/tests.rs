//! The border under random and hostile arguments.

use super::*;
use crate::fence::{INTERNAL, NAME, NEEDS, NULL, OK, VALUE};
use placement::generate::Random;
use placement::{Link, Machine};
use std::ptr::{null, null_mut};

pub(crate) fn problem(costs: &[f64], ranks: u32) -> Problem {
    Problem {
        struct_size: size_of::<Problem>(),
        blocks: costs.len(),
        costs: costs.as_ptr(),
        ranks,
        ranks_per_node: 0,
        octants: null(),
        dimensions: 0,
        root_level: 0,
        graph_offsets: null(),
        graph_neighbours: null(),
        graph_bytes: null(),
        graph_edges: 0,
        owners: null(),
        blocks_per_rank_max: 0,
        bytes_per_block: 0,
        machine: null(),
        threads: 0,
        reserved: 0,
        speeds: null(),
        matching: 0,
        reserved_too: 0,
        memory_of_blocks: null(),
        memory_of_ranks: null(),
    }
}

pub(crate) fn place(policy: &CStr, problem: &Problem, owners: &mut [u32]) -> c_int {
    // SAFETY: all pointers come from live Rust values of the lengths given.
    unsafe {
        colltune_placement_place(
            policy.as_ptr(),
            problem,
            owners.as_mut_ptr(),
            owners.len(),
            null_mut(),
        )
    }
}

pub(crate) fn last_message() -> String {
    // SAFETY: the message is a string until this thread's next call.
    unsafe { CStr::from_ptr(colltune_placement_message()) }
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn wrong_arguments_have_codes_and_messages_and_write_nothing() {
    let costs = [1.0, 2.0, 3.0];
    let good = problem(&costs, 2);
    let mut owners = [77; 3];
    assert_eq!(place(c"no-such", &good, &mut owners), NAME);
    assert!(last_message().contains("no-such") && last_message().contains("lpt"));
    assert_eq!(place(c"cplx:101", &good, &mut owners), NAME);
    assert_eq!(place(c"cplx:auto", &good, &mut owners), NEEDS);
    assert_eq!(place(c"lpt", &good, &mut owners[..2]), VALUE);
    let nan = [1.0, f64::NAN, 3.0];
    assert_eq!(place(c"lpt", &problem(&nan, 2), &mut owners), VALUE);
    assert!(last_message().contains("block 1"), "{}", last_message());
    assert_eq!(place(c"lpt", &problem(&costs, 0), &mut owners), VALUE);
    let lying = Problem {
        blocks: usize::MAX,
        ..good
    };
    assert_eq!(place(c"lpt", &lying, &mut owners), VALUE);
    let foreign = Problem {
        struct_size: 8,
        ..good
    };
    assert_eq!(place(c"lpt", &foreign, &mut owners), VALUE);
    let absent = Problem {
        costs: null(),
        ..good
    };
    assert_eq!(place(c"lpt", &absent, &mut owners), NULL);
    // SAFETY: null is what is tested; the other pointers are valid.
    unsafe {
        assert_eq!(
            colltune_placement_place(null(), &good, owners.as_mut_ptr(), 3, null_mut()),
            NULL
        );
        assert_eq!(
            colltune_placement_place(c"lpt".as_ptr(), null(), null_mut(), 0, null_mut()),
            NULL
        );
        assert_eq!(
            colltune_placement_place(c"lpt".as_ptr(), &good, null_mut(), 3, null_mut()),
            NULL
        );
        assert_eq!(
            colltune_placement_certify(&good, owners.as_ptr(), 3, null_mut()),
            NULL
        );
        assert_eq!(colltune_placement_hash(null(), 3), 0);
        assert_eq!(
            colltune_placement_place(c"\xff".as_ptr(), &good, owners.as_mut_ptr(), 3, null_mut()),
            VALUE
        );
    }
    assert_eq!(owners, [77; 3]);
    assert_eq!(place(c"lpt", &good, &mut owners), OK);
    assert_eq!((owners, last_message().as_str()), ([1, 1, 0], ""));
}

#[test]
fn a_panic_becomes_a_code() {
    assert_eq!(fence(|| panic!("on purpose")), INTERNAL);
    assert!(last_message().contains("on purpose"));
}

#[test]
fn policies_are_listed_to_the_end() {
    let n = placement::policy::TABLE.len();
    assert!(!colltune_placement_policy(n - 1).is_null());
    assert!(
        colltune_placement_policy(n).is_null() && colltune_placement_policy(usize::MAX).is_null()
    );
}

/// A number that is often at an edge.
fn odd(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.below(8) as u64,
        1 => [u64::MAX, 1 << 63, 1 << 32, u64::from(u32::MAX), 1 << 21][random.below(5)],
        _ => random.bits() >> random.below(64),
    }
}

/// The functions that judge, limit and order, with the same arguments: a code each, and no panic.
fn others(random: &mut Random, given: &Problem, owners: &[u32], octants: &[Octant]) {
    let n = owners.len();
    let mut certificate = Certificate {
        struct_size: size_of::<Certificate>(),
        ..Certificate::default()
    };
    let mut limited = vec![u32::MAX; n];
    let mut keys = vec![u64::MAX; n];
    let keep = f64::from_bits(random.bits());
    let keep = [0.0, 0.5, 1.0, keep][random.below(4)];
    let curve = [c"morton", c"hilbert", c"peano", c"\xff"][random.below(4)];
    let dimensions = [2, 3, odd(random) as u8][random.below(3)];
    let (blocks_max, bytes_max) = (odd(random), odd(random));
    // SAFETY: all pointers come from live Rust values of the lengths given, or were made null.
    let codes = unsafe {
        [
            colltune_placement_certify(given, owners.as_ptr(), n, &mut certificate),
            colltune_placement_limit_migration(
                given,
                owners.as_ptr(),
                n,
                keep,
                blocks_max,
                bytes_max,
                limited.as_mut_ptr(),
            ),
            colltune_placement_keys(
                curve.as_ptr(),
                dimensions,
                octants.as_ptr(),
                n,
                keys.as_mut_ptr(),
            ),
        ]
    };
    for code in codes {
        assert!((OK..INTERNAL).contains(&code), "{}", last_message());
    }
    assert!(codes[1] != OK || limited.iter().all(|&owner| owner < given.ranks));
    assert!(codes[2] == OK || keys.iter().all(|&key| key == u64::MAX));
}

#[test]
fn random_and_hostile_arguments_are_answered() {
    let mut random = Random::new(99);
    let names: Vec<CString> = placement::policy::TABLE
        .iter()
        .flat_map(|row| {
            ["", ":50", ":auto", ":max=3", ":2", ":lpt", ":x"].map(|a| format!("{}{a}", row.name))
        })
        .map(|name| CString::new(name).unwrap())
        .collect();
    let mut codes = [0; 7];
    for case in 0..20_000 {
        let n = random.below(12);
        let hostile = case % 2 == 1;
        let cost = |random: &mut Random| match random.below(20) {
            0 if hostile => f64::from_bits(random.bits()),
            1 => 0.0,
            _ => random.unit(),
        };
        let costs: Vec<f64> = (0..n).map(|_| cost(&mut random)).collect();
        let octants: Vec<Octant> = (0..n)
            .map(|i| match hostile && random.below(6) == 0 {
                true => Octant::new(
                    odd(&mut random) as u32,
                    odd(&mut random) as u32,
                    0,
                    odd(&mut random) as u8,
                ),
                false => Octant::new((i as u32) << 17, 0, 0, 4),
            })
            .collect();
        let edges = n.saturating_sub(1);
        let mut offsets: Vec<u64> = (0..=n).map(|i| i.min(edges) as u64).collect();
        let mut neighbours: Vec<u32> = (1..=edges as u32).collect();
        let mut owners: Vec<u32> = (0..n).map(|_| random.below(3) as u32).collect();
        if hostile && n > 1 {
            let at = random.below(n);
            match random.below(4) {
                0 => offsets[at] = odd(&mut random),
                1 => neighbours[at % edges] = odd(&mut random) as u32,
                2 => owners[at] = odd(&mut random) as u32,
                _ => {}
            }
        }
        let bytes = vec![8; edges];
        let link = |random: &mut Random| Link {
            latency: cost(random),
            per_byte: cost(random),
        };
        let machine = Machine {
            same_node: link(&mut random),
            remote: link(&mut random),
        };
        let mut given = problem(&costs, 1 + random.below(9) as u32);
        let mut some = |likely: bool| likely && random.below(4) > 0;
        if some(true) {
            (given.octants, given.dimensions, given.root_level) = (octants.as_ptr(), 3, 0);
        }
        if some(true) {
            given.graph_offsets = offsets.as_ptr();
            given.graph_neighbours = if some(hostile) {
                null()
            } else {
                neighbours.as_ptr()
            };
            (given.graph_bytes, given.graph_edges) = (bytes.as_ptr(), edges);
        }
        if some(true) {
            given.owners = owners.as_ptr();
        }
        if some(true) {
            given.machine = &machine;
        }
        if hostile {
            given.dimensions = if some(true) {
                3
            } else {
                odd(&mut random) as u8
            };
            given.root_level = (odd(&mut random) >> 62) as u8;
            given.ranks_per_node = odd(&mut random) as u32;
            given.bytes_per_block = odd(&mut random);
            given.blocks_per_rank_max = random.below(12) as u32;
            given.threads = random.below(4) as u32;
            if random.below(10) == 0 {
                given.ranks = [random.below(3_000) as u32, u32::MAX, 1 << 31][random.below(3)];
            }
        }
        let policy = &names[random.below(names.len())];
        let mut found = vec![u32::MAX; n];
        let code = place(policy, &given, &mut found);
        assert!(
            (OK..INTERNAL).contains(&code),
            "case {case}, {policy:?}: {}",
            last_message()
        );
        codes[code as usize] += 1;
        match code == OK {
            true => {
                assert!(found.iter().all(|&owner| owner < given.ranks) && last_message().is_empty())
            }
            false => assert!(found.iter().all(|&o| o == u32::MAX) && !last_message().is_empty()),
        }
        others(&mut random, &given, &owners, &octants);
    }
    assert!(
        codes[OK as usize] > 1_000 && codes[VALUE as usize] > 1_000,
        "{codes:?}"
    );
    assert!(
        codes[NAME as usize] > 1_000 && codes[NEEDS as usize] > 20,
        "{codes:?}"
    );
}
