//! What a rank runs: straight-line operations over spans of chunks. It is compiled from a plan, and it is what the
//! checker ([`symbolic`](super::symbolic)) proves.

use super::plan::{Instruction, PartsRange, Plan};
use super::schedule::{Buffer, Order, Part, Temporary};

/// Chunks that lie one behind another in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub buffer: Buffer,
    pub first: u32,
    pub len: u32,
}

/// What one message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// No chunk at all; always sent.
    Token,
    Whole(Span),
    /// Several spans, a range of [`Program::spans`]: they become one message in a staging buffer.
    Pieces {
        start: u32,
        len: u32,
    },
}

/// One operation; they run in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Receive {
        request: u32,
        from: u32,
        into: Message,
    },
    Send {
        request: u32,
        to: u32,
        what: Message,
    },
    Wait {
        request: u32,
    },
    /// Until nothing is under way any more.
    WaitAll,
    Reduce {
        source: Span,
        target: Span,
        order: Order,
    },
    Copy {
        source: Span,
        target: Span,
    },
}

/// What one rank runs; depends on the case alone, never on lengths or addresses.
#[derive(Clone, Debug)]
pub struct Program {
    pub parts_per_block: u32,
    /// All chunks of the message.
    pub chunks: u32,
    pub temporaries: Vec<Temporary>,
    pub operations: Vec<Operation>,
    pub spans: Vec<Span>,
    /// For each request the most chunks that a message of several pieces brings there; 0 for none.
    pub staged_chunks: Vec<u32>,
    /// For each chunk of the output the place of the last operation that writes it; 0 for none.
    pub final_at: Vec<u32>,
}

impl Program {
    /// `blocks` is how many blocks the whole message has.
    pub fn new(plan: &Plan, blocks: usize) -> Program {
        let parts_per_block = plan.parts_per_block as u32;
        let mut program = Program {
            parts_per_block,
            chunks: parts_per_block * blocks as u32,
            temporaries: plan.temporaries.clone(),
            operations: Vec::with_capacity(plan.instructions.len()),
            spans: Vec::new(),
            staged_chunks: vec![0; plan.n_requests],
            final_at: Vec::new(),
        };
        let mut under_way = 0;
        let is_wait = |instruction: &Instruction| matches!(instruction, Instruction::Wait { .. });
        // Neighbouring waits stand together, so that they may become one.
        let together = |a: &Instruction, b: &Instruction| is_wait(a) && is_wait(b);
        for group in plan.instructions.chunk_by(together) {
            match group {
                waits if waits.len() > 1 && waits.len() == under_way => {
                    under_way = 0;
                    program.operations.push(Operation::WaitAll);
                }
                waits if is_wait(&waits[0]) => {
                    under_way = under_way.saturating_sub(waits.len());
                    waits.iter().for_each(|wait| program.take(plan, *wait));
                }
                one => {
                    let posts = |instruction: &&Instruction| {
                        use Instruction::{Receive, Send};
                        matches!(instruction, Receive { .. } | Send { .. })
                    };
                    under_way += one.iter().filter(posts).count();
                    one.iter().for_each(|other| program.take(plan, *other));
                }
            }
        }
        program.final_at = program.last_writes(plan.n_requests);
        program.operations.shrink_to_fit();
        program.spans.shrink_to_fit();
        program
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        let lists = size_of_val(&self.temporaries[..])
            + size_of_val(&self.operations[..])
            + size_of_val(&self.spans[..])
            + size_of_val(&self.staged_chunks[..])
            + size_of_val(&self.final_at[..]);
        (size_of::<Program>() + lists) as u64
    }

    /// For each chunk of the output the place of the last operation that writes it. What is received is
    /// there after the wait.
    fn last_writes(&self, n_requests: usize) -> Vec<u32> {
        let mut last = vec![0; self.chunks as usize];
        let mut under_way = vec![None; n_requests];
        for (at, operation) in self.operations.iter().enumerate() {
            let mut written = |span: &Span| {
                if span.buffer == Buffer::Output {
                    let chunks = span.first as usize..(span.first + span.len) as usize;
                    if let Some(chunks) = last.get_mut(chunks) {
                        chunks.fill(at as u32);
                    }
                }
            };
            match *operation {
                Operation::Receive { request, into, .. } => {
                    under_way[request as usize] = Some(into);
                }
                Operation::Wait { request } => {
                    let message = under_way[request as usize].take();
                    message
                        .iter()
                        .for_each(|message| self.each(message, &mut written));
                }
                Operation::WaitAll => {
                    for message in under_way.iter_mut().filter_map(Option::take) {
                        self.each(&message, &mut written);
                    }
                }
                Operation::Reduce { target, .. } | Operation::Copy { target, .. } => {
                    written(&target);
                }
                Operation::Send { .. } => {}
            }
        }
        last
    }

