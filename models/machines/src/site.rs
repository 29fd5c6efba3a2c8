//! A synthetic machine: its cells, and what each variant truly costs there.

use colltune_core::algorithm::simulate::Machine;
use colltune_core::catalogue::{self, Facts, Variant};
use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::Model;
use colltune_core::prior::simulated::{Simulated, Work};
use colltune_core::settings::Settings;
use colltune_core::variant::{DEFAULT, Family};
use colltune_models::evidence::Shape;
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use crate::arrival::Leaving;
use crate::cost::Costs;
use crate::recipe::{Differences, Recipe, Stalls};

/// The library whose catalogue is drawn from.
const LIBRARY: &str = "openmpi-4.1.4";
/// One call in so many stalls, of a variant that does.
pub const STALL_SHARE: f64 = 0.01;
const STALL_TIMES: [f64; 2] = [30.0, 1000.0];

/// A machine, its program, and the truth about both.
#[derive(Clone)]
pub struct Site {
    pub recipe: Recipe,
    pub seed: u64,
    pub library: Library,
    pub settings: Settings,
    /// By collective, as a job has them.
    pub variants: [Vec<Variant>; Collective::ALL.len()],
    names: [Vec<String>; Collective::ALL.len()],
    pub cells: Vec<TrueCell>,
}

/// One cell of a machine.
#[derive(Clone, Debug)]
pub struct TrueCell {
    pub shape: Shape,
    /// By place in the catalogue; `None` where a variant does not run or cannot be drawn.
    pub arms: Vec<Option<Arm>>,
}

/// One variant in one cell.
#[derive(Clone, Debug)]
pub struct Arm {
    /// What a call adds to the program in the mean, stalls included, waiting for late ranks not.
    pub cost_ns: f64,
    /// How many times as long a stalled call takes.
    pub stall: Option<f64>,
    pub leaving: Leaving,
}

impl Arm {
    /// The mean cost of a call that does not stall.
    pub fn body_ns(&self) -> f64 {
        match self.stall {
            Some(times) => self.cost_ns / (1.0 + STALL_SHARE * (times - 1.0)),
            None => self.cost_ns,
        }
    }
}

impl TrueCell {
    pub fn default_ns(&self) -> f64 {
        self.cost_of(0)
    }

    /// Infinite where the variant does not run.
    pub fn cost_of(&self, variant: usize) -> f64 {
        let arm = self.arms.get(variant).and_then(Option::as_ref);
        arm.map_or(f64::INFINITY, |arm| arm.cost_ns)
    }

    pub fn best(&self) -> usize {
        let all = 0..self.arms.len();
        let least = all.min_by(|&a, &b| self.cost_of(a).total_cmp(&self.cost_of(b)));
        least.unwrap_or(0)
    }

    pub fn best_ns(&self) -> f64 {
        self.cost_of(self.best())
    }

    pub fn n_arms(&self) -> usize {
        self.arms.iter().flatten().count()
    }
}

impl Site {
    pub fn new(recipe: Recipe, seed: u64) -> Site {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let library: Library = LIBRARY.parse().expect("a library's key");
        let variants = Collective::ALL.map(|collective| catalogue::variants(library, collective));
        let settings = settings(&recipe, library, &variants, &mut rng);
        let known: Vec<Vec<Variant>> = recipe
            .collectives
            .iter()
            .map(|collective| variants[collective.index()].clone())
            .collect();
        // What only does what another variant does, or is never tried, is no arm; what the prior takes for hopeless is.
        let open = Settings {
            hopeless_factor: Some(f64::MAX),
            ..settings.clone()
        };
        let open = Model::initial(&open, library, "made");
        let mut costs = Costs::new(recipe.base, &known, &mut rng);
        let mut cells = Vec::new();
        for &(nodes, ppn) in &recipe.layouts {
            for &collective in &recipe.collectives {
                for &message_bytes in &recipe.sizes {
                    let shape = Shape {
                        collective,
                        message_bytes,
                        nodes,
                        ppn,
                        n_ranks: nodes * ppn,
                    };
                    let all = &variants[collective.index()];
                    cells.push(true_cell(&recipe, &open, shape, all, &mut costs, &mut rng));
                }
            }
        }
        let names = variants
            .each_ref()
            .map(|all| all.iter().map(|one| one.name.to_string()).collect());
        Site {
            recipe,
            seed,
            library,
            settings,
            names,
            variants,
            cells,
        }
    }

