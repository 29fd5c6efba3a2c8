//! What holds for every decision of a job: handed out by rank 0, with the library's variants beside it.

use std::time::Duration;

use bincode::{Decode, Encode};

use crate::account::{Cause, Causes};
use crate::algorithm::pattern::Pattern;
use crate::bound::{self, DRAWN_RARELY, Extent};
use crate::catalogue::{self, Crossing, Facts, Need, OnNodes, Own, Steering, Unmet, Variant};
use crate::classify::Layout;
use crate::collective::{Collective, MessageSize};
use crate::levers::learned::LearnedLever;
use crate::library::Library;
use crate::node::between::LANES_MOST;
use crate::node::layout;
use crate::preset::{self, Preset};
use crate::record::Probability;
use crate::request::{Forced, Mode};
use crate::settings::{LearnerKind, Reproducible, Settings, SummaryTo};
use crate::space::{Cell, Range};
use crate::variant::{Family, VariantName};

use super::DEFAULT;
use super::agreed::{Agreed, Membership, Origin};
use super::call::{SharedCall, SharedDetails};
use super::table::CellTable;

/// The job's terms, the same on all its ranks.
#[derive(Clone, Debug, Encode, Decode)]
pub struct JobTerms {
    pub seed: u64,
    pub mode: Mode,
    pub forced: Vec<Forced>,
    /// Algorithms that `colltune run` set for Intel MPI before the job (`I_MPI_ADJUST_*`).
    pub presets: Vec<Preset>,
    pub cells: CellTable,
    /// What the site decided, but for what the simulator found: that is in the model. Its families are those to
    /// which this job's draws are confined; `None`: to those of the model.
    pub settings: Settings,
    pub tables_from: TablesFrom,
    /// What is known of the levers that the job's program asks about.
    pub levers: Vec<LearnedLever>,
}

/// Where a job's tables come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum TablesFrom {
    /// A database, or nowhere.
    Database,
    /// A site folder, which jobs only read, and whose switch they obey.
    Site,
}

impl JobTerms {
    /// Whether what the job draws and runs was learned as the paper has it, and is taken as it stands.
    fn is_as_published(&self) -> bool {
        self.cells.learner == LearnerKind::OmpiCollTune
    }

    /// Whether variants of a family may be drawn if the model has them.
    pub fn draws(&self, family: Family) -> bool {
        let families = self.settings.families.as_ref();
        families.is_none_or(|families| families.contains(&family))
    }

    /// The mean distance of the pairs in which choices are watched; `None` where nothing is.
    pub(super) fn watch_gap(&self) -> Option<u64> {
        let may_change = self.settings.reproducible.leaves_choices_free();
        let is_on = self.mode.exploits() && may_change && !self.is_as_published();
        let gap = 1_000_000u64.checked_div(self.settings.watch_ppm())?;
        is_on.then_some(gap)
    }

    /// How many calls there are for each that runs the library's own choice in an epoch: half as many as for each that is
    /// watched, times what the dearest of the replaced choices is expected to take. `None` where nothing is chosen,
    /// or no report is asked for.
    fn epochs_gap(&self) -> Option<u64> {
        let is_told =
            self.tables_from == TablesFrom::Database || self.settings.summary != SummaryTo::Nobody;
        let gap = self.watch_gap().filter(|_| is_told)? / 2;
        Some(gap.max(1).saturating_mul(self.cells.dearest()?))
    }

    /// Whether what sampled calls say is kept for the next training: in `exploit` where there are choices to watch.
    pub fn records(&self) -> bool {
        self.tables_from == TablesFrom::Database
            && (self.mode.records() || self.watch_gap().is_some() && self.cells.chooses())
    }

    /// How often rank 0 of a running job looks whether it was switched off; `None`: never. Ranks hear of it in reviews, which
    /// there are where choices are watched.
    pub fn polls_switch_every(&self) -> Option<Duration> {
        let every = self.settings.switch_poll_interval;
        let polls = self.tables_from == TablesFrom::Site && self.watch_gap().is_some();
        (polls && !every.is_zero()).then_some(every)
    }
}

