//! What the application passed, what all ranks know of it, and the one [`View`] that this rank makes of it: units,
//! lengths, buffers.
//!
//! Here alone MPI's rules about arguments are known: what all ranks know of a call ([`shared`]), and which arguments
//! every library refuses ([`refusal`]). Each collective's arguments become a view of the application's [`memory`] and
//! its [`lists`] of counts, in [`reducing`] for those that combine and in [`moving`] for those that move.

mod side;
pub use side::{Side, Typed};

pub mod lists;

mod shape;
pub use shape::{Arguments, Counted, Reduction, UnevenSide, blocks, reduction, uneven};

mod refusal;
pub use refusal::own_rank_at_root;
mod shared;

mod view;
pub use view::{Before, Combine, Input, Members, Memory, Output, Uneven, Unit, View};

pub mod memory;
mod moving;
mod reducing;

use colltune_core::collective::Collective;

use crate::world::World;

impl Arguments {
    /// The call as this rank sees it, put into `place`, because it is long. `None` where an argument is wrong: the
    /// library shall say so, as it would without us. `bytes` is the message size by which all ranks know the call, `block` that
    /// of its blocks, as [`View::block`] says.
    #[inline]
    pub fn view<'a>(
        &self,
        world: &World,
        (collective, bytes, block): (Collective, u64, u64),
        members: Members,
        place: &'a mut Option<View>,
    ) -> Option<&'a View> {
        let filled = place.insert(View {
            collective,
            bytes,
            members,
            root: members.root(self.root())?,
            unit: world.byte(),
            block,
            uneven: None,
            input_units: bytes,
            input: Input::Nothing,
            output: Output::Nothing,
        });
        match *self {
            Arguments::Reduction(ref reduction) => reducing::reduction(reduction, world, filled)?,
            Arguments::Bcast { all, .. } => {
                filled.output = filled.message(world.memory(all.start, all.count, all.datatype)?);
                filled.input_units = 0;
            }
            Arguments::Blocks { send, recv, .. } => match collective {
                Collective::Gather => moving::gather(world, filled, send, recv)?,
                Collective::Scatter => moving::scatter(world, filled, send, recv)?,
                _ => moving::all_blocks(world, filled, send, recv)?,
            },
            Arguments::Uneven { send, recv, .. } => match (collective, send, recv) {
                (Collective::Allgatherv, UnevenSide::One(send), UnevenSide::Each(recv)) => {
                    moving::allgatherv(world, filled, send, recv)?;
                }
                _ => moving::uneven(world, filled, send, recv)?,
            },
            Arguments::Nothing => {}
        }
        Some(filled)
    }
}
