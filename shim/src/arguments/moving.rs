//! Collectives that move data: packed bytes.

use super::view::{ALIASES, Arguments, Before, Held, Input, Members, Output, Side, Uneven, View};
use crate::abi::is_in_place;
use crate::world::World;

impl Arguments {
    pub(super) fn bcast(&self, world: &World, bytes: u64, members: Members) -> Option<View> {
        let Arguments::Bcast {
            buffer,
            count,
            datatype,
            root,
        } = *self
        else {
            return None;
        };
        let root = members.root(root)?;
        let is_root = members.rank == root;
        Some(View {
            root,
            unit: world.byte(),
            block: bytes,
            uneven: None,
            input_units: 0,
            input: Input::Nothing,
            output: Output::User {
                memory: world.memory(buffer, count, datatype)?,
                before: if is_root {
                    Before::All
                } else {
                    Before::Nothing
                },
                written: !is_root,
            },
        })
    }

    pub(super) fn gather(&self, world: &World, bytes: u64, members: Members) -> Option<View> {
        let (send, recv, root) = self.rooted(members)?;
        let is_root = members.rank == root;
        let from = members.rank as u64 * bytes;
        let (input, before) = if is_root && is_in_place(send.start) {
            (Input::InOutput { from }, Before::OwnBlock)
        } else {
            (world.given(send, bytes)?, Before::Nothing)
        };
        let output = if is_root {
            let count = recv.count.checked_mul(members.n_ranks as i64)?;
            Output::User {
                memory: world.memory(recv.start, count, recv.datatype)?,
                before,
                written: true,
            }
        } else {
            Output::Nothing
        };
        Some(View::of_blocks(world, root, (bytes, bytes), input, output))
    }

    pub(super) fn scatter(&self, world: &World, bytes: u64, members: Members) -> Option<View> {
        let (send, recv, root) = self.rooted(members)?;
        let is_root = members.rank == root;
        let input_units = bytes.checked_mul(members.n_ranks as u64)?;
        let input = if is_root {
            let count = send.count.checked_mul(members.n_ranks as i64)?;
            world.given(Side { count, ..send }, input_units)?
        } else {
            Input::Nothing
        };
        let output = if is_root && is_in_place(recv.start) {
            Output::InInput
        } else {
            Output::User {
                memory: world.memory(recv.start, recv.count, recv.datatype)?,
                before: Before::Nothing,
                written: true,
            }
        };
        let units = (bytes, input_units);
        Some(View::of_blocks(world, root, units, input, output))
    }

    fn rooted(&self, members: Members) -> Option<(Side, Side, usize)> {
        match *self {
            Arguments::Blocks { send, recv, root } => Some((send, recv, members.root(root)?)),
            _ => None,
        }
    }

    pub(super) fn allgatherv(&self, world: &World, members: Members) -> Option<View> {
        let Arguments::Uneven {
            send: Held::One(send),
            recv: Held::Each(recv),
            ..
        } = *self
        else {
            return None;
        };
        let (rank, n) = (members.rank, members.n_ranks);
        let size = world.bytes_of(recv.datatype)?;
        // SAFETY: MPI asks for a count for each rank.
        let (all, before, count) = unsafe {
            let all = recv.counts.sum(n)?.checked_mul(size)?;
            let before = recv.counts.sum(rank)?.checked_mul(size)?;
            (all, before, recv.counts.at(rank))
        };
        let own = count as u64 * size;
        world.memory(recv.start, i64::try_from(all).ok()?, recv.datatype)?;
        let listed = world.located(recv)?;
        // SAFETY: MPI asks for a place for each rank, too.
        let (place, in_one_piece) = unsafe { (listed.block(rank).0, listed.in_one_piece(n)) };
        let plain = world.types.get(recv.datatype).is_some();
        let packed = in_one_piece.filter(|_| plain);
        let own_block = Side {
            start: place,
            count,
            datatype: recv.datatype,
        };
        let alias = own > 0 && send.is(own_block, world);
        if alias && !ALIASES {
            return None;
        }
        let in_place = is_in_place(send.start) || (alias && packed.is_some());
        let (input, filled) = if in_place {
            (Input::InOutput { from: before }, Before::OwnBlock)
        } else {
            (world.given(send, own)?, Before::Nothing)
        };
        let output = match packed {
            Some(start) => Output::User {
                memory: world.memory(start, all as i64, world.handles.byte)?,
                before: filled,
                written: true,
            },
            None => Output::Blocks {
                listed,
                before: filled,
            },
        };
        let counts = recv.counts;
        Some(View {
            uneven: Some(Uneven {
                counts,
                units: size,
            }),
            ..View::of_blocks(world, 0, (own, own), input, output)
        })
    }

    pub(super) fn blocks(
        &self,
        world: &World,
        contributes: Contribution,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        let Arguments::Blocks { send, recv, .. } = *self else {
            return None;
        };
        let n = members.n_ranks as u64;
        let output = world.memory(recv.start, recv.count.checked_mul(n as i64)?, recv.datatype)?;
        let (blocks, from, before) = match contributes {
            Contribution::Own => (1, members.rank as u64 * bytes, Before::OwnBlock),
            Contribution::All => (n, 0, Before::All),
        };
        let input_units = bytes.checked_mul(blocks)?;
        let alias = match contributes {
            Contribution::Own if ALIASES && output.plain => {
                let start = recv.start.wrapping_byte_add(from as usize);
                send.is(Side { start, ..recv }, world)
            }
            // Packed bytes lie elsewhere in any case.
            Contribution::Own if ALIASES => false,
            _ => send.is(recv, world),
        };
        let (input, before) = if is_in_place(send.start) || (alias && ALIASES) {
            (Input::InOutput { from }, before)
        } else {
            let count = send.count.checked_mul(blocks as i64)?;
            let memory = world.memory(send.start, count, send.datatype)?;
            if world.packed_bytes(&memory)? != input_units || alias {
                return None;
            }
            (Input::User(memory), Before::Nothing)
        };
        Some(View {
            root: 0,
            unit: world.byte(),
            block: bytes,
            uneven: None,
            input_units,
            input,
            output: Output::User {
                memory: output,
                before,
                written: true,
            },
        })
    }
}

impl View {
    /// `units` are those of a block and of the input.
    fn of_blocks(
        world: &World,
        root: usize,
        (block, input_units): (u64, u64),
        input: Input,
        output: Output,
    ) -> View {
        View {
            root,
            unit: world.byte(),
            block,
            uneven: None,
            input_units,
            input,
            output,
        }
    }
}

/// What each rank hands over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contribution {
    /// Its own block, as in allgather.
    Own,
    /// One for each rank, as in alltoall.
    All,
}
