//! One entry of `incoming/`: which trace it claims to be, and whether to believe it.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use colltune_core::context::told::{self, ToldWord};
use colltune_core::context::{Context, DataKey, Transport};
use colltune_core::library::Library;
use colltune_core::record::{self, Header, RECORD_BYTES, Record};
use colltune_core::variant::VariantName;

use crate::folder::Folder;

/// Files above this length are no traces: a rank writes 16 MiB of records at most. Earlier versions took more where
/// the site's `records_per_run` asked for it.
const TRACE_BYTES_MAX: u64 = 32 << 20;
/// A call that takes longer than a day did not happen.
const DURATION_NS_MAX: u64 = 86_400_000_000_000;
/// Words from a header that end up in files and on terminals.
const WORD_BYTES_MAX: usize = 255;

/// A trace whose header is believed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub key: DataKey,
    pub header: Header,
    /// Who owns the file, by number. What the file says of itself is a claim of theirs.
    pub owner: u32,
    /// Every record that is whole and says something possible, in the order written.
    pub records: Vec<Record>,
    /// What is wrong with the rest of the file, if anything is.
    pub damage: Option<String>,
}

/// What an entry of `incoming/` turned out to be.
#[derive(Debug)]
pub enum Entry {
    Trace(Box<Trace>),
    /// For the quarantine, with the reason.
    Refused(String),
    /// Still being written, or gone meanwhile: left alone.
    Left,
    /// A user's, whose umask keeps it from who trains.
    Unreadable(u32),
    /// The file system failed; the entry may be fine.
    Failed(std::io::Error),
}

/// What an ingest accepts.
#[derive(Clone, Debug)]
pub struct Accepts {
    pub machine: String,
    pub records_per_run: u64,
    /// Traces of running jobs that were written to after this time are left alone ...
    pub stale_before: SystemTime,
    /// ... unless these are wanted too.
    pub include_running: bool,
}

/// The parts of the name `JOB.RANK.trace` or `JOB.RANK.trace.open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub job: String,
    pub rank: u32,
    pub open: bool,
}

impl Name {
    pub fn read(name: &str) -> Option<Name> {
        let (stem, open) = name
            .strip_suffix(".open")
            .map_or((name, false), |stem| (stem, true));
        let (job, rank) = stem.strip_suffix(".trace")?.rsplit_once('.')?;
        let plain = !job.is_empty()
            && job.len() <= 200
            && job
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let digits = rank.bytes().all(|byte| byte.is_ascii_digit());
        (plain && digits).then_some(())?;
        Some(Name {
            job: job.to_owned(),
            rank: rank.parse().ok()?,
            open,
        })
    }
}

/// Looks at one entry of a folder. Nothing in it can make this fail, wait or allocate without limit.
pub fn examine(folder: &Folder, entry: &OsStr, accepts: &Accepts) -> Entry {
    let Some(name) = entry.to_str().and_then(Name::read) else {
        return Entry::Refused("its name is not JOB.RANK.trace".to_owned());
    };
    let found = match folder.read(entry) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            return Entry::Refused(error.to_string());
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return match folder.owner(entry) {
                Ok(owner) => Entry::Unreadable(owner),
                Err(error) => gone_or(error, Entry::Failed),
            };
        }
        Err(error) => return gone_or(error, Entry::Failed),
    };
    let metadata = &found.metadata;
    let goes_on = name.open
        && metadata
            .modified()
            .map_or(true, |written| written > accepts.stale_before);
    if goes_on && !accepts.include_running {
        return Entry::Left;
    }
    // Whoever owns it may not have put it here.
    if metadata.nlink() > 1 {
        return Entry::Refused(format!("the file has {} other names", metadata.nlink() - 1));
    }
    let longest = TRACE_BYTES_MAX.max(
        accepts
            .records_per_run
            .saturating_mul(RECORD_BYTES as u64)
            .saturating_add(2 << 20),
    );
    if metadata.size() > longest {
        return Entry::Refused(format!(
            "it is {} bytes long, no trace is longer than {longest}",
            metadata.size()
        ));
    }
    let mut bytes = Vec::with_capacity(metadata.size() as usize);
    if let Err(error) = found.file.take(longest).read_to_end(&mut bytes) {
        return Entry::Failed(error);
    }
    match believe(&bytes, &name, accepts) {
        Ok(trace) => Entry::Trace(Box::new(Trace {
            owner: found.metadata.uid(),
            ..trace
        })),
        // A job that has just begun to write is no liar.
        Err(_) if goes_on => Entry::Left,
        Err(reason) => Entry::Refused(reason),
    }
}

