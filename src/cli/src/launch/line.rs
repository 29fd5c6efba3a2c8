//! The line that starts a job, read as its launcher reads it.
//!
//! ```text
//! nice mpirun -n 2 -x A=1 ./atmosphere -v : -n 2 ./ocean
//!      ^launcher          ^context 1             ^context 2
//! ```
//! A context is what `:` separates in a multi-program line; each has a program and its arguments.
//! The options of Open MPI's and Hydra's launchers do not contradict each other, so one table
//! serves both; `srun` has its own. An option that is in no table takes the next word if that
//! word is no program.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use thiserror::Error;

/// A line with the places of its launcher and programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub words: Vec<OsString>,
    /// Place of the launcher; `None` for a program that is started without one.
    pub launcher: Option<usize>,
    pub contexts: Vec<Context>,
}

/// One program of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Place of the program; its arguments go up to `end`.
    pub program: usize,
    pub end: usize,
    /// The working directory that the launcher's options name.
    pub wdir: Option<OsString>,
    /// The `LD_PRELOAD` that the launcher's options set for the ranks.
    pub preload: Option<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    #[error(
        "read the programs out of {option} {file}: write them on the line itself, separated by \":\", \
         so that each can be given the tuner"
    )]
    ProgramsInFile { option: String, file: String },
    #[error("find the program behind {0:?} on the line")]
    NoProgram(String),
}

/// How many words follow an option; what it means for us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Words(usize),
    /// `--option=value` or an optional value glued to it.
    Wdir,
    /// `NAME=VALUE` in one word.
    Assignment,
    /// `NAME` and `VALUE` in two words, for every context (`-genv`) or this one (`-env`).
    Genv,
    Env,
    /// A file that names the programs.
    Programs,
    /// Prints something and starts nothing.
    Information,
    /// In no table.
    Unknown,
}

const NONE: &str = "allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous d debug-devel \
    debug debug-daemons debug-daemons-file disable-recovery display-allocation display-devel-allocation \
    display-devel-map display-diffable-map display-map display-topo do-not-launch do-not-resolve dvm \
    enable-instant-on-support enable-recovery fwd-mpirun-port get-stack-traces index-argv-by-rank \
    leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm output-proctable \
    oversubscribe pernode q quiet report-bindings report-child-jobs-separately report-state-on-timeout \
    preload-binary set-cwd-to-session-dir show-progress tag-output timestamp-output tv use-hwthread-cpus use-regexp \
    v verbose xml xterm-leave stop-on-exec forward-signals-all personality-any noguess \
    genvnone genvall envnone envall enable-x disable-x print-all-exitcodes profile l prepend-rank \
    disable-auto-cleanup disable-hostname-propagation pmi-port skip-launch-node rr grr-all";
const ONE: &str = "am bind-to c np n N cf cartofile cpu-list cpu-set cpus-per-proc cpus-per-rank debugger \
    default-hostfile H host hnp hostfile launch-agent machinefile machine map-by max-restarts max-vm-size npernode \
    npersocket ompi-server output-filename path personality ppr prefix preload-files rank-by report-events \
    report-pid report-uri rf rankfile stdin timeout tune slot-list xterm dvm-uri pset display output stream-buffering \
    runtime-options with-ft soft arch file \
    genvlist f hosts envlist launcher launcher-exec rmk topolib membind demux iface ppn perhost prepend-pattern \
    outfile-pattern errfile-pattern nameserver order-nodes localhost usize gpus-per-proc bootstrap bootstrap-exec \
    ckpoint-interval ckpoint-prefix ckpoint-num ckpointlib grr";
const TWO: &str = "mca gmca omca ompimca prtemca pmixmca gpmixmca";
/// Of `srun`: what takes no word; everything else takes one, glued to it or after it.
const SRUN_NONE: &str = "E H I k K l O s u v Q X Z contiguous disable-status exact exclusive hold immediate \
    kill-on-bad-exit label mpi-list no-kill no-allocate oom-kill-step overcommit overlap oversubscribe preserve-env \
    propagate pty quiet reboot spread-job test-only unbuffered use-min-nodes verbose whole interactive \
    get-user-env no-shell x11 resv-ports";

impl Takes {
    fn of(option: &str, srun: bool) -> Takes {
        let name = option.trim_start_matches('-');
        let in_list = |list: &str| list.split_whitespace().any(|known| known == name);
        match name {
            "V" | "version" | "help" | "usage" | "info" => Takes::Information,
            "h" if !srun || option == "-h" => Takes::Information,
            "wd" | "wdir" | "chdir" => Takes::Wdir,
            "D" if srun => Takes::Wdir,
            "multi-prog" if srun => Takes::Programs,
            "export" if srun => Takes::Assignment,
            _ if srun => Takes::Words(usize::from(!in_list(SRUN_NONE))),
            "x" => Takes::Assignment,
            "genv" => Takes::Genv,
            "env" => Takes::Env,
            "app" | "configfile" => Takes::Programs,
            _ if in_list(NONE) => Takes::Words(0),
            _ if in_list(ONE) => Takes::Words(1),
            _ if in_list(TWO) => Takes::Words(2),
            _ => Takes::Unknown,
        }
    }
}

