//! The fitted costs, as `costs.toml` holds them.
//!
//! ```toml
//! schema = 2
//! kernel = "seven"
//! source = "telemetry of 2 ranks, 20 steps: --deck moving-sphere --num_tsteps 20"
//! [phases]
//! pack_message_ns = 900.0
//! pack_byte_ns = 0.25
//! unpack_message_ns = 0.0
//! unpack_byte_ns = 0.0
//! copy_link_ns = 40.0
//! copy_byte_ns = 0.12
//! sum_cell_ns = 1.0
//! refine_ns = 100000.0
//! refine_leaf_ns = 100.0
//! refine_value_ns = 1.0
//! place_leaf_ns = 100.0
//! migrate_byte_ns = 0.25
//! step_ns = 1000.0
//! [noise]
//! block_cv = 0.05
//! step_cv = 0.03
//! rank_cv = 0.01
//! spike_share = 0.001
//! spike_factor = 2.0
//! [[level]]
//! cell_ns = 2.0
//! iteration_ns = 0.0
//! finer_ns = 1.0
//! [[level]]
//! cell_ns = 2.5
//! iteration_ns = 0.0
//! finer_ns = 0.0
//! [[memory.updates]]
//! cells = [10, 10, 10]
//! working_set_mib = 4.0
//! update_ns = 1.5
//! [[memory.beside_finer]]
//! cells = [10, 10, 10]
//! working_set_mib = 1.0
//! update_ns = 5.0
//! ```

use colltune_amr::settings::{Settings, Work as Kernel};
use serde::{Deserialize, Serialize};

use super::memory::{Memory, Slowness};
use crate::EmulateError;

/// The version of the layout of `costs.toml`. In the first, packing cost by what was sent, and an update beside a finer
/// neighbour whatever rank that was on.
pub const SCHEMA: u32 = 2;

/// What a program's work costs on the machine where it was recorded. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    pub schema: u32,
    /// What was computed: `seven`, `seven_with_ghosts`, `twenty_seven` or `euler`.
    pub kernel: String,
    /// Where the numbers come from.
    pub source: String,
    pub phases: PhaseCosts,
    pub noise: NoiseCosts,
    #[serde(rename = "level")]
    pub levels: Vec<LevelCosts>,
    /// What updates cost by the memory that they reach into; the levels' costs hold for the dearest. Without any, for all.
    #[serde(default, skip_serializing_if = "Memory::is_empty")]
    pub memory: Memory,
}

/// What blocks of a level cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelCosts {
    /// An update of a cell's variable (w2).
    pub cell_ns: f64,
    /// One more solver iteration in it (w3).
    pub iteration_ns: f64,
    /// An update beside a finer neighbour's face on the same rank (w4).
    pub finer_ns: f64,
}

/// What a rank's other phases cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseCosts {
    /// Of a message that leaves, and of each byte that is read for it: more than are sent where finer cells are summed.
    pub pack_message_ns: f64,
    pub pack_byte_ns: f64,
    /// Of one that comes; nothing where stencils take ghosts in as they compute.
    pub unpack_message_ns: f64,
    pub unpack_byte_ns: f64,
    /// Of a face between blocks of one rank, and of each byte that is copied there.
    pub copy_link_ns: f64,
    pub copy_byte_ns: f64,
    /// Of a cell's variable in a checksum.
    pub sum_cell_ns: f64,
    /// Of a refinement, of a leaf of the mesh in it, and of a value of a block that is split or joined (w1).
    pub refine_ns: f64,
    pub refine_leaf_ns: f64,
    pub refine_value_ns: f64,
    /// Of a leaf of the mesh when blocks are placed anew.
    pub place_leaf_ns: f64,
    /// Of a byte of a block that leaves or comes.
    pub migrate_byte_ns: f64,
    /// What a step takes besides.
    pub step_ns: f64,
}

/// How far times are from what is fitted, as relative standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseCosts {
    /// Of a block in all steps.
    pub block_cv: f64,
    /// Of a block from step to step.
    pub step_cv: f64,
    /// Of a rank in all steps.
    pub rank_cv: f64,
    /// How many blocks and steps take much more, and how many times as much.
    pub spike_share: f64,
    pub spike_factor: f64,
    /// Of a rank from step to step, beside the others: one core is faster for a while, and then another.
    #[serde(default)]
    pub pace_cv: f64,
    /// The same within a step, from one collective to the next.
    #[serde(default)]
    pub window_cv: f64,
    /// The share of its working time in which a rank was stopped and the others were not, which the means above hold, and how long each time.
    #[serde(default)]
    pub stop_share: f64,
    #[serde(default)]
    pub stop_ns: f64,
}

