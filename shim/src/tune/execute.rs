//! Select and execute: the cell's draw or its best variant, run and timed.

use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use colltune_core::catalogue::{Crossing, Facts, Need, OnNodes, Own, Unmet, Variant};
use colltune_core::collective::Collective;
use colltune_core::preset::{self, Preset};
use colltune_core::record::{Manner, Record};
use colltune_core::request::Mode;
use colltune_core::select::word;

use super::{Call, DEFAULT, Tuner};
use crate::abi::{self, Comm};
use crate::arguments::Arguments;
use crate::call_log::Line;
use crate::clock;
use crate::communicator::{Phase, Sample, Sampled, State};
use crate::node::{Again, Operands};
use crate::own;
use crate::own_call::OwnCall;
use crate::p2p;

/// The ways to run one call.
struct Ways<A, D, N> {
    arguments: A,
    default: D,
    native: N,
}

impl Tuner {
    /// Runs a call: `default` is the next definition's, `native` the library's on a given
    /// communicator; our own algorithms take the `arguments`.
    #[inline]
    pub fn run(
        &self,
        call: Call,
        arguments: impl Fn() -> Arguments,
        default: impl Fn() -> c_int,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        let ways = Ways {
            arguments,
            default,
            native,
        };
        match call.cell {
            Some((place, index)) => self.run_chosen(call, place, index, &ways),
            None => self.run_young(call, &ways),
        }
    }

    /// The calls up to the set-up, and the set-up itself; and the first one behind a call that did not
    /// return. A call log wants agreed numbers from the first call on; what is drawn is the same with it and without.
    #[cold]
    fn run_young(
        &self,
        call: Call,
        ways: &Ways<impl Fn() -> Arguments, impl Fn() -> c_int, impl Fn(Comm) -> c_int>,
    ) -> c_int {
        if let Phase::Sampling(left) = call.state.phase {
            self.account_for(left, call.state, clock::ticks(), None);
        }
        let number = call.state.calls + 1;
        let due = number >= u64::from(self.handout.settings.setup_after);
        if call.state.phase == Phase::Young && (due || self.told) {
            let _under_way = self.under_way(call.state, call.collective, call.bytes, DEFAULT);
            self.set_up(call.state);
        }
        if due && call.state.phase == Phase::Ready {
            let place = match &call.state.sizes[call.collective.index()] {
                Some(sizes) => sizes.position(call.bytes),
                None => self.first_position(call.state, call.collective, call.bytes),
            };
            if let Some(place) = place {
                call.state.calls = number;
                let cell = &mut call.state.cells[call.collective.index()][place];
                let index = cell.calls;
                cell.calls += 1;
                return self.run_chosen(call, place, index, ways);
            }
        }
        call.state.calls = number;
        self.log_call(&call, None, DEFAULT, false);
        let _under_way = self.under_way(call.state, call.collective, call.bytes, DEFAULT);
        (ways.default)()
    }

    /// A call whose variant is not simply `default`.
    fn run_chosen(
        &self,
        call: Call,
        place: usize,
        index: u64,
        ways: &Ways<impl Fn() -> Arguments, impl Fn() -> c_int, impl Fn(Comm) -> c_int>,
    ) -> c_int {
        let collective = call.collective;
        let cell = &call.state.cells[collective.index()][place];
        let sampled = index == cell.next_sample;
        let wish = if index >= cell.next_drawn {
            let word = || word(cell.key, cell.next_sample);
            let drawn = cell.chooser.draw(word).unwrap_or(DEFAULT);
            if cell.observed[usize::from(drawn)].may_be_drawn() {
                drawn
            } else {
                DEFAULT
            }
        } else {
            cell.best
        };
        let variant = if wish == DEFAULT {
            DEFAULT
        } else {
            self.applicable(&call, wish)
        };
        let own = self.own_call(&call, variant, &ways.arguments);
        let ready = variant == DEFAULT
            || match &own {
                Some(own) => {
                    let parent = call.state.parent();
                    own::ready(self, parent, &mut call.state.families, own)
                }
                None => {
                    let (parent, carriers) = (call.state.parent(), &mut call.state.carriers);
                    self.steer
                        .ready(self, parent, carriers, collective, variant)
                }
            };
        let (variant, own) = if ready {
            (variant, own.as_ref())
        } else {
            (DEFAULT, None)
        };
        let label = self.label(&call, place, variant);
        if self.log.is_some() {
            let label = label.unwrap_or(DEFAULT);
            self.log_call(&call, Some(cell_of(&call, place)), label, sampled);
        }
        let _under_way = self.under_way(call.state, collective, call.bytes, variant);
        if !sampled {
            let code = self.execute(call.state, collective, variant, own, ways);
            if code == abi::SUCCESS
                && let Some(again) = own.and_then(|own| Again::of(self, own, place, variant))
            {
                call.state.again = Some(again);
            }
            return code;
        }
        let before = clock::ticks();
        let sampled = Sampled {
            collective,
            place,
            index,
            variant,
            start_ticks: before,
        };
        call.state.phase = Phase::Sampling(sampled);
        // The short way does not look at the phase.
        call.state.again = None;
        let code = self.execute(call.state, collective, variant, own, ways);
        let after = clock::ticks();
        let recorder = self.recorder.as_ref().filter(|_| code == abi::SUCCESS);
        let record = recorder.zip(label).and_then(|(recorder, label)| {
            recorder.write(|| self.record(call.state, collective, call.bytes, label, before, after))
        });
        if call.state.phase == Phase::Sampling(sampled) {
            self.account_for(sampled, call.state, after, record);
        }
        code
    }

