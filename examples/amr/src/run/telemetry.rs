//! What each step took on each rank, written by rank 0 as Parquet.

use super::{Run, agree};
use crate::checksum::Broken;
use crate::telemetry::{Detail, Phase, PhaseRow, Rows, Writer};

/// Steps whose rows are gathered together.
const STEPS: u64 = 64;

/// Seconds by phase since the run's start, and rows that have not been gathered yet.
#[derive(Default)]
pub(super) struct Telemetry {
    before: [f64; N_PHASES],
    rows: Rows,
    /// On rank 0.
    writer: Option<Writer>,
}

const N_PHASES: usize = 8;

impl Run<'_> {
    /// Creates the files of `--telemetry`.
    ///
    /// Errors: rank 0 cannot; every rank is told.
    pub(super) fn open_telemetry(&mut self, step: u64) -> Result<(), Broken> {
        let Some(folder) = &self.settings.options.telemetry else {
            return Ok(());
        };
        let mut telemetry = Telemetry::default();
        let mut complaint = None;
        if self.ranks.rank() == 0 {
            let made = std::fs::create_dir_all(folder).map_err(|error| error.to_string());
            let writer = made.and_then(|()| {
                Writer::create(folder, 0, Detail::Ranks).map_err(|error| error.to_string())
            });
            match writer {
                Ok(writer) => telemetry.writer = Some(writer),
                Err(what) => complaint = Some(what),
            }
        }
        telemetry.before = self.seconds_by_phase().map(|(_, seconds)| seconds);
        self.telemetry = Some(telemetry);
        let failed = |what| Err(Broken::Output { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }

    fn seconds_by_phase(&self) -> [(Phase, f64); N_PHASES] {
        let (times, spent) = (&self.times, &self.exchange.spent);
        [
            (Phase::Compute, times.calc),
            (Phase::Pack, spent.pack + spent.copy),
            (Phase::Wait, spent.wait),
            (Phase::Unpack, spent.unpack),
            (Phase::Allreduce, times.reduce),
            (Phase::Refine, times.refine),
            (Phase::Place, times.place),
            (Phase::Migrate, times.migrate),
        ]
    }

    /// Takes the rows of a step that has ended; every so many steps rank 0 writes those of all ranks.
    ///
    /// Errors: rank 0 cannot write; every rank is told.
    pub(super) fn take_rows(&mut self, step: u64) -> Result<(), Broken> {
        let now = self.seconds_by_phase();
        let rank = self.ranks.rank() as u32;
        let Some(telemetry) = &mut self.telemetry else {
            return Ok(());
        };
        for ((phase, seconds), before) in now.into_iter().zip(&mut telemetry.before) {
            let time_ns = ((seconds - *before).max(0.0) * 1e9) as u64;
            *before = seconds;
            telemetry.rows.phases.push(PhaseRow {
                step,
                rank,
                phase,
                time_ns,
                calls: 1,
            });
        }
        match step.is_multiple_of(STEPS) {
            true => self.write_rows(step),
            false => Ok(()),
        }
    }

    fn write_rows(&mut self, step: u64) -> Result<(), Broken> {
        let Some(telemetry) = &mut self.telemetry else {
            return Ok(());
        };
        let own = std::mem::take(&mut telemetry.rows).encode();
        let all = self.ranks.allgather_bytes(&own);
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
        self.write_rows(step)?;
        let Some(telemetry) = self.telemetry.take() else {
            return Ok(());
        };
        let finished = telemetry.writer.map_or(Ok(()), Writer::finish);
        let complaint = finished.err().map(|error| error.to_string());
        let failed = |what| Err(Broken::Output { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)
    }
}
