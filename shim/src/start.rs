//! From `MPI_Init` to an armed tuner, and back at `MPI_Finalize`.

mod served;
mod strict;

mod meet;
mod open;
mod tell;

mod end;
pub use end::finalize;

use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, Once};

use colltune_core::collective::Collective;
use colltune_core::decide::hopeless::KnownHopeless;
use colltune_core::decide::rules::{JobTerms, Rules, Telling};
use colltune_core::launched;
use colltune_core::library::Library;
use colltune_core::processors::{Allowed, are_rationed, share};
use colltune_core::roster::{self, hash_bytes};
use colltune_core::select::mix;
use colltune_core::settings::SummaryTo;

use crate::abi::{self, Comm};
use crate::account::{Account, Destination, Threads};
use crate::clock::{Conversion, Reading};
use crate::code_pages;
use crate::context;
use crate::fault_tolerance;
use crate::fence;
use crate::flight::Flight;
use crate::floating;
use crate::gap::Gap;
use crate::handout::{self, Handout};
use crate::handshake::{Handshake, Manager};
use crate::library::{self, Handles, Pmpi, Predefined};
use crate::limits;
use crate::pending;
use crate::private;
use crate::processors;
use crate::spending::Spending;
use crate::steer::Steer;
use crate::switch;
use crate::tune::Tuner;
use crate::warn::{note_stderr, say};
use crate::world::{World, rank_in_environment};
use meet::{identity, shake_hands};
use open::{JobFacts, Opened, Programs};
use tell::{Card, exchange, hand_out};

/// Called in front of the library's MPI_Init, which takes long enough for a rate to be read from it.
pub fn before() -> Reading {
    Reading::now()
}

/// Called behind the library's MPI_Init: agrees with the other ranks and arms the tuner.
pub fn start_up(code: c_int, before: Reading) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        note_stderr();
        fence::end_the_job_in_a_panic();
        let variables = handout::variables();
        if rank_in_environment() == 0 {
            handout::unreadable().for_each(|problem| say(&problem));
        }
        if code != abi::SUCCESS || !handout::wanted(&variables) {
            return;
        }
        if let Some(tuner) = floating::by_default(|| agree(&variables, before)) {
            pending::find_out();
            end::hang_on_self(tuner.pmpi, &tuner.handles);
            fence::arm(tuner);
            code_pages::let_go();
        }
    });
}

fn agree(variables: &[(String, String)], before: Reading) -> Option<Tuner> {
    strict::take();
    let behind = Reading::now();
    let pmpi = library::pmpi()?;
    // Before anything else: on another library not even the predefined handles are right. All ranks
    // run one library, so all stop here, and none waits for another.
    let library_text = text(
        // The library may be another than the one whose header gave the length: room for any.
        abi::MPI_MAX_LIBRARY_VERSION_STRING.max(8192),
        pmpi.get_library_version,
    );
    let (library, handles) = served::served(pmpi, &library_text)
        .map_err(|problem| strict::untuned(&problem))
        .ok()?;
    let world = handles.comm_world;
    let (rank, n_ranks) = (
        number(pmpi.comm_rank, world)?,
        number(pmpi.comm_size, world)?,
    );
    if let Some(strangers) =
        launched::strangers(library.product, n_ranks, |name| std::env::var(name).ok())
    {
        strict::untuned_at(
            strangers.place,
            &format!("{strangers}; collectives run untuned"),
        );
        return None;
    }
    let manager = Manager::find(library, &library_text);
    let identity = identity(variables, library);
    let read = |extent| handout::read(variables, (library, context::own_data), extent);
    // Where all ranks are on one node rank 0 reads before the others go.
    let mut early = None;
    let on_one_node = (1, u64::from(n_ranks));
    let handshake = shake_hands(
        (pmpi, &handles),
        (rank, n_ranks),
        &manager,
        identity,
        variables,
        || early = Some(read(on_one_node)),
    )?;

    let own_card = Card {
        host: host_hash(pmpi),
        clock: before.calibrate(behind),
        processors: Allowed::of(&processors::allowed()),
        quota: processors::quota(),
    };
    let cards = exchange(pmpi, &handles, n_ranks, &own_card)?;
    // Everybody has passed the exchange, so everybody has read what the handshake published. While the others take
    // theirs back, rank 0, for which they wait next, reads.
    let published = match rank {
        0 => Some(handshake),
        _ => {
            handshake.clean_up();
            None
        }
    };
    let node_of_rank = roster::number_nodes(cards.iter().map(|card| card.host));
    let (nodes, ppn) = roster::extent(&node_of_rank);
    let handout = hand_out(pmpi, &handles, rank, || {
        let found = early
            .filter(|_| (nodes, ppn) == on_one_node)
            .unwrap_or_else(|| read((nodes, ppn)));
        found.warnings.iter().for_each(|warning| say(warning));
        found.handout
    });
    published.into_iter().for_each(Handshake::clean_up);
    let Some(handout) = handout else {
        strict::untuned("");
        return None;
    };
    limits::set_memory_max(handout.terms.settings.memory_per_rank_max);
    let here = node_of_rank[rank as usize];
    let on_node: Vec<&Card> = cards
        .iter()
        .zip(&node_of_rank)
        .filter_map(|(card, node)| (*node == here).then_some(card))
        .collect();
    let clock = Conversion::agreed(on_node.iter().map(|card| card.clock));
    let shares_processors = share_processors(&on_node);
    build(
        pmpi,
        handles,
        rank,
        library,
        handout,
        node_of_rank,
        clock,
        own_card.host,
        shares_processors,
    )
}

