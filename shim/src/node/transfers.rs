//! Blocks on their way between nodes: messages that are all posted at once, into their final places.
//!
//! Units are bytes here.

use std::ffi::c_int;

use colltune_core::node::between::{message_bytes, messages};

use crate::abi::Request;
use crate::p2p::endpoint::Endpoint;
use crate::p2p::retire::{Receives, retire};

/// The messages of one call of this rank.
pub struct Transfers<'a> {
    endpoint: Endpoint<'a>,
    /// Bytes of a block.
    block: u64,
    longest: u64,
    requests: &'a mut Vec<Request>,
    /// For each receive how many bytes are received before it. Receives stand before sends.
    before: &'a mut Vec<u64>,
    received: u64,
    /// Receives that have ended.
    ended: usize,
    result: Result<(), c_int>,
}

impl<'a> Transfers<'a> {
    /// None yet. `total` is the length of all ranks' blocks.
    pub fn new(
        endpoint: Endpoint<'a>,
        (block, total): (u64, u64),
        (requests, before): (&'a mut Vec<Request>, &'a mut Vec<u64>),
    ) -> Transfers<'a> {
        requests.clear();
        before.clear();
        Transfers {
            endpoint,
            block,
            longest: message_bytes(total),
            requests,
            before,
            received: 0,
            ended: 0,
            result: Ok(()),
        }
    }

    /// Receives blocks from a rank of the world into their places. All receives come before all sends.
    ///
    /// # Safety
    /// The buffer has room for every block, and lives and is left alone until [`Transfers::finish`].
    pub unsafe fn receive(&mut self, buffer: *mut u8, blocks: &[usize], from: c_int) {
        for message in messages(blocks, self.block, self.longest) {
            let mut request = self.endpoint.world.handles.request_null;
            let at = buffer.wrapping_add(message.at as usize);
            let into = self.endpoint.bytes(at, message.units);
            // SAFETY: the caller promises room for every block, which lives and is left alone until the request is
            // complete.
            let posted = unsafe { self.endpoint.receive(into, from, &mut request) };
            self.result = self.result.and(posted);
            self.requests.push(request);
            self.before.push(self.received);
            self.received += message.units;
        }
    }

    /// Sends blocks to a rank of the world.
    ///
    /// # Safety
    /// The buffer holds the blocks, and lives and is not written there until [`Transfers::finish`].
    pub unsafe fn send(&mut self, buffer: *mut u8, blocks: &[usize], to: c_int) {
        for message in messages(blocks, self.block, self.longest) {
            let mut request = self.endpoint.world.handles.request_null;
            let at = buffer.wrapping_add(message.at as usize);
            let what = self.endpoint.bytes(at, message.units);
            // SAFETY: the caller promises that the blocks live and are not written until the request is complete.
            let posted = unsafe { self.endpoint.send(what, to, &mut request) };
            self.result = self.result.and(posted);
            self.requests.push(request);
        }
    }

    /// Waits until the first `until` bytes that are received are there.
    pub fn arrive(&mut self, until: u64) {
        while self
            .before
            .get(self.ended)
            .is_some_and(|before| *before < until)
        {
            self.end_next();
        }
    }

    /// Waits for the next receive.
    fn end_next(&mut self) {
        let request = &mut self.requests[self.ended];
        if *request != self.endpoint.world.handles.request_null {
            self.result = self.result.and(self.endpoint.wait(request));
        }
        self.ended += 1;
    }

    /// Waits for everything that is under way, and says what went wrong first.
    pub fn finish(&mut self) -> Result<(), c_int> {
        let ended = self.endpoint.wait_all(self.requests);
        self.result = self.result.and(ended);
        if self.result.is_err() {
            let receives = Receives::First(self.before.len());
            retire(self.endpoint.world, self.requests, &receives);
        }
        self.requests.clear();
        self.result
    }
}
