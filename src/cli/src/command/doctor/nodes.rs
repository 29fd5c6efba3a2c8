//! `colltune doctor --nodes`: which of a job's nodes are sick, before it runs.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use colltune_core::library::Abi;
use colltune_core::settings::Settings;
use colltune_db::Database;
use colltune_db::hosts::{self, HostRow};
use colltune_telemetry::nodes::{Node, nearest, sick};
use serde::Deserialize;

use super::findings::Findings;
use crate::command::run::{libraries, read_line};
use colltune_launch::line::Line;
use colltune_launch::measuring::{self, answer_in, helper};
use colltune_launch::trial::Interrupt;
use colltune_output::failure::{Stopped, usage};
use colltune_output::save;

/// Nodes that share cores take turns of half a second each.
const LIMIT: Duration = Duration::from_secs(300);
const EXCLUDE_HOSTS: &str = "COLLTUNE_EXCLUDE_HOSTS";
/// The exit code where something is sick.
const SICK: u8 = 3;

/// What is asked.
pub struct Asked<'a> {
    pub line: &'a [OsString],
    pub db: Option<&'a Path>,
    pub hostfile: Option<&'a Path>,
    /// The line's library, where the user says it.
    pub mpi: Option<Abi>,
    pub json: bool,
}

/// Measures the nodes on which the line's job would run, and prints a line for each.
///
/// Errors: exit code 3 where a node is sick.
pub fn run(asked: &Asked) -> anyhow::Result<()> {
    if asked.line.is_empty() {
        return Err(usage(
            "measure nodes: give the line that starts the job, as in `colltune doctor --nodes -- mpirun -n 64 ./solver`",
        ));
    }
    let line = read_line(asked.line)?;
    let abi = libraries(&line, asked.mpi)?.into_iter().flatten().next();
    let abi = abi.ok_or_else(|| Stopped {
        message: "cannot detect the MPI library: neither launcher nor program tells it; use --mpi"
            .to_owned(),
        code: 1,
    })?;
    let found = measure(&line, abi)?;
    let nodes = found.nodes();
    let (history, excluded) = known(asked.db, std::env::var(EXCLUDE_HOSTS).ok())?;
    let sick = sick(&nodes, &history);
    let mut report = Findings::new(asked.json);
    for node in &nodes {
        let own: Vec<String> = sick
            .iter()
            .filter(|one| one.host == node.host)
            .map(|one| one.text())
            .collect();
        match own.is_empty() {
            true => report.ok(told(node)),
            false => own.iter().for_each(|text| {
                report.fail(
                    text,
                    "leave it out: --write-hostfile FILE, or exclude_hosts in colltune.toml",
                );
            }),
        }
    }
    if nodes.len() < 3 && history.is_empty() {
        report.warn(
            format_args!("{} nodes cannot be compared with each other", nodes.len()),
            "--db DIR compares them with what they were",
        );
    }
    let is_sick = |host: &str| sick.iter().any(|one| one.host == host);
    if let Some(db) = asked.db {
        let db = Database::create_or_open(db)?;
        // What is sick now is no measure for later.
        let healthy = nodes.iter().filter(|node| !is_sick(&node.host));
        hosts::remember(&db, &healthy.map(row).collect::<Vec<_>>())?;
    }
    if let Some(file) = asked.hostfile {
        let left: Vec<&Node> = nodes
            .iter()
            .filter(|node| !is_sick(&node.host) && !excluded.contains(&node.host))
            .collect();
        save(file, &hostfile(abi, &left))?;
        report.ok(format_args!(
            "{}: {} of {} nodes",
            file.display(),
            left.len(),
            nodes.len()
        ));
    }
    report.end()?;
    let n_sick = nodes.iter().filter(|node| is_sick(&node.host)).count();
    match n_sick {
        0 => Ok(()),
        n => Err(Stopped {
            message: format!(
                "{n} of {} nodes {} sick",
                nodes.len(),
                if n == 1 { "is" } else { "are" }
            ),
            code: SICK,
        }
        .into()),
    }
}

/// What `colltune-mpibench nodes` writes.
#[derive(Deserialize)]
struct Found {
    nodes: Vec<FoundNode>,
    pings: Vec<FoundPing>,
}

#[derive(Deserialize)]
struct FoundNode {
    host: String,
    kernel_ns: Vec<f64>,
    memory_bytes_per_ns: Vec<f64>,
    throttled: Option<u64>,
}

#[derive(Deserialize)]
struct FoundPing {
    from: String,
    to: String,
    small_ns: f64,
    large_ns: f64,
}

impl Found {
    fn nodes(&self) -> Vec<Node> {
        let pings = self.pings.iter();
        let nearest = nearest(pings.map(|ping| {
            (
                ping.from.as_str(),
                ping.to.as_str(),
                [ping.small_ns, ping.large_ns],
            )
        }));
        let node = |found: &FoundNode| {
            let [small_ns, large_ns] = nearest
                .get(found.host.as_str())
                .copied()
                .unwrap_or([f64::NAN; 2]);
            Node {
                host: found.host.clone(),
                ranks: found.kernel_ns.len() as u32,
                kernel_ns: colltune_statistics::median(&found.kernel_ns),
                memory_bytes_per_ns: found.memory_bytes_per_ns.iter().sum(),
                small_ns,
                large_ns,
                throttled: found.throttled,
            }
        };
        self.nodes.iter().map(node).collect()
    }
}