    pub fn name(&self, cell: usize, variant: usize) -> &str {
        let collective = self.cells[cell].shape.collective;
        &self.names[collective.index()][variant]
    }

    /// The place in the catalogue of a variant of a cell's collective.
    pub fn place(&self, cell: usize, name: &str) -> Option<usize> {
        let collective = self.cells[cell].shape.collective;
        self.names[collective.index()]
            .iter()
            .position(|other| other == name)
    }

    /// From now on the default is better than everything else, by so much.
    pub fn improve_default(&mut self, by: f64) {
        for cell in &mut self.cells {
            let cost_ns = cell.best_ns() * (1.0 - by);
            if let Some(Some(default)) = cell.arms.first_mut() {
                default.cost_ns = cost_ns;
            }
        }
    }
}

/// As a site's `colltune.toml` would have it after a calibration: a cell around each size and shape.
fn settings(
    recipe: &Recipe,
    library: Library,
    variants: &[Vec<Variant>],
    rng: &mut ChaCha8Rng,
) -> Settings {
    let mut text = String::new();
    let layouts = || recipe.layouts.iter();
    let counts = |of: fn(&(u32, u32)) -> u32| {
        let mut all: Vec<u64> = layouts().map(|layout| u64::from(of(layout))).collect();
        // Of each number alone: what a variant needs has to be known of a whole cell.
        all.extend(all.clone().iter().map(|count| count + 1));
        all.push(1);
        all.sort_unstable();
        all.dedup();
        all.iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (nodes, ppn) = (counts(|layout| layout.0), counts(|layout| layout.1));
    for collective in Collective::ALL {
        let used = recipe.collectives.contains(&collective);
        let line = |name: &str, bounds: &str| format!("{name} = [{bounds}, \"inf\"]\n");
        text += &format!("[[space]]\ncollective = \"{collective}\"\n");
        if used {
            text += &(line("bytes", &bounds(&recipe.sizes, 0))
                + &line("nodes", &nodes)
                + &line("ppn", &ppn));
            text += &format!(
                "exclude = {:?}\n",
                left_out(recipe, &variants[collective.index()], rng)
            );
        } else {
            text += &(line("bytes", "0") + &line("nodes", "1") + &line("ppn", "1"));
        }
    }
    let mut settings = Settings::from_toml(&text).expect("settings that the reader knows");
    let machine: &Machine = &recipe.base;
    let work = Work::new(&settings.space, library, machine);
    let simulated = Simulated::new(library, (0..work.n_parts()).map(|part| work.part(part)));
    settings.simulated.insert(library, simulated);
    settings
}

/// Bounds between values, from the least possible on.
fn bounds(values: &[u64], least: u64) -> String {
    let between = values.windows(2).map(|pair| {
        let middle = (pair[0] as f64 * pair[1] as f64).sqrt() as u64;
        middle.max(pair[0] + 1)
    });
    let all: Vec<String> = std::iter::once(least)
        .chain(between)
        .map(|bound| bound.to_string())
        .collect();
    all.join(", ")
}

/// Names of variants beyond the most that a cell shall have.
fn left_out(recipe: &Recipe, variants: &[Variant], rng: &mut ChaCha8Rng) -> Vec<String> {
    let mut names: Vec<String> = variants
        .iter()
        .filter(|variant| is_drawn(variant))
        .map(|variant| variant.name.to_string())
        .collect();
    names.shuffle(rng);
    names.split_off(names.len().min(recipe.arms_most.saturating_sub(1)))
}

fn is_drawn(variant: &Variant) -> bool {
    [Family::Native, Family::P2p, Family::Node].contains(&variant.name.family)
}

fn true_cell(
    recipe: &Recipe,
    open: &Model,
    shape: Shape,
    variants: &[Variant],
    costs: &mut Costs,
    rng: &mut ChaCha8Rng,
) -> TrueCell {
    let facts = Facts::usual(
        shape.collective,
        shape.message_bytes,
        shape.n_ranks,
        shape.nodes,
    );
    let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
    let entries = open.cells.iter();
    let mut entries = entries.filter(|entry| {
        let cell = &entry.cell;
        cell.contains(shape.collective, shape.message_bytes, nodes, ppn)
    });
    let drawn = entries.next().map_or(&[][..], |entry| &entry.variants);
    let (collective, bytes) = (shape.collective, shape.message_bytes);
    let cost_of = |variant: &Variant| {
        if !is_drawn(variant) || !variant.applies(&facts) {
            return None;
        }
        match recipe.differences {
            Differences::Recorded(machine) => {
                machine.cost_ns(collective, bytes, &variant.name.to_string())
            }
            _ => costs.of(variant, bytes, shape.nodes, shape.ppn),
        }
    };
    let mut found: Vec<Option<f64>> = variants.iter().map(cost_of).collect();
    let default_ns = match recipe.differences {
        Differences::Recorded(machine) => machine
            .cost_ns(collective, bytes, DEFAULT)
            .expect("the default was measured everywhere"),
        _ => library_choice(variants, &found, rng),
    };
    for (cost, variant) in found.iter_mut().zip(variants) {
        let name = variant.name.to_string();
        cost.take_if(|_| !drawn.iter().any(|share| share.name == name));
    }
    found[0] = Some(default_ns);
    let first = (1..found.len()).find(|&place| found[place].is_some());
    match (recipe.differences, first) {
        (Differences::Usual | Differences::Recorded(_), _) => {}
        (differences, first) => {
            found
                .iter_mut()
                .flatten()
                .for_each(|cost| *cost = default_ns);
            if let (Differences::OneFaster(by), Some(first)) = (differences, first) {
                found[first] = Some((1.0 - by) * default_ns);
            }
        }
    }
    let mut arms = Vec::new();
    for (place, cost) in found.into_iter().enumerate() {
        arms.push(cost.map(|cost_ns| arm(recipe, shape, place, cost_ns, default_ns, rng)));
    }
    TrueCell { shape, arms }
}

/// The library runs one of the better half of its own algorithms.
fn library_choice(variants: &[Variant], costs: &[Option<f64>], rng: &mut ChaCha8Rng) -> f64 {
    let native = variants
        .iter()
        .zip(costs)
        .filter(|(variant, _)| variant.name.family == Family::Native);
    let mut native: Vec<f64> = native.filter_map(|(_, cost)| *cost).collect();
    native.sort_by(f64::total_cmp);
    let better = native.len().div_ceil(2).max(1);
    native
        .get(rng.random_range(0..better))
        .copied()
        .unwrap_or(10_000.0)
}

fn arm(
    recipe: &Recipe,
    shape: Shape,
    place: usize,
    cost_ns: f64,
    default_ns: f64,
    rng: &mut ChaCha8Rng,
) -> Arm {
    let leaving = Leaving::new(
        shape.n_ranks as usize,
        rng.random_range(0.0..=recipe.skew_most),
        rng,
    );
    let times = (rng.random_range(STALL_TIMES[0].ln()..STALL_TIMES[1].ln())).exp();
    if recipe.stalls == Stalls::OfSome && place % 3 == 1 {
        return Arm {
            cost_ns: 0.9 * default_ns * (1.0 + STALL_SHARE * (times - 1.0)),
            stall: Some(times),
            leaving,
        };
    }
    Arm {
        cost_ns,
        stall: None,
        leaving,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_machine_and_its_cells_have_many_arms() {
        let [one, other] = [1, 1].map(|seed| Site::new(Recipe::usual(0.05), seed));
        for (a, b) in one.cells.iter().zip(&other.cells) {
            assert_eq!(a.best_ns(), b.best_ns());
            assert!(
                (8..=60).contains(&a.n_arms()),
                "{} {:?}",
                a.n_arms(),
                a.shape
            );
            assert!(a.best_ns() <= a.default_ns());
        }
        assert_eq!(one.cells.len(), 60);
    }

    #[test]
    fn of_equal_variants_none_is_better() {
        let site = Site::new(Recipe::null(0.15), 3);
        assert!(
            site.cells
                .iter()
                .all(|cell| cell.best_ns() == cell.default_ns())
        );
    }
}
