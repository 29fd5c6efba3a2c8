//! The ledger of a database: what a job says of itself, in one file of `incoming/`.
//!
//! When it begins it writes a line into `JOB.run.open`, so that one which dies is known to have been. When it ends it
//! adds the whole account as another line and calls the file `JOB.run`; the last line counts.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use colltune_core::account::{JobFacts, JobSummary};
use colltune_core::decide::rules::JobTerms;
use colltune_core::roster;

use super::Account;
use crate::incoming;
use crate::quiet::quietly;
use crate::world::World;

/// What a job adds to its file before its end: with the last line it stays below what readers take (1 MiB).
const TOLD_BYTES_MAX: u64 = 512 << 10;

impl Account {
    /// Says that the job begins; on rank 0, where the database has a ledger.
    pub fn begin(
        &self,
        rank: u32,
        node_of_rank: &[u32],
        terms: &JobTerms,
        (job, library): (&str, &str),
    ) {
        if let Some(folder) = self.to.ledger.as_ref().filter(|_| rank == 0) {
            let begun = JobSummary::begun(self.facts(node_of_rank, terms, (job, library)));
            // As at the end: who may not write there is none of the ledger's.
            let _ = begin(Path::new(folder), &begun);
        }
    }

    /// Says once more that the job runs, with the epochs of its levers so far: those of a job that dies are kept.
    pub fn goes_on(&self, world: &World, terms: &JobTerms, (job, library): (&str, &str)) {
        if let Some(folder) = self.to.ledger.as_ref().filter(|_| world.rank == 0) {
            let so_far = JobSummary::begun(self.facts(&world.node_of_rank, terms, (job, library)));
            let line = so_far.line();
            let told = self
                .told_bytes
                .fetch_add(line.len() as u64, Ordering::Relaxed);
            if told + line.len() as u64 > TOLD_BYTES_MAX {
                return;
            }
            // As at the end.
            let _ = go_on(Path::new(folder), &so_far.job, &line);
        }
    }

    /// What is known of a job from its first moment on.
    pub(super) fn facts(
        &self,
        node_of_rank: &[u32],
        terms: &JobTerms,
        (job, library): (&str, &str),
    ) -> JobFacts {
        let (nodes, ppn) = roster::extent(node_of_rank);
        JobFacts {
            job: job.to_owned(),
            program: self.named.program.clone(),
            arguments_hash: self.named.arguments_hash.clone(),
            path_hash: self.named.path_hash.clone(),
            label: self.named.label.clone(),
            levers: self.named.levers.clone(),
            asked: self
                .asked
                .lock()
                .map_or_else(|_| Vec::new(), |asked| asked.clone()),
            mode: terms.mode.name().to_owned(),
            library: library.to_owned(),
            machine: terms.cells.machine.clone(),
            generation: terms.cells.generation,
            ranks: node_of_rank.len() as u64,
            nodes,
            ppn,
            seed: terms.seed,
            runs_choices: terms.mode.exploits() && terms.cells.generation > 0,
            started_unix_ms: self.began_unix_ms,
            ..JobFacts::default()
        }
    }
}

fn open(folder: &Path, job: &str) -> PathBuf {
    folder.join(format!("{job}.run.open"))
}

fn begin(folder: &Path, begun: &JobSummary) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let open = open(folder, &begun.job);
    let mut file = incoming::create(&open)?;
    let written = write_at_once(&mut file, &begun.line());
    if written.is_err() {
        let _ = std::fs::remove_file(&open);
    }
    written
}

fn go_on(folder: &Path, job: &str, line: &str) -> io::Result<()> {
    let mut file = incoming::append(&open(folder, job))?;
    write_at_once(&mut file, line)
}

/// Adds the account of a job that ends, and says so by the file's name.
pub(super) fn end(folder: &Path, summary: &JobSummary) -> io::Result<()> {
    let open = open(folder, &summary.job);
    // A training may have taken the beginning for that of a job that died.
    let mut file = incoming::append(&open)?;
    write_at_once(&mut file, &summary.line())?;
    std::fs::rename(&open, folder.join(format!("{}.run", summary.job)))
}

pub(super) fn write_at_once(file: &mut File, line: &str) -> io::Result<()> {
    let written = quietly(|| file.write(line.as_bytes()))?;
    if written < line.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}