/// What a block has to do in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    pub level: u8,
    /// Of its rank.
    pub slowness: Slowness,
    /// Updates of cells' variables (C).
    pub updates: f64,
    /// Solver iterations besides, of each (k).
    pub iterations: f64,
    /// Updates beside finer neighbours (z).
    pub beside_finer: f64,
}

impl Work {
    /// Of a block with so many faces beside finer blocks of its rank, in all stages of a step.
    pub fn of(settings: &Settings, level: u8, iterations: u32, finer_faces: f64) -> Work {
        let shape = settings.shape;
        let in_step = (shape.n_vars as u64 * settings.stages) as f64;
        let face = (shape.face_cells(0) + shape.face_cells(1) + shape.face_cells(2)) as f64 / 3.0;
        Work {
            level,
            slowness: Slowness::NONE,
            updates: shape.interior_cells() as f64 * in_step,
            iterations: f64::from(iterations),
            beside_finer: finer_faces * face * in_step,
        }
    }

    /// The same on a rank whose memory makes it so slow.
    pub fn on(self, slowness: Slowness) -> Work {
        Work { slowness, ..self }
    }

    /// The regressors, in the order of the coefficients.
    pub fn regressors(&self) -> [f64; 3] {
        let updates = self.slowness.updates * self.updates;
        let beside_finer = self.slowness.beside_finer * self.beside_finer;
        [updates, updates * self.iterations, beside_finer]
    }
}

impl LevelCosts {
    pub fn of(coefficients: [f64; 3]) -> LevelCosts {
        LevelCosts {
            cell_ns: coefficients[0],
            iteration_ns: coefficients[1],
            finer_ns: coefficients[2],
        }
    }

    pub fn time_ns(&self, work: &Work) -> f64 {
        let weights = [self.cell_ns, self.iteration_ns, self.finer_ns];
        let pairs = weights.iter().zip(work.regressors());
        pairs.map(|(w, x)| w * x).sum()
    }
}

impl Costs {
    /// Costs that are the same for every update, as for what was never measured.
    pub fn uniform(kernel: Kernel, cell_ns: f64) -> Costs {
        Costs {
            schema: SCHEMA,
            kernel: kernel_name(kernel).to_owned(),
            source: "assumed: the same for every cell".to_owned(),
            phases: PhaseCosts::default(),
            noise: NoiseCosts::default(),
            levels: vec![LevelCosts {
                cell_ns,
                ..LevelCosts::default()
            }],
            memory: Memory::default(),
        }
    }

    /// What a block takes; levels beyond the last fitted one cost what it does.
    pub fn block_ns(&self, work: &Work) -> f64 {
        let last = self.levels.len() - 1;
        self.levels[usize::from(work.level).min(last)].time_ns(work)
    }

    /// Reads `costs.toml`.
    ///
    /// Errors: `Costs` for text that is none, another version, or numbers that are no times.
    pub fn from_toml(text: &str) -> Result<Costs, EmulateError> {
        let wrong = |what: String| EmulateError::Costs(what);
        #[derive(Deserialize)]
        struct Versioned {
            schema: u32,
        }
        let toml = |error: toml::de::Error| wrong(error.message().to_owned());
        let Versioned { schema } = toml::from_str(text).map_err(toml)?;
        // Before anything else: another layout has other fields.
        if schema != SCHEMA {
            return Err(wrong(format!(
                "their layout has version {schema}, this colltune reads version {SCHEMA}: fit them anew (colltune-lab emulate fit)"
            )));
        }
        let costs: Costs = toml::from_str(text).map_err(toml)?;
        costs.check().map_err(wrong)?;
        Ok(costs)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("costs hold only numbers and names")
    }

