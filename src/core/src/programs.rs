//! Which programs are tuned, by their names: a site's lists of patterns.

use std::path::Path;

/// `programs_allow` and `programs_deny`: patterns in which `*` stands for any characters and `?` for one. A pattern with
/// a slash is about the program's whole path, one without about its file's name.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLists<'a> {
    /// Empty: every program.
    pub allow: &'a [String],
    pub deny: &'a [String],
}

impl ProgramLists<'_> {
    /// Whether they leave anything out.
    pub fn choose(self) -> bool {
        !self.allow.is_empty() || !self.deny.is_empty()
    }

    /// Whether a program may be tuned, by the path of its file. What is on both lists may not.
    pub fn allow(self, program: &Path) -> bool {
        let path = program.to_string_lossy();
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let is_meant = |pattern: &String| {
            let text = if pattern.contains('/') { &path } else { &name };
            matches(pattern, text)
        };
        (self.allow.is_empty() || self.allow.iter().any(is_meant))
            && !self.deny.iter().any(is_meant)
    }
}

/// Whether a pattern stands for a text, in time that grows with the product of their lengths at most.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    // Where the last star is, and what it has swallowed so far.
    let mut star = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                None => return false,
                Some((place, swallowed)) => {
                    star = Some((place, swallowed + 1));
                    at = place + 1;
                    seen = swallowed + 1;
                }
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::mix;

    /// The same by definition, in exponential time.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|n| by_definition(rest, &text[n..])),
            ([b'?', rest @ ..], [_, behind @ ..]) => by_definition(rest, behind),
            ([one, rest @ ..], [other, behind @ ..]) => one == other && by_definition(rest, behind),
            _ => false,
        }
    }

    #[test]
    fn patterns_stand_for_what_their_definition_says() {
        let word = |seed: u64, letters: &[u8]| {
            let length = mix(seed, 0) % 7;
            let letter = |at| letters[(mix(seed, at + 1) % letters.len() as u64) as usize];
            (0..length).map(letter).collect::<Vec<u8>>()
        };
        let mut matching = 0;
        for seed in 0..50_000 {
            let (pattern, text) = (word(2 * seed, b"ab*?"), word(2 * seed + 1, b"ab"));
            let expected = by_definition(&pattern, &text);
            let [pattern, text] = [pattern, text].map(|word| String::from_utf8(word).unwrap());
            assert_eq!(matches(&pattern, &text), expected, "{pattern:?} {text:?}");
            matching += u32::from(expected);
        }
        assert!(matching > 1_000, "{matching}");
    }

    #[test]
    fn a_pattern_of_many_stars_ends_soon() {
        let text = "a".repeat(4096);
        assert!(!matches(&("*a".repeat(128) + "b"), &text));
    }

    #[test]
    fn deny_goes_before_allow_and_a_slash_means_the_path() {
        let may = |allow: &[&str], deny: &[&str]| {
            let [allow, deny] = [allow, deny]
                .map(|list| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
            let (allow, deny) = (&allow[..], &deny[..]);
            ProgramLists { allow, deny }.allow(Path::new("/apps/gromacs/2024/gmx_mpi"))
        };
        assert!(may(&[], &[]));
        assert!(may(&["gmx*"], &[]) && may(&["lmp", "gmx_mp?"], &[]));
        assert!(!may(&["gmx"], &[]));
        assert!(!may(&["gmx*"], &["*_mpi"]));
        assert!(!may(&[], &["/apps/*"]) && may(&[], &["apps*"]));
        assert!(may(&["/apps/*/gmx_mpi"], &["/home/*"]));
    }
}
