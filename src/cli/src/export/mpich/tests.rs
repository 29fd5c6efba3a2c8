//! The selection files, read as the library documents them.

use super::*;
use crate::export::plan::tests::{Row as Published, published};

const LIBRARY: &str = "mpich-4.0.2";
const NEWEST: &str = "mpich-5.0.2";

/// A call as the library's search sees it.
#[derive(Clone, Copy)]
struct Call {
    ranks: u64,
    ppn: u64,
    bytes: u64,
    type_size: u64,
    commutative: bool,
    built_in: bool,
    in_place: bool,
    hierarchy: &'static str,
    /// As the search reads conditions from 5.0 on.
    since_5: bool,
}

const CALL: Call = Call {
    ranks: 8,
    ppn: 8,
    bytes: 0,
    type_size: 8,
    commutative: true,
    built_in: true,
    in_place: false,
    hierarchy: "parent",
    since_5: false,
};

fn keys(text: &str) -> Vec<(String, String)> {
    // serde_json sorts keys; the order matters here, so objects are cut by hand.
    let inner = text
        .trim()
        .strip_prefix('{')
        .unwrap()
        .strip_suffix('}')
        .unwrap();
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (place, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(&inner[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    found.push(&inner[start..]);
    let split = |part: &str| {
        let (key, value) = part.split_once(':').unwrap();
        (
            key.trim().trim_matches('"').to_owned(),
            value.trim().to_owned(),
        )
    };
    found
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .map(split)
        .collect()
}

fn holds(key: &str, call: &Call, collective: &str) -> bool {
    let (name, value) = key.split_once(['=', '<']).unwrap();
    let number = || value.trim_start_matches('=').parse::<u64>().unwrap();
    let count = call.bytes / call.type_size;
    let yes_no = |is: bool| value == if is { "yes" } else { "no" };
    let below = |is: u64| {
        if key.contains("<=") {
            is <= number()
        } else {
            is < number()
        }
    };
    match (name, value) {
        ("collective", _) => value == collective,
        ("comm_type", _) => value == "intra",
        (_, "any") => true,
        ("comm_size", "pow2") => call.ranks.is_power_of_two(),
        ("comm_size", "node_comm_size") => call.ppn >= call.ranks && call.hierarchy == "parent",
        ("comm_size", _) => below(call.ranks),
        ("comm_avg_ppn", _) if call.since_5 && call.hierarchy.starts_with("node") => false,
        ("comm_avg_ppn", _) => below(call.ranks.div_ceil(call.ranks.div_ceil(call.ppn))),
        ("comm_hierarchy", _) if call.since_5 => {
            (value == "parent") == (call.hierarchy == "parent")
        }
        ("comm_hierarchy", _) => value == call.hierarchy,
        ("avg_msg_size", _) => below(call.bytes),
        ("total_msg_size", _) => below(call.bytes * call.ranks),
        ("count", "pow2") => count < 1 << call.ranks.ilog2(),
        ("is_commutative", _) => yes_no(call.commutative),
        ("is_op_built_in", _) => yes_no(call.built_in),
        ("is_sendbuf_inplace", _) => yes_no(call.in_place),
        _ => panic!("{key}"),
    }
}

fn lookup(text: &str, collective: &str, call: &Call) -> String {
    let (key, rest) = keys(text)
        .into_iter()
        .find(|(key, _)| {
            key.starts_with("algorithm=")
                || key.starts_with("composition=")
                || holds(key, call, collective)
        })
        .expect("a key that holds");
    if key.starts_with("algorithm=") || key.starts_with("composition=") {
        key.rsplit_once("_intra_").unwrap().1.to_owned()
    } else {
        lookup(&rest, collective, call)
    }
}

fn table(rows: &[Published], shape: Option<JobShape>) -> (Files, Notes) {
    table_of(LIBRARY, rows, shape)
}

fn table_of(library: &str, rows: &[Published], shape: Option<JobShape>) -> (Files, Notes) {
    let mut notes = Notes::default();
    let published = published(library, rows);
    let files = files(&published, library.parse().unwrap(), shape, &mut notes).unwrap();
    (files, notes)
}

#[test]
fn every_boundary_is_kept_at_both_sides_and_the_rest_is_the_librarys_own() {
    for library in [LIBRARY, "mpich-4.3.2", NEWEST] {
        every_boundary_is_kept(library);
    }
}

fn every_boundary_is_kept(library: &str) {
    let any = (1, None);
    let call = Call {
        since_5: library == NEWEST,
        ..CALL
    };
    let (files, _) = table_of(
        library,
        &[
            (Collective::Bcast, (0, Some(1024)), any, any, "default"),
            (
                Collective::Bcast,
                (1024, Some(4096)),
                any,
                any,
                "native:scatter_ring_allgather",
            ),
            (Collective::Bcast, (4096, None), any, any, "native:binomial"),
            (
                Collective::Allgather,
                (0, Some(512)),
                any,
                any,
                "native:ring",
            ),
            (Collective::Allgather, (512, None), any, any, "default"),
        ],
        None,
    );
    let (untouched, _) = table_of(library, &[], None);
    for ranks in [2, 3, 8, 100, 512] {
        let bcast = |text: &str, bytes| {
            lookup(
                text,
                "bcast",
                &Call {
                    ranks,
                    ppn: ranks,
                    bytes,
                    ..call
                },
            )
        };
        assert_eq!(bcast(&files.mpir, 1023), bcast(&untouched.mpir, 1023));
        assert_eq!(bcast(&files.ch4, 1023), bcast(&untouched.ch4, 1023));
        for (bytes, name) in [
            (1024, "scatter_ring_allgather"),
            (4095, "scatter_ring_allgather"),
            (4096, "binomial"),
        ] {
            assert_eq!(bcast(&files.mpir, bytes), name, "{ranks}");
            assert_eq!(bcast(&files.ch4, bytes), "composition_gamma");
        }
        let gather = |text: &str, bytes| {
            lookup(
                text,
                "allgather",
                &Call {
                    ranks,
                    ppn: ranks,
                    bytes,
                    ..call
                },
            )
        };
        assert_eq!(
            [gather(&files.mpir, 0), gather(&files.mpir, 511)],
            ["ring", "ring"]
        );
        for bytes in [512, 1 << 12, 1 << 20] {
            assert_eq!(gather(&files.mpir, bytes), gather(&untouched.mpir, bytes));
        }
        let part = Call {
            ranks,
            ppn: 1,
            bytes: 2048,
            hierarchy: "node_roots",
            ..call
        };
        assert_eq!(
            lookup(&files.mpir, "bcast", &part),
            lookup(&untouched.mpir, "bcast", &part)
        );
    }
}

#[test]
fn needs_are_asked_for_and_fall_back_to_the_librarys_own() {
    let any = (1, None);
    let (files, _) = table(
        &[
            (
                Collective::Allreduce,
                (0, Some(4096)),
                any,
                any,
                "native:reduce_scatter_allgather",
            ),
            (Collective::Allreduce, (4096, None), any, any, "native:smp"),
            (
                Collective::Allgather,
                (0, None),
                any,
                any,
                "native:recursive_doubling",
            ),
            (Collective::Alltoall, (0, None), any, any, "native:brucks"),
        ],
        None,
    );
    let (untouched, _) = table(&[], None);
    let at = |call: Call| lookup(&files.mpir, "allreduce", &call);
    let own = |call: Call| lookup(&untouched.mpir, "allreduce", &call);
    let small = Call { bytes: 64, ..CALL };
    assert_eq!(at(small), "reduce_scatter_allgather");
    for call in [
        Call { bytes: 56, ..CALL },
        Call {
            built_in: false,
            ..small
        },
    ] {
        assert_eq!(at(call), own(call));
    }
    let large = Call {
        ppn: 2,
        bytes: 4096,
        ..CALL
    };
    assert_eq!(at(large), "smp");
    for call in [
        Call { ppn: 8, ..large },
        Call {
            commutative: false,
            ..large
        },
        Call {
            hierarchy: "flat",
            ..large
        },
    ] {
        assert_eq!(at(call), own(call));
    }
    assert_eq!(
        lookup(&files.mpir, "allgather", &CALL),
        "recursive_doubling"
    );
    let six = Call { ranks: 6, ..CALL };
    assert_eq!(
        lookup(&files.mpir, "allgather", &six),
        lookup(&untouched.mpir, "allgather", &six)
    );
    assert_eq!(
        lookup(
            &files.mpir,
            "alltoall",
            &Call {
                bytes: 100_000,
                ..CALL
            }
        ),
        "brucks"
    );
    assert_eq!(
        lookup(
            &files.mpir,
            "alltoall",
            &Call {
                in_place: true,
                ..CALL
            }
        ),
        "pairwise_sendrecv_replace"
    );
}

#[test]
fn nodes_and_ranks_per_node_are_told_apart() {
    let rows = [
        (
            Collective::Bcast,
            (0, None),
            (1, Some(2)),
            (1, None),
            "native:binomial",
        ),
        (
            Collective::Bcast,
            (0, None),
            (2, Some(5)),
            (1, Some(3)),
            "native:scatter_ring_allgather",
        ),
        (
            Collective::Bcast,
            (0, None),
            (2, Some(5)),
            (3, None),
            "default",
        ),
        (
            Collective::Bcast,
            (0, None),
            (5, None),
            (1, None),
            "native:scatter_recursive_doubling_allgather",
        ),
    ];
    let (files, notes) = table(&rows, None);
    assert!(notes.exported.contains("bcast"));
    let at = |ranks, ppn| {
        lookup(
            &files.ch4,
            "bcast",
            &Call {
                ranks,
                ppn,
                bytes: 100,
                ..CALL
            },
        )
    };
    let algorithm = |ranks, ppn| {
        lookup(
            &files.mpir,
            "bcast",
            &Call {
                ranks,
                ppn,
                bytes: 100_000,
                ..CALL
            },
        )
    };
    assert_eq!(algorithm(8, 8), "binomial");
    assert_eq!(algorithm(8, 2), "scatter_ring_allgather");
    assert_eq!(at(8, 4), "composition_alpha");
    assert_eq!(algorithm(8, 1), "scatter_recursive_doubling_allgather");
    let (files, _) = table(&rows, Some(JobShape { nodes: 2, ppn: 2 }));
    assert_eq!(
        lookup(
            &files.mpir,
            "bcast",
            &Call {
                ranks: 2,
                ppn: 2,
                bytes: 9,
                ..CALL
            }
        ),
        "binomial"
    );
    assert_eq!(
        lookup(
            &files.mpir,
            "bcast",
            &Call {
                ranks: 4,
                ppn: 2,
                bytes: 9,
                ..CALL
            }
        ),
        "scatter_ring_allgather"
    );
    assert_eq!(
        lookup(
            &files.ch4,
            "bcast",
            &Call {
                ranks: 8,
                ppn: 8,
                bytes: 9,
                ..CALL
            }
        ),
        "composition_alpha"
    );
}

#[test]
fn without_winners_the_files_are_the_librarys_own_trees() {
    for library in [LIBRARY, "mpich-4.1.0", NEWEST] {
        let (files, notes) = table_of(library, &[], None);
        assert!(notes.exported.is_empty());
        for (text, level) in [(&files.mpir, Level::Mpir), (&files.ch4, Level::Ch4)] {
            let leaves =
                text.matches("\"algorithm=").count() + text.matches("\"composition=").count();
            assert_eq!(leaves, rows_of(library.parse().unwrap(), level).len());
            serde_json::from_str::<serde_json::Value>(text).unwrap();
        }
        let dissemination = match library {
            LIBRARY => "\"algorithm=MPIR_Barrier_intra_dissemination\": {}",
            _ => "\"algorithm=MPIR_Barrier_intra_k_dissemination\": {\"k=2\": {}}",
        };
        assert!(files.mpir.contains(dissemination), "{}", files.mpir);
    }
}

#[test]
fn a_version_whose_own_tree_is_not_known_is_refused() {
    for library in ["mpich-3.4.3", "mpich-5.1.0"] {
        let state = published(library, &[]);
        let Err(error) = super::files(
            &state,
            library.parse().unwrap(),
            None,
            &mut Notes::default(),
        ) else {
            panic!("{library} is exported")
        };
        assert!(error.to_string().contains("MPICH 4.0 to 5.0"), "{error}");
    }
}

#[test]
fn the_settings_of_an_algorithm_stand_with_it_and_what_cannot_be_said_is_left_out() {
    let any = (1, None);
    let all = (0, None);
    let winners = [
        (Collective::Bcast, all, any, any, "native:pipelined_tree"),
        (
            Collective::Allreduce,
            all,
            any,
            any,
            "native:recursive_multiplying",
        ),
        (Collective::Barrier, all, any, any, "native:recexch"),
    ];
    let (files, notes) = table_of(NEWEST, &winners, None);
    for text in [
        "\"algorithm=MPIR_Bcast_intra_pipelined_tree\": {\"tree_type=kary\": {}, \"k=2\": {}, \
         \"is_non_blocking=1\": {}, \"chunk_size=8192\": {}, \"recv_pre_posted=0\": {}}",
        "\"algorithm=MPIR_Allreduce_intra_recursive_multiplying\": {\"k=2\": {}}",
    ] {
        assert!(files.mpir.contains(text), "{}", files.mpir);
    }
    assert!(!files.mpir.contains("recexch"), "{}", files.mpir);
    let (older, _) = table_of("mpich-4.2.3", &winners[..1], None);
    let numbered = "\"algorithm=MPIR_Bcast_intra_pipelined_tree\": {\"tree_type=0\": {}";
    assert!(older.mpir.contains(numbered), "{}", older.mpir);
    let [note] = &notes.replaced[..] else {
        panic!("{:?}", notes.replaced)
    };
    assert_eq!(
        (note.winner.as_str(), note.instead.as_str()),
        ("native:recexch", "default")
    );
}

#[test]
fn the_files_stay_as_their_golden_copies() {
    let (files, _) = table(
        &[
            (
                Collective::Allreduce,
                (0, Some(4096)),
                (1, None),
                (1, None),
                "default",
            ),
            (
                Collective::Allreduce,
                (4096, None),
                (1, None),
                (1, None),
                "native:recursive_doubling",
            ),
            (
                Collective::Allgather,
                (0, Some(512)),
                (1, None),
                (1, None),
                "native:ring",
            ),
            (
                Collective::Allgather,
                (512, None),
                (1, None),
                (1, None),
                "default",
            ),
        ],
        Some(JobShape { nodes: 1, ppn: 3 }),
    );
    crate::golden::check("export/mpich-mpir.json", &files.mpir);
    crate::golden::check("export/mpich-ch4.json", &files.ch4);
}
