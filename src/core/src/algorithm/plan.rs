//! From a schedule to what a rank executes: posts, waits and local work, in one straight line.
//!
//! The steps' program order says what must be computed; the chunks that they touch say what must
//! wait for what. Compiling puts each receive as early as nothing before it touches its chunks
//! (at most [`Schedule::window`] of them at a time), each send where it stands, and each wait as
//! late as it can be: before the first step that touches the chunks of a receive, or that writes
//! the chunks of a send. Messages between two ranks keep their order, so that one tag is enough.

use std::collections::HashMap;

use super::pattern::Pattern;
use super::schedule::{Buffer, Order, Part, Parts, Schedule, Step, Temporary, narrow, place};

/// A range of [`Plan::parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsRange {
    pub start: u32,
    pub len: u32,
}

/// One instruction; they run strictly in order. Only `Wait` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Posts a nonblocking receive, to be known as `request`.
    Receive {
        request: u32,
        from: u32,
        into: PartsRange,
    },
    /// Posts a nonblocking send, to be known as `request`.
    Send {
        request: u32,
        to: u32,
        what: PartsRange,
    },
    /// Until that request is complete. Nothing to do when its message was empty.
    Wait {
        request: u32,
    },
    Reduce {
        source: Part,
        target: Part,
        order: Order,
    },
    Copy {
        source: Part,
        target: Part,
    },
}

/// What one rank executes; see the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub parts_per_block: usize,
    pub temporaries: Vec<Temporary>,
    pub instructions: Vec<Instruction>,
    /// The parts of all messages, one after another.
    pub parts: Vec<Part>,
    /// Requests are numbered below this; a number is reused only after its wait.
    pub n_requests: usize,
}

impl Plan {
    pub fn message(&self, range: PartsRange) -> &[Part] {
        &self.parts[range.start as usize..][..range.len as usize]
    }

    /// Compiles a schedule for user buffers that share no memory.
    pub fn new(schedule: Schedule) -> Plan {
        Plan::with(schedule, |part| part)
    }

    /// Compiles a schedule for a call in place: one user buffer is named throughout, and copies
    /// of a chunk onto itself are left out.
    pub fn in_place(schedule: Schedule, pattern: Pattern, rank: usize, root: usize) -> Plan {
        let parts_per_block = schedule.parts_per_block;
        Plan::with(schedule, |part| {
            pattern.in_place(rank, root, parts_per_block, part)
        })
    }

    fn with(schedule: Schedule, lies_at: impl Fn(Part) -> Part) -> Plan {
        let window = schedule.window;
        let no_step =
            |step: &Step| matches!(step, Step::Copy { source, target } if source == target);
        let steps = schedule.steps.map(|step| step.relocated(&lies_at));
        let steps: Vec<Step> = steps.filter(|step| !no_step(step)).collect();
        let mut compiler = Compiler {
            plan: Plan {
                parts_per_block: schedule.parts_per_block,
                temporaries: schedule.temporaries,
                instructions: Vec::new(),
                parts: Vec::new(),
                n_requests: 0,
            },
            pending: Vec::new(),
            free: Vec::new(),
            window,
        };
        let mut receives = blocked_receives(&steps, &compiler.plan.temporaries)
            .into_iter()
            .peekable();
        for (index, step) in steps.iter().enumerate() {
            while let Some(&(receive, blocker)) = receives.peek() {
                let early = receive > index && blocker.is_none_or(|blocker| blocker < index);
                let may_post = receive == index || (early && compiler.may_post(&steps[receive]));
                if !may_post {
                    break;
                }
                compiler.post(receive, &steps[receive]);
                receives.next();
            }
            if !matches!(step, Step::Receive { .. }) {
                compiler.step(index, step);
            }
        }
        while let Some(oldest) = compiler.pending.first() {
            compiler.wait(oldest.request);
        }
        compiler.plan
    }
}

/// For each receive in program order: its index and the last step before it that touches one of
/// its chunks.
fn blocked_receives(steps: &[Step], temporaries: &[Temporary]) -> Vec<(usize, Option<usize>)> {
    let mut touched: HashMap<(Buffer, usize), usize> = HashMap::new();
    let mut receives = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let mut blocker = None;
        let mut touch = |part: &Part| {
            for chunk in place(part, temporaries).chunks() {
                let last = touched.insert((part.buffer, chunk), index);
                blocker = blocker.max(last.filter(|&last| last < index));
            }
        };
        match step {
            Step::Send { what: parts, .. } | Step::Receive { into: parts, .. } => {
                parts.as_slice().iter().for_each(&mut touch);
            }
            Step::Reduce { source, target, .. } | Step::Copy { source, target } => {
                touch(source);
                touch(target);
            }
        }
        if matches!(step, Step::Receive { .. }) {
            receives.push((index, blocker));
        }
    }
    receives
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// A message that has been posted and not waited for.
struct Pending {
    /// The index of its step.
    step: usize,
    request: u32,
    direction: Direction,
    parts: PartsRange,
}

