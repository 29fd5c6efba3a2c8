//! From a command line's words to options, those of decks among them.

use clap::Parser as _;

use crate::deck;
use crate::options::{Options, Refusal};

/// Reads a command line, the program's name first.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Options, Refusal> {
    let words = deck::expand(words).map_err(Refusal::new)?;
    let options = Options::try_parse_from(&words).map_err(|error| Refusal {
        text: error.to_string().trim_end().to_owned(),
        status: if error.use_stderr() { 2 } else { 0 },
    })?;
    Ok(Options {
        words: words.into_iter().skip(1).collect(),
        ..options
    })
}
