//! Every setting with its default. What a key is called, takes and decides stands in [`super::KEYS`].

use std::collections::BTreeMap;
use std::time::Duration;

use bincode::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::library::Library;
use crate::prior::simulated::{HOPELESS_SIMULATED, Simulated};
use crate::programs::ProgramLists;
use crate::space::Space;
use crate::variant::Family;

/// Whether tuning may change the rounding of floating-point reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub enum Reproducible {
    /// Any variant at any call.
    #[default]
    Off,
    /// One draw per cell and run.
    Run,
    /// Only reductions whose result cannot depend on order are tuned.
    Strict,
    /// One order of additions for each number of ranks, whatever runs.
    Fixed,
}

impl Reproducible {
    /// Whether no bit depends on what runs, so that choices are as free as with `off`.
    pub fn leaves_choices_free(self) -> bool {
        matches!(self, Reproducible::Off | Reproducible::Fixed)
    }
}

/// Where the buffers of a GPU-aware job's collectives lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub enum Gpu {
    /// Unknown, so where a rank of a job uses GPUs only `default` and the library's own algorithms run.
    #[default]
    Off,
    /// In the memory of the host, whatever else the job does with GPUs.
    HostOnly,
}

/// Where what a job did and how long it took is said when it ends.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub enum SummaryTo {
    #[default]
    Nobody,
    /// One sentence on the error stream of rank 0.
    Stderr,
    /// One line of JSON at the end of a file.
    File(String),
}

/// Which model predicts cells and variants without measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub enum Predicting {
    /// Gradient-boosted trees on the contrast with the default.
    Xgboost,
    #[default]
    GaussianProcess,
}

/// Who makes probabilities and choices of what was recorded, and with that how jobs draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "lowercase")]
pub enum LearnerKind {
    /// Samples that are thinned and warmed up, races within a job, choices that have to be earned.
    #[default]
    Colltune,
    /// As published: every recorded call draws, regressions of run times give the probabilities, the most probable runs.
    ///
    /// Source: Hunold & Steiner, OMPICollTune, PMBS 2022.
    OmpiCollTune,
}

impl LearnerKind {
    pub const ALL: [LearnerKind; 2] = [LearnerKind::Colltune, LearnerKind::OmpiCollTune];

    pub const fn name(self) -> &'static str {
        match self {
            LearnerKind::Colltune => "colltune",
            LearnerKind::OmpiCollTune => "ompicolltune",
        }
    }

    pub fn from_name(name: &str) -> Option<LearnerKind> {
        LearnerKind::ALL.into_iter().find(|one| one.name() == name)
    }

    /// For what is left out of files where it is the usual one.
    pub fn is_usual(&self) -> bool {
        *self == LearnerKind::default()
    }
}

