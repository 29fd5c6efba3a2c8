//! Classify: a call's arguments become its cell, from facts that all its ranks share.

use colltune_core::classify::message_bytes;
use colltune_core::collective::Collective;
use colltune_core::settings::Reproducible;

use super::{Call, DEFAULT, Reduction, Tuner};
use crate::abi::{self, Comm, Datatype, Op, bits};
use crate::communicator::Phase;

impl Tuner {
    /// A reduction; `None` when it simply runs `default`, and for arguments that the library itself
    /// should refuse.
    #[inline(always)]
    pub fn reduction(
        &self,
        collective: Collective,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
        in_place: bool,
    ) -> Option<Call<'_>> {
        if bits(op) == bits(self.handles.op_null) {
            return None;
        }
        let count = u64::try_from(count).ok()?;
        let (size, integer) = self.type_facts(datatype)?;
        if self.handout.reproducible == Reproducible::Strict
            && !(integer && self.ops.get(op).is_some())
        {
            return None;
        }
        self.classify(
            collective,
            message_bytes(count, size.into()),
            Some(Reduction {
                count,
                datatype,
                op,
            }),
            comm,
            in_place,
        )
    }

    /// A collective that only moves data; `count` and `datatype` of one block. `None` as above.
    #[inline(always)]
    pub fn movement(
        &self,
        collective: Collective,
        count: i64,
        datatype: Datatype,
        comm: Comm,
        in_place: bool,
    ) -> Option<Call<'_>> {
        let count = u64::try_from(count).ok()?;
        let (size, _) = self.type_facts(datatype)?;
        self.classify(
            collective,
            message_bytes(count, size.into()),
            None,
            comm,
            in_place,
        )
    }

    /// Finds the cell and counts the call.
    #[inline(always)]
    fn classify(
        &self,
        collective: Collective,
        bytes: u64,
        reduction: Option<Reduction>,
        comm: Comm,
        in_place: bool,
    ) -> Option<Call<'_>> {
        // SAFETY: the application passed a communicator that it may use for this collective now.
        let state = unsafe { self.registry.find(comm) }?;
        let which = collective.index();
        let cell = match state.phase {
            Phase::Aside => return None,
            Phase::Ready if state.calls >= u64::from(self.handout.setup_after) => {
                let place = state.sizes[which].position(bytes)?;
                state.calls += 1;
                let cell = &mut state.cells[which][place];
                let index = cell.calls;
                cell.calls = index + 1;
                if index != cell.next_sample && cell.best == DEFAULT && self.log.is_none() {
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
            cell,
        })
    }

    /// Size in bytes of a datatype, and whether it is a predefined integer.
    #[inline(always)]
    fn type_facts(&self, datatype: Datatype) -> Option<(u32, bool)> {
        match self.types.get(datatype) {
            Some(facts) => Some((facts.size, facts.integer)),
            None => self.derived_type_facts(datatype),
        }
    }

    #[cold]
    fn derived_type_facts(&self, datatype: Datatype) -> Option<(u32, bool)> {
        if bits(datatype) == bits(self.handles.datatype_null) {
            return None;
        }
        let mut size = 0;
        // SAFETY: the application passed the handle as a datatype.
        let code = unsafe { (self.pmpi.type_size)(datatype, &mut size) };
        u32::try_from(size)
            .ok()
            .filter(|_| code == abi::SUCCESS)
            .map(|size| (size, false))
    }
}
