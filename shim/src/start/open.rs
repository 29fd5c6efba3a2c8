//! What each rank opens for itself at the start. Whether it worked everywhere all learn in one reduction: where ranks
//! share processors, waiting for each other is what a start costs most.

use std::io;
use std::time::Duration;

use colltune_core::collective::Collective;
use colltune_core::context::told;
use colltune_core::decide::rules::Rules;
use colltune_core::library::Library;
use colltune_core::record::Header;
use colltune_core::roster::{self, hash_bytes};

use super::strict;
use super::tell::largest;
use crate::call_log::CallLog;
use crate::communicator::Registry;
use crate::context;
use crate::handout;
use crate::library::{Handles, Pmpi};
use crate::messages;
use crate::private::Private;
use crate::recorder::Recorder;
use crate::warn::say;
use crate::world::Messages;

/// The shortest time without a write after which a trace may belong to a job that died.
const REST_MIN: Duration = Duration::from_secs(60);

/// What the ranks have then.
pub struct Opened {
    pub registry: &'static Registry,
    /// On all ranks or on none: with a log, communicators are set up earlier.
    pub log: Option<CallLog>,
    pub recorder: Option<Recorder>,
    /// On all ranks or on none.
    pub messages: Messages,
    pub programs: Programs,
    /// Whether some rank is not recorded that was to be; all ranks know that alike.
    pub is_untraced: bool,
}

/// Whether the site tunes programs like those of the job; the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    Allowed,
    /// One of them is not to be tuned, so the others are not either.
    Denied,
}

/// The job as far as it says what is opened.
#[derive(Clone, Copy)]
pub struct JobFacts<'a> {
    pub name: &'a str,
    pub library: Library,
    pub rules: &'a Rules,
    /// The folder of the call log, if there is one.
    pub log: Option<&'a str>,
    /// The folder of traces, if anything is recorded.
    pub incoming: Option<&'a str>,
    /// The user's settings of the library's algorithms; empty without any.
    pub told: &'a str,
    pub rank: u32,
    pub node_of_rank: &'a [u32],
    /// Whether this rank's node has more ranks than processors.
    pub shares_processors: bool,
    pub host: u64,
}

/// How long a rank may write nothing to its trace: a training calls one abandoned after four times as long.
fn longest_rest(rules: &Rules) -> Duration {
    (rules.terms.settings.stale_after / 4).max(REST_MIN)
}

/// Opens it. Collective over the world; `None` on all ranks where one of them cannot keep anything of communicators.
pub fn open(pmpi: &'static Pmpi, handles: &Handles, job: JobFacts) -> Option<Opened> {
    let registry = Registry::create(pmpi, handles);
    let log = job.log.map(|folder| CallLog::open(folder, job.rank));
    let trace = job.incoming.filter(|_| is_recorded(&job)).map(|incoming| {
        Recorder::create(incoming.as_ref(), &header(&job), longest_rest(job.rules))
    });
    let may_send = job.rules.may_send();
    let made = may_send.then(|| messages::make(pmpi, handles));
    let mut codes = [
        u64::from(registry.is_none()),
        code(&log),
        code(&trace),
        u64::from(matches!(made, Some(Private::Failed))),
        u64::from(!is_allowed(&job)),
    ];
    largest(pmpi, handles, &mut codes);
    let [unregistered, log_code, trace_code, unmade, denied] = codes;
    let recorder = trace.and_then(Result::ok);
    let made = made.unwrap_or_default();
    if unregistered != 0 {
        messages::take_back(made, pmpi);
        // It is empty, and goes.
        let _ = recorder.map(|recorder| recorder.finish());
        strict::untuned(
            "failed to make an attribute of communicators on some rank; collectives run untuned on all ranks",
        );
        return None;
    }
    if denied != 0 {
        messages::take_back(made, pmpi);
        // As above.
        let _ = recorder.map(|recorder| recorder.finish());
        strict::denied(
            "programs_allow or programs_deny leaves a program of this job out; collectives run untuned",
        );
        return Some(Opened {
            registry: registry?,
            log: None,
            recorder: None,
            messages: Messages::default(),
            programs: Programs::Denied,
            is_untraced: false,
        });
    }
    if let (Some(error), Some(folder)) = (error_of(log_code), job.log) {
        say_at_0(&job, || {
            format!("failed to write the call log to {folder}: {error}; no calls are logged")
        });
    }
    if let (Some(error), Some(incoming)) = (error_of(trace_code), job.incoming)
        && job.rules.terms.mode.records()
    {
        say_at_0(&job, || {
            format!(
                "failed to write traces to {incoming}: {error}; ranks without a trace are not recorded"
            )
        });
    }
    Some(Opened {
        registry: registry?,
        log: log.and_then(Result::ok).filter(|_| log_code == 0),
        recorder,
        messages: match unmade {
            0 if may_send => messages::of(made, pmpi, handles),
            _ => {
                messages::take_back(made, pmpi);
                Messages::default()
            }
        },
        programs: Programs::Allowed,
        is_untraced: trace_code != 0 && job.rules.terms.mode.records(),
    })
}

/// Whether this rank's program may be tuned; in a job with several programs they differ.
fn is_allowed(job: &JobFacts) -> bool {
    let programs = job.rules.terms.settings.programs();
    !programs.choose() || programs.allow(&handout::own_program())
}

fn say_at_0(job: &JobFacts, sentence: impl FnOnce() -> String) {
    if job.rank == 0 {
        say(&sentence());
    }
}

/// The number of an error, larger than 0; 0 where there is none.
fn code<T>(opened: &Option<io::Result<T>>) -> u64 {
    let error = opened.as_ref().and_then(|opened| opened.as_ref().err());
    let code = error.map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
    u64::from(code.unsigned_abs())
}

fn error_of(code: u64) -> Option<io::Error> {
    (code != 0).then(|| io::Error::from_raw_os_error(code as i32))
}

fn is_recorded(job: &JobFacts) -> bool {
    let settings = &job.rules.terms.settings;
    let (per_node, in_all) = (settings.recording_ranks_per_node, settings.recording_ranks);
    roster::records(job.rank, job.node_of_rank, per_node, in_all)
}

/// What this rank's trace begins with.
fn header(job: &JobFacts) -> Header {
    let terms = &job.rules.terms;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let clock = match boot.is_empty() {
        true => job.host,
        false => hash_bytes(2, boot.as_bytes()),
    };
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let mut context = context::read(job.library, job.shares_processors);
    if !job.told.is_empty() {
        let column = (told::COLUMN.to_owned(), job.told.to_owned());
        context.columns.push(column);
    }
    let variants = Collective::ALL.into_iter().flat_map(|collective| {
        let names = job.rules.names[collective.index()].iter();
        names.map(move |name| (collective, name.clone()))
    });
    Header {
        job: job.name.to_owned(),
        rank: job.rank,
        world_ranks: job.node_of_rank.len() as u32,
        library: job.library.to_string(),
        machine: terms.cells.machine.clone(),
        host: handout::host_name(),
        clock,
        generation: terms.cells.generation,
        colltune_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: started.map_or(0, |time| time.as_millis() as u64),
        capacity: terms.settings.records_per_run,
        variants: variants.collect(),
        context: context.columns,
        transport: context.transport.to_string(),
    }
}
