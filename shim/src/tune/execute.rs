//! Execute: what was decided is agreed on where that is needed, run and timed.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use colltune_core::account::Cause;
use colltune_core::collective::Collective;
use colltune_core::decide::call::{SharedCall, SharedDetails};
use colltune_core::decide::impasse::Reason;
use colltune_core::decide::rules::is_worth_a_word;
use colltune_core::decide::{Chosen, DEFAULT, Decision, Timing};
use colltune_core::record::{CallClass, Manner, Probability, Record};
use colltune_core::request::Mode;

use super::Tuner;
use crate::abi::{self, Comm};
use crate::account::Span;
use crate::arguments::{Arguments, Reduction, View};
use crate::call_log::Line;
use crate::clock;
use crate::communicator::{Found, Known, State};
use crate::flight::UnderWay;
use crate::floating;
use crate::gap::Sample;
use crate::limits::Reservation;
use crate::node::Repeat;
use crate::own::{self, OwnCall};
use crate::padded;
use crate::private;
use crate::world::World;

/// One call's arguments, and the ways to run it. All collectives share the code behind it, which is long.
pub struct Ways<'a> {
    pub arguments: Arguments,
    /// The next definition's function.
    pub default: &'a dyn Fn() -> c_int,
    /// The library's, on a given communicator.
    pub native: &'a dyn Fn(Comm) -> c_int,
    /// Where it is timed for the account.
    pub span: Option<Span<'a>>,
}

impl Ways<'_> {
    /// What all ranks know of the call.
    #[inline]
    pub(super) fn details<'a>(
        &'a self,
        world: &'a World,
        collective: Collective,
        n_ranks: u32,
    ) -> impl Fn() -> SharedDetails + Copy + 'a {
        move || self.arguments.details(world, collective, n_ranks)
    }
}

/// A sampled call that runs. One that an exception leaves is taken into account at once: the other ranks may be in its
/// review, while this one calls something else next.
struct Sampled<'a>(&'a Tuner, Known);

impl Drop for Sampled<'_> {
    #[cold]
    fn drop(&mut self) {
        let &mut Sampled(tuner, known) = self;
        // SAFETY: the call on this communicator, which has been found, is still the only one.
        let Some(mut found) = (unsafe { tuner.registry.find_still(known) }) else {
            return;
        };
        let state = found.state();
        if let Some(left) = state.decider.under_way() {
            tuner.take_left(state, left);
        }
    }
}

impl Tuner {
    /// Keeps in mind how long this rank's blocks are, where the ranks go by that in later calls.
    #[inline(always)]
    pub fn see_blocks(&self, state: &mut State, collective: Collective, arguments: &Arguments) {
        if state.decider.wants_blocks(collective) {
            let blocks = arguments.own_blocks(self, state.n_ranks);
            state.decider.see_blocks(collective, blocks);
        }
    }

    /// Does what was decided about a call, which has been counted.
    pub fn carry_out(
        &self,
        mut found: Found,
        call: SharedCall,
        decision: &Decision,
        ways: &Ways,
    ) -> c_int {
        let state = found.state();
        let (collective, n_ranks, comm) = (call.collective, state.n_ranks, state.comm);
        let arguments = &ways.arguments;
        let is_refused = || {
            // Where `default` simply runs its answer is enough.
            arguments.is_refused(self, collective, comm, n_ranks)
                || !matches!(decision, Decision::Default)
                    && arguments.has_uncommitted(self, collective, comm)
        };
        if !state.decider.is_aside() && is_refused() {
            return self.run_refused(found, call, decision, ways);
        }
        let (chosen, under_way) = self.agree_on_choice(state, call, *decision, ways);
        self.see_blocks(state, collective, arguments);
        match chosen {
            Some(chosen) => self.run_chosen(found, call, &chosen, (ways, under_way)),
            None => self.run_default(found, call, (ways.default, under_way)),
        }
    }

