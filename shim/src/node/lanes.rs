//! Calls of which one or more ranks of each node carry a share, and meet their like with it.
//!
//! With one lane that is a node's first rank, which a root reaches over its node's memory.

use std::ffi::c_int;

use colltune_core::catalogue::Crossing;
use colltune_core::collective::Collective;
use colltune_core::node::act::{self, Kind};
use colltune_core::node::between::share;

use super::phases::{Across, Phases};
use super::pieces::Blocks;

impl Phases<'_, '_> {
    /// # Safety
    /// As [`Phases::run`].
    pub(super) unsafe fn by_lanes(
        &mut self,
        crossing: Crossing,
        lanes: usize,
    ) -> Result<(), c_int> {
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them.
        unsafe {
            match self.view.collective {
                Collective::Allreduce => self.allreduce_by_lanes(crossing, lanes),
                Collective::Reduce => self.reduce_by_lanes(crossing, lanes),
                _ => self.bcast_by_lanes(crossing, lanes),
            }
        }
    }

    /// The own share of a message: where it begins at an address, and how many units it has; `None`
    /// for a rank that is no lane, and where there is nothing to carry.
    fn share(&self, of: *mut u8, lanes: usize) -> Option<(*mut u8, u64)> {
        let place = self.team.place;
        let (start, units) = share(self.view.block, place.min(lanes - 1), lanes);
        (place < lanes && units > 0).then(|| (self.elements.at(of, start), units))
    }

    /// Each lane gets what the node has combined of its share.
    unsafe fn reduce_to_lanes(
        &mut self,
        source: *mut u8,
        target: *mut u8,
        lanes: usize,
    ) -> Result<(), c_int> {
        let (kind, blocks) = match lanes {
            1 => (
                act::reduce(self.view.bytes, self.team.n_here(), 0),
                Blocks::One,
            ),
            _ => (Kind::ReduceScatter { lanes }, Blocks::Shares(lanes)),
        };
        // SAFETY: the caller promises the message at `source`, and room for it at `target`.
        unsafe { self.on_node(kind, source, target, blocks) }
    }

    /// Every rank of the node gets every lane's share.
    unsafe fn spread_from_lanes(&mut self, output: *mut u8, lanes: usize) -> Result<(), c_int> {
        let (kind, blocks) = match lanes {
            1 => (Kind::Bcast { root: 0 }, Blocks::One),
            _ => (Kind::Exchange { givers: lanes }, Blocks::OwnShare(lanes)),
        };
        // SAFETY: the caller promises room for the message at `output`, where each lane has its share.
        unsafe { self.on_node(kind, output, output, blocks) }
    }

    unsafe fn allreduce_by_lanes(&mut self, crossing: Crossing, lanes: usize) -> Result<(), c_int> {
        let (mut input, output) = (self.places.input, self.places.output);
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them: an
        // allreduce has its operands in one and room for the result in the other; shares lie within.
        unsafe {
            let result = self.reduce_to_lanes(input, output, lanes);
            if self.team.n_here() > 1 {
                input = output;
            }
            if let Some((result_at, units)) = self.share(output, lanes) {
                let send = self.share(input, lanes).map(|(start, _)| start);
                let send = send.filter(|start| *start != result_at);
                let part = self.part(units, (send, result_at));
                let crossed = self.across(Across::Lane, crossing, &part);
                if crossed.is_err() {
                    return result.and(crossed);
                }
            }
            result.and(self.spread_from_lanes(output, lanes))
        }
    }

    unsafe fn reduce_by_lanes(&mut self, crossing: Crossing, lanes: usize) -> Result<(), c_int> {
        let root = self.view.root;
        let (mut input, output, spare) = (self.places.input, self.places.output, self.spare);
        let on_roots_node = self.team.node_of[root] == self.team.node;
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them; every
        // rank has room for the sum.
        unsafe {
            let mut result = self.reduce_to_lanes(input, spare, lanes);
            // MPICH 4.0 dies of its reduce in place, on ranks of one machine.
            let apart = matches!(crossing, Crossing::Library);
            if self.team.n_here() > 1 {
                input = spare;
            } else if apart && input == output {
                result = result.and(self.elements.copy(input, self.view.block, spare));
                input = spare;
            }
            let is_root = self.team.here[self.team.place] == root;
            let target = match (is_root, apart) {
                (true, _) => output,
                (false, true) => self.elements.at(spare, self.view.block),
                (false, false) => spare,
            };
            if let Some((result_at, units)) = self.share(target, lanes) {
                let given = self.share(input, lanes).map(|(start, _)| start);
                let send = given.filter(|start| *start != result_at);
                // Only where the result is the addresses may be one.
                let send = if on_roots_node { send } else { given };
                let part = self.part(units, (send, result_at));
                let crossed = self.across(Across::Lane, crossing, &part);
                if crossed.is_err() {
                    return result.and(crossed);
                }
            }
            if !on_roots_node {
                return result;
            }
            let root = self.team.place_of[root];
            let gather = Kind::Gather { root, lanes };
            result.and(self.on_node(gather, target, target, Blocks::OwnShare(lanes)))
        }
    }

    unsafe fn bcast_by_lanes(&mut self, crossing: Crossing, lanes: usize) -> Result<(), c_int> {
        let root = self.view.root;
        let output = self.places.output;
        let on_roots_node = self.team.node_of[root] == self.team.node;
        let mut result = Ok(());
        // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them: a bcast
        // has its message, or room for it, in the output; shares lie within.
        unsafe {
            if on_roots_node {
                let root = self.team.place_of[root];
                result = self.on_node(Kind::Bcast { root }, output, output, Blocks::One);
            }
            if let Some((start, units)) = self.share(output, lanes) {
                let part = self.part(units, (None, start));
                let crossed = self.across(Across::Lane, crossing, &part);
                if crossed.is_err() {
                    return result.and(crossed);
                }
            }
            if on_roots_node {
                return result;
            }
            result.and(self.spread_from_lanes(output, lanes))
        }
    }
}
