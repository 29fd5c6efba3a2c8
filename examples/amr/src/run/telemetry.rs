//! What each step took on each rank and what it sent, written by the first rank of each group as Parquet.

use super::agree::agree;
use super::state::{Run, Telemetry};
use crate::checksum::Broken;
use crate::output::publish::make_folder;
use crate::telemetry::{
    BlockRow, Detail, Kind, MessageRow, Phase, PhaseRow, Rows, Traffic, Writer,
};

/// Steps whose rows are gathered together.
const STEPS: u64 = 64;
/// Rows of blocks that a rank holds before they are gathered: about 10 MB.
const BLOCK_ROWS: usize = 1 << 18;

impl Run<'_> {
    /// Creates the files of `--telemetry`.
    ///
    /// Errors: a group's first rank cannot; every rank is told.
    pub(super) fn open_telemetry(&mut self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        let Some(folder) = &options.telemetry else {
            return Ok(());
        };
        let detail = match options.telemetry_blocks {
            true => Detail::Blocks,
            false => Detail::Ranks,
        };
        let number = self.ranks.rank() / options.telemetry_group as usize;
        let group = self.ranks.split(number);
        let (mut writer, mut complaint) = (None, None);
        if group.rank() == 0 {
            let made = make_folder(folder);
            let created = made.and_then(|()| {
                Writer::create(folder, number, detail).map_err(|error| error.to_string())
            });
            match created {
                Ok(created) => writer = Some(created),
                Err(what) => complaint = Some(what),
            }
        }
        self.telemetry = Some(Telemetry {
            phases_before: self.seconds_by_phase().map(|(_, seconds)| seconds),
            traffic_before: self.traffic(),
            blocks_before: Vec::new(),
            detail,
            rows: Rows::default(),
            group,
            writer,
        });
        let failed = |what| Err(Broken::Output { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }

    fn seconds_by_phase(&self) -> [(Phase, f64); Phase::ALL.len()] {
        let (times, spent) = (&self.times, &self.exchange.spent);
        [
            (Phase::Compute, times.calc - times.intake),
            (Phase::Pack, spent.pack),
            (Phase::Wait, spent.wait),
            (Phase::Unpack, spent.unpack + spent.copy + times.intake),
            (Phase::Allreduce, times.reduce),
            (Phase::Refine, times.refine),
            (Phase::Place, times.place),
            (Phase::Migrate, times.migrate),
            (Phase::Output, times.output),
        ]
    }

    fn traffic(&self) -> Traffic {
        self.counting.traffic().and(&self.exchange.spent.traffic)
    }

    /// Before a step: what blocks have taken so far.
    pub(super) fn note_blocks(&mut self) {
        if let Some(telemetry) = &mut self.telemetry
            && telemetry.detail == Detail::Blocks
        {
            telemetry.blocks_before.clone_from(&self.block_times);
        }
    }

    /// After the stages of a step, before refinement: what each block took in it.
    pub(super) fn take_blocks(&mut self, step: u64) {
        let Some(telemetry) = &mut self.telemetry else {
            return;
        };
        let (leaves, rank) = (self.mesh.leaves(), self.ranks.rank() as u32);
        let seconds = self.block_times.iter().zip(&telemetry.blocks_before);
        let blocks = self.own_leaves.iter().zip(seconds);
        telemetry
            .rows
            .blocks
            .extend(blocks.map(|(&i, (now, before))| BlockRow {
                step,
                rank,
                block: leaves[i].packed(),
                level: leaves[i].level,
                compute_ns: nanoseconds(now - before),
            }));
    }

    /// Takes the rows of a step that has ended; every so many steps those of all ranks are written.
    ///
    /// Errors: a rank cannot write; every rank is told.
    pub(super) fn take_rows(&mut self, step: u64) -> Result<(), Broken> {
        let (phases, traffic) = (self.seconds_by_phase(), self.traffic());
        let rank = self.ranks.rank() as u32;
        let Some(telemetry) = &mut self.telemetry else {
            return Ok(());
        };
        for ((phase, seconds), before) in phases.into_iter().zip(&mut telemetry.phases_before) {
            telemetry.rows.phases.push(PhaseRow {
                step,
                rank,
                phase,
                time_ns: nanoseconds(seconds - *before),
            });
            *before = seconds;
        }
        let sent = traffic.since(&telemetry.traffic_before);
        telemetry.traffic_before = traffic;
        for kind in Kind::ALL {
            let (messages, bytes) = sent.of(kind);
            // Kinds that a step does not have need no row.
            if messages > 0 || bytes > 0 {
                telemetry.rows.messages.push(MessageRow {
                    step,
                    rank,
                    kind,
                    messages,
                    bytes,
                });
            }
        }
        // Blocks of all ranks by number, which every rank knows: all decide alike.
        let per_rank = self.mesh.len() / self.ranks.n_ranks();
        let steps = match telemetry.detail {
            Detail::Ranks => STEPS,
            Detail::Blocks => STEPS.min((BLOCK_ROWS / per_rank.max(1)) as u64).max(1),
        };
        match step.is_multiple_of(steps) {
            true => self.write_rows(step),
            false => Ok(()),
        }
    }

    fn write_rows(&mut self, step: u64) -> Result<(), Broken> {
        let Some(telemetry) = &mut self.telemetry else {
            return Ok(());
        };
        let own = std::mem::take(&mut telemetry.rows).encode();
        let all = telemetry.group.allgather_bytes(&own);
        let mut complaint = None;
        if let Some(writer) = &mut telemetry.writer {
            let mut rows = Rows::default();
            for bytes in &all {
                rows.append(Rows::decode(bytes).expect("encoded just now"));
            }
            complaint = writer.push(&rows).err().map(|error| error.to_string());
        }
        let failed = |what| Err(Broken::Output { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }

    /// Writes what is left and moves the files to their places.
    pub(super) fn close_telemetry(&mut self, step: u64) -> Result<(), Broken> {
        if self.telemetry.is_none() {
            return Ok(());
        }
        self.write_rows(step)?;
        let writer = self.telemetry.take().and_then(|telemetry| telemetry.writer);
        let finished = writer.map_or(Ok(()), Writer::finish);
        let complaint = finished.err().map(|error| error.to_string());
        let failed = |what| Err(Broken::Output { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1e9) as u64
}