    /// Agrees with the other ranks where that is needed before it is known what a call runs; `None` where that is
    /// simply `default`. The call is noted before this rank waits in it, for whatever.
    fn agree_on_choice(
        &self,
        state: &mut State,
        call: SharedCall,
        mut decision: Decision,
        ways: &Ways,
    ) -> (Option<Chosen>, Option<UnderWay>) {
        let details = ways.details(self, call.collective, state.n_ranks);
        // Where a call was left that one is under way until it is observed, and this one is not counted yet.
        let is_counted = !matches!(decision, Decision::Unobserved(_));
        let note = |state: &State| self.under_way(state, call, DEFAULT);
        let mut under_way = is_counted.then(|| note(state)).flatten();
        loop {
            decision = match decision {
                Decision::Chosen(chosen) => return (Some(chosen), under_way),
                Decision::Default => return (None, under_way),
                Decision::SetUp => {
                    let begun = clock::ticks();
                    let agreed = self.agree(state);
                    let decision = state.decider.set_up(&self.rules, agreed, call, &details);
                    match state.decider.membership() {
                        Some(_) => self.spending.sets_up(clock::ticks().wrapping_sub(begun)),
                        None => state.decisions = Reservation::default(),
                    }
                    // The communicator has a number now.
                    under_way = note(state);
                    decision
                }
                Decision::Prepare => self.prepare(state, call, &details),
                Decision::Unobserved(left) => {
                    self.take_left(state, left);
                    let decision = state.decider.decide(&self.rules, call, &details);
                    under_way = note(state);
                    decision
                }
                Decision::NextEpoch => self.next_epoch(state, call, &details),
                Decision::Measure(measured) => {
                    // It may be the first.
                    self.see_blocks(state, call.collective, &ways.arguments);
                    self.measure(state, measured, (call, &details))
                }
                Decision::NoMemory => {
                    self.end(&state.decider.impasse(call.collective, Reason::NoMemory))
                }
            };
        }
    }

    /// Begins or ends an epoch with a call that is not counted yet, and decides on the call.
    #[cold]
    #[inline(never)]
    pub fn next_epoch(
        &self,
        state: &mut State,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        let pair = state.decider.next_epoch(self.clock.at_ns(clock::ticks()));
        let account = self.account.as_ref().filter(|_| self.rank == 0);
        if let (Some(account), Some(pair)) = (account, pair) {
            account.pair(pair);
        }
        state.decider.decide(&self.rules, call, details)
    }

    /// A call that runs the library's own choice, and no more.
    fn run_default(
        &self,
        mut found: Found,
        call: SharedCall,
        (default, _under_way): (&dyn Fn() -> c_int, Option<UnderWay>),
    ) -> c_int {
        let state = found.state();
        let known = state.known();
        self.log_call(state, call, None, (DEFAULT, false));
        // As in a call that this rank does not log: what it calls in turn, in the wrapper of a tool behind us or an
        // error handler, is counted on all ranks.
        self.leave();
        let code = default();
        if code != abi::SUCCESS {
            // SAFETY: the call on this communicator, which has been found, is still the only one.
            let found = unsafe { self.registry.find_still(known) };
            if let Some(mut found) = found {
                self.take_back_if_refused(found.state(), call, code);
            }
        }
        code
    }

    /// Makes the cell of a call, and decides.
    #[cold]
    pub(super) fn prepare(
        &self,
        state: &mut State,
        call: SharedCall,
        details: &dyn Fn() -> SharedDetails,
    ) -> Decision {
        let prepare = || state.decider.prepare(&self.rules, call, details);
        let decision = floating::by_default(prepare);
        state.decisions.must_hold(state.decider.bytes());
        decision
    }

