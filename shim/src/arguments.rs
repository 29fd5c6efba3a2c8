//! What the application passed, and what this rank makes of it: units, lengths, user's buffers.
//!
//! First the arguments' shapes, then each collective's view of them: those that [`reducing`] combines
//! and those that [`moving`] moves, over [`memory`] of the application and its [`lists`] of counts.

pub mod lists;
pub mod memory;
mod view;
pub use view::{
    Agreement, Arguments, Before, Combine, Held, Input, Members, Memory, Output, Side, Unit, View,
};

mod moving;
mod reducing;

use colltune_core::collective::Collective;

use crate::world::World;
use moving::Contribution;
use reducing::Gets;

impl Arguments {
    /// How long what is agreed of room for such a call holds. From shared facts alone.
    #[inline(always)]
    pub fn agreement(&self, world: &World) -> Agreement {
        let known =
            |datatype| world.types.get(datatype).is_some() || world.pairs.get(datatype).is_some();
        match *self {
            Arguments::Reduction { datatype, .. } | Arguments::ReduceScatter { datatype, .. }
                if !known(datatype) =>
            {
                Agreement::OneCall
            }
            Arguments::Reduction { root, .. }
            | Arguments::Bcast { root, .. }
            | Arguments::Blocks { root, .. }
            | Arguments::Uneven { root, .. } => Agreement::Class { root },
            Arguments::ReduceScatter { .. } | Arguments::Nothing => Agreement::Class { root: 0 },
        }
    }

    /// `None` where an argument is wrong: the library shall say so, as it would without us.
    /// `bytes` is the message size by which all ranks know the call.
    pub fn view(
        &self,
        world: &World,
        collective: Collective,
        bytes: u64,
        members: Members,
    ) -> Option<View> {
        match collective {
            Collective::Allreduce | Collective::Scan => {
                self.reduction(world, Gets::Everywhere, members)
            }
            Collective::Reduce => self.reduction(world, Gets::AtRoot, members),
            Collective::Exscan => self.reduction(world, Gets::AboveFirst, members),
            Collective::ReduceScatterBlock => self.reduction(world, Gets::OneBlock, members),
            Collective::Bcast => self.bcast(world, bytes, members),
            Collective::ReduceScatter => self.reduce_scatter(world, members),
            Collective::Allgather => self.blocks(world, Contribution::Own, bytes, members),
            Collective::Allgatherv => self.allgatherv(world, members),
            Collective::Alltoall => self.blocks(world, Contribution::All, bytes, members),
            Collective::Gather => self.gather(world, bytes, members),
            Collective::Scatter => self.scatter(world, bytes, members),
            Collective::Barrier => Some(View {
                root: 0,
                unit: world.byte(),
                block: 0,
                uneven: None,
                input_units: 0,
                input: Input::Nothing,
                output: Output::Nothing,
            }),
            // Each rank knows its own counts alone (`exchange`), or there are no schedules.
            _ => None,
        }
    }
}
