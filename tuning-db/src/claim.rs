//! Whether what a job said of itself at its end is believed: it is a claim of who owns the file, as a trace is.

use colltune_core::account::{JobSummary, OverRanks};

use crate::owners::Owners;

/// No job runs for longer: about thirty years.
const SECONDS_MAX: f64 = 1e9;
/// Words that end up in tables and on terminals.
const WORD_BYTES_MAX: usize = 1024;

/// The account, its words in letters that can be shown.
///
/// Errors: why it is not believed, as in a file's reason in quarantine.
pub fn believed(
    mut run: JobSummary,
    job: &str,
    owner: u32,
    owners: &Owners,
) -> Result<JobSummary, String> {
    if run.job != job {
        return Err("it is an account of another job than its name says".to_owned());
    }
    owners.judge_claim(owner, run.ranks, run.nodes)?;
    if !is_possible(&run) {
        return Err("it says impossible things".to_owned());
    }
    for word in [
        &mut run.program,
        &mut run.mode,
        &mut run.library,
        &mut run.machine,
        &mut run.arguments_hash,
        &mut run.label,
    ] {
        show(word);
    }
    run.refused.iter_mut().for_each(|one| show(&mut one.reason));
    Ok(run)
}

fn is_possible(run: &JobSummary) -> bool {
    let is_time = |seconds: f64| (0.0..=SECONDS_MAX).contains(&seconds);
    let are_times = |times: OverRanks| is_time(times.mean) && is_time(times.max);
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let fits = run.ranks <= u64::from(u32::MAX) && run.nodes <= run.ranks && run.ppn <= run.ranks;
    let of_collectives = run.by_collective.iter().all(|one| {
        let sizes = &one.by_size;
        are_times(one.seconds) && sizes.iter().all(|size| is_time(size.seconds))
    });
    fits && is_time(run.wall_s)
        && are_times(run.collectives_s)
        && are_times(run.overhead_s)
        && of_collectives
        && run.waiting_share.is_none_or(is_share)
        && run.best_possible_gain.is_finite()
        && run.estimated_gain.is_none_or(f64::is_finite)
}

fn show(word: &mut String) {
    if word.len() > WORD_BYTES_MAX || word.chars().any(char::is_control) {
        let plain = |sign: char| if sign.is_control() { '·' } else { sign };
        *word = word.chars().take(WORD_BYTES_MAX / 4).map(plain).collect();
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::account::{JobFacts, KINDS};

    use super::*;

    fn account() -> JobSummary {
        let facts = JobFacts {
            job: "job".to_owned(),
            ranks: 8,
            nodes: 4,
            ..JobFacts::default()
        };
        JobSummary::new(facts, &vec![Default::default(); KINDS])
    }

    fn judged(change: impl FnOnce(&mut JobSummary)) -> Result<JobSummary, String> {
        let mut run = account();
        change(&mut run);
        believed(run, "job", 7, &Owners::default())
    }

    #[test]
    fn an_account_of_another_job_or_of_impossible_times_is_not_believed() {
        assert_eq!(judged(|_| ()), Ok(account()));
        let wrong: [fn(&mut JobSummary); 7] = [
            |run| run.job = "another".to_owned(),
            |run| run.wall_s = 1e300,
            |run| run.wall_s = -1.0,
            |run| run.collectives_s.max = f64::NAN,
            |run| run.nodes = 9,
            |run| run.ranks = u64::MAX,
            |run| run.waiting_share = Some(-3.0),
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            assert!(judged(change).is_err(), "{number}");
        }
    }

    #[test]
    fn words_of_an_account_can_be_shown() {
        let run = judged(|run| {
            run.program = "a\u{1b}[31m\nb".to_owned();
            run.label = "x".repeat(1 << 20);
        });
        let run = run.expect("nothing else is wrong");
        assert_eq!(run.program, "a·[31m·b");
        assert!(run.label.len() <= WORD_BYTES_MAX);
    }
}