    /// Ends a sampled call, whatever came of it: all ranks must count the same samples. One that was left by an
    /// exception or a longjmp ends before the communicator's next call, where the other ranks have ended theirs.
    #[inline]
    fn account_for(&self, call: Sampled, state: &mut State, end_ticks: u64, record: Option<usize>) {
        state.phase = Phase::Ready;
        let sample = Sample {
            start_ticks: call.start_ticks,
            end_ticks,
            record,
        };
        self.take(sample, state, call.collective, call.place, call.variant);
        let cell = &mut state.cells[call.collective.index()][call.place];
        cell.plan_next_sample(call.index, self.handout.settings.samples_per_cell);
    }

    /// Runs an allreduce that is like the communicator's last one; `None` where it has to go the long way.
    ///
    /// # Safety
    /// The arguments are those of an MPI_Allreduce on `comm`.
    #[inline(always)]
    pub unsafe fn allreduce_again(&self, operands: Operands, comm: Comm) -> Option<c_int> {
        // SAFETY: the application passed a communicator that it may use for this collective now.
        let state = unsafe { self.registry.find(comm) }?;
        let again = state.again.filter(|again| again.is_like(&operands))?;
        let cell = &mut state.cells[Collective::Allreduce.index()][again.place];
        let index = cell.calls;
        if index >= cell.next_drawn || cell.best != again.variant {
            return None;
        }
        cell.calls += 1;
        state.calls += 1;
        if self.log.is_some() {
            self.log_again(state, &again, index);
        }
        let bytes = again.bytes as u64;
        let _under_way = self.under_way(state, Collective::Allreduce, bytes, again.variant);
        // SAFETY: the caller's promise; what the library would refuse is not like a call that was right.
        let families = state.families.on_nodes();
        // SAFETY: as above.
        Some(unsafe { again.run(self, comm, families, &operands) })
    }

    #[cold]
    fn log_again(&self, state: &mut State, again: &Again, index: u64) {
        let call = Call {
            state,
            collective: Collective::Allreduce,
            bytes: again.bytes as u64,
            reduction: None,
            in_place: false,
            equal_blocks: true,
            cell: Some((again.place, index)),
        };
        let cell = cell_of(&call, again.place);
        self.log_call(&call, Some(cell), again.variant, false);
    }

    /// The call as our own algorithms take it; `None` for the other families.
    #[inline]
    fn own_call(
        &self,
        call: &Call,
        variant: u16,
        arguments: impl Fn() -> Arguments,
    ) -> Option<OwnCall<Own>> {
        let which = call.collective.index();
        Some(OwnCall {
            collective: call.collective,
            variant: self.first_variant[which] + variant,
            own: self.variants[which][usize::from(variant)].own?,
            bytes: call.bytes,
            arguments: arguments(),
        })
    }

    fn execute(
        &self,
        state: &mut State,
        collective: Collective,
        variant: u16,
        own: Option<&OwnCall<Own>>,
        ways: &Ways<impl Fn() -> Arguments, impl Fn() -> c_int, impl Fn(Comm) -> c_int>,
    ) -> c_int {
        match own {
            _ if variant == DEFAULT => (ways.default)(),
            Some(own) => {
                let parent = state.parent();
                own::run(self, parent, &mut state.families, own, &ways.default)
            }
            None => {
                let (comm, carriers, native) = (state.comm, &state.carriers, &ways.native);
                self.steer
                    .run(self, comm, carriers, collective, variant, native)
            }
        }
    }