    /// Requests are numbered below this; a number is reused only after its wait.
    pub fn n_requests(&self) -> usize {
        self.staged_chunks.len()
    }

    /// Hands over the spans that an operation reads, or combines with.
    #[inline(always)]
    pub fn reads(&self, operation: &Operation, visit: &mut impl FnMut(&Span)) {
        match operation {
            Operation::Send { what, .. } => self.each(what, visit),
            Operation::Reduce { source, target, .. } | Operation::Copy { source, target } => {
                visit(source);
                visit(target);
            }
            Operation::Receive { .. } | Operation::Wait { .. } | Operation::WaitAll => {}
        }
    }

    /// Hands over the spans of a message.
    pub fn each(&self, message: &Message, visit: &mut impl FnMut(&Span)) {
        match *message {
            Message::Token => {}
            Message::Whole(span) => visit(&span),
            Message::Pieces { start, len } => {
                let spans = &self.spans[start as usize..][..len as usize];
                spans.iter().for_each(visit);
            }
        }
    }

    fn take(&mut self, plan: &Plan, instruction: Instruction) {
        let operation = match instruction {
            Instruction::Receive {
                request,
                from,
                into,
            } => Operation::Receive {
                request,
                from,
                into: self.message(plan, request, into),
            },
            Instruction::Send { request, to, what } => Operation::Send {
                request,
                to,
                what: self.message(plan, request, what),
            },
            Instruction::Wait { request } => Operation::Wait { request },
            Instruction::Reduce {
                source,
                target,
                order,
            } => {
                return self.pair(source, target, |source, target| Operation::Reduce {
                    source,
                    target,
                    order,
                });
            }
            Instruction::Copy { source, target } => {
                return self.pair(source, target, |source, target| Operation::Copy {
                    source,
                    target,
                });
            }
        };
        self.operations.push(operation);
    }

    fn message(&mut self, plan: &Plan, request: u32, range: PartsRange) -> Message {
        if range.len == 0 {
            return Message::Token;
        }
        let start = self.spans.len();
        for part in plan.message(range) {
            for span in spans(*part, &self.temporaries) {
                match self.spans[start..].last_mut() {
                    Some(last) if continues(last, &span, &self.temporaries) => last.len += span.len,
                    _ => self.spans.push(span),
                }
            }
        }
        match self.spans[start..] {
            [span] => {
                self.spans.truncate(start);
                Message::Whole(span)
            }
            ref pieces => {
                let chunks: u32 = pieces.iter().map(|span| span.len).sum();
                let staged = &mut self.staged_chunks[request as usize];
                *staged = chunks.max(*staged);
                Message::Pieces {
                    start: start as u32,
                    len: pieces.len() as u32,
                }
            }
        }
    }

    /// One operation for each pair of spans that both parts have in one piece.
    fn pair(&mut self, source: Part, target: Part, operation: impl Fn(Span, Span) -> Operation) {
        debug_assert_eq!(source.count(), target.count(), "{source:?} {target:?}");
        let mut sources = spans(source, &self.temporaries);
        let mut targets = spans(target, &self.temporaries);
        let (mut a, mut b) = (sources.next(), targets.next());
        while let (Some(from), Some(to)) = (a, b) {
            let len = from.len.min(to.len);
            let both = operation(Span { len, ..from }, Span { len, ..to });
            self.operations.push(both);
            a = from.behind(len).or_else(|| sources.next());
            b = to.behind(len).or_else(|| targets.next());
        }
    }
}

impl Span {
    /// What is left behind its first `taken` chunks.
    fn behind(self, taken: u32) -> Option<Span> {
        (taken < self.len).then(|| Span {
            first: self.first + taken,
            len: self.len - taken,
            ..self
        })
    }
}

/// The spans of a part, in order; places of a ring are spans of their own.
fn spans(part: Part, temporaries: &[Temporary]) -> impl Iterator<Item = Span> + use<> {
    let in_ring = is_ring(part.buffer, temporaries);
    let piece = if in_ring { 1 } else { part.len.max(1) };
    let runs = if part.len == 0 { 0 } else { part.runs };
    (0..runs).flat_map(move |run| {
        let first = part.first + run * part.stride;
        (0..part.len / piece).map(move |place| Span {
            buffer: part.buffer,
            first: first + place * piece,
            len: piece,
        })
    })
}

fn continues(last: &Span, next: &Span, temporaries: &[Temporary]) -> bool {
    last.buffer == next.buffer
        && last.first + last.len == next.first
        && !is_ring(last.buffer, temporaries)
}

fn is_ring(buffer: Buffer, temporaries: &[Temporary]) -> bool {
    match buffer {
        Buffer::Temporary(which) => {
            matches!(
                temporaries.get(usize::from(which)),
                Some(Temporary::Ring { .. })
            )
        }
        Buffer::Input | Buffer::Output => false,
    }
}
