//! Starting a trial, waiting for it, and ending it where it takes too long or this command is ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use colltune_core::account::JobSummary;
use colltune_core::levers::Arms;
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

use super::way::Tuner;
use super::{Interrupt, Way, WholeTimes, summary};
use crate::levers::filled;
use colltune_output::progress;

/// How often signals are looked for while a job runs.
const LOOK: Duration = Duration::from_millis(50);
/// How long a launcher has to end its ranks before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How much of a failed job's messages is shown, and how much is looked through for the tuner's.
const TAIL_LINES: usize = 12;
/// Of a launcher's message that is longer, so many lines are those that it begins with.
const HEAD_LINES: usize = 4;
/// So many equal letters are a rule.
const RULE: usize = 20;
const TAIL_BYTES: u64 = 16 << 10;
const SEARCHED_BYTES: u64 = 1 << 20;

/// A trial that ended well.
#[derive(Clone, Debug)]
pub struct Done {
    pub wall_s: f64,
    pub summary: Option<JobSummary>,
}

/// A trial that did not end well.
#[derive(Debug, Error)]
pub enum Ended {
    #[error("{how}{tail}")]
    Failed { how: String, tail: String },
    /// What did, and for how long.
    #[error("{} ran for more than {} and was ended", .0, humantime::format_duration(*.1))]
    TimedOut(&'static str, Duration),
    #[error("interrupted")]
    Interrupted(u8),
    #[error("{0:#}")]
    NotStarted(anyhow::Error),
}

/// The trials of one line.
pub struct Trials {
    /// With `{NAME}` where the arm of a lever belongs.
    pub line: Vec<OsString>,
    /// What the next trial runs with.
    pub arms: Arms,
    /// The arms that the program gets where it asks, in place of learned ones.
    pub told: Arms,
    pub tuner: Tuner,
    /// What a shell runs before each of them, with `{NAME}` likewise, and the longest time that it took.
    pub prepare: Option<OsString>,
    pub prepare_s: f64,
    /// The bare line runs so many times before the first of them, all of them and so far.
    pub warmups: u16,
    pub warmed_up: u16,
    pub timeout: Option<Duration>,
    pub shows_output: bool,
    pub interrupt: Interrupt,
    /// Where ranks on every node can write: the summary of the trial that runs.
    pub scratch: PathBuf,
    /// What the tuner said in the jobs, each once.
    pub said: BTreeSet<String>,
    pub whole_times: WholeTimes,
}

impl Trials {
    /// Runs the line once. `tick` is called about twenty times a second.
    pub fn run(&mut self, way: Way, tick: &mut dyn FnMut()) -> Result<Done, Ended> {
        while self.warmed_up < self.warmups {
            let number = self.warmed_up + 1;
            progress::show(&format!("warms up: run {number} of {}", self.warmups));
            self.run_job(Way::Bare, tick)?;
            self.warmed_up = number;
        }
        let (wall, summary) = self.run_job(way, tick)?;
        // Without a summary it is unknown which program ran.
        if way == Way::Bare || summary.is_some() {
            let said = summary.as_ref();
            self.whole_times
                .note(&self.tuner.db, wall, said, &self.arms);
        }
        Ok(Done {
            wall_s: wall.as_secs_f64(),
            summary,
        })
    }

