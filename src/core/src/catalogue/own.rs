//! The variants that are none of the library's algorithms: schedules, shared memory, compositions.

use super::Need::{
    Commutative, Hierarchy, MessageAboveSegment, NotInPlace, OneNode, PlainElements,
    ShareAboveSegment, SomeBytes,
};
use super::{Need, Steering, Variant};
use crate::algorithm::pattern::Pattern;
use crate::algorithm::registry::{self, Cut, Lengths, Parameter, Row, Values};
use crate::collective::{Collective, MessageSize};
use crate::composition::{self, Composition};
use crate::node::between;
use crate::variant::{Family, VariantName};

/// What runs a variant that is none of the library's algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// A schedule over point-to-point messages.
    Schedule(Scheduled),
    /// Shared memory inside the nodes.
    Node(OnNodes),
    /// The library's other collectives.
    Composed(Composition),
}

impl Own {
    /// The schedule, of a variant that is nothing else.
    pub fn schedule(&self) -> Option<&Scheduled> {
        match self {
            Own::Schedule(scheduled) => Some(scheduled),
            Own::Node(_) | Own::Composed(_) => None,
        }
    }
}

/// A collective over shared memory inside each node: who carries what between the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNodes {
    /// Nobody: there is one node.
    Alone,
    /// Nobody, and ranks read each other's buffers where they lie.
    Reading,
    /// One rank of each node runs a schedule with those of the others.
    Leaders(Scheduled),
    /// Several ranks of each node run a schedule, each on its share of the message with its like.
    Lanes(Scheduled),
    /// Blocks go straight to where they are wanted.
    Direct(Carriers),
}

/// Which ranks of a node carry blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriers {
    /// One, for all.
    Leader,
    /// Each its own.
    Each,
}

/// A schedule of our own with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Place in [`registry::ROWS`].
    place: usize,
    pub values: Values,
}

impl Scheduled {
    pub fn row(&self) -> &'static Row {
        &registry::ROWS[self.place]
    }

    /// The place of its row in [`registry::ROWS`].
    pub fn place(&self) -> usize {
        self.place
    }
}

/// All of them, for every library alike.
pub(super) fn variants(collective: Collective) -> impl Iterator<Item = Variant> {
    mockups(collective)
        .chain(p2p(collective))
        .chain(on_nodes(collective))
}

/// Compositions of the library's collectives, for every library alike.
fn mockups(collective: Collective) -> impl Iterator<Item = Variant> {
    // A barrier has no bytes and is none the less for it.
    let some = (collective.size() != MessageSize::Nothing).then_some(SomeBytes);
    composition::rows(collective).map(move |row| Variant {
        collective,
        name: VariantName {
            family: Family::Mockup,
            ..VariantName::native(row.name, None)
        },
        steering: Steering::None,
        own: Some(Own::Composed(row.composition)),
        needs: some.into_iter().chain(row.needs.iter().copied()).collect(),
    })
}

/// Our own schedules, for every library alike.
fn p2p(collective: Collective) -> Vec<Variant> {
    let pattern = Pattern::of(collective);
    let rows = registry::ROWS.iter().enumerate();
    let fits = move |row: &Row| {
        let lengths = row.lengths == Lengths::Any || !Pattern::is_uneven(collective);
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
    let mut name = VariantName {
        family: Family::P2p,
        algorithm: row.name.to_owned(),
        segsize: None,
        radix: None,
        window: None,
    };
    // Of a barrier, and where ranks know their own counts alone, all calls have 0 bytes.
    let some = (collective.size() != MessageSize::Nothing).then_some(SomeBytes);
    // In place the blocks would have to be copied first, and no rank knows how much that is on others.
    let apart = (collective == Collective::Alltoallv).then_some(NotInPlace);
    let mut needs: Vec<Need> = some.into_iter().chain(apart).collect();
    needs.extend_from_slice(row.needs);
    for parameter in row.parameters {
        match parameter {
            Parameter::Segsize(..) if values.segsize == 0 => {}
            Parameter::Segsize(cut, _) => {
                name.segsize = Some(values.segsize);
                needs.push(match cut {
                    Cut::Message => MessageAboveSegment,
                    Cut::Share => ShareAboveSegment,
                });
            }
            Parameter::Radix(_) => name.radix = u32::try_from(values.radix).ok(),
            Parameter::Window(_) => name.window = u32::try_from(values.window).ok(),
        }
    }
    Variant {
        collective,
        name,
        steering: Steering::None,
        own: Some(Own::Schedule(Scheduled { place, values })),
        needs,
    }
}

/// Shared memory inside the nodes, for every library alike.
fn on_nodes(collective: Collective) -> Vec<Variant> {
    let name = |algorithm: String, segsize: u64| VariantName {
        family: Family::Node,
        algorithm,
        segsize: (segsize > 0).then_some(segsize),
        radix: None,
        window: None,
    };
    let variant = |name, own, needs| Variant {
        collective,
        name,
        steering: Steering::None,
        own: Some(Own::Node(own)),
        needs,
    };
    // A barrier has no bytes and is none the less for it.
    let some = || (collective != Collective::Barrier).then_some(SomeBytes);
    let needs = |need| some().into_iter().chain([need]).collect::<Vec<_>>();
    let alone = between::on_one_node(collective)
        .then(|| variant(name("shm".to_owned(), 0), OnNodes::Alone, needs(OneNode)));
    let reading = between::by_reading(collective).then(|| {
        let mut needs = needs(OneNode);
        match collective {
            // What is read may not be overwritten meanwhile.
            Collective::Alltoall => needs.push(NotInPlace),
            Collective::Allreduce => needs.push(PlainElements),
            _ => {}
        }
        variant(name("cma".to_owned(), 0), OnNodes::Reading, needs)
    });
    let direct = between::direct(collective).iter().map(|&carriers| {
        let who = match carriers {
            Carriers::Leader => "shm",
            Carriers::Each => "lanes",
        };
        let name = name(format!("{who}+direct"), 0);
        variant(name, OnNodes::Direct(carriers), needs(Hierarchy))
    });
    let scheduled = |between: &'static [between::Between], who: &'static str, own: fn(_) -> _| {
        let each = between.iter().filter_map(
            move |&between::Between {
                      name: algorithm,
                      segsize,
                      ..
                  }| {
                let between = between_nodes(between::pattern(collective)?, algorithm, segsize)?;
                Some((name(format!("{who}+{algorithm}"), segsize), own(between)))
            },
        );
        each.map(|(name, own)| {
            let mut needs = needs(Hierarchy);
            // The ranks of a node need not follow one another, so operands change places.
            needs.extend(collective.is_reduction().then_some(Commutative));
            variant(name, own, needs)
        })
    };
    let leaders = scheduled(between::leaders(collective), "shm", OnNodes::Leaders);
    let lanes = scheduled(between::lanes(collective), "lanes", OnNodes::Lanes);
    let all = alone.into_iter().chain(reading).chain(direct);
    all.chain(leaders).chain(lanes).collect()
}

/// A row of the registry with this segment size, where there is one.
fn between_nodes(pattern: Pattern, algorithm: &str, segsize: u64) -> Option<Scheduled> {
    let is_meant = |row: &Row| row.pattern == pattern && row.name == algorithm;
    let place = registry::ROWS.iter().position(is_meant)?;
    let all = registry::ROWS[place].values();
    let values = all.into_iter().find(|v| v.segsize == segsize)?;
    Some(Scheduled { place, values })
}
