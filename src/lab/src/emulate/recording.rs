//! Telemetry of the mini-app as the emulator takes it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use colltune_amr::leaf::Leaf;
use colltune_amr::telemetry::about::{RANKS_KEY, VERSION_KEY, WORDS_KEY};
use colltune_amr::telemetry::{Kind, Phase};
use colltune_emulate::EmulateError;
use colltune_emulate::cost::{BlockRow, Fit, MessageRow, Observed, PhaseRow, WorkRow, fit};
use colltune_emulate::mesh::Recording;
use colltune_telemetry::folder::Wanted;
use colltune_telemetry::{Folder, rows};
use parquet::file::reader::{FileReader, SerializedFileReader};

/// A recorded mesh, and what was measured and sent beside it.
pub struct Recorded {
    pub mesh: Recording,
    pub phases: Vec<PhaseRow>,
    pub messages: Vec<MessageRow>,
    pub work: Vec<WorkRow>,
}

impl Recorded {
    pub fn observed(&self) -> Observed<'_> {
        Observed {
            mesh: &self.mesh,
            phases: &self.phases,
            messages: &self.messages,
            work: &self.work,
        }
    }
}

/// The costs of the steps that `wanted` takes of all these runs, on ranks as fast as runs of other `sizes` say.
///
/// Errors: those of [`fit`].
pub fn fitted(
    runs: &[Recorded],
    sizes: &[Recorded],
    wanted: impl Fn(u64) -> bool,
) -> Result<Fit, EmulateError> {
    let [runs, sizes] = [runs, sizes].map(|runs| {
        runs.iter()
            .map(Recorded::observed)
            .collect::<Vec<Observed>>()
    });
    fit(&runs, &sizes, wanted)
}

const MESSAGES: Wanted = Wanted {
    table: "messages",
    numbers: &["step", "rank", "messages", "bytes"],
    texts: &["kind"],
    hint: "record them with `colltune-amr --telemetry FOLDER`",
};

/// Reads a folder of telemetry with blocks.
pub fn read(path: &Path) -> anyhow::Result<Recorded> {
    let folder = Folder::open(path)?;
    if !folder.has("blocks") {
        bail!(
            "find blocks.*.parquet in {}: record with --telemetry_blocks",
            path.display()
        );
    }
    let about = About::read(path)?;
    let blocks = rows::blocks(&folder).into_iter().map(|row| {
        let leaf = Leaf::from_packed(row.block);
        let leaf = leaf.with_context(|| format!("use block {:#x}: it is no leaf", row.block))?;
        Ok(BlockRow {
            step: row.step,
            rank: row.rank,
            leaf,
            time_ns: row.compute as f64,
            iterations: row.iterations,
        })
    });
    let blocks = blocks.collect::<anyhow::Result<Vec<_>>>()?;
    let named = |name: &str| Phase::ALL.into_iter().find(|phase| phase.name() == name);
    let phases = rows::phases(&folder)?.into_iter().filter_map(|row| {
        Some(PhaseRow {
            step: row.step,
            rank: row.rank,
            phase: named(&row.phase)?,
            time_ns: row.time as f64,
        })
    });
    let phases = phases.collect();
    let messages = messages(&folder)?;
    let windows = match folder.has("windows") {
        true => rows::windows(&folder, &(0..=u64::MAX))?,
        false => Vec::new(),
    };
    let work = windows.into_iter().map(|row| WorkRow {
        step: row.step,
        window: row.window,
        rank: row.rank,
        wall_ns: (row.arrive - row.begin - row.wait) as f64,
        cpu_ns: row.cpu as f64,
    });
    let work = work.collect();
    // A file that cannot be read is a hole in the mesh, not less of it.
    if let Some(warning) = folder.warnings().first() {
        bail!("read {}: {warning}", path.display());
    }
    let mesh = Recording::new(about.version.as_deref(), about.words, about.ranks, &blocks);
    Ok(Recorded {
        mesh: mesh.with_context(|| format!("read {}", path.display()))?,
        phases,
        messages,
        work,
    })
}

/// Messages and bytes by step, rank and kind.
pub type Sent = BTreeMap<(u64, u32, Kind), (u64, u64)>;

/// What a run without times of blocks tells: nanoseconds by phase, of all ranks, and what each rank sent.
pub fn spent_and_sent(path: &Path) -> anyhow::Result<(BTreeMap<String, f64>, Sent)> {
    let folder = Folder::open(path)?;
    let mut spent: BTreeMap<Arc<str>, f64> = BTreeMap::new();
    for row in rows::phases(&folder)? {
        *spent.entry(row.phase).or_insert(0.0) += row.time as f64;
    }
    let sent = messages(&folder)?.into_iter();
    let sent = sent.map(|row| ((row.step, row.rank, row.kind), (row.messages, row.bytes)));
    let spent = spent.into_iter().map(|(phase, ns)| (phase.to_string(), ns));
    Ok((spent.collect(), sent.collect()))
}

fn messages(folder: &Folder) -> anyhow::Result<Vec<MessageRow>> {
    let columns = folder.read(&MESSAGES)?;
    let [steps, ranks, messages, bytes] = &columns.numbers[..] else {
        unreachable!("as many columns as were asked for");
    };
    let named = |name: &str| Kind::ALL.into_iter().find(|kind| kind.name() == name);
    let row = |i: usize| {
        Some(MessageRow {
            step: steps[i] as u64,
            rank: ranks[i] as u32,
            kind: named(&columns.texts[0][i])?,
            messages: messages[i] as u64,
            bytes: bytes[i] as u64,
        })
    };
    Ok((0..steps.len()).filter_map(row).collect())
}

/// What the files say of their run.
struct About {
    version: Option<String>,
    words: Vec<String>,
    ranks: usize,
}

impl About {
    fn read(folder: &Path) -> anyhow::Result<About> {
        let first = folder.join("blocks.0000.parquet");
        let read = || -> anyhow::Result<About> {
            let reader = SerializedFileReader::new(File::open(&first)?)?;
            let pairs = reader.metadata().file_metadata().key_value_metadata();
            let value = |key: &str| {
                let mut pairs = pairs.into_iter().flatten();
                pairs.find(|pair| pair.key == key)?.value.clone()
            };
            let words = value(WORDS_KEY).map(|text| serde_json::from_str(&text));
            Ok(About {
                version: value(VERSION_KEY),
                words: words.transpose()?.unwrap_or_default(),
                ranks: value(RANKS_KEY).and_then(|n| n.parse().ok()).unwrap_or(1),
            })
        };
        read().with_context(|| format!("read {}", first.display()))
    }
}
