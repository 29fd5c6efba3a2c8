//! What of a library's algorithms may be drawn at all, before any training and after it.
//!
//! A training knows the sizes that it saw. What was the best on forty ranks, or cost nothing to try there, may
//! send everything through one port on thousands, in the same cell. So each communicator bounds by
//! [`shape`](crate::shape) what is drawn in its cells; what is forced is not bound.

use crate::catalogue::Variant;
use crate::need::{Facts, Need};
use crate::shape::{ABSURD, Load};
use crate::space::Range;

/// Among so many ranks nothing is absurd.
const FEW_RANKS: u32 = 16;

/// For each of one collective's variants whether it costs more than [`ABSURD`] times what another of the library's
/// algorithms does that could run instead, on a communicator of so many ranks, at both ends of a range of sizes.
pub fn absurd(variants: &[Variant], n_ranks: u32, bytes: Range) -> Vec<bool> {
    // Most communicators are small, and programs that make many want them at once.
    if n_ranks <= FEW_RANKS {
        return vec![false; variants.len()];
    }
    absurd_of_any(variants, n_ranks, bytes)
}

fn absurd_of_any(variants: &[Variant], n_ranks: u32, bytes: Range) -> Vec<bool> {
    let sizes = ends(bytes);
    let loads: Vec<Option<[Load; 2]>> = variants
        .iter()
        .map(|variant| loads(variant, n_ranks, sizes))
        .collect();
    let factor = |_: &Variant| ABSURD;
    beyond_others(variants, &loads, factor, [n_ranks; 2], sizes[0])
}

/// For each variant whether its load is more than its factor times that of another that could run instead, with so
/// many ranks, the fewest and the most, and so many bytes or more.
pub(crate) fn beyond_others(
    variants: &[Variant],
    loads: &[Option<[Load; 2]>],
    factor: impl Fn(&Variant) -> f64,
    ranks: [u32; 2],
    bytes: u64,
) -> Vec<bool> {
    // Most are not even beyond the least of all others, which spares a comparison with each.
    let least = loads.iter().flatten().copied().reduce(least_of_both);
    let is_beyond_another = |place: usize| {
        let (variant, factor) = (&variants[place], factor(&variants[place]));
        let own = loads[place].zip(least);
        let own = own.filter(|(own, least)| are_beyond(*own, *least, factor));
        own.is_some_and(|(own, _)| {
            (0..variants.len()).any(|rival| {
                loads[rival].is_some_and(|rival| are_beyond(own, rival, factor))
                    && stands_for(&variants[rival], variant, ranks, bytes)
            })
        })
    };
    (0..variants.len()).map(is_beyond_another).collect()
}

/// A load that is at most each of two.
fn least_of_both(one: [Load; 2], other: [Load; 2]) -> [Load; 2] {
    std::array::from_fn(|size| Load {
        messages: one[size].messages.min(other[size].messages),
        bytes: one[size].bytes.min(other[size].bytes),
    })
}

/// The sizes between which variants are compared: loads are nearly linear between them.
pub(crate) fn ends(bytes: Range) -> [u64; 2] {
    let least = bytes.lo.max(1);
    let most = bytes.hi.unwrap_or(u64::MAX);
    [least, most.min(least.saturating_mul(16)).max(least)]
}

/// What one of the library's algorithms carries at each size; `None` where that is not known, or it does not run.
pub(crate) fn loads(variant: &Variant, n_ranks: u32, sizes: [u64; 2]) -> Option<[Load; 2]> {
    let (shape, segsize) = (variant.shape?, variant.name.segsize.unwrap_or(0));
    // That it has as many nodes as ranks leaves out what is made for nodes alone.
    let runs = variant.possible(n_ranks, n_ranks, sizes[1]);
    runs.then(|| sizes.map(|bytes| shape.load(n_ranks, bytes, segsize)))
}

pub(crate) fn are_beyond(own: [Load; 2], rival: [Load; 2], factor: f64) -> bool {
    let mut both = own.into_iter().zip(rival);
    both.all(|(own, rival)| own.is_beyond(rival, factor))
}

/// Whether `rival` can run wherever `variant` can, with so many ranks, the fewest and the most, and so many bytes
/// or more.
pub(crate) fn stands_for(rival: &Variant, variant: &Variant, ranks: [u32; 2], bytes: u64) -> bool {
    let always = |need: &Need| {
        *need == Need::SomeBytes
            || variant.needs.contains(need)
            || is_always_met(*need, ranks, bytes, rival.name.segsize.unwrap_or(0))
    };
    rival.needs.iter().all(always)
}

