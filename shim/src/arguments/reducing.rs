//! Reductions: elements where the application has them.

use std::ffi::c_void;

use colltune_core::collective::Collective;

use super::{Before, Counted, Input, Output, Reduction, Uneven, View};
use crate::abi::is_in_place;
use crate::world::World;

pub fn reduction(of: &Reduction, world: &World, view: &mut View) -> Option<()> {
    let Reduction {
        send,
        recv,
        count,
        datatype,
        op,
        ..
    } = *of;
    let (collective, members) = (view.collective, view.members);
    let (all, own, uneven) = match count {
        Counted::All(own) => {
            let blocks = match collective {
                Collective::ReduceScatterBlock => members.n_ranks as i64,
                _ => 1,
            };
            (own.checked_mul(blocks)?, own, None)
        }
        Counted::Each(counts) => {
            // SAFETY: MPI asks for a count for each rank.
            let (all, own) = unsafe { (counts.sum(members.n_ranks)?, counts.at(members.rank)) };
            let uneven = Uneven { counts, units: 1 };
            (i64::try_from(all).ok()?, own, Some(uneven))
        }
    };
    let memory = |start: *mut c_void, count| world.memory(start, count, datatype);
    view.unit = world.element(datatype, op)?;
    view.block = u64::try_from(own).ok()?;
    view.uneven = uneven;
    view.input_units = u64::try_from(all).ok()?;
    let has_result = match collective {
        Collective::Reduce => view.is_root(),
        // The first rank gets none, but in place its buffer is its operand.
        Collective::Exscan => members.rank > 0 || is_in_place(send),
        _ => true,
    };
    let alias = send == recv.cast_const();
    if !has_result {
        // MPICH looks at the buffer of an exscan's first rank all the same.
        if collective == Collective::Exscan && !world.takes_aliases() {
            memory(recv, own).filter(|_| !alias || own == 0)?;
        }
        view.input = Input::User(memory(send.cast_mut(), all)?);
        return Some(());
    }
    // Every library that looks at it refuses it at a root.
    let is_refused = collective == Collective::Reduce && own > 0 && world.checks_arguments;
    let taken = world.takes_aliases() && !is_refused;
    let (input, result, before) = if is_in_place(send) || (alias && taken) {
        // The contribution lies where the result goes.
        (Input::InOutput { from: 0 }, all, Before::All)
    } else {
        let memory = memory(send.cast_mut(), all).filter(|_| !alias || all == 0)?;
        (Input::User(memory), own, Before::Nothing)
    };
    view.input = input;
    view.output = Output::result(memory(recv, result)?, before);
    Some(())
}