    /// A call whose variant is not simply `default`, or that is timed or logged.
    fn run_chosen(
        &self,
        mut found: Found,
        call: SharedCall,
        chosen: &Chosen,
        (ways, under_way): (&Ways, Option<UnderWay>),
    ) -> c_int {
        let state = found.state();
        let known = state.known();
        let collective = call.collective;
        let tell_variant = |variant| {
            if let Some(under_way) = &under_way {
                under_way.runs(collective, self.listed(collective, variant));
            }
        };
        let details = ways.details(self, collective, state.n_ranks);
        let mut chosen = *chosen;
        if chosen.wish != chosen.variant {
            self.warn_forced(state, call, &chosen, details);
            if let Some(cause) = chosen.refused {
                self.registry.left_out.add(cause, Some(collective), 1);
            }
        }
        tell_variant(chosen.variant);
        let mut view = None;
        let mut own = self.own_call(state, call, chosen.variant, &ways.arguments, &mut view);
        // What ranks agree on for this call alone is a part of what it costs, in each call.
        let agrees = own.as_ref().is_some_and(|own| own.class.is_none());
        let mut begun = (chosen.sampled && agrees).then(|| self.clock.at_ns(clock::ticks()));
        if chosen.variant != DEFAULT && !self.ready(state, collective, chosen.variant, own.as_ref())
        {
            chosen = state.decider.fall_back(collective, chosen);
            tell_variant(chosen.variant);
            (own, begun) = (None, None);
            let left_out = &self.registry.left_out;
            left_out.add(Cause::Lacking, Some(collective), 1);
        }
        if let Some(account) = self.account.as_ref().filter(|_| chosen.variant != DEFAULT) {
            account.tuned(call);
            if let Some(span) = &ways.span {
                span.gains(self.gain(state, collective, chosen.place));
            }
        }
        if self.log.is_some() {
            let label = state.decider.label(&self.rules, call, &chosen, details);
            let variant = label.unwrap_or(DEFAULT);
            self.log_call(state, call, Some(chosen.place), (variant, chosen.sampled));
        }
        if !chosen.sampled {
            let code = self.execute(&mut found, call, &chosen, own.as_ref(), ways);
            if code != abi::SUCCESS {
                // SAFETY: as below.
                let found = unsafe { self.registry.find_still(known) };
                if let Some(mut found) = found {
                    self.take_back_if_library_refused(found.state(), call, own.as_ref(), code);
                }
            } else if let Some(repeat) = own
                .as_ref()
                .and_then(|own| Repeat::of(self, own.own, own.view?, chosen.place, chosen.variant))
            {
                found.state().repeat = Some(repeat);
            }
            return code;
        }
        // The short way knows nothing of samples.
        state.repeat = None;
        if let (Some(own), None) = (&own, begun) {
            own::compile(&mut state.families, own);
        }
        let start_ns = begun.unwrap_or_else(|| self.clock.at_ns(clock::ticks()));
        state.decider.begin_sample(collective, chosen, start_ns);
        let sampled = Sampled(self, known);
        let code = self.execute(&mut found, call, &chosen, own.as_ref(), ways);
        std::mem::forget(sampled);
        let end = clock::ticks();
        // What comes now, a review perhaps, is no part of what the sample before waits for.
        self.ends_at(end);
        // SAFETY: the call on this communicator, which has been found, is still the only one.
        let Some(mut found) = (unsafe { self.registry.find_still(known) }) else {
            // The program's error handler has freed it: its samples count no more.
            return code;
        };
        let state = found.state();
        let end_ns = self.clock.at_ns(end);
        if code != abi::SUCCESS
            && self.take_back_if_library_refused(state, call, own.as_ref(), code)
        {
            return code;
        }
        let recorder = self.recorder.as_ref().filter(|_| code == abi::SUCCESS);
        let record = recorder.and_then(|recorder| {
            let label = state.decider.label(&self.rules, call, &chosen, details)?;
            let class = CallClass::of(call, &details());
            let variant = (label, chosen.probability);
            recorder.write(|| self.record(state, (call, class), variant, start_ns..end_ns))
        });
        // Observed even where it failed: all ranks must count the same samples.
        let timing = Timing {
            start_ns,
            end_ns,
            record,
        };
        let is_delayed = self.take(state, collective, &chosen, timing);
        // A review makes ranks wait for each other: what comes behind it is not the variant's.
        // Where several threads call at will, it is unknown which call is this one's next.
        if !is_delayed && !self.thread_multiple {
            self.gap.open(Sample {
                end,
                handle: abi::bits(state.comm),
                comm: state.decider.agreed().id,
                collective,
                place: chosen.place,
                record,
            });
        }
        code
    }

