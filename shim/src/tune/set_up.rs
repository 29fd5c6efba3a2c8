//! Set-up: the members of a communicator agree, once, on everything that must decide alike.

use std::sync::atomic::Ordering;

use colltune_core::bound;
use colltune_core::catalogue::Steering;
use colltune_core::classify::{CellsBySize, Layout};
use colltune_core::collective::Collective;
use colltune_core::preset::Preset;
use colltune_core::request::Mode;
use colltune_core::select::{Chooser, key, word};
use colltune_core::settings::{Gpu, Reproducible};
use colltune_core::space::Range;
use colltune_core::thin::rehearsals;

use super::{DEFAULT, Tuner};
use crate::abi::{self, Comm};
use crate::communicator::{Abilities, CellState, Phase, State, Ticks};
use crate::fault_tolerance;
use crate::floating;
use crate::gpu;

impl Tuner {
    /// Agrees with the other members and prepares the cells. Collective.
    #[cold]
    pub(super) fn set_up(&self, state: &mut State) {
        state.phase = Phase::Aside;
        let Some((layout, ranks_by_node)) = self.layout(state.comm) else {
            return;
        };
        let mut own = 0;
        // SAFETY: the communicator is valid.
        unsafe { (self.pmpi.comm_rank)(state.comm, &mut own) };
        let number = match own {
            0 => (u64::from(self.rank) << 32) + self.next_comm.fetch_add(1, Ordering::Relaxed) + 1,
            _ => 0,
        };
        let unable = u64::from(self.thread_multiple || !self.steer.able());
        // A carrier, or what lies in shared memory, knows nothing of a communicator that is revoked.
        let tolerant = fault_tolerance::is_asked_for();
        let not_own = self.may_have_device_memory() || tolerant;
        let mut agreed = [number, unable | u64::from(tolerant), u64::from(not_own)];
        if !self.largest(state.comm, &mut agreed) {
            return;
        }
        state.id = agreed[0];
        state.abilities = Abilities {
            native: agreed[1] == 0,
            own: agreed[2] == 0,
        };
        state.layout = layout;
        state.ranks_by_node = ranks_by_node;
        state.phase = Phase::Ready;
    }

    /// Whether this rank may have buffers in a device's memory.
    pub(super) fn may_have_device_memory(&self) -> bool {
        self.handout.settings.gpu != Gpu::HostOnly && gpu::runtime_is_present()
    }

    /// Prepares the cells of one collective, of which most communicators see a few only. Local.
    #[cold]
    pub(super) fn prepare(&self, state: &mut State, collective: Collective) {
        let sizes = CellsBySize::new(&self.handout.model, collective, state.layout);
        let cell =
            |&cell| self.cell_state(cell, collective, state.id, state.layout, state.abilities);
        let cells = floating::by_default(|| sizes.cells().iter().map(cell).collect());
        state.cells[collective.index()] = cells;
        state.sizes[collective.index()] = Some(sizes);
    }

    /// The members' layout, and whether the ranks of each node stand together; `None` for
    /// communicators that are not tuned: all members see that alike.
    pub(super) fn layout(&self, comm: Comm) -> Option<(Layout, bool)> {
        let (mut inter, mut n_ranks) = (0, 0);
        // SAFETY: the communicator is valid; each call writes one number.
        unsafe {
            if (self.pmpi.comm_test_inter)(comm, &mut inter) != abi::SUCCESS || inter != 0 {
                return None;
            }
            (self.pmpi.comm_size)(comm, &mut n_ranks);
        }
        let mut on_node = std::collections::HashMap::<u32, u32>::new();
        let (mut previous, mut changes) = (None, 0);
        for rank in self.ranks_in_world(comm) {
            // A member of another world is undefined here, and we are undefined there.
            let node = self.node_of_rank.get(usize::try_from(rank).ok()?)?;
            *on_node.entry(*node).or_default() += 1;
            changes += usize::from(previous.replace(node) != Some(node));
        }
        let layout = Layout {
            n_ranks: n_ranks as u32,
            nodes: on_node.len() as u32,
            ppn: on_node.values().copied().max().unwrap_or(0),
        };
        Some((layout, changes == on_node.len()))
    }