/// How a step touches a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

struct Compiler {
    plan: Plan,
    /// In the order in which they were posted.
    pending: Vec<Pending>,
    free: Vec<u32>,
    window: usize,
}

impl Compiler {
    /// Whether a receive can be posted ahead of its turn without a wait.
    fn may_post(&self, step: &Step) -> bool {
        let Step::Receive { into, .. } = step else {
            return false;
        };
        self.under_way(Direction::In) < self.window
            && !into
                .as_slice()
                .iter()
                .any(|part| self.conflict(part, Access::Write).is_some())
    }

    fn under_way(&self, direction: Direction) -> usize {
        let same = |pending: &&Pending| pending.direction == direction;
        self.pending.iter().filter(same).count()
    }

    /// The first message under way that must be complete before `part` is touched.
    fn conflict(&self, part: &Part, access: Access) -> Option<u32> {
        let temporaries = &self.plan.temporaries;
        let part = place(part, temporaries);
        let overlaps = |other: &Part| place(other, temporaries).overlaps(&part);
        let conflicts = |pending: &&Pending| {
            (access == Access::Write || pending.direction == Direction::In)
                && self.plan.message(pending.parts).iter().any(overlaps)
        };
        self.pending.iter().find(conflicts).map(|p| p.request)
    }

    fn settle(&mut self, part: &Part, access: Access) {
        while let Some(request) = self.conflict(part, access) {
            self.wait(request);
        }
    }

    /// A token tells that all tokens before it have come, so they are waited for.
    fn settle_tokens(&mut self, before: usize) {
        let token = |pending: &&Pending| {
            pending.direction == Direction::In && pending.parts.len == 0 && pending.step < before
        };
        while let Some(request) = self.pending.iter().find(token).map(|p| p.request) {
            self.wait(request);
        }
    }

    fn wait(&mut self, request: u32) {
        self.pending.retain(|pending| pending.request != request);
        self.free.push(request);
        self.plan.instructions.push(Instruction::Wait { request });
    }

