//! How the members of a communicator come to the same arm, though one of them may never ask.
//!
//! A tree of members, the root of which decides. Each gathers what the members below it say, tells the one above it, and
//! waits for the root's word: an arm, or that there is none. A member that waited too long for another one gives up,
//! which is the same as no arm. So before an arm is in force, each member promises not to give up any more, or says
//! that it has, and the root's last word follows:
//!
//! ```text
//! up: what was asked    down: first word    up: promised or given up    down: last word
//! ```
//! A member that has promised waits without end, but only for members that have asked and will answer. The others' answer
//! is then no arm, which is what those who gave up took. So all that come take one arm, and none waits for ever.

/// What members say, combined on the way up; what the numbers mean is the caller's.
pub type Words = [u64; 4];

/// What [`Words`] are combined by.
pub type Combine = fn(&mut Words, &Words);

/// One message between a member and the one above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Up: what the members from here down asked; `None` where one of them did not come.
    Asked(Option<Words>),
    /// Down: the arm, or none.
    First(Option<u32>),
    /// Up: whether all from here down have promised.
    Promised(bool),
    /// Down: whether the arm is in force.
    Last(bool),
}

/// What a member does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Send(usize, Message),
    /// Waits for a message of a member; `patient` ones without end.
    Receive {
        from: usize,
        patient: bool,
    },
    /// The root alone: says what comes of what was asked; see [`Accord::decide`].
    Decide(Words),
    Over(Option<u32>),
}

/// Who is above and below a member in the tree of `n`, with member 0 as its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub above: Option<usize>,
    pub below: Vec<usize>,
}

impl Tree {
    /// A binomial tree: member `m` is below the one with its lowest bit cleared.
    pub fn binomial(member: usize, n: usize) -> Tree {
        let own = match member {
            0 => usize::BITS,
            _ => member.trailing_zeros(),
        };
        let below = (0..own).map_while(|bit| {
            let other = member + 1usize.checked_shl(bit)?;
            (other < n).then_some(other)
        });
        Tree {
            above: (member > 0).then(|| member & (member - 1)),
            below: below.collect(),
        }
    }
}

/// Gathers what the members below say; by itself a reduction to the root.
#[derive(Clone, Debug)]
pub struct Gather {
    tree: Tree,
    combine: Combine,
    heard: usize,
    words: Option<Words>,
}

impl Gather {
    pub fn new(tree: Tree, own: Words, combine: Combine) -> Gather {
        Gather {
            tree,
            combine,
            heard: 0,
            words: Some(own),
        }
    }

    /// Whom it waits for; `None` where everybody was heard.
    pub fn waits_for(&self) -> Option<usize> {
        self.tree.below.get(self.heard).copied()
    }

    /// Takes what that member said, or that it did not come.
    pub fn heard(&mut self, said: Option<Words>) {
        self.heard += 1;
        self.words = match (self.words, said) {
            (Some(mut words), Some(said)) => {
                (self.combine)(&mut words, &said);
                Some(words)
            }
            _ => None,
        };
    }

    /// Where it goes, and what; `None` above the root.
    pub fn up(&self) -> Option<usize> {
        self.tree.above
    }

    pub fn words(&self) -> Option<Words> {
        self.words
    }
}

/// One member's part.
#[derive(Clone, Debug)]
pub struct Accord {
    gather: Gather,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Gathering,
    Deciding(Words),
    /// For the first word.
    Waiting,
    /// The first word goes to the members from that place on.
    Telling(Option<u32>, usize),
    /// It gave up: that goes up, and then down.
    GivingUp,
    /// Promises of the members from that place on are to come.
    Collecting(u32, usize, bool),
    Bound(u32),
    /// The last word goes to the members from that place on.
    Closing(Option<u32>, usize),
}

impl Accord {
    pub fn new(tree: Tree, own: Words, combine: Combine) -> Accord {
        Accord {
            gather: Gather::new(tree, own, combine),
            stage: Stage::Gathering,
        }
    }

