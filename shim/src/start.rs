//! From `MPI_Init` to an armed tuner, and back at `MPI_Finalize`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, Once};
use std::time::Duration;

use bincode::{Decode, Encode};
use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_core::environment;
use colltune_core::library::{Library, Product};
use colltune_core::record::Header;
use colltune_core::select::mix;
use colltune_core::settings::parse_duration;

use crate::abi::{self, Comm};
use crate::call_log::CallLog;
use crate::clock::{Conversion, Reading};
use crate::communicator::Registry;
use crate::fence;
use crate::floating;
use crate::handout::{self, Handout};
use crate::handshake::{Handshake, Outcome};
use crate::library::{self, HandleTable, Handles, Pmpi};
use crate::messages;
use crate::pending;
use crate::recorder::Recorder;
use crate::steer::Steer;
use crate::tune::Tuner;
use crate::warn::say;
use crate::world::{Messages, World, rank_in_environment};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Called behind the library's MPI_Init: agrees with the other ranks and arms the tuner.
pub fn start_up(code: c_int) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        fence::end_the_job_in_a_panic();
        let variables = handout::variables();
        if rank_in_environment() == 0 {
            handout::unreadable().for_each(|problem| say(&problem));
        }
        if code != abi::SUCCESS || !handout::wanted(&variables) {
            return;
        }
        if let Some(tuner) = floating::by_default(|| agree(&variables)) {
            pending::find_out();
            fence::arm(tuner);
        }
    });
}

/// Called in front of the library's MPI_Finalize.
pub fn wind_down() {
    if let Some(tuner) = fence::disarm() {
        floating::by_default(|| tuner.finish());
    }
}

/// What each rank tells all others once.
#[derive(Encode, Decode)]
struct Card {
    host: u64,
    clock: Conversion,
}

fn agree(variables: &[(String, String)]) -> Option<Tuner> {
    let reading = Reading::now();
    let pmpi = library::pmpi()?;
    // Before anything else: on another library not even the predefined handles are right. All ranks
    // run one library, so all stop here, and none waits for another.
    let library = library_version(pmpi)
        .inspect_err(|problem| {
            if rank_in_environment() == 0 {
                say(problem);
            }
        })
        .ok()?;
    let handles = Handles::resolve(pmpi)?;
    let world = handles.comm_world;
    let (rank, n_ranks) = (
        number(pmpi.comm_rank, world)?,
        number(pmpi.comm_size, world)?,
    );
    let outcome = shake_hands(pmpi, &handles, variables, rank, n_ranks, library);
    let handshake = match outcome {
        (Outcome::Go, handshake) => handshake,
        (Outcome::Stay(problem), _) => {
            say(&problem);
            return None;
        }
        (Outcome::StaySilently, _) => return None,
    };

    let own_card = Card {
        host: host_hash(pmpi),
        clock: reading.calibrate(),
    };
    let cards = exchange(pmpi, &handles, n_ranks, &own_card)?;
    let node_of_rank = number_nodes(&cards);
    let (nodes, ppn) = extent(&node_of_rank);
    let handout = hand_out(pmpi, &handles, rank, || {
        let found = handout::read(variables, library, nodes, ppn);
        found.warnings.iter().for_each(|warning| say(warning));
        found.handout
    });
    // Everybody has passed the hand-out, so everybody has read what the handshake published.
    if let Some(handshake) = &handshake {
        handshake.clean_up();
    }
    let handout = handout?;
    let here = node_of_rank[rank as usize];
    let on_node = cards
        .iter()
        .zip(&node_of_rank)
        .filter(|(_, node)| **node == here);
    let clock = Conversion::agreed(on_node.map(|(card, _)| card.clock));
    let mut tuner = build(
        pmpi,
        handles,
        rank,
        library,
        handout,
        node_of_rank,
        clock,
        own_card.host,
    )?;
    if tuner.handout.may_run_own() {
        tuner.world.messages = messages::open(&tuner);
    }
    Some(tuner)
}

/// Whether the node of a rank has more ranks than processors.
fn shares_processors(rank: u32, node_of_rank: &[u32]) -> bool {
    let node = node_of_rank[rank as usize];
    let ranks = node_of_rank.iter().filter(|other| **other == node).count();
    // SAFETY: it only asks for a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    ranks as i64 > online
}

