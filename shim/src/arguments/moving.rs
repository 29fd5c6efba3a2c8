//! Collectives that move data: packed bytes, or the application's own blocks where it alone knows their lengths.

use colltune_core::collective::Collective;

use super::lists::Listed;
use super::{Before, Input, Output, Side, Uneven, UnevenSide, View};
use crate::abi::is_in_place;
use crate::world::World;

pub fn gather(world: &World, view: &mut View, send: Side, recv: Side) -> Option<()> {
    let (rank, bytes) = (view.members.rank as u64, view.bytes);
    let (input, before) = if view.is_root() && is_in_place(send.start) {
        (Input::InOutput { from: rank * bytes }, Before::OwnBlock)
    } else {
        (world.given(send, bytes)?, Before::Nothing)
    };
    let output = if view.is_root() {
        let count = recv.count.checked_mul(view.members.n_ranks as i64)?;
        Output::result(world.memory(recv.start, count, recv.datatype)?, before)
    } else {
        Output::Nothing
    };
    (view.input, view.output) = (input, output);
    Some(())
}

pub fn scatter(world: &World, view: &mut View, send: Side, recv: Side) -> Option<()> {
    let input_units = view.bytes.checked_mul(view.members.n_ranks as u64)?;
    let input = if view.is_root() {
        let count = send.count.checked_mul(view.members.n_ranks as i64)?;
        world.given(Side { count, ..send }, input_units)?
    } else {
        Input::Nothing
    };
    let output = if view.is_root() && is_in_place(recv.start) {
        Output::InInput
    } else {
        let memory = world.memory(recv.start, recv.count, recv.datatype)?;
        Output::result(memory, Before::Nothing)
    };
    view.input_units = input_units;
    (view.input, view.output) = (input, output);
    Some(())
}

/// Allgather and alltoall.
pub fn all_blocks(world: &World, view: &mut View, send: Side, recv: Side) -> Option<()> {
    let (n, bytes) = (view.members.n_ranks as u64, view.bytes);
    let output = world.memory(recv.start, recv.count.checked_mul(n as i64)?, recv.datatype)?;
    let gathers = view.collective == Collective::Allgather;
    let (blocks, from, before) = match gathers {
        true => (1, view.members.rank as u64 * bytes, Before::OwnBlock),
        false => (n, 0, Before::All),
    };
    let input_units = bytes.checked_mul(blocks)?;
    let takes_aliases = world.takes_aliases();
    let alias = match gathers {
        true if takes_aliases && output.plain => {
            let start = recv.start.wrapping_byte_add(from as usize);
            send.is(Side { start, ..recv }, world)
        }
        // Packed bytes lie elsewhere in any case.
        true if takes_aliases => false,
        _ => send.is(recv, world),
    };
    let (input, before) = if is_in_place(send.start) || (alias && takes_aliases) {
        (Input::InOutput { from }, before)
    } else {
        let count = send.count.checked_mul(blocks as i64)?;
        let input = world.given(Side { count, ..send }, input_units)?;
        (Some(input).filter(|_| !alias)?, Before::Nothing)
    };
    view.input_units = input_units;
    (view.input, view.output) = (input, Output::result(output, before));
    Some(())
}

pub fn allgatherv(world: &World, view: &mut View, send: Side, recv: Listed) -> Option<()> {
    let (rank, n) = (view.members.rank, view.members.n_ranks);
    let units = world.type_bytes(recv.types.one()?)?;
    // SAFETY: MPI asks for a count for each rank.
    let (all, before, count) = unsafe {
        let all = recv.counts.sum(n)?.checked_mul(units)?;
        let before = recv.counts.sum(rank)?.checked_mul(units)?;
        (all, before, recv.counts.at(rank))
    };
    let own = count as u64 * units;
    i64::try_from(all).ok()?;
    let listed = world.located(recv)?;
    // SAFETY: MPI asks for a place for each rank, too.
    let (may_hold, own_block, in_one_piece) = unsafe {
        let own_block = listed.side(rank);
        (listed.may_hold(n), own_block, listed.in_one_piece(n))
    };
    if !may_hold {
        return None;
    }
    let packed = in_one_piece.filter(|_| listed.plain);
    let alias = own > 0 && send.is(own_block, world);
    if alias && !world.takes_aliases() {
        return None;
    }
    let in_place = is_in_place(send.start) || (alias && packed.is_some());
    let (input, before) = if in_place {
        (Input::InOutput { from: before }, Before::OwnBlock)
    } else {
        (world.given(send, own)?, Before::Nothing)
    };
    let output = match packed {
        Some(start) => {
            let memory = world.memory(start, all as i64, world.handles.byte)?;
            Output::result(memory, before)
        }
        None => Output::Blocks { listed, before },
    };
    let counts = recv.counts;
    view.uneven = Some(Uneven { counts, units });
    (view.block, view.input_units) = (own, own);
    (view.input, view.output) = (input, output);
    Some(())
}

/// Gatherv, scatterv, alltoallv and alltoallw, whose counts each rank knows for itself: blocks lie where the application has
/// them.
pub fn uneven(world: &World, view: &mut View, send: UnevenSide, recv: UnevenSide) -> Option<()> {
    let (is_root, before) = (view.is_root(), Before::Nothing);
    let in_place =
        |held: UnevenSide| matches!(held, UnevenSide::One(side) if is_in_place(side.start));
    let (sends, receives) = match view.collective {
        Collective::Gatherv => (true, is_root),
        Collective::Scatterv => (is_root, true),
        // In place it is none of ours.
        _ => (true, true),
    };
    let input = match send {
        _ if !sends => Input::Nothing,
        _ if is_root && in_place(send) => Input::InOutput { from: 0 },
        UnevenSide::One(one) => Input::User(world.memory(one.start, one.count, one.datatype)?),
        UnevenSide::Each(each) => Input::Blocks(world.blocks(each, view.members.n_ranks)?),
    };
    let output = match recv {
        _ if !receives => Output::Nothing,
        _ if is_root && in_place(recv) => Output::InInput,
        UnevenSide::One(one) => {
            Output::result(world.memory(one.start, one.count, one.datatype)?, before)
        }
        UnevenSide::Each(each) => {
            let listed = world.blocks(each, view.members.n_ranks)?;
            Output::Blocks { listed, before }
        }
    };
    (view.input, view.output) = (input, output);
    Some(())
}
