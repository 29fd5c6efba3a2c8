//! The library under the ranks: it lets them out of a collective as soon as MPI's semantics do, and notes where
//! members of a communicator are not in the same one.

use std::collections::VecDeque;

use crate::collective::Collective;

/// What a member of a communicator does there next. The library has no other sign of what belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    SetUp,
    Room {
        variant: u16,
    },
    /// So many words of which the largest is wanted, and so many that are added up behind them.
    Review {
        largest: usize,
        sums: usize,
    },
    Measure,
    Call {
        act: u32,
        variant: u16,
        sampled: bool,
    },
    Split,
}

/// Members of a communicator that do not do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub comm: u32,
    /// The operation's number on the communicator.
    pub position: u64,
    pub rank: u32,
    pub does: Operation,
    pub others: Operation,
}

/// When a rank may leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    BehindAll,
    /// Data come from the root alone.
    BehindRoot,
    /// Data go to the root alone.
    RootBehindAll,
    /// Data come from lower ranks.
    BehindLower,
}

fn leaving(operation: Operation, collective: Option<Collective>) -> Leaving {
    match (operation, collective) {
        (Operation::Call { .. }, Some(collective)) => match collective {
            Collective::Bcast | Collective::Scatter | Collective::Scatterv => Leaving::BehindRoot,
            Collective::Reduce | Collective::Gather | Collective::Gatherv => Leaving::RootBehindAll,
            Collective::Scan | Collective::Exscan => Leaving::BehindLower,
            _ => Leaving::BehindAll,
        },
        _ => Leaving::BehindAll,
    }
}

/// One operation of a communicator's members.
struct Meeting {
    operation: Operation,
    leaving: Leaving,
    root: u32,
    /// The largest, or the sum, of each of the members' words.
    words: Vec<u64>,
    /// Members that are in, and those that left.
    entered: u32,
    left: u32,
    is_in: Vec<bool>,
    /// Members from the first on that are in.
    prefix: usize,
    /// The agents that wait in it, by member.
    waiting: Vec<(u32, u32)>,
}

/// The operations of one communicator that some members have not left.
#[derive(Default)]
pub struct Fabric {
    comms: Vec<Meetings>,
}

#[derive(Default)]
struct Meetings {
    n_ranks: u32,
    first: u64,
    open: VecDeque<Meeting>,
}

/// Who does what where.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    pub comm: u32,
    pub position: u64,
    pub member: u32,
    pub agent: u32,
    pub operation: Operation,
    pub collective: Option<Collective>,
    pub root: u32,
    pub words: &'a [u64],
}

impl Fabric {
    pub fn new(n_ranks: impl Iterator<Item = u32>) -> Fabric {
        let comms = n_ranks.map(|n_ranks| Meetings {
            n_ranks,
            ..Meetings::default()
        });
        Fabric {
            comms: comms.collect(),
        }
    }

    /// A member comes. Who can leave for that is put on `free`.
    pub fn enter(&mut self, step: Step, rank: u32, free: &mut Vec<u32>) -> Result<(), Mismatch> {
        let meetings = &mut self.comms[step.comm as usize];
        let n_ranks = meetings.n_ranks;
        let place = (step.position - meetings.first) as usize;
        if place == meetings.open.len() {
            meetings.open.push_back(Meeting::new(&step, n_ranks));
        }
        let meeting = &mut meetings.open[place];
        if meeting.operation != step.operation || meeting.words.len() != step.words.len() {
            return Err(Mismatch {
                comm: step.comm,
                position: step.position,
                rank,
                does: step.operation,
                others: meeting.operation,
            });
        }
        let n_largest = match step.operation {
            Operation::Review { largest, .. } => largest,
            _ => step.words.len(),
        };
        for (place, (all, word)) in meeting.words.iter_mut().zip(step.words).enumerate() {
            *all = match place < n_largest {
                true => (*all).max(*word),
                false => *all + *word,
            };
        }
        meeting.entered += 1;
        if meeting.leaving == Leaving::BehindRoot || meeting.leaving == Leaving::BehindLower {
            meeting.is_in[step.member as usize] = true;
        }
        meeting.waiting.push((step.member, step.agent));
        meeting.release(n_ranks, step.member, free);
        Ok(())
    }

    /// A member takes the words along and leaves.
    pub fn leave(&mut self, comm: u32, position: u64, words: &mut Vec<u64>) {
        let meetings = &mut self.comms[comm as usize];
        let meeting = &mut meetings.open[(position - meetings.first) as usize];
        words.clone_from(&meeting.words);
        meeting.left += 1;
        while meetings
            .open
            .front()
            .is_some_and(|first| first.left == meetings.n_ranks)
        {
            meetings.open.pop_front();
            meetings.first += 1;
        }
    }

    /// What agents wait for that can never leave: the communicator, how many are in, and in what.
    pub fn stuck(&self) -> Vec<(usize, u32, Operation)> {
        let comms = self.comms.iter().enumerate();
        let waiting = comms.flat_map(|(comm, meetings)| {
            let open = meetings.open.iter();
            let open = open.filter(|meeting| !meeting.waiting.is_empty());
            open.map(move |meeting| (comm, meeting.entered, meeting.operation))
        });
        waiting.collect()
    }
}

impl Meeting {
    fn new(step: &Step, n_ranks: u32) -> Meeting {
        let leaving = leaving(step.operation, step.collective);
        let by_member = matches!(leaving, Leaving::BehindRoot | Leaving::BehindLower);
        Meeting {
            operation: step.operation,
            leaving,
            root: step.root,
            words: vec![0; step.words.len()],
            entered: 0,
            left: 0,
            is_in: vec![false; if by_member { n_ranks as usize } else { 0 }],
            prefix: 0,
            waiting: Vec::new(),
        }
    }

    /// Lets go whoever need not wait any longer, now that `newcomer` is in.
    fn release(&mut self, n_ranks: u32, newcomer: u32, free: &mut Vec<u32>) {
        let all = self.entered == n_ranks;
        match self.leaving {
            _ if all => free.extend(self.waiting.drain(..).map(|(_, agent)| agent)),
            Leaving::BehindAll => {}
            Leaving::BehindRoot => {
                if self.is_in[self.root as usize] {
                    free.extend(self.waiting.drain(..).map(|(_, agent)| agent));
                }
            }
            Leaving::RootBehindAll => {
                if newcomer != self.root
                    && let Some((_, agent)) = self.waiting.pop()
                {
                    free.push(agent);
                }
            }
            Leaving::BehindLower => {
                let before = self.prefix;
                while self.is_in.get(self.prefix) == Some(&true) {
                    self.prefix += 1;
                }
                if self.prefix > before {
                    let prefix = self.prefix;
                    self.waiting.retain(|&(member, agent)| {
                        let stays = member as usize >= prefix;
                        if !stays {
                            free.push(agent);
                        }
                        stays
                    });
                }
            }
        }
    }
}