fn gone_or(error: std::io::Error, otherwise: fn(std::io::Error) -> Entry) -> Entry {
    // A job renamed its trace between the listing and now; the next training finds it.
    if error.kind() == std::io::ErrorKind::NotFound {
        Entry::Left
    } else {
        otherwise(error)
    }
}

fn believe(bytes: &[u8], name: &Name, accepts: &Accepts) -> Result<Trace, String> {
    let (header, mut records) = record::read(bytes).map_err(|error| error.to_string())?;
    let library = header
        .library
        .parse::<Library>()
        .map_err(|error| error.to_string())?;
    if header.machine != accepts.machine {
        return Err(format!(
            "it was recorded on the machine {:?}, this database serves {:?} (see `machine` in colltune.toml)",
            shown(&header.machine),
            accepts.machine
        ));
    }
    if (header.job.as_str(), header.rank) != (name.job.as_str(), name.rank) {
        return Err(format!(
            "its header says job {:?}, rank {}, its name does not",
            shown(&header.job),
            header.rank
        ));
    }
    for word in [&header.host, &header.colltune_version] {
        if word.len() > WORD_BYTES_MAX || word.chars().any(char::is_control) {
            return Err(format!(
                "its header holds {:?}, which is no name",
                shown(word)
            ));
        }
    }
    for (collective, variant) in &header.variants {
        if variant.len() > WORD_BYTES_MAX || variant.parse::<VariantName>().is_err() {
            return Err(format!(
                "its header lists {:?} for {collective}, which is no variant",
                shown(variant)
            ));
        }
    }
    let context = Context {
        transport: Transport::from_name(&header.transport).ok_or_else(|| {
            let transport = shown(&header.transport);
            format!("its header names the transport {transport:?}, which is none")
        })?,
        columns: header.context.clone(),
    };
    if !context.is_valid() {
        return Err("its header holds a context that cannot be one".to_owned());
    }
    let told = match context.column(told::COLUMN) {
        "" => None,
        name => Some(ToldWord::from_name(name).ok_or_else(|| {
            format!("its header names {name:?} as what the library was told, which is nothing")
        })?),
    };
    let key = DataKey {
        library,
        transport: context.transport,
        told,
    };
    let written = records.len();
    let damage = damaged_records(bytes);
    records.retain(|record| is_possible(record, &header));
    let impossible = written - records.len();
    let damage = damage.or_else(|| {
        (impossible > 0).then(|| {
            format!(
                "{impossible} of {written} records say impossible things; the others were taken"
            )
        })
    });
    Ok(Trace {
        key,
        header,
        owner: 0,
        records,
        damage,
    })
}

fn damaged_records(bytes: &[u8]) -> Option<String> {
    let damaged = record::n_damaged(bytes).ok()?;
    (damaged > 0).then(|| format!("{damaged} damaged record(s) in it; the others were taken"))
}

fn is_possible(record: &Record, header: &Header) -> bool {
    let Record {
        nodes,
        ppn,
        n_ranks,
        ..
    } = *record;
    let fits = nodes >= 1
        && ppn >= 1
        && n_ranks >= nodes
        && n_ranks >= ppn
        && u64::from(n_ranks) <= u64::from(nodes) * u64::from(ppn);
    let names = header
        .variants
        .get(usize::from(record.variant))
        .is_some_and(|(collective, _)| *collective == record.collective);
    fits && names && record.duration_ns <= DURATION_NS_MAX
}

/// A word from an untrusted header, short enough for a message.
fn shown(word: &str) -> String {
    word.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_job_and_rank() {
        let name = |job: &str, rank, open| {
            Some(Name {
                job: job.to_owned(),
                rank,
                open,
            })
        };
        assert_eq!(Name::read("0a1b.17.trace"), name("0a1b", 17, false));
        assert_eq!(
            Name::read("slurm-5.1.0.trace.open"),
            name("slurm-5.1", 0, true)
        );
        for bad in [
            "",
            ".trace",
            "a.trace",
            "a.b.trace",
            ".5.trace",
            "a.5.trace.open.open",
            "a/b.5.trace",
            "a.+5.trace",
            "a.99999999999.trace",
        ] {
            assert_eq!(Name::read(bad), None, "{bad}");
        }
    }
}
