//! What a job is called in the ledger.

use colltune_core::environment;
use colltune_core::levers::{self, Arms};
use colltune_core::roster::hash_bytes;

/// A label is a name, not a book.
const LABEL_CHARACTERS_MAX: usize = 100;

/// What the process is called, as it was at the start: in MPI_Finalize other threads may change the environment.
pub struct Named {
    pub program: String,
    pub arguments_hash: String,
    pub path_hash: String,
    pub label: String,
    pub levers: Arms,
}

impl Named {
    pub fn now() -> Named {
        let (program, path_hash) = program();
        Named {
            program,
            arguments_hash: arguments_hash(),
            path_hash,
            label: label(),
            levers: arms(),
        }
    }
}

/// The name of the program's file, and a hash of its folder. Its arguments are left out: they may hold secrets.
fn program() -> (String, String) {
    let file = std::env::current_exe().unwrap_or_default();
    let name = file.file_name().unwrap_or_default();
    let folder = file.parent().unwrap_or(&file).as_os_str();
    let hash = hash_bytes(1, folder.as_encoded_bytes());
    (name.to_string_lossy().into_owned(), format!("{hash:016x}"))
}

fn arguments_hash() -> String {
    // Some of them may be a lever's: `colltune run` knows what is the same for all of its arms.
    let told = std::env::var(environment::ARGUMENTS).unwrap_or_default();
    if told.len() == 16 && told.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return told;
    }
    let arguments = std::env::args_os().skip(1);
    let hash = arguments.fold(1, |hash, argument| {
        hash_bytes(hash, argument.as_encoded_bytes())
    });
    format!("{hash:016x}")
}

fn arms() -> Arms {
    levers::parse(&std::env::var(environment::LEVERS).unwrap_or_default())
}

fn label() -> String {
    let label = std::env::var(environment::LABEL).unwrap_or_default();
    label.chars().take(LABEL_CHARACTERS_MAX).collect()
}
