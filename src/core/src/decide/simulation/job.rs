//! A job: its agents, run in an order of their own making, and what became of it.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::agent::{Agent, Progress};
use super::dice;
use super::fabric::{Fabric, Operation};
use super::faults::{Fate, Faults};
use super::script::{Extent, Script};
use super::surroundings::{End, Mistake, Surroundings, Tally};
use crate::collective::{Collective, MessageSize};
use crate::decide::hopeless::KnownHopeless;
use crate::decide::rules::{JobTerms, Rules, TablesFrom, Telling};
use crate::decide::table::CellTable;
use crate::library::Library;
use crate::model::Model;
use crate::request::{Forced, Mode};
use crate::settings::{LearnerKind, Reproducible, Settings, SummaryTo};
use crate::space::{Block, Space};
use crate::variant::Family;

/// A job that is being put together.
#[derive(Clone)]
pub struct Builder {
    n_ranks: u32,
    threads: u32,
    seed: u64,
    faults: Faults,
    mistake: Option<Mistake>,
    reproducible: Option<Reproducible>,
    tables_from: Option<TablesFrom>,
}

/// What became of a job.
#[must_use]
pub struct Report {
    pub outcome: Outcome,
    pub tally: Tally,
    pub seed: u64,
    described: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All ranks came to the end of the program.
    Finished,
    /// It ended before.
    Ended(End),
    /// Ranks wait for ever: in which communicators, how many each, and in what.
    Deadlock(Vec<(usize, u32, Operation)>),
}

/// In which order agents run.
#[derive(Clone, Copy, Debug)]
enum Order {
    Random,
    /// Whoever came last goes on as far as it can.
    Ahead,
    /// One rank in so many runs only when no other can.
    Late(u32),
}

pub fn job(n_ranks: u32) -> Builder {
    Builder {
        n_ranks,
        threads: 1,
        seed: 0,
        faults: Faults::default(),
        mistake: None,
        reproducible: None,
        tables_from: None,
    }
}

impl Builder {
    /// A program, and with it the job's settings, the order of its ranks and which of them are struck.
    pub fn programs(self, seed: u64) -> Builder {
        Builder { seed, ..self }
    }

    /// Threads of each rank, with communicators of their own.
    pub fn threads(self, threads: u32) -> Builder {
        Builder { threads, ..self }
    }

    pub fn faults(self, faults: Faults) -> Builder {
        Builder { faults, ..self }
    }

    pub fn mistake(self, mistake: Mistake) -> Builder {
        Builder {
            mistake: Some(mistake),
            ..self
        }
    }

    pub fn reproducible(self, reproducible: Reproducible) -> Builder {
        Builder {
            reproducible: Some(reproducible),
            ..self
        }
    }

    /// A job on a site folder, which is switched off in its course.
    pub fn on_a_site(self) -> Builder {
        Builder {
            tables_from: Some(TablesFrom::Site),
            ..self
        }
    }

    /// Runs so many calls of single ranks.
    pub fn run(self, calls: u64) -> Report {
        let Builder {
            n_ranks,
            threads,
            seed,
            faults,
            ..
        } = self;
        let extent = Extent {
            n_ranks,
            threads,
            calls,
        };
        let script = Script::random(seed, extent);
        let order = match dice(seed, 1, 0) % 4 {
            0 => Order::Ahead,
            1 => Order::Late(2 + (dice(seed, 1, 1) % 7) as u32),
            _ => Order::Random,
        };
        let rules = self.rules();
        let described = format!(
            "{n_ranks} ranks of {threads} threads, {order:?}, {:?}, {:?}, set up at {}, {faults:?}",
            rules.terms.mode, rules.terms.settings.reproducible, rules.terms.settings.setup_after
        );
        let mut agents = agents(&script, n_ranks, threads);
        let members = script.comms.iter().map(|comm| comm.members.len() as u32);
        let mut fabric = Fabric::new(members);
        let is_on_site = rules.terms.tables_from == TablesFrom::Site;
        let off_from = dice(seed, 3, 0) % script.acts.len().max(1) as u64;
        let mut job = Surroundings {
            rules,
            script,
            fate: Fate { seed, faults },
            mistake: self.mistake,
            ppn: 1 + (dice(seed, 2, 0) % u64::from(n_ranks)) as u32,
            numbered: vec![0; n_ranks as usize],
            tally: Tally::default(),
            ran: HashMap::new(),
            heard: HashMap::new(),
            forsaken: HashSet::new(),
            without_own: HashSet::new(),
            off_from: is_on_site.then_some(off_from as u32),
            knows_off: vec![false; n_ranks as usize],
            hopeless: (0..n_ranks).map(|_| KnownHopeless::default()).collect(),
        };
        let outcome = go(&mut agents, &mut job, &mut fabric, order);
        Report {
            outcome,
            tally: job.tally,
            seed,
            described,
        }
    }

