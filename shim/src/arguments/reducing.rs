//! Reductions: elements where the application has them.

use std::ffi::c_void;

use super::view::{ALIASES, Arguments, Before, Input, Members, Output, Uneven, View};
use crate::abi::is_in_place;
use crate::world::World;

impl Arguments {
    pub(super) fn reduction(&self, world: &World, result: Gets, members: Members) -> Option<View> {
        let Arguments::Reduction {
            send,
            recv,
            count,
            datatype,
            op,
            root,
        } = *self
        else {
            return None;
        };
        let root = members.root(root)?;
        let unit = world.element(datatype, op)?;
        let memory = |start: *mut c_void| world.memory(start, count, datatype);
        let blocks = match result {
            Gets::OneBlock => members.n_ranks as u64,
            _ => 1,
        };
        let input_units = blocks.checked_mul(count as u64)?;
        let view = |input, output| View {
            root,
            unit,
            block: count as u64,
            uneven: None,
            input_units,
            input,
            output,
        };
        let has_result = match result {
            Gets::Everywhere | Gets::OneBlock => true,
            Gets::AtRoot => members.rank == root,
            // Where there is none the buffer need not be one.
            Gets::AboveFirst => members.rank > 0 || is_in_place(send),
        };
        if !has_result {
            // MPICH looks at the buffer of an exscan's first rank all the same.
            if result == Gets::AboveFirst && !ALIASES {
                memory(recv).filter(|_| send != recv.cast_const() || count == 0)?;
            }
            let input = Input::User(memory(send.cast_mut())?);
            return Some(view(input, Output::Nothing));
        }
        let alias = send == recv.cast_const();
        // Every library refuses it at a root.
        let taken = ALIASES && (result != Gets::AtRoot || count == 0);
        let in_place = is_in_place(send) || (alias && taken);
        let (input, before) = if in_place {
            (Input::InOutput { from: 0 }, Before::All)
        } else {
            let memory = memory(send.cast_mut()).filter(|_| !alias)?;
            (Input::User(memory), Before::Nothing)
        };
        let output = Output::User {
            memory: memory(recv)?,
            before,
            written: true,
        };
        Some(view(input, output))
    }

    pub(super) fn reduce_scatter(&self, world: &World, members: Members) -> Option<View> {
        let Arguments::ReduceScatter {
            send,
            recv,
            counts,
            datatype,
            op,
        } = *self
        else {
            return None;
        };
        // SAFETY: MPI asks for a count for each rank.
        let (total, own) = unsafe { (counts.sum(members.n_ranks)?, counts.at(members.rank)) };
        let memory = |start: *mut c_void, count| world.memory(start, count, datatype);
        let alias = send == recv.cast_const() && total > 0;
        let in_place = is_in_place(send) || (alias && ALIASES);
        let (input, result, before) = if in_place {
            // The contribution lies where the result goes.
            (Input::InOutput { from: 0 }, total as i64, Before::All)
        } else {
            let memory = memory(send.cast_mut(), total as i64).filter(|_| !alias)?;
            (Input::User(memory), own, Before::Nothing)
        };
        Some(View {
            root: 0,
            unit: world.element(datatype, op)?,
            block: own as u64,
            uneven: Some(Uneven { counts, units: 1 }),
            input_units: total,
            input,
            output: Output::User {
                memory: memory(recv, result)?,
                before,
                written: true,
            },
        })
    }
}

/// Which ranks get which result of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gets {
    Everywhere,
    AtRoot,
    /// Every rank but the first.
    AboveFirst,
    /// Every rank its block; the count is a block's.
    OneBlock,
}