    /// What to do next. Each message is given once.
    pub fn step(&mut self) -> Next {
        let above = self.gather.up();
        let below = |place: usize| self.gather.tree.below.get(place).copied();
        match self.stage {
            Stage::Gathering => match (self.gather.waits_for(), above, self.gather.words()) {
                (Some(from), ..) => Next::Receive {
                    from,
                    patient: false,
                },
                (None, Some(above), words) => {
                    self.stage = Stage::Waiting;
                    Next::Send(above, Message::Asked(words))
                }
                (None, None, Some(words)) => {
                    self.stage = Stage::Deciding(words);
                    self.step()
                }
                (None, None, None) => {
                    self.stage = Stage::Telling(None, 0);
                    self.step()
                }
            },
            Stage::Deciding(words) => Next::Decide(words),
            Stage::Waiting => Next::Receive {
                from: above.expect("the root decides"),
                patient: false,
            },
            Stage::GivingUp => {
                self.stage = Stage::Telling(None, 0);
                Next::Send(above.expect("the root decides"), Message::Promised(false))
            }
            Stage::Telling(arm, place) => match (below(place), arm) {
                (Some(to), _) => {
                    self.stage = Stage::Telling(arm, place + 1);
                    Next::Send(to, Message::First(arm))
                }
                (None, None) => Next::Over(None),
                (None, Some(arm)) => {
                    self.stage = Stage::Collecting(arm, 0, true);
                    self.step()
                }
            },
            Stage::Collecting(arm, place, all) => match (below(place), above) {
                (Some(from), _) => Next::Receive {
                    from,
                    patient: true,
                },
                (None, Some(above)) => {
                    self.stage = Stage::Bound(arm);
                    Next::Send(above, Message::Promised(all))
                }
                (None, None) => {
                    self.stage = Stage::Closing(all.then_some(arm), 0);
                    self.step()
                }
            },
            Stage::Bound(_) => Next::Receive {
                from: above.expect("the root has the last word"),
                patient: true,
            },
            Stage::Closing(arm, place) => match below(place) {
                Some(to) => {
                    self.stage = Stage::Closing(arm, place + 1);
                    Next::Send(to, Message::Last(arm.is_some()))
                }
                None => Next::Over(arm),
            },
        }
    }

    /// The root's decision, where [`Next::Decide`] asked for it.
    pub fn decide(&mut self, arm: Option<u32>) {
        if let Stage::Deciding(_) = self.stage {
            self.stage = Stage::Telling(arm, 0);
        }
    }