/// Runs the helper in the place of the line's programs.
fn measure(line: &Line, abi: Abi) -> anyhow::Result<Found> {
    let helper = helper(abi)?;
    let words = replaced(line, &helper);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let text = measuring::answer(&mut command, LIMIT, &Interrupt::listen()?)?;
    answer_in(&text).context("read what colltune-mpibench wrote; is it as old as this command?")
}

/// The line with `HELPER nodes` instead of each program and its arguments.
fn replaced(line: &Line, helper: &Path) -> Vec<OsString> {
    let (mut words, mut at) = (Vec::new(), 0);
    for context in &line.contexts {
        words.extend_from_slice(&line.words[at..context.program]);
        words.extend([helper.as_os_str().to_owned(), "nodes".into()]);
        at = context.end;
    }
    words.extend_from_slice(&line.words[at..]);
    words
}

/// Earlier measurements, and the hosts that the site leaves out, or `variable`, the value of [`EXCLUDE_HOSTS`].
fn known(db: Option<&Path>, variable: Option<String>) -> anyhow::Result<(Vec<Node>, Vec<String>)> {
    let excluded = |mut settings: Settings| {
        let set = variable.map(|value| settings.override_with(EXCLUDE_HOSTS, &value));
        set.transpose().map(|_| settings.exclude_hosts)
    };
    let Some(db) = db.filter(|db| db.exists()) else {
        return Ok((Vec::new(), excluded(Settings::default())?));
    };
    let db = Database::open(db)?;
    let node = |row: HostRow| Node {
        host: row.host,
        ranks: row.ranks,
        kernel_ns: row.kernel_ns,
        memory_bytes_per_ns: row.memory_bytes_per_ns,
        small_ns: row.small_ns,
        large_ns: row.large_ns,
        throttled: row.throttled,
    };
    let history = hosts::all(&db)?.into_iter().map(node).collect();
    Ok((history, excluded(db.settings()?)?))
}

fn row(node: &Node) -> HostRow {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    HostRow {
        unix_ms: now.map_or(0, |time| time.as_millis() as u64),
        host: node.host.clone(),
        ranks: node.ranks,
        kernel_ns: node.kernel_ns,
        memory_bytes_per_ns: node.memory_bytes_per_ns,
        small_ns: node.small_ns,
        large_ns: node.large_ns,
        throttled: node.throttled,
    }
}

fn told(node: &Node) -> String {
    let mut text = format!(
        "{}: {} ranks, computing {:.1} us, memory {:.1} GB/s",
        node.host,
        node.ranks,
        node.kernel_ns / 1e3,
        node.memory_bytes_per_ns
    );
    if node.small_ns.is_finite() {
        let _ = write!(
            text,
            ", messages {:.1} us (8 bytes), {:.0} us (1 MiB)",
            node.small_ns / 1e3,
            node.large_ns / 1e3
        );
    }
    text
}

/// As the library's launcher reads it.
fn hostfile(abi: Abi, nodes: &[&Node]) -> String {
    let line = |node: &&Node| match abi {
        Abi::OpenMpi => format!("{} slots={}\n", node.host, node.ranks),
        _ => format!("{}:{}\n", node.host, node.ranks),
    };
    nodes.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_launchers_add_to_the_line_does_not_disturb() {
        let text = "[1,0]<stdout>:{\"nodes\":[{\"host\":\"a\",\"kernel_ns\":[2.0,4.0,9.0],\"memory_bytes_per_ns\":[1.0,2.0,3.0],\
                    \"throttled\":null}],\"pings\":[]} \nbye\n";
        let found = answer_in::<Found>(text).expect("it is read");
        let [node] = &found.nodes()[..] else { panic!() };
        assert_eq!(
            (node.ranks, node.kernel_ns, node.memory_bytes_per_ns),
            (3, 4.0, 6.0)
        );
        assert!(node.small_ns.is_nan() && told(node).contains("6.0 GB/s"));
        assert!(answer_in::<Found>("nothing\n{}").is_none());
    }

    #[test]
    fn hosts_that_the_variable_names_are_left_out_without_a_database_too() {
        for db in [None, Some(Path::new("/no/such/database"))] {
            let (history, excluded) = known(db, Some("[\"n7\"]".to_owned())).expect("a list");
            assert!(history.is_empty());
            assert_eq!(excluded, ["n7"]);
        }
    }

    #[test]
    fn programs_of_the_line_give_way_to_the_helper_and_host_files_are_the_library_s() {
        let words = ["mpirun", "-n", "2", "sh", "-c", "x", ":", "-n", "1", "true"];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let line =
            Line::read(words, Some(0), &|word, _| word == "sh" || word == "true").expect("a line");
        let helper = Path::new("/h");
        let all: Vec<String> = replaced(&line, helper)
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        assert_eq!(all.join(" "), "mpirun -n 2 /h nodes : -n 1 /h nodes");
        let node = Node {
            host: "a".into(),
            ranks: 2,
            kernel_ns: 1.0,
            memory_bytes_per_ns: 1.0,
            small_ns: 1.0,
            large_ns: 1.0,
            throttled: None,
        };
        assert_eq!(hostfile(Abi::OpenMpi, &[&node]), "a slots=2\n");
        assert_eq!(hostfile(Abi::Mpich, &[&node]), "a:2\n");
    }
}
