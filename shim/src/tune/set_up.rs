//! Set-up: the members of a communicator agree, once, on everything that must decide alike.

use std::sync::atomic::Ordering;

use colltune_core::account::Cause;
use colltune_core::classify::Layout;
use colltune_core::decide::agreed::{ABILITY_WORDS, Ability, Agreed, Membership, Possible};
use colltune_core::decide::hopeless::{HOPELESS_WORDS, Hopeless};
use colltune_core::decide::{Decider, Switch};
use colltune_core::review;
use colltune_core::settings::Gpu;

use super::Tuner;
use crate::abi::{self, Comm};
use crate::clock;
use crate::communicator::State;
use crate::floating;
use crate::gpu;
use crate::library::Pmpi;
use crate::limits::{Reservation, has_address_space};
use crate::members::{self, Unknown};
use crate::switch::{self, switch};

impl Tuner {
    /// Agrees with the other members. Collective; or why all members see that the communicator is not to be tuned. Where
    /// the library cannot let them agree it is of no use to any of them.
    #[cold]
    pub(super) fn agree(&self, state: &mut State) -> Result<(Agreed, Membership, Hopeless), Cause> {
        let _agreement = self.spending.agreement();
        if !is_among_its_own(self.pmpi, state.comm) {
            return Err(Cause::Intercommunicator);
        }
        let world_ranks = match members::world_ranks(self, state.comm) {
            Err(Unknown::Foreign) => return Err(Cause::Foreign),
            known => known.ok(),
        };
        let mut own = 0;
        // SAFETY: the communicator is valid.
        unsafe { (self.pmpi.comm_rank)(state.comm, &mut own) };
        state.rank = u32::try_from(own).unwrap_or(0);
        let number = match own {
            0 => (u64::from(self.rank) << 32) + self.next_comm.fetch_add(1, Ordering::Relaxed) + 1,
            _ => 0,
        };
        // A carrier, or what lies in shared memory, knows nothing of a communicator that is revoked.
        let tolerant = self.tolerates_deaths;
        let (spent_ppm, pays) = floating::by_default(|| self.afford(state.attached));
        let ability = Ability {
            number,
            native: if tolerant {
                Possible::No(Cause::Deaths)
            } else if self.thread_multiple {
                Possible::No(Cause::Threads)
            } else {
                Possible::unless(!self.steer.able(), Cause::Steering)
            },
            own_families: match tolerant {
                true => Possible::No(Cause::Deaths),
                false => self.own_families(),
            },
            spent_ppm,
            pays: Possible::unless(!pays, Cause::Unpaid),
        };
        let memory = Reservation::of(Decider::READY_BYTES).filter(|_| has_address_space());
        // The last one says whether a member does not know who the others are, has no room for decisions, or knows that the
        // job was switched off.
        let mut words = [0; ABILITY_WORDS + HOPELESS_WORDS + 1];
        words[..ABILITY_WORDS].copy_from_slice(&ability.words());
        words[ABILITY_WORDS..][..HOPELESS_WORDS].copy_from_slice(&self.hopeless.all().0);
        let problem = if switch() == Switch::Off {
            Possible::No(Cause::Switch)
        } else if memory.is_none() {
            Possible::No(Cause::Room)
        } else {
            Possible::unless(world_ranks.is_none(), Cause::Agreement)
        };
        words[ABILITY_WORDS + HOPELESS_WORDS] = problem.word();
        if !self.largest(state.comm, &mut words) {
            return Err(Cause::Agreement);
        }
        let (of_ability, rest) = words.split_at(ABILITY_WORDS);
        let (of_hopeless, problem) = rest.split_at(HOPELESS_WORDS);
        if let Some(cause) = Possible::of(problem[0]).cause() {
            if cause == Cause::Switch {
                // Other communicators hear it from this rank.
                switch::hear();
            }
            return Err(cause);
        }
        let (Ok(of_ability), Ok(of_hopeless)) = (of_ability.try_into(), of_hopeless.try_into())
        else {
            return Err(Cause::Agreement);
        };
        let hopeless = Hopeless(of_hopeless);
        self.hopeless.learn(&hopeless);
        let (Some(memory), Some(world_ranks)) = (memory, world_ranks) else {
            return Err(Cause::Agreement);
        };
        state.decisions = memory;
        let nodes = world_ranks.into_iter();
        let nodes = nodes.filter_map(|rank| members::node_of(self, rank));
        Ok((Agreed::of(of_ability), Membership::of(nodes), hopeless))
    }

    /// What agreements have cost this rank so far, and whether it pays for one on a communicator that it has known since
    /// so many ticks.
    fn afford(&self, attached: u64) -> (u64, bool) {
        let spent_ppm = self.spending.share_ppm(&self.clock);
        let budget_ppm = self.rules.terms.settings.explore_budget_ppm();
        let lived_ns = self.clock.span_ns(clock::ticks().wrapping_sub(attached));
        let life = (lived_ns, self.spending.each_ns(&self.clock));
        (spent_ppm, review::pays(spent_ppm, budget_ppm, life))
    }

    /// Whether our own algorithms may touch this rank's buffers, which may be in a device's memory.
    pub(super) fn own_families(&self) -> Possible {
        let is_free = self.rules.terms.settings.gpu == Gpu::HostOnly;
        Possible::unless(!is_free && gpu::runtime_is_present(), Cause::Device)
    }

    /// The layout of a communicator that is not set up, for this rank alone; `None` where it is not known without the
    /// others.
    pub(super) fn layout_alone(&self, comm: Comm) -> Option<Layout> {
        if !is_among_its_own(self.pmpi, comm) {
            return None;
        }
        let nodes = members::nodes_alone(self, comm)?;
        Some(Membership::of(nodes.into_iter()).layout)
    }
}

/// Whether a communicator is no intercommunicator: all its members see that alike.
fn is_among_its_own(pmpi: &Pmpi, comm: Comm) -> bool {
    let mut inter = 0;
    // SAFETY: the communicator is valid; one number is written.
    let code = unsafe { (pmpi.comm_test_inter)(comm, &mut inter) };
    code == abi::SUCCESS && inter == 0
}
