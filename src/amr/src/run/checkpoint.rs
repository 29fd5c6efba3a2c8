//! Checkpoints, and restarts from them on any number of ranks.
//!
//! A folder holds one file of cells per rank and step and `checkpoint.json`, which is written last and
//! names them with their hashes: it always describes a checkpoint that is whole.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::agree::agree;
use super::state::Run;
use crate::blocks::Blocks;
use crate::checksum::Broken;
use crate::field::Field;
use crate::leaf::{Grid, Leaf};
use crate::mesh::Mesh;
use crate::object::{Object, Objects};
use crate::output::publish::{make_folder, publish};
use crate::placement::Question;
use crate::ranks::Ranks;
use crate::settings::Settings;

const INDEX: &str = "checkpoint.json";
const FORMAT: &str = "colltune-amr checkpoint 2";

/// What every rank must know to go on. Numbers of cells and sums are kept as bits.
#[derive(Serialize, Deserialize)]
struct Index {
    format: String,
    /// Grid, block shape and work: a run that has others cannot go on from here.
    problem: String,
    step: u64,
    n_stages: u64,
    time: u64,
    /// Packed, in the mesh's order, and the rank that wrote each.
    leaves: Vec<u64>,
    writers: Vec<u32>,
    /// One hash for each writer's file.
    hashes: Vec<u64>,
    first_sums: Vec<u64>,
    objects: Vec<Vec<u64>>,
    splits: u64,
    joins: u64,
    block_stages: u64,
    blocks_min: u64,
    blocks_max: u64,
}

fn problem(settings: &Settings) -> String {
    let Grid {
        roots,
        depth,
        periodic,
    } = settings.grid;
    let periodic = if periodic { " periodic" } else { "" };
    // As checkpoints had it before domains could be periodic.
    let grid = format!("Grid {{ roots: {roots:?}, depth: {depth} }}{periodic}");
    format!("{grid} {:?} {:?}", settings.shape, settings.work)
}

