//! Classify: a call's arguments become its cell, from facts that all its ranks share.

use colltune_core::classify::message_bytes;
use colltune_core::collective::Collective;
use colltune_core::settings::Reproducible;

use super::{Call, DEFAULT, Reduction, Tuner};
use crate::abi::{Comm, Datatype, Op, bits};
use crate::communicator::{Phase, State};

/// How many elements a reduction combines.
#[derive(Clone, Copy)]
pub struct Elements {
    pub count: u64,
    /// Whether all ranks' blocks of the result are of one length.
    pub equal_blocks: bool,
    pub in_place: bool,
}

/// The facts of a call that all its ranks share.
struct Shared {
    bytes: u64,
    reduction: Option<Reduction>,
    equal_blocks: bool,
    in_place: bool,
}

impl Tuner {
    /// A reduction; `None` when it simply runs `default`, and for arguments that the library itself
    /// should refuse. `elements` gets the number of ranks.
    #[inline(always)]
    pub fn reduction(
        &self,
        collective: Collective,
        (datatype, op): (Datatype, Op),
        comm: Comm,
        elements: impl FnOnce(u32) -> Option<Elements>,
    ) -> Option<Call<'_>> {
        if bits(op) == bits(self.handles.op_null) {
            return None;
        }
        let (size, exact) = self.type_facts(datatype)?;
        if self.handout.settings.reproducible == Reproducible::Strict
            && !(exact && self.ops.get(op).is_some())
        {
            return None;
        }
        self.classify(collective, comm, |n_ranks| {
            let Elements {
                count,
                equal_blocks,
                in_place,
            } = elements(n_ranks)?;
            let reduction = Reduction {
                count,
                datatype,
                op,
            };
            Some(Shared {
                bytes: message_bytes(count, size),
                reduction: Some(reduction),
                equal_blocks,
                in_place,
            })
        })
    }

    /// A collective that only moves data, of so many elements of a datatype. `None` as above.
    #[inline(always)]
    pub fn movement(
        &self,
        collective: Collective,
        (count, datatype): (i64, Datatype),
        comm: Comm,
        in_place: bool,
    ) -> Option<Call<'_>> {
        let count = u64::try_from(count).ok()?;
        let (size, _) = self.type_facts(datatype)?;
        let bytes = message_bytes(count, size);
        self.moving(collective, comm, in_place, |_| Some(bytes))
    }

    /// A collective that only moves data; `block_bytes` gets the number of ranks and gives the mean
    /// length of a block, from what all ranks know.
    #[inline(always)]
    pub fn moving(
        &self,
        collective: Collective,
        comm: Comm,
        in_place: bool,
        block_bytes: impl FnOnce(u32) -> Option<u64>,
    ) -> Option<Call<'_>> {
        self.classify(collective, comm, |n_ranks| {
            Some(Shared {
                bytes: block_bytes(n_ranks)?,
                reduction: None,
                equal_blocks: true,
                in_place,
            })
        })
    }

    /// Finds the cell and counts the call.
    #[inline(always)]
    fn classify(
        &self,
        collective: Collective,
        comm: Comm,
        shared: impl FnOnce(u32) -> Option<Shared>,
    ) -> Option<Call<'_>> {
        // SAFETY: the application passed a communicator that it may use for this collective now.
        let state = unsafe { self.registry.find(comm) }?;
        if state.phase == Phase::Aside {
            return None;
        }
        let Shared {
            bytes,
            reduction,
            equal_blocks,
            in_place,
        } = shared(state.n_ranks)?;
        let which = collective.index();
        let cell = match state.phase {
            Phase::Ready if state.calls >= u64::from(self.handout.settings.setup_after) => {
                let place = match &state.sizes[which] {
                    Some(sizes) => sizes.position(bytes)?,
                    None => self.first_position(state, collective, bytes)?,
                };
                state.calls += 1;
                let cell = &mut state.cells[which][place];
                let index = cell.calls;
                cell.calls = index + 1;
                if index < cell.next_drawn && cell.best == DEFAULT && !self.told {
                    return None;
                }
                Some((place, index))
            }
            _ => None,
        };
        Some(Call {
            state,
            collective,
            bytes,
            reduction,
            in_place,
            equal_blocks,
            cell,
        })
    }

    /// The place of a cell at a collective's first call on a communicator.
    #[cold]
    pub(super) fn first_position(
        &self,
        state: &mut State,
        collective: Collective,
        bytes: u64,
    ) -> Option<usize> {
        self.prepare(state, collective);
        state.sizes[collective.index()].as_ref()?.position(bytes)
    }
}
