//! Whether what a job said of itself at its end is believed: it is a claim of who owns the file, as a trace is.

use colltune_core::account::{JobSummary, OverRanks};
use colltune_core::levers::LEVERS_MAX;
use colltune_core::levers::asked::{ARMS_MAX, ASKED_MAX, Asked, EPOCHS_MAX, Epoch};

use crate::owners::Owners;

/// No job runs for longer: about thirty years.
const SECONDS_MAX: f64 = 1e9;
/// Nor asks more often.
const EPOCHS_OF_A_JOB_MAX: u64 = 1 << 40;
/// Powers of two below the sizes that there are.
const CLASSES: std::ops::RangeInclusive<i32> = -1075..=1023;
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
    // Jobs are found by their names, so this one is not altered for show.
    if !is_plain(job) {
        return Err("its job's name cannot be shown".to_owned());
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
        &mut run.path_hash,
        &mut run.label,
    ] {
        show(word);
    }
    run.levers = std::mem::take(&mut run.levers)
        .into_iter()
        .map(|(mut name, mut arm)| {
            show(&mut name);
            show(&mut arm);
            (name, arm)
        })
        .collect();
    for one in &mut run.refused {
        show(&mut one.cause);
        show(&mut one.reason);
        show(&mut one.remedy);
    }
    for asked in &mut run.asked {
        show(&mut asked.place.lever);
        asked.arms.iter_mut().for_each(show);
    }
    Ok(run)
}

fn is_possible(run: &JobSummary) -> bool {
    let is_time = |seconds: f64| (0.0..=SECONDS_MAX).contains(&seconds);
    let are_times = |times: OverRanks| is_time(times.mean) && is_time(times.max);
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    let fits = run.ranks <= u64::from(u32::MAX) && run.nodes <= run.ranks && run.ppn <= run.ranks;
    let are_shares =
        |tuned: f64, waiting: Option<f64>| is_share(tuned) && waiting.is_none_or(is_share);
    let of_collectives = run.by_collective.iter().all(|one| {
        let of_sizes = one
            .by_size
            .iter()
            .all(|size| is_time(size.seconds) && are_shares(size.tuned_share, size.waiting_share));
        are_times(one.seconds) && are_shares(one.tuned_share, one.waiting_share) && of_sizes
    });
    fits && run.levers.len() <= LEVERS_MAX
        && run.asked.len() <= ASKED_MAX
        && run
            .asked
            .iter()
            .all(|asked| is_possible_question(asked, run.ranks))
        && is_time(run.wall_s)
        && run.whole_s.is_none_or(is_time)
        && are_times(run.collectives_s)
        && are_times(run.overhead_s)
        && of_collectives
        && are_shares(run.tuned_share, run.waiting_share)
        && run.best_possible_gain.is_finite()
        && run.estimated_gain.is_none_or(f64::is_finite)
}

fn is_possible_question(asked: &Asked, ranks: u64) -> bool {
    let Asked {
        place,
        arms,
        epochs,
        all,
    } = asked;
    let is_measured = |epoch: &Epoch| {
        usize::from(epoch.arm) < arms.len()
            && epoch.seconds > 0.0
            && epoch.seconds <= SECONDS_MAX
            && epoch.work > 0.0
            && epoch.work.is_finite()
    };
    (1..=ARMS_MAX).contains(&arms.len())
        && epochs.len() <= EPOCHS_MAX
        && (epochs.len() as u64..=EPOCHS_OF_A_JOB_MAX).contains(all)
        && CLASSES.contains(&place.class)
        && [place.nodes, place.ppn, place.ranks]
            .iter()
            .all(|count| (1..=ranks).contains(count))
        && epochs.iter().all(is_measured)
}

fn is_plain(word: &str) -> bool {
    word.len() <= WORD_BYTES_MAX && !word.chars().any(char::is_control)
}

fn show(word: &mut String) {
    if !is_plain(word) {
        let plain = |sign: char| if sign.is_control() { '·' } else { sign };
        *word = word.chars().take(WORD_BYTES_MAX / 4).map(plain).collect();
    }
}

#[cfg(test)]
mod tests {
    use colltune_core::account::{Cause, JobFacts, KINDS, Refused, Together, kind};
    use colltune_core::collective::Collective;
    use colltune_core::levers::asked::LeverPlace;

    use super::*;

    /// A job that called a collective, and was refused another.
    fn account() -> JobSummary {
        let facts = JobFacts {
            job: "job".to_owned(),
            ranks: 8,
            nodes: 4,
            ppn: 2,
            refused: vec![Refused::new(Cause::Needs, Some(Collective::Bcast), 1)],
            asked: vec![Asked {
                place: LeverPlace {
                    lever: "placement".to_owned(),
                    class: 4,
                    nodes: 4,
                    ppn: 2,
                    ranks: 8,
                },
                arms: ["contiguous", "spread"].map(str::to_owned).to_vec(),
                epochs: [Epoch {
                    arm: 1,
                    seconds: 0.25,
                    work: 5e-324,
                }]
                .into(),
                all: 1,
            }],
            ..JobFacts::default()
        };
        let mut kinds = vec![Together::default(); KINDS];
        kinds[kind(Collective::Allreduce, 8)] = Together {
            calls: 8,
            ns: 800,
            ..Together::default()
        };
        JobSummary::new(facts, &kinds)
    }

