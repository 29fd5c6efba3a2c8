//! A program's own options as levers: `placement=contiguous,lpt-swap,cplx:50` for a line with `{placement}` in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use colltune_core::levers::asked::ARMS_MAX;
use colltune_core::levers::{Arms, LEVERS_MAX, escaped, split};
use colltune_core::roster::hash_bytes;

/// What stands for variables of the MPI library, see [`crate::nonblocking`].
const NONBLOCKING: &str = "nonblocking";
const NAME_BYTES_MAX: usize = 64;
const ARM_BYTES_MAX: usize = 256;

/// One choice of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lever {
    pub name: String,
    /// The first one is what the program runs with where nothing better is known.
    pub arms: Vec<String>,
}

impl Lever {
    /// Reads `NAME=ARM,ARM,...`, or the word that stands for variables of the library.
    ///
    /// Errors: a sentence with the remedy, for whoever typed it.
    pub fn parse(text: &str) -> Result<Lever, String> {
        if text == NONBLOCKING {
            return Ok(Lever {
                name: text.to_owned(),
                arms: Vec::new(),
            });
        }
        let Some((name, arms)) = text.split_once('=') else {
            return Err("it is written NAME=ARM,ARM,..., as in block=32,64,128".to_owned());
        };
        let is_letter = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_letter) {
            return Err(format!(
                "the name before `=` has 1 to {NAME_BYTES_MAX} letters, digits, - and _, as in block=32,64"
            ));
        }
        let arms = split(arms, ',');
        if arms.len() > ARMS_MAX {
            return Err(format!(
                "it has {} arms, and at most {ARMS_MAX} can be told apart; name those that differ most",
                arms.len()
            ));
        }
        for (place, arm) in arms.iter().enumerate() {
            if arm.is_empty() {
                return Err(
                    r"an arm is empty; a comma that belongs to an arm is written \,".to_owned(),
                );
            }
            if arm.len() > ARM_BYTES_MAX || arm.chars().any(char::is_control) {
                return Err(format!(
                    "an arm has at most {ARM_BYTES_MAX} bytes, and no line ends or other control characters"
                ));
            }
            if arms[..place].contains(arm) {
                return Err(format!("the arm {arm} stands twice"));
            }
        }
        Ok(Lever {
            name: name.to_owned(),
            arms,
        })
    }

    /// Whether it stands for others, see [`crate::nonblocking`].
    pub fn is_preset(&self) -> bool {
        self.arms.is_empty()
    }

    /// What stands for its arm on a line.
    fn place(&self) -> String {
        format!("{{{}}}", self.name)
    }

    /// One arm of it, as `--lever` takes it.
    pub fn spelt((name, arm): (&String, &String)) -> String {
        format!("{name}={}", escaped(arm, ','))
    }
}