    /// The variant if it applies to this call, else `default`. Only shared facts decide.
    fn applicable(&self, call: &Call, variant: u16) -> u16 {
        let variant_of = &self.variants[call.collective.index()][usize::from(variant)];
        let facts = self.facts(call);
        if let Some(unmet) = variant_of.unmet(&facts) {
            // That there is nothing to do, or nobody to do it with, is not worth a word.
            if ![Need::SomeBytes, Need::TwoRanks]
                .map(Unmet::Call)
                .contains(&unmet)
            {
                self.warn_forced(call.collective, variant, unmet);
            }
            return DEFAULT;
        }
        // Counts of MPI 3 are ints, and so are those of messages of several blocks, ours and the libraries': Open
        // MPI's bruck algorithms count the bytes of all ranks' blocks in them, as does an alltoall that is sent as bytes.
        let total_bytes = p2p::total_bytes(call.collective, call.bytes, facts.n_ranks);
        if total_bytes > i32::MAX as u64 {
            return DEFAULT;
        }
        let able = if variant_of.own.is_some() {
            call.reduction
                .is_none_or(|reduction| self.combines(reduction.datatype, reduction.op))
                && own::fits(variant_of.own, &facts)
                && !self.is_told_across(variant_of, call.bytes)
        } else {
            call.state.abilities.native
        };
        if able && call.state.abilities.allow(variant_of) {
            variant
        } else {
            DEFAULT
        }
    }

    /// Whether the library's own choice between the nodes may be what it was told before the run.
    fn is_told_across(&self, variant: &Variant, bytes: u64) -> bool {
        let told = |own: fn(u64, &Preset) -> bool| {
            let mut presets = self.handout.presets.iter();
            presets.any(|one| one.collective == variant.collective && own(bytes, one))
        };
        match variant.own {
            Some(Own::Node(OnNodes::Leaders(Crossing::Library))) => {
                told(|bytes, one| one.bytes.contains(bytes))
            }
            // Shares are shorter.
            Some(Own::Node(OnNodes::Lanes(Crossing::Library))) => {
                told(|bytes, one| one.bytes.lo <= bytes)
            }
            _ => false,
        }
    }

    /// What a call is recorded as: what the library was told stands for its own choice. `None` where
    /// nobody knows what ran, because the call lacks what that needs.
    #[inline]
    fn label(&self, call: &Call, place: usize, variant: u16) -> Option<u16> {
        let told = call.state.cells[call.collective.index()][place].default_is;
        if variant != DEFAULT || told == DEFAULT {
            return Some(variant);
        }
        let known = &self.variants[call.collective.index()][usize::from(told)];
        let runs = call.bytes <= preset::BYTES_MAX && known.applies(&self.facts(call));
        runs.then_some(told)
    }

    /// The facts of a call that needs are checked against.
    fn facts(&self, call: &Call) -> Facts {
        let op = call.reduction.map(|reduction| reduction.op);
        let builtin_op = op.is_none_or(|op| self.ops.get(op).is_some());
        Facts {
            n_ranks: call.state.layout.n_ranks,
            nodes: call.state.layout.nodes,
            message_bytes: call.bytes,
            count: call.reduction.map(|reduction| reduction.count),
            commutative: builtin_op || op.is_some_and(|op| self.is_commutative(op)),
            builtin_op,
            in_place: call.in_place,
            ranks_by_node: call.state.ranks_by_node,
            equal_blocks: call.equal_blocks,
            plain_elements: call
                .reduction
                .is_none_or(|reduction| self.types.get(reduction.datatype).is_some()),
        }
    }

    fn warn_forced(&self, collective: Collective, variant: u16, unmet: Unmet) {
        let forced = self
            .handout
            .forced
            .iter()
            .any(|forced| forced.collective == collective);
        if forced
            && self.rank == 0
            && !self.warned[collective.index()].swap(true, Ordering::Relaxed)
        {
            let name = &self.names[collective.index()][usize::from(variant)];
            crate::warn::say(&format!(
                "{collective}={name} is forced, but needs {unmet}: such calls run default"
            ));
        }
    }

    fn record(
        &self,
        state: &State,
        collective: Collective,
        bytes: u64,
        variant: u16,
        before: u64,
        after: u64,
    ) -> Record {
        Record {
            comm: state.id,
            call: state.calls - 1,
            message_bytes: bytes,
            start_ns: self.clock.at_ns(before),
            duration_ns: self.clock.span_ns(after.wrapping_sub(before)),
            nodes: state.layout.nodes,
            ppn: state.layout.ppn,
            n_ranks: state.layout.n_ranks,
            variant: self.first_variant[collective.index()] + variant,
            collective,
            drawn: self.handout.mode == Mode::Explore,
            manner: Manner::Blocking,
        }
    }

    fn log_call(&self, call: &Call, cell: Option<u32>, variant: u16, sampled: bool) {
        let Some(log) = &self.log else { return };
        let state = &call.state;
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(&Line {
                comm: (state.id > 0).then_some(state.id),
                index: state.calls - 1,
                collective: call.collective.name(),
                bytes: call.bytes,
                nodes: state.layout.nodes,
                ppn: state.layout.ppn,
                cell,
                variant: &self.names[call.collective.index()][usize::from(variant)],
                sampled,
            });
    }
}

fn cell_of(call: &Call, place: usize) -> u32 {
    call.state.cells[call.collective.index()][place].model_cell
}
