//! Set-up: the members of a communicator agree, once, on everything that must decide alike.

use std::sync::atomic::Ordering;

use colltune_core::decide::agreed::{Ability, Agreed, Membership};
use colltune_core::settings::Gpu;

use super::Tuner;
use crate::abi::{self, Comm};
use crate::communicator::State;
use crate::fault_tolerance;
use crate::gpu;

impl Tuner {
    /// Agrees with the other members. Collective; `None` where all members see that the communicator is not to be
    /// tuned, or where the library cannot let them agree: then it is of no use to any of them.
    #[cold]
    pub(super) fn agree(&self, state: &State) -> Option<(Agreed, Membership)> {
        let membership = self.membership(state.comm)?;
        let mut own = 0;
        // SAFETY: the communicator is valid.
        unsafe { (self.pmpi.comm_rank)(state.comm, &mut own) };
        let number = match own {
            0 => (u64::from(self.rank) << 32) + self.next_comm.fetch_add(1, Ordering::Relaxed) + 1,
            _ => 0,
        };
        // A carrier, or what lies in shared memory, knows nothing of a communicator that is revoked.
        let tolerant = fault_tolerance::is_asked_for();
        let ability = Ability {
            number,
            native: (!self.thread_multiple && self.steer.able() && !tolerant).into(),
            own_families: (!self.may_have_device_memory() && !tolerant).into(),
        };
        let mut words = ability.words();
        self.largest(state.comm, &mut words)
            .then(|| (Agreed::of(words), membership))
    }

    /// Whether this rank may have buffers in a device's memory.
    pub(super) fn may_have_device_memory(&self) -> bool {
        self.rules.terms.settings.gpu != Gpu::HostOnly && gpu::runtime_is_present()
    }

    /// Who belongs to a communicator; `None` for those that are not tuned: all members see that alike.
    pub(super) fn membership(&self, comm: Comm) -> Option<Membership> {
        let mut inter = 0;
        // SAFETY: the communicator is valid; one number is written.
        let code = unsafe { (self.pmpi.comm_test_inter)(comm, &mut inter) };
        if code != abi::SUCCESS || inter != 0 {
            return None;
        }
        // A member of another world is undefined here, and we are undefined there.
        let node = |rank| self.node_of_rank.get(usize::try_from(rank).ok()?).copied();
        let nodes = self.ranks_in_world(comm).into_iter().map(node);
        let nodes: Vec<u32> = nodes.collect::<Option<_>>()?;
        Some(Membership::of(nodes.into_iter()))
    }
}
