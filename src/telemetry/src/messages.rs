//! Point-to-point messages of any program: `rank-N.csv`, as `colltune run --messages` leaves them.

mod summary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::FolderError;
use crate::matrix::{self, Matrix};
use crate::rows::Partner;

pub use summary::MessageSummary;

/// The first line of a file (`messages/src/counts.rs`).
const HEADER: &str = "rank,ranks,what,partner,bytes_min,count,bytes,time_ns,longest_ns";
/// Of a rank with 16,384 partners it has some megabytes.
const FILE_BYTES_MAX: u64 = 1 << 28;
/// More than any machine has.
const RANKS_MAX: u64 = 1 << 24;

/// Calls of one function. Times are nanoseconds; functions that do not wait have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CallsOf {
    pub function: String,
    pub calls: u64,
    pub time: Option<u64>,
    pub longest: Option<u64>,
}

/// Messages of `bytes_min` bytes and more, up to the next class, from one rank to another; `to` is `None` for a process
/// outside of MPI_COMM_WORLD, or an unknown one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub to: Option<u32>,
    pub bytes_min: u64,
    pub messages: u64,
    pub bytes: u64,
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OneRank {
    rank: u32,
    n_ranks: u32,
    /// Of which `colltune run`.
    run: String,
    /// From MPI_Init to MPI_Finalize.
    elapsed: u64,
    calls: Vec<CallsOf>,
    sent: Vec<Class>,
}

/// What the ranks of one job recorded, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecording {
    folder: PathBuf,
    n_ranks: u32,
    ranks: BTreeMap<u32, OneRank>,
    warnings: Vec<String>,
}

impl MessageRecording {
    /// `None` where the folder holds no such file.
    ///
    /// Errors: a file that cannot be read or is damaged; files of different jobs.
    pub fn open(folder: &Path) -> Result<Option<MessageRecording>, FolderError> {
        let unreadable = |path: &Path, reason: String| FolderError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let entries = std::fs::read_dir(folder).map_err(|e| unreadable(folder, e.to_string()))?;
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("rank-") && name.ends_with(".csv")
        };
        let files = entries.flatten().map(|entry| entry.path()).filter(is_one);
        let mut read = Vec::new();
        for path in files {
            let text = colltune_files::read_text(&path, FILE_BYTES_MAX);
            let one = text
                .map_err(|error| error.to_string())
                .and_then(|text| one_rank(&text));
            read.push(one.map_err(|reason| unreadable(&path, reason))?);
        }
        of_ranks(folder, read)
    }

    /// Who sent how much to whom in the whole job.
    ///
    /// Errors: no rank sent anything.
    pub fn matrix(&self) -> Result<Matrix, FolderError> {
        let sent = || {
            self.ranks
                .iter()
                .flat_map(|(rank, one)| one.sent.iter().map(move |class| (rank, class)))
        };
        let rows: Vec<Partner> = sent()
            .filter_map(|(rank, class)| {
                Some(Partner {
                    rank: *rank,
                    partner: class.to?,
                    messages: class.messages,
                    bytes: class.bytes,
                    ..Partner::default()
                })
            })
            .collect();
        if rows.is_empty() {
            return Err(FolderError::TooLittle {
                folder: self.folder.clone(),
                reason: "no rank sent another one a message that was seen".into(),
            });
        }
        let mut matrix = matrix::of_whole_job(&rows, self.n_ranks);
        matrix.warnings = self.warnings.clone();
        let elsewhere = sent().filter(|(_, class)| class.to.is_none());
        let elsewhere: u64 = elsewhere
            .map(|(_, class)| class.messages)
            .fold(0, u64::saturating_add);
        if elsewhere > 0 {
            matrix.warnings.push(format!(
                "{elsewhere} messages are left out: they went to processes outside of MPI_COMM_WORLD, or to ranks that were \
                 not told"
            ));
        }
        Ok(matrix)
    }
}

/// Puts files together.
fn of_ranks(folder: &Path, read: Vec<OneRank>) -> Result<Option<MessageRecording>, FolderError> {
    let Some(first) = read.first().cloned() else {
        return Ok(None);
    };
    let mut ranks = BTreeMap::new();
    for one in read {
        let is_of_another = (&one.run, one.n_ranks) != (&first.run, first.n_ranks);
        if is_of_another || ranks.contains_key(&one.rank) {
            return Err(FolderError::TooLittle {
                folder: folder.to_owned(),
                reason: format!(
                    "it holds files of different jobs: that of rank {} is of run {} with {} ranks, that of rank {} of run {} \
                     with {}; keep those of one job",
                    first.rank, first.run, first.n_ranks, one.rank, one.run, one.n_ranks
                ),
            });
        }
        ranks.insert(one.rank, one);
    }
    let n_missing = first.n_ranks as usize - ranks.len();
    let missing = (n_missing > 0).then(|| {
        format!(
            "{n_missing} of {} ranks left no file, so what they sent is missing: they did not come to MPI_Finalize, or could \
             not write",
            first.n_ranks
        )
    });
    Ok(Some(MessageRecording {
        folder: folder.to_owned(),
        n_ranks: first.n_ranks,
        ranks,
        warnings: missing.into_iter().collect(),
    }))
}

