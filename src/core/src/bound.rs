//! What of a library's algorithms may be drawn at all, before any training and after it.
//!
//! A training knows the sizes that it saw. What was the best on forty ranks, or cost nothing to try there, may
//! send everything through one port on thousands, in the same cell. So each communicator bounds by
//! [`shape`](crate::shape) what is drawn in its cells; what is forced is not bound.

use crate::algorithm::simulate::path;
use crate::catalogue::{Carriers, Crossing, OnNodes, Own, Variant};
use crate::collective::Collective;
use crate::need::{Facts, Need};
use crate::node::between::LANES_MOST;
use crate::shape::{ABSURD, Load};
use crate::space::Range;

/// Among so many ranks nothing is absurd.
const FEW_RANKS: u32 = 16;

/// What costs are not known of runs on so many times the ranks on which it was measured.
const REACH: u64 = 4;

/// On more it is drawn so many times as rarely: a job that meets them must be able to find out, at a small price.
pub const DRAWN_RARELY: f64 = 1.0 / 16.0;

/// How many ranks there are, and on how many nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    pub n_ranks: u32,
    pub nodes: u32,
}

/// For each of one collective's variants whether it costs more than [`ABSURD`] times what another one does that could
/// run instead, on a communicator of this extent, at both ends of a range of sizes.
pub fn absurd(variants: &[Variant], extent: Extent, bytes: Range) -> Vec<bool> {
    // Most communicators are small, and programs that make many want them at once.
    if extent.n_ranks <= FEW_RANKS {
        return vec![false; variants.len()];
    }
    absurd_of_any(variants, extent, bytes)
}

/// Whether a variant's time on a communicator of this extent is unknown: it has no known cost, and it was measured on
/// far fewer ranks.
pub fn is_out_of_reach(
    variant: &Variant,
    extent: Extent,
    bytes: Range,
    measured_ranks: u64,
) -> bool {
    !reaches(measured_ranks, extent.n_ranks.into()) && loads(variant, extent, ends(bytes)).is_none()
}

/// Whether what was measured on so many ranks tells anything of a job with `n_ranks`.
pub fn reaches(measured_ranks: u64, n_ranks: u64) -> bool {
    n_ranks <= u64::from(FEW_RANKS) || n_ranks <= measured_ranks.saturating_mul(REACH)
}

/// For each of one collective's variants whether it may run on so many ranks, each alone on its node: where it is not
/// [`absurd`]; `None` where its cost is unknown.
pub fn bearable(variants: &[Variant], n_ranks: u64, bytes: Range) -> Vec<Option<bool>> {
    let n_ranks = u32::try_from(n_ranks).unwrap_or(u32::MAX);
    let extent = Extent {
        n_ranks,
        nodes: n_ranks,
    };
    let absurd = absurd(variants, extent, bytes);
    let is_known = |variant| loads(variant, extent, ends(bytes)).is_some();
    let both = variants.iter().zip(absurd);
    both.map(|(variant, absurd)| is_known(variant).then_some(!absurd))
        .collect()
}

fn absurd_of_any(variants: &[Variant], extent: Extent, bytes: Range) -> Vec<bool> {
    let sizes = ends(bytes);
    let loads: Vec<Option<[Load; 2]>> = variants
        .iter()
        .map(|variant| loads(variant, extent, sizes))
        .collect();
    beyond_others(variants, &loads, ABSURD, [extent.n_ranks; 2], sizes[0])
}

/// For each variant whether its load is more than so many times that of another that could run instead, with so
/// many ranks, the fewest and the most, and so many bytes or more. One of the library's algorithms is compared with its
/// others, for they are what the library's own choice is among; ours with all of which every message is counted.
pub(crate) fn beyond_others(
    variants: &[Variant],
    loads: &[Option<[Load; 2]>],
    factor: f64,
    ranks: [u32; 2],
    bytes: u64,
) -> Vec<bool> {
    // Most are not even beyond the least of all others, which spares a comparison with each.
    let least = |of_library: bool| {
        let rivals = variants.iter().zip(loads);
        let rivals = rivals.filter(|(rival, _)| is_rival(rival, of_library));
        rivals.filter_map(|(_, load)| *load).reduce(least_of_both)
    };
    let least = [least(false), least(true)];
    let is_beyond_another = |place: usize| {
        let variant = &variants[place];
        let of_library = variant.own.is_none();
        let own = loads[place].zip(least[usize::from(of_library)]);
        let own = own.filter(|(own, least)| are_beyond(*own, *least, factor));
        own.is_some_and(|(own, _)| {
            (0..variants.len()).any(|rival| {
                is_rival(&variants[rival], of_library)
                    && loads[rival].is_some_and(|rival| are_beyond(own, rival, factor))
                    && stands_for(&variants[rival], variant, ranks, bytes)
            })
        })
    };
    (0..variants.len()).map(is_beyond_another).collect()
}

