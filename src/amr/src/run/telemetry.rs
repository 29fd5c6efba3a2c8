//! What each step took on each rank and what it sent, written by the first rank of each group as Parquet.

use super::agree::agree;
use super::state::{Run, Telemetry};
use crate::checksum::Broken;
use crate::cost::Slowness;
use crate::output::publish::make_folder;
use crate::telemetry::about;
use crate::telemetry::cadence::steps_between_writes;
use crate::telemetry::host::{Place, Usage, numbered};
use crate::telemetry::{Class, Kind, Phase, Rounds, Rows, RunNames, Table, Traffic, Writer};

impl Run<'_> {
    /// Creates the files of `--telemetry`, and starts to record.
    ///
    /// Errors: a group's first rank cannot; every rank returns the error.
    pub(super) fn open_telemetry(&mut self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        let Some(folder) = &options.telemetry else {
            return Ok(());
        };
        let number = self.ranks.rank() / options.telemetry_group as usize;
        let group = self.ranks.split(number);
        let places = self.ranks.allgather_bytes(&Place::here().encode());
        let places: Vec<Place> = places.iter().map(|bytes| Place::decode(bytes)).collect();
        let (nodes, hosts) = numbered(places.iter().map(|place| place.host.as_str()));
        let (clocks, _) = numbered(places.iter().map(|place| place.clock.as_str()));
        let (mut writer, mut complaint) = (None, None);
        if group.rank() == 0 {
            let made = make_folder(folder);
            let created = made.and_then(|()| {
                let about = about::of(&self.settings.options.words, self.ranks.n_ranks());
                let levers = self.settings.levers.iter();
                let levers = levers.map(|lever| (lever.name.to_owned(), lever.names.clone()));
                let names = RunNames {
                    hosts,
                    levers: levers.collect(),
                };
                let created = Writer::create(folder, number, &self.tables(), names, &about);
                created.map_err(|error| error.to_string())
            });
            match created {
                Ok(created) => writer = Some(created),
                Err(what) => complaint = Some(what),
            }
        }
        let failed = |what| Err(Broken::Output { step, what });
        agree(self.ranks, complaint).map_or(Ok(()), failed)?;
        let rounds = match options.telemetry_rounds {
            true => Rounds::Kept,
            false => Rounds::Left,
        };
        let rank = self.ranks.rank();
        self.counting.recorder.start(rank, step + 1, rounds);
        if options.telemetry_spans {
            self.clock().keep_spans();
        }
        self.telemetry = Some(Telemetry {
            phases_before: self.clock().spent().1,
            traffic_before: self.traffic(),
            usage_before: Usage::now(),
            blocks_before: Vec::new(),
            wants_blocks: options.telemetry_blocks,
            node: nodes[rank],
            clock: clocks[rank],
            rows: Rows::default(),
            group,
            writer,
        });
        Ok(())
    }

    fn tables(&self) -> Vec<Table> {
        let options = &self.settings.options;
        let wanted = Table::ALL.into_iter().filter(|table| match table {
            Table::Blocks => options.telemetry_blocks,
            Table::Rounds => options.telemetry_rounds,
            Table::Spans => options.telemetry_spans,
            Table::Epochs => !self.settings.levers.is_empty(),
            _ => true,
        });
        wanted.collect()
    }

    fn traffic(&self) -> Traffic {
        self.counting.traffic().and(&self.exchange.spent.traffic)
    }

    /// Whether what blocks take has rows.
    pub(super) fn wants_blocks(&self) -> bool {
        let telemetry = self.telemetry.as_ref();
        telemetry.is_some_and(|telemetry| telemetry.wants_blocks)
    }

    /// Before a step: what blocks have taken so far, and how slow this rank is made.
    pub(super) fn begin_step(&mut self, step: u64) {
        let slow = &self.settings.options.slow;
        self.slowness = Slowness::of(slow, self.ranks.rank(), step);
        self.counting.recorder.begin_step(step);
        if let Some(telemetry) = &mut self.telemetry
            && telemetry.wants_blocks
        {
            telemetry.blocks_before.clone_from(&self.block_times);
        }
    }

    /// After the stages of a step, before refinement: what each block took in it.
    pub(super) fn take_blocks(&mut self, step: u64) {
        let Some(telemetry) = self.telemetry.as_mut().filter(|t| t.wants_blocks) else {
            return;
        };
        let (leaves, rank) = (self.mesh.leaves(), self.ranks.rank() as u64);
        let seconds = self.block_times.iter().zip(&telemetry.blocks_before);
        for (nth, (&i, (now, before))) in self.own_leaves.iter().zip(seconds).enumerate() {
            let (leaf, near_shock) = (leaves[i], self.near_shock[nth]);
            let class = match near_shock {
                true => Class::NearShock,
                false => Class::Plain,
            };
            let row = [
                step,
                rank,
                leaf.packed(),
                leaf.level.into(),
                nanoseconds(now - before),
                class as u64,
                self.settings.cost.iterations(leaf, || near_shock).into(),
            ];
            telemetry.rows.push(Table::Blocks, row);
        }
    }

    /// Takes the rows of a step that has ended; every so many steps those of all ranks are written.
    ///
    /// Errors: a rank cannot write; every rank returns the error.
    pub(super) fn take_rows(&mut self, step: u64) -> Result<(), Broken> {
        let (_, phases) = match self.telemetry {
            Some(_) => self.clock().spent(),
            None => return Ok(()),
        };
        let traffic = self.traffic();
        let (rank, n_ranks) = (self.ranks.rank() as u64, self.ranks.n_ranks());
        self.take_spans(step);
        let n_rounds = self.counting.recorder.rounds_of_step() as usize;
        let steps = steps_between_writes(self.settings, self.mesh.len(), n_ranks, n_rounds);
        // What telemetry itself takes is the next step's.
        self.counting.recorder.begin_step(step + 1);
        let Some(telemetry) = &mut self.telemetry else {
            return Ok(());
        };
        for (phase, (now, before)) in phases.iter().zip(telemetry.phases_before).enumerate() {
            let row = [step, rank, phase as u64, now - before];
            telemetry.rows.push(Table::Phases, row);
        }
        telemetry.phases_before = phases;
        let sent = traffic.since(&telemetry.traffic_before);
        telemetry.traffic_before = traffic;
        for kind in Kind::ALL {
            let (messages, bytes) = sent.of(kind);
            // Kinds that a step does not have need no row.
            if messages > 0 || bytes > 0 {
                let row = [step, rank, kind as u64, messages, bytes];
                telemetry.rows.push(Table::Messages, row);
            }
        }
        match step.is_multiple_of(steps) {
            true => self.write_rows(step),
            false => Ok(()),
        }
    }

    fn take_spans(&mut self, step: u64) {
        let (spans, rank) = (self.clock().take_spans(), self.ranks.rank() as u64);
        let Some(telemetry) = &mut self.telemetry else {
            return;
        };
        for span in spans {
            let row = [
                step,
                rank,
                span.phase as u64,
                span.begin,
                span.end - span.begin,
            ];
            telemetry.rows.push(Table::Spans, row);
        }
    }

    fn write_rows(&mut self, step: u64) -> Result<(), Broken> {
        let _output = self.clock().during(Phase::Output);
        let rank = self.ranks.rank() as u64;
        let Some(telemetry) = &mut self.telemetry else {
            return Ok(());
        };
        let usage = Usage::now();
        let new = usage.since(telemetry.usage_before);
        telemetry.usage_before = usage;
        let mut rows = std::mem::take(&mut telemetry.rows);
        rows.append(self.counting.recorder.take_rows());
        rows.push(
            Table::Ranks,
            [
                step,
                rank,
                telemetry.node,
                telemetry.node,
                new.core,
                telemetry.clock,
                new.voluntary,
                new.involuntary,
                new.faults,
            ],
        );
        // Only the first rank of a group holds more than its own, and of each other rank what it has just sent.
        let own = rows.encode();
        drop(rows);
        let mut rows = Rows::default();
        telemetry.group.gather_bytes(&own, &mut |bytes| {
            rows.append(Rows::decode(bytes).expect("encoded just now"));
        });
        drop(own);
        let mut complaint = None;
        if let Some(writer) = &mut telemetry.writer {
            rows.sort();
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
        self.counting.recorder.close_partners();
        self.take_spans(step);
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