fn cells_name(step: u64, rank: u32) -> String {
    format!("cells.{step:08}.{rank:05}")
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

impl Run<'_> {
    /// Writes a checkpoint when `--checkpoint` and `--checkpoint_freq` say so, and removes the one before.
    ///
    /// Errors: a rank cannot write its file; every rank returns the error, and the one before stays whole.
    pub(super) fn checkpoint(&mut self, step: u64) -> Result<(), Broken> {
        let options = &self.settings.options;
        let due = step.is_multiple_of(options.checkpoint_freq);
        let Some(folder) = options.checkpoint.as_ref().filter(|_| due) else {
            return Ok(());
        };
        let (ranks, rank) = (self.ranks, self.ranks.rank());
        let mut cells = Vec::new();
        for i in self.mesh.own(rank) {
            let slot = self.blocks.slots[i];
            self.blocks.field.read_interior(slot, &mut cells);
        }
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        let path = folder.join(cells_name(step, rank as u32));
        let written = make_folder(folder);
        let written = written.and_then(|()| {
            publish(&path, |file| file.write_all(&bytes)).map_err(|error| error.to_string())
        });
        let failed = |what| Err(Broken::Output { step, what });
        if let Some(what) = agree(ranks, written.err()) {
            return failed(what);
        }
        let hash = XxHash3_64::oneshot(&bytes);
        let hashes = ranks.allgather_bytes(&hash.to_le_bytes());
        let mut complaint = None;
        if rank == 0 {
            let hashes = hashes.into_iter().map(|bytes| {
                u64::from_le_bytes(bytes.try_into().expect("eight bytes from each rank"))
            });
            let index = self.index(step, hashes.collect());
            let text = serde_json::to_string(&index).expect("plain data");
            let written = publish(&folder.join(INDEX), |file| file.write_all(text.as_bytes()));
            complaint = written.err().map(|error| error.to_string());
        }
        if let Some(what) = agree(ranks, complaint) {
            return failed(what);
        }
        if let Some(old) = self
            .last_checkpoint
            .replace(step)
            .filter(|&old| old != step)
        {
            // Nothing names it any more; if it cannot be removed, it is only in the way.
            let _ = fs::remove_file(folder.join(cells_name(old, rank as u32)));
        }
        Ok(())
    }

    fn index(&self, step: u64, hashes: Vec<u64>) -> Index {
        let objects = self.objects.as_slice().iter();
        Index {
            format: FORMAT.into(),
            problem: problem(self.settings),
            step,
            n_stages: self.n_stages,
            time: self.time.to_bits(),
            leaves: self
                .mesh
                .leaves()
                .iter()
                .map(|leaf| leaf.packed())
                .collect(),
            writers: self.mesh.owners().to_vec(),
            hashes,
            first_sums: bits(&self.first_sums),
            objects: objects.map(|object| bits(&object.arguments())).collect(),
            splits: self.count.splits,
            joins: self.count.joins,
            block_stages: self.count.block_stages,
            blocks_min: self.count.blocks_min,
            blocks_max: self.count.blocks_max,
        }
    }

    /// Goes on from the checkpoint in `folder`; gives its step.
    ///
    /// Errors: a checkpoint that is missing, truncated or of another problem; every rank returns the error.
    pub(super) fn restart(&mut self, folder: &Path) -> Result<u64, Broken> {
        let failed = |what: String| Broken::Restart {
            what: format!("{}: {what}", folder.display()),
        };
        let index = read_index(self.ranks, self.settings, folder).map_err(failed)?;
        let mesh = placed(self.settings, &index, self.ranks.n_ranks()).map_err(failed)?;
        // Spoilt files may be read by some ranks only.
        let cells = read_cells(self.ranks.rank(), self.settings, folder, &index, &mesh);
        let (cells, complaint) = match cells {
            Ok(cells) => (cells, None),
            Err(complaint) => (BTreeMap::new(), Some(complaint)),
        };
        if let Some(what) = agree(self.ranks, complaint) {
            return Err(failed(what));
        }
        let field = match self.settings.work {
            crate::settings::Work::Seven => Field::by_variable(self.settings.shape),
            _ => Field::new(self.settings.shape),
        };
        let meaning = self.blocks.meaning;
        self.blocks = Blocks::new(field, meaning, &mesh, self.ranks.rank());
        for (i, cells) in cells {
            let slot = self.blocks.slots[i];
            self.blocks.field.write_interior(slot, &cells);
        }
        self.mesh = mesh;
        self.connect_blocks();
        self.sum_at_start();
        let values =
            |bits: &[u64]| -> Vec<f64> { bits.iter().map(|&b| f64::from_bits(b)).collect() };
        self.first_sums = values(&index.first_sums);
        self.sums.first.clone_from(&self.first_sums);
        let objects = index.objects.iter();
        let objects = objects.map(|bits| Object::from_arguments(&values(bits)));
        let objects: Result<Vec<Object>, _> = objects.collect();
        self.objects = Objects::new(objects.map_err(|error| failed(error.to_string()))?);
        (self.n_stages, self.time) = (index.n_stages, f64::from_bits(index.time));
        (self.count.splits, self.count.joins) = (index.splits, index.joins);
        self.count.block_stages = index.block_stages;
        self.count.block_stages_before = index.block_stages;
        (self.count.blocks_min, self.count.blocks_max) = (index.blocks_min, index.blocks_max);
        // What leaves cost is measured anew: nothing is known of those of this mesh.
        self.balancer = self.settings.balancer(index.step, &self.mesh);
        Ok(index.step)
    }
}

