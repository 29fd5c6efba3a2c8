//! What rank 0 reads and hands out: settings, model, seed. No other rank touches the file system.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bincode::{Decode, Encode};
use colltune_core::catalogue::{self, Steering};
use colltune_core::context::DataKey;
use colltune_core::decide::rules::{JobTerms, TablesFrom};
use colltune_core::decide::table::CellTable;
use colltune_core::environment;
use colltune_core::levers::learned::{self, LearnedLever, LearnedLevers};
use colltune_core::library::Library;
use colltune_core::machine;
use colltune_core::model::Model;
use colltune_core::preset::{self, Preset};
use colltune_core::prior::simulated::{self, Simulated};
use colltune_core::request::{self, Forced, Mode};
use colltune_core::roster::hash_bytes;
use colltune_core::settings::{Settings, SummaryTo};
use colltune_core::variant::DEFAULT;
use colltune_files::{MODEL_BYTES_MAX, SETTINGS_BYTES_MAX, read_text};

use crate::site::{self, Version};

/// The setting of a seed for one job, as `colltune run --seed` makes it.
const SEED: &str = "COLLTUNE_SEED";
const REPRODUCIBLE: &str = "COLLTUNE_REPRODUCIBLE";

/// What every rank of the job works with.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Handout {
    pub job: String,
    pub terms: JobTerms,
    pub log: Option<String>,
    /// Where flight recordings go, if anybody asks for them.
    pub flight: Option<String>,
    /// Where traces go; `None` when nothing is recorded.
    pub incoming: Option<String>,
    /// Where the run's file in the ledger goes; `None` without a database.
    pub ledger: Option<String>,
    /// The site folder whose switch the job obeys.
    pub site: Option<String>,
    /// The user's settings of the library's algorithms, which keep the job's records apart; empty without any.
    pub told: String,
}

/// The key of a job's data, and the user settings that choose its library's algorithms.
pub struct OwnData {
    pub key: DataKey,
    pub told_by: Vec<(String, String)>,
}

/// Looks for that.
pub type AskOwnData = fn(Library) -> OwnData;

impl OwnData {
    /// Without user settings.
    fn usual(library: Library) -> OwnData {
        OwnData {
            key: library.into(),
            told_by: Vec::new(),
        }
    }
}

/// What rank 0 found, with the messages that it has for the user.
pub struct Found {
    /// `None`: the job runs as without the shim.
    pub handout: Option<Handout>,
    pub warnings: Vec<String>,
}

/// The COLLTUNE_ variables of this process, sorted by name.
pub fn variables() -> Vec<(String, String)> {
    let mut variables: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| name.starts_with(environment::PREFIX) && !value.is_empty())
        .collect();
    variables.sort();
    variables
}

pub fn variable<'a>(variables: &'a [(String, String)], name: &str) -> Option<&'a str> {
    variables
        .iter()
        .find(|(other, _)| other == name)
        .map(|(_, value)| value.as_str())
        .filter(|value| !value.is_empty())
}

/// Whether these variables ask for anything at all. Without that the shim does nothing.
pub fn wanted(variables: &[(String, String)]) -> bool {
    let asks = [
        environment::DB,
        environment::FLIGHT,
        environment::FORCE,
        environment::LOG,
        environment::MODE,
    ];
    let asks =
        asks_for_order(variables) || asks.iter().any(|name| variable(variables, name).is_some());
    let is_off = variable(variables, environment::MODE) == Some(Mode::Off.name());
    asks && !is_off
        || wants_summary(variables)
        || variable(variables, environment::LEDGER).is_some()
}

/// Whether the environment alone asks for the fixed order of reductions.
fn asks_for_order(variables: &[(String, String)]) -> bool {
    variable(variables, REPRODUCIBLE) == Some("fixed")
}

/// Whether the environment asks for a summary, in whatever mode; what is wrong with it rank 0 will say.
fn wants_summary(variables: &[(String, String)]) -> bool {
    let value = variable(variables, environment::SUMMARY);
    value.is_some_and(|value| !["0", "false"].contains(&value))
}

