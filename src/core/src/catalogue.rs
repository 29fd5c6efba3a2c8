//! The catalogue: every variant of every collective, in one table per MPI library.
//!
//! A new algorithm is one row; those of our own have theirs in [`registry`], for every library
//! alike. Ids, names and restrictions are those of the libraries' sources:
//! Open MPI `ompi/mca/coll/tuned` and `coll/base` (4.1.4, 5.0), MPICH `src/mpi/coll/coll_algorithms.txt`
//! (4.0 to 5.0); Intel MPI has its documentation. A restriction stands here wherever the library would silently run something else, so
//! that a silent fallback never labels a sample.

mod need;
pub use need::{Facts, Need};

mod own;
pub use own::{Carriers, OnNodes, Own, Scheduled};

mod intel;
mod mpich;
mod openmpi;

use crate::collective::Collective;
use crate::library::{Library, Product};
use crate::variant::{DEFAULT, Family, VariantName};

/// How the library is told to run a native variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// Nothing to tell.
    None,
    /// `coll_tuned_<collective>_algorithm`, captured when a communicator is made.
    OpenMpi {
        algorithm: i32,
        /// The algorithm runs other collectives of the same communicator inside, so no other
        /// collective may be steered on the communicator that carries it.
        alone: bool,
    },
    /// `MPIR_CVAR_<COLLECTIVE>_INTRA_ALGORITHM`, read at each call, by the name of its value.
    Mpich { algorithm: &'static str },
    /// `I_MPI_ADJUST_<COLLECTIVE>`, read when a job starts, by the number of its preset.
    Intel { preset: u16 },
}

/// One way to run one collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub collective: Collective,
    pub name: VariantName,
    pub steering: Steering,
    /// What runs it where it is none of the library's algorithms.
    pub own: Option<Own>,
    pub needs: Vec<Need>,
}

impl Variant {
    /// The first need that a call does not meet; `None` when the variant applies.
    pub fn unmet(&self, facts: &Facts) -> Option<Need> {
        let segsize = self.name.segsize.unwrap_or(0);
        if self.name.family != Family::Default && facts.n_ranks < 2 {
            return Some(Need::TwoRanks);
        }
        self.needs
            .iter()
            .copied()
            .find(|need| !need.met(facts, segsize))
    }

    pub fn applies(&self, facts: &Facts) -> bool {
        self.unmet(facts).is_none()
    }

    /// Whether some call with at most `bytes_max` bytes on `n_ranks` ranks of `nodes` nodes could
    /// run this variant. No need becomes unmet when a message grows, so the largest decides.
    pub fn possible(&self, n_ranks: u32, nodes: u32, bytes_max: u64) -> bool {
        [false, true].into_iter().any(|in_place| {
            self.applies(&Facts {
                n_ranks,
                nodes,
                message_bytes: bytes_max,
                count: Some(bytes_max),
                commutative: true,
                builtin_op: true,
                in_place,
                ranks_by_node: true,
                equal_blocks: true,
                plain_elements: true,
            })
        })
    }
}

/// Every variant of `collective` that `library` can run, `default` first.
pub fn variants(library: Library, collective: Collective) -> Vec<Variant> {
    let default = Variant {
        collective,
        name: VariantName::default_choice(),
        steering: Steering::None,
        own: None,
        needs: Vec::new(),
    };
    let native = match library.product {
        Product::OpenMpi => openmpi::variants(library, collective),
        Product::Mpich => mpich::variants(library, collective),
        Product::Intel => intel::variants(collective),
    };
    std::iter::once(default)
        .chain(native)
        .chain(own::variants(collective))
        .collect()
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
        assert!(applies("native:ring", facts()));
        assert!(!applies(
            "native:ring",
            Facts {
                count: Some(7),
                ..facts()
            }
        ));
        assert!(!applies(
            "native:ring",
            Facts {
                commutative: false,
                ..facts()
            }
        ));
        assert!(applies(
            "native:rabenseifner",
            Facts {
                n_ranks: 7,
                count: Some(4),
                ..facts()
            }
        ));
        assert!(!applies(
            "native:rabenseifner",
            Facts {
                n_ranks: 7,
                count: Some(3),
                ..facts()
            }
        ));
        assert!(!applies(
            "native:segmented_ring:segsize=64KiB",
            Facts {
                message_bytes: 8 * 65536 - 1,
                ..facts()
            }
        ));
        assert!(applies(
            "native:segmented_ring:segsize=64KiB",
            Facts {
                message_bytes: 8 * 65536,
                ..facts()
            }
        ));
        let bcast = Facts {
            count: None,
            ..facts()
        };
        assert!(!applies("native:pipeline:segsize=4KiB", bcast));
        assert!(applies(
            "native:pipeline:segsize=4KiB",
            Facts {
                message_bytes: 4097,
                ..bcast
            }
        ));
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