    /// How many times as long as the choice the library's own takes in a cell of the communicator, by the training.
    #[cold]
    fn gain(&self, state: &State, collective: Collective, place: usize) -> f64 {
        let cell = state.decider.model_cell(collective, place);
        cell.map_or(1.0, |cell| self.rules.terms.cells.gain(cell))
    }

    /// Whether the library itself refused a call; of our own algorithms' errors it is not the judge.
    #[cold]
    fn take_back_if_library_refused(
        &self,
        state: &mut State,
        call: SharedCall,
        own: Option<&OwnCall>,
        code: c_int,
    ) -> bool {
        own.is_none() && self.take_back_if_refused(state, call, code)
    }

    /// Sees to it that a variant can be run. Collective where the ranks have to agree; the answer is the same on
    /// all of them.
    #[inline]
    fn ready(
        &self,
        state: &mut State,
        collective: Collective,
        variant: u16,
        own: Option<&OwnCall>,
    ) -> bool {
        let parent = state.parent();
        match own {
            Some(own) => own::ready(self, parent, &mut state.families, own),
            None => self
                .steer
                .ready(self, parent, &mut state.carriers, collective, variant),
        }
    }

    /// Runs an allreduce that is like the communicator's last one; `None` where it has to go the long way.
    ///
    /// # Safety
    /// The arguments are those of an MPI_Allreduce on this communicator.
    #[inline(always)]
    pub unsafe fn repeat_allreduce(
        &self,
        state: &mut State,
        operands: &Reduction,
    ) -> Option<c_int> {
        let repeat = state.repeat.filter(|repeat| repeat.is_like(operands))?;
        let Repeat { place, variant, .. } = repeat;
        state
            .decider
            .repeat(Collective::Allreduce, place, variant)?;
        let call = SharedCall {
            collective: Collective::Allreduce,
            bytes: repeat.bytes as u64,
        };
        let _told = (!self.is_plain).then(|| {
            self.log_call(state, call, Some(place), (variant, false));
            let under_way = self.under_way(state, call, variant);
            let account = self.account.as_ref();
            let span = account.and_then(|account| {
                account.tuned(call);
                account.count(call)
            });
            if let Some(span) = &span {
                span.gains(self.gain(state, call.collective, place));
            }
            (under_way, span)
        });
        let families = state.families.on_nodes();
        // A copy, so that elsewhere they need not lie in memory.
        let operands = *operands;
        // SAFETY: the caller promises the arguments of an allreduce on this communicator; what the library would refuse
        // is not like a call that was right.
        Some(unsafe { repeat.run(self, state.comm, families, &operands) })
    }