/// What is wrong with variables of ours that are left out above.
pub fn unreadable() -> impl Iterator<Item = String> {
    let names = std::env::vars_os().filter_map(|(name, value)| {
        let ours = name.to_str()?.starts_with(environment::PREFIX);
        (ours && value.to_str().is_none()).then(|| name.to_string_lossy().into_owned())
    });
    names.map(|name| format!("failed to read {name}: it is not valid UTF-8; it is not used"))
}

/// The folder of flight recordings, wherever a rank's working folder is.
fn flight_folder(variables: &[(String, String)]) -> Option<String> {
    let folder = std::path::absolute(variable(variables, environment::FLIGHT)?).ok()?;
    folder.into_os_string().into_string().ok()
}

/// Reads the environment and the database. On rank 0 only.
///
/// `nodes` and `ppn` are those of the world: cells that it cannot reach are left out. `own` is asked where
/// anything is tuned.
pub fn read(
    variables: &[(String, String)],
    (library, own): (Library, AskOwnData),
    (nodes, ppn): (u64, u64),
) -> Found {
    let mut warnings = Vec::new();
    let seed = Seed::draw();
    let handout = match read_request(variables, library, &seed.job, &mut warnings) {
        Ok(request) => read_database(
            request,
            seed,
            variables,
            (library, own),
            (nodes, ppn),
            &mut warnings,
        ),
        Err(problem) => {
            warnings.push(problem);
            None
        }
    };
    Found { handout, warnings }
}

/// What tells a job from all others: its name in files, and a random number.
struct Seed {
    job: String,
    random: u64,
}

impl Seed {
    fn draw() -> Seed {
        let random = RandomState::new().build_hasher().finish();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |time| time.as_nanos() as u64);
        Seed {
            job: format!("{:016x}{:08x}", now, random as u32),
            random,
        }
    }
}

struct Request {
    db: Option<PathBuf>,
    /// The version of a site folder that `db` is.
    version: Option<Version>,
    mode: Mode,
    forced: Vec<Forced>,
    log: Option<String>,
    flight: Option<String>,
}

/// Errors: a sentence that says why the job runs untuned.
fn read_request(
    variables: &[(String, String)],
    library: Library,
    job: &str,
    warnings: &mut Vec<String>,
) -> Result<Request, String> {
    let text = |name: &str| variable(variables, name);
    let untuned = |problem: String| format!("failed to {problem}; collectives run untuned");
    let named = |name: &str, error: request::RequestError| untuned(format!("{error} in {name}"));
    let mode = text(environment::MODE).map(|mode| {
        mode.parse::<Mode>()
            .map_err(|error| named(environment::MODE, error))
    });
    let mode = mode.transpose()?;
    let forced = request::parse_force(text(environment::FORCE).unwrap_or(""))
        .map_err(|error| named(environment::FORCE, error))?;
    request::check_force(&forced, library).map_err(|error| named(environment::FORCE, error))?;
    let log = text(environment::LOG)
        .map(request::parse_log)
        .transpose()
        .map_err(|error| named(environment::LOG, error))?;
    let flight = flight_folder(variables);
    let mut db = text(environment::DB).map(PathBuf::from);
    let found = db.as_deref().map(|db| site::find(db, job)).transpose();
    let version = match (found, mode) {
        // Nothing is wanted of it.
        (Err(_), Some(Mode::Off)) => {
            db = None;
            None
        }
        (found, _) => found?.flatten(),
    };
    if let Some(version) = &version {
        db = Some(version.folder.clone());
    }
    let mode = match (mode, &db) {
        (mode, Some(_)) if version.is_some() => site::mode(mode, warnings),
        (Some(mode), Some(_)) => mode,
        (None, Some(_)) => Mode::Explore,
        (Some(Mode::Off), None) => Mode::Off,
        // Nothing but a summary is asked for.
        (None, None)
            if forced.is_empty()
                && log.is_none()
                && flight.is_none()
                && !asks_for_order(variables) =>
        {
            Mode::Off
        }
        (Some(mode @ (Mode::Explore | Mode::Record)), None) => {
            warnings.push(format!(
                "COLLTUNE_MODE={} needs a database: set COLLTUNE_DB; nothing is recorded",
                mode.name()
            ));
            Mode::Exploit
        }
        (_, None) => Mode::Exploit,
    };
    let mut request = Request {
        db,
        version,
        mode,
        forced,
        log,
        flight,
    };
    if request.mode == Mode::Off {
        request.turn_off();
    }
    Ok(request)
}

