//! One call, from its arguments to its result: classify, select, execute, record.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use colltune_core::catalogue::{Facts, Variant};
use colltune_core::classify::{CellsBySize, Layout, message_bytes};
use colltune_core::collective::Collective;
use colltune_core::record::Record;
use colltune_core::request::Mode;
use colltune_core::review::{self, Observed, Progress};
use colltune_core::select::{Chooser, key, word};
use colltune_core::settings::Reproducible;
use colltune_core::thin::next_sampled;

use crate::abi::{self, Comm, Datatype, Handle, Op, bits};
use crate::call_log::{CallLog, Line};
use crate::clock::{self, Conversion};
use crate::communicator::{CellState, Phase, Registry, Sample, State, Ticks};
use crate::handout::Handout;
use crate::library::{Handles, Pmpi};
use crate::recorder::Recorder;
use crate::steer::Steer;

/// The place of `default` among a collective's variants.
const DEFAULT: u16 = 0;

/// Everything that a job's calls need, built once after the handshake.
pub struct Tuner {
    pub pmpi: &'static Pmpi,
    pub handles: Handles,
    pub rank: u32,
    /// For each rank of the world the number of its node.
    pub node_of_rank: Vec<u32>,
    pub handout: Handout,
    /// Each collective's variants, `default` first.
    pub variants: [Vec<Variant>; Collective::ALL.len()],
    pub names: [Vec<String>; Collective::ALL.len()],
    /// The place of a collective's first variant in the header of the trace.
    pub first_variant: [u16; Collective::ALL.len()],
    pub registry: &'static Registry,
    pub steer: Steer,
    pub types: HandleTable<(u32, bool)>,
    pub ops: HandleTable<()>,
    pub clock: Conversion,
    pub recorder: Option<Recorder>,
    pub log: Option<Mutex<CallLog>>,
    pub thread_multiple: bool,
    pub busy: AtomicBool,
    pub next_comm: AtomicU64,
    pub warned: [AtomicBool; Collective::ALL.len()],
}

/// A call of ours, with the facts that all its ranks share.
pub struct Call<'a> {
    state: &'a mut State,
    collective: Collective,
    bytes: u64,
    /// Elements and operation of a reduction.
    reduction: Option<(u64, Op)>,
    in_place: bool,
    /// The cell's place among the communicator's, and the call's number there; `None` while the
    /// communicator is young.
    cell: Option<(usize, u64)>,
}

