//! Runs a program: posts, waits, reductions and copies, in order.

use std::ffi::c_int;

use colltune_core::algorithm::program::{Message, Operation, Span};
use colltune_core::algorithm::schedule::{Buffer, Order};

use super::endpoint::check;
use super::places::{Places, ScheduledCall};
use super::retire::retiring;
use crate::arguments::Typed;
use crate::scratch::Scratch;

/// Who provides a schedule's input, and uses its output, while it runs.
pub trait Overlap {
    /// Chunks of the input are about to be read.
    ///
    /// Errors: they cannot be provided any more.
    fn wanted(&mut self, call: &ScheduledCall, chunks: &Span) -> Result<(), c_int>;
    /// An operation has ended.
    fn ended(&mut self, call: &ScheduledCall, at: usize);
}

/// No overlap: the input is there, and the output is looked at afterwards.
impl Overlap for () {
    #[inline(always)]
    fn wanted(&mut self, _: &ScheduledCall, _: &Span) -> Result<(), c_int> {
        Ok(())
    }
    #[inline(always)]
    fn ended(&mut self, _: &ScheduledCall, _: usize) {}
}

impl ScheduledCall<'_> {
    /// Runs the call to its end. All waiting is the library's own, so it makes progress.
    ///
    /// # Safety
    /// The scratch memory holds as much as [`ScheduledCall::demand`] says, and the view's buffers are valid.
    pub unsafe fn run(&self, scratch: &mut Scratch, watch: &mut impl Overlap) -> Result<(), c_int> {
        let world = self.endpoint.world;
        let null = world.handles.request_null;
        let n_requests = self.program.staged_chunks.len();
        scratch.at = 0;
        scratch.requests.clear();
        scratch.requests.resize(n_requests, null);
        scratch.staged.clear();
        scratch.staged.resize(n_requests, None);
        // SAFETY: the scratch memory is as large as the call demands and the view's buffers are valid, as the caller
        // promises.
        let work = |scratch: &mut Scratch| unsafe {
            let places = self.bind(scratch)?;
            self.operate(&places, scratch, watch)?;
            self.hand_over(&places)
        };
        retiring(world, &self.program.operations, scratch, work)
    }

    /// Says which chunks of the input an operation reads.
    #[inline(always)]
    fn announce(&self, operation: &Operation, watch: &mut impl Overlap) -> Result<(), c_int> {
        let mut result = Ok(());
        let mut wanted = |span: &Span| {
            if span.buffer == Buffer::Input && result.is_ok() {
                result = watch.wanted(self, span);
            }
        };
        self.program.reads(operation, &mut wanted);
        result
    }

    unsafe fn operate(
        &self,
        places: &Places,
        scratch: &mut Scratch,
        watch: &mut impl Overlap,
    ) -> Result<(), c_int> {
        for (index, operation) in self.program.operations.iter().enumerate() {
            scratch.at = index;
            self.announce(operation, watch)?;
            // SAFETY: by the proof of the schedule each operation names chunks that it may touch
            // now, and the places hold all chunks.
            unsafe {
                match *operation {
                    Operation::Receive {
                        request,
                        from,
                        into,
                    } => self.receive(places, scratch, index, request, from, into)?,
                    Operation::Send { request, to, what } => {
                        self.send(places, scratch, request, to, what)?;
                    }
                    Operation::Wait { request } => {
                        let request = request as usize;
                        if scratch.requests[request] != self.endpoint.world.handles.request_null {
                            self.endpoint.wait(&mut scratch.requests[request])?;
                            self.unstage(places, scratch, request)?;
                        }
                    }
                    Operation::WaitAll => {
                        self.endpoint.wait_all(&mut scratch.requests)?;
                        for request in 0..scratch.requests.len() {
                            self.unstage(places, scratch, request)?;
                        }
                    }
                    Operation::Reduce {
                        source,
                        target,
                        order,
                    } => {
                        let source = self.span(places, &scratch.temporaries, source);
                        let target = self.span(places, &scratch.temporaries, target);
                        self.reduce(source, target.start, order)?;
                    }
                    Operation::Copy { source, target } => {
                        let source = self.span(places, &scratch.temporaries, source);
                        let target = self.span(places, &scratch.temporaries, target);
                        self.copy_span(source, target)?;
                    }
                }
            }
            watch.ended(self, index);
        }
        Ok(())
    }

    #[inline]
    unsafe fn receive(
        &self,
        places: &Places,
        scratch: &mut Scratch,
        index: usize,
        request: u32,
        from: u32,
        into: Message,
    ) -> Result<(), c_int> {
        let request = request as usize;
        let into = match into {
            Message::Token => self.nothing(),
            // Both sides know that there is nothing to send.
            Message::Whole(span) => match self.span(places, &scratch.temporaries, span) {
                Typed { count: 0, .. } => return Ok(()),
                known => known,
            },
            Message::Pieces { start, len } => {
                let units = self.units_of(places, scratch, start, len);
                if units == 0 {
                    return Ok(());
                }
                scratch.staged[request] = u32::try_from(index).ok();
                self.view.unit.typed(scratch.staging[request], units)
            }
        };
        let from = self.world_ranks[from as usize];
        // SAFETY: the units have room there, and nothing touches them before the wait.
        unsafe { (self.endpoint).receive(into, from, &mut scratch.requests[request]) }
    }

    #[inline]
    unsafe fn send(
        &self,
        places: &Places,
        scratch: &mut Scratch,
        request: u32,
        to: u32,
        what: Message,
    ) -> Result<(), c_int> {
        let request = request as usize;
        let what = match what {
            Message::Token => self.nothing(),
            Message::Whole(span) => match self.span(places, &scratch.temporaries, span) {
                Typed { count: 0, .. } => return Ok(()),
                known => known,
            },
            Message::Pieces { start, len } => {
                let staging = scratch.staging[request];
                let mut staged = 0;
                for span in &self.program.spans[start as usize..][..len as usize] {
                    let from = self.span(places, &scratch.temporaries, *span);
                    // SAFETY: the staging buffer has room for as many of the longest chunks.
                    unsafe { self.copy(from.start, self.at(staging, staged), from.count)? };
                    staged += from.count;
                }
                if staged == 0 {
                    return Ok(());
                }
                self.view.unit.typed(staging, staged)
            }
        };
        let to = self.world_ranks[to as usize];
        // SAFETY: the units lie there, and nothing writes them before the wait.
        unsafe { (self.endpoint).send(what, to, &mut scratch.requests[request]) }
    }

    fn nothing(&self) -> Typed {
        self.view.unit.typed(std::ptr::null_mut(), 0)
    }

    fn units_of(&self, places: &Places, scratch: &Scratch, start: u32, len: u32) -> u64 {
        let spans = &self.program.spans[start as usize..][..len as usize];
        spans
            .iter()
            .map(|span| self.span(places, &scratch.temporaries, *span).count)
            .sum()
    }

    /// Deals out the pieces of a message that has come.
    #[inline]
    unsafe fn unstage(
        &self,
        places: &Places,
        scratch: &mut Scratch,
        request: usize,
    ) -> Result<(), c_int> {
        let Some(index) = scratch.staged[request].take() else {
            return Ok(());
        };
        let Operation::Receive {
            into: Message::Pieces { start, len },
            ..
        } = self.program.operations[index as usize]
        else {
            return Ok(());
        };
        let mut taken = 0;
        for span in &self.program.spans[start as usize..][..len as usize] {
            let to = self.span(places, &scratch.temporaries, *span);
            let from = self.at(scratch.staging[request], taken);
            // SAFETY: the message brought these units.
            unsafe { self.copy(from, to.start, to.count)? };
            taken += to.count;
        }
        Ok(())
    }

    #[inline]
    unsafe fn reduce(&self, source: Typed, target: *mut u8, order: Order) -> Result<(), c_int> {
        let (source, units) = (source.start, source.count);
        let Some(combine) = self.view.unit.combine.filter(|_| units > 0) else {
            return Ok(());
        };
        let local = |from: *mut u8, into: *mut u8| {
            let (pmpi, datatype) = (self.endpoint.world.pmpi, self.view.unit.datatype);
            let (from, into, count) = (from.cast(), into.cast(), units as c_int);
            // SAFETY: both places hold so many elements, and they do not overlap.
            check(unsafe { (pmpi.reduce_local)(from, into, count, datatype, combine.op) })
        };
        if order == Order::SourceFirst || combine.commutative {
            return local(source, target);
        }
        local(target, source)?;
        // SAFETY: both places hold so many elements, and they do not overlap.
        unsafe { self.copy(source, target, units) }
    }
}