    /// Whether they are of what `settings` compute.
    ///
    /// Errors: `Costs` naming both kernels.
    pub fn check_kernel(&self, settings: &Settings) -> Result<(), EmulateError> {
        let wanted = kernel_name(settings.work);
        match self.kernel == wanted {
            true => Ok(()),
            false => Err(EmulateError::Costs(format!(
                "they were fitted on {}, and this mesh's program computes {wanted}: name a mesh or deck that computes {0}, \
                 or fit others on a recording of this one, by `colltune-lab emulate fit --telemetry FOLDER`",
                self.kernel
            ))),
        }
    }

    fn check(&self) -> Result<(), String> {
        let value = serde_json::to_value(self).expect("plain data");
        match impossible(&value, "") {
            Some(what) => Err(what),
            None if self.levels.is_empty() => Err("they have no level".to_owned()),
            None if self.memory.has_nothing() => Err(
                "memory: a size has 0 for cells, working_set_mib or an update's time; each is above 0"
                    .to_owned(),
            ),
            None if self.noise.stop_share >= 1.0 => Err(format!(
                "noise.stop_share is {}; it has to be less than 1",
                self.noise.stop_share
            )),
            None => Ok(()),
        }
    }
}

/// The first number that is no time, by its path. JSON has none for infinities and NaN.
fn impossible(value: &serde_json::Value, path: &str) -> Option<String> {
    use serde_json::Value::{Array, Null, Number, Object};
    match value {
        Object(map) => map
            .iter()
            .find_map(|(key, value)| impossible(value, &format!("{path}.{key}"))),
        Array(all) => all
            .iter()
            .enumerate()
            .find_map(|(i, value)| impossible(value, &format!("{path}[{i}]"))),
        Number(number) if number.as_f64().is_some_and(|n| n >= 0.0) => None,
        Number(_) | Null => Some(format!(
            "{} is {value}, which is no time",
            path.trim_start_matches('.')
        )),
        _ => None,
    }
}

pub fn kernel_name(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::Seven => "seven",
        Kernel::SevenWithGhosts => "seven_with_ghosts",
        Kernel::TwentySeven => "twenty_seven",
        Kernel::Euler => "euler",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the top of this file draws.
    #[test]
    fn the_drawing_is_costs() {
        let lines = include_str!("model.rs").lines();
        let drawn = lines.skip_while(|line| *line != "//! ```toml").skip(1);
        let drawn = drawn.take_while(|line| *line != "//! ```");
        let drawn: Vec<&str> = drawn.map(|line| line.trim_start_matches("//! ")).collect();
        let costs = Costs::from_toml(&drawn.join("\n")).unwrap();
        assert_eq!((costs.levels.len(), costs.noise.pace_cv), (2, 0.0));
        let resident =
            [&costs.memory.updates, &costs.memory.beside_finer].map(|all| all[0].working_set_mib);
        assert_eq!(resident, [4.0, 1.0]);
    }

    #[test]
    fn costs_of_another_kernel_are_refused_with_the_way_out() {
        let settings = crate::mesh::settings(&[], 1, 1).unwrap();
        assert!(
            Costs::uniform(settings.work, 1.0)
                .check_kernel(&settings)
                .is_ok()
        );
        let other = match settings.work {
            Kernel::Euler => Kernel::Seven,
            _ => Kernel::Euler,
        };
        let refused = Costs::uniform(other, 1.0)
            .check_kernel(&settings)
            .unwrap_err()
            .to_string();
        for word in [
            kernel_name(other),
            "name a mesh or deck",
            "colltune-lab emulate fit",
        ] {
            assert!(refused.contains(word), "{word}: {refused}");
        }
    }

    #[test]
    fn costs_read_back_as_written_and_impossible_ones_are_named() {
        let mut costs = Costs::uniform(Kernel::Euler, 2.5);
        costs.phases.pack_byte_ns = 0.125;
        let text = costs.to_toml();
        assert_eq!(Costs::from_toml(&text).unwrap(), costs);
        for (from, to, words) in [
            ("schema = 2", "schema = 1", "fit them anew"),
            ("schema = 2", "schema = 3\nnewer = 1", "version 3"),
            ("cell_ns = 2.5", "cell_ns = -2.5", "level[0].cell_ns"),
            (
                "pack_byte_ns = 0.125",
                "pack_byte_ns = nan",
                "phases.pack_byte_ns",
            ),
            ("pack_byte_ns = 0.125\n", "", "pack_byte_ns"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Costs::from_toml(&text.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(words), "{to}: {error}");
        }
    }
}