    fn cell_state(
        &self,
        model_cell: u32,
        collective: Collective,
        comm: u64,
        layout: Layout,
        abilities: Abilities,
    ) -> CellState {
        let entry = &self.handout.model.cells[model_cell as usize];
        let place_of = |name: &str| {
            self.names[collective.index()]
                .iter()
                .position(|other| other == name)
        };
        let known = |name: &str| place_of(name).map(|place| place as u16);
        let possible = |variant: u16| {
            let known = &self.variants[collective.index()][usize::from(variant)];
            variant == DEFAULT
                || (abilities.allow(known)
                    && known.possible(layout.n_ranks, layout.nodes, entry.cell.bytes.last()))
        };
        let variants = &self.variants[collective.index()];
        let absurd = bound::absurd(variants, layout.n_ranks, entry.cell.bytes);
        let allowed = |variant: &u16| {
            let place = usize::from(*variant);
            *variant == DEFAULT
                || (self.handout.draws(variants[place].name.family) && !absurd[place])
        };
        let forced = self
            .handout
            .forced
            .iter()
            .find(|forced| forced.collective == collective);
        let default_is = self.default_of(collective, entry.cell.bytes);
        let mut weights: Vec<(u16, f64)> = match self.handout.mode {
            Mode::Record => vec![(DEFAULT, 1.0)],
            _ => entry
                .variants
                .iter()
                .filter_map(|share| known(&share.name).map(|variant| (variant, share.probability)))
                .filter(|(variant, _)| allowed(variant))
                .map(|(variant, share)| (self.during_run(collective, variant), share))
                .filter(|(variant, _)| possible(*variant))
                .fold(Vec::new(), merged),
        };
        let learned = if self.handout.mode == Mode::Record {
            DEFAULT
        } else {
            let best = known(&entry.best).filter(allowed);
            best.map_or(DEFAULT, |best| self.during_run(collective, best))
        };
        let mut best = forced
            .and_then(|forced| known(&forced.variant))
            .map(|variant| self.during_run(collective, variant))
            .unwrap_or(learned);
        let sampling = forced.is_none() && self.handout.mode.records();
        // One draw per cell and run: the same on every communicator, hence without its number.
        let once = self.handout.settings.reproducible == Reproducible::Run
            && self.handout.mode == Mode::Explore;
        let key = key(
            self.handout.seed,
            if once { 0 } else { comm },
            model_cell.into(),
        );
        let mut chooser = Chooser::new(&weights);
        if once && sampling {
            best = chooser.draw(|| word(key, 0)).unwrap_or(DEFAULT);
            weights = vec![(best, 1.0)];
            chooser = Chooser::new(&weights);
        }
        let rehearsals = rehearsals(weights.len(), entry.cell.bytes.lo);
        let mut observed = vec![Ticks::default(); variants.len()];
        // What there is no choice of, or is run anyway, waits for no review.
        for (variant, _) in &weights {
            observed[usize::from(*variant)].judged = weights.len() == 1 || *variant == best;
        }
        CellState {
            model_cell,
            key,
            calls: 0,
            next_sample: if sampling { 0 } else { u64::MAX },
            next_drawn: if sampling { 0 } else { u64::MAX },
            rehearsals,
            samples: 0,
            gap_least: 1,
            default_is,
            best,
            chooser,
            observed,
            weights,
            first_ticks: 0,
            fresh: Vec::new(),
        }
    }
    /// What the library's own choice is for these sizes.
    fn default_of(&self, collective: Collective, bytes: Range) -> u16 {
        let told = |one: &&Preset| one.collective == collective && one.bytes.contains(bytes.lo);
        let told = self.handout.presets.iter().find(told);
        let names = &self.names[collective.index()];
        let place = told.and_then(|one| names.iter().position(|name| *name == one.variant));
        place.map_or(DEFAULT, |place| place as u16)
    }

    /// What drawing a variant comes to where the library's own algorithms cannot be told apart during
    /// a run: these all are its choice, whatever it was told before.
    fn during_run(&self, collective: Collective, variant: u16) -> u16 {
        let steering = self.variants[collective.index()][usize::from(variant)].steering;
        match steering {
            Steering::Intel { .. } => DEFAULT,
            _ => variant,
        }
    }
}

/// Adds a share to those of the same variant.
fn merged(mut shares: Vec<(u16, f64)>, (variant, share): (u16, f64)) -> Vec<(u16, f64)> {
    match shares.iter_mut().find(|(other, _)| *other == variant) {
        Some((_, sum)) => *sum += share,
        None => shares.push((variant, share)),
    }
    shares
}
