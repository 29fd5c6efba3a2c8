//! A recorded mesh: leaves, owners and times of blocks, step after step.

use std::collections::BTreeMap;

use colltune_amr::leaf::Leaf;
use colltune_amr::mesh::Mesh;
use colltune_amr::options;
use colltune_amr::placement::rcb::Axes;
use colltune_amr::settings::Settings;

use crate::EmulateError;
use crate::cost::BlockRow;

/// The version of recordings that is understood.
pub const VERSION: &str = "1";

/// What a run recorded of its mesh.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The words of the run's command line.
    pub words: Vec<String>,
    pub n_ranks: usize,
    pub steps: Vec<RecordedStep>,
}

/// One step; leaves stand in the mesh's order.
#[derive(Clone, Debug, Default)]
pub struct RecordedStep {
    pub step: u64,
    pub leaves: Vec<Leaf>,
    pub owners: Vec<u32>,
    pub time_ns: Vec<f64>,
    pub iterations: Vec<u32>,
}

impl Recording {
    /// From the rows of blocks, in any order.
    ///
    /// Errors: `Mesh` for another version of recordings, no rows, and leaves that do not tile the domain.
    pub fn new(
        version: Option<&str>,
        words: Vec<String>,
        n_ranks: usize,
        rows: &[BlockRow],
    ) -> Result<Recording, EmulateError> {
        match version {
            Some(VERSION) => {}
            found => {
                let found = found.unwrap_or("none");
                return Err(EmulateError::Mesh(format!(
                    "it has version {found} of recordings, and this colltune reads version {VERSION}: record it anew"
                )));
            }
        }
        if rows.is_empty() {
            return Err(EmulateError::Mesh(
                "it has no blocks: record with --telemetry_blocks".to_owned(),
            ));
        }
        let settings = settings(&words, n_ranks, n_ranks)?;
        let mut by_step: BTreeMap<u64, Vec<&BlockRow>> = BTreeMap::new();
        for row in rows {
            by_step.entry(row.step).or_default().push(row);
        }
        let steps = by_step.into_iter().map(|(step, mut rows)| {
            rows.sort_by_key(|row| settings.grid.key(row.leaf));
            let recorded = RecordedStep {
                step,
                leaves: rows.iter().map(|row| row.leaf).collect(),
                owners: rows.iter().map(|row| row.rank).collect(),
                time_ns: rows.iter().map(|row| row.time_ns).collect(),
                iterations: rows.iter().map(|row| row.iterations).collect(),
            };
            match tiles(&settings, &recorded.leaves) {
                true => Ok(recorded),
                false => Err(EmulateError::Mesh(format!(
                    "the blocks of step {step} do not tile the domain: files are missing"
                ))),
            }
        });
        Ok(Recording {
            steps: steps.collect::<Result<_, _>>()?,
            words,
            n_ranks,
        })
    }
}

impl RecordedStep {
    /// The mesh with the owners that it had.
    pub fn mesh(&self, settings: &Settings) -> Mesh {
        let (leaves, owners) = (self.leaves.clone(), self.owners.clone());
        Mesh::new(settings.grid, leaves, owners, None)
    }
}

fn tiles(settings: &Settings, leaves: &[Leaf]) -> bool {
    let mut next = 0;
    for &leaf in leaves {
        if leaf.level > settings.grid.depth || settings.grid.key(leaf) != next {
            return false;
        }
        next += settings.grid.span(leaf.level);
    }
    next == settings.grid.n_roots() as u64 * settings.grid.span(0)
}

/// The settings of a run of `n_ranks` ranks on the root grid that the words make on `n_recorded`.
///
/// There may be more ranks than root blocks, as long as no step has fewer blocks than ranks.
///
/// Errors: `Mesh` with what the program says of its command line.
pub fn settings(
    words: &[String],
    n_recorded: usize,
    n_ranks: usize,
) -> Result<Settings, EmulateError> {
    let refused = |text: String| EmulateError::Mesh(text.trim_start_matches("error: ").to_owned());
    let parse = |more: &[String]| {
        let program = std::iter::once("colltune-amr".to_owned());
        let line = program.chain(words.iter().cloned()).chain(more.to_vec());
        options::parse(line).map_err(|refusal| refused(refusal.text))
    };
    // Where the grid is given it is the same for one rank, for which no grid is too small.
    let recorded = match Settings::new(parse(&[])?, n_recorded) {
        Ok(recorded) => recorded,
        Err(refusal) => Settings::new(parse(&[])?, 1).map_err(|_| refused(refusal.text))?,
    };
    let processes: [u32; 3] =
        std::array::from_fn(|d| recorded.grid.roots[d] / recorded.init[d].max(1));
    let names = ["--npx", "--npy", "--npz"];
    let pairs = names.iter().zip(processes);
    let more: Vec<String> = pairs
        .flat_map(|(name, n)| [(*name).to_owned(), n.to_string()])
        .collect();
    let n_checked = n_ranks.min(recorded.grid.n_roots());
    let made = Settings::new(parse(&more)?, n_checked).map_err(|r| refused(r.text))?;
    Ok(match n_checked == n_ranks {
        true => made,
        false => {
            let mut made = made;
            made.processes = None;
            made.rcb.axes = Axes::Longest;
            made
        }
    })
}