    /// The same, without a note in the ledger.
    fn run_job(
        &mut self,
        way: Way,
        tick: &mut dyn FnMut(),
    ) -> Result<(Duration, Option<JobSummary>), Ended> {
        if let Some(signal) = self.interrupt.signal() {
            return Err(Ended::Interrupted(signal));
        }
        self.prepare(tick)?;
        let file = self
            .scratch
            .join(format!("summary-{}.json", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let mut output = Captured::new().map_err(Ended::NotStarted)?;
        let mut command = self
            .command(way, &file, &output)
            .map_err(Ended::NotStarted)?;
        let (wall, status) = watched(&mut command, self.timeout, &self.interrupt, tick)?;
        let whole_s = Some(wall.as_secs_f64());
        let read = summary::read(&file).map(|read| JobSummary { whole_s, ..read });
        let _ = std::fs::remove_file(&file);
        self.said.extend(output.messages_of_ours());
        if !status.success() {
            if let Some(said) =
                read.filter(|said| !said.levers.is_empty() || !said.asked.is_empty())
            {
                self.whole_times.forget(&self.tuner.db, &said);
            }
            let tail = output.tail();
            let how = how_it_ended(status);
            return Err(Ended::Failed { how, tail });
        }
        Ok((wall, read))
    }

    /// Runs what comes before a trial.
    fn prepare(&mut self, tick: &mut dyn FnMut()) -> Result<(), Ended> {
        let Some(line) = &self.prepare else {
            return Ok(());
        };
        let [line] = &filled(std::slice::from_ref(line), &self.arms)[..] else {
            unreachable!("one word stays one word");
        };
        let mut output = Captured::new().map_err(Ended::NotStarted)?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).stdin(Stdio::null());
        self.take_output(&mut command, &output)
            .map_err(Ended::NotStarted)?;
        let ended = watched(&mut command, self.timeout, &self.interrupt, tick);
        let (wall, status) = ended.map_err(|ended| match ended {
            Ended::TimedOut(_, limit) => Ended::TimedOut("what prepares it", limit),
            other => other,
        })?;
        self.prepare_s = self.prepare_s.max(wall.as_secs_f64());
        match status.success() {
            true => Ok(()),
            false => Err(Ended::NotStarted(anyhow::anyhow!(
                "prepare a run by `{}`: {}{}",
                line.display(),
                how_it_ended(status),
                output.tail()
            ))),
        }
    }

    /// The traces that jobs left and no training has read.
    pub fn traces(&self) -> BTreeSet<OsString> {
        let entries = std::fs::read_dir(self.tuner.db.join("incoming"));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    }

    fn command(
        &self,
        way: Way,
        summary: &std::path::Path,
        output: &Captured,
    ) -> anyhow::Result<Command> {
        let mut command =
            way.command(&self.line, (&self.arms, &self.told), &self.tuner, summary)?;
        command.stdin(input());
        self.take_output(&mut command, output)?;
        Ok(command)
    }

    /// Where a command's output goes.
    fn take_output(&self, command: &mut Command, output: &Captured) -> anyhow::Result<()> {
        if !self.shows_output {
            return output.capture(command);
        }
        // What the line says stands above the output, and not amid it.
        progress::keep();
        let stderr = std::io::stderr().as_fd().try_clone_to_owned();
        command.stdout(stderr.context("pass the job's output on")?);
        Ok(())
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    }
}

/// Runs a command in a process group of its own, which ends with this command and where it takes too long.
pub fn watched(
    command: &mut Command,
    timeout: Option<Duration>,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(),
) -> Result<(Duration, ExitStatus), Ended> {
    let (begun, group, ended) = start(command).map_err(Ended::NotStarted)?;
    wait(begun, group, &ended, timeout, interrupt, tick)
}

fn start(command: &mut Command) -> anyhow::Result<(Instant, Pid, Receiver<End>)> {
    command.process_group(0);
    let begun = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("start {}", command.get_program().display()))?;
    let group = Pid::from_child(&child);
    let (tell, ended) = channel();
    std::thread::spawn(move || {
        let status = child.wait();
        let _ = tell.send((begun.elapsed(), status));
    });
    Ok((begun, group, ended))
}

fn wait(
    begun: Instant,
    group: Pid,
    ended: &Receiver<End>,
    timeout: Option<Duration>,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(),
) -> Result<(Duration, ExitStatus), Ended> {
    let lost = |error: std::io::Error| {
        Ended::NotStarted(anyhow::Error::new(error).context("wait for the job"))
    };
    loop {
        match ended.recv_timeout(LOOK) {
            // An interruption of the whole group ends the job, too; then its exit code says nothing.
            Ok((wall, status)) => match interrupt.signal() {
                Some(signal) => return Err(Ended::Interrupted(signal)),
                None => return Ok((wall, status.map_err(lost)?)),
            },
            Err(RecvTimeoutError::Disconnected) => {
                return Err(lost(std::io::Error::other("its waiter is gone")));
            }
            Err(RecvTimeoutError::Timeout) => tick(),
        }
        if let Some(signal) = interrupt.signal() {
            stop(group, ended);
            return Err(Ended::Interrupted(signal));
        }
        if let Some(timeout) = timeout.filter(|timeout| begun.elapsed() > *timeout) {
            stop(group, ended);
            return Err(Ended::TimedOut("it", timeout));
        }
    }
}

/// How long the launcher ran, and how it ended.
type End = (Duration, std::io::Result<ExitStatus>);

/// Asks a job to end, as its launcher passes on to the ranks, and kills what does not.
fn stop(group: Pid, ended: &Receiver<End>) {
    let _ = kill_process_group(group, Signal::TERM);
    let is_gone = ended.recv_timeout(GRACE).is_ok();
    let _ = kill_process_group(group, Signal::KILL);
    if !is_gone {
        let _ = ended.recv_timeout(GRACE);
    }
}

/// The job's standard input: a file that this command was given is read anew each time, else there is none.
fn input() -> Stdio {
    let file = File::open("/dev/stdin").ok();
    let file = file.filter(|file| file.metadata().is_ok_and(|about| about.is_file()));
    file.map_or_else(Stdio::null, Stdio::from)
}

/// What a job prints, in files without names.
struct Captured {
    stdout: File,
    stderr: File,
}

impl Captured {
    fn new() -> anyhow::Result<Captured> {
        let file = || tempfile::tempfile().context("make a temporary file for the job's output");
        Ok(Captured {
            stdout: file()?,
            stderr: file()?,
        })
    }