/// The terms, and every collective's variants in this library, `default` first.
#[derive(Clone, Debug)]
pub struct Rules {
    pub terms: JobTerms,
    pub variants: [Vec<Variant>; Collective::ALL.len()],
    pub names: [Vec<String>; Collective::ALL.len()],
    /// By collective, the variant that every call runs to which it applies.
    forced: [Option<u16>; Collective::ALL.len()],
    /// Whether every call is reported one by one, from a communicator's first on.
    pub telling: Telling,
    /// Whether the library's own algorithms are drawn before the job, by whoever starts it.
    pub(super) draws_before_job: bool,
    /// See [`Rules::epochs_gap`]. Reckoned once: calls come under the program's floating-point environment.
    epochs_gap: Option<u64>,
}

/// Which calls the edge wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// Those that run or time something beside the library's own choice.
    Needed,
    /// All, with a number of the communicator from its first call on. What is drawn is the same.
    All,
}

/// A communicator is set up when its calls so far have moved so many bytes, however few they are: by then a set-up,
/// two short reductions and what the first draws ask for, is no more than what one of them takes.
pub(super) const SETUP_BYTES: u64 = 4 << 20;
/// As often a call counts whose size is a block's: all ranks' blocks are moved, and their number is unknown before
/// the set-up. So it is blocks of 512 KiB that are enough.
const SETUP_BLOCKS: u64 = 8;
/// Where nothing is explored so many times as many calls have to come on a communicator that the program made: many live
/// for a few alone, and a set-up takes as long as two of them.
const OF_PROGRAM: u64 = 8;

impl Rules {
    pub fn new(terms: JobTerms, library: Library, telling: Telling) -> Rules {
        let variants = Collective::ALL.map(|collective| catalogue::variants(library, collective));
        let names = variants.each_ref().map(|all| {
            let names = all.iter().map(|variant| variant.name.to_string());
            names.collect::<Vec<_>>()
        });
        let mut all = variants.iter().flatten();
        let draws_before_job = all.any(|one| matches!(one.steering, Steering::Intel { .. }));
        Rules {
            draws_before_job,
            epochs_gap: terms.epochs_gap().filter(|_| !draws_before_job),
            forced: forced(&terms, &names),
            terms,
            variants,
            names,
            telling,
        }
    }

    /// The same rules under changed terms.
    #[cfg(test)]
    pub(super) fn with(mut self, telling: Telling) -> Rules {
        self.telling = telling;
        self.forced = forced(&self.terms, &self.names);
        self.epochs_gap = self.terms.epochs_gap().filter(|_| !self.draws_before_job);
        self
    }

    /// Whether any call of the job can run an algorithm of our own.
    pub fn may_run_own(&self) -> bool {
        const OWN: [Family; 2] = [Family::P2p, Family::Node];
        let is_own = |family: Family| OWN.contains(&family);
        let own = |collective, variant| is_own(self.variant(collective, variant).name.family);
        let forced = |forced: &Forced| {
            let name = forced.variant.parse::<VariantName>();
            name.is_ok_and(|name| is_own(name.family))
        };
        let cells = &self.terms.cells;
        self.terms.forced.iter().any(forced)
            || match self.terms.mode {
                Mode::Record | Mode::Off => false,
                Mode::Exploit | Mode::Tables => cells.any_best(own),
                Mode::Explore => {
                    OWN.iter().any(|family| self.terms.draws(*family))
                        && (cells.any_drawn(own) || cells.any_best(own))
                }
            }
    }

    /// Whether ranks may send messages of ours: for algorithms of our own, or to agree on levers. A program says that it
    /// has any when it asks for the first time, too late to make a communicator; so jobs that learn are ready for it.
    pub fn may_send(&self) -> bool {
        self.keeps_fixed_order()
            || self.may_run_own()
            || self.terms.mode.records()
            || !self.terms.levers.is_empty()
    }

    pub fn variant(&self, collective: Collective, variant: u16) -> &Variant {
        &self.variants[collective.index()][usize::from(variant)]
    }

    pub fn is_forced(&self, collective: Collective) -> bool {
        self.forced[collective.index()].is_some()
    }

    pub(super) fn forced(&self, collective: Collective) -> Option<u16> {
        let forced = self.forced[collective.index()]?;
        Some(self.during_run(collective, forced))
    }