impl Request {
    fn turn_off(&mut self) {
        self.mode = Mode::Off;
        self.forced.clear();
        (self.log, self.flight) = (None, None);
    }

    /// With a user's tables in force, no call could run the library's own choice.
    fn turn_off_beside_tables(&mut self, told_by: &[(String, String)], warnings: &mut Vec<String>) {
        let named = told_by
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"));
        let named: Vec<String> = named.collect();
        warnings.push(format!(
            "COLLTUNE_MODE=tables runs what tables hold next to the library's own choice, and cannot where the library \
             is told another one, by {}; start the job without; collectives run untuned",
            named.join(", ")
        ));
        self.turn_off();
    }

    /// Says why the job runs untuned, and what to do.
    fn untuned(&self, problem: String) -> String {
        match &self.version {
            Some(version) => {
                let remedy = version.remedy();
                format!("failed to {problem}; collectives run untuned; {remedy}")
            }
            None => format!("failed to {problem}; collectives run untuned"),
        }
    }
}

fn read_database(
    mut request: Request,
    seed: Seed,
    variables: &[(String, String)],
    (library, own): (Library, AskOwnData),
    (nodes, ppn): (u64, u64),
    warnings: &mut Vec<String>,
) -> Option<Handout> {
    let mut settings = match read_settings(&request, variables) {
        Ok(settings) => settings,
        Err(problem) => {
            warnings.push(request.untuned(problem));
            return None;
        }
    };
    // The other ranks look at their own programs.
    if !settings.programs().allow(&own_program()) {
        request.turn_off();
    }
    let OwnData { key, told_by } = match request.mode {
        Mode::Off => OwnData::usual(library),
        _ => own(library),
    };
    let key = key.of_order(settings.reproducible);
    if request.mode == Mode::Tables && !told_by.is_empty() {
        request.turn_off_beside_tables(&told_by, warnings);
    }
    let machine = settings.machine.clone().unwrap_or_else(machine_name);
    if let SummaryTo::File(file) = &mut settings.summary
        && let Ok(whole) = std::path::absolute(&*file)
    {
        *file = whole.to_string_lossy().into_owned();
    }
    let of_mode = request.db.as_deref().filter(|_| request.mode != Mode::Off);
    let read = |db: &Path, key: &DataKey| read_model(db, key, (nodes, ppn));
    let mut found = of_mode.map(|db| read(db, &key));
    // What was learned of the library's own choice is the best guess of what beats another one, of which nothing was.
    let is_guess = matches!(found, Some(Ok(None))) && key.told.is_some() && !request.mode.records();
    if is_guess {
        found = of_mode.map(|db| read(db, &key.untold()));
    }
    let mut model = match found {
        // Nothing is drawn, so there are no cells.
        None if request.mode == Mode::Off => {
            Model::initial_within(&settings, library, &machine, 0, 0)
        }
        None | Some(Ok(None)) => {
            let simulated = request.db.as_deref().map(|db| read_simulated(db, library));
            match simulated.transpose() {
                Ok(found) => settings.simulated.extend(found.flatten()),
                Err(problem) => warnings.push(format!("failed to {problem}; it is not used")),
            }
            Model::initial_within(&settings, library, &machine, nodes, ppn)
        }
        Some(Ok(Some(model))) => model,
        Some(Err(problem)) => {
            warnings.push(request.untuned(problem));
            return None;
        }
    };
    model.leave_out_excluded(&settings);
    if is_guess {
        // The gain is unknown.
        model.cells.iter_mut().for_each(|entry| entry.gain = 1.0);
    }
    if request.mode == Mode::Tables {
        model.confine_to_tables();
        if model.cells.iter().all(|entry| entry.best == DEFAULT) {
            warnings.push(
                "COLLTUNE_MODE=tables finds nothing to watch: of no algorithm of the library's own it was learned that \
                 it may replace the default"
                    .to_owned(),
            );
        }
    }
    let site = request.version.map(|version| version.site);
    let database = request.db.as_deref().filter(|_| site.is_none());
    let ledger = database.map(|db| {
        let folder = std::path::absolute(db).unwrap_or_else(|_| db.to_owned());
        folder.join("incoming").to_string_lossy().into_owned()
    });
    // A forced variant is forced from the first call on.
    if !request.forced.is_empty() {
        settings.setup_after = 1;
    }
    settings.simulated.clear();
    let Seed { job, random } = seed;
    let is_of_this_job = variable(variables, SEED).is_some();
    let seed = match settings.seed {
        Some(seed) if is_of_this_job => seed,
        // Jobs that all drew alike would tell of the same few variants.
        Some(seed) => hash_bytes(seed, job.as_bytes()),
        None => random,
    };
    let levers = match request.mode {
        Mode::Off => Vec::new(),
        _ => request.db.as_deref().map_or_else(Vec::new, |db| {
            let known = read_levers(db, library);
            // What is expected weighs draws, and nothing else.
            let draws = |one: &LearnedLever| request.mode == Mode::Explore || !one.is_expected();
            let known = known.map(|known| known.into_iter().filter(draws).collect());
            known.unwrap_or_else(|problem| {
                warnings.push(format!(
                    "failed to {problem}; programs that ask get their first arms until `colltune train` makes the file anew"
                ));
                Vec::new()
            })
        }),
    };
    let terms = JobTerms {
        seed,
        mode: request.mode,
        presets: read_presets(&request.forced, variables, library, warnings),
        forced: request.forced,
        cells: CellTable::new(&model, library),
        settings,
        tables_from: match site {
            Some(_) => TablesFrom::Site,
            None => TablesFrom::Database,
        },
        levers,
    };
    let database = database.filter(|_| terms.records() && !is_guess);
    let incoming = database.and_then(|db| make_incoming(db, terms.mode, warnings));
    Some(Handout {
        job,
        terms,
        log: request.log,
        flight: request.flight,
        incoming,
        ledger,
        site: site.map(|site| site.to_string_lossy().into_owned()),
        told: key.told.map(|told| told.to_string()).unwrap_or_default(),
    })
}

