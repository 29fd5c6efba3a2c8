//! What the registry knows of an algorithm, and how a call becomes its case.

use super::pattern::Pattern;
use super::schedule::{Case, Schedule};
use super::simulate::symmetry::Symmetry;
use crate::need::{FEW_RANKS, Need};
use crate::variant::{Family, VariantName};

/// One algorithm of one collective.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub pattern: Pattern,
    pub name: &'static str,
    pub schedule: fn(Case) -> Schedule,
    pub parameters: &'static [Parameter],
    /// What it needs beside two ranks, whatever its parameters.
    pub needs: &'static [Need],
    pub lengths: Lengths,
    pub in_place: InPlace,
    pub symmetry: Symmetry,
    pub blocks: BlockOrder,
    pub fixed_order: FixedOrder,
    /// Where the algorithm is described.
    pub source: &'static str,
}

/// Whether the blocks of the message may differ in length, as in the irregular collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    Equal,
    Any,
}

/// The order in which a rank takes the blocks of a message whose ranks have one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOrder {
    /// None that matters.
    Any,
    /// Its own first, then the one before, round to the one behind its own.
    OwnThenBack,
}

/// Whether operands are combined in the order of [`fixed_order`](super::fixed_order), on any number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedOrder {
    Broken,
    Kept,
    /// That is what it is for: where any order will do it is only forced.
    Purpose,
}

/// What a call in place needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Nothing: input and output may share their memory.
    Shared,
    /// The user's buffer is copied first, and the copy is the input.
    Copied,
}

/// A parameter of an algorithm, with the values that make variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Segment size in bytes; 0 stands for "in one piece".
    Segsize(Cut, &'static [u64]),
    Radix(&'static [usize]),
    Window(&'static [usize]),
}

/// What the algorithm cuts into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The whole message.
    Message,
    /// What falls to one rank when the message is dealt out to all.
    Share,
}

/// Parameters as one variant sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// Bytes; 0 stands for "in one piece".
    pub segsize: u64,
    pub radix: usize,
    pub window: usize,
}

/// At most so many segments: longer messages get longer segments, so that a plan stays small.
pub const SEGMENTS_MAX: u64 = 1024;

impl Row {
    /// Whether the schedule exists for that many ranks.
    pub fn fits(&self, n_ranks: usize) -> bool {
        self.needs.iter().all(|need| match need {
            Need::EvenRanks => n_ranks.is_multiple_of(2),
            Need::PowerOfTwoRanks => n_ranks.is_power_of_two(),
            Need::FewRanks => n_ranks <= FEW_RANKS as usize,
            _ => true,
        })
    }

    /// Whether the rank that needs the most needs about as much with any root. Where operands are combined in order, ranks
    /// at the ends have fewer children than others; from so many ranks on some rank has two, and a parent. In the fixed
    /// order a root has a child more where other ranks fold onto it.
    pub fn is_alike_with_any_root(&self, n_ranks: usize) -> bool {
        const ENOUGH: usize = 6;
        let moves = self.pattern != Pattern::Reduce || self.needs.contains(&Need::Commutative);
        match self.fixed_order {
            FixedOrder::Broken => moves || n_ranks >= ENOUGH,
            FixedOrder::Kept | FixedOrder::Purpose => moves || n_ranks.is_power_of_two(),
        }
    }

    /// The case of one call.
    ///
    /// Units: `message_bytes` as the collective defines it; a fact that all ranks share.
    pub fn case(
        &self,
        rank: usize,
        n_ranks: usize,
        root: usize,
        values: Values,
        message_bytes: u64,
    ) -> Case {
        Case {
            rank,
            n_ranks,
            root,
            segments: self.segments(message_bytes, n_ranks, values.segsize),
            radix: values.radix,
            window: values.window,
        }
    }