    /// Whether a communicator is set up at the last of so many calls, which moved so many bytes; never where calls are
    /// counted alone.
    pub(super) fn setup_is_due(&self, origin: Origin, calls: u64, bytes: u64) -> bool {
        let is_late = calls >= self.setup_after(origin) || bytes >= SETUP_BYTES;
        self.terms.mode != Mode::Off && is_late
    }

    /// The call at which it is set up, unless much was moved before.
    pub(super) fn setup_after(&self, origin: Origin) -> u64 {
        let after = u64::from(self.terms.settings.setup_after);
        match (self.terms.settings.reproducible, self.terms.mode, origin) {
            // One choice from the first call on, not one before the set-up and another behind it.
            (Reproducible::Run, ..) => 1,
            (_, Mode::Exploit | Mode::Tables, Origin::Program) if self.puts_off() => {
                after.saturating_mul(OF_PROGRAM)
            }
            _ => after,
        }
    }

    /// Whether a set-up may be put off: where the user asked for nothing that needs one in any case.
    pub(super) fn puts_off(&self) -> bool {
        self.terms.forced.is_empty()
            && self.terms.settings.reproducible.leaves_choices_free()
            && self.telling == Telling::Needed
    }

    /// How much of a call counts towards the bytes at which a communicator is set up. Of an allgatherv the size is the
    /// mean of counts that each rank has from its own caller, so no more of it counts than its cells go by.
    pub(super) fn setup_bytes(call: SharedCall) -> u64 {
        let times = match (call.collective, call.collective.size()) {
            (Collective::Allgatherv, _) => 1,
            (_, MessageSize::Block) => SETUP_BLOCKS,
            (_, MessageSize::Message | MessageSize::Nothing) => 1,
        };
        call.bytes.saturating_mul(times).min(SETUP_BYTES)
    }

    /// Whether each recorded call draws as the paper has it: without warm-up, omitted calls and dropped variants.
    pub(super) fn draws_as_published(&self) -> bool {
        self.terms.is_as_published() && self.terms.mode == Mode::Explore
    }

    /// The probability of what is drawn in the job; before the job other draws decide.
    pub(super) fn known_here(&self, drawn: Option<Probability>) -> Option<Probability> {
        drawn.filter(|_| !self.draws_before_job)
    }

    /// Calls of a cell that are sampled before sampling thins out.
    pub(super) fn samples_per_cell(&self) -> u32 {
        match self.draws_as_published() {
            true => u32::MAX,
            false => self.terms.settings.samples_per_cell,
        }
    }

    /// Calls of a communicator behind which sampling ends. Ranks share no number of those on others.
    pub(super) fn samples_max(&self) -> u64 {
        match self.draws_as_published() {
            true => self.terms.settings.records_per_run,
            false => u64::MAX,
        }
    }

    /// Whether the sampled calls of a cell draw anew, or one choice holds for the whole run.
    pub(super) fn draws_once(&self) -> bool {
        self.terms.settings.reproducible == Reproducible::Run && self.terms.mode == Mode::Explore
    }

    /// The mean distance of the pairs in which a communicator's choices are watched; `None` where they are not.
    pub(super) fn watch_gap(&self, membership: Membership) -> Option<u64> {
        let gap = self.terms.watch_gap()?;
        (membership.layout.n_ranks > 1).then_some(gap)
    }

    /// How many calls of a communicator there are for each that runs the library's own choice in an epoch, to measure what
    /// the choices gain; `None` where there are none.
    pub(super) fn epochs_gap(&self, membership: Membership) -> Option<u64> {
        self.epochs_gap.filter(|_| membership.layout.n_ranks > 1)
    }

    /// Runs nothing but `default` from now on: a program of the job is not to be tuned. All ranks do so, before
    /// anything is decided.
    pub fn turn_off(&mut self) {
        self.terms.mode = Mode::Off;
        self.terms.forced.clear();
        self.forced = Default::default();
        self.epochs_gap = None;
    }

