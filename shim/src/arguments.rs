//! What the application passed, what all ranks know of it, and the one [`View`] that this rank makes of it: units,
//! lengths, buffers.
//!
//! Here alone MPI's rules about arguments are known: what all ranks know of a call ([`shared`]), which arguments every
//! library refuses ([`refusal`]), and how each collective's arguments become a view, those that [`reducing`] combines
//! and those that [`moving`] moves, over [`memory`] of the application and its [`lists`] of counts.

mod side;
pub use side::{Side, Typed};

pub mod lists;

mod shape;
pub use shape::{Arguments, Counted, Reduction, UnevenSide, blocks, reduction, uneven};

mod refusal;
mod shared;

mod view;
pub use view::{Before, Combine, Input, Members, Memory, Output, Uneven, Unit, View};

pub mod memory;
mod moving;
mod reducing;

use colltune_core::collective::Collective;

use crate::world::World;

impl Arguments {
    /// The call as this rank sees it. `None` where an argument is wrong: the library shall say so, as it would
    /// without us. `bytes` is the message size by which all ranks know the call.
    pub fn view(
        &self,
        world: &World,
        collective: Collective,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        let view = View {
            collective,
            bytes,
            members,
            root: members.root(self.root())?,
            unit: world.byte(),
            block: bytes,
            uneven: None,
            input_units: bytes,
            input: Input::Nothing,
            output: Output::Nothing,
        };
        match *self {
            Arguments::Reduction(ref reduction) => reducing::reduction(reduction, world, view),
            Arguments::Bcast { all, .. } => Some(View {
                output: view.message(world.memory(all.start, all.count, all.datatype)?),
                input_units: 0,
                ..view
            }),
            Arguments::Blocks { send, recv, .. } => match collective {
                Collective::Gather => moving::gather(world, view, send, recv),
                Collective::Scatter => moving::scatter(world, view, send, recv),
                _ => moving::all_blocks(world, view, send, recv),
            },
            Arguments::Uneven { send, recv, .. } => match (collective, send, recv) {
                (Collective::Allgatherv, UnevenSide::One(send), UnevenSide::Each(recv)) => {
                    moving::allgatherv(world, view, send, recv)
                }
                _ => moving::uneven(world, view, send, recv),
            },
            Arguments::Types { .. } => None,
            Arguments::Nothing => Some(view),
        }
    }
}
