//! What each row of the validation runs, fixed before it is run, and the file that its findings go to.

/// What the names of these files begin with.
pub const FILE: &str = "emulate-validate";
/// The version of their JSON.
pub const SCHEMA: u32 = 6;

/// The name of a row's file, or of the one for what was asked without a row.
pub(super) fn file(row: Option<&str>) -> String {
    match row {
        Some(row) => format!("{FILE}-{}.json", row.to_lowercase()),
        None => format!("{FILE}.json"),
    }
}

/// A row: ranks, place, decks and policies. Empty: as the options' own defaults say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protocol {
    pub(super) name: &'static str,
    pub(super) ranks: usize,
    pub(super) cluster: bool,
    pub(super) decks: &'static [&'static str],
    pub(super) policies: &'static [&'static str],
    pub(super) scaling: &'static [usize],
    /// Ranks on each node of the test cluster, one layout after another.
    pub(super) ranks_per_node: &'static [u32],
}

const ON_NODE: Protocol = Protocol {
    name: "V1",
    ranks: 2,
    cluster: false,
    decks: &[],
    policies: &[],
    scaling: &[],
    ranks_per_node: &[],
};

/// V5 (counts), V6 (phases) and V9 (messages alone) are judged in every run; here in those of V1. V7, pairs of a policy
/// and an allreduce, are the benches `levers-*`.
pub(super) const PROTOCOLS: [Protocol; 8] = [
    ON_NODE,
    Protocol {
        name: "V2",
        ranks: 8,
        cluster: true,
        ..ON_NODE
    },
    Protocol {
        name: "V3",
        ranks: 4,
        cluster: true,
        ranks_per_node: &[2, 1],
        ..ON_NODE
    },
    Protocol {
        name: "V4",
        ranks: 8,
        cluster: true,
        decks: &["sedov-512"],
        policies: &["contiguous", "lpt"],
        ..ON_NODE
    },
    Protocol {
        name: "V5",
        ..ON_NODE
    },
    Protocol {
        name: "V6",
        ..ON_NODE
    },
    Protocol {
        name: "V8",
        decks: &["four-spheres"],
        policies: &["contiguous"],
        scaling: &[1, 2, 4, 8],
        ..ON_NODE
    },
    Protocol {
        name: "V9",
        ..ON_NODE
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_file_of_its_own() {
        assert_eq!(file(Some("V1")), "emulate-validate-v1.json");
        assert_eq!(file(None), "emulate-validate.json");
        let files = PROTOCOLS.map(|row| file(Some(row.name)));
        let mut once = files.to_vec();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), files.len());
    }

    #[test]
    fn four_ranks_lie_on_two_nodes_and_on_four() {
        let row = PROTOCOLS.iter().find(|row| row.name == "V3").unwrap();
        let nodes = row.ranks_per_node.iter().map(|n| row.ranks as u32 / n);
        assert_eq!(nodes.collect::<Vec<_>>(), [2, 4]);
        for row in PROTOCOLS.iter().filter(|row| !row.cluster) {
            assert!(row.ranks_per_node.is_empty(), "{row:?}");
        }
    }
}