    /// How many segments a message is cut into: enough that none is longer than `segsize`, up to
    /// [`SEGMENTS_MAX`], rounded up to a number of three leading bits (so that a communicator
    /// keeps few plans).
    pub fn segments(&self, message_bytes: u64, n_ranks: usize, segsize: u64) -> usize {
        let cut = self
            .parameters
            .iter()
            .find_map(|parameter| match parameter {
                Parameter::Segsize(cut, _) => Some(*cut),
                _ => None,
            });
        let bytes = match cut {
            None => return 1,
            Some(Cut::Message) => message_bytes,
            Some(Cut::Share) => message_bytes.div_ceil(n_ranks.max(1) as u64),
        };
        if segsize == 0 {
            return 1;
        }
        let least = bytes.div_ceil(segsize).clamp(1, SEGMENTS_MAX);
        let unit = 1u64 << least.ilog2().saturating_sub(2);
        (least.div_ceil(unit) * unit) as usize
    }

    /// Every combination of the parameters' values.
    pub fn values(&self) -> Vec<Values> {
        let mut all = vec![Values {
            segsize: 0,
            radix: 2,
            window: 1,
        }];
        for parameter in self.parameters {
            all = match parameter {
                Parameter::Segsize(_, sizes) => {
                    each(&all, sizes, |values, segsize| Values { segsize, ..values })
                }
                Parameter::Radix(radixes) => {
                    each(&all, radixes, |values, radix| Values { radix, ..values })
                }
                Parameter::Window(windows) => {
                    each(&all, windows, |values, window| Values { window, ..values })
                }
            };
        }
        all
    }

    /// The name of the variant with these values: `p2p:bruck:radix=4`.
    pub fn variant(&self, values: Values) -> VariantName {
        let mut name = VariantName::of(Family::P2p, self.name);
        for parameter in self.parameters {
            match parameter {
                Parameter::Segsize(..) => {
                    name.segsize = Some(values.segsize).filter(|&segsize| segsize > 0);
                }
                Parameter::Radix(_) => name.radix = u32::try_from(values.radix).ok(),
                Parameter::Window(_) => name.window = u32::try_from(values.window).ok(),
            }
        }
        name
    }
}

fn each<T: Copy>(all: &[Values], choices: &[T], with: impl Fn(Values, T) -> Values) -> Vec<Values> {
    let one = |values: &Values| {
        let values = *values;
        choices
            .iter()
            .map(move |choice| (values, *choice))
            .collect::<Vec<_>>()
    };
    all.iter()
        .flat_map(one)
        .map(|(values, choice)| with(values, choice))
        .collect()
}

/// A row without parameters, needs or irregular form, which works in place.
pub(super) const fn row(
    pattern: Pattern,
    name: &'static str,
    schedule: fn(Case) -> Schedule,
    source: &'static str,
) -> Row {
    Row {
        pattern,
        name,
        schedule,
        parameters: &[],
        needs: &[],
        lengths: Lengths::Equal,
        in_place: InPlace::Shared,
        symmetry: Symmetry::None,
        blocks: BlockOrder::Any,
        fixed_order: FixedOrder::Broken,
        source,
    }
}

impl Row {
    pub(super) const fn parameters(self, parameters: &'static [Parameter]) -> Row {
        Row { parameters, ..self }
    }

    pub(super) const fn needs(self, needs: &'static [Need]) -> Row {
        Row { needs, ..self }
    }

    pub(super) const fn any_lengths(self) -> Row {
        Row {
            lengths: Lengths::Any,
            ..self
        }
    }

    pub(super) const fn symmetric(self, symmetry: Symmetry) -> Row {
        Row { symmetry, ..self }
    }

    pub(super) const fn own_block_first(self) -> Row {
        Row {
            blocks: BlockOrder::OwnThenBack,
            ..self
        }
    }

    pub(super) const fn in_fixed_order(self) -> Row {
        Row {
            fixed_order: FixedOrder::Kept,
            ..self
        }
    }

    pub(super) const fn for_fixed_order(self) -> Row {
        Row {
            fixed_order: FixedOrder::Purpose,
            ..self
        }
    }

