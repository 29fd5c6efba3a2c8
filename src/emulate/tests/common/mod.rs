//! Runs of the mini-app on ranks in threads of this process, recorded and read back.
#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::path::Path;
use std::time::Instant;

use colltune_amr::leaf::Leaf;
use colltune_amr::options;
use colltune_amr::ranks::threads;
use colltune_amr::settings::Settings;
use colltune_amr::telemetry::{Kind, Phase};
use colltune_emulate::axes::Network;
use colltune_emulate::cost::{BlockRow, Costs, MessageRow, PhaseRow};
use colltune_emulate::machine::{self, Machine};
use colltune_emulate::mesh::{self, Recording, settings};
use colltune_emulate::price::Choices;
use colltune_emulate::program::History;
use colltune_emulate::run::Scenario;
use colltune_telemetry::folder::Wanted;
use colltune_telemetry::{Folder, rows};

pub const SPHERE: &str = "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 2 --refine_freq 2 \
    --num_vars 3 --stages_per_ts 3 --checksum_freq 2 --object 2 1 .2 .3 .4 .15 .04 .02 .15 .15 .15 0 0 0";
pub const GAS: &str = "--physics euler --sedov_centre .3 .4 .2 --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 \
    --num_refine 2 --refine_freq 2";

pub struct Recorded {
    pub mesh: Recording,
    pub phases: Vec<PhaseRow>,
    pub messages: Vec<MessageRow>,
}

/// Runs a line on `n_ranks` threads with telemetry, and reads it.
pub fn recorded(n_ranks: usize, line: &str) -> Recorded {
    let folder = tempfile::tempdir().expect("a folder");
    let line = format!(
        "{line} --telemetry {} --telemetry_blocks",
        folder.path().display()
    );
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let program = std::iter::once("colltune-amr".to_owned());
    let program: Vec<String> = program.chain(words.iter().cloned()).collect();
    threads::run(n_ranks, |ranks| {
        let options = options::parse(program.clone()).expect("a good line");
        let settings = Settings::new(options, n_ranks).unwrap_or_else(|r| panic!("{}", r.text));
        let done = colltune_amr::run::run(ranks, &settings, Instant::now(), &mut |_| {});
        done.unwrap_or_else(|broken| panic!("{broken}"));
    });
    read(folder.path(), words, n_ranks)
}

fn read(path: &Path, words: Vec<String>, n_ranks: usize) -> Recorded {
    let folder = Folder::open(path).expect("telemetry");
    let blocks: Vec<BlockRow> = rows::blocks(&folder)
        .into_iter()
        .map(|row| BlockRow {
            step: row.step,
            rank: row.rank,
            leaf: Leaf::from_packed(row.block).expect("a leaf"),
            time_ns: row.compute as f64,
            iterations: row.iterations,
        })
        .collect();
    let phases = rows::phases(&folder).expect("phases").into_iter();
    let phases = phases.map(|row| PhaseRow {
        step: row.step,
        rank: row.rank,
        phase: Phase::ALL
            .into_iter()
            .find(|phase| phase.name() == &*row.phase)
            .expect("a phase"),
        time_ns: row.time as f64,
    });
    const MESSAGES: Wanted = Wanted {
        table: "messages",
        numbers: &["step", "rank", "messages", "bytes"],
        texts: &["kind"],
        hint: "",
    };
    let columns = folder.read(&MESSAGES).expect("messages");
    let message = |i: usize| MessageRow {
        step: columns.numbers[0][i] as u64,
        rank: columns.numbers[1][i] as u32,
        kind: Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == &*columns.texts[0][i])
            .expect("a kind"),
        messages: columns.numbers[2][i] as u64,
        bytes: columns.numbers[3][i] as u64,
    };
    Recorded {
        messages: (0..columns.numbers[0].len()).map(message).collect(),
        phases: phases.collect(),
        mesh: Recording::new(Some(mesh::VERSION), words, n_ranks, &blocks).expect("a recording"),
    }
}

pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Costs of one nanosecond an update, without noise.
pub fn plain_costs(settings: &Settings) -> Costs {
    Costs::uniform(settings.work, 1.0)
}

/// A synthetic machine with `ppn` ranks and cores on each node.
pub fn a_machine(ppn: u32) -> Machine {
    let mut machine = machine::preset("hera").expect("a preset");
    machine.shape.ppn = ppn;
    machine.shape.cores_per_node = f64::from(ppn);
    machine
}

/// A run of a mesh whose objects decide, without noise.
pub fn scenario<'a>(
    settings: &'a Settings,
    n_ranks: usize,
    costs: &'a Costs,
    machine: &'a Machine,
) -> Scenario<'a> {
    Scenario {
        settings,
        n_ranks,
        costs,
        machine,
        history: History::Objects,
        placer: None,
        timer: None,
        choices: Choices::default(),
        network: Network::Events,
        slow: None,
        noise: None,
    }
}

/// Six steps of [`SPHERE`].
pub fn sphere(n_ranks: usize) -> Settings {
    settings(
        &words(&format!("{SPHERE} --num_tsteps 6")),
        n_ranks,
        n_ranks,
    )
    .unwrap()
}
