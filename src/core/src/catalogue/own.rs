//! The variants that are none of the library's algorithms: schedules and shared memory.

use super::Need::{
    Commutative, Hierarchy, MessageAboveSegment, NotInPlace, OneNode, PlainElements,
    ShareAboveSegment, SomeBytes,
};
use super::{Carriers, Crossing, Need, OnNodes, Own, Scheduled, Variant};
use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{self, Cut, Lengths, Parameter, Row, Values};
use crate::collective::{Collective, MessageSize};
use crate::node::between;
use crate::variant::{DEFAULT, Family, VariantName};

/// All of them, for every library alike.
pub(super) fn variants(collective: Collective) -> Vec<Variant> {
    p2p(collective)
        .into_iter()
        .chain(on_nodes(collective))
        .chain(between_nodes(collective))
        .collect()
}

/// Our own schedules, for every library alike.
fn p2p(collective: Collective) -> Vec<Variant> {
    let pattern = Pattern::of(collective);
    let rows = registry::ROWS.iter().enumerate();
    let fits = move |row: &Row| {
        let may_be_padded = collective.padded().is_some();
        let lengths =
            row.lengths == Lengths::Any || may_be_padded || !Pattern::is_uneven(collective);
        Some(row.pattern) == pattern && lengths
    };
    rows.filter(move |(_, row)| fits(row))
        .flat_map(|(place, row)| {
            row.values()
                .into_iter()
                .map(move |values| scheduled(collective, place, row, values))
        })
        .collect()
}

fn scheduled(collective: Collective, place: usize, row: &Row, values: Values) -> Variant {
    // Of a barrier, and where ranks agree on no size, all calls have 0 bytes.
    let some = (collective.size() != MessageSize::Nothing).then_some(SomeBytes);
    // In place the blocks would have to be copied first, and no rank knows how much that is on others.
    let apart = collective.padded().map(|_| NotInPlace);
    let mut needs: Vec<Need> = some.into_iter().chain(apart).collect();
    needs.extend_from_slice(row.needs);
    needs.extend(
        row.parameters
            .iter()
            .filter_map(|parameter| match parameter {
                Parameter::Segsize(cut, _) if values.segsize > 0 => Some(match cut {
                    Cut::Message => MessageAboveSegment,
                    Cut::Share => ShareAboveSegment,
                }),
                _ => None,
            }),
    );
    Variant {
        own: Some(Own::Schedule(Scheduled::new(place, values))),
        needs,
        ..Variant::named(collective, row.variant(values))
    }
}

/// Shared memory inside the nodes, for every library alike.
fn on_nodes(collective: Collective) -> Vec<Variant> {
    let alone = between::on_one_node(collective)
        .then(|| on_node(collective, "shm", OnNodes::Alone, vec![OneNode]));
    let reading = between::by_reading(collective).then(|| {
        let mut needs = vec![OneNode];
        match collective {
            // What is read may not be overwritten meanwhile.
            Collective::Alltoall => needs.push(NotInPlace),
            Collective::Allreduce => needs.push(PlainElements),
            _ => {}
        }
        on_node(collective, "cma", OnNodes::Reading, needs)
    });
    let direct = between::direct(collective).iter().map(|&carriers| {
        let who = match carriers {
            Carriers::Leader => "shm",
            Carriers::Each => "lanes",
        };
        let own = OnNodes::Direct(carriers);
        on_node(collective, &format!("{who}+direct"), own, vec![Hierarchy])
    });
    alone.into_iter().chain(reading).chain(direct).collect()
}

/// Shared memory inside the nodes, and between them whatever else runs the collective: our schedules, or the
/// library by its own choice.
fn between_nodes(collective: Collective) -> Vec<Variant> {
    let scheduled = between::meeting(collective).map(p2p).unwrap_or_default();
    // A barrier's number is not cut.
    let whole =
        |known: &&Variant| collective != Collective::Barrier || known.name.segsize.is_none();
    let scheduled = scheduled.iter().filter(whole).filter_map(|known| {
        let own = *known.own.as_ref()?.schedule()?;
        // A message need not be longer than a segment.
        let needs = own.row().needs.to_vec();
        Some((Crossing::Schedule(own), known.name.clone(), needs))
    });
    let library = (
        Crossing::Library,
        VariantName::native(DEFAULT, None),
        Vec::new(),
    );
    let between: Vec<_> = scheduled.chain([library]).collect();
    let lead = OnNodes::Leaders as fn(Crossing) -> OnNodes;
    let ways = [
        ("shm", between::leaders(collective), lead),
        ("lanes", between::lanes(collective), OnNodes::Lanes),
    ];
    // The ranks of a node need not follow one another, so operands change places.
    let commutative = collective.is_reduction().then_some(Commutative);
    let ways = ways.iter().filter(|(_, tried, _)| !tried.is_empty());
    ways.flat_map(|(who, _, own)| {
        between.iter().map(move |(crossing, name, needs)| {
            let algorithm = format!("{who}+{}", name.algorithm);
            let here = [Hierarchy].into_iter().chain(commutative).collect();
            let variant = on_node(collective, &algorithm, own(*crossing), here);
            Variant {
                name: VariantName {
                    family: variant.name.family,
                    algorithm,
                    ..name.clone()
                },
                needs_across: needs.clone(),
                ..variant
            }
        })
    })
    .collect()
}

/// A variant of shared memory; `algorithm` is a name without its family.
fn on_node(collective: Collective, algorithm: &str, own: OnNodes, needs: Vec<Need>) -> Variant {
    // A barrier has no bytes and is none the less for it.
    let some = (collective != Collective::Barrier).then_some(SomeBytes);
    let apart = collective.padded().map(|_| NotInPlace);
    Variant {
        own: Some(Own::Node(own)),
        needs: some.into_iter().chain(apart).chain(needs).collect(),
        ..Variant::named(collective, VariantName::of(Family::Node, algorithm))
    }
}
