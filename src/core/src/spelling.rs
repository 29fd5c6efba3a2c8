//! Words that people type: what was meant by a name that there is not, and how a shell reads one back.

/// The names nearest to `word`, at most `most`, the nearest first; names that are equally near keep their order.
///
/// A word without parameters is compared with names as if they had none either: of `ring`, `rink:segsize=4KiB` is
/// one letter away.
pub fn nearest<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    let parts = word.split(':').count();
    let away = |name: &str| {
        let begin = name.match_indices(':').nth(parts - 1);
        let begin = begin.map_or(name, |(end, _)| &name[..end]);
        (distance(word, begin), distance(word, name))
    };
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| away(name));
    names.truncate(most);
    names
}

/// How many letters have to be inserted, left out, changed, or changed with their neighbour.
pub fn distance(word: &str, other: &str) -> usize {
    strsim::osa_distance(word, other)
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_quoted_words_back() {
        for (word, as_quoted) in [
            ("./hydra.db", "./hydra.db"),
            ("", "''"),
            ("my db", "'my db'"),
            ("it's $HOME", r"'it'\''s $HOME'"),
        ] {
            assert_eq!(quoted(word), as_quoted);
        }
    }

    #[test]
    fn the_nearest_names_come_first_and_parameters_do_not_hide_them() {
        let names = [
            "p2p:chain",
            "p2p:two_tree:segsize=4KiB",
            "p2p:ring",
            "native:ring",
        ];
        assert_eq!(nearest("p2p:rinq", names, 2), ["p2p:ring", "p2p:chain"]);
        assert_eq!(
            nearest("p2p:two_tre", names, 1),
            ["p2p:two_tree:segsize=4KiB"]
        );
        assert_eq!(nearest("", names, 9).len(), 4);
        assert_eq!(nearest("p2p:ring:segsize=1", names, 1), ["p2p:ring"]);
        assert_eq!(distance("MOED", "MODE"), 1);
    }
}