impl Tuner {
    pub fn pmpi(&self) -> &'static Pmpi {
        self.pmpi
    }

    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Ends the job; see `fence`.
    pub fn abort(&self) -> ! {
        // SAFETY: MPI_COMM_WORLD is valid until MPI_Finalize, before which the tuner is disarmed.
        unsafe { (self.pmpi.abort)(self.handles.comm_world, 1) };
        std::process::abort()
    }

    /// Whether this call may be tuned. With several threads each call stands for itself: nothing
    /// behind us re-enters then but other threads' calls on other communicators.
    #[inline(always)]
    pub fn enter(&self) -> bool {
        self.thread_multiple
            || (!self.busy.load(Ordering::Relaxed) && {
                self.busy.store(true, Ordering::Relaxed);
                true
            })
    }

    #[inline(always)]
    pub fn leave(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

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
            Some((count, op)),
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
        reduction: Option<(u64, Op)>,
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
            Some(facts) => Some(*facts),
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

    /// Runs a call: `default` is the next definition's, `native` the library's on a given communicator.
    pub fn run(
        &self,
        call: Call,
        default: impl Fn() -> c_int,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        match call.cell {
            Some((place, index)) => self.run_chosen(call, place, index, default, native),
            None => self.run_young(call, default, native),
        }
    }

    /// The calls up to the set-up, and the set-up itself. A call log wants agreed numbers from the
    /// first call on; what is drawn is the same with it and without.
    #[cold]
    fn run_young(
        &self,
        call: Call,
        default: impl Fn() -> c_int,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        let number = call.state.calls + 1;
        let due = number >= u64::from(self.handout.setup_after);
        if call.state.phase == Phase::Young && (due || self.log.is_some()) {
            self.set_up(call.state);
        }
        if due && call.state.phase == Phase::Ready {
            let place = call.state.sizes[call.collective.index()].position(call.bytes);
            if let Some(place) = place {
                call.state.calls = number;
                let cell = &mut call.state.cells[call.collective.index()][place];
                let index = cell.calls;
                cell.calls += 1;
                return self.run_chosen(call, place, index, default, native);
            }
        }
        call.state.calls = number;
        self.log_call(&call, None, DEFAULT, false);
        default()
    }

    /// A call whose variant is not simply `default`.
    fn run_chosen(
        &self,
        call: Call,
        place: usize,
        index: u64,
        default: impl Fn() -> c_int,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        let collective = call.collective;
        let cell = &call.state.cells[collective.index()][place];
        let sampled = index == cell.next_sample;
        let wish = if sampled {
            cell.chooser.draw(word(cell.key, index)).unwrap_or(DEFAULT)
        } else {
            cell.best
        };
        let variant = if wish == DEFAULT {
            DEFAULT
        } else {
            self.applicable(&call, wish)
        };
        let variant =
            if variant == DEFAULT || self.steer.ready(self, call.state, collective, variant) {
                variant
            } else {
                DEFAULT
            };
        if self.log.is_some() {
            self.log_call(&call, Some(cell_of(&call, place)), variant, sampled);
        }
        if !sampled {
            return self.execute(call.state, collective, variant, default, native);
        }
        let before = clock::ticks();
        let code = self.execute(call.state, collective, variant, default, native);
        let after = clock::ticks();
        let recorder = self.recorder.as_ref().filter(|_| code == abi::SUCCESS);
        let record = recorder.and_then(|recorder| {
            recorder
                .write(|| self.record(call.state, collective, call.bytes, variant, before, after))
        });
        // Observed even where it failed: all ranks must count the same samples.
        let sample = Sample {
            start_ticks: before,
            end_ticks: after,
            record,
        };
        self.observe(
            &mut call.state.cells[collective.index()][place],
            variant,
            sample,
        );
        self.plan_next_sample(call.state, collective, place, index);
        code
    }

    fn execute(
        &self,
        state: &State,
        collective: Collective,
        variant: u16,
        default: impl Fn() -> c_int,
        native: impl Fn(Comm) -> c_int,
    ) -> c_int {
        if variant == DEFAULT {
            return default();
        }
        self.steer.run(self, state, collective, variant, native)
    }

    /// The variant if it applies to this call, else `default`. Only shared facts decide.
    fn applicable(&self, call: &Call, variant: u16) -> u16 {
        let (count, op) = call
            .reduction
            .map_or((None, None), |(count, op)| (Some(count), Some(op)));
        let builtin_op = op.is_none_or(|op| self.ops.get(op).is_some());
        let facts = Facts {
            n_ranks: call.state.layout.n_ranks,
            nodes: call.state.layout.nodes,
            message_bytes: call.bytes,
            count,
            commutative: builtin_op || op.is_some_and(|op| self.is_commutative(op)),
            builtin_op,
            in_place: call.in_place,
        };
        // Counts of MPI 3 are ints, and a broadcast is sent as bytes.
        let sendable = call.bytes <= i32::MAX as u64;
        match self.variants[call.collective.index()][usize::from(variant)].unmet(&facts) {
            None if sendable && call.state.native => variant,
            None => DEFAULT,
            Some(need) => {
                self.warn_forced(call.collective, variant, need.describe());
                DEFAULT
            }
        }
    }

    fn warn_forced(&self, collective: Collective, variant: u16, need: &str) {
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
                "{collective}={name} is forced, but needs {need}: such calls run default"
            ));
        }
    }

    fn is_commutative(&self, op: Op) -> bool {
        let mut flag = 0;
        // SAFETY: the application passed the handle as an operation.
        let code = unsafe { (self.pmpi.op_commutative)(op, &mut flag) };
        code == abi::SUCCESS && flag != 0
    }

    #[inline]
    fn observe(&self, cell: &mut CellState, variant: u16, sample: Sample) {
        cell.fresh.push(sample);
        let Some(which) = cell.weights.iter().position(|(other, _)| *other == variant) else {
            return;
        };
        let ticks = sample.end_ticks.wrapping_sub(sample.start_ticks);
        let seen = &mut cell.observed[which];
        seen.fastest = if seen.samples == 0 {
            ticks
        } else {
            seen.fastest.min(ticks)
        };
        seen.samples += 1;
        seen.total = seen.total.wrapping_add(ticks);
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
        }
    }

    fn plan_next_sample(
        &self,
        state: &mut State,
        collective: Collective,
        place: usize,
        index: u64,
    ) {
        let cell = &mut state.cells[collective.index()][place];
        if cell.samples == 0 {
            cell.first_ticks = clock::ticks();
            state.cells_in_use += 1;
        }
        cell.samples += 1;
        if review::due(cell.samples) {
            self.review(state, collective, place);
        }
        let cell = &mut state.cells[collective.index()][place];
        cell.next_sample = next_sampled(
            cell.key,
            index,
            self.handout.samples_per_cell,
            cell.gap_least,
        );
    }

    /// Combines what the ranks saw of a cell; all conclude the same (see `colltune_core::review`).
    /// A collective of the library on the program's own communicator, at a call of all its ranks.
    #[cold]
    fn review(&self, state: &mut State, collective: Collective, place: usize) {
        if state.layout.n_ranks == 1 {
            // There is nobody to compare with, and nothing but `default` to draw.
            state.cells[collective.index()][place].fresh.clear();
            return;
        }
        let cells_in_use = state.cells_in_use.max(1);
        let cell = &mut state.cells[collective.index()][place];
        let elapsed_ns = self
            .clock
            .span_ns(clock::ticks().wrapping_sub(cell.first_ticks));
        let mut seen: Vec<u64> = cell
            .observed
            .iter()
            .flat_map(|seen| {
                [
                    self.clock.span_ns(seen.fastest),
                    self.clock.span_ns(seen.total),
                ]
            })
            .collect();
        seen.push(elapsed_ns);
        let own = seen.len();
        // Ranks of one node read one clock, so the last start and the last end can be found.
        if state.layout.nodes == 1 {
            let both = |sample: &Sample| {
                [
                    self.clock.at_ns(sample.start_ticks),
                    self.clock.at_ns(sample.end_ticks),
                ]
            };
            seen.extend(cell.fresh.iter().flat_map(both));
        }
        if !self.largest(state.comm, &mut seen) {
            return;
        }
        self.correct_records(&cell.fresh, &seen[own..]);
        cell.fresh.clear();
        if self.handout.mode != Mode::Explore {
            return;
        }
        let elapsed_ns = seen[own - 1];
        let observed: Vec<Observed> = cell
            .observed
            .iter()
            .zip(seen[..own].chunks_exact(2))
            .map(|(own, all)| Observed {
                samples: own.samples,
                fastest_ns: all[0],
                total_ns: all[1],
            })
            .collect();
        let reference = cell
            .weights
            .iter()
            .position(|(variant, _)| *variant == DEFAULT);
        let budget_ppm = self.handout.explore_budget_ppm / cells_in_use;
        let progress = Progress {
            calls: cell.calls,
            elapsed_ns,
            budget_ppm,
        };
        let verdict = review::review(&observed, reference, progress);
        for ((variant, weight), dropped) in cell.weights.iter_mut().zip(verdict.dropped) {
            if dropped && *variant != DEFAULT {
                *weight = 0.0;
            }
        }
        cell.gap_least = verdict.gap_least;
        cell.chooser = Chooser::new(&cell.weights);
    }

    /// Gives records the time of the whole call: from the start of the last rank, for which early
    /// ones wait, to the end of the last rank. `whole` holds both for each sample, or nothing.
    fn correct_records(&self, samples: &[Sample], whole: &[u64]) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        for (sample, times) in samples.iter().zip(whole.chunks_exact(2)) {
            if let Some(place) = sample.record {
                recorder.correct(place, times[0], times[1].saturating_sub(times[0]));
            }
        }
    }

    /// Replaces each number by the largest over the communicator's ranks; false on an error.
    pub fn largest(&self, comm: Comm, numbers: &mut [u64]) -> bool {
        let mut result = vec![0u64; numbers.len()];
        let (send, recv) = (numbers.as_ptr().cast(), result.as_mut_ptr().cast());
        // SAFETY: both buffers hold as many 64-bit numbers as are announced.
        let code = unsafe {
            (self.pmpi.allreduce)(
                send,
                recv,
                numbers.len() as c_int,
                self.handles.uint64,
                self.handles.max,
                comm,
            )
        };
        numbers.copy_from_slice(&result);
        code == abi::SUCCESS
    }

    /// Agrees with the other members and prepares the cells. Collective.
    #[cold]
    fn set_up(&self, state: &mut State) {
        state.phase = Phase::Aside;
        let Some(layout) = self.layout(state.comm) else {
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
        let mut agreed = [number, unable];
        if !self.largest(state.comm, &mut agreed) {
            return;
        }
        state.id = agreed[0];
        state.native = agreed[1] == 0;
        state.layout = layout;
        for collective in Collective::ALL {
            let sizes = CellsBySize::new(&self.handout.model, collective, layout);
            state.cells[collective.index()] = sizes
                .cells()
                .iter()
                .map(|&cell| self.cell_state(cell, collective, state.id, layout, state.native))
                .collect();
            state.sizes[collective.index()] = sizes;
        }
        state.phase = Phase::Ready;
    }

    /// The members' layout; `None` for communicators that are not tuned: all members see that alike.
    fn layout(&self, comm: Comm) -> Option<Layout> {
        let (mut inter, mut n_ranks) = (0, 0);
        // SAFETY: the communicator is valid; each call writes one number.
        unsafe {
            if (self.pmpi.comm_test_inter)(comm, &mut inter) != abi::SUCCESS || inter != 0 {
                return None;
            }
            (self.pmpi.comm_size)(comm, &mut n_ranks);
        }
        let ranks: Vec<c_int> = (0..n_ranks).collect();
        let mut in_world = vec![abi::MPI_UNDEFINED as c_int; ranks.len()];
        let mut group = self.handles.comm_null;
        let mut world_group = self.handles.comm_null;
        // SAFETY: groups are made, used and freed here; both lists are `n_ranks` long.
        unsafe {
            (self.pmpi.comm_group)(comm, &mut group);
            (self.pmpi.comm_group)(self.handles.comm_world, &mut world_group);
            (self.pmpi.group_translate_ranks)(
                group,
                n_ranks,
                ranks.as_ptr(),
                world_group,
                in_world.as_mut_ptr(),
            );
            (self.pmpi.group_free)(&mut group);
            (self.pmpi.group_free)(&mut world_group);
        }
        let mut on_node = std::collections::HashMap::<u32, u32>::new();
        for rank in in_world {
            // A member of another world is undefined here, and we are undefined there.
            let node = self.node_of_rank.get(usize::try_from(rank).ok()?)?;
            *on_node.entry(*node).or_default() += 1;
        }
        Some(Layout {
            n_ranks: n_ranks as u32,
            nodes: on_node.len() as u32,
            ppn: on_node.values().copied().max().unwrap_or(0),
        })
    }

    fn cell_state(
        &self,
        model_cell: u32,
        collective: Collective,
        comm: u64,
        layout: Layout,
        native: bool,
    ) -> CellState {
        let entry = &self.handout.model.cells[model_cell as usize];
        let place_of = |name: &str| {
            self.names[collective.index()]
                .iter()
                .position(|other| other == name)
        };
        let known = |name: &str| place_of(name).map(|place| place as u16);
        let possible = |variant: u16| {
            variant == DEFAULT
                || (native
                    && self.variants[collective.index()][usize::from(variant)].possible(
                        layout.n_ranks,
                        layout.nodes,
                        entry.cell.bytes.last(),
                    ))
        };
        let forced = self
            .handout
            .forced
            .iter()
            .find(|forced| forced.collective == collective);
        let mut weights: Vec<(u16, f64)> = match self.handout.mode {
            Mode::Record => vec![(DEFAULT, 1.0)],
            _ => entry
                .variants
                .iter()
                .filter_map(|share| known(&share.name).map(|variant| (variant, share.probability)))
                .filter(|(variant, _)| possible(*variant))
                .collect(),
        };
        let learned = if self.handout.mode == Mode::Record {
            DEFAULT
        } else {
            known(&entry.best).unwrap_or(DEFAULT)
        };
        let mut best = forced
            .and_then(|forced| known(&forced.variant))
            .unwrap_or(learned);
        let sampling = forced.is_none() && self.handout.mode.records();
        // One draw per cell and run: the same on every communicator, hence without its number.
        let once =
            self.handout.reproducible == Reproducible::Run && self.handout.mode == Mode::Explore;
        let key = key(
            self.handout.seed,
            if once { 0 } else { comm },
            model_cell.into(),
        );
        let mut chooser = Chooser::new(&weights);
        if once && sampling {
            best = chooser.draw(word(key, 0)).unwrap_or(DEFAULT);
            weights = vec![(best, 1.0)];
            chooser = Chooser::new(&weights);
        }
        CellState {
            model_cell,
            key,
            calls: 0,
            next_sample: if sampling { 0 } else { u64::MAX },
            samples: 0,
            gap_least: 1,
            best,
            chooser,
            observed: vec![Ticks::default(); weights.len()],
            weights,
            first_ticks: 0,
            // A review comes after 64 samples at the latest, and more only after failed calls.
            fresh: Vec::with_capacity(64),
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

    /// Broadcasts as bytes. Open MPI cuts messages and chooses fallbacks by its own rank's count and
    /// type size, which need not be alike (open-mpi/ompi issue 199); the number of bytes is.
    ///
    /// # Safety
    /// The arguments are those of a valid MPI_Bcast of at most 2^31-1 bytes on a communicator with
    /// the members of `comm`.
    pub unsafe fn bcast_as_bytes(
        &self,
        buffer: *mut c_void,
        count: c_int,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        if let Some((size, _)) = self.types.get(datatype) {
            let bytes = count.wrapping_mul(*size as c_int);
            // SAFETY: a predefined type of this table has no holes, so these are the same bytes.
            return unsafe { (self.pmpi.bcast)(buffer, bytes, self.handles.byte, root, comm) };
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { self.bcast_packed(buffer, count, datatype, root, comm) }
    }

    #[cold]
    unsafe fn bcast_packed(
        &self,
        buffer: *mut c_void,
        count: c_int,
        datatype: Datatype,
        root: c_int,
        comm: Comm,
    ) -> c_int {
        thread_local!(static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) });
        let (mut size, mut own, mut position) = (0, 0, 0);
        // SAFETY: type and communicator are valid by the caller's promise.
        unsafe {
            (self.pmpi.type_size)(datatype, &mut size);
            (self.pmpi.comm_rank)(comm, &mut own);
        }
        let bytes = count.wrapping_mul(size);
        SCRATCH.with_borrow_mut(|scratch| {
            // Never empty: an empty vector's pointer is 1, which is Open MPI's MPI_IN_PLACE.
            scratch.resize(scratch.len().max(bytes as usize).max(1), 0);
            let packed = scratch.as_mut_ptr().cast::<c_void>();
            // SAFETY: the scratch holds `bytes` bytes, which is what `count` elements pack into.
            unsafe {
                if own == root {
                    let code = (self.pmpi.pack)(
                        buffer,
                        count,
                        datatype,
                        packed,
                        bytes,
                        &mut position,
                        comm,
                    );
                    if code != abi::SUCCESS {
                        return code;
                    }
                }
                let code = (self.pmpi.bcast)(packed, bytes, self.handles.byte, root, comm);
                if code != abi::SUCCESS || own == root {
                    return code;
                }
                (self.pmpi.unpack)(packed, bytes, &mut position, buffer, count, datatype, comm)
            }
        })
    }
}

fn cell_of(call: &Call, place: usize) -> u32 {
    call.state.cells[call.collective.index()][place].model_cell
}

/// A table of predefined handles, filled once.
pub struct HandleTable<T> {
    rows: Box<[Option<(u64, T)>; TABLE]>,
}

impl<T> HandleTable<T> {
    pub fn new(entries: impl IntoIterator<Item = (Handle, T)>) -> HandleTable<T> {
        let mut rows = Box::new([const { None }; TABLE]);
        for (handle, value) in entries {
            let handle = bits(handle);
            let mut at = row_of(handle);
            // The lists of predefined handles fill less than half of the table.
            while rows[at].as_ref().is_some_and(|(other, _)| *other != handle) {
                at = (at + 1) % TABLE;
            }
            rows[at].get_or_insert((handle, value));
        }
        HandleTable { rows }
    }

    #[inline(always)]
    pub fn get(&self, handle: Handle) -> Option<&T> {
        let handle = bits(handle);
        let mut at = row_of(handle) % TABLE;
        while let Some((other, value)) = &self.rows[at] {
            if *other == handle {
                return Some(value);
            }
            at = (at + 1) % TABLE;
        }
        None
    }
}

const TABLE: usize = 128;

#[inline(always)]
fn row_of(handle: u64) -> usize {
    (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize
}

impl Tuner {
    /// Closes the trace and frees what hangs on communicators. Only from MPI_Finalize, disarmed.
    pub fn finish(&'static self) {
        self.registry.wind_down();
        if let Some(recorder) = &self.recorder {
            recorder.finish();
        }
    }
}
