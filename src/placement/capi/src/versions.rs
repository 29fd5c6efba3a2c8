//! Callers that were compiled with an older or a newer header.

use super::tests::{last_message, place, problem};
use super::*;
use crate::fence::{OK, VALUE};
use crate::layout::{CERTIFICATE_SIZE_MIN, PROBLEM_SIZE_MIN};

/// What a caller whose structure ended elsewhere has in memory: the same fields, then `behind`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Newer<T> {
    known: T,
    behind: [u64; 4],
}

#[test]
fn an_older_caller_tells_less_and_nothing_behind_its_structure_is_read_or_written() {
    let costs = [4.0, 1.0, 1.0, 1.0, 1.0];
    let speeds = [f64::NAN; 2];
    let mut given = problem(&costs, 2);
    // Behind the older structure stands whatever the caller has there.
    (given.speeds, given.matching) = (speeds.as_ptr(), 77);
    let mut owners = [9; 5];
    assert_eq!(
        place(c"lpt", &given, &mut owners),
        VALUE,
        "told by a caller of today"
    );
    given.struct_size = PROBLEM_SIZE_MIN;
    assert_eq!(place(c"lpt", &given, &mut owners), OK, "{}", last_message());
    assert_eq!(owners, [0, 1, 1, 1, 1]);
    given.struct_size = PROBLEM_SIZE_MIN - 1;
    assert_eq!(place(c"lpt", &given, &mut owners), VALUE);
    assert!(last_message().contains("struct_size"), "{}", last_message());
    given.struct_size = usize::MAX;
    assert_eq!(place(c"lpt", &given, &mut owners), VALUE);
}

#[test]
fn a_newer_caller_is_served_unless_it_sets_what_is_not_known() {
    let costs = [4.0, 1.0, 1.0, 1.0, 1.0];
    let mut newer = Newer {
        known: problem(&costs, 2),
        behind: [0; 4],
    };
    newer.known.struct_size = size_of::<Newer<Problem>>();
    let mut judged = Newer {
        known: Certificate::default(),
        behind: [7; 4],
    };
    judged.known.struct_size = size_of::<Newer<Certificate>>();
    let mut owners = [9; 5];
    // SAFETY: both structures are as large as they say.
    let mut run = |newer: &Newer<Problem>| unsafe {
        let certificate = (&raw mut judged).cast();
        let problem = (&raw const *newer).cast();
        let owners = owners.as_mut_ptr();
        colltune_placement_place(c"lpt".as_ptr(), problem, owners, 5, certificate)
    };
    assert_eq!(run(&newer), OK, "{}", last_message());
    newer.behind[3] = 1;
    assert_eq!(run(&newer), VALUE);
    assert!(
        last_message().contains("newer header"),
        "{}",
        last_message()
    );
    assert_eq!((judged.known.makespan, judged.behind), (4.0, [7; 4]));
    assert_eq!(judged.known.struct_size, size_of::<Newer<Certificate>>());
    assert_eq!(owners, [0, 1, 1, 1, 1]);
}

#[test]
fn a_certificate_is_written_as_far_as_the_caller_has_room() {
    let costs = [1.0, 2.0];
    let mut judged = Newer {
        known: Certificate::default(),
        behind: [7; 4],
    };
    judged.known.struct_size = CERTIFICATE_SIZE_MIN;
    // Behind an older caller's structure stands something of its own.
    judged.known.ranks_over_memory = 99;
    // SAFETY: the structure is as large as it says.
    let code = unsafe {
        let certificate = (&raw mut judged).cast();
        colltune_placement_certify(&problem(&costs, 2), [0, 1].as_ptr(), 2, certificate)
    };
    assert_eq!(
        (code, judged.known.makespan, judged.behind),
        (OK, 2.0, [7; 4])
    );
    assert_eq!(judged.known.ranks_over_memory, 99);
    judged.known.struct_size = 8;
    // SAFETY: as above.
    let code = unsafe {
        let certificate = (&raw mut judged).cast();
        colltune_placement_certify(&problem(&costs, 2), [0, 1].as_ptr(), 2, certificate)
    };
    assert_eq!(code, VALUE);
}

#[test]
fn speeds_and_matching_reach_the_library() {
    let costs = [1.0; 8];
    let (speeds, before) = ([3.0, 1.0], [1, 1, 1, 1, 0, 0, 0, 0]);
    let mut given = problem(&costs, 2);
    given.speeds = speeds.as_ptr();
    let mut owners = [9; 8];
    assert_eq!(place(c"contiguous-optimal", &given, &mut owners), OK);
    assert_eq!(owners, [0, 0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(place(c"round-robin", &given, &mut owners), VALUE);
    assert!(
        last_message().contains("unequal speeds"),
        "{}",
        last_message()
    );
    (given.speeds, given.owners) = (std::ptr::null(), before.as_ptr());
    for (matching, expected) in [(0, [0, 0, 0, 0, 1, 1, 1, 1]), (2, before)] {
        given.matching = matching;
        assert_eq!(place(c"contiguous", &given, &mut owners), OK);
        assert_eq!(owners, expected, "matching {matching}");
    }
    let (needs, has) = ([1; 8], [3, 5]);
    let mut with_memory = given;
    (with_memory.memory_of_blocks, with_memory.memory_of_ranks) = (needs.as_ptr(), has.as_ptr());
    assert_eq!(
        place(c"lpt", &with_memory, &mut owners),
        OK,
        "{}",
        last_message()
    );
    assert_eq!(owners.iter().filter(|&&owner| owner == 0).count(), 3);
    given.matching = 3;
    assert_eq!(place(c"contiguous", &given, &mut owners), VALUE);
}

#[test]
fn the_header_has_the_version_of_the_library() {
    let header = include_str!("../include/colltune_placement.h");
    let told = format!(
        "#define COLLTUNE_PLACEMENT_VERSION {}\n",
        colltune_placement_version()
    );
    assert!(header.contains(&told), "{told}");
}
