//! Puts `env LD_PRELOAD=... COLLTUNE_...=...` in front of every program of a line.
//!
//! This way and no other, because it reaches the ranks and nothing else (not the launcher, not its
//! daemons), in every application context, on every node, with every launcher: Open MPI's `-x`
//! and Hydra's `-genv` differ in reach and spelling, and srun has neither.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::line::{Context, Line};
use super::needs::is_sanitizer;
use super::shim;

/// Variables and their values, in the order in which they are set.
pub type Assignments = Vec<(String, OsString)>;

/// The value of LD_PRELOAD: the shim, behind what `given` has before it, then what the user preloads, so that tools
/// which call `PMPI_` themselves stand behind the shim; only runtimes of sanitizers, which have to be first, stand
/// before it. Another shim in `users` is left out.
pub fn preload(given: &OsStr, users: Option<&OsStr>) -> OsString {
    let (given, users) = (
        given.to_string_lossy(),
        users.map(OsStr::to_string_lossy).unwrap_or_default(),
    );
    let given: Vec<&str> = given.split(':').collect();
    let kept = |library: &&str| {
        let shim = Path::new(library).file_name() == Some(OsStr::new(shim::FILE));
        !library.is_empty() && !shim && !given.contains(library)
    };
    let users = users.split([':', ' ']).filter(kept);
    let (first, rest): (Vec<&str>, Vec<&str>) = users.partition(|name| is_sanitizer(name));
    [first, given, rest].concat().join(":").into()
}

/// What each program of a line is given; `None` leaves a program as it is.
pub fn apply(
    line: &Line,
    given: &[Option<Assignments>],
    own_preload: Option<&OsStr>,
) -> Vec<OsString> {
    let mut words = line.words[..line
        .contexts
        .first()
        .map_or(line.words.len(), |first| first.program)]
        .to_vec();
    for (place, context) in line.contexts.iter().enumerate() {
        let next = line
            .contexts
            .get(place + 1)
            .map_or(line.words.len(), |next| next.program);
        let program = &line.words[context.program..context.end];
        match &given[place] {
            Some(assignments) => words.extend(prefixed(program, context, assignments, own_preload)),
            None => words.extend(program.iter().cloned()),
        }
        words.extend(line.words[context.end..next].iter().cloned());
    }
    words
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
    let assigned = assignments.iter().map(|(name, value)| {
        let value = if name == "LD_PRELOAD" {
            preload(value, users_preload.as_deref())
        } else {
            value.clone()
        };
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        word
    });
    let mut words = match in_front {
        Some(count) => program[..count].to_vec(),
        None => vec![OsString::from(if Path::new("/usr/bin/env").exists() {
            "/usr/bin/env"
        } else {
            "env"
        })],
    };
    words.extend(assigned);
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
    use crate::launch::line::is_launcher;

    fn apply_to(line: &str, own_preload: Option<&str>) -> String {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let launcher = words.iter().position(|word| is_launcher(word));
        let line = Line::read(words, launcher, &|_, _| true).unwrap();
        let given = vec![
            ("LD_PRELOAD".to_owned(), "/l/libcolltune.so".into()),
            ("COLLTUNE_DB".to_owned(), "/d b".into()),
        ];
        let given = vec![Some(given); line.contexts.len()];
        let words = apply(&line, &given, own_preload.map(OsStr::new));
        words
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
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