/// Reads a file's text; says what is wrong with it.
fn one_rank(text: &str) -> Result<OneRank, String> {
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(
            "its first line is not that of recorded messages: another version or program wrote it"
                .into(),
        );
    }
    if !text.ends_with('\n') {
        return Err("it is cut off".into());
    }
    let mut one = OneRank::default();
    for (place, line) in lines.enumerate() {
        row(line, &mut one).ok_or_else(|| format!("line {} is damaged: {line}", place + 2))?;
    }
    match one.run.is_empty() {
        true => Err("it has no line with its run: it is cut off".into()),
        false => Ok(one),
    }
}

/// Adds a line; `None` for what cannot be.
fn row(line: &str, one: &mut OneRank) -> Option<()> {
    let cells: Vec<&str> = line.split(',').collect();
    let [
        rank,
        n_ranks,
        what,
        partner,
        bytes_min,
        count,
        bytes,
        time,
        longest,
    ] = cells[..]
    else {
        return None;
    };
    let number = |cell: &str| cell.parse::<u64>().ok();
    let known = |cell: &str| {
        if cell.is_empty() {
            Some(None)
        } else {
            number(cell).map(Some)
        }
    };
    let (rank, n_ranks) = (number(rank)?, number(n_ranks)?);
    let is_first = one.run.is_empty();
    if rank >= n_ranks || n_ranks > RANKS_MAX || is_first != (what == "run") {
        return None;
    }
    let of = (rank as u32, n_ranks as u32);
    if !is_first && of != (one.rank, one.n_ranks) {
        return None;
    }
    match what {
        "run" => {
            (one.rank, one.n_ranks) = of;
            one.run = Some(partner.to_owned()).filter(|run| !run.is_empty())?;
            one.elapsed = number(time)?;
        }
        "sent" => one.sent.push(Class {
            to: match partner {
                "outside" | "unknown" => None,
                rank => Some(number(rank).filter(|rank| *rank < n_ranks)? as u32),
            },
            bytes_min: number(bytes_min)?,
            messages: number(count)?,
            bytes: number(bytes)?,
        }),
        function => one.calls.push(CallsOf {
            function: function.to_owned(),
            calls: number(count)?,
            time: known(time)?,
            longest: known(longest)?,
        }),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rank: u32, rows: &str) -> String {
        let rows = rows.replace('#', &format!("{rank},3"));
        format!("{HEADER}\n{rank},3,run,7-1,,,,1000,\n{rows}")
    }

    fn recorded(texts: &[String]) -> Result<MessageRecording, FolderError> {
        let read = texts
            .iter()
            .map(|text| one_rank(text).expect("whole"))
            .collect();
        of_ranks(Path::new("m"), read).map(|found| found.expect("files"))
    }

    #[test]
    fn classes_of_a_pair_are_added_up_and_missing_ranks_and_other_worlds_are_told() {
        let texts = [
            file(
                0,
                "#,MPI_Recv,,,4,,500,200\n#,MPI_Isend,,,3,,,\n#,sent,2,8,2,20,,\n#,sent,2,0,1,0,,\n#,sent,outside,1,5,5,,\n",
            ),
            file(2, "#,MPI_Recv,,,1,,100,100\n#,sent,0,64,1,100,,\n"),
        ];
        let recording = recorded(&texts).expect("one job");
        let matrix = recording.matrix().expect("messages");
        assert_eq!(
            matrix.csv(),
            "from,to,messages,bytes\n0,2,3.000,20.0\n2,0,1.000,100.0\n"
        );
        assert_eq!(
            (matrix.n_ranks, matrix.steps, matrix.warnings.len()),
            (3, None, 2)
        );
        let summary = recording.summary();
        assert_eq!(
            (
                summary.total.messages,
                summary.total.bytes,
                summary.total.waited
            ),
            (9, 125, 600)
        );
        let recv = summary
            .calls
            .iter()
            .find(|calls| calls.function == "MPI_Recv");
        let recv = recv.map(|calls| (calls.calls, calls.time, calls.longest));
        assert_eq!(recv, Some((5, Some(600), Some(200))));
        assert!(summary.text().contains("MPI_Isend") && matrix.text().contains("0 -> 2"));
    }

    #[test]
    fn damaged_files_and_files_of_different_jobs_are_refused_by_name() {
        let whole = file(0, "#,sent,2,8,2,20,,\n");
        for damaged in [
            &whole[1..],
            &whole[..whole.len() - 1],
            HEADER,
            &whole.replace("sent,2", "sent,3"),
            &whole.replace("20,,", "20,"),
            &whole.replace("8,2,20", "8,-2,20"),
            &whole.replace("0,3,sent", "1,3,sent"),
            &whole.replace("7-1", ""),
        ] {
            assert!(one_rank(damaged).is_err(), "{damaged}");
        }
        for other in [
            file(1, "").replace("7-1", "8-1"),
            file(1, "").replace(",3,", ",4,"),
            file(0, ""),
        ] {
            let error = recorded(&[whole.clone(), other])
                .expect_err("two jobs")
                .to_string();
            assert!(error.contains("different jobs"), "{error}");
        }
    }
}