fn number(ask: unsafe extern "C-unwind" fn(Comm, *mut c_int) -> c_int, comm: Comm) -> Option<u32> {
    let mut value = 0;
    // SAFETY: `comm` is valid and one number is written.
    let code = unsafe { ask(comm, &mut value) };
    (code == abi::SUCCESS).then(|| u32::try_from(value).ok())?
}

fn text(
    length: isize,
    ask: unsafe extern "C-unwind" fn(*mut std::ffi::c_char, *mut c_int) -> c_int,
) -> String {
    let mut bytes = vec![0u8; length as usize + 1];
    let mut used = 0;
    // SAFETY: the buffer has the length that the library's header promises to be enough.
    unsafe { ask(bytes.as_mut_ptr().cast(), &mut used) };
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The library, if this build of the shim serves it.
fn library_version(pmpi: &Pmpi) -> Result<Library, String> {
    // The library may be another than the one whose header gave the length: room for any.
    let text = text(
        abi::MPI_MAX_LIBRARY_VERSION_STRING.max(8192),
        pmpi.get_library_version,
    );
    let library = Library::from_version_text(&text)
        .map_err(|error| format!("failed to {error}; collectives run untuned"))?;
    if abi::ABI.serves(library.product) {
        Ok(library)
    } else {
        Err(format!(
            "this libcolltune.so serves {}, the program runs on {library}; `colltune run` preloads the right one; collectives run untuned",
            abi::ABI.name()
        ))
    }
}

fn shake_hands<'a>(
    pmpi: &'a Pmpi,
    handles: &'a Handles,
    variables: &[(String, String)],
    rank: u32,
    n_ranks: u32,
    library: Library,
) -> (Outcome, Option<Handshake<'a>>) {
    if handout::variable(variables, environment::HANDSHAKE) == Some("trust") {
        return (Outcome::Go, None);
    }
    // A world that another job spawned under MPICH has no name of its own to meet under.
    if std::env::var_os("PMI_SPAWNED").is_some_and(|value| value != "0")
        && library.product != Product::OpenMpi
    {
        return (Outcome::StaySilently, None);
    }
    let timeout = handout::variable(variables, environment::HANDSHAKE_TIMEOUT).map(parse_duration);
    let timeout = match timeout.transpose() {
        Ok(timeout) => timeout.unwrap_or(HANDSHAKE_TIMEOUT),
        Err(problem) => {
            if rank == 0 {
                say(&format!(
                    "failed to read COLLTUNE_HANDSHAKE_TIMEOUT: {problem}; {HANDSHAKE_TIMEOUT:?} is used"
                ));
            }
            HANDSHAKE_TIMEOUT
        }
    };
    let settings = variables.iter().fold(0, |hash, (name, value)| {
        hash_bytes(hash_bytes(hash, name.as_bytes()), value.as_bytes())
    });
    let handshake = Handshake {
        pmpi,
        handles,
        rank,
        n_ranks,
        world: std::env::var("PMIX_NAMESPACE")
            .unwrap_or_default()
            .replace('\0', ""),
        identity: format!(
            "colltune {} for {}, settings {settings:016x}",
            env!("CARGO_PKG_VERSION"),
            library
        ),
        timeout,
    };
    (handshake.run(), Some(handshake))
}

fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(mix(seed, bytes.len() as u64), |hash, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(hash, u64::from_le_bytes(word))
        })
}

fn host_hash(pmpi: &Pmpi) -> u64 {
    hash_bytes(
        1,
        text(abi::MPI_MAX_PROCESSOR_NAME, pmpi.get_processor_name).as_bytes(),
    )
}

/// Every rank's card, by rank. Collective over the world.
fn exchange(pmpi: &Pmpi, handles: &Handles, n_ranks: u32, own: &Card) -> Option<Vec<Card>> {
    let config = bincode::config::standard().with_fixed_int_encoding();
    let own = bincode::encode_to_vec(own, config).ok()?;
    let mut all = vec![0u8; own.len() * n_ranks as usize];
    let length = own.len() as c_int;
    // SAFETY: each rank sends `length` bytes and receives that many from each.
    let code = unsafe {
        (pmpi.allgather)(
            own.as_ptr().cast(),
            length,
            handles.byte,
            all.as_mut_ptr().cast(),
            length,
            handles.byte,
            handles.comm_world,
        )
    };
    let cards = all.chunks_exact(own.len()).map(|card| {
        bincode::decode_from_slice(card, config)
            .ok()
            .map(|(card, _)| card)
    });
    if code == abi::SUCCESS {
        cards.collect()
    } else {
        None
    }
}

