//! What became of a job, and the usual claims about it.

use std::time::Duration;

/// What became of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The command, ready to be pasted.
    pub command: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub timed_out: bool,
    /// Processes that outlived the launcher.
    pub strays: usize,
    pub took: Duration,
}

impl Outcome {
    /// The lines that the shim printed.
    pub fn messages(&self) -> Vec<&str> {
        self.stderr
            .lines()
            .filter(|line| line.starts_with("colltune: "))
            .collect()
    }

    /// The job ended by itself.
    #[track_caller]
    pub fn ends(&self) -> &Outcome {
        self.claim(!self.timed_out, "the job hangs");
        self
    }

    #[track_caller]
    pub fn exits(&self, code: i32) -> &Outcome {
        self.ends().claim(
            self.code == Some(code),
            &format!("the exit code is not {code}"),
        );
        self
    }

    #[track_caller]
    pub fn succeeds(&self) -> &Outcome {
        self.exits(0)
    }

    /// The program's output is exactly this: nothing of the shim's is ever mixed in.
    #[track_caller]
    pub fn prints(&self, stdout: &str) -> &Outcome {
        self.claim(self.stdout == stdout, &format!("stdout is not {stdout:?}"));
        self
    }

    /// Nothing was printed on stderr.
    #[track_caller]
    pub fn is_silent(&self) -> &Outcome {
        self.claim(self.stderr.is_empty(), "stderr is not empty");
        self
    }

    /// Exactly one message of the shim, with each of these parts.
    #[track_caller]
    pub fn says(&self, parts: &[&str]) -> &Outcome {
        let messages = self.messages();
        self.claim(
            messages.len() == 1,
            &format!("the shim gave {} messages, not one", messages.len()),
        );
        for part in parts {
            self.claim(
                messages[0].contains(part),
                &format!("the message does not hold {part:?}"),
            );
        }
        self
    }

    #[track_caller]
    pub fn claim(&self, holds: bool, otherwise: &str) {
        assert!(
            holds,
            "{otherwise}\n$ {}\nexit code {:?}, signal {:?}, {} strays, {:.1} s\n--- stdout\n{}\n--- stderr\n{}",
            self.command,
            self.code,
            self.signal,
            self.strays,
            self.took.as_secs_f64(),
            cut(&self.stdout),
            cut(&self.stderr),
        );
    }
}

fn cut(text: &str) -> String {
    const MOST: usize = 6_000;
    if text.len() <= MOST {
        text.to_owned()
    } else {
        format!("{} ...", text.chars().take(MOST).collect::<String>())
    }
}
