//! `make book`: the book's pages in a folder, by mdBook's own library.
//!
//! ```text
//! $ cargo run --release -p colltune-book --example book -- target/book
//! ```

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: book FOLDER");
        return ExitCode::from(2);
    };
    match colltune_book::build(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("book: failed to build the book: {error}");
            ExitCode::FAILURE
        }
    }
}
