//! Puts `env LD_PRELOAD=... COLLTUNE_...=...` in front of every program of a line.
//!
//! This way where it can be, because it reaches the ranks and nothing else (not the launcher, not its
//! daemons), in every application context, on every node, with every launcher: Open MPI's `-x`
//! and Hydra's `-genv` differ in reach and spelling, and srun has neither. Where it is not certain which word of a line
//! is the program, nothing may stand in front of any: there the launcher passes the variables on by its own means.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use colltune_core::library::Abi;

use super::container;
use super::line::{Context, Line};
use super::needs::is_sanitizer;
use super::options::Dialect;
use super::shim;
pub use super::shim::Assignments;

/// The value of LD_PRELOAD: the shim, behind what `given` has before it, then what the user preloads, so that tools
/// which call `PMPI_` themselves stand behind the shim. Only runtimes of sanitizers, which have to be first, stand
/// before it. Another shim in `users` is left out.
pub fn preload(given: &OsStr, users: Option<&OsStr>) -> OsString {
    let (given, users) = (
        given.to_string_lossy(),
        users.map(OsStr::to_string_lossy).unwrap_or_default(),
    );
    let given: Vec<&str> = given.split(':').collect();
    let kept = |library: &&str| {
        !library.is_empty() && !shim::is_preloaded(library) && !given.contains(library)
    };
    let users = users.split([':', ' ']).filter(kept);
    let (first, rest): (Vec<&str>, Vec<&str>) = users.partition(|name| is_sanitizer(name));
    [first, given, rest].concat().join(":").into()
}

/// What a program is given.
#[derive(Clone, Debug)]
pub struct Given {
    pub abi: Abi,
    pub variables: Assignments,
}

/// A line that can be started.
#[derive(Debug, Default)]
pub struct Applied {
    pub words: Vec<OsString>,
    /// For the launcher itself, which passes it on.
    pub environment: Assignments,
}

/// Gives each program of a line what is its own; `None` leaves a program as it is.
pub fn apply(line: &Line, given: &[Option<Given>], own_preload: Option<&OsStr>) -> Applied {
    let mut applied = Applied::default();
    let mut at = 0;
    for (context, given) in line.contexts.iter().zip(given) {
        applied
            .words
            .extend_from_slice(&line.words[at..context.options]);
        let options = &line.words[context.options..context.program];
        let program = &line.words[context.program..context.end];
        at = context.end;
        match given {
            Some(given) if context.unsure.is_some() => {
                let users = context.preload.as_deref().or(own_preload);
                let variables = assigned(&given.variables, users);
                match given.abi == Abi::OpenMpi && line.dialect() == Some(Dialect::Mpi) {
                    true => applied.words.extend(exported(&variables)),
                    false => applied.environment.extend(variables),
                }
                applied
                    .words
                    .extend_from_slice(&line.words[context.options..at]);
            }
            Some(given) => {
                let program = prefixed(program, context, &given.variables, own_preload);
                applied.words.extend_from_slice(options);
                applied.words.extend(program);
            }
            None => applied
                .words
                .extend_from_slice(&line.words[context.options..at]),
        }
    }
    applied.words.extend_from_slice(&line.words[at..]);
    applied
}