/// For each rank the number of its node, counted in the order of first appearance.
fn number_nodes(cards: &[Card]) -> Vec<u32> {
    let mut numbers = std::collections::HashMap::new();
    cards
        .iter()
        .map(|card| {
            let next = numbers.len() as u32;
            *numbers.entry(card.host).or_insert(next)
        })
        .collect()
}

fn extent(node_of_rank: &[u32]) -> (u64, u64) {
    let mut ranks_on = vec![
        0u64;
        node_of_rank
            .iter()
            .max()
            .map_or(0, |node| *node as usize + 1)
    ];
    for node in node_of_rank {
        ranks_on[*node as usize] += 1;
    }
    (
        ranks_on.len() as u64,
        ranks_on.iter().copied().max().unwrap_or(0),
    )
}

/// Rank 0 reads, everybody receives. Collective over the world.
fn hand_out(
    pmpi: &Pmpi,
    handles: &Handles,
    rank: u32,
    read: impl FnOnce() -> Option<Handout>,
) -> Option<Handout> {
    let config = bincode::config::standard();
    let mut bytes = if rank == 0 {
        read().and_then(|handout| bincode::encode_to_vec(handout, config).ok())
    } else {
        None
    }
    .unwrap_or_default();
    let mut length = [bytes.len() as u64];
    let bcast = |buffer: *mut u8, count: usize| {
        let Ok(count) = c_int::try_from(count) else {
            return false;
        };
        // SAFETY: the buffer holds `count` bytes on every rank.
        unsafe {
            (pmpi.bcast)(buffer.cast(), count, handles.byte, 0, handles.comm_world) == abi::SUCCESS
        }
    };
    if !bcast(length.as_mut_ptr().cast(), 8) || length[0] == 0 {
        return None;
    }
    bytes.resize(length[0] as usize, 0);
    if !bcast(bytes.as_mut_ptr(), bytes.len()) {
        return None;
    }
    bincode::decode_from_slice(&bytes, config)
        .ok()
        .map(|(handout, _)| handout)
}

#[expect(
    clippy::too_many_arguments,
    reason = "everything that the steps of `agree` found, once"
)]
fn build(
    pmpi: &'static Pmpi,
    handles: Handles,
    rank: u32,
    library: Library,
    handout: Handout,
    node_of_rank: Vec<u32>,
    clock: Conversion,
    host: u64,
) -> Option<Tuner> {
    let variants = Collective::ALL.map(|collective| catalogue::variants(library, collective));
    let names = Collective::ALL.map(|collective| {
        variants[collective.index()]
            .iter()
            .map(|variant| variant.name.to_string())
            .collect::<Vec<_>>()
    });
    let mut first_variant = [0; Collective::ALL.len()];
    for place in 1..first_variant.len() {
        first_variant[place] = first_variant[place - 1] + variants[place - 1].len() as u16;
    }
    let header_variants = Collective::ALL
        .into_iter()
        .flat_map(|collective| {
            names[collective.index()]
                .iter()
                .map(move |name| (collective, name.clone()))
        })
        .collect();
    let recorder = open_trace(
        pmpi,
        &handles,
        rank,
        library,
        &handout,
        &node_of_rank,
        host,
        header_variants,
    );
    let log = open_log(pmpi, &handles, rank, &handout);
    let mut thread_level = 0;
    let query = library::find(c"PMPI_Query_thread");
    if !query.is_null() {
        // SAFETY: the symbol is PMPI_Query_thread, which writes one number.
        unsafe {
            std::mem::transmute::<
                *mut std::ffi::c_void,
                unsafe extern "C-unwind" fn(*mut c_int) -> c_int,
            >(query)(&mut thread_level)
        };
    }
    let registry = Registry::create(pmpi, &handles)?;
    let types = HandleTable::new(handles.types.iter().copied());
    let pairs = HandleTable::new(handles.pairs.iter().map(|&datatype| (datatype, ())));
    let ops = HandleTable::new(handles.ops.iter().copied());
    Some(Tuner {
        world: World {
            pmpi,
            types,
            pairs,
            ops,
            handles,
            rank,
            shares_processors: shares_processors(rank, &node_of_rank),
            node_of_rank,
            messages: Messages::default(),
            wait_word_after: handout.settings.wait_word_after,
        },
        steer: Steer::new(&variants),
        handout,
        variants,
        names,
        first_variant,
        registry,
        clock,
        recorder,
        log: log.map(Mutex::new),
        thread_multiple: thread_level == abi::THREAD_MULTIPLE,
        busy: AtomicUsize::new(0),
        next_comm: AtomicU64::new(0),
        warned: Default::default(),
    })
}

