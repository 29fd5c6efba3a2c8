//! Messages of ours, and copies between memory of two types.

use std::ffi::{c_int, c_void};

use super::retire::{Receives, retire};
use crate::abi::{self, Comm, Request};
use crate::arguments::{Typed, Unit};
use crate::library;
use crate::world::World;

/// Where the messages of one call leave and arrive: the communicator of ours, with a tag of the call's own.
#[derive(Clone, Copy)]
pub struct Endpoint<'a> {
    pub world: &'a World,
    pub comm: Comm,
    pub tag: c_int,
}

/// An error code as an error.
#[inline]
pub fn check(code: c_int) -> Result<(), c_int> {
    if code == abi::SUCCESS {
        Ok(())
    } else {
        Err(code)
    }
}

const NO_MEMORY: c_int = abi::MPI_ERR_NO_MEM as c_int;

impl<'a> Endpoint<'a> {
    pub fn new(world: &'a World, tag: c_int) -> Result<Endpoint<'a>, c_int> {
        let comm = world.messages.comm().ok_or(NO_MEMORY)?;
        Ok(Endpoint { world, comm, tag })
    }

    /// Sends elements to a rank of the world.
    ///
    /// # Safety
    /// The elements lie there and are not written until the request is complete.
    #[inline]
    pub unsafe fn send(&self, what: Typed, to: c_int, request: &mut Request) -> Result<(), c_int> {
        let (start, datatype) = (what.start.cast(), what.datatype);
        let (pmpi, tag, comm) = (self.world.pmpi, self.tag, self.comm);
        // SAFETY: the elements lie there and are not written before the request is complete, as the caller promises.
        check(unsafe {
            match c_int::try_from(what.count) {
                Ok(count) => (pmpi.isend)(start, count, datatype, to, tag, comm, request),
                Err(_) => library::large().isend.map_or(NO_MEMORY, |isend| {
                    isend(start, what.count as i64, datatype, to, tag, comm, request)
                }),
            }
        })
    }

    /// Receives elements from a rank of the world.
    ///
    /// # Safety
    /// There is room for the elements, which is not touched until the request is complete.
    #[inline]
    pub unsafe fn receive(
        &self,
        into: Typed,
        from: c_int,
        request: &mut Request,
    ) -> Result<(), c_int> {
        let (start, datatype) = (into.start.cast(), into.datatype);
        let (pmpi, tag, comm) = (self.world.pmpi, self.tag, self.comm);
        // SAFETY: there is room, not touched before the request is complete, as the caller promises.
        check(unsafe {
            match c_int::try_from(into.count) {
                Ok(count) => (pmpi.irecv)(start, count, datatype, from, tag, comm, request),
                Err(_) => library::large().irecv.map_or(NO_MEMORY, |irecv| {
                    irecv(start, into.count as i64, datatype, from, tag, comm, request)
                }),
            }
        })
    }

    /// Waits for a message that was posted here. All waiting is the library's own, so it makes progress.
    #[inline]
    pub fn wait(&self, request: &mut Request) -> Result<(), c_int> {
        let status = abi::MPI_STATUS_IGNORE as *mut c_void;
        // SAFETY: the request is null, or of a message of ours whose memory `send` and `receive` were promised.
        check(unsafe { (self.world.pmpi.wait)(request, status) })
    }

    /// The same of all.
    pub fn wait_all(&self, requests: &mut [Request]) -> Result<(), c_int> {
        let statuses = abi::MPI_STATUSES_IGNORE as *mut c_void;
        let n_requests = requests.len() as c_int;
        // SAFETY: the requests are null, or of messages of ours whose memory `send` and `receive` were promised.
        check(unsafe { (self.world.pmpi.waitall)(n_requests, requests.as_mut_ptr(), statuses) })
    }

    /// So many bytes.
    #[inline]
    pub fn bytes(&self, start: *mut u8, count: u64) -> Typed {
        Typed {
            start,
            count,
            datatype: self.world.handles.byte,
        }
    }

    /// Packs elements into room of so many bytes.
    ///
    /// # Safety
    /// The elements lie there, and `to` has room for what they pack into.
    #[cold]
    pub unsafe fn pack(&self, from: Typed, to: *mut u8, room: u64) -> Result<(), c_int> {
        if from.start.is_null() || room.max(from.count) > c_int::MAX as u64 {
            // MPI_BOTTOM, which MPICH 4.0 does not pack from.
            let bytes = self.world.packed_bytes(from).unwrap_or(room);
            // SAFETY: the caller promises the elements, and room for their packed bytes.
            return unsafe { self.message_to_self(from, self.bytes(to, bytes)) };
        }
        let (mut position, room) = (0, room as c_int);
        let (start, count, place) = (from.start.cast(), from.count as c_int, &mut position);
        let pack = self.world.pmpi.pack;
        // SAFETY: the caller promises the elements, and room for their packed bytes.
        check(unsafe {
            pack(
                start,
                count,
                from.datatype,
                to.cast(),
                room,
                place,
                self.comm,
            )
        })
    }

    /// Unpacks elements out of so many bytes, or more.
    ///
    /// # Safety
    /// The packed bytes lie there, and `to` has room for the elements.
    #[cold]
    pub unsafe fn unpack(&self, from: *mut u8, bytes: u64, to: Typed) -> Result<(), c_int> {
        let is_long = bytes.max(to.count) > c_int::MAX as u64;
        if to.start.is_null() || is_long {
            // What is packed may have other ranks' blocks behind it.
            let own = self.world.packed_bytes(to).unwrap_or(bytes);
            // SAFETY: the caller promises the packed bytes, and room for the elements.
            return unsafe { self.message_to_self(self.bytes(from, own), to) };
        }
        let (mut position, bytes) = (0, bytes as c_int);
        let (start, count, place) = (to.start.cast(), to.count as c_int, &mut position);
        let unpack = self.world.pmpi.unpack;
        // SAFETY: the caller promises the packed bytes, and room for the elements.
        check(unsafe {
            unpack(
                from.cast(),
                bytes,
                place,
                start,
                count,
                to.datatype,
                self.comm,
            )
        })
    }

    /// Copies units. What lies between their bytes stays untouched at the target.
    ///
    /// # Safety
    /// Both places hold so many units.
    #[inline]
    pub unsafe fn copy(
        &self,
        unit: &Unit,
        from: *mut u8,
        to: *mut u8,
        units: u64,
    ) -> Result<(), c_int> {
        if from == to || units == 0 {
            return Ok(());
        }
        // SAFETY: the caller promises that both places hold so many units; those without holes are their bytes.
        unsafe {
            if unit.plain {
                std::ptr::copy(from, to, units as usize * unit.stride as usize);
                return Ok(());
            }
            self.message_to_self(unit.typed(from, units), unit.typed(to, units))
        }
    }

    /// Copies a block to one of another type, whose signature is the same.
    ///
    /// # Safety
    /// Both are the application's, and right.
    pub unsafe fn copy_block(&self, from: Typed, to: Typed) -> Result<(), c_int> {
        if from.count == 0 {
            return Ok(());
        }
        let types = &self.world.types;
        match (types.get(from.datatype), types.get(to.datatype)) {
            (Some(facts), Some(_)) => {
                let bytes = from.count as usize * facts.size as usize;
                // SAFETY: elements without holes are their bytes, equally many on both sides.
                unsafe { std::ptr::copy(from.start, to.start, bytes) };
                Ok(())
            }
            // SAFETY: both blocks are the application's.
            _ => unsafe { self.message_to_self(from, to) },
        }
    }

    /// Copies between buffers of two types with one signature, each with its count: MPI does that
    /// only by a message.
    ///
    /// # Safety
    /// Both buffers hold what their types and counts say.
    #[cold]
    pub unsafe fn message_to_self(&self, from: Typed, to: Typed) -> Result<(), c_int> {
        let own = self.world.rank as c_int;
        let mut requests = [self.world.handles.request_null; 2];
        let [receive, send] = &mut requests;
        // SAFETY: no schedule sends to its own rank, so nothing else matches these two; both buffers are the
        // caller's until they are through.
        let posted = unsafe {
            let posted = self.receive(to, own, receive);
            posted.and_then(|()| self.send(from, own, send))
        };
        let result = posted.and_then(|()| self.wait_all(&mut requests));
        if result.is_err() {
            retire(self.world, &mut requests, &Receives::First(1));
        }
        result
    }
}
