//! One job on a synthetic machine: the product's own decisions draw, the machine says what comes of it.

use colltune_core::catalogue::Facts;
use colltune_core::decide::call::{SharedCall, SharedDetails};
use colltune_core::decide::rules::{JobTerms, Rules, TablesFrom, Telling};
use colltune_core::decide::table::CellTable;
use colltune_core::model::Model;
use colltune_core::record::Probability;
use colltune_core::request::Mode;
use colltune_core::select::mix;
use colltune_models::evidence::Call;

use crate::arrival::Seen;
use crate::ranks::Ranks;
use crate::site::Site;
use crate::weather::Weather;

/// A sampled call as records tell of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub call: Call,
    /// The slowest rank's time; on one node, where clocks are shared, from the last arrival to the last departure.
    pub slowest_ns: f64,
}

/// What the calls of a cell cost in the mean of the run, beside what they might have.
///
/// Units: nanoseconds, without waiting for late ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    pub spent_ns: f64,
    pub default_ns: f64,
    pub best_ns: f64,
    /// Had all run what the model calls the best.
    pub published_ns: f64,
}

/// What came of a job.
pub struct Played {
    pub samples: Vec<Sample>,
    pub accounts: Vec<Account>,
    /// Of the last quarter of each cell's calls.
    pub late: Vec<Account>,
}

/// Runs job `run` of a machine under a published model.
pub fn play(site: &Site, model: &Model, mode: Mode, run: u32) -> Played {
    let mut job = Job::new(site, model, mode, run);
    for round in 0..site.recipe.calls {
        for cell in 0..site.cells.len() {
            job.call(round, cell);
        }
    }
    job.played
}

struct Job<'a> {
    site: &'a Site,
    rules: Rules,
    run: u32,
    weather: Weather,
    comms: Vec<Comm>,
    /// By cell.
    places: Vec<Place>,
    played: Played,
}

/// Where a cell's calls go, and what is to be compared with.
struct Place {
    comm: usize,
    call: SharedCall,
    details: SharedDetails,
    best: usize,
    published: usize,
}

/// The communicator of one layout, and its time.
struct Comm {
    id: u64,
    layout: (u32, u32),
    ranks: Ranks,
    calls: u64,
    now_ns: f64,
    /// How late each rank is, when it comes and when it leaves.
    late: Vec<f64>,
    come_ns: Vec<f64>,
    left_ns: Vec<f64>,
    /// The sample whose shift the next call's arrivals complete.
    open: Option<usize>,
    /// What the last call has pushed into the next one.
    pushed_ns: f64,
}

impl<'a> Job<'a> {
    fn new(site: &'a Site, model: &Model, mode: Mode, run: u32) -> Job<'a> {
        let terms = JobTerms {
            seed: mix(site.seed, u64::from(run)),
            mode,
            forced: Vec::new(),
            presets: Vec::new(),
            cells: CellTable::new(model, site.library),
            settings: site.settings.clone(),
            tables_from: TablesFrom::Database,
            levers: Vec::new(),
        };
        let comms = (1..).zip(&site.recipe.layouts);
        let comms: Vec<Comm> = comms.map(|(id, layout)| Comm::new(id, *layout)).collect();
        let places = (0..site.cells.len()).map(|cell| place(site, model, &comms, cell));
        Job {
            site,
            rules: Rules::new(terms, site.library, Telling::Needed),
            run,
            weather: Weather::new(site, run),
            places: places.collect(),
            comms,
            played: Played {
                samples: Vec::new(),
                accounts: vec![Account::default(); site.cells.len()],
                late: vec![Account::default(); site.cells.len()],
            },
        }
    }

    fn call(&mut self, round: u64, cell: usize) {
        let truth = &self.site.cells[cell];
        let recipe = &self.site.recipe;
        let place = &self.places[cell];
        let comm = &mut self.comms[place.comm];
        let scale = truth.default_ns();
        recipe
            .arrival
            .lateness(scale, self.weather.rng(), &mut comm.late);
        let shift_ns = comm.compute(recipe.compute * scale);
        let before = comm.open.take();
        if let Some(open) = before {
            let shift = &mut self.played.samples[open].call.shift_ns;
            *shift = shift.map(|behind| behind + shift_ns);
        }
        let chosen = comm
            .ranks
            .decide(&self.rules, place.call, place.details, &comm.come_ns);
        let wanted = chosen.map_or(0, |chosen| usize::from(chosen.variant));
        // What the truth does not know runs as the default.
        let known = [wanted, 0].into_iter().find_map(|variant| {
            let arm = truth.arms[variant].as_ref()?;
            Some((variant, arm))
        });
        let (variant, arm) = known.expect("the default runs");
        self.played.accounts[cell].add(&self.weather, self.site, cell, place, variant);
        if 4 * round >= 3 * recipe.calls {
            self.played.late[cell].add(&self.weather, self.site, cell, place, variant);
        }
        // Whoever left the last call early waits in this one.
        let waited_ns = std::mem::take(&mut comm.pushed_ns);
        comm.now_ns += waited_ns;
        let cost = self.weather.cost_ns(recipe, cell, variant, arm);
        let seen = arm.leaving.seen(cost, &comm.late, &mut comm.left_ns);
        let time_ns = waited_ns + seen.time_ns;
        let told = comm.ranks.end(time_ns);
        if let Some(open) = before.filter(|_| told) {
            self.played.samples[open].call.after_ns = Some(time_ns);
        }
        if recipe.next_waits {
            comm.pushed_ns = seen.pushed_ns;
        }
        let index = comm.pass(&seen);
        let Some(chosen) = chosen.filter(|chosen| chosen.sampled) else {
            return;
        };
        let times = (comm.come_ns.as_slice(), comm.left_ns.as_slice());
        comm.ranks.observe(&self.rules, place.call, chosen, times);
        if (self.played.samples.len() as u64) < self.site.settings.records_per_run {
            comm.open = Some(self.played.samples.len());
            self.played.samples.push(Sample {
                call: Call {
                    run: self.run,
                    comm: comm.id,
                    index,
                    shape: truth.shape,
                    variant: variant as u16,
                    probability: chosen.probability.map_or(0.0, Probability::value),
                    class: 0,
                    start_ns: comm.come_ns[0] as u64,
                    time_ns,
                    shift_ns: Some(seen.shift_ns),
                    after_ns: None,
                    work_ns: seen.work_ns,
                },
                slowest_ns: match truth.shape.nodes {
                    1 => seen.work_ns,
                    _ => waited_ns + seen.slowest_ns,
                },
            });
        }
    }
}

impl Account {
    fn add(&mut self, weather: &Weather, site: &Site, cell: usize, place: &Place, ran: usize) {
        let mean = |variant: usize| {
            let arm = site.cells[cell].arms[variant].as_ref();
            arm.map_or(0.0, |arm| weather.mean_ns(cell, variant, arm))
        };
        self.spent_ns += mean(ran);
        self.default_ns += mean(0);
        self.best_ns += mean(place.best);
        self.published_ns += mean(place.published);
    }
}

fn place(site: &Site, model: &Model, comms: &[Comm], cell: usize) -> Place {
    let truth = &site.cells[cell];
    let shape = truth.shape;
    let layout = (shape.nodes, shape.ppn);
    let comm = comms.iter().position(|comm| comm.layout == layout);
    let call = SharedCall {
        collective: shape.collective,
        bytes: shape.message_bytes,
    };
    let facts = Facts::usual(call.collective, call.bytes, shape.n_ranks, shape.nodes);
    Place {
        comm: comm.expect("each cell lies on a layout"),
        call,
        details: SharedDetails {
            count: facts.count,
            ..SharedDetails::MOVES
        },
        best: truth.best(),
        published: published_best(site, model, cell),
    }
}

impl Comm {
    fn new(id: u64, layout: (u32, u32)) -> Comm {
        let none = vec![0.0; (layout.0 * layout.1) as usize];
        Comm {
            id,
            layout,
            ranks: Ranks::new(id, layout),
            calls: 0,
            now_ns: 1e6,
            late: none.clone(),
            come_ns: none.clone(),
            left_ns: none,
            open: None,
            pushed_ns: 0.0,
        }
    }

