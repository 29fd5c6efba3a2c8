//! The line that starts a job, read as its launcher reads it.
//!
//! ```text
//! nice mpirun -n 2 -x A=1 ./atmosphere -v : -n 2 ./ocean
//!      ^launcher          ^context 1             ^context 2
//! ```
//! A context is what `:` separates in a multi-program line; each has a program and its arguments.
//! Which options take a word is in the launcher's own table ([`super::options`]). An option that is in no table takes
//! the next word if that word is no program. Where another word could still be the program, the context is not
//! certain, and nothing may be put in front of it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use thiserror::Error;

use super::options::{Dialect, Takes};

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
    /// Where the launcher's options for it begin.
    pub options: usize,
    /// Place of the program; its arguments go up to `end`.
    pub program: usize,
    pub end: usize,
    /// The working directory that the launcher's options name.
    pub wdir: Option<OsString>,
    /// The `LD_PRELOAD` that the launcher's options set for the ranks.
    pub preload: Option<OsString>,
    /// How many ranks run it, where the options say so.
    pub n_ranks: Option<u64>,
    /// An option in no table, behind which it is not certain which word is the program.
    pub unsure: Option<String>,
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

/// Where the launcher of a line stands, if it has one: the first word that is the name or path of a program that starts
/// MPI jobs.
pub fn find_launcher(words: &[OsString]) -> Option<usize> {
    (0..words.len()).find(|place| is_launcher(&words[*place..]))
}

/// Whether a line begins with the name or path of a program that starts MPI jobs.
pub fn is_launcher(words: &[OsString]) -> bool {
    let name = |word: &OsString| Path::new(word).file_name()?.to_str().map(str::to_owned);
    let Some(name) = words.first().and_then(name) else {
        return false;
    };
    let begins_as = |stem: &str| {
        name.strip_prefix(stem)
            .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    match name.as_str() {
        "orterun" | "prterun" | "prun" | "srun" | "aprun" => true,
        "flux" => n_commands(&words[1..]).is_some(),
        // Hosts and variables stand before its program.
        "mpirun_rsh" => false,
        _ => ["mpirun", "mpiexec"]
            .into_iter()
            .any(|stem| begins_as(stem) || name.ends_with(stem)),
    }
}

/// How many words `flux` takes to say that it starts a job: `run`, or `mini run` of old.
fn n_commands(words: &[OsString]) -> Option<usize> {
    let is_one_of = |place: usize, names: &[&str]| {
        words
            .get(place)
            .and_then(|word| word.to_str())
            .is_some_and(|word| names.contains(&word))
    };
    let starts = |place| is_one_of(place, &["run", "submit"]);
    match is_one_of(0, &["mini"]) {
        true => starts(1).then_some(2),
        false => starts(0).then_some(1),
    }
}

impl Line {
    /// How many ranks it starts, where its options say so.
    pub fn n_ranks(&self) -> Option<u64> {
        self.contexts.iter().map(|context| context.n_ranks).sum()
    }

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
                options: 0,
                program: 0,
                end: words.len(),
                wdir: None,
                preload: None,
                n_ranks: None,
                unsure: None,
            };
            return Ok(Line {
                words,
                launcher,
                contexts: vec![whole],
            });
        };
        let dialect = Dialect::of(&words[start]);
        let mut contexts = Vec::new();
        let mut for_all = None;
        let mut from = start + 1;
        if dialect == Dialect::Flux {
            from += n_commands(&words[from..]).unwrap_or(0);
        }
        while from < words.len() {
            let reader = Reader {
                words: &words,
                dialect,
                is_program,
            };
            let Some(context) = reader.context(from, &mut for_all)? else {
                break;
            };
            from = context.end + 1;
            contexts.push(context);
        }
        let separates = dialect.has_several_programs();
        if separates && words.last().is_some_and(|word| word == ":") && !contexts.is_empty() {
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

    /// Whose options it has.
    pub fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::of(&self.words[self.launcher?]))
    }
}

/// What is known of a line while its programs are looked for.
struct Reader<'a> {
    words: &'a [OsString],
    dialect: Dialect,
    is_program: &'a dyn Fn(&OsStr, Option<&OsStr>) -> bool,
}

/// What the options of a context say.
#[derive(Default)]
struct Said {
    wdir: Option<OsString>,
    preload: Option<OsString>,
    n_ranks: Option<u64>,
    /// An option in no table whose value the word behind it was taken for.
    with_value: Option<String>,
    /// An option in no table that was taken to have none, and its place.
    without: Option<(String, usize)>,
}