/// Whether a variant is compared with one that is of the library or ours. Counts leave out what shared memory does
/// inside the nodes, so no variant is compared with one that uses it.
fn is_rival(rival: &Variant, of_library: bool) -> bool {
    match rival.own {
        None => true,
        Some(Own::Schedule(_)) => !of_library,
        Some(Own::Node(_)) => false,
    }
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

/// What a variant carries at each size; `None` where that is not known, or it does not run.
pub(crate) fn loads(variant: &Variant, extent: Extent, sizes: [u64; 2]) -> Option<[Load; 2]> {
    let Extent { n_ranks, nodes } = extent;
    let runs = match variant.own {
        // That it has as many nodes as ranks leaves out what is made for nodes alone.
        None => variant.possible(n_ranks, n_ranks, sizes[1]),
        Some(Own::Node(_)) => nodes > 1,
        Some(_) => variant.possible(n_ranks, nodes, sizes[1]),
    };
    let [first, last] = sizes.map(|bytes| load(variant, extent, bytes));
    Some([first?, last?]).filter(|_| runs)
}

fn load(variant: &Variant, extent: Extent, bytes: u64) -> Option<Load> {
    match variant.own {
        None => {
            let segsize = variant.name.segsize.unwrap_or(0);
            Some(variant.shape?.load(extent.n_ranks, bytes, segsize))
        }
        Some(Own::Schedule(own)) => path::load(&own, extent.n_ranks, bytes),
        Some(Own::Node(own)) => between_nodes(variant.collective, own, extent, bytes),
    }
}

/// What is carried from node to node, at the least; `None` where the library does as it chooses.
fn between_nodes(
    collective: Collective,
    own: OnNodes,
    Extent { n_ranks, nodes }: Extent,
    bytes: u64,
) -> Option<Load> {
    let here = u64::from(n_ranks / nodes.max(1)).max(1);
    // What one node has for another, or for all, of a collective that moves blocks.
    let of_node = match collective.padded().unwrap_or(collective) {
        Collective::Allgather => bytes.saturating_mul(here),
        Collective::Alltoall => bytes.saturating_mul(here).saturating_mul(here),
        _ => bytes,
    };
    match own {
        OnNodes::Leaders(Crossing::Schedule(own)) => path::load(&own, nodes, of_node),
        OnNodes::Lanes(Crossing::Schedule(own)) => {
            let lanes = here.min(LANES_MOST as u64);
            path::load(&own, nodes, of_node.div_ceil(lanes))
        }
        OnNodes::Direct(carriers) => {
            let others = f64::from(nodes.saturating_sub(1));
            let each = match carriers {
                Carriers::Leader => of_node,
                Carriers::Each => of_node / here,
            };
            Some(Load {
                messages: others,
                bytes: others * each as f64,
            })
        }
        OnNodes::Leaders(Crossing::Library) | OnNodes::Lanes(Crossing::Library) => None,
        OnNodes::Alone | OnNodes::Reading => None,
    }
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
            even_nodes: false,
            fixed_order: false,
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
    use crate::settings::Settings;
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

    /// Ranks alone on their nodes.
    fn alone(n_ranks: u32) -> Extent {
        Extent {
            n_ranks,
            nodes: n_ranks,
        }
    }

    /// The names of what is left out.
    fn left_out(
        library: &str,
        collective: Collective,
        extent: Extent,
        lo: u64,
        family: Family,
    ) -> Vec<String> {
        let library: Library = library.parse().unwrap();
        let variants = catalogue::variants(library, collective);
        let absurd = absurd_of_any(&variants, extent, range(lo));
        let out = variants.iter().zip(absurd);
        let out = out.filter(|(variant, absurd)| *absurd && variant.name.family == family);
        out.map(|(variant, _)| variant.name.to_string()).collect()
    }

    fn natives_left_out(
        library: &str,
        collective: Collective,
        n_ranks: u32,
        lo: u64,
    ) -> Vec<String> {
        left_out(library, collective, alone(n_ranks), lo, Family::Native)
    }

    #[test]
    fn a_broadcast_of_16_mib_to_4096_ranks_is_never_linear() {
        let out = natives_left_out("openmpi-4.1.4", Collective::Bcast, 4096, 16 << 20);
        for name in ["native:basic_linear", "native:pipeline", "native:chain"] {
            assert!(out.iter().any(|other| other == name), "{name}: {out:?}");
        }
        let pipelined = "native:pipeline:segsize=128KiB";
        assert!(!out.iter().any(|other| other == pipelined), "{out:?}");
        let few = natives_left_out("openmpi-4.1.4", Collective::Bcast, 32, 16 << 20);
        assert!(few.is_empty(), "{few:?}");
    }

    #[test]
    fn rings_and_lines_of_thousands_are_left_out_for_short_messages_alone() {
        let short = natives_left_out("openmpi-5.0.11", Collective::Allreduce, 4096, 4096 * 8);
        assert!(!short.is_empty());
        let long = natives_left_out("openmpi-5.0.11", Collective::Allreduce, 4096, 1 << 30);
        assert!(!long.iter().any(|name| name == "native:ring"), "{long:?}");
        let short = natives_left_out("mpich-5.0.2", Collective::Allgather, 4096, 8);
        assert_eq!(short, ["native:ring"]);
        let barrier = natives_left_out("openmpi-4.1.4", Collective::Barrier, 1024, 0);
        assert_eq!(barrier, ["native:linear", "native:double_ring"]);
    }

    #[test]
    fn to_16_ranks_nothing_is_absurd_by_its_shape() {
        for library in LIBRARIES {
            for collective in Collective::ALL {
                for n_ranks in RANKS.into_iter().filter(|n| *n <= FEW_RANKS) {
                    for lo in SIZES {
                        let out = natives_left_out(library, collective, n_ranks, lo);
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
                        let absurd = absurd(&variants, alone(n_ranks), range(lo));
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
                        let load = |variant| loads(variant, alone(n_ranks), sizes);
                        let drawn: Vec<_> = drawn().map(|(one, _)| (one, load(one))).collect();
                        for (one, own) in &drawn {
                            let of_library = one.own.is_none();
                            // Of few ranks ours may do anything.
                            if !of_library && n_ranks <= FEW_RANKS {
                                continue;
                            }
                            for (other, rival) in &drawn {
                                let both = own.zip(*rival);
                                let beyond = both.is_some_and(|(a, b)| are_beyond(a, b, ABSURD));
                                let instead = is_rival(other, of_library)
                                    && stands_for(other, one, [n_ranks; 2], sizes[0]);
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

    #[test]
    fn what_was_measured_in_a_cell_with_an_end_is_within_reach_in_all_of_it() {
        for (cell, _) in Settings::default().space.cells() {
            let least = cell.nodes.lo.max(1) * cell.ppn.lo.max(1);
            if let (Some(nodes), Some(ppn)) = (cell.nodes.hi, cell.ppn.hi) {
                assert!((nodes - 1) * (ppn - 1) <= REACH * least, "{cell}");
            }
        }
    }

    /// The reproduction: on thousands of nodes leaders pass a message on one by one.
    #[test]
    fn leaders_of_thousands_of_nodes_pass_nothing_on_one_by_one() {
        for (nodes, ppn) in [(4096, 2), (4096, 64), (10_000, 2), (10_000, 128)] {
            let extent = Extent {
                n_ranks: nodes * ppn,
                nodes,
            };
            for library in LIBRARIES {
                let of =
                    |collective, bytes| left_out(library, collective, extent, bytes, Family::Node);
                let has = |out: &[String], name: &str| out.iter().any(|other| other == name);
                let bcast = of(Collective::Bcast, 16 << 10);
                assert!(
                    has(&bcast, "node:shm+chain:segsize=4KiB"),
                    "{library} {bcast:?}"
                );
                assert!(!has(&bcast, "node:shm+binomial"), "{bcast:?}");
                let allreduce = of(Collective::Allreduce, 4 << 10);
                assert!(has(&allreduce, "node:shm+ring"), "{library} {allreduce:?}");
                assert!(!has(&allreduce, "node:shm+recursive_doubling"));
                // With more ranks on each node the bytes of an allgather outweigh its messages.
                let allgather = of(Collective::Allgather, 1);
                let is_short = ppn == 2;
                assert_eq!(
                    has(&allgather, "node:shm+direct"),
                    is_short,
                    "{library} {allgather:?}"
                );
                // Of a long message each hop carries little beside the whole.
                let long = of(Collective::Bcast, 256 << 20);
                assert!(!has(&long, "node:shm+chain:segsize=256KiB"), "{long:?}");
            }
        }
    }

    #[test]
    fn it_is_total_and_leaves_something_of_ours_wherever_there_was_something() {
        for library in LIBRARIES {
            for collective in Collective::ALL {
                let variants = catalogue::variants(library.parse().unwrap(), collective);
                for nodes in (0..=20).step_by(2).map(|bits| 1u32 << bits) {
                    for ppn in [1, 3, 64, 4096] {
                        let n_ranks = nodes.saturating_mul(ppn);
                        let extent = Extent { n_ranks, nodes };
                        for lo in (0..=40).step_by(5).map(|bits| 1u64 << bits).chain([0]) {
                            let absurd = absurd(&variants, extent, range(lo));
                            let named = format!("{library} {collective} {nodes} {ppn} {lo}");
                            assert!(!absurd[0], "{named}");
                            let left = |family| {
                                let of = variants.iter().zip(&absurd);
                                let mut of = of.filter(|(one, _)| one.name.family == family);
                                of.clone().next().is_none() || of.any(|(_, absurd)| !absurd)
                            };
                            assert!(left(Family::Native) && left(Family::P2p), "{named}");
                            // The same again, whatever was asked before.
                            assert_eq!(absurd, super::absurd(&variants, extent, range(lo)));
                        }
                    }
                }
            }
        }
    }
}