    /// What the cell's sampled calls draw from on a communicator: variants and their weights. Adds why others do not.
    pub(super) fn weights(
        &self,
        place: u32,
        membership: Membership,
        agreed: Agreed,
        left_out: &mut Causes,
    ) -> Vec<(u16, f64)> {
        if self.terms.mode == Mode::Record {
            return vec![(DEFAULT, 1.0)];
        }
        let cell = self.terms.cells.cell(place);
        let collective = cell.collective;
        let largest = self.usual(collective, cell.bytes.last(), membership);
        let absurd = self.absurd(&cell, membership);
        let as_published = self.terms.is_as_published();
        let shares = self.terms.cells.shares(place);
        let shares = shares.filter_map(|(variant, probability)| {
            let is_free = variant == DEFAULT || as_published;
            let run = self.during_run(collective, variant);
            let cause = if !self.is_wanted(collective, variant) {
                Some(Cause::Families)
            } else if !is_free && absurd[usize::from(variant)] {
                Some(Cause::Bound)
            } else if run == DEFAULT {
                None
            } else {
                let known = self.variant(collective, run);
                let unmet = || known.never_met(&largest).map(lacks(Cause::Shape));
                agreed.rules_out(known).or_else(unmet)
            };
            if let Some(cause) = cause {
                if probability > 0.0 {
                    left_out.add(cause);
                }
                return None;
            }
            let is_known = is_free || !self.is_out_of_reach(place, variant, membership);
            let rarely = if is_known { 1.0 } else { DRAWN_RARELY };
            Some((run, rarely * probability))
        });
        shares.fold(Vec::new(), merged)
    }

    /// Whether the operands of a collective have to be combined in one order, whatever runs. Then `default` stands for
    /// what does so and needs nothing.
    pub fn has_fixed_order(&self, collective: Collective) -> bool {
        self.keeps_fixed_order() && collective.is_reduction()
    }

    /// The same of all reductions; a job that is off runs the library's own choices.
    pub fn keeps_fixed_order(&self) -> bool {
        self.terms.mode != Mode::Off && self.terms.settings.reproducible == Reproducible::Fixed
    }

    /// A call as most programs make it on a communicator.
    fn usual(&self, collective: Collective, bytes: u64, membership: Membership) -> Facts {
        let Layout { n_ranks, nodes, .. } = membership.layout;
        Facts {
            ranks_by_node: membership.ranks_by_node,
            even_nodes: membership.even_nodes,
            fixed_order: self.has_fixed_order(collective),
            ..Facts::usual(collective, bytes, n_ranks, nodes)
        }
    }

    /// For each of a collective's variants whether its cost in a cell is known to be absurd on so many ranks. Where
    /// operands have a fixed order few are left, and what they cost beside the others does not matter.
    fn absurd(&self, cell: &Cell, membership: Membership) -> Vec<bool> {
        let variants = &self.variants[cell.collective.index()];
        if self.has_fixed_order(cell.collective) {
            return vec![false; variants.len()];
        }
        bound::absurd(variants, extent(membership), cell.bytes)
    }

    /// Whether the time of a cell's variant on so many ranks is unknown, by where the cell's choice was measured.
    fn is_out_of_reach(&self, place: u32, variant: u16, membership: Membership) -> bool {
        let Cell {
            collective, bytes, ..
        } = self.terms.cells.cell(place);
        let measured_ranks = self.terms.cells.measured_ranks(place);
        let variant = self.variant(collective, variant);
        bound::is_out_of_reach(variant, extent(membership), bytes, measured_ranks)
    }

    /// Whether the size of calls of a collective decides anything in these cells, and is nothing that ranks share anyway.
    pub(super) fn wants_sizes(
        &self,
        collective: Collective,
        cells: &[u32],
        membership: Membership,
    ) -> bool {
        let is_chosen = |&cell: &u32| self.best(cell, membership) != DEFAULT;
        collective.agrees_on_size() && (self.terms.mode.records() || cells.iter().any(is_chosen))
    }

    /// What runs in a cell when nothing is sampled.
    pub(super) fn best(&self, place: u32, membership: Membership) -> u16 {
        self.chosen(place, membership).unwrap_or(DEFAULT)
    }