/// Whether a word is the name or path of a program that starts MPI jobs.
pub fn is_launcher(word: &OsStr) -> bool {
    let Some(name) = Path::new(word).file_name().and_then(OsStr::to_str) else {
        return false;
    };
    let begins_as = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    matches!(name, "orterun" | "prterun" | "prun" | "srun")
        || ["mpirun", "mpiexec"]
            .into_iter()
            .any(|stem| begins_as(stem) || name.ends_with(stem))
}

impl Line {
    /// Reads `words`. `is_program` tells whether a word can be started, seen from a working directory.
    ///
    /// Errors: `ProgramsInFile` for options whose file names the programs, `NoProgram` for a line
    /// that breaks off after `:`. A line that only asks the launcher something has no context.
    pub fn read(
        words: Vec<OsString>,
        launcher: Option<usize>,
        is_program: &dyn Fn(&OsStr, Option<&OsStr>) -> bool,
    ) -> Result<Line, LineError> {
        let Some(start) = launcher else {
            let whole = Context {
                program: 0,
                end: words.len(),
                wdir: None,
                preload: None,
            };
            return Ok(Line {
                words,
                launcher,
                contexts: vec![whole],
            });
        };
        let srun = Path::new(&words[start]).file_name() == Some(OsStr::new("srun"));
        let mut contexts = Vec::new();
        let mut for_all = None;
        let mut from = start + 1;
        while from < words.len() {
            let Some(context) = read_context(&words, from, srun, &mut for_all, is_program)? else {
                break;
            };
            from = context.end + 1;
            contexts.push(context);
        }
        if words.last().is_some_and(|word| word == ":") && !contexts.is_empty() {
            return Err(LineError::NoProgram(":".to_owned()));
        }
        for context in &mut contexts {
            context.preload = context.preload.take().or_else(|| for_all.clone());
        }
        Ok(Line {
            words,
            launcher,
            contexts,
        })
    }
}

fn read_context(
    words: &[OsString],
    from: usize,
    srun: bool,
    for_all: &mut Option<OsString>,
    is_program: &dyn Fn(&OsStr, Option<&OsStr>) -> bool,
) -> Result<Option<Context>, LineError> {
    let (mut wdir, mut preload) = (None, None);
    let mut at = from;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        let (option, glued) = match text.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(OsString::from(value))),
            None if srun
                && !text.starts_with("--")
                && text.len() > 2
                && text.is_char_boundary(2) =>
            {
                (text[..2].to_owned(), Some(OsString::from(&text[2..])))
            }
            None => (text.to_string(), None),
        };
        let value = |offset: usize| {
            glued
                .clone()
                .or_else(|| words.get(at + offset).cloned())
                .unwrap_or_default()
        };
        let one = usize::from(glued.is_none());
        at += 1 + match Takes::of(&option, srun) {
            Takes::Words(count) => {
                if glued.is_some() {
                    0
                } else {
                    count
                }
            }
            Takes::Information => return Ok(None),
            Takes::Wdir => {
                wdir = Some(value(1));
                one
            }
            Takes::Assignment => {
                preload = assigned_preload(&value(1)).or(preload);
                one
            }
            kind @ (Takes::Genv | Takes::Env) => {
                if words.get(at + 1).is_some_and(|name| name == "LD_PRELOAD") {
                    let place = if kind == Takes::Genv {
                        &mut *for_all
                    } else {
                        &mut preload
                    };
                    *place = words.get(at + 2).cloned();
                }
                2
            }
            Takes::Programs => {
                let file = value(1).to_string_lossy().into_owned();
                return Err(LineError::ProgramsInFile { option, file });
            }
            Takes::Unknown => {
                let next_is_value = words.get(at + 1).is_some_and(|next| {
                    !next.to_string_lossy().starts_with('-')
                        && next != ":"
                        && !is_program(next, wdir.as_deref())
                });
                usize::from(glued.is_none() && next_is_value)
            }
        };
    }
    let end = words
        .iter()
        .skip(at)
        .position(|word| word == ":")
        .map_or(words.len(), |length| at + length);
    if at < end {
        return Ok(Some(Context {
            program: at,
            end,
            wdir,
            preload,
        }));
    }
    match end < words.len() {
        true => Err(LineError::NoProgram(
            words[end - 1].to_string_lossy().into_owned(),
        )),
        false => Ok(None),
    }
}