    /// The call as our own algorithms take it; `None` for the other families.
    #[inline(always)]
    fn own_call<'a>(
        &self,
        state: &State,
        call: SharedCall,
        variant: u16,
        arguments: &Arguments,
        view: &'a mut Option<View>,
    ) -> Option<OwnCall<'a>> {
        let SharedCall { collective, bytes } = call;
        let own = self.rules.variant(collective, variant).own?;
        let members = state.members();
        let variant = self.listed(collective, variant);
        let block = match padded::is_padded(own, collective) {
            true => padded::longest(bytes, state.decider.longest_block(collective)),
            false => bytes,
        };
        Some(OwnCall {
            own,
            class: arguments.class(self, own, (variant, block), state.layout()),
            view: arguments.view(self, (collective, bytes, block), members, view),
        })
    }

    fn execute(
        &self,
        found: &mut Found,
        call: SharedCall,
        chosen: &Chosen,
        own: Option<&OwnCall>,
        ways: &Ways,
    ) -> c_int {
        let (collective, variant) = (call.collective, chosen.variant);
        if variant == DEFAULT {
            return (ways.default)();
        }
        let state = found.state();
        match own {
            Some(own) => {
                let parent = state.parent();
                let Some(view) = own.view else {
                    let left_out = &self.registry.left_out;
                    left_out.add(Cause::Arguments, Some(collective), 1);
                    let names = &self.rules.names[collective.index()];
                    let variant = names[usize::from(variant)].clone();
                    let reason = Reason::Arguments { variant };
                    let impasse = state.decider.impasse(collective, reason);
                    return self.run_together(parent.comm, ways.default, || impasse);
                };
                // The program's handler runs when nothing is borrowed any more.
                match own::run(self, &mut state.families, own.own, view) {
                    Ok(()) => abi::SUCCESS,
                    Err(code) => private::report(self, parent.comm, code),
                }
            }
            None => {
                let (comm, carriers, native) = (state.comm, &state.carriers, ways.native);
                self.steer
                    .run(self, comm, carriers, collective, variant, native)
            }
        }
    }

    #[cold]
    fn warn_forced(
        &self,
        state: &State,
        call: SharedCall,
        chosen: &Chosen,
        details: impl Fn() -> SharedDetails,
    ) {
        let collective = call.collective;
        if !self.rules.is_forced(collective) || self.rank != 0 {
            return;
        }
        let facts = state.decider.facts(&self.rules, call, &details());
        let unmet = self.rules.unmet(collective, chosen.wish, &facts);
        let Some(unmet) = unmet.filter(|&unmet| is_worth_a_word(unmet)) else {
            return;
        };
        if !self.warned[collective.index()].swap(true, Ordering::Relaxed) {
            let name = &self.rules.names[collective.index()][usize::from(chosen.wish)];
            crate::warn::say(&format!(
                "{collective}={name} is forced, but needs {unmet}: such calls run default"
            ));
        }
    }

    fn record(
        &self,
        state: &State,
        (call, class): (SharedCall, CallClass),
        (variant, probability): (u16, Option<Probability>),
        time_ns: Range<u64>,
    ) -> Record {
        let layout = state.layout();
        Record {
            comm: state.decider.agreed().id,
            call: state.decider.calls() - 1,
            message_bytes: call.bytes,
            start_ns: time_ns.start,
            duration_ns: time_ns.end.saturating_sub(time_ns.start),
            shift_ns: None,
            after_ns: None,
            agreed: None,
            nodes: layout.nodes,
            ppn: layout.ppn,
            n_ranks: layout.n_ranks,
            variant: self.listed(call.collective, variant),
            collective: call.collective,
            drawn: self.rules.terms.mode != Mode::Record,
            probability,
            manner: Manner::Blocking,
            class,
        }
    }

    fn log_call(
        &self,
        state: &State,
        call: SharedCall,
        place: Option<usize>,
        (variant, sampled): (u16, bool),
    ) {
        let Some(log) = &self.log else { return };
        let (collective, layout) = (call.collective, state.layout());
        let id = state.decider.agreed().id;
        log.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(&Line {
                comm: (id > 0).then_some(id),
                index: state.decider.calls() - 1,
                collective: collective.name(),
                bytes: call.bytes,
                nodes: layout.nodes,
                ppn: layout.ppn,
                cell: place.and_then(|place| state.decider.model_cell(collective, place)),
                variant: &self.rules.names[collective.index()][usize::from(variant)],
                sampled,
            });
    }
}