    /// The same; where the library's own choice runs though there is another, or is all that could, why.
    pub(super) fn chosen(&self, place: u32, membership: Membership) -> Result<u16, Cause> {
        let cell = self.terms.cells.cell(place);
        let collective = cell.collective;
        if let Some(forced) = self.forced(collective) {
            return Ok(forced);
        }
        // As published, calls that are not drawn run the library's choice while there is something to learn.
        if self.terms.mode == Mode::Record || self.draws_as_published() {
            return Ok(DEFAULT);
        }
        let best = self.terms.cells.best(place);
        if best == DEFAULT {
            return match (self.terms.mode.exploits(), self.terms.cells.generation) {
                (false, _) => Ok(DEFAULT),
                (true, 0) => Err(Cause::Unlearned),
                (true, _) => Err(Cause::Kept),
            };
        }
        let largest = self.usual(collective, cell.bytes.last(), membership);
        let is_out_of_order = || {
            let unmet = self.variant(collective, best).unmet(&largest);
            unmet == Some(Unmet::Order)
        };
        if !self.is_wanted(collective, best) {
            return Err(Cause::Families);
        }
        if is_out_of_order() {
            return Err(Cause::Order);
        }
        if !self.terms.is_as_published() {
            if self.absurd(&cell, membership)[usize::from(best)] {
                return Err(Cause::Bound);
            }
            if self.is_out_of_reach(place, best, membership) {
                return Err(Cause::Reach);
            }
        }
        Ok(self.during_run(collective, best))
    }

    /// What the library's own choice is for these sizes: its preset of before the run, or DEFAULT.
    pub(super) fn told(&self, collective: Collective, bytes: Range) -> u16 {
        if self.has_fixed_order(collective) {
            return DEFAULT;
        }
        let told = |one: &&Preset| one.collective == collective && one.bytes.contains(bytes.lo);
        let told = self.terms.presets.iter().find(told);
        let place = told.and_then(|one| self.place_of(collective, &one.variant));
        place.unwrap_or(DEFAULT)
    }

    /// Why a variant does not apply to a call, where that is for what the variant needs of it.
    pub fn unmet(&self, collective: Collective, variant: u16, facts: &Facts) -> Option<Unmet> {
        self.variant(collective, variant).unmet(facts)
    }

    /// Why a variant does not run a call of a communicator. Only what all ranks share decides.
    pub(super) fn refusal(
        &self,
        variant: &Variant,
        details: &SharedDetails,
        facts: &Facts,
        agreed: Agreed,
    ) -> Option<Cause> {
        if !details.exact && self.terms.settings.reproducible == Reproducible::Strict {
            return Some(Cause::Strict);
        }
        // Messages of several blocks have counts of ints, too.
        let total = total_bytes(variant.collective, facts.message_bytes, facts.n_ranks);
        if let Some(cause) = agreed.rules_out(variant) {
            return Some(cause);
        }
        if total > i32::MAX as u64 {
            return Some(Cause::Long);
        }
        if let Some(unmet) = variant.unmet(facts) {
            return Some(lacks(Cause::Needs)(unmet));
        }
        variant.own.as_ref()?;
        if !details.combines || !fits(variant.own, facts) {
            return Some(Cause::Elements);
        }
        let is_told = self.is_told_across(variant, facts.message_bytes);
        is_told.then_some(Cause::Preset)
    }

    /// What a call that runs the library's own choice is recorded as, in a cell with this preset. `None` where it is
    /// unknown what ran, because the preset does not apply to the call.
    pub(super) fn label_of_default(
        &self,
        call: SharedCall,
        told: u16,
        facts: &Facts,
    ) -> Option<u16> {
        if told == DEFAULT {
            return Some(DEFAULT);
        }
        let known = self.variant(call.collective, told);
        (call.bytes <= preset::BYTES_MAX && known.applies(facts)).then_some(told)
    }

