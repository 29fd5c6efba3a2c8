//! Algorithms that are set before a job begins, for a library that cannot be steered later: Intel MPI.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use colltune_core::catalogue::{self, Steering};
use colltune_core::collective::Collective;
use colltune_core::context::{DataKey, told};
use colltune_core::environment;
use colltune_core::library::{Library, Product};
use colltune_core::preset::{self, Choice, Preset};
use colltune_core::request::{Forced, Mode};
use colltune_core::settings::{Reproducible, Settings};
use colltune_core::space::{Range, Space};
use colltune_core::variant::Family;
use colltune_db::{Database, Generation, generation};
use colltune_files::{MODEL_BYTES_MAX, read_text};
use colltune_output::progress;

use super::line::Line;
use super::prefix::Assignments;

/// What is asked of a job, as far as it matters here.
pub struct Asked<'a> {
    pub db: Option<&'a Path>,
    pub mode: Mode,
    pub seed: Option<u64>,
    pub forced: &'a [Forced],
}

/// The variables that set the algorithms of `library`, and those that name them to the shim; none for libraries that
/// are steered during the job.
///
/// Errors: a database or generation that cannot be read.
pub fn assignments(library: Library, line: &Line, asked: &Asked) -> anyhow::Result<Assignments> {
    if library.product != Product::Intel {
        return Ok(Assignments::new());
    }
    let mut presets = drawn(library, asked, line)?;
    presets.retain(|one| {
        asked
            .forced
            .iter()
            .all(|forced| forced.collective != one.collective)
    });
    presets.extend(asked.forced.iter().filter_map(|one| forced(library, one)));
    presets.retain(|one| !users_own(one.collective, line));
    if presets.is_empty() {
        return Ok(Assignments::new());
    }
    let told = Collective::ALL.into_iter().filter_map(|collective| {
        let value = preset::adjustment(&presets, library, collective)?;
        Some((preset::variable(collective), value.into()))
    });
    let spelled = (
        environment::PRESETS.to_owned(),
        preset::spell(&presets).into(),
    );
    Ok(std::iter::once(spelled).chain(told).collect())
}

fn drawn(library: Library, asked: &Asked, line: &Line) -> anyhow::Result<Vec<Preset>> {
    let (Some(db), Mode::Explore | Mode::Exploit) = (asked.db, asked.mode) else {
        return Ok(Vec::new());
    };
    let db = crate::database::open(db)?;
    let mut settings = db.settings()?;
    // With a seed of the database's all jobs would draw alike: only one that is meant for this job counts.
    settings.seed = None;
    for (name, value) in std::env::vars_os() {
        // Our variables are Unicode.
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
            continue;
        };
        settings.override_with(name, value)?;
    }
    if !settings.families_on(library).contains(&Family::Native) {
        return Ok(Vec::new());
    }
    let n_ranks = line.n_ranks().or_else(ranks_of_slurm);
    let choice = match asked.mode {
        Mode::Exploit => Choice::Best(n_ranks),
        _ => {
            let seed = asked.seed.or(settings.seed).unwrap_or_else(any_seed);
            Choice::Drawn(seed, n_ranks)
        }
    };
    let key = key(&db, library, settings.reproducible)?;
    let mut model = Generation::load(&db, key)?.model;
    // One algorithm holds for many cells: what a box excludes is left out for its whole collective.
    let mut excluding = settings.clone();
    for block in &mut excluding.space.blocks {
        let exclude = std::mem::take(&mut block.exclude);
        *block = Space::default_block(block.collective);
        block.exclude = exclude;
    }
    model.leave_out_excluded(&excluding);
    let wanted = |collective| may_round(&settings, collective);
    let presets = preset::draw(&model, library, choice, wanted);
    if choice == Choice::Best(None)
        && presets != preset::draw(&model, library, Choice::Best(Some(1)), wanted)
    {
        progress::hint(
            "nothing says how many ranks this job has, so of the best known algorithms Intel MPI is told only those \
             that are bearable on any number; say it on the line (-n, -np, --ntasks)",
        );
    }
    Ok(presets)
}

/// What a job of Slurm has, where its line does not say it.
fn ranks_of_slurm() -> Option<u64> {
    std::env::var("SLURM_NTASKS").ok()?.parse().ok()
}

/// The key of the job's data, by the environment that it inherits. Where nothing was learned there, it is the key
/// without user settings of algorithms, as the job itself takes it.
fn key(db: &Database, library: Library, order: Reproducible) -> anyhow::Result<DataKey> {
    let all = std::env::vars_os();
    let environment: Vec<_> = all
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let content = |file: &str| read_text(Path::new(file), MODEL_BYTES_MAX).ok();
    let told_by = told::settings(&environment, library);
    let key = DataKey::of_job(&environment, library, &told_by, content).of_order(order);
    match generation::current(db, &key)? {
        0 => Ok(key.untold()),
        _ => Ok(key),
    }
}

/// Whether the algorithm of a collective may change what it computes.
fn may_round(settings: &Settings, collective: Collective) -> bool {
    let keeps_bits = matches!(
        settings.reproducible,
        Reproducible::Strict | Reproducible::Fixed
    );
    !keeps_bits || !collective.is_reduction()
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| time.as_nanos() as u64) ^ u64::from(std::process::id())
}

fn forced(library: Library, forced: &Forced) -> Option<Preset> {
    let variant = catalogue::find(library, forced.collective, &forced.variant)?;
    matches!(variant.steering, Steering::Intel { .. }).then(|| Preset {
        collective: forced.collective,
        bytes: Range { lo: 0, hi: None },
        variant: forced.variant.clone(),
    })
}

/// Whether the user set an algorithm of this collective, in the environment or on the line.
fn users_own(collective: Collective, line: &Line) -> bool {
    let name = preset::variable(collective);
    let on_line = |word: &OsStr| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(&name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    std::env::var_os(&name).is_some() || line.words.iter().any(|word| on_line(word))
}