/// Whether a rank records: some ranks of a node, from its first to its last at even distances, on as
/// many nodes as the limit allows, evenly spread. The last rank is among them because pipelines and
/// trees end there: of their time the first ranks see little.
fn records(rank: u32, node_of_rank: &[u32], handout: &Handout) -> bool {
    let node = node_of_rank[rank as usize];
    let on_node = |ranks: &[u32]| ranks.iter().filter(|other| **other == node).count() as u64;
    let (place, ranks) = (
        on_node(&node_of_rank[..rank as usize]),
        on_node(node_of_rank),
    );
    let per_node = u64::from(
        handout
            .settings
            .recording_ranks_per_node
            .min(handout.settings.recording_ranks),
    )
    .min(ranks);
    let nodes = u64::from(node_of_rank.iter().max().map_or(0, |last| last + 1));
    let recording_nodes =
        (u64::from(handout.settings.recording_ranks) / per_node.max(1)).min(nodes);
    chosen(place, ranks, per_node) && chosen(node.into(), nodes, recording_nodes)
}

/// Whether place `place` of `n` is among `k` places at even distances, the first and last included.
fn chosen(place: u64, n: u64, k: u64) -> bool {
    match k {
        0 => false,
        1 => place == 0,
        _ => (0..k).any(|step| step * (n - 1) / (k - 1) == place),
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of a trace's header")]
fn open_trace(
    pmpi: &Pmpi,
    handles: &Handles,
    rank: u32,
    library: Library,
    handout: &Handout,
    node_of_rank: &[u32],
    host: u64,
    variants: Vec<(Collective, String)>,
) -> Option<Recorder> {
    let incoming = handout.incoming.as_ref()?;
    let opened = records(rank, node_of_rank, handout).then(|| {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let clock = if boot.is_empty() {
            host
        } else {
            hash_bytes(2, boot.as_bytes())
        };
        let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let header = Header {
            job: handout.job.clone(),
            rank,
            world_ranks: node_of_rank.len() as u32,
            library: library.to_string(),
            machine: handout.model.machine.clone(),
            host: handout::host_name(),
            clock,
            generation: handout.model.generation,
            colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: started.map_or(0, |time| time.as_millis() as u64),
            capacity: handout.settings.records_per_run,
            variants,
        };
        Recorder::create(incoming.as_ref(), &header)
    });
    let (recorder, code) = match opened {
        None => (None, 0),
        Some(Ok(recorder)) => (Some(recorder), 0),
        Some(Err(error)) => (None, error.raw_os_error().unwrap_or(libc::EIO)),
    };
    if let Some(error) = worst(pmpi, handles, code)
        && rank == 0
    {
        say(&format!(
            "failed to write traces to {incoming}: {error}; ranks without a trace are not recorded"
        ));
    }
    recorder
}

fn open_log(pmpi: &Pmpi, handles: &Handles, rank: u32, handout: &Handout) -> Option<CallLog> {
    let folder = handout.log.as_ref()?;
    let (log, code) = match CallLog::open(folder, rank) {
        Ok(log) => (Some(log), 0),
        Err(error) => (None, error.raw_os_error().unwrap_or(libc::EIO)),
    };
    let failed = worst(pmpi, handles, code);
    if let Some(error) = failed {
        if rank == 0 {
            say(&format!(
                "failed to write the call log to {folder}: {error}; no calls are logged"
            ));
        }
        // With a log, communicators are set up earlier, so all ranks have one or none.
        return None;
    }
    log
}

/// The largest error code of all ranks; `None` when all are 0. Collective over the world.
fn worst(pmpi: &Pmpi, handles: &Handles, code: i32) -> Option<std::io::Error> {
    let (own, mut all) = ([code as u64], [0u64]);
    // SAFETY: one 64-bit number each.
    unsafe {
        (pmpi.allreduce)(
            own.as_ptr().cast(),
            all.as_mut_ptr().cast(),
            1,
            handles.uint64,
            handles.max,
            handles.comm_world,
        )
    };
    (all[0] != 0).then(|| std::io::Error::from_raw_os_error(all[0] as i32))
}
