//! The same pairs as the emulator has them: from one recorded run under the first policy, and the place's calibration.

use std::path::Path;

use anyhow::Context;
use colltune_emulate::machine::Machine;
use colltune_emulate::whatif::Grid;
use colltune_lab::emulate::whatif::{Question, first_weights};
use colltune_lab::emulate::{given, recording, seconds_of};
use colltune_statistics::{Interval, spearman};

use super::super::jobs::Tuner;
use super::super::report::{Finding, Target};
use super::app::{AS_GOOD, App, POLICIES, VARIANTS};

/// What the emulator says of one problem.
pub struct Emulated {
    grid: Grid,
    machine: Machine,
}

impl Emulated {
    /// Records a run and emulates every pair.
    ///
    /// Errors: a run that fails, a machine without calibration.
    pub fn of(app: &App, calibrated: &Path) -> anyhow::Result<Emulated> {
        let folder = app
            .bench
            .out
            .join(format!(".levers.{}.telemetry", std::process::id()));
        let emulated = Emulated::of_recorded(app, calibrated, &folder);
        let _ = std::fs::remove_dir_all(&folder);
        emulated.with_context(|| format!("emulate {}", app.problem.name))
    }

    fn of_recorded(app: &App, calibrated: &Path, folder: &Path) -> anyhow::Result<Emulated> {
        app.progress("a recorded run");
        let name = folder.display().to_string();
        let more = ["--telemetry", &name, "--telemetry_blocks"];
        app.timed(&Tuner::Bare, POLICIES[0], &more)?;
        app.progress("emulated pairs");
        let recorded = recording::read(folder)?;
        let costs = recording::fitted(std::slice::from_ref(&recorded), &[], |_| true)?.costs;
        let machine = given::machine(&calibrated.display().to_string())?;
        let ranks = app.place.n_ranks;
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let grid = Question {
            mesh: &given::mesh(&name, &[], ranks)?,
            ranks,
            costs: &costs,
            machine: &machine,
            policies: &owned(&POLICIES),
            allreduce: &owned(&VARIANTS),
            slow: None,
            timer: Some(&seconds_of),
        }
        .grid()?;
        Ok(Emulated { grid, machine })
    }

    /// Seconds of every pair, by policy and then by variant.
    pub fn pairs(&self) -> Vec<f64> {
        self.grid.total_s.concat()
    }

    /// Puts what it expects in force as the first weights of a database.
    pub fn weigh(&self, db: &Path, ranks: usize) -> anyhow::Result<()> {
        first_weights(db, &self.machine, &self.grid, ranks)
    }

    /// How near the emulated order comes to the measured one, and how good the pair is that it would choose.
    pub fn findings(&self, problem: &str, measured: &[f64]) -> Vec<Finding> {
        let emulated = self.pairs();
        let of_policy =
            |times: &[f64]| -> Vec<f64> { times.iter().copied().step_by(VARIANTS.len()).collect() };
        let least = |times: &[f64]| (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
        let chosen = least(&emulated).map_or(f64::NAN, |pair| measured[pair]);
        let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
        let finding = |what: &str, value: f64, target| Finding {
            what: format!("{problem}: {what}"),
            found: Interval {
                low: value,
                value,
                high: value,
            },
            unit: "",
            target,
        };
        let order =
            |measured: &[f64], emulated: &[f64]| spearman(measured, emulated).unwrap_or(f64::NAN);
        vec![
            finding(
                "emulated against measured order of all pairs, rank correlation",
                order(measured, &emulated),
                Target::AtLeast(0.8),
            ),
            finding(
                "the same of the policies with the default",
                order(&of_policy(measured), &of_policy(&emulated)),
                Target::None,
            ),
            finding(
                "measured time of the pair that is emulated fastest, over the best one's",
                chosen / best,
                Target::AtMost(AS_GOOD),
            ),
        ]
    }
}
