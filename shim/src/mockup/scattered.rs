//! Compositions of reductions whose result is dealt out, and of the scan: the caller's elements.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::{Done, RunningComposition};
use crate::p2p::endpoint::check;

impl RunningComposition<'_> {
    /// Lists how many elements each rank gets, and where they begin; the place of this rank's own.
    fn list_dealt(&self) -> u64 {
        let (mut start, mut own) = (0, 0);
        for rank in 0..self.n_ranks() {
            let count = match self.view.uneven {
                // SAFETY: MPI asks for a count for each rank.
                Some(uneven) => unsafe { uneven.counts.at(rank) as u64 },
                None => self.view.block,
            };
            if rank == self.rank() {
                own = start;
            }
            // SAFETY: the lists have a place for each rank, and `rank` is one.
            unsafe {
                self.room.counts.add(rank).write(count as i32);
                self.room.displacements.add(rank).write(start as i32);
            }
            start += count;
        }
        own
    }

    /// Copies elements that do not overlap.
    ///
    /// # Safety
    /// Both places hold so many elements of the view's unit.
    unsafe fn copy_elements(&self, from: *const c_void, to: *mut c_void, count: u64) -> Done {
        let (from, to) = (from.cast_mut().cast(), to.cast());
        // SAFETY: the caller promises so many elements at both places.
        self.report(unsafe { self.endpoint.copy(&self.view.unit, from, to, count) })
    }

    /// Reduce to rank 0, which deals the result out.
    pub(super) fn reduce_and_scatter(&self) -> Done {
        let (of, comm, root) = (self.vector(), self.comm, self.root());
        let result = match self.is_root() {
            true => self.elements(of.all),
            false => null_mut(),
        };
        let (reduce, scatter, scatterv) =
            (self.parts.reduce, self.parts.scatter, self.parts.scatterv);
        let (to, own, datatype) = (of.output, of.own, of.datatype);
        // SAFETY: the room holds the whole vector; the rest is the application's.
        unsafe {
            check(reduce(
                of.input, result, of.all, datatype, of.op, root, comm,
            ))?;
            if self.view.uneven.is_none() {
                return check(scatter(
                    result, own, datatype, to, own, datatype, root, comm,
                ));
            }
            self.list_dealt();
            let (counts, places) = (self.room.counts, self.room.displacements);
            check(scatterv(
                result, counts, places, datatype, to, own, datatype, root, comm,
            ))
        }
    }

    /// Allreduce, of whose result every rank keeps its own part.
    pub(super) fn blocks_by_allreduce(&self) -> Done {
        let of = self.vector();
        let whole = self.elements(of.all);
        let allreduce = self.parts.allreduce;
        // SAFETY: the room holds the whole vector; the rest is the application's.
        unsafe {
            check(allreduce(
                of.input,
                whole,
                of.all,
                of.datatype,
                of.op,
                self.comm,
            ))?;
            let own = self.element(whole, self.list_dealt());
            self.copy_elements(own, of.output, of.own as u64)
        }
    }

    pub(super) fn blocks_by_reduce_scatter(&self) -> Done {
        let of = self.vector();
        let (scatter, counts) = (self.parts.reduce_scatter, self.room.counts);
        // SAFETY: the lists have a place for each rank; the rest is the application's.
        check(unsafe {
            self.list_dealt();
            scatter(of.input, of.output, counts, of.datatype, of.op, self.comm)
        })
    }

    /// A reduce-scatter that deals everything to the root.
    pub(super) fn reduce_by_reduce_scatter(&self) -> Done {
        let of = self.vector();
        // What others have in place here, the root alone knows; so nobody's is.
        let elsewhere = !self.is_root() || self.view.is_in_place();
        let result = match elsewhere {
            true => self.elements(of.all),
            false => of.output,
        };
        let (scatter, counts) = (self.parts.reduce_scatter, self.room.counts);
        // SAFETY: the lists have a place for each rank, the room holds the whole vector, and the
        // rest is the application's.
        unsafe {
            for rank in 0..self.n_ranks() {
                let all = if rank == self.view.root { of.all } else { 0 };
                counts.add(rank).write(all);
            }
            check(scatter(
                of.input,
                result,
                counts,
                of.datatype,
                of.op,
                self.comm,
            ))?;
            if self.is_root() && elsewhere {
                return self.copy_elements(result, of.output, of.all as u64);
            }
            Ok(())
        }
    }

    /// Exscan, and the own contribution behind what it brings.
    pub(super) fn scan_by_exscan(&self) -> Done {
        let of = self.vector();
        let before = self.elements(of.all);
        let (exscan, combine) = (self.parts.exscan, self.endpoint.world.pmpi.reduce_local);
        // SAFETY: the room holds the whole vector; the rest is the application's.
        unsafe {
            check(exscan(
                of.input,
                before,
                of.all,
                of.datatype,
                of.op,
                self.comm,
            ))?;
            if !self.view.is_in_place() {
                self.copy_elements(of.input, of.output, of.all as u64)?;
            }
            if self.rank() == 0 {
                return Ok(());
            }
            check(combine(before, of.output, of.all, of.datatype, of.op))
        }
    }
}