/// What is known of the levers of rank 0's program; nothing where there is no such file.
fn read_levers(db: &Path, library: Library) -> Result<Vec<LearnedLever>, String> {
    let path = db.join(learned::FILE);
    let text = match read_text(&path, MODEL_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("read {}: {error}", path.display())),
    };
    let known = LearnedLevers::from_json(&text);
    let known = known.map_err(|error| format!("{error}, in {}", path.display()))?;
    let program = own_program();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Ok(known.of(&name, &library.to_string()))
}

/// The file of this rank's program; empty where the system does not say, which no list of programs allows.
pub fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// The folder that gets the job's traces. Who only exploits a database may have no right to write to it.
fn make_incoming(db: &Path, mode: Mode, warnings: &mut Vec<String>) -> Option<String> {
    // The program may go elsewhere before the traces get their names.
    let db = std::path::absolute(db).unwrap_or_else(|_| db.to_owned());
    let folder = db.join("incoming");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Some(folder.to_string_lossy().into_owned()),
        Err(_) if mode.exploits() => None,
        Err(error) => {
            warnings.push(format!(
                "failed to make {}: {error}; nothing is recorded",
                folder.display()
            ));
            None
        }
    }
}

/// The presets of `colltune run` that really are in the library's environment.
fn read_presets(
    request: &[Forced],
    variables: &[(String, String)],
    library: Library,
    warnings: &mut Vec<String>,
) -> Vec<Preset> {
    let text = variable(variables, environment::PRESETS).unwrap_or("");
    let Some(mut presets) = preset::parse(text) else {
        warnings.push(format!("failed to read COLLTUNE_PRESETS={text:?}"));
        return Vec::new();
    };
    let all = presets.clone();
    presets.retain(|one| {
        let told = std::env::var(preset::variable(one.collective)).ok();
        told.is_some() && told == preset::adjustment(&all, library, one.collective)
    });
    let lost = presets.len() < all.len();
    let untold = request.iter().any(|forced| {
        let variant = catalogue::find(library, forced.collective, &forced.variant);
        let native = variant.is_some_and(|one| matches!(one.steering, Steering::Intel { .. }));
        native && presets.iter().all(|one| one.variant != forced.variant)
    });
    if lost || untold {
        warnings.push(format!(
            "{library} chooses its algorithms when a job starts and was not told all that is asked for; start \
             the job with `colltune run`"
        ));
    }
    presets
}

