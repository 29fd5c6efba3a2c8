//! What the members of a communicator agree on in its set-up, once, before anything but `default` runs there.

use std::collections::HashMap;

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
    No,
}

impl From<bool> for Possible {
    fn from(able: bool) -> Possible {
        if able { Possible::Yes } else { Possible::No }
    }
}

/// Words of an [`Ability`]; the members' are combined by the largest of each.
pub const ABILITY_WORDS: usize = 5;

impl Ability {
    /// A word each, so that the largest of all members' says whether one of them cannot. What more is to be agreed
    /// gets a word more.
    pub fn words(self) -> [u64; ABILITY_WORDS] {
        let unable = |possible| u64::from(possible == Possible::No);
        [
            self.number,
            unable(self.native),
            unable(self.own_families),
            self.spent_ppm,
            unable(self.pays),
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
        native: Possible::No,
        own_families: Possible::No,
        spent_ppm: 0,
        pays: Possible::No,
    };

    /// From the largest of each of the members' words.
    pub fn of(words: [u64; ABILITY_WORDS]) -> Agreed {
        let [id, no_native, no_own, spent_ppm, does_not_pay] = words;
        Agreed {
            id,
            native: Possible::from(no_native == 0),
            own_families: Possible::from(no_own == 0),
            spent_ppm,
            pays: Possible::from(does_not_pay == 0),
        }
    }

    /// Whether the members can run a variant that is not `default` at all. What runs over a device's memory is the
    /// library alone, and it gets the buffers themselves: broadcasts and alltoalls of some types would be packed.
    pub fn allows(self, variant: &Variant) -> bool {
        let packed = matches!(variant.collective, Collective::Bcast | Collective::Alltoall);
        (self.native == Possible::Yes || !variant.is_steered())
            && (self.own_families == Possible::Yes || (variant.own.is_none() && !packed))
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
            native: Possible::No,
            ..able
        };
        let agreed = largest(&[first, able, unable]);
        assert_eq!(agreed.native, Possible::No);
        assert_eq!(
            (agreed.own_families, agreed.pays),
            (Possible::Yes, Possible::Yes)
        );
        let poor = Ability {
            pays: Possible::No,
            ..able
        };
        assert_eq!(largest(&[first, poor, able]).pays, Possible::No);
    }

    #[test]
    fn members_of_a_node_stand_together_or_not() {
        let of = |nodes: &[u32]| Membership::of(nodes.iter().copied());
        let together = of(&[3, 3, 1, 1, 1, 0]);
        let layout = together.layout;
        assert_eq!((layout.n_ranks, layout.nodes, layout.ppn), (6, 3, 3));
        assert!(together.ranks_by_node);
        assert!(!of(&[0, 1, 0, 1]).ranks_by_node);
    }
}