impl Reader<'_> {
    /// The context whose options begin at `from`; `None` where no program is started any more.
    fn context(
        &self,
        from: usize,
        for_all: &mut Option<OsString>,
    ) -> Result<Option<Context>, LineError> {
        let mut said = Said::default();
        let mut at = from;
        while let Some(word) = self.words.get(at) {
            let text = word.to_string_lossy();
            if text == "--" {
                at += 1;
                (said.with_value, said.without) = (None, None);
                break;
            }
            if !text.starts_with('-') || text == "-" {
                break;
            }
            match self.option(at, &text, &mut said, for_all)? {
                Some(words) => at += 1 + words,
                None => return Ok(None),
            }
        }
        let end = self.end(at);
        if at < end {
            return Ok(Some(Context {
                options: from,
                program: at,
                end,
                unsure: self.unsure(at, end, &said),
                wdir: said.wdir,
                preload: said.preload,
                n_ranks: said.n_ranks,
            }));
        }
        match end < self.words.len() {
            true => Err(LineError::NoProgram(
                self.words[end - 1].to_string_lossy().into_owned(),
            )),
            false => Ok(None),
        }
    }

    /// Where the context ends that `at` is in.
    fn end(&self, at: usize) -> usize {
        let separates = |word: &OsString| self.dialect.has_several_programs() && word == ":";
        let mut rest = self.words.iter().skip(at);
        rest.position(separates)
            .map_or(self.words.len(), |length| at + length)
    }

    /// Reads one option; how many words it takes, or `None` where it starts no program.
    fn option(
        &self,
        at: usize,
        text: &str,
        said: &mut Said,
        for_all: &mut Option<OsString>,
    ) -> Result<Option<usize>, LineError> {
        let (option, glued) = self.dialect.split(text);
        let next = self.words.get(at + 1);
        let value = glued.clone().or_else(|| next.cloned()).unwrap_or_default();
        let one = usize::from(glued.is_none());
        let next_is = |fits: &dyn Fn(&str) -> bool| {
            next.is_some_and(|word| fits(&word.to_string_lossy())) && glued.is_none()
        };
        Ok(Some(match self.dialect.takes(&option) {
            Takes::Words(count) => count * one,
            Takes::Ranks => {
                // The last one counts.
                said.n_ranks = value.to_str().and_then(|number| number.parse().ok());
                one
            }
            Takes::Number => usize::from(next_is(&|word| {
                word.bytes().all(|byte| byte.is_ascii_digit())
            })),
            Takes::Information => return Ok(None),
            Takes::Wdir => {
                said.wdir = Some(value);
                one
            }
            Takes::Assignment => {
                said.preload = assigned_preload(&value).or(said.preload.take());
                one
            }
            kind @ (Takes::Genv | Takes::Env) => {
                let in_one_word = glued.is_some() || next_is(&|word| word.contains('='));
                let preload = match in_one_word {
                    true => assigned_preload(&value),
                    false if value == "LD_PRELOAD" => self.words.get(at + 2).cloned(),
                    false => None,
                };
                let place = match kind {
                    Takes::Genv => &mut *for_all,
                    _ => &mut said.preload,
                };
                *place = preload.or(place.take());
                match in_one_word {
                    true => one,
                    false => 2,
                }
            }
            Takes::Programs => {
                let file = value.to_string_lossy().into_owned();
                return Err(LineError::ProgramsInFile { option, file });
            }
            Takes::Unknown => {
                let takes_next = next_is(&|word| {
                    let is_program = (self.is_program)(OsStr::new(word), said.wdir.as_deref());
                    !word.starts_with('-') && word != ":" && !is_program
                });
                match takes_next {
                    true => said.with_value = Some(option),
                    false if glued.is_none() => said.without = Some((option, at)),
                    false => {}
                }
                usize::from(takes_next)
            }
        }))
    }

    /// The option behind which another word than that at `program` may be the program.
    fn unsure(&self, program: usize, end: usize, said: &Said) -> Option<String> {
        let can_start = |word: &OsString| (self.is_program)(word, said.wdir.as_deref());
        let words = &self.words[program..end];
        // Neither the value nor this one can be started here.
        let value = said.with_value.as_ref().filter(|_| !can_start(&words[0]));
        // Were this one the option's value, something that can be started would follow.
        let flag = said
            .without
            .as_ref()
            .filter(|(_, place)| place + 1 == program && words[1..].iter().any(can_start));
        value.or(flag.map(|(option, _)| option)).cloned()
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
        let launcher = find_launcher(&words);
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
    fn a_line_says_how_many_ranks_it_starts_if_each_of_its_programs_does() {
        let joined = "srun --ntasks=64 ./a|srun --ntasks 64 ./a|srun -n64 ./a|srun -lN2 -ln64 ./a -n3|\
            mpirun -n64 ./a -n3|mpirun -np64 ./a|mpiexec --np=64 --ppn 8 ./a|aprun -n64 -N 8 ./a|\
            aprun --pes 64 ./a|flux run -n64 -N8 ./a|mpiexec.hydra -n=60 ./a : -np=4 ./b";
        let untold = "mpirun -nolocal -novm ./a|mpirun -n many ./a|srun -N2 ./a|mpirun ./a|mpirun -n 2 ./a : ./b";
        let several =
            "mpirun -n 2 -x A=1 ./a -n 5 : -np 3 ./b|mpirun -n 2 -np 5 ./a|mpirun -c 5 ./a";
        for (lines, n_ranks) in [(joined, Some(64)), (untold, None), (several, Some(5))] {
            for line in lines.split('|') {
                assert_eq!(read(line).unwrap().n_ranks(), n_ranks, "{line}");
            }
        }
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
            "aprun",
            "flux run -n2",
            "/opt/bin/flux mini submit",
        ] {
            let words: Vec<OsString> = word.split(' ').map(OsString::from).collect();
            assert!(is_launcher(&words), "{word}");
        }
        for word in [
            "mpirunner",
            "./prog",
            "mpicc",
            "",
            "/mpirun/prog",
            "flux",
            "flux alloc",
            "flux mini",
            "run",
        ] {
            let words: Vec<OsString> = word.split(' ').map(OsString::from).collect();
            assert!(!is_launcher(&words), "{word}");
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