/// The database's, or the version's and over them the site's own; then those of the environment.
fn read_settings(request: &Request, variables: &[(String, String)]) -> Result<Settings, String> {
    let mut settings = Settings::default();
    if let Some(db) = &request.db {
        let metadata = std::fs::metadata(db)
            .map_err(|error| format!("open the database {}: {error}", db.display()))?;
        if !metadata.is_dir() {
            return Err(format!(
                "open the database {}: it is not a folder",
                db.display()
            ));
        }
        settings = settings_over(settings, db)?;
    }
    if let Some(version) = &request.version {
        // Whoever explores wanted to see it, maybe.
        settings.summary = SummaryTo::Nobody;
        settings = settings_over(settings, &version.site)?;
    }
    for (name, value) in variables {
        settings
            .override_with(name, value)
            .map_err(|error| error.to_string())?;
    }
    Ok(settings)
}

/// Those of a folder's `colltune.toml` over others.
fn settings_over(settings: Settings, folder: &Path) -> Result<Settings, String> {
    let file = folder.join("colltune.toml");
    match read_text(&file, SETTINGS_BYTES_MAX) {
        Ok(text) => settings
            .with_toml(&text)
            .map_err(|error| format!("{error} ({})", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(settings),
        Err(error) => Err(format!("read {}: {error}", file.display())),
    }
}

/// What `colltune calibrate` found for `library`, as settings hold it; `None` where it never ran.
fn read_simulated(db: &Path, library: Library) -> Result<Option<(Library, Simulated)>, String> {
    let file = db.join(library.to_string()).join(simulated::FILE);
    match read_text(&file, MODEL_BYTES_MAX) {
        Ok(text) => Simulated::from_json(&text, library)
            .map(|found| Some((library, found)))
            .map_err(|error| format!("{error} ({})", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("read {}: {error}", file.display())),
    }
}

/// The model in force, as far as a job on so many nodes and ranks of one reaches; `None` before any training.
fn read_model(db: &Path, key: &DataKey, (nodes, ppn): (u64, u64)) -> Result<Option<Model>, String> {
    let folder = db.join(key.to_string());
    let current = folder.join("CURRENT");
    let generation = match read_text(&current, SETTINGS_BYTES_MAX) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("read {}: {error}", current.display())),
    };
    if generation.is_empty() || !generation.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "read {}: it holds {generation:?}, not the number of a generation",
            current.display()
        ));
    }
    let file = folder
        .join("generations")
        .join(&generation)
        .join("probabilities.json");
    let text = read_text(&file, MODEL_BYTES_MAX)
        .map_err(|error| format!("read {}: {error}", file.display()))?;
    Model::from_json_within(&text, key.library, nodes, ppn)
        .map(Some)
        .map_err(|error| format!("{error} ({})", file.display()))
}

/// The machine's name where the site gives none.
pub fn machine_name() -> String {
    let slurm = std::env::var("SLURM_CLUSTER_NAME").ok();
    machine::name(slurm.as_deref(), &host_name())
}

pub fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the buffer and its length match; the last byte stays NUL.
    let code = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    if code == 0 {
        String::from_utf8_lossy(&name[..end]).into_owned()
    } else {
        String::new()
    }
}
