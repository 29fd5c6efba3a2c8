//! The stages of a step, with their checks.

use std::sync::Arc;

use colltune_amr::exact_sum::WORDS;
use colltune_amr::telemetry::Meeting;

use super::Program;
use crate::program::{Operation, Phase};
use crate::traffic::groups;

impl Program<'_> {
    fn work(phase: Phase, whole: &Arc<Vec<f64>>, share: f64) -> Operation {
        Operation::Work {
            phase,
            time_ns: match share {
                1.0 => Arc::clone(whole),
                _ => Arc::new(whole.iter().map(|time| time * share).collect()),
            },
        }
    }

    /// Work as it goes in a window of this step, from one collective to the next.
    fn paced(&self, work: &Operation, window: u32) -> Operation {
        let noise = self.noise.filter(|noise| noise.costs.window_cv > 0.0);
        match (noise, work) {
            (Some(noise), Operation::Work { phase, time_ns }) => Operation::Work {
                phase: *phase,
                time_ns: Arc::new(
                    (0..)
                        .zip(time_ns.iter())
                        .map(|(rank, time)| time * noise.of_window(rank, self.step, window))
                        .collect(),
                ),
            },
            _ => work.clone(),
        }
    }

    pub(super) fn stencil_stages(
        &self,
        compute_ns: &Arc<Vec<f64>>,
        act: &mut dyn FnMut(&Operation),
    ) {
        let settings = self.settings;
        let (stages, n_vars) = (settings.stages, settings.shape.n_vars as u64);
        let groups = groups(settings);
        let parts: Vec<Operation> = groups
            .iter()
            .map(|&n| {
                let share = n as f64 / (n_vars * stages) as f64;
                Program::work(Phase::Compute, compute_ns, share)
            })
            .collect();
        let freq = settings.options.checksum_freq;
        let sum = Program::work(Phase::Sum, &self.epoch.sum_ns, 1.0);
        let check = self.call(Meeting::Allreduce, 8 * (WORDS as u64) * n_vars);
        let check_one = self.call(Meeting::Allreduce, 8);
        let sum_one = Program::work(Phase::Sum, &self.epoch.sum_ns, 1.0 / n_vars as f64);
        let mut window = 0;
        for stage in 0..stages {
            let checks = freq > 0 && stage.is_multiple_of(freq);
            for (&n, part) in groups.iter().zip(&parts) {
                for exchange in self.sweeps().ghosts(n) {
                    act(&Operation::Exchange(Arc::clone(exchange)));
                }
                act(&self.paced(part, window));
                window += u32::from(checks && settings.options.compat);
                if checks && settings.options.compat {
                    for _ in 0..n {
                        act(&sum_one);
                        act(&check_one);
                    }
                }
            }
            if checks && !settings.options.compat {
                act(&sum);
                act(&check);
                window += 1;
            }
        }
    }

    pub(super) fn gas_stages(&self, compute_ns: &Arc<Vec<f64>>, act: &mut dyn FnMut(&Operation)) {
        let settings = self.settings;
        let n_vars = settings.shape.n_vars as u64;
        if !self.signal_known {
            act(&self.call(Meeting::Allreduce, 8));
        }
        let half = Program::work(Phase::Compute, compute_ns, 0.5);
        for _ in 0..2 {
            for n in groups(settings) {
                for exchange in self.sweeps().ghosts(n) {
                    act(&Operation::Exchange(Arc::clone(exchange)));
                }
            }
            act(&half);
            if let Some(flux) = self
                .sweeps()
                .flux
                .as_ref()
                .filter(|_| !settings.options.break_flux)
            {
                act(&Operation::Exchange(Arc::clone(flux)));
            }
        }
        // The step has ended well, and how long the next one may be.
        act(&self.call(Meeting::Allreduce, 8));
        let freq = settings.options.checksum_freq;
        if freq > 0 && self.step.is_multiple_of(freq) {
            act(&Program::work(Phase::Sum, &self.epoch.sum_ns, 1.0));
            act(&self.call(Meeting::Allreduce, 8 * (WORDS as u64) * n_vars));
        }
    }
}