/// The value of `LD_PRELOAD` in `LD_PRELOAD=value` or in srun's `ALL,LD_PRELOAD=value`.
fn assigned_preload(text: &OsStr) -> Option<OsString> {
    let text = text.to_str()?;
    text.split(',')
        .find_map(|part| part.strip_prefix("LD_PRELOAD="))
        .map(OsString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Line, LineError> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let launcher = words.iter().position(|word| is_launcher(word));
        Line::read(words, launcher, &|word, _| {
            word.to_string_lossy().starts_with("./")
        })
    }

    /// The programs of a line, each with its arguments.
    fn programs(line: &str) -> Vec<String> {
        let line = read(line).unwrap();
        let text = |context: &Context| {
            let words: Vec<_> = line.words[context.program..context.end]
                .iter()
                .map(|w| w.to_str().unwrap())
                .collect();
            words.join(" ")
        };
        line.contexts.iter().map(text).collect()
    }

    #[test]
    fn launchers_are_known_by_name_and_by_the_end_of_a_wrappers_path() {
        for word in [
            "mpirun",
            "/usr/bin/mpiexec.hydra",
            "mpirun.openmpi",
            "orterun",
            "srun",
            "/run/c/mpirun",
            "./my-mpirun",
            "mpiexec-openmpi-gcc",
            "prterun",
        ] {
            assert!(is_launcher(OsStr::new(word)), "{word}");
        }
        for word in ["mpirunner", "./prog", "mpicc", "", "/mpirun/prog"] {
            assert!(!is_launcher(OsStr::new(word)), "{word}");
        }
    }

    #[test]
    fn programs_are_found_behind_the_options_of_each_launcher() {
        for (line, program) in [
            ("mpirun -n 4 ./a -n 7", "./a -n 7"),
            (
                "mpirun --mca btl self,vader -x A=1 --bind-to core --oversubscribe -np 2 prog x",
                "prog x",
            ),
            ("nice -n 3 mpirun --host=a,b -np 2 ./a", "./a"),
            (
                "mpiexec.hydra -genv A 1 -envall -env B 2 -ppn 2 -hosts a,b -n 2 ./a",
                "./a",
            ),
            (
                "mpiexec -bind-to core -map-by numa -prepend-rank -n 2 ./a",
                "./a",
            ),
            (
                "srun -N2 -n 4 --mpi=pmix -l --cpu-bind cores --exclusive ./a -N",
                "./a -N",
            ),
            ("srun --export=ALL,A=1 -D /tmp ./a", "./a"),
            ("mpirun --display bind -n 2 -- -odd-name -x", "-odd-name -x"),
            ("mpirun --from-the-future yes -n 2 ./a", "./a"),
            ("mpirun --from-the-future -n 2 ./a", "./a"),
            ("mpirun --from-the-future ./a", "./a"),
            ("./a -n 3", "./a -n 3"),
        ] {
            assert_eq!(programs(line), [program], "{line}");
        }
    }

    #[test]
    fn every_context_of_a_multi_program_line_is_found() {
        assert_eq!(
            programs("mpirun -n 1 ./a 1 : -n 2 -x B=2 ./b : ./c 3 4"),
            ["./a 1", "./b", "./c 3 4"]
        );
        let line =
            read("mpiexec -genv LD_PRELOAD x.so -n 1 ./a : -env LD_PRELOAD y.so -wdir /w ./b")
                .unwrap();
        assert_eq!(
            line.contexts[0].preload.as_deref(),
            Some(OsStr::new("x.so"))
        );
        assert_eq!(
            line.contexts[1].preload.as_deref(),
            Some(OsStr::new("y.so"))
        );
        assert_eq!(line.contexts[1].wdir.as_deref(), Some(OsStr::new("/w")));
        let line = read("mpirun -x LD_PRELOAD=x.so ./a : ./b").unwrap();
        assert_eq!(
            line.contexts[0].preload.as_deref(),
            Some(OsStr::new("x.so"))
        );
        assert_eq!(line.contexts[1].preload, None);
    }

    #[test]
    fn questions_to_the_launcher_start_no_program() {
        for line in [
            "mpirun --version",
            "mpirun -h",
            "mpirun",
            "srun --help",
            "mpiexec -info",
            "mpirun -n 2",
        ] {
            assert_eq!(programs(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn lines_that_cannot_be_followed_are_refused() {
        assert!(matches!(
            read("mpirun --app file"),
            Err(LineError::ProgramsInFile { .. })
        ));
        assert!(matches!(
            read("srun --multi-prog file"),
            Err(LineError::ProgramsInFile { .. })
        ));
        assert!(matches!(
            read("mpirun -n 1 ./a : -n 2 :"),
            Err(LineError::NoProgram(_))
        ));
        assert!(matches!(
            read("mpirun -n 1 ./a :"),
            Err(LineError::NoProgram(_))
        ));
    }
}