    /// The program computes, and the ranks come late; the mean time that takes them.
    fn compute(&mut self, compute_ns: f64) -> f64 {
        self.now_ns += compute_ns;
        for (come, late) in self.come_ns.iter_mut().zip(&self.late) {
            *come = self.now_ns + late;
        }
        compute_ns + self.late.iter().sum::<f64>() / self.late.len() as f64
    }

    /// The call is over and everybody has gone on; its number.
    fn pass(&mut self, seen: &Seen) -> u64 {
        let mean_late = self.late.iter().sum::<f64>() / self.late.len() as f64;
        for left in &mut self.left_ns {
            *left += self.now_ns;
        }
        self.now_ns += mean_late + seen.time_ns + seen.shift_ns;
        self.calls += 1;
        self.calls - 1
    }
}

/// The place of the variant that a model calls the best of a cell; the default where it names none that runs.
pub fn published_best(site: &Site, model: &Model, cell: usize) -> usize {
    let shape = site.cells[cell].shape;
    let (nodes, ppn) = (u64::from(shape.nodes), u64::from(shape.ppn));
    let holds = |entry: &&colltune_core::model::CellModel| {
        entry
            .cell
            .contains(shape.collective, shape.message_bytes, nodes, ppn)
    };
    let entry = model.cells.iter().find(holds);
    let best = entry.and_then(|entry| site.place(cell, &entry.best));
    best.filter(|&best| site.cells[cell].arms[best].is_some())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn a_job_is_made_by_its_seed_and_draws_as_the_product_does() {
        let site = Site::new(Recipe::usual(0.05), 4);
        let model = Model::initial(&site.settings, site.library, "made");
        let [one, other] = [0, 0].map(|_| play(&site, &model, Mode::Explore, 7));
        assert_eq!(one.samples, other.samples);
        // One call in three is sampled, the others are warm-up calls.
        let per_cell = one.samples.len() as f64 / site.cells.len() as f64;
        assert!((10.0..40.0).contains(&per_cell), "{per_cell}");
        let least = |of: &Account| of.spent_ns.min(of.default_ns);
        assert!(one.accounts.iter().all(|of| of.best_ns <= least(of)));
        let differs = |of: &Account| (of.spent_ns / of.default_ns - 1.0).abs() > 0.01;
        assert!(
            one.accounts.iter().any(differs),
            "nothing but the default ran"
        );
        let off = play(&site, &model, Mode::Exploit, 7);
        assert!(off.samples.is_empty());
        // Nothing was learned yet.
        assert!(off.accounts.iter().all(|of| of.spent_ns == of.default_ns));
    }
}