/// Every setting of a database, with its default.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Settings {
    /// The machine that the database serves; `None`: found from the environment.
    pub machine: Option<String>,
    pub space: Space,
    /// Variants that are never drawn in any cell.
    pub exclude: Vec<String>,
    /// The families whose variants are drawn beside `default`, sorted; `None`: the usual ones.
    pub families: Option<Vec<Family>>,
    /// The most calls that one rank records in one run.
    pub records_per_run: u64,
    pub recording_ranks_per_node: u32,
    /// The most recording ranks of a run.
    pub recording_ranks: u32,
    /// Calls of a cell on one communicator that are sampled before sampling thins out.
    pub samples_per_cell: u32,
    /// The most that exploring may take of a cell's calls after the first training, as a share.
    pub explore_total: f64,
    /// The most that exploring may cost the time spent in a communicator's collectives, as a share.
    pub explore_budget: f64,
    /// The share of a cell's calls that run `default` beside a choice, to watch it, where choices are exploited.
    pub watch: f64,
    /// Before any training a variant is not drawn where the prior finds it slower than another one
    /// by more than this factor; `None`: the usual one.
    pub hopeless_factor: Option<f64>,
    pub learner: LearnerKind,
    /// The least and the most probability of a variant, for the learner as published alone.
    pub probability_min: f64,
    pub probability_max: f64,
    pub predictor: Predicting,
    /// What the simulator found for a library; it lies in the library's folder, not among the keys.
    pub simulated: BTreeMap<Library, Simulated>,
    pub summary: SummaryTo,
    pub reproducible: Reproducible,
    pub gpu: Gpu,
    /// The most memory that a rank takes for everything of ours in a job: bytes.
    pub memory_per_rank_max: u64,
    /// The tuned call of a communicator at which it is set up, unless its calls have moved enough before.
    pub setup_after: u32,
    /// After so long a wait in shared memory one sentence is said.
    pub wait_warning_after: Duration,
    /// How long a rank whose arguments a variant cannot take waits for the others to find the same of theirs.
    pub mismatch_timeout: Duration,
    /// How long raw records are kept after evidence covers them. `None`: for ever.
    pub keep_raw: Option<Duration>,
    /// How old the trace of a running job must be to count as abandoned.
    pub stale_after: Duration,
    /// Seed of every draw; `None`: a new one for each job.
    pub seed: Option<u64>,
    /// Hosts that are left out of host files.
    pub exclude_hosts: Vec<String>,
    /// Patterns of the programs that are tuned, all where there are none, and of those that are not.
    pub programs_allow: Vec<String>,
    pub programs_deny: Vec<String>,
    /// How often rank 0 of a job on a site folder looks whether it was switched off; zero: never.
    pub switch_poll_interval: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            machine: None,
            space: Space::default(),
            exclude: Vec::new(),
            families: None,
            records_per_run: 10_000,
            recording_ranks_per_node: 2,
            recording_ranks: 32,
            samples_per_cell: 256,
            explore_total: 0.15,
            explore_budget: 0.02,
            watch: 0.005,
            hopeless_factor: None,
            learner: LearnerKind::default(),
            probability_min: 0.03,
            probability_max: 1.0,
            predictor: Predicting::default(),
            simulated: BTreeMap::new(),
            summary: SummaryTo::Nobody,
            reproducible: Reproducible::Off,
            gpu: Gpu::Off,
            memory_per_rank_max: 64 << 20,
            setup_after: 8,
            wait_warning_after: Duration::from_secs(60),
            mismatch_timeout: Duration::from_secs(60),
            keep_raw: Some(Duration::from_secs(90 * 86_400)),
            stale_after: Duration::from_secs(3600),
            seed: None,
            exclude_hosts: Vec::new(),
            programs_allow: Vec::new(),
            programs_deny: Vec::new(),
            switch_poll_interval: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// The families whose variants are drawn beside `default` in jobs on `library`, sorted.
    ///
    /// Each further variant takes samples from the others. So schedules are among the usual ones only
    /// where the simulator, calibrated on this machine, leaves few of them. The learner as published knows the
    /// library's own algorithms alone.
    pub fn families_on(&self, library: Library) -> Vec<Family> {
        self.families.clone().unwrap_or_else(|| {
            if self.learner == LearnerKind::OmpiCollTune {
                return vec![Family::Native];
            }
            let mut usual = vec![Family::Native, Family::Node];
            // Where nodes hold no part of the fixed order, schedules alone keep it.
            let is_fixed = self.reproducible == Reproducible::Fixed;
            if is_fixed || self.simulated.contains_key(&library) {
                usual.push(Family::P2p);
            }
            usual.sort_unstable();
            usual
        })
    }

    /// How many times as slow as another variant a hopeless one is on `library`.
    pub fn hopeless_factor_on(&self, library: Library) -> f64 {
        self.hopeless_factor
            .unwrap_or(if self.simulated.contains_key(&library) {
                HOPELESS_SIMULATED
            } else {
                HOPELESS_BY_SHAPE
            })
    }

    /// Which programs are tuned.
    pub fn programs(&self) -> ProgramLists<'_> {
        ProgramLists {
            allow: &self.programs_allow,
            deny: &self.programs_deny,
        }
    }

    /// `explore_budget` in millionths, as ranks reckon with it.
    pub fn explore_budget_ppm(&self) -> u64 {
        (self.explore_budget * 1e6) as u64
    }

    /// `watch` in millionths.
    pub fn watch_ppm(&self) -> u64 {
        (self.watch * 1e6) as u64
    }
}

/// The same of what is known by the shapes of schedules alone.
pub const HOPELESS_BY_SHAPE: f64 = 10.0;

/// The families that `families` can name, sorted.
pub const FAMILIES: [Family; 3] = [Family::Native, Family::P2p, Family::Node];
