//! What the members of a communicator agree on in its set-up, once, before anything but `default` runs there.

use std::collections::HashMap;

use crate::account::{CAUSES, Cause};
use crate::catalogue::Variant;
use crate::classify::Layout;
use crate::collective::Collective;

/// Whose communicator it is; all its members know that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// MPI_COMM_WORLD.
    World,
    /// The program made it.
    Program,
}

/// Who belongs to a communicator; every member knows that by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    pub layout: Layout,
    /// Whether the ranks of each node stand together in rank order.
    pub ranks_by_node: bool,
    /// Whether each node has as many of them.
    pub even_nodes: bool,
}

impl Membership {
    /// From the node of each member, in rank order.
    pub fn of(nodes: impl Iterator<Item = u32>) -> Membership {
        let mut on_node = HashMap::<u32, u32>::new();
        let (mut previous, mut changes, mut n_ranks) = (None, 0, 0);
        for node in nodes {
            *on_node.entry(node).or_default() += 1;
            changes += usize::from(previous.replace(node) != Some(node));
            n_ranks += 1;
        }
        Membership {
            layout: Layout {
                n_ranks,
                nodes: on_node.len() as u32,
                ppn: on_node.values().copied().max().unwrap_or(0),
            },
            ranks_by_node: changes == on_node.len(),
            even_nodes: on_node.values().min() == on_node.values().max(),
        }
    }
}

/// What one member can do, which the others cannot know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ability {
    /// A number that no other communicator of the job has, from the first rank; 0 from the others.
    pub number: u64,
    /// Whether it can tell the library which algorithm to run.
    pub native: Possible,
    /// Whether our own algorithms may touch its buffers, wait for its neighbours and rely on them.
    pub own_families: Possible,
    /// What agreements have cost it so far ([`crate::review::spent_ppm`]).
    pub spent_ppm: u64,
    /// Whether it can pay for what a communicator's variants need ([`crate::review::pays`]).
    pub pays: Possible,
}

/// Whether something can be done; what one member cannot is done by none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Possible {
    Yes,
    No(Cause),
}

impl Possible {
    /// It is, but where something is so.
    pub fn unless(is_so: bool, cause: Cause) -> Possible {
        if is_so {
            Possible::No(cause)
        } else {
            Possible::Yes
        }
    }

    /// As a word, so that the largest of all members' says whether, and why, one of them cannot.
    pub const fn word(self) -> u64 {
        match self {
            Possible::Yes => 0,
            Possible::No(cause) => 1 + cause as u64,
        }
    }

    pub fn of(word: u64) -> Possible {
        let Some(place) = word.checked_sub(1) else {
            return Possible::Yes;
        };
        let row = CAUSES.get(place as usize);
        Possible::No(row.map_or(Cause::Agreement, |row| row.cause))
    }

    /// Why it is not.
    pub fn cause(self) -> Option<Cause> {
        match self {
            Possible::Yes => None,
            Possible::No(cause) => Some(cause),
        }
    }
}

/// Words of an [`Ability`]; the members' are combined by the largest of each.
pub const ABILITY_WORDS: usize = 5;

impl Ability {
    /// What more is to be agreed gets a word more.
    pub fn words(self) -> [u64; ABILITY_WORDS] {
        [
            self.number,
            self.native.word(),
            self.own_families.word(),
            self.spent_ppm,
            self.pays.word(),
        ]
    }
}

/// What all members know then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The communicator's number in the job; 0 before the set-up.
    pub id: u64,
    pub native: Possible,
    pub own_families: Possible,
    /// What agreements had cost the member that they had cost most.
    pub spent_ppm: u64,
    pub pays: Possible,
}

impl Agreed {
    /// Before the set-up.
    pub(super) const NOTHING: Agreed = Agreed {
        id: 0,
        native: Possible::No(Cause::FewCalls),
        own_families: Possible::No(Cause::FewCalls),
        spent_ppm: 0,
        pays: Possible::No(Cause::FewCalls),
    };

    /// From the largest of each of the members' words.
    pub fn of(words: [u64; ABILITY_WORDS]) -> Agreed {
        let [id, native, own_families, spent_ppm, pays] = words;
        Agreed {
            id,
            native: Possible::of(native),
            own_families: Possible::of(own_families),
            spent_ppm,
            pays: Possible::of(pays),
        }
    }

    /// Why the members cannot run a variant that is not `default` at all. What runs over a device's memory is the
    /// library alone, and it gets the buffers themselves: broadcasts and alltoalls of some types would be packed.
    pub fn rules_out(self, variant: &Variant) -> Option<Cause> {
        let packed = matches!(variant.collective, Collective::Bcast | Collective::Alltoall);
        let native = self.native.cause().filter(|_| variant.is_steered());
        let own = self.own_families.cause();
        native.or(own.filter(|_| variant.own.is_some() || packed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_member_cannot_do_none_does() {
        let able = Ability {
            number: 0,
            native: Possible::Yes,
            own_families: Possible::Yes,
            spent_ppm: 5,
            pays: Possible::Yes,
        };
        let largest = |members: &[Ability]| {
            let words = members.iter().map(|member| member.words());
            let all = words.reduce(|a, b| std::array::from_fn(|at| a[at].max(b[at])));
            Agreed::of(all.expect("there are members"))
        };
        let first = Ability {
            number: 7,
            spent_ppm: 50,
            ..able
        };
        let agreed = largest(&[first, able, able]);
        assert_eq!((agreed.id, agreed.native), (7, Possible::Yes));
        assert_eq!(agreed.spent_ppm, 50);
        let unable = Ability {
            native: Possible::No(Cause::Threads),
            ..able
        };
        let agreed = largest(&[first, able, unable]);
        assert_eq!(agreed.native, Possible::No(Cause::Threads));
        assert_eq!(
            (agreed.own_families, agreed.pays),
            (Possible::Yes, Possible::Yes)
        );
        let poor = Ability {
            pays: Possible::No(Cause::Unpaid),
            ..able
        };
        let pays = largest(&[first, poor, able]).pays;
        assert_eq!(pays, Possible::No(Cause::Unpaid));
    }

    #[test]
    fn members_of_a_node_stand_together_or_not() {
        let of = |nodes: &[u32]| Membership::of(nodes.iter().copied());
        let together = of(&[3, 3, 1, 1, 1, 0]);
        let layout = together.layout;
        assert_eq!((layout.n_ranks, layout.nodes, layout.ppn), (6, 3, 3));
        assert!(together.ranks_by_node && !together.even_nodes);
        let round = of(&[0, 1, 0, 1]);
        assert!(!round.ranks_by_node && round.even_nodes);
    }
}