/// Rank 0 reads, everybody judges the same bytes.
fn read_index(ranks: &dyn Ranks, settings: &Settings, folder: &Path) -> Result<Index, String> {
    let (mut bytes, mut complaint) = (Vec::new(), None);
    if ranks.rank() == 0 {
        match fs::read(folder.join(INDEX)) {
            Ok(read) => bytes = read,
            Err(error) => complaint = Some(format!("{INDEX}: {error}")),
        }
    }
    if let Some(what) = agree(ranks, complaint) {
        return Err(what);
    }
    let all = ranks.allgather_bytes(&bytes);
    let index: Index =
        serde_json::from_slice(&all[0]).map_err(|error| format!("{INDEX}: {error}"))?;
    if index.format != FORMAT {
        return Err(format!(
            "{INDEX} has format {:?}, not {FORMAT:?}",
            index.format
        ));
    }
    let problem = problem(settings);
    if index.problem != problem {
        let other = &index.problem;
        return Err(format!(
            "it belongs to another problem: {other}, not {problem}"
        ));
    }
    let n = index.leaves.len();
    let writers = index.hashes.len();
    let consistent = index.writers.len() == n
        && index.writers.iter().all(|&w| (w as usize) < writers)
        && index.first_sums.len() == settings.shape.n_vars
        && index
            .objects
            .iter()
            .all(|object| object.len() == crate::object::ARGUMENTS);
    consistent
        .then_some(index)
        .ok_or_else(|| format!("{INDEX} contradicts itself"))
}

/// The mesh of the checkpoint, placed on `n_ranks`.
fn placed(settings: &Settings, index: &Index, n_ranks: usize) -> Result<Mesh, String> {
    let leaves: Option<Vec<Leaf>> = index.leaves.iter().map(|&w| Leaf::from_packed(w)).collect();
    let leaves = leaves.ok_or_else(|| format!("{INDEX}: a word is no leaf"))?;
    // Tiling is checked before neighbours are looked for, which takes it for granted.
    let mut next = 0;
    for &leaf in &leaves {
        if leaf.level > settings.grid.depth || settings.grid.key(leaf) != next {
            return Err(format!("{INDEX}: the leaves do not tile the domain"));
        }
        next += settings.grid.span(leaf.level);
    }
    if next != settings.grid.n_roots() as u64 * settings.grid.span(0) {
        return Err(format!("{INDEX}: the leaves do not tile the domain"));
    }
    let n = leaves.len();
    let mut mesh = Mesh::new(settings.grid, leaves, vec![0; n], None);
    let question = Question {
        mesh: &mesh,
        costs: &vec![1.0; n],
        n_ranks,
    };
    let owners = settings.place_by_own(&settings.placement, question);
    mesh.place_on(owners);
    mesh.is_valid(n_ranks)?;
    Ok(mesh)
}

/// The cells of the leaves that `rank` owns now.
fn read_cells(
    rank: usize,
    settings: &Settings,
    folder: &Path,
    index: &Index,
    mesh: &Mesh,
) -> Result<BTreeMap<usize, Vec<f64>>, String> {
    let len = 8 * settings.shape.n_vars * settings.shape.interior_cells();
    // By writer: how many blocks it wrote, and which of them, by place in its file, are this rank's.
    let mut n_written = vec![0; index.hashes.len()];
    let mut wanted: BTreeMap<u32, Vec<(usize, usize)>> = BTreeMap::new();
    for (i, (&writer, &owner)) in index.writers.iter().zip(mesh.owners()).enumerate() {
        if owner as usize == rank {
            let of_writer = wanted.entry(writer).or_default();
            of_writer.push((n_written[writer as usize], i));
        }
        n_written[writer as usize] += 1;
    }
    let mut found = BTreeMap::new();
    for (writer, wanted) in wanted {
        let (n_blocks, hash) = (n_written[writer as usize], index.hashes[writer as usize]);
        let name = cells_name(index.step, writer);
        let bytes = fs::read(folder.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        if bytes.len() != n_blocks * len {
            let (has, needs) = (bytes.len(), n_blocks * len);
            return Err(format!(
                "{name} has {has} bytes, not {needs}: it is truncated or foreign"
            ));
        }
        if XxHash3_64::oneshot(&bytes) != hash {
            return Err(format!("{name} is not what was written"));
        }
        for (nth, i) in wanted {
            let cells = bytes[nth * len..][..len].chunks_exact(8);
            let cells = cells.map(|cell| f64::from_le_bytes(cell.try_into().expect("eight bytes")));
            found.insert(i, cells.collect());
        }
    }
    Ok(found)
}