    /// Takes the message that [`Next::Receive`] waited for; `None` where it did not come in time, or made no sense.
    pub fn received(&mut self, message: Option<Message>) {
        self.stage = match (self.stage, message) {
            (Stage::Gathering, said) => {
                self.gather.heard(match said {
                    Some(Message::Asked(words)) => words,
                    _ => None,
                });
                Stage::Gathering
            }
            (Stage::Waiting, Some(Message::First(arm))) => Stage::Telling(arm, 0),
            (Stage::Waiting, _) => Stage::GivingUp,
            (Stage::Collecting(arm, place, all), said) => {
                Stage::Collecting(arm, place + 1, all && said == Some(Message::Promised(true)))
            }
            (Stage::Bound(arm), said) => {
                Stage::Closing((said == Some(Message::Last(true))).then_some(arm), 0)
            }
            (stage, _) => stage,
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use super::*;
    use crate::select::mix;

    /// How long a member waits that is not patient, in turns.
    const PATIENCE: u64 = 200;

    fn largest(words: &mut Words, said: &Words) {
        for (word, said) in words.iter_mut().zip(said) {
            *word = (*word).max(*said);
        }
    }

    /// One member on its way through several talks with the same others.
    #[derive(Default)]
    struct Member {
        talk: usize,
        /// Of its talks so far, which its messages carry.
        number: u64,
        part: Option<Accord>,
        waits: Option<(usize, bool, u64)>,
        /// When the talk before was over.
        free_at: u64,
        is_refused: bool,
        took: Vec<Option<Option<u32>>>,
    }

    type Queue = VecDeque<(u64, u64, Message)>;

    /// Members that come to each talk so many turns after the one before, or leave it out; messages take up to `delay` turns.
    /// Returns by talk what each took that came; `None` of those that never got through.
    fn simulated(
        comes: &[Vec<Option<u64>>],
        delay: u64,
        seed: u64,
    ) -> Vec<Vec<Option<Option<u32>>>> {
        let n = comes[0].len();
        let mut members: Vec<Member> = std::iter::repeat_with(Member::default).take(n).collect();
        let mut queues: HashMap<(usize, usize), Queue> = HashMap::new();
        let mut random = seed;
        for turn in 0..20_000u64 {
            for (place, member) in members.iter_mut().enumerate() {
                // Members are slow or quick by chance.
                random = mix(random, turn + place as u64);
                let Some(come) = comes.get(member.talk).map(|talk| talk[place]) else {
                    continue;
                };
                let ends = |member: &mut Member, took: Option<Option<u32>>| {
                    member.is_refused |= took == Some(None);
                    member.took.push(took);
                    (member.talk, member.free_at, member.part) = (member.talk + 1, turn, None);
                };
                let Some(after) = come else {
                    ends(member, None);
                    continue;
                };
                if random.is_multiple_of(3) || turn < member.free_at + after {
                    continue;
                }
                if member.is_refused {
                    ends(member, Some(None));
                    continue;
                }
                if member.part.is_none() {
                    member.number += 1;
                    let own = [place as u64, 7, !7, 0];
                    member.part = Some(Accord::new(Tree::binomial(place, n), own, largest));
                }
                let part = member.part.as_mut().expect("it was made");
                if let Some((from, patient, since)) = member.waits {
                    let queue = queues.entry((from, place)).or_default();
                    while queue
                        .front()
                        .is_some_and(|(at, number, _)| *at <= turn && *number < member.number)
                    {
                        queue.pop_front();
                    }
                    let come = queue.front().filter(|(at, ..)| *at <= turn).copied();
                    match come {
                        Some((_, number, message)) => {
                            queue.pop_front();
                            let is_its = number == member.number;
                            assert!(is_its || !patient, "who waits without end gets an answer");
                            part.received(is_its.then_some(message));
                        }
                        None if !patient && turn - since > PATIENCE => part.received(None),
                        None => continue,
                    }
                    member.waits = None;
                }
                match part.step() {
                    Next::Send(to, message) => {
                        random = mix(random, 1);
                        let queue = queues.entry((place, to)).or_default();
                        let behind = queue.back().map_or(0, |(at, ..)| *at);
                        let at = behind.max(turn + 1 + random % delay);
                        queue.push_back((at, member.number, message));
                    }
                    Next::Receive { from, patient } => member.waits = Some((from, patient, turn)),
                    Next::Decide(words) => {
                        assert_eq!(words, [n as u64 - 1, 7, !7, 0]);
                        part.decide(Some(3));
                    }
                    Next::Over(arm) => ends(member, Some(arm)),
                }
            }
        }
        let took = |talk: usize| {
            members
                .iter()
                .map(|member| member.took.get(talk).copied().flatten())
                .collect()
        };
        (0..comes.len()).map(took).collect()
    }

    fn in_one_talk(comes: &[Option<u64>], delay: u64, seed: u64) -> Vec<Option<Option<u32>>> {
        simulated(&[comes.to_vec()], delay, seed).remove(0)
    }

    #[test]
    fn members_that_all_come_in_time_take_the_roots_arm() {
        for n in 1..=33 {
            let comes: Vec<Option<u64>> = (0..n).map(|member| Some(member % 5)).collect();
            let took = in_one_talk(&comes, 3, n);
            assert!(
                took.iter().all(|took| *took == Some(Some(3))),
                "{n}: {took:?}"
            );
        }
    }

    #[test]
    fn where_one_never_comes_the_others_take_none_and_none_waits_for_ever() {
        for n in 2..=17 {
            for missing in 0..n {
                let mut comes = vec![Some(1); n];
                comes[missing] = None;
                let took = in_one_talk(&comes, 3, 1);
                for (member, took) in took.into_iter().enumerate() {
                    let expected = (member != missing).then_some(None);
                    assert_eq!(took, expected, "{n} members without {missing}: {member}");
                }
            }
        }
    }

    #[test]
    fn whenever_members_come_all_take_the_same() {
        let (mut arms, mut none) = (0, 0);
        for seed in 0..4_000u64 {
            let n = 2 + mix(seed, 1) % 9;
            let spread = 1 + mix(seed, 2) % (3 * PATIENCE);
            let comes = |member| Some(mix(mix(seed, 3), member) % spread);
            let comes: Vec<Option<u64>> = (0..n).map(comes).collect();
            let took = in_one_talk(&comes, 1 + mix(seed, 4) % 120, seed);
            assert!(
                took.iter().all(|one| one.is_some() && *one == took[0]),
                "seed {seed}: {took:?}"
            );
            match took[0].flatten() {
                Some(_) => arms += 1,
                None => none += 1,
            }
        }
        assert!(
            arms > 500 && none > 500,
            "{arms} with an arm, {none} without"
        );
    }

    /// Talks of one set of members. One that leaves a talk out leaves out those behind it, too, or `goes_on` asking, which is as
    /// wrong as to leave out any collective: then its next question is taken for the one that it owes.
    fn several(goes_on: bool) -> [usize; 2] {
        let (mut arms, mut none) = (0, 0);
        for seed in 0..1_500u64 {
            let n = 2 + mix(seed, 1) % 6;
            let spread = 1 + mix(seed, 2) % (2 * PATIENCE);
            let mut has_left = vec![false; n as usize];
            let mut come = |talk: u64, member: u64| {
                let random = mix(mix(seed, 3 + talk), member);
                let left = &mut has_left[member as usize];
                *left = random.is_multiple_of(23) || *left && !goes_on;
                (!*left).then_some(random % spread)
            };
            let mut comes: Vec<Vec<Option<u64>>> = Vec::new();
            for talk in 0..4 {
                comes.push((0..n).map(|member| come(talk, member)).collect());
            }
            let talks = simulated(&comes, 1 + mix(seed, 9) % 150, seed);
            for (took, comes) in talks.iter().zip(&comes) {
                let came = took.iter().zip(comes).filter(|(_, come)| come.is_some());
                let came: Vec<_> = came.map(|(took, _)| *took).collect();
                assert!(
                    came.iter().all(Option::is_some),
                    "seed {seed}: somebody waits for ever: {talks:?}"
                );
                let alike = came.iter().all(|took| *took == came[0]);
                assert!(alike || goes_on, "seed {seed}: {talks:?}");
                match came.first().copied().flatten().flatten() {
                    Some(_) => arms += 1,
                    None => none += 1,
                }
            }
        }
        [arms, none]
    }

    #[test]
    fn what_is_left_of_earlier_talks_parts_nobody_and_holds_nobody_up() {
        let [arms, none] = several(false);
        assert!(
            arms > 500 && none > 500,
            "{arms} with an arm, {none} without"
        );
    }

    #[test]
    fn nobody_waits_for_ever_where_a_member_leaves_a_question_out_and_goes_on() {
        several(true);
    }

    #[test]
    fn a_gathering_alone_brings_what_all_said_to_the_root_of_every_tree() {
        for n in 1..=33usize {
            let mut below: Vec<Vec<usize>> = vec![Vec::new(); n];
            for member in 1..n {
                let above = Tree::binomial(member, n).above.unwrap();
                assert!(above < member);
                below[above].push(member);
            }
            for (member, below) in below.iter().enumerate() {
                assert_eq!(Tree::binomial(member, n).below, *below, "{member} of {n}");
            }
            let mut said = vec![None; n];
            for member in (0..n).rev() {
                let mut gather =
                    Gather::new(Tree::binomial(member, n), [member as u64; 4], largest);
                while let Some(from) = gather.waits_for() {
                    gather.heard(said[from]);
                }
                said[member] = gather.words();
            }
            assert_eq!(said[0], Some([n as u64 - 1; 4]));
        }
    }
}
