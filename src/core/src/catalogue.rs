//! The catalogue: every variant of every collective, in one table per MPI library.
//!
//! A new algorithm is one row; those of our own have theirs in [`registry`](crate::algorithm::registry), for
//! every library alike. Ids, names and restrictions are those of the libraries' sources: Open MPI
//! `ompi/mca/coll/tuned` and `coll/base` (4.1.4, 5.0), MPICH `src/mpi/coll/coll_algorithms.txt` (4.0 to 5.0);
//! Intel MPI has its documentation. A restriction stands here wherever the library would silently run
//! something else, so that a silent fallback never labels a sample.

mod variant;
pub use variant::{FOLDED_MOST, Own, Steering, Variant};

mod intel;
mod mpich;
pub use mpich::left_out;
mod openmpi;

mod own;

pub use crate::algorithm::registry::Scheduled;
pub use crate::need::{FEW_RANKS, Facts, Need, Unmet};
pub use crate::node::between::Carriers;
pub use crate::node::on_nodes::{Crossing, OnNodes};

use crate::collective::Collective;
use crate::library::{Library, Product};
use crate::variant::{DEFAULT, VariantName};

/// Every variant of `collective` that `library` can run, `default` first.
pub fn variants(library: Library, collective: Collective) -> Vec<Variant> {
    let default = Variant::named(collective, VariantName::default_choice());
    let native = match library.product {
        Product::OpenMpi => openmpi::variants(collective),
        Product::Mpich => mpich::variants(library, collective),
        Product::Intel => intel::variants(collective),
        Product::Cray | Product::Mvapich => Vec::new(),
    };
    let own = own::variants(collective);
    std::iter::once(default).chain(native).chain(own).collect()
}

/// Every variant of every collective that `library` can run.
pub fn all(library: Library) -> Vec<Variant> {
    Collective::ALL
        .into_iter()
        .flat_map(|collective| variants(library, collective))
        .collect()
}

/// The variant of that name, if `library` has it.
pub fn find(library: Library, collective: Collective, name: &str) -> Option<Variant> {
    variants(library, collective)
        .into_iter()
        .find(|variant| variant.name.to_string() == name)
}

/// Whether `name` is the library's own choice.
pub fn is_default(name: &str) -> bool {
    name == DEFAULT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Family;
    use Collective::{Allreduce, Bcast};

    fn libraries() -> [Library; 5] {
        [
            "openmpi-4.1.4",
            "openmpi-5.0.11",
            "mpich-4.0.2",
            "mpich-5.0.2",
            "intel-2021.19.0",
        ]
        .map(|key| key.parse().unwrap())
    }

    fn facts() -> Facts {
        Facts::usual(Collective::Allreduce, 4096, 8, 4)
    }

    #[test]
    fn names_are_unique_readable_and_begin_with_default() {
        for library in libraries() {
            for collective in Collective::ALL {
                let variants = variants(library, collective);
                assert!(is_default(&variants[0].name.to_string()));
                let names: std::collections::BTreeSet<_> =
                    variants.iter().map(|v| v.name.to_string()).collect();
                assert_eq!(names.len(), variants.len());
                for variant in &variants {
                    assert_eq!(
                        variant.name.to_string().parse::<VariantName>().unwrap(),
                        variant.name
                    );
                    assert_eq!(
                        find(library, collective, &variant.name.to_string()).as_ref(),
                        Some(variant)
                    );
                }
            }
        }
    }

    #[test]
    fn the_default_applies_to_every_call_and_natives_to_none_on_one_rank() {
        for library in libraries() {
            for variant in all(library) {
                let lone = Facts {
                    n_ranks: 1,
                    nodes: 1,
                    ..facts()
                };
                assert_eq!(
                    variant.applies(&lone),
                    variant.name.family == Family::Default
                );
            }
        }
    }

    #[test]
    fn nothing_of_intel_contains_its_reduce() {
        let [.., intel] = libraries();
        let faulty = |variant: &Variant| {
            let name = &variant.name;
            name.family == Family::Native && name.algorithm.contains("reduce+")
        };
        let all = all(intel);
        assert!(!all.iter().any(faulty));
        // Tables name presets by number.
        let presets = |collective| {
            let of = all.iter().filter(move |one| one.collective == collective);
            of.filter_map(|one| match one.steering {
                Steering::Intel { preset } => Some(preset),
                _ => None,
            })
        };
        assert!(presets(Allreduce).all(|preset| ![3, 4].contains(&preset)));
        assert!(presets(Collective::ReduceScatter).all(|preset| ![4, 5].contains(&preset)));
    }

    #[test]
    fn between_nodes_the_nodes_and_the_shortest_share_are_what_counts() {
        let unmet = |collective, name: &str, facts: Facts| {
            let variant = find(libraries()[0], collective, name).expect("it is there");
            variant.unmet(&facts)
        };
        // One rank of each node takes part, and a schedule may need that these are few.
        let of_nodes = |nodes| Facts {
            n_ranks: 4 * nodes,
            nodes,
            count: None,
            ..facts()
        };
        let name = "node:shm+gather_scatter:radix=2";
        let alltoall = |nodes| unmet(Collective::Alltoall, name, of_nodes(nodes));
        assert_eq!(alltoall(2), None);
        assert_eq!(alltoall(FEW_RANKS + 1), Some(Unmet::Across(Need::FewRanks)));
        assert_eq!(alltoall(1), Some(Unmet::Call(Need::Hierarchy)));
        assert_eq!(unmet(Allreduce, "node:lanes+default", facts()), None);
        let text = Unmet::Across(Need::EvenRanks).to_string();
        assert_eq!(text, "an even number of ranks between the nodes");
    }

    #[test]
    fn needs_are_total_and_mean_what_they_say() {
        let applies = |name: &str, facts: Facts| {
            let library = libraries()[0];
            let collective = if facts.count.is_some() {
                Allreduce
            } else {
                Bcast
            };
            find(library, collective, name).unwrap().applies(&facts)
        };
        let counted = |count, n_ranks| Facts {
            n_ranks,
            count: Some(count),
            ..facts()
        };
        let of_bytes = |message_bytes, count| Facts {
            message_bytes,
            count,
            ..facts()
        };
        let in_order = Facts {
            commutative: false,
            ..facts()
        };
        let usual = facts().count;
        for (name, facts, expected) in [
            ("native:ring", facts(), true),
            ("native:ring", counted(7, 8), false),
            ("native:ring", in_order, false),
            ("native:rabenseifner", counted(4, 7), true),
            ("native:rabenseifner", counted(3, 7), false),
            (
                "native:segmented_ring:segsize=64KiB",
                of_bytes(8 * 65536 - 1, usual),
                false,
            ),
            (
                "native:segmented_ring:segsize=64KiB",
                of_bytes(8 * 65536, usual),
                true,
            ),
            ("native:pipeline:segsize=4KiB", of_bytes(4096, None), false),
            ("native:pipeline:segsize=4KiB", of_bytes(4097, None), true),
        ] {
            assert_eq!(applies(name, facts), expected, "{name} {facts:?}");
        }
        for n_ranks in [0, 1, 2, u32::MAX] {
            for value in [0, 1, u64::MAX] {
                let facts = Facts {
                    n_ranks,
                    message_bytes: value,
                    count: Some(value),
                    ..facts()
                };
                for library in libraries() {
                    for variant in all(library) {
                        let _ = variant.applies(&facts);
                    }
                }
            }
        }
    }
}