    pub(super) const fn copied_in_place(self) -> Row {
        Row {
            in_place: InPlace::Copied,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::pattern::Pattern::{Allreduce, Bcast, Gather, Reduce, Scatter};
    use crate::algorithm::plan::Plan;
    use crate::algorithm::program::Program;
    use crate::algorithm::registry::{ROWS, find};
    use crate::algorithm::schedule::Step;

    #[test]
    fn segments_follow_the_bytes_and_are_few() {
        let chain = find(Bcast, "chain").unwrap();
        assert_eq!(chain.segments(0, 8, 4096), 1);
        assert_eq!(chain.segments(4096, 8, 4096), 1);
        assert_eq!(chain.segments(4097, 8, 4096), 2);
        assert_eq!(chain.segments(9 * 4096, 8, 4096), 10);
        assert_eq!(chain.segments(u64::MAX, 8, 1), SEGMENTS_MAX as usize);
        assert_eq!(chain.segments(1 << 20, 8, 0), 1);
        let ring = find(Allreduce, "segmented_ring").unwrap();
        assert_eq!(ring.segments(8 << 16, 8, 1 << 14), 4);
        assert_eq!(find(Allreduce, "ring").unwrap().segments(1 << 30, 8, 1), 1);
        let counts: std::collections::HashSet<_> = (0..10_000_u64)
            .map(|bytes| chain.segments(bytes, 8, 4))
            .collect();
        assert!(counts.len() <= 4 * 10, "{} plans", counts.len());
    }

    /// The blocks that a rank sends, in the order in which it first does.
    fn blocks_sent(row: &Row, rank: usize, n_ranks: usize) -> Vec<usize> {
        let values = row.values()[0];
        let case = row.case(rank, n_ranks, 0, values, 1 << 20);
        let schedule = (row.schedule)(case);
        let chunks_per_block = (schedule.parts_per_block / n_ranks).max(1);
        let mut blocks = Vec::new();
        for step in schedule.steps {
            let Step::Send { what, .. } = step else {
                continue;
            };
            for chunk in what.as_slice().iter().flat_map(|part| part.chunks()) {
                let block = chunk / chunks_per_block;
                if !blocks.contains(&block) {
                    blocks.push(block);
                }
            }
        }
        blocks
    }

    #[test]
    fn the_rows_that_say_so_take_the_own_block_first_and_then_those_before_it_and_no_others_do() {
        let n = 6;
        for row in crate::algorithm::registry::ROWS {
            if row.pattern != Allreduce || !row.fits(n) {
                continue;
            }
            let back_from_own = (0..n).all(|rank| {
                let order = (0..n).map(|step| (rank + n - step) % n);
                blocks_sent(row, rank, n).into_iter().eq(order)
            });
            let says_so = row.blocks == BlockOrder::OwnThenBack;
            assert_eq!(
                says_so, back_from_own,
                "allreduce {}: .own_block_first()",
                row.name
            );
        }
    }

    /// The most that any rank needs with a root: the bytes of its program, requests and temporaries.
    fn most_needed(row: &Row, values: Values, n_ranks: usize, root: usize) -> [usize; 3] {
        let of = |rank| {
            let case = row.case(rank, n_ranks, root, values, 1 << 16);
            let blocks = row.pattern.blocks(n_ranks);
            let program = Program::new(&Plan::new((row.schedule)(case)), blocks);
            let (requests, temporaries) = (&program.staged_chunks, &program.temporaries);
            [program.bytes() as usize, requests.len(), temporaries.len()]
        };
        let most = |one: [usize; 3], other: [usize; 3]| [0, 1, 2].map(|k| one[k].max(other[k]));
        (0..n_ranks).map(of).fold([0; 3], most)
    }

    /// With one root the ranks agree on what is enough for all. Twice the bytes that are needed with that one are held.
    #[test]
    fn with_any_root_the_rank_that_needs_the_most_needs_about_as_much_as_with_another() {
        let rooted = [Bcast, Reduce, Gather, Scatter];
        for row in ROWS.iter().filter(|row| rooted.contains(&row.pattern)) {
            for values in row.values() {
                let is_alike = |n: &usize| row.fits(*n) && row.is_alike_with_any_root(*n);
                for n_ranks in (2..=17).filter(is_alike) {
                    let needed = |root| most_needed(row, values, n_ranks, root);
                    let all: Vec<_> = (0..n_ranks).map(needed).collect();
                    let name = row.variant(values);
                    for k in 0..3 {
                        let of = all.iter().map(|needed| needed[k]);
                        let both = of.clone().min().zip(of.max());
                        let (least, most) = both.expect("there are ranks");
                        let enough = if k == 0 { 2 * least - 1 } else { least };
                        assert!(most <= enough, "{name} {n_ranks} {k}: {all:?}");
                    }
                }
            }
        }
    }
}
