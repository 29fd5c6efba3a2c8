//! What is left under way after an error, or an exception of the program's, in the middle of a call.
//!
//! The buffers of such messages must not be used for anything else. Receives are called back, so that
//! nothing comes into the application's memory after its call has returned. A send cannot be called
//! back in general; a rank that has it received may come later, or never.

use std::ffi::{c_int, c_void};

use colltune_core::algorithm::program::Operation;

use crate::abi::{self, Request};
use crate::scratch::Scratch;
use crate::world::World;

/// Questions to the library about each message: enough for one that is there already.
const QUESTIONS: u32 = 100;

/// Which requests may be called back: the receives among them.
pub enum Receives<'a> {
    /// The first so many.
    First(usize),
    /// As the operations up to this one, which failed, have posted them.
    PostedBy(&'a [Operation]),
}

impl Receives<'_> {
    fn is_receive(&self, request: usize) -> bool {
        match self {
            Receives::First(receives) => request < *receives,
            Receives::PostedBy(operations) => {
                let posted = operations.iter().rev().find_map(|operation| {
                    let (number, receive) = match operation {
                        Operation::Receive { request, .. } => (*request, true),
                        Operation::Send { request, .. } => (*request, false),
                        _ => return None,
                    };
                    (number as usize == request).then_some(receive)
                });
                posted == Some(true)
            }
        }
    }
}

/// Runs what posts messages. Where it fails, and where an exception leaves it, what is under way is ended, or the
/// scratch memory is left to it.
#[inline]
pub fn retiring(
    world: &World,
    operations: &[Operation],
    scratch: &mut Scratch,
    work: impl FnOnce(&mut Scratch) -> Result<(), c_int>,
) -> Result<(), c_int> {
    let posting = Posting {
        world,
        operations,
        scratch,
    };
    let result = work(posting.scratch);
    if result.is_ok() {
        std::mem::forget(posting);
    }
    result
}

/// Messages that are being posted.
struct Posting<'a> {
    world: &'a World,
    operations: &'a [Operation],
    scratch: &'a mut Scratch,
}

impl Drop for Posting<'_> {
    #[cold]
    fn drop(&mut self) {
        let posted = self.operations.get(..=self.scratch.at).unwrap_or_default();
        let requests = &mut self.scratch.requests;
        if !retire(self.world, requests, &Receives::PostedBy(posted)) {
            self.scratch.block.abandon();
        }
    }
}

/// Ends what can be ended; false where messages are still under way, whose memory has to be left to them.
#[cold]
pub fn retire(world: &World, requests: &mut [Request], receives: &Receives) -> bool {
    let null = world.handles.request_null;
    let status = abi::MPI_STATUS_IGNORE as *mut c_void;
    let mut all_ended = true;
    for (number, request) in requests.iter_mut().enumerate() {
        if *request == null {
            continue;
        }
        if receives.is_receive(number) {
            // SAFETY: the request is active, and ours.
            unsafe { (world.pmpi.cancel)(request) };
        }
        let (mut ended, mut code) = (0 as c_int, abi::SUCCESS);
        for _ in 0..QUESTIONS {
            if ended != 0 || code != abi::SUCCESS {
                break;
            }
            // SAFETY: the request is ours; the library makes it null once it has ended.
            code = unsafe { (world.pmpi.test)(request, &mut ended, status) };
        }
        all_ended &= *request == null;
    }
    all_ended
}