    /// Whether the library's own choice between the nodes may be a preset of before the run.
    fn is_told_across(&self, variant: &Variant, bytes: u64) -> bool {
        // What blocks of one length are padded for.
        let across = variant.collective.padded().unwrap_or(variant.collective);
        let told = |own: fn(u64, &Preset) -> bool| {
            let mut presets = self.terms.presets.iter();
            presets.any(|one| one.collective == across && own(bytes, one))
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

    /// What drawing a variant comes to where the library cannot be steered during a run: all its algorithms are then
    /// its own choice, whatever was preset.
    fn during_run(&self, collective: Collective, variant: u16) -> u16 {
        match self.variant(collective, variant).steering {
            Steering::Intel { .. } => DEFAULT,
            _ => variant,
        }
    }

    /// Whether the job may draw a variant if the model has it.
    fn is_wanted(&self, collective: Collective, variant: u16) -> bool {
        let family = self.variant(collective, variant).name.family;
        variant == DEFAULT || self.terms.draws(family)
    }

    fn place_of(&self, collective: Collective, name: &str) -> Option<u16> {
        place(&self.names[collective.index()], name)
    }
}

fn extent(membership: Membership) -> Extent {
    let Layout { n_ranks, nodes, .. } = membership.layout;
    Extent { n_ranks, nodes }
}

fn forced(
    terms: &JobTerms,
    names: &[Vec<String>; Collective::ALL.len()],
) -> [Option<u16>; Collective::ALL.len()] {
    Collective::ALL.map(|collective| {
        let mut all = terms.forced.iter();
        let forced = all.find(|one| one.collective == collective)?;
        place(&names[collective.index()], &forced.variant)
    })
}

fn place(names: &[String], name: &str) -> Option<u16> {
    let place = names.iter().position(|other| other == name)?;
    u16::try_from(place).ok()
}

/// Adds a share to those of the same variant.
fn merged(mut shares: Vec<(u16, f64)>, (variant, share): (u16, f64)) -> Vec<(u16, f64)> {
    match shares.iter_mut().find(|(other, _)| *other == variant) {
        Some((_, sum)) => *sum += share,
        None => shares.push((variant, share)),
    }
    shares
}

/// What calls lack, if it is not the order of operands.
fn lacks(needs: Cause) -> impl Fn(Unmet) -> Cause {
    move |unmet| match unmet {
        Unmet::Order => Cause::Order,
        Unmet::Call(_) | Unmet::Across(_) => needs,
    }
}

/// Whether an unmet need is worth a word to the user who forced a variant: a call without bytes or other ranks is
/// not.
pub fn is_worth_a_word(unmet: Unmet) -> bool {
    ![Need::SomeBytes, Need::TwoRanks]
        .map(Unmet::Call)
        .contains(&unmet)
}

/// The bytes of the whole message: every rank counts them alike.
pub fn total_bytes(collective: Collective, bytes: u64, n_ranks: u32) -> u64 {
    // The message of a reduction is the whole vector, of however many blocks.
    let blocks = match Pattern::of(collective) {
        Some(pattern) if !pattern.is_reduction() => pattern.blocks(n_ranks as usize),
        _ => 1,
    };
    // Of uneven blocks the size is the mean, cut to whole bytes.
    let cut = u64::from(collective == Collective::Allgatherv);
    bytes.saturating_add(cut).saturating_mul(blocks as u64)
}

/// Whether what runs a variant can take the call: shared memory is cut into cells that hold whole
/// elements, one of each share, and a part of the block for each rank.
fn fits(own: Option<Own>, facts: &Facts) -> bool {
    let Some(Own::Node(on_nodes)) = own else {
        return true;
    };
    let copies = match on_nodes {
        OnNodes::Lanes(_) => LANES_MOST as u64,
        _ => 1,
    };
    let element = match facts.count {
        Some(count) if count > 0 => facts.message_bytes / count,
        _ => 1,
    };
    layout::fits(element, copies) && layout::fits(1, u64::from(facts.n_ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    fn rules() -> Rules {
        let library: Library = "openmpi-4.1.4".parse().expect("it is known");
        let settings = Settings::default();
        let model = Model::initial_within(&settings, library, "none", 2, 4);
        let terms = JobTerms {
            seed: 0,
            mode: Mode::Explore,
            forced: Vec::new(),
            presets: Vec::new(),
            cells: CellTable::new(&model, library),
            settings,
            tables_from: TablesFrom::Database,
            levers: Vec::new(),
        };
        Rules::new(terms, library, Telling::Needed)
    }

    #[test]
    fn rank_0_looks_at_the_switch_where_choices_are_watched() {
        let polls = |change: &dyn Fn(&mut JobTerms)| {
            let mut terms = rules().terms;
            (terms.mode, terms.tables_from) = (Mode::Exploit, TablesFrom::Site);
            change(&mut terms);
            terms.polls_switch_every().is_some()
        };
        assert!(polls(&|_| {}));
        assert!(polls(
            &|terms| terms.settings.reproducible = Reproducible::Fixed
        ));
        assert!(!polls(&|terms| terms.tables_from = TablesFrom::Database));
        assert!(!polls(
            &|terms| terms.settings.reproducible = Reproducible::Run
        ));
        assert!(!polls(
            &|terms| terms.settings.reproducible = Reproducible::Strict
        ));
        assert!(!polls(&|terms| terms.settings.watch = 0.0));
        assert!(!polls(
            &|terms| terms.settings.switch_poll_interval = Duration::ZERO
        ));
    }

    const N_RANKS: u32 = 4;

    /// The size of a call whose blocks have 2^31 bytes together; `None` where calls have no size.
    fn of_2_gib(collective: Collective) -> Option<u64> {
        const ALL: u64 = 1 << 31;
        let block = ALL / u64::from(N_RANKS);
        match (collective, collective.size()) {
            // The mean may have been cut by nearly a byte.
            (Collective::Allgatherv, _) => Some(block - 1),
            (_, MessageSize::Block) => Some(block),
            (_, MessageSize::Message) => Some(ALL),
            (_, MessageSize::Nothing) => None,
        }
    }

    #[test]
    fn from_2_gib_in_all_blocks_on_nothing_runs_but_the_default() {
        let rules = rules();
        let agreed = Agreed::of([1, 0, 0, 0, 0]);
        for collective in Collective::ALL {
            let Some(least) = of_2_gib(collective) else {
                continue;
            };
            let mut judged = [0; 2];
            for nodes in [1, 2] {
                let facts = |bytes| Facts::usual(collective, bytes, N_RANKS, nodes);
                let applies = |variant: &Variant, bytes| {
                    let facts = facts(bytes);
                    let details = SharedDetails {
                        count: facts.count,
                        ..SharedDetails::MOVES
                    };
                    rules.refusal(variant, &details, &facts, agreed).is_none()
                };
                let variants = rules.variants[collective.index()].iter().skip(1);
                for variant in variants.filter(|one| one.applies(&facts(least - 1))) {
                    let named = format!("{collective} {} on {nodes} nodes", variant.name);
                    assert!(applies(variant, least - 1), "{named}");
                    assert!(variant.applies(&facts(least)), "{named}: needs are met");
                    for bytes in [least, 1 << 62, u64::MAX] {
                        assert!(!applies(variant, bytes), "{named}: {bytes} bytes");
                    }
                    judged[usize::from(variant.own.is_some())] += 1;
                }
            }
            // Of some the libraries have no choice.
            let [native, own] = judged;
            let has_natives = native > 0 || collective.has_own_counts();
            assert!(own > 0 && has_natives, "{collective} {judged:?}");
        }
    }

    /// So many nodes of two ranks, and the cell of a broadcast of 16 KiB there, in rules for many nodes.
    fn bcast_on(rules: &Rules, nodes: u32) -> (u32, Membership) {
        let mut cells = rules.terms.cells.cells();
        let holds = |cell: &Cell| cell.contains(Collective::Bcast, 16 << 10, nodes.into(), 2);
        let place = cells
            .position(|cell| holds(&cell))
            .expect("the space has it");
        let ranks = (0..2 * nodes).map(|rank| rank / 2);
        (place as u32, Membership::of(ranks))
    }

    fn of_many_nodes(best: &str) -> Rules {
        measured_on(best, None)
    }

    fn measured_on(best: &str, measured_ranks: Option<u32>) -> Rules {
        let of_few = rules();
        let library: Library = "openmpi-4.1.4".parse().expect("it is known");
        let settings = Settings::default();
        let mut model = Model::initial_within(&settings, library, "none", 10_000, 2);
        for entry in &mut model.cells {
            if entry.cell.collective == Collective::Bcast {
                entry.best = best.to_owned();
                entry.measured_ranks = measured_ranks;
            }
        }
        let terms = JobTerms {
            cells: CellTable::new(&model, library),
            ..of_few.terms
        };
        Rules::new(terms, library, Telling::Needed)
    }

    const CHAIN: &str = "node:shm+chain:segsize=4KiB";

    #[test]
    fn a_fresh_job_on_a_thousand_nodes_and_more_draws_no_chain_of_their_leaders() {
        let rules = of_many_nodes("default");
        let agreed = Agreed::of([1, 0, 0, 0, 0]);
        let drawn = |nodes| {
            let (place, membership) = bcast_on(&rules, nodes);
            let drawn = rules.weights(place, membership, agreed, &mut Causes::default());
            let name = |(variant, _): &(u16, f64)| {
                let known = rules.variant(Collective::Bcast, *variant);
                known.name.to_string()
            };
            drawn.iter().map(name).collect::<Vec<_>>()
        };
        for nodes in [1000, 4096, 10_000] {
            let drawn = drawn(nodes);
            assert!(
                !drawn.iter().any(|name| name == CHAIN),
                "{nodes}: {drawn:?}"
            );
            assert!(
                drawn.iter().any(|name| name == "node:shm+binomial"),
                "{drawn:?}"
            );
        }
        assert!(
            drawn(8).iter().any(|name| name == CHAIN),
            "few nodes try it"
        );
    }

    /// What no cost is known of is drawn on any number of ranks, and far more rarely on many times those of its cell.
    #[test]
    fn what_nobody_knows_the_cost_of_is_drawn_rarely_on_many_times_the_ranks() {
        let (rules, agreed) = (of_many_nodes("default"), Agreed::of([1, 0, 0, 0, 0]));
        let share = |nodes, name: &str| {
            let (place, membership) = bcast_on(&rules, nodes);
            let weights = rules.weights(place, membership, agreed, &mut Causes::default());
            let named = |(variant, _): &&(u16, f64)| {
                rules.variant(Collective::Bcast, *variant).name.to_string() == name
            };
            let found = weights.iter().find(named).expect("it is drawn").1;
            let beside = weights
                .iter()
                .map(|(_, weight)| *weight)
                .fold(0.0, f64::max);
            found / beside
        };
        for nodes in [8, 1024, 2048] {
            assert!(share(nodes, "node:shm+default") > 0.2, "{nodes}");
        }
        assert!(
            share(10_000, "node:shm+binomial") > 0.2,
            "its cost is known"
        );
        let rare = share(10_000, "node:shm+default");
        assert!(rare > 0.0 && rare < 0.1, "{rare}");
    }

    #[test]
    fn what_won_on_a_thousand_nodes_does_not_run_on_ten_thousand() {
        let rules = of_many_nodes(CHAIN);
        let best = |nodes| {
            let (place, membership) = bcast_on(&rules, nodes);
            let best = rules.best(place, membership);
            // Each rank finds it by itself, in whatever order it asks.
            let other = of_many_nodes(CHAIN);
            assert_eq!(best, other.best(place, membership), "{nodes}");
            rules.variant(Collective::Bcast, best).name.to_string()
        };
        for nodes in [4096, 10_000] {
            assert_eq!(best(nodes), "default", "{nodes}");
        }
        for nodes in [2, 8, 64] {
            assert_eq!(best(nodes), CHAIN, "{nodes}");
        }
    }

    #[test]
    fn what_has_no_cost_runs_on_four_times_the_ranks_of_its_measurements_and_no_more() {
        let best = |rules: &Rules, nodes| {
            let (place, membership) = bcast_on(rules, nodes);
            let best = rules.best(place, membership);
            rules.variant(Collective::Bcast, best).name.to_string()
        };
        const UNKNOWN: &str = "node:shm+default";
        // Without a note, it was on as many ranks as the cell has at the least: 1,025 nodes of two.
        let rules = of_many_nodes(UNKNOWN);
        for nodes in [2, 9, 64, 1025, 4100] {
            assert_eq!(best(&rules, nodes), UNKNOWN, "{nodes}");
        }
        for nodes in [4101, 10_000] {
            assert_eq!(best(&rules, nodes), "default", "{nodes}");
        }
        let rules = measured_on(UNKNOWN, Some(4000));
        assert_eq!(best(&rules, 8000), UNKNOWN);
        assert_eq!(best(&rules, 8001), "default");
        // What has a cost is judged by that.
        let rules = of_many_nodes("node:shm+binomial");
        assert_eq!(best(&rules, 10_000), "node:shm+binomial");
    }
}