/// Whether every call has it, of so many ranks and at least so many bytes.
fn is_always_met(need: Need, ranks: [u32; 2], bytes: u64, segsize: u64) -> bool {
    // Between the fewest and the most ranks there are odd and even ones.
    if [Need::EvenRanks, Need::PowerOfTwoRanks].contains(&need) && ranks[0] != ranks[1] {
        return false;
    }
    let met = |n_ranks, in_place| {
        let worst = Facts {
            n_ranks,
            nodes: 1,
            message_bytes: bytes,
            count: Some(0),
            commutative: false,
            builtin_op: false,
            in_place,
            ranks_by_node: false,
            equal_blocks: false,
            plain_elements: false,
        };
        need.met(&worst, segsize)
    };
    let ways = ranks.iter().flat_map(|&n| [(n, false), (n, true)]);
    // A call of one node may be one of several.
    need != Need::OneNode && ways.into_iter().all(|(n, in_place)| met(n, in_place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::collective::Collective;
    use crate::library::Library;
    use crate::variant::Family;

    const LIBRARIES: [&str; 5] = [
        "openmpi-4.1.4",
        "openmpi-5.0.11",
        "mpich-4.0.2",
        "mpich-5.0.2",
        "intel-2021.19.0",
    ];
    const SIZES: [u64; 8] = [0, 1, 64, 4096, 1 << 16, 1 << 20, 16 << 20, 1 << 30];
    const RANKS: [u32; 14] = [
        2, 3, 4, 5, 8, 16, 33, 64, 100, 256, 1024, 4096, 16_384, 65_536,
    ];

    fn range(lo: u64) -> Range {
        let hi = Some(lo.saturating_mul(4).max(lo + 1));
        Range { lo, hi }
    }

    /// The names of what is left out.
    fn left_out(library: &str, collective: Collective, n_ranks: u32, lo: u64) -> Vec<String> {
        let library: Library = library.parse().unwrap();
        let variants = catalogue::variants(library, collective);
        let absurd = absurd_of_any(&variants, n_ranks, range(lo));
        let out = variants.iter().zip(absurd).filter(|(_, absurd)| *absurd);
        out.map(|(variant, _)| variant.name.to_string()).collect()
    }

    #[test]
    fn a_broadcast_of_16_mib_to_4096_ranks_is_never_linear() {
        let out = left_out("openmpi-4.1.4", Collective::Bcast, 4096, 16 << 20);
        for name in ["native:basic_linear", "native:pipeline", "native:chain"] {
            assert!(out.iter().any(|other| other == name), "{name}: {out:?}");
        }
        let pipelined = "native:pipeline:segsize=128KiB";
        assert!(!out.iter().any(|other| other == pipelined), "{out:?}");
        let few = left_out("openmpi-4.1.4", Collective::Bcast, 32, 16 << 20);
        assert!(few.is_empty(), "{few:?}");
    }

    #[test]
    fn rings_and_lines_of_thousands_are_left_out_for_short_messages_alone() {
        let short = left_out("openmpi-5.0.11", Collective::Allreduce, 4096, 4096 * 8);
        assert!(!short.is_empty());
        let long = left_out("openmpi-5.0.11", Collective::Allreduce, 4096, 1 << 30);
        assert!(!long.iter().any(|name| name == "native:ring"), "{long:?}");
        let short = left_out("mpich-5.0.2", Collective::Allgather, 4096, 8);
        assert_eq!(short, ["native:ring"]);
        let barrier = left_out("openmpi-4.1.4", Collective::Barrier, 1024, 0);
        assert_eq!(barrier, ["native:linear", "native:double_ring"]);
    }

    #[test]
    fn to_16_ranks_nothing_is_absurd_by_its_shape() {
        for library in LIBRARIES {
            for collective in Collective::ALL {
                for n_ranks in RANKS.into_iter().filter(|n| *n <= FEW_RANKS) {
                    for lo in SIZES {
                        let out = left_out(library, collective, n_ranks, lo);
                        assert!(
                            out.is_empty(),
                            "{library} {collective} {n_ranks} {lo}: {out:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_left_stands_beside_the_best_on_some_machine_up_to_65536_ranks() {
        for library in LIBRARIES {
            for collective in Collective::ALL {
                let variants = catalogue::variants(library.parse().unwrap(), collective);
                for n_ranks in RANKS {
                    for lo in SIZES {
                        let absurd = absurd(&variants, n_ranks, range(lo));
                        let drawn = || variants.iter().zip(&absurd).filter(|(_, out)| !**out);
                        assert!(!absurd[0], "default is always drawn");
                        let native = |v: &Variant| v.name.family == Family::Native;
                        let any = variants.iter().any(native);
                        assert_eq!(
                            drawn().any(|(v, _)| native(v)),
                            any,
                            "{collective} {n_ranks}"
                        );
                        let sizes = ends(range(lo));
                        for (one, _) in drawn() {
                            for (other, _) in drawn() {
                                let both =
                                    loads(one, n_ranks, sizes).zip(loads(other, n_ranks, sizes));
                                let beyond = both.is_some_and(|(a, b)| are_beyond(a, b, ABSURD));
                                let instead = stands_for(other, one, [n_ranks; 2], sizes[0]);
                                assert!(!(beyond && instead), "{} {}", one.name, other.name);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_algorithm_of_open_mpi_has_a_shape_and_of_mpich_all_without_levels() {
        for library in &LIBRARIES[..4] {
            for variant in catalogue::all(library.parse().unwrap()) {
                let native = variant.name.family == Family::Native;
                let levels = ["smp", "pipelined_tree"].contains(&variant.name.algorithm.as_str());
                assert_eq!(
                    variant.shape.is_some(),
                    native && !levels,
                    "{}",
                    variant.name
                );
            }
        }
    }
}