    fn rules(&self) -> Rules {
        let of = |what: u64, bound: u64| dice(self.seed, 4, what) % bound;
        let mut rules = basic_rules()[of(0, 2) as usize].clone();
        let terms = &mut rules.terms;
        terms.seed = self.seed;
        terms.mode = match of(1, 8) {
            0 => Mode::Record,
            1 => Mode::Exploit,
            _ => Mode::Explore,
        };
        let reproducible = match of(2, 6) {
            0 => Reproducible::Run,
            1 => Reproducible::Strict,
            2 => Reproducible::Fixed,
            _ => Reproducible::Off,
        };
        terms.settings.reproducible = self.reproducible.unwrap_or(reproducible);
        let site = self.tables_from.is_some() || terms.mode == Mode::Exploit && of(10, 2) == 0;
        if site {
            (terms.mode, terms.tables_from) = (Mode::Exploit, TablesFrom::Site);
        }
        if terms.mode == Mode::Explore && of(12, 4) == 0 {
            terms.cells.learner = LearnerKind::OmpiCollTune;
            terms.settings.records_per_run = [5, 50, 10_000][of(13, 3) as usize];
        }
        terms.settings.samples_per_cell = [4, 64, 256][of(3, 3) as usize];
        terms.settings.watch = [0.0, 0.005, 0.2, 0.5][of(8, 4) as usize];
        if of(14, 2) == 0 {
            terms.settings.summary = SummaryTo::Stderr;
        }
        if of(9, 2) == 0 {
            terms.settings.families = Some(vec![Family::Native]);
        }
        terms.settings.setup_after = [1, 8, 8, 20][of(4, 4) as usize];
        let telling = match of(5, 8) {
            0 => Telling::All,
            _ => Telling::Needed,
        };
        if of(6, 8) == 0 {
            let variant = "p2p:ring".to_owned();
            let collective = Collective::Allgather;
            terms.forced.push(Forced {
                collective,
                variant,
            });
        }
        if terms.mode == Mode::Exploit {
            terms
                .cells
                .choose(|variants| of(7, variants as u64) as usize);
        }
        rules.with(telling)
    }
}

/// Rules of two libraries, with few cells.
pub fn basic_rules() -> &'static [Rules; 2] {
    static RULES: OnceLock<[Rules; 2]> = OnceLock::new();
    RULES.get_or_init(|| {
        ["openmpi-4.1.4", "mpich-4.0.2"].map(|library| {
            let library: Library = library.parse().expect("it is known");
            let settings = Settings {
                space: coarse_space(),
                families: Some(vec![Family::Native, Family::P2p, Family::Node]),
                ..Settings::default()
            };
            let terms = JobTerms {
                seed: 0,
                mode: Mode::Explore,
                forced: Vec::new(),
                presets: Vec::new(),
                cells: CellTable::new(&Model::initial(&settings, library, "none"), library),
                settings,
                tables_from: TablesFrom::Database,
                levers: Vec::new(),
            };
            Rules::new(terms, library, Telling::Needed)
        })
    })
}

fn coarse_space() -> Space {
    let bounds = |bounds: &[u64]| {
        let bounds = bounds.iter().copied().map(Some);
        bounds.chain([None]).collect::<Vec<_>>()
    };
    let block = |collective: Collective| Block {
        collective,
        bytes: match collective.size() {
            MessageSize::Nothing => bounds(&[0]),
            MessageSize::Message | MessageSize::Block => bounds(&[0, 64, 1 << 16]),
        },
        nodes: bounds(&[1, 2, 5]),
        ppn: bounds(&[1, 2, 5]),
        exclude: Vec::new(),
    };
    Space {
        blocks: Collective::ALL.into_iter().map(block).collect(),
    }
}

fn agents(script: &Script, n_ranks: u32, threads: u32) -> Vec<Agent> {
    let mut acts = vec![Vec::new(); (n_ranks * threads) as usize];
    for (number, act) in script.acts.iter().enumerate() {
        let comm = &script.comms[act.comm as usize];
        for rank in &comm.members {
            acts[(rank * threads + comm.thread) as usize].push(number as u32);
        }
    }
    let numbered = (0..n_ranks * threads).zip(acts);
    numbered
        .map(|(number, acts)| Agent::new(number / threads, number, acts))
        .collect()
}

/// Runs the agents that can go on until none can.
fn go(agents: &mut [Agent], job: &mut Surroundings, fabric: &mut Fabric, order: Order) -> Outcome {
    let is_late = |agent: u32| match order {
        Order::Late(of) => agents_rank(agent, agents.len(), job.numbered.len()) % of == 1,
        Order::Random | Order::Ahead => false,
    };
    let late: Vec<bool> = (0..agents.len() as u32).map(is_late).collect();
    let (mut ready, mut behind) = (Vec::new(), Vec::new());
    let mut free: Vec<u32> = (0..agents.len() as u32).collect();
    let (mut turns, mut unfinished) = (0u64, agents.len());
    loop {
        for agent in free.drain(..) {
            match late[agent as usize] {
                true => behind.push(agent),
                false => ready.push(agent),
            }
        }
        let queue = match ready.is_empty() {
            true => &mut behind,
            false => &mut ready,
        };
        if queue.is_empty() {
            break;
        }
        turns += 1;
        let which = match order {
            Order::Ahead => queue.len() - 1,
            _ => (dice(job.fate.seed, 5, turns) % queue.len() as u64) as usize,
        };
        let agent = queue.swap_remove(which);
        match agents[agent as usize].advance(job, fabric, &mut free) {
            Ok(Progress::Waits) => {}
            Ok(Progress::Finished) => unfinished -= 1,
            Err(end) => return Outcome::Ended(end),
        }
    }
    match unfinished {
        0 => Outcome::Finished,
        _ => Outcome::Deadlock(fabric.stuck()),
    }
}

fn agents_rank(agent: u32, agents: usize, ranks: usize) -> u32 {
    agent / (agents / ranks) as u32
}

impl Report {
    /// No rank decided otherwise than the others, none waits for ever, and whoever could not go on ended all of them
    /// with one sentence.
    pub fn assert_all_decided_alike(&self) -> &Report {
        match &self.outcome {
            Outcome::Finished | Outcome::Ended(End::Impasse(..)) => self,
            wrong => panic!(
                "COLLTUNE_SEED={}: {wrong:?} among {}, after {:?}",
                self.seed, self.described, self.tally
            ),
        }
    }

    /// Whether the mistake was noticed.
    pub fn is_wrong(&self) -> bool {
        !matches!(
            self.outcome,
            Outcome::Finished | Outcome::Ended(End::Impasse(..))
        )
    }
}
