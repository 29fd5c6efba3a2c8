//! The gas in the run: its time step, its two stages, where it wants finer cells, and its shock.

use std::time::Instant;

use super::agree::agree;
use super::state::{Gas, Problem, Run};
use crate::checksum::{self, Broken};
use crate::cost;
use crate::exact_sum::ExactSum;
use crate::exchange::Posted;
use crate::exchange::gas::GasFaces;
use crate::leaf::Leaf;
use crate::options::{BoundaryName, ProblemName};
use crate::physics::boundary::Boundary;
use crate::physics::rarefaction::Rarefaction;
use crate::physics::sedov::{Ball, Blast, Exact, Extent, ShockRadius};
use crate::physics::wave::Wave;
use crate::physics::{FaceFluxes, FluxOrder, Scheme, Scratch, Stage, indicator, reflux};
use crate::ranks::Op;
use crate::refine::Mark;
use crate::report::{Shock, WaveError};
use crate::settings::{Settings, Work};
use crate::telemetry::Phase;

const DENSITY: f64 = 1.0;
/// The exact solution has none; this one is passed by a shock of any strength that matters here.
const PRESSURE: f64 = 1e-5;

/// How often a step is halved before the gas is given up.
const HALVINGS_MAX: u32 = 12;

impl Gas {
    pub(super) fn new(settings: &Settings) -> Option<Gas> {
        if settings.work != Work::Euler {
            return None;
        }
        let (shape, options) = (settings.shape, &settings.options);
        let gamma = options.gamma;
        let boundary = match options.boundary {
            // What a periodic domain has is no boundary: no block is asked.
            BoundaryName::Reflecting | BoundaryName::Periodic => Boundary::Reflecting,
            BoundaryName::Outflow => Boundary::Outflow,
        };
        Some(Gas {
            faces: GasFaces {
                shape,
                gamma,
                boundary,
            },
            scheme: Scheme {
                shape,
                gamma,
                fluxes: FluxOrder::default(),
            },
            problem: match options.problem {
                ProblemName::Sedov => Problem::Sedov(blast(settings)),
                ProblemName::Wave => Problem::Wave(Wave { gamma }),
                ProblemName::Rarefaction => Problem::Rarefaction(Rarefaction {
                    gamma,
                    middle: settings.domain().middle()[0],
                    speed: options.rarefaction_speed,
                }),
            },
            scratch: Scratch::new(shape),
            fluxes: Vec::new(),
            before: Vec::new(),
            delta: 0.0,
            fastest: None,
            failed: None,
        })
    }
}

/// The blast that the options describe.
fn blast(settings: &Settings) -> Blast {
    let (options, domain) = (&settings.options, settings.domain());
    let inverse = inverse_dx(settings, settings.grid.depth);
    let centre = settings.sedov_centre();
    let finest = inverse.map(|cells| 1.0 / cells);
    let ball = options
        .sedov_radius
        .and_then(|radius| Ball::new(radius, centre, domain.lower, finest));
    let boxed = Extent::Box(inverse.map(|cells| 2.0 / cells));
    Blast {
        gamma: options.gamma,
        energy: options.sedov_energy,
        density: DENSITY,
        pressure: PRESSURE,
        centre,
        extent: ball.map_or(boxed, Extent::Ball),
    }
}

impl Problem {
    /// Before the first step: whether the block between two corners should be finer.
    fn wants_at_start(&self, [lower, upper]: [[f64; 3]; 2]) -> Mark {
        let splits = match self {
            Problem::Sedov(blast) => blast.reaches(lower, upper),
            Problem::Wave(wave) => wave.is_refined(lower, upper),
            Problem::Rarefaction(halves) => halves.reaches(lower, upper),
        };
        if splits { Mark::Split } else { Mark::Stay }
    }
}

/// Cells per length along each axis, of a block of the leaf's level.
fn inverse_dx(settings: &Settings, level: u8) -> [f64; 3] {
    let edges = settings.domain().edges();
    std::array::from_fn(|d| {
        f64::from(settings.grid.roots[d] << level) * settings.shape.cells[d] as f64 / edges[d]
    })
}