/// Whether the ranks of a node have to share processors, whichever communicator they meet in.
fn share_processors(on_node: &[&Card]) -> bool {
    // SAFETY: it only asks for a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let allowed: Vec<_> = on_node.iter().map(|card| card.processors).collect();
    let quotas: Vec<_> = on_node.iter().map(|card| card.quota).collect();
    on_node.len() as i64 > online || share(&allowed) || are_rationed(&quotas)
}

/// Whether a launcher's or user's setting makes the library give the processor away while it waits: then others use
/// it, of whom this job may know nothing.
fn yields_when_idle() -> bool {
    std::env::var_os("OMPI_MCA_mpi_yield_when_idle")
        .is_some_and(|told| !matches!(told.as_bytes(), b"" | b"0" | b"false"))
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

fn host_hash(pmpi: &Pmpi) -> u64 {
    hash_bytes(
        1,
        text(abi::MPI_MAX_PROCESSOR_NAME, pmpi.get_processor_name).as_bytes(),
    )
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
    shares_processors: bool,
) -> Option<Tuner> {
    let Handout {
        job,
        terms,
        log,
        incoming,
        flight,
        ledger,
        site,
        told,
    } = handout;
    let mut rules = Rules::new(terms, library, Telling::Needed);
    let mut first_variant = [0; Collective::ALL.len()];
    for place in 1..first_variant.len() {
        first_variant[place] = first_variant[place - 1] + rules.variants[place - 1].len() as u16;
    }
    let facts = JobFacts {
        name: &job,
        library,
        rules: &rules,
        log: log.as_deref(),
        incoming: incoming.as_deref(),
        told: &told,
        rank,
        node_of_rank: &node_of_rank,
        shares_processors,
        host,
    };
    let Opened {
        registry,
        log,
        recorder,
        messages,
        programs,
        is_untraced,
    } = open::open(pmpi, &handles, facts)?;
    if is_untraced {
        strict::untuned("");
    }
    let flight = flight.filter(|_| programs == Programs::Allowed);
    if programs == Programs::Denied {
        rules.turn_off();
    }
    // Where all ranks report every decision, communicators get their numbers at the first call.
    if log.is_some() || flight.is_some() {
        rules.telling = Telling::All;
    }
    let flight = flight.as_ref().and_then(|folder| {
        let header = colltune_core::flight::Header {
            rank,
            world_ranks: node_of_rank.len() as u32,
            host: text(abi::MPI_MAX_PROCESSOR_NAME, pmpi.get_processor_name),
            process: std::process::id(),
            colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
            variants: rules.names.iter().flatten().cloned().collect(),
        };
        Flight::arm(folder, &header, clock)
    });
    let polled = site.zip(rules.terms.polls_switch_every());
    let is_wanted = rank == 0 && node_of_rank.len() > 1 && rules.terms.cells.chooses();
    if let Some((site, every)) = polled.filter(|_| is_wanted) {
        switch::watch(site.into(), every);
    }
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
    let thread_multiple = thread_level == abi::THREAD_MULTIPLE;
    if thread_multiple {
        private::has_threads();
    }
    let account = open_account(&rules.terms, rank, thread_multiple, clock, ledger);
    if let Some(account) = &account {
        let library = library.to_string();
        account.begin(rank, &node_of_rank, &rules.terms, (&job, &library));
    }
    let (Predefined { types, pairs, ops }, checks_arguments) = ask(pmpi, &handles);
    Some(Tuner {
        world: World {
            pmpi,
            types,
            pairs,
            ops,
            handles,
            rank,
            shares_processors,
            yields_when_idle: yields_when_idle(),
            tolerates_deaths: fault_tolerance::is_asked_for(),
            node_of_rank,
            messages,
            checks_arguments,
            wait_warning_after: rules.terms.settings.wait_warning_after,
            fixed_order: rules.keeps_fixed_order(),
            spending: Spending::begin(),
        },
        steer: Steer::new(&rules.variants),
        is_plain: account.is_none() && rules.telling == Telling::Needed,
        account,
        job,
        library: library.to_string(),
        rules,
        first_variant,
        registry,
        clock,
        recorder,
        log: log.map(Mutex::new),
        flight,
        incoming,
        thread_multiple,
        busy: AtomicUsize::new(0),
        gap: Gap::default(),
        next_comm: AtomicU64::new(0),
        hopeless: KnownHopeless::default(),
        demoted: AtomicU64::new(0),
        warned: Default::default(),
    })
}

/// Asks the library for what is predefined, and whether it looks at arguments: then it refuses the size of no type,
/// which it gives for 0 where it does not. Errors must not reach the program's error handlers.
fn ask(pmpi: &Pmpi, handles: &Handles) -> (Predefined, bool) {
    let comms = [handles.comm_world, handles.comm_self];
    let handlers = comms.map(|comm| private::silence(pmpi, handles, comm));
    let predefined = Predefined::ask(pmpi);
    let mut size = 0;
    // SAFETY: one number is written; the library knows the handle.
    let code = unsafe { (pmpi.type_size)(handles.datatype_null, &mut size) };
    for (comm, handler) in comms.into_iter().zip(handlers) {
        private::restore(pmpi, comm, handler);
    }
    (predefined, code != abi::SUCCESS)
}

/// The account, where anybody wants to see it: all ranks know that alike.
fn open_account(
    terms: &JobTerms,
    rank: u32,
    thread_multiple: bool,
    clock: Conversion,
    ledger: Option<String>,
) -> Option<Account> {
    let summary = terms.settings.summary.clone();
    if summary == SummaryTo::Nobody && ledger.is_none() {
        return None;
    }
    let threads = match thread_multiple {
        true => Threads::Several,
        false => Threads::One,
    };
    let to = Destination { summary, ledger };
    Some(Account::open(
        mix(terms.seed, rank.into()),
        threads,
        clock,
        to,
    ))
}
