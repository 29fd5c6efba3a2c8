//! What bounds a tuning: `--budget`, `--max-jobs`, and `--until` from below.

use colltune_db::TrainReport;
use colltune_statistics::Interval;

use super::session::{PAIRS_LEAST, Session};
use super::state::End;
use crate::command::train::{counted, goes_on, train_in_turn};
use crate::command::verdict::Judged;
use crate::comparison::seconds;
use crate::together;
use colltune_output::failure::Stopped;
use colltune_output::progress;

/// The exit code where the budget ended before the work did.
const OUT_OF_BUDGET: u8 = 3;

impl Session {
    /// The ratio that `--until` is about, as far as it is known.
    pub fn ratio(&self) -> Option<Interval> {
        let state = &self.kept.state;
        let of_pairs = || state.comparison().map(|found| found.ratio);
        together::last_beside_first(&state.rounds).or_else(of_pairs)
    }

    /// Whether the comparison goes on for `--until`.
    pub fn wants_more(&self) -> bool {
        let until = self.until;
        until.is_some_and(|until| until.wants_more(self.n_rounds(), self.ratio()))
    }

    /// Learns from what the jobs left, as soon as nobody else does.
    ///
    /// Errors: those of the training; an interruption, or the end of the budget, while another one runs.
    pub fn train(&self) -> anyhow::Result<TrainReport> {
        train_in_turn(&self.db, &|| {
            goes_on(&self.trials.interrupt)?;
            match self.fits(0) {
                true => Ok(()),
                false => Err(Stopped {
                    message:
                        "the budget ended while another training ran; run the same command again"
                            .to_owned(),
                    code: OUT_OF_BUDGET,
                }
                .into()),
            }
        })
    }

    /// What is left is used to say what was gained so far.
    pub fn out_of_budget(&mut self, next: usize) -> anyhow::Result<End> {
        let job_s = self.kept.state.job_s().unwrap_or(0.0);
        let is_trained = self.kept.state.n_learned() > 0;
        let n_least = self.n_sides() * PAIRS_LEAST;
        if is_trained && self.fits(n_least) && self.allows(n_least) {
            self.compare()?;
            if let Some(found) = self.kept.state.comparison() {
                progress::tell(&format!("So far: {}", found.sentence()));
            }
            let judged = self.judge();
            let judged = judged.unwrap_or_else(|error| Judged::failed(&error));
            for line in judged.text().lines() {
                progress::tell(line);
            }
            // Later choices will be others.
            self.kept.state.forget_pairs();
            self.save()?;
        }
        let least_s = next as f64 * (job_s + self.trials.prepare_s);
        let has_run_some = self.kept.state.n_jobs() > self.n_jobs_before;
        let (limit, is_never_enough, least) = match self.max_jobs.filter(|_| !self.allows(next)) {
            Some(most) => (
                format!("--max-jobs {most} is too few"),
                next > most,
                format!("--max-jobs {next}"),
            ),
            None => {
                let budget = self.budget.unwrap_or_default();
                // What comes before the first job takes its time each time, too.
                let least_s = match has_run_some {
                    true => least_s,
                    false => least_s + self.begun.elapsed().as_secs_f64(),
                };
                let is_never_enough = !has_run_some || least_s > budget.as_secs_f64();
                let begin = if is_never_enough {
                    ""
                } else {
                    "what is left of "
                };
                let budget = humantime::format_duration(budget);
                (
                    format!("{begin}the budget of {budget} is too short"),
                    is_never_enough,
                    format!("--budget {}", whole_time(least_s)),
                )
            }
        };
        let next = counted(next as u64, "job");
        let goes_on = match is_never_enough {
            true => format!("give {least} or more"),
            false => "run the same command again to continue".to_owned(),
        };
        let message = format!(
            "{limit}: {next} of {} come next. What was done is kept; {goes_on}",
            seconds(job_s)
        );
        Err(Stopped {
            message,
            code: OUT_OF_BUDGET,
        }
        .into())
    }

    /// Whether so many more jobs may run.
    pub fn allows(&self, n_jobs: usize) -> bool {
        let n_run = self.kept.state.n_jobs() - self.n_jobs_before;
        self.max_jobs.is_none_or(|most| n_run + n_jobs <= most)
    }

    /// Whether so many more jobs fit into the budget.
    pub fn fits(&self, n_jobs: usize) -> bool {
        let Some(budget) = self.budget else {
            return true;
        };
        let job_s = self.kept.state.job_s().unwrap_or(0.0) + self.trials.prepare_s;
        self.begun.elapsed().as_secs_f64() + n_jobs as f64 * job_s <= budget.as_secs_f64()
    }
}

/// A time as `--budget` takes it, rounded up to seconds or minutes.
fn whole_time(seconds: f64) -> String {
    match seconds.ceil() {
        seconds if seconds < 120.0 => format!("{seconds}s"),
        _ => format!("{}min", (seconds / 60.0).ceil()),
    }
}

#[test]
fn a_budget_is_advised_in_words_that_the_option_reads_and_never_too_short() {
    for (needed_s, text) in [
        (0.3, "1s"),
        (119.0, "119s"),
        (119.5, "2min"),
        (4201.0, "71min"),
    ] {
        assert_eq!(whole_time(needed_s), text);
        let read = humantime::parse_duration(text).unwrap();
        assert!(read.as_secs_f64() >= needed_s);
    }
}