    fn judged(change: impl FnOnce(&mut JobSummary)) -> Result<JobSummary, String> {
        let mut run = account();
        change(&mut run);
        believed(run, "job", 7, &Owners::default())
    }

    #[test]
    fn an_account_of_another_job_or_of_impossible_times_is_not_believed() {
        assert_eq!(judged(|_| ()), Ok(account()));
        type Change = fn(&mut JobSummary);
        let wrong: &[(&str, Change)] = &[
            ("job", |run| run.job = "another".to_owned()),
            ("wall, long", |run| run.wall_s = 1e300),
            ("wall, negative", |run| run.wall_s = -1.0),
            ("mean", |run| run.collectives_s.mean = -1.0),
            ("max", |run| run.collectives_s.max = f64::NAN),
            ("overhead", |run| run.overhead_s.max = 1e10),
            ("nodes", |run| run.nodes = 9),
            ("ppn", |run| run.ppn = 9),
            ("ranks", |run| run.ranks = u64::MAX),
            ("tuned", |run| run.tuned_share = 1.5),
            ("waiting", |run| run.waiting_share = Some(-3.0)),
            ("possible", |run| run.best_possible_gain = f64::INFINITY),
            ("estimated", |run| run.estimated_gain = Some(f64::NAN)),
            ("of one", |run| run.by_collective[0].seconds.mean = 1e300),
            ("tuned of one", |run| run.by_collective[0].tuned_share = 2.0),
            ("waiting of one", |run| {
                run.by_collective[0].waiting_share = Some(2.0);
            }),
            ("levers, many", |run| {
                run.asked = vec![run.asked[0].clone(); ASKED_MAX + 1];
            }),
            ("arms, none", |run| run.asked[0].arms.clear()),
            ("arms, many", |run| {
                run.asked[0].arms = vec!["arm".to_owned(); ARMS_MAX + 1];
            }),
            ("arm, unknown", |run| run.asked[0].epochs[0].arm = 2),
            ("epochs, many", |run| {
                let epoch = run.asked[0].epochs[0];
                run.asked[0].epochs = vec![epoch; EPOCHS_MAX + 1].into();
                run.asked[0].all = 1 << 20;
            }),
            ("epochs, more than all", |run| run.asked[0].all = 0),
            ("epochs, beyond all", |run| run.asked[0].all = u64::MAX),
            ("class, beyond all", |run| {
                run.asked[0].place.class = i32::MAX
            }),
            ("epoch, long", |run| {
                run.asked[0].epochs[0].seconds = 1e300;
            }),
            ("epoch, of no time", |run| {
                run.asked[0].epochs[0].seconds = 0.0
            }),
            ("work, none", |run| run.asked[0].epochs[0].work = 0.0),
            ("work, endless", |run| {
                run.asked[0].epochs[0].work = f64::INFINITY;
            }),
            ("lever of more ranks", |run| run.asked[0].place.ranks = 9),
            ("lever of no node", |run| run.asked[0].place.nodes = 0),
            ("of a size", |run| {
                run.by_collective[0].by_size[0].seconds = -1.0
            }),
            ("tuned of a size", |run| {
                run.by_collective[0].by_size[0].tuned_share = -1.0;
            }),
            ("waiting of a size", |run| {
                run.by_collective[0].by_size[0].waiting_share = Some(2.0);
            }),
        ];
        for (name, change) in wrong {
            assert!(judged(change).is_err(), "{name}");
        }
    }

    #[test]
    fn a_job_whose_name_cannot_be_shown_is_not_believed() {
        for name in ["a\u{1b}[2J".to_owned(), "a\nb".to_owned(), "x".repeat(2000)] {
            let mut run = account();
            run.job = name.clone();
            let judged = believed(run, &name, 7, &Owners::default());
            assert!(judged.is_err_and(|said| said.contains("cannot be shown")));
        }
    }

    #[test]
    fn words_of_an_account_can_be_shown() {
        let words: [fn(&mut JobSummary) -> &mut String; 12] = [
            |run| &mut run.program,
            |run| &mut run.mode,
            |run| &mut run.library,
            |run| &mut run.machine,
            |run| &mut run.arguments_hash,
            |run| &mut run.path_hash,
            |run| &mut run.label,
            |run| &mut run.refused[0].cause,
            |run| &mut run.refused[0].reason,
            |run| &mut run.refused[0].remedy,
            |run| &mut run.asked[0].place.lever,
            |run| &mut run.asked[0].arms[1],
        ];
        for (number, word) in words.into_iter().enumerate() {
            let run = judged(|run| *word(run) = "a\u{1b}[31m\nb".to_owned());
            let mut run = run.expect("nothing else is wrong");
            assert_eq!(word(&mut run), "a·[31m·b", "{number}");
            let run = judged(|run| *word(run) = "é".repeat(1 << 20));
            let mut run = run.expect("nothing else is wrong");
            assert!(word(&mut run).len() <= WORD_BYTES_MAX, "{number}");
        }
    }
}