/// The variables with what the user preloads in them.
fn assigned(variables: &Assignments, users_preload: Option<&OsStr>) -> Assignments {
    let with_users = |(name, value): &(String, OsString)| {
        let value = match name.as_str() {
            "LD_PRELOAD" => preload(value, users_preload),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    variables.iter().map(with_users).collect()
}

/// As options of Open MPI's launcher, which passes on nothing else to other nodes.
fn exported(variables: &Assignments) -> Vec<OsString> {
    let words = variables.iter().flat_map(|one| ["-x".into(), word(one)]);
    words.collect()
}

fn word((name, value): &(String, OsString)) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(value);
    word
}

fn prefixed(
    program: &[OsString],
    context: &Context,
    assignments: &Assignments,
    own_preload: Option<&OsStr>,
) -> Vec<OsString> {
    let in_front = users_env(program);
    let users_env = in_front.map_or(&[][..], |count| &program[1..count]);
    let users_preload = users_env
        .iter()
        .rev()
        .find_map(|word| {
            word.to_str()?
                .strip_prefix("LD_PRELOAD=")
                .map(OsString::from)
        })
        .or_else(|| context.preload.clone())
        .or_else(|| own_preload.map(OsStr::to_owned));
    let assigned = assigned(assignments, users_preload.as_deref());
    if let Some(container) = container::find(program) {
        let said = |name: &str| {
            let value = |word: &OsString| {
                let (said, value) = word.to_str()?.split_once('=')?;
                (said == name).then(|| OsString::from(value))
            };
            users_env.iter().rev().find_map(value)
        };
        let read = |name: &str| said(name).or_else(|| std::env::var_os(name));
        let entered = container.enter(program, assigned, read);
        if entered.variables.is_empty() {
            return entered.program;
        }
        return in_front_of(&entered.program, context, &entered.variables);
    }
    in_front_of(program, context, &assigned)
}

/// The program behind its variables.
fn in_front_of(program: &[OsString], context: &Context, assigned: &Assignments) -> Vec<OsString> {
    let in_front = users_env(program);
    let mut words = match in_front {
        Some(count) => program[..count].to_vec(),
        None => vec![OsString::from(if Path::new("/usr/bin/env").exists() {
            "/usr/bin/env"
        } else {
            "env"
        })],
    };
    words.extend(assigned.iter().map(word));
    words.extend(program[in_front.unwrap_or(0)..].iter().cloned());
    let first = words.len() - (program.len() - in_front.unwrap_or(0));
    words[first] = findable(&words[first], context.wdir.as_deref());
    words
}

/// How many words the user's own `env` and its assignments take, if the program is one.
fn users_env(program: &[OsString]) -> Option<usize> {
    if Path::new(&program[0]).file_name() != Some(OsStr::new("env")) {
        return None;
    }
    let mut at = 1;
    while let Some(text) = program.get(at).and_then(|word| word.to_str()) {
        at += match text {
            "-u" | "--unset" | "-C" | "--chdir" => 2,
            "-S" | "--split-string" => return None,
            _ if text.starts_with("-S") || text.starts_with("--split-string") => return None,
            _ if text.starts_with('-') || text.contains('=') => 1,
            _ => break,
        };
    }
    (at < program.len()).then_some(at)
}

/// Open MPI also finds a program of the working directory by its bare name; `env` does not.
fn findable(program: &OsStr, wdir: Option<&OsStr>) -> OsString {
    let bare = !program.as_encoded_bytes().contains(&b'/');
    let here = wdir
        .map_or(Path::new("."), Path::new)
        .join(program)
        .is_file();
    if bare && here && super::needs::in_path(program).is_none() {
        return Path::new(".").join(program).into_os_string();
    }
    program.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::find_launcher;

    fn applied(line: &str, abi: Abi, own_preload: Option<&str>) -> Applied {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let launcher = find_launcher(&words);
        let is_program =
            |word: &OsStr, _: Option<&OsStr>| word.as_encoded_bytes().starts_with(b"./");
        let line = Line::read(words, launcher, &is_program).unwrap();
        let given = Given {
            abi,
            variables: vec![
                ("LD_PRELOAD".to_owned(), "/l/libcolltune.so".into()),
                ("COLLTUNE_DB".to_owned(), "/d b".into()),
            ],
        };
        let given = vec![Some(given); line.contexts.len()];
        apply(&line, &given, own_preload.map(OsStr::new))
    }

    fn text(words: &[OsString]) -> String {
        let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    fn apply_to(line: &str, own_preload: Option<&str>) -> String {
        let applied = applied(line, Abi::OpenMpi, own_preload);
        assert!(applied.environment.is_empty());
        text(&applied.words)
    }

    #[test]
    fn where_the_program_is_not_certain_the_launcher_passes_the_variables_on() {
        for line in [
            "mpirun --from-the-future ./x ./a",
            "mpirun --from-the-future x a",
        ] {
            let with = applied(line, Abi::OpenMpi, Some("/u.so"));
            let options = "mpirun -x LD_PRELOAD=/l/libcolltune.so:/u.so -x COLLTUNE_DB=/d b --from-the-future";
            assert!(
                text(&with.words).starts_with(options),
                "{}",
                text(&with.words)
            );
            assert!(with.environment.is_empty());
        }
        for line in [
            "mpiexec --from-the-future ./x ./a",
            "srun --from-the-future=1 --another ./x ./a",
            "flux run --another x a",
        ] {
            let with = applied(line, Abi::Mpich, None);
            assert_eq!(text(&with.words), line);
            assert_eq!(with.environment.len(), 2, "{line}");
        }
    }

    #[test]
    fn each_program_of_a_line_is_given_the_shim_and_nothing_else_changes() {
        assert_eq!(
            apply_to("mpirun -n 1 ./a 1 : -n 2 ./b -x : ./c", None),
            "mpirun -n 1 /usr/bin/env LD_PRELOAD=/l/libcolltune.so COLLTUNE_DB=/d b ./a 1 : \
             -n 2 /usr/bin/env LD_PRELOAD=/l/libcolltune.so COLLTUNE_DB=/d b ./b -x : \
             /usr/bin/env LD_PRELOAD=/l/libcolltune.so COLLTUNE_DB=/d b ./c"
        );
    }

    #[test]
    fn what_the_user_preloads_stands_behind_the_shim_wherever_it_was_said() {
        let with = "LD_PRELOAD=/l/libcolltune.so:/u.so ";
        assert!(apply_to("mpirun ./a", Some("/u.so")).contains(with));
        assert!(apply_to("mpirun -x LD_PRELOAD=/u.so ./a", Some("/other.so")).contains(with));
        assert!(apply_to("mpiexec -genv LD_PRELOAD /u.so -n 1 ./a", None).contains(with));
        assert!(apply_to("mpirun ./a", Some("/old/libcolltune.so /u.so")).contains(with));
        let first = "LD_PRELOAD=libasan.so.8:/l/libcolltune.so:/u.so ";
        assert!(apply_to("mpirun ./a", Some("/u.so:libasan.so.8")).contains(first));
        let both = preload(
            OsStr::new("libasan.so.8:/l/libcolltune.so"),
            Some(OsStr::new("libasan.so.8")),
        );
        assert_eq!(both, "libasan.so.8:/l/libcolltune.so");
        assert_eq!(
            apply_to("mpirun env -u A LD_PRELOAD=/u.so B=1 ./a C=2", None),
            "mpirun env -u A LD_PRELOAD=/u.so B=1 LD_PRELOAD=/l/libcolltune.so:/u.so COLLTUNE_DB=/d b ./a C=2"
        );
    }
}