impl Run<'_> {
    /// Gives every block of this rank the state at time 0.
    pub(super) fn fill_gas(&mut self) {
        let Some(gas) = &self.gas else { return };
        let (shape, roots) = (self.settings.shape, self.mesh.grid.roots);
        let domain = self.settings.domain();
        for (&slot, &i) in self.own.iter().zip(&self.own_leaves) {
            let corners = domain.corners(self.mesh.leaves()[i], roots);
            let block = self.blocks.field.block_mut(slot);
            match gas.problem {
                Problem::Sedov(blast) => blast.fill(shape, corners[0], corners[1], block),
                Problem::Wave(wave) => wave.fill(shape, corners, block),
                Problem::Rarefaction(halves) => halves.fill(shape, corners, block),
            }
        }
    }

    /// One step with both its stages and the check of the sums; gives its length.
    ///
    /// Where it would end in a state that is none of a gas, it is done again from the state before, half as long and with
    /// fluxes that keep density and pressure positive. All ranks decide alike: by the fastest signal, which they agree on.
    ///
    /// Errors: a state that is none of a gas, on any rank, however short the step.
    pub(super) fn gas_step(
        &mut self,
        step: u64,
        tell: &mut dyn FnMut(&str),
    ) -> Result<f64, Broken> {
        let mut delta = self.gas_step_length(step)?;
        self.count.block_stages += 2 * self.mesh.len() as u64;
        self.n_stages += 2;
        for n_halvings in 0.. {
            if let Some(gas) = &mut self.gas {
                (gas.delta, gas.fastest) = (delta, None);
                gas.scheme.fluxes = match n_halvings {
                    0 => FluxOrder::Second,
                    _ => FluxOrder::Positive,
                };
            }
            self.gas_stage(Stage::First);
            self.gas_stage(Stage::Second);
            match self.fastest_signal(step + 1) {
                Err(Broken::NotPhysical { .. }) if n_halvings < HALVINGS_MAX => {}
                ended => {
                    ended?;
                    self.count.steps_redone += u64::from(n_halvings > 0);
                    break;
                }
            }
            self.undo_gas_step();
            delta *= 0.5;
        }
        self.check_gas(step, tell)?;
        Ok(delta)
    }

    /// The time step that the fastest signal allows, no further than `--time`.
    ///
    /// Errors: a state that is none of a gas, on any rank.
    fn gas_step_length(&mut self, step: u64) -> Result<f64, Broken> {
        let fastest = self.fastest_signal(step)?;
        let allowed = self.settings.options.cfl / fastest;
        let left = self.settings.options.time.map(|end| end - self.time);
        Ok(left.map_or(allowed, |left| allowed.min(left)))
    }

    /// The most cells that any signal passes in a time of 1, on all ranks; asked once where neither gas nor mesh changes.
    ///
    /// Errors: a state that is none of a gas, on any rank.
    pub(super) fn fastest_signal(&mut self, step: u64) -> Result<f64, Broken> {
        let Some(gas) = &mut self.gas else {
            return Ok(0.0);
        };
        if let Some(fastest) = gas.fastest {
            return Ok(fastest);
        }
        let start = Instant::now();
        let compute = self.exchange.spent.recorder.clock.during(Phase::Compute);
        let mut fastest = [0.0f64];
        for (nth, (&slot, &i)) in self.own.iter().zip(&self.own_leaves).enumerate() {
            let (of_block, pace) = (Instant::now(), self.slowness.begin());
            let leaf = self.mesh.leaves()[i];
            let cells = inverse_dx(self.settings, leaf.level);
            match gas
                .scheme
                .signal_rate_max(cells, self.blocks.field.block(slot))
            {
                Ok(rate) => fastest[0] = fastest[0].max(rate),
                Err(what) => {
                    gas.failed.get_or_insert(format!("{leaf:?}: {what}"));
                }
            }
            self.slowness.end(pace);
            self.block_times[nth] += of_block.elapsed().as_secs_f64();
        }
        drop(compute);
        if gas.failed.is_some() {
            fastest[0] = f64::INFINITY;
        }
        self.times.calc += start.elapsed().as_secs_f64();
        let start = Instant::now();
        self.ranks.allreduce_f64(&mut fastest, Op::Max);
        self.times.reduce += start.elapsed().as_secs_f64();
        if fastest[0] == f64::INFINITY
            && let Some(what) = agree(self.ranks, gas.failed.take())
        {
            return Err(Broken::NotPhysical { step, what });
        }
        gas.fastest = Some(fastest[0]);
        Ok(fastest[0])
    }

    /// The blocks of this rank as they were before the step.
    fn undo_gas_step(&mut self) {
        let Some(gas) = &self.gas else { return };
        for &slot in &self.own {
            let before = &gas.before[slot as usize];
            self.blocks.field.block_mut(slot).copy_from_slice(before);
        }
    }

    pub(super) fn fill_gas_ghosts(&mut self) {
        let posted = self.post_gas_ghosts();
        self.receive_gas_ghosts(posted);
    }

    fn post_gas_ghosts(&mut self) -> Posted {
        let Some(gas) = &self.gas else {
            return Posted::default();
        };
        let (sweep, spent) = (&self.plan.sweeps[0], &mut self.exchange.spent);
        gas.faces
            .post(self.ranks, &mut self.blocks.field, sweep, spent)
    }

    fn receive_gas_ghosts(&mut self, posted: Posted) {
        let Some(gas) = &self.gas else { return };
        let (sweep, spent) = (&self.plan.sweeps[0], &mut self.exchange.spent);
        gas.faces
            .receive(self.ranks, &mut self.blocks.field, sweep, posted, spent);
    }

    /// One of the two stages of a step. Blocks that need nothing from other ranks are advanced while the messages travel.
    fn gas_stage(&mut self, stage: Stage) {
        let [inner, outer] = std::mem::take(&mut self.parts);
        let start = Instant::now();
        let posted = self.post_gas_ghosts();
        self.spend_comm(start);
        self.advance_gas(stage, &inner, Some(&posted));
        let start = Instant::now();
        self.receive_gas_ghosts(posted);
        self.spend_comm(start);
        self.advance_gas(stage, &outer, None);
        self.parts = [inner, outer];
        if !self.settings.options.break_flux {
            self.correct_gas(stage);
        }
    }

    /// The check of the sums after a step.
    fn check_gas(&mut self, step: u64, tell: &mut dyn FnMut(&str)) -> Result<(), Broken> {
        let freq = self.settings.options.checksum_freq;
        if freq == 0 || !step.is_multiple_of(freq) {
            return Ok(());
        }
        let start = Instant::now();
        let sums = {
            let _sum = self.clock().during(Phase::Sum);
            let own = self.exact_sums();
            self.share_among_blocks(start);
            self.reduced(&own)
        };
        self.spend_reduce(start);
        self.accept(step, 1, 0, &sums, tell)
    }

    /// Advances some of the own blocks, by their places in `own`, while messages are under way or have come.
    fn advance_gas(&mut self, stage: Stage, part: &[usize], under_way: Option<&Posted>) {
        let Some(gas) = &mut self.gas else { return };
        let start = Instant::now();
        let _compute = self.exchange.spent.recorder.clock.during(Phase::Compute);
        let shape = self.settings.shape;
        let n_slots = self.own.last().map_or(0, |&slot| slot as usize + 1);
        while gas.fluxes.len() < n_slots {
            gas.fluxes.push(FaceFluxes::new(shape));
            gas.before.push(vec![0.0; shape.block_len()]);
        }
        for &nth in part {
            let (slot, i) = (self.own[nth], self.own_leaves[nth]);
            let (of_block, pace) = (Instant::now(), self.slowness.begin());
            let leaf = self.mesh.leaves()[i];
            let state = self.blocks.field.block_mut(slot);
            let iterations = self.settings.cost.iterations(leaf, || {
                let jump = indicator::pressure_jump_max(shape, gas.scheme.gamma, state);
                self.near_shock[nth] = jump > self.settings.options.join_below;
                self.near_shock[nth]
            });
            cost::iterate(state, iterations);
            let slot = slot as usize;
            if stage == Stage::First {
                gas.before[slot].copy_from_slice(state);
            }
            let step = inverse_dx(self.settings, leaf.level).map(|cells| gas.delta * cells);
            let (fluxes, before) = (&mut gas.fluxes[slot], &gas.before[slot]);
            let advanced = gas
                .scheme
                .advance(stage, step, before, state, fluxes, &mut gas.scratch);
            if let Err(what) = advanced {
                // The other ranks wait for messages, so this is reported when all agree after the step.
                gas.failed.get_or_insert(format!("{leaf:?}: {what}"));
            }
            self.slowness.end(pace);
            self.block_times[nth] += of_block.elapsed().as_secs_f64();
            if let Some(posted) = under_way {
                posted.progress(self.ranks);
            }
        }
        let took = start.elapsed().as_secs_f64();
        self.times.calc += took;
        self.add_step_time(1, took);
    }

    fn correct_gas(&mut self, stage: Stage) {
        let Some(gas) = &self.gas else { return };
        let start = Instant::now();
        let (sweep, spent) = (&self.plan.sweeps[0], &mut self.exchange.spent);
        let fine = gas.faces.fine_fluxes(self.ranks, &gas.fluxes, sweep, spent);
        let _unpack = spent.recorder.clock.during(Phase::Unpack);
        for flux in fine {
            let place = self.own.binary_search(&flux.slot).expect("an own block");
            let leaf = self.mesh.leaves()[self.own_leaves[place]];
            let face = usize::from(flux.face);
            let cells = inverse_dx(self.settings, leaf.level)[face / 2];
            reflux::correct(
                self.settings.shape,
                &gas.fluxes[flux.slot as usize],
                &flux.values,
                face,
                usize::from(flux.quadrant),
                stage.weight() * (gas.delta * cells),
                self.blocks.field.block_mut(flux.slot),
            );
        }
        self.spend_comm(start);
    }

    /// What the gas wants of each leaf of the whole mesh.
    pub(super) fn gas_wants(&mut self, step: u64) -> Option<Vec<Mark>> {
        let gas = self.gas.as_ref()?;
        if step == 0 {
            let (domain, roots) = (self.settings.domain(), self.mesh.grid.roots);
            let leaves = self.mesh.leaves().iter();
            let wants = leaves.map(|&leaf| gas.problem.wants_at_start(domain.corners(leaf, roots)));
            return Some(wants.collect());
        }
        self.fill_gas_ghosts();
        let gas = self.gas.as_ref()?;
        let own = self.mesh.own(self.ranks.rank()).map(|i| {
            let block = self.blocks.field.block(self.blocks.slots[i]);
            let jump = indicator::pressure_jump_max(self.settings.shape, gas.scheme.gamma, block);
            self.mark_of_jump(jump)
        });
        let marks = self.marks_of_all(own.collect());
        let depth = self.mesh.grid.depth;
        let late = |&(leaf, mark): &(&Leaf, &Mark)| *mark == Mark::Split && leaf.level < depth;
        let late = self.mesh.leaves().iter().zip(&marks).filter(late).count();
        self.count.refined_late += late as u64;
        Some(marks)
    }

    /// Where the shock is and where it should be; none before there is one, or without a gas.
    pub(super) fn shock(&mut self) -> Option<Shock> {
        let Problem::Sedov(blast) = self.gas.as_ref()?.problem else {
            return None;
        };
        self.fill_gas_ghosts();
        let (domain, roots) = (self.settings.domain(), self.mesh.grid.roots);
        // Sums without rounding: the same bits on any number of ranks.
        let mut sums = [ExactSum::default(), ExactSum::default()];
        for (&slot, &i) in self.own.iter().zip(&self.own_leaves) {
            let leaf = self.mesh.leaves()[i];
            let mut part = ShockRadius::default();
            part.add_block(
                self.settings.shape,
                blast.gamma,
                blast.centre,
                domain.corners(leaf, roots),
                self.blocks.field.block(slot),
            );
            sums[0].add(part.weight);
            sums[1].add(part.weighted_radius);
        }
        let sums = checksum::reduce(self.ranks, &sums);
        let all = ShockRadius {
            weight: sums[0],
            weighted_radius: sums[1],
        };
        let radius = all.radius()?;
        let exact = Exact::new(blast.gamma, blast.energy, blast.density).radius(self.time);
        Some(Shock {
            time: self.time,
            radius,
            exact,
            error: radius / exact - 1.0,
        })
    }

    /// With `--problem wave`: how far the density is from what it should be now.
    pub(super) fn wave_error(&self) -> Option<WaveError> {
        let Problem::Wave(wave) = self.gas.as_ref()?.problem else {
            return None;
        };
        let (domain, roots) = (self.settings.domain(), self.mesh.grid.roots);
        // Without rounding, as above.
        let mut sum = ExactSum::default();
        for (&slot, &i) in self.own.iter().zip(&self.own_leaves) {
            let corners = domain.corners(self.mesh.leaves()[i], roots);
            let (shape, block) = (self.settings.shape, self.blocks.field.block(slot));
            wave.errors(shape, corners, self.time, block, |error| sum.add(error));
        }
        let l1 = checksum::reduce(self.ranks, &[sum])[0];
        Some(WaveError {
            time: self.time,
            l1: l1 / domain.volume(),
        })
    }
}