/// Whether a lever of this name is a variable of a library, and belongs into the environment and not on the line.
pub fn is_variable(name: &str) -> bool {
    let prefixes = ["OMPI_MCA_", "MPIR_CVAR_", "I_MPI_"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// What is wrong with levers for a line: a sentence with the remedy.
pub fn check(levers: &[Lever], line: &[OsString]) -> Result<(), String> {
    if levers.len() > LEVERS_MAX {
        return Err(format!(
            "there are {} levers, and at most {LEVERS_MAX} are tuned together",
            levers.len()
        ));
    }
    for (place, lever) in levers.iter().enumerate() {
        let name = &lever.name;
        if levers[..place].iter().any(|other| other.name == *name) {
            return Err(format!(
                "--lever {name} stands twice; name all of its arms in one, {name}=ARM,ARM,..."
            ));
        }
        let mark = lever.place();
        let holds = |word: &OsString| find(word.as_bytes(), mark.as_bytes()).is_some();
        if !lever.is_preset() && !is_variable(name) && !line.iter().any(holds) {
            return Err(format!(
                "the line has no {mark}, so --lever {name} would change nothing; write {mark} where its arm belongs"
            ));
        }
    }
    Ok(())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The line with the arms in place of `{NAME}`. Other braces, and what arms themselves hold, stay as they are.
pub fn filled(line: &[OsString], arms: &Arms) -> Vec<OsString> {
    line.iter().map(|word| filled_word(word, arms)).collect()
}

fn filled_word(word: &OsStr, arms: &Arms) -> OsString {
    let (mut rest, mut text) = (word.as_bytes(), Vec::new());
    while let Some(&first) = rest.first() {
        let named = arms.iter().find_map(|(name, arm)| {
            let behind = rest.strip_prefix(b"{")?.strip_prefix(name.as_bytes())?;
            Some((arm, behind.strip_prefix(b"}")?))
        });
        match named {
            Some((arm, behind)) => {
                text.extend_from_slice(arm.as_bytes());
                rest = behind;
            }
            None => {
                text.push(first);
                rest = &rest[1..];
            }
        }
    }
    OsString::from_vec(text)
}

/// What a line with levers is known by in the ledger, whatever its arms are.
pub fn line_hash(line: &[OsString]) -> String {
    let hash = |hash, word: &OsString| hash_bytes(hash, word.as_bytes());
    format!("{:016x}", line.iter().fold(2, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn arms(of: &[(&str, &str)]) -> Arms {
        let owned = |(name, arm): &(&str, &str)| ((*name).to_owned(), (*arm).to_owned());
        of.iter().map(owned).collect()
    }

    #[test]
    fn arms_take_the_place_of_their_lever_everywhere_and_of_nothing_else() {
        let line = words("mpirun -x T={t} ./a {place}/x{t}{t} {other} {t ${t} {{t}} {} {T}");
        let found = filled(&line, &arms(&[("t", "4"), ("place", "{t}")]));
        let expected = words("mpirun -x T=4 ./a {t}/x44 {other} {t $4 {4} {} {T}");
        assert_eq!(found, expected);
        // The line is the same program whatever the arms are, and another one with other words.
        assert_ne!(line_hash(&line), line_hash(&found));
        let odd = OsString::from_vec(b"\xff{t}".to_vec());
        assert_eq!(filled(&[odd], &arms(&[("t", "4")]))[0].as_bytes(), b"\xff4");
    }

    #[test]
    fn a_lever_is_read_with_its_arms_in_order_and_with_commas_that_are_theirs() {
        let lever = Lever::parse(r"grid=1\,4,2\,2,C:\x=1").unwrap();
        assert_eq!(lever.arms, ["1,4", "2,2", r"C:\x=1"]);
        let arm = (&lever.name, &lever.arms[1]);
        assert_eq!(Lever::spelt(arm), r"grid=2\,2");
        assert_eq!(Lever::parse(&Lever::spelt(arm)).unwrap().arms, ["2,2"]);
    }

    #[test]
    fn what_is_no_lever_is_told_with_the_remedy() {
        let many = format!(
            "a={}",
            (0..10_000)
                .map(|arm| arm.to_string() + ",")
                .collect::<String>()
        );
        for (text, part) in [
            ("a", "NAME=ARM"),
            ("=1,2", "before `=`"),
            ("a b=1,2", "before `=`"),
            ("{a}=1,2", "before `=`"),
            ("a=", "an arm is empty"),
            ("a=1,", "an arm is empty"),
            ("a=1,,2", r"written \,"),
            ("a=1,2,1", "the arm 1 stands twice"),
            ("a=1,2\n", "no line ends"),
            (&many, "it has 10001 arms, and at most 64"),
        ] {
            let error = Lever::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let lever = |name: &str| Lever::parse(&format!("{name}=1,2")).unwrap();
        let line = words("./a {a} {b");
        assert_eq!(check(&[lever("a")], &line), Ok(()));
        let missing = check(&[lever("b")], &line).unwrap_err();
        assert!(missing.contains("write {b} where"), "{missing}");
        let twice = check(&[lever("a"), lever("a")], &line).unwrap_err();
        assert!(twice.contains("--lever a stands twice"), "{twice}");
    }
}