    fn request(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.plan.n_requests += 1;
            narrow(self.plan.n_requests - 1)
        })
    }

    fn step(&mut self, index: usize, step: &Step) {
        match *step {
            Step::Send { .. } | Step::Receive { .. } => self.post(index, step),
            Step::Reduce {
                source,
                target,
                order,
            } => {
                let on_source = match order {
                    Order::SourceFirst => Access::Read,
                    Order::SourceLast => Access::Write,
                };
                self.settle(&source, on_source);
                self.settle(&target, Access::Write);
                self.plan.instructions.push(Instruction::Reduce {
                    source,
                    target,
                    order,
                });
            }
            Step::Copy { source, target } => {
                self.settle(&source, Access::Read);
                self.settle(&target, Access::Write);
                let copy = Instruction::Copy { source, target };
                self.plan.instructions.push(copy);
            }
        }
    }

    fn post(&mut self, index: usize, step: &Step) {
        let (direction, access, parts) = match step {
            Step::Send { what, .. } => (Direction::Out, Access::Read, what),
            Step::Receive { into, .. } => (Direction::In, Access::Write, into),
            Step::Reduce { .. } | Step::Copy { .. } => return,
        };
        for part in parts.as_slice() {
            self.settle(part, access);
        }
        if direction == Direction::Out && parts.as_slice().is_empty() {
            self.settle_tokens(index);
        }
        while self.under_way(direction) >= self.window {
            let oldest = self.pending.iter().find(|p| p.direction == direction);
            let oldest = oldest.map(|pending| pending.request);
            oldest.into_iter().for_each(|request| self.wait(request));
        }
        let request = self.request();
        let parts = self.store(parts);
        self.pending.push(Pending {
            step: index,
            request,
            direction,
            parts,
        });
        let instruction = match *step {
            Step::Send { to, .. } => Instruction::Send {
                request,
                to,
                what: parts,
            },
            Step::Receive { from, .. } => Instruction::Receive {
                request,
                from,
                into: parts,
            },
            Step::Reduce { .. } | Step::Copy { .. } => return,
        };
        self.plan.instructions.push(instruction);
    }

    fn store(&mut self, parts: &Parts) -> PartsRange {
        let start = narrow(self.plan.parts.len());
        self.plan.parts.extend_from_slice(parts.as_slice());
        PartsRange {
            start,
            len: narrow(parts.as_slice().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(index: usize) -> Part {
        Part::range(Buffer::Output, index, 1)
    }

    fn compile(window: usize, steps: Vec<Step>) -> String {
        let plan = Plan::new(Schedule::new(9, steps.into_iter()).window(window));
        let text = |instruction: &Instruction| match instruction {
            Instruction::Receive { request, .. } => format!("r{request}"),
            Instruction::Send { request, .. } => format!("s{request}"),
            Instruction::Wait { request } => format!("w{request}"),
            Instruction::Reduce { .. } => "+".to_owned(),
            Instruction::Copy { .. } => "=".to_owned(),
        };
        let words: Vec<_> = plan.instructions.iter().map(text).collect();
        words.join(" ")
    }

    fn pipeline() -> Vec<Step> {
        (0..4)
            .flat_map(|c| [Step::receive(0, chunk(c)), Step::send(2, chunk(c))])
            .collect()
    }

    #[test]
    fn a_pipeline_posts_its_receives_ahead_as_far_as_the_window_allows() {
        assert_eq!(
            compile(1, pipeline()),
            "r0 w0 s0 r1 w1 w0 s0 r1 w1 w0 s0 r1 w1 w0 s0 w0"
        );
        let two = compile(2, pipeline());
        assert!(two.starts_with("r0 r1 w0 s0 r2 w1 s1"), "{two}");
        assert!(compile(8, pipeline()).starts_with("r0 r1 r2 r3 w0 s0 w1 s1 w2 s2 w3 s3"));
    }

    #[test]
    fn a_write_waits_for_the_send_that_reads_its_chunks_and_a_read_does_not() {
        let read = vec![Step::send(1, chunk(0)), Step::copy(chunk(0), chunk(1))];
        assert_eq!(compile(8, read), "s0 = w0");
        let write = vec![Step::send(1, chunk(0)), Step::copy(chunk(1), chunk(0))];
        assert_eq!(compile(8, write), "s0 w0 =");
        let consumed = Step::reduce(chunk(0), chunk(1), Order::SourceLast);
        assert_eq!(
            compile(8, vec![Step::send(1, chunk(0)), consumed]),
            "s0 w0 +"
        );
        let kept = Step::reduce(chunk(0), chunk(1), Order::SourceFirst);
        assert_eq!(compile(8, vec![Step::send(1, chunk(0)), kept]), "s0 + w0");
    }

    #[test]
    fn a_receive_never_passes_a_step_that_touches_its_chunks_nor_an_earlier_receive() {
        let steps = vec![
            Step::copy(chunk(0), chunk(3)),
            Step::copy(chunk(1), chunk(4)),
            Step::receive(0, chunk(1)),
            Step::receive(0, chunk(2)),
        ];
        assert_eq!(compile(8, steps), "= = r0 r1 w0 w1");
    }

    #[test]
    fn a_token_is_sent_only_after_the_tokens_before_it_have_come() {
        let steps = vec![
            Step::receive(0, Parts::None),
            Step::send(1, Parts::None),
            Step::receive(2, Parts::None),
        ];
        assert_eq!(compile(8, steps), "r0 r1 w0 s0 w1 w0");
    }

    #[test]
    fn in_place_a_copy_onto_itself_is_no_step_and_hazards_are_seen() {
        let input = Part::range(Buffer::Input, 0, 1);
        let steps = || {
            let steps = vec![
                Step::copy(input, chunk(0)),
                Step::send(1, input),
                Step::receive(1, chunk(0)),
            ];
            Schedule::new(1, steps.into_iter())
        };
        let separate = Plan::new(steps());
        assert_eq!(separate.instructions.len(), 5);
        let shared = Plan::in_place(steps(), Pattern::Allreduce, 0, 0);
        let kinds: Vec<_> = shared
            .instructions
            .iter()
            .map(std::mem::discriminant)
            .collect();
        let [send, wait, receive] = [
            Instruction::Send {
                request: 0,
                to: 0,
                what: PartsRange { start: 0, len: 0 },
            },
            Instruction::Wait { request: 0 },
            Instruction::Receive {
                request: 0,
                from: 0,
                into: PartsRange { start: 0, len: 0 },
            },
        ]
        .map(|instruction| std::mem::discriminant(&instruction));
        assert_eq!(kinds, [send, wait, receive, wait]);
    }
}