    fn capture(&self, command: &mut Command) -> anyhow::Result<()> {
        let again = |file: &File| file.try_clone().context("pass the job's output on");
        command
            .stdout(again(&self.stdout)?)
            .stderr(again(&self.stderr)?);
        Ok(())
    }

    /// The last lines of what the job said, on stderr where it said something there.
    fn tail(&mut self) -> String {
        let mut text = last(&mut self.stderr);
        if text.trim().is_empty() {
            text = last(&mut self.stdout);
        }
        tail_of(&text)
    }

    fn messages_of_ours(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        let _ = self.stderr.seek(SeekFrom::Start(0));
        let _ = (&mut self.stderr)
            .take(SEARCHED_BYTES)
            .read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let ours = text.lines().filter(|line| line.starts_with("colltune: "));
        ours.map(str::to_owned).collect()
    }
}

/// The last lines of a text. Of a launcher's message, which stands between two rules, the first sentence says what is
/// wrong: it is kept where the message is longer.
fn tail_of(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let is_rule =
        |line: &str| line.len() >= RULE && line.bytes().all(|byte| byte == line.as_bytes()[0]);
    let rules: Vec<usize> = (0..lines.len())
        .filter(|place| is_rule(lines[*place]))
        .collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    let message = match rules[..] {
        [.., begins, ends] if begins < from && ends >= from => Some(begins + 1),
        _ => None,
    };
    let told: Vec<&str> = match message {
        None => lines[from..].to_vec(),
        Some(begins) => {
            let first = (begins + HEAD_LINES).min(from);
            let last = from.max(lines.len().saturating_sub(TAIL_LINES - HEAD_LINES));
            [&lines[begins..first], &["..."], &lines[last..]].concat()
        }
    };
    told.into_iter().map(|line| format!("\n  {line}")).collect()
}

fn last(file: &mut File) -> String {
    let length = file.metadata().map_or(0, |about| about.len());
    let mut bytes = Vec::new();
    let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)));
    let _ = file.take(TAIL_BYTES).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_message_of_the_launcher_the_first_sentence_is_shown_too() {
        let rule = "-".repeat(74);
        let message = "There are not enough slots available in the system to satisfy the 4\n\
                       slots that were requested by the application:\n\n  ./solver\n\n\
                       Either request fewer slots for your application, or make more slots\n\
                       available for use.\n";
        let more: String = (0..20)
            .map(|place| format!("line {place} about slots\n"))
            .collect();
        let text = format!("hello\n{rule}\n{message}{more}{rule}\n");
        let shown = tail_of(&text);
        assert!(
            shown.starts_with("\n  There are not enough slots"),
            "{shown}"
        );
        assert!(
            shown.contains("\n  ./solver") || shown.contains("./solver\n"),
            "{shown}"
        );
        assert!(
            shown.contains("\n  ...\n") && shown.contains("line 19"),
            "{shown}"
        );
        assert!(
            !shown.contains("hello") && !shown.contains("line 2 "),
            "{shown}"
        );
        assert!(shown.lines().count() <= TAIL_LINES + 2, "{shown}");
        // A short one is shown whole, and so is the end of what has none.
        let short = format!("{rule}\nno such program\n{rule}\n");
        assert_eq!(
            tail_of(&short),
            format!("\n  {rule}\n  no such program\n  {rule}")
        );
        let lines: String = (0..30).map(|place| format!("{place}\n")).collect();
        let shown = tail_of(&lines);
        assert!(
            shown.starts_with("\n  18\n") && shown.ends_with("\n  29"),
            "{shown}"
        );
        assert_eq!(tail_of(""), "");
    }
}
