//! One way to run one collective: what tells the library to, or what of ours runs it, and what it needs.

use crate::algorithm::registry::{FixedOrder, Lengths, Scheduled};
use crate::collective::Collective;
use crate::need::{Facts, Need, Unmet};
use crate::node::on_nodes::{Crossing, OnNodes};
use crate::shape::Shape;
use crate::variant::{Family, VariantName};

/// The ranks of a node whose operands one of them combines in the fixed order, at most: their partial results have room
/// on its stack.
pub const FOLDED_MOST: u32 = 1023;

/// How the library is made to run a native variant.
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
    /// What it needs of the calls that one rank of each node makes with those of the others.
    pub needs_across: Vec<Need>,
    /// What one of the library's algorithms costs, where that is known of it.
    pub shape: Option<Shape>,
}

impl Variant {
    /// A variant with nothing but its name.
    pub(crate) fn named(collective: Collective, name: VariantName) -> Variant {
        Variant {
            collective,
            name,
            steering: Steering::None,
            own: None,
            needs: Vec::new(),
            needs_across: Vec::new(),
            shape: None,
        }
    }

    /// The first need that a call does not meet; `None` when the variant applies.
    pub fn unmet(&self, facts: &Facts) -> Option<Unmet> {
        let segsize = self.name.segsize.unwrap_or(0);
        if self.name.family != Family::Default && facts.n_ranks < 2 {
            return Some(Unmet::Call(Need::TwoRanks));
        }
        if facts.fixed_order && !self.keeps_fixed_order(facts) {
            return Some(Unmet::Order);
        }
        let first = |needs: &[Need], facts: &Facts| {
            let mut needs = needs.iter().copied();
            needs.find(|need| !need.met(facts, segsize))
        };
        let of_call = first(&self.needs, facts).map(Unmet::Call);
        of_call.or_else(|| {
            let Some(Own::Node(own)) = self.own.filter(|_| !self.needs_across.is_empty()) else {
                return None;
            };
            let facts = facts.across(own.lanes_most(facts));
            first(&self.needs_across, &facts).map(Unmet::Across)
        })
    }

    /// Whether it combines the operands of a call in the order of
    /// [`fixed_order`](crate::algorithm::fixed_order), as what stands for the library's own choice does then.
    fn keeps_fixed_order(&self, facts: &Facts) -> bool {
        if !self.collective.is_reduction() || self.name.family == Family::Default {
            return true;
        }
        let is_kept = |own: Scheduled| own.row().fixed_order != FixedOrder::Broken;
        let here = facts.n_ranks / facts.nodes.max(1);
        let nodes_are_parts =
            facts.ranks_by_node && facts.even_nodes && (facts.nodes == 1 || here.is_power_of_two());
        let node_folds = facts.plain_elements && here <= FOLDED_MOST && nodes_are_parts;
        match self.own {
            Some(Own::Schedule(own)) => is_kept(own),
            Some(Own::Node(OnNodes::Alone)) => node_folds,
            Some(Own::Node(own)) => match own.crossing() {
                Some(Crossing::Schedule(own)) => is_kept(own) && node_folds,
                Some(Crossing::Library) | None => false,
            },
            None => false,
        }
    }

    /// Whether the library has to be steered to its algorithm.
    pub fn is_steered(&self) -> bool {
        self.steering != Steering::None
    }

    /// Whether it needs what no call is known to have: then nothing is learned of it, either.
    pub fn is_barred(&self) -> bool {
        self.needs.contains(&Need::WritableRoot)
    }

    pub fn applies(&self, facts: &Facts) -> bool {
        self.unmet(facts).is_none()
    }

    /// Whether some call with at most `bytes_max` bytes on `n_ranks` ranks of `nodes` nodes could
    /// run this variant.
    pub fn possible(&self, n_ranks: u32, nodes: u32, bytes_max: u64) -> bool {
        let usual = Facts::usual(self.collective, bytes_max, n_ranks, nodes);
        self.never_met(&usual).is_none()
    }

    /// What no call has that is like this one with any elements, in place or not; `None` where some such call could run
    /// this variant. No need becomes unmet when a message grows, so the largest decides.
    pub fn never_met(&self, largest: &Facts) -> Option<Unmet> {
        let unmet = |in_place| {
            self.unmet(&Facts {
                count: Some(largest.message_bytes),
                in_place,
                ..*largest
            })
        };
        let out_of_place = unmet(false)?;
        let in_place = unmet(true)?;
        Some(match out_of_place {
            Unmet::Call(Need::InPlace) => in_place,
            other => other,
        })
    }
}

/// What runs a variant that is none of the library's algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// A schedule over point-to-point messages.
    Schedule(Scheduled),
    /// Shared memory inside the nodes.
    Node(OnNodes),
}

impl Own {
    /// What ranks of different nodes run with each other, of a variant in which they do.
    pub fn crossing(&self) -> Option<Crossing> {
        match self {
            Own::Node(on_nodes) => on_nodes.crossing(),
            Own::Schedule(_) => None,
        }
    }

    /// Whether what a rank needs for a call depends on its root: a program does.
    pub fn depends_on_root(&self) -> bool {
        match self {
            Own::Schedule(_) => true,
            Own::Node(on_nodes) => matches!(on_nodes.crossing(), Some(Crossing::Schedule(_))),
        }
    }

    /// Whether the rank that needs the most needs about as much with any root, among so many ranks on so many nodes.
    pub fn is_alike_with_any_root(&self, n_ranks: usize, nodes: usize) -> bool {
        match self {
            Own::Schedule(own) => own.row().is_alike_with_any_root(n_ranks),
            Own::Node(on_nodes) => match on_nodes.crossing() {
                Some(Crossing::Schedule(own)) => own.row().is_alike_with_any_root(nodes),
                _ => true,
            },
        }
    }

    /// Whether it carries blocks of one length alone, to which others have to be padded.
    pub fn needs_equal_blocks(&self) -> bool {
        match self {
            Own::Schedule(own) => own.row().lengths == Lengths::Equal,
            Own::Node(_) => true,
        }
    }

    /// The schedule, of a variant that is nothing else.
    pub fn schedule(&self) -> Option<&Scheduled> {
        match self {
            Own::Schedule(scheduled) => Some(scheduled),
            Own::Node(_) => None,
        }
    }
}
