//! `--messages FOLDER`: the library that records point-to-point messages, and the folder that its ranks write into.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use colltune_core::environment;
use colltune_core::library::Abi;
use colltune_launch::prefix::Assignments;
use colltune_launch::shim;
use colltune_output::failure::usage;

/// A folder that is ready for a recording.
pub struct MessageFolder {
    folder: PathBuf,
    /// Tells the files of one `colltune run` from those of another.
    run: String,
}

impl MessageFolder {
    /// Makes the folder, for programs with these binary interfaces.
    ///
    /// Errors: no program needs MPI; a library that is not built; a folder that holds a recording or cannot be written to.
    pub fn prepare(folder: &Path, abis: &[Option<Abi>]) -> anyhow::Result<MessageFolder> {
        if abis.iter().all(Option::is_none) {
            bail!(
                "record messages: no program of the line needs an MPI library that can be seen; if it loads MPI later \
                 on, say which: --mpi openmpi, mpich, intel or mpi_abi"
            );
        }
        for abi in abis.iter().flatten() {
            shim::messages(*abi)?;
        }
        let folder = std::path::absolute(folder)
            .with_context(|| format!("make {} absolute", folder.display()))?;
        let failed = || format!("record messages in {}", folder.display());
        std::fs::create_dir_all(&folder).with_context(failed)?;
        for entry in std::fs::read_dir(&folder).with_context(failed)? {
            let name = entry.with_context(failed)?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("rank-") && name.ends_with(".csv") {
                return Err(usage(format!(
                    "{}: it holds a recording already ({name}); name another folder, or remove that one",
                    failed()
                )));
            }
        }
        let (now, own) = (
            SystemTime::now().duration_since(UNIX_EPOCH),
            std::process::id(),
        );
        let run = format!("{}-{own}", now.unwrap_or_default().as_millis());
        let probe = folder.join(format!(".{run}"));
        File::create_new(&probe).with_context(failed)?;
        let _ = std::fs::remove_file(&probe);
        Ok(MessageFolder { folder, run })
    }

    /// What the library reads.
    pub fn variable(&self) -> Assignments {
        let value = format!("{}:{}", self.run, self.folder.display());
        vec![(environment::MESSAGES.to_owned(), value.into())]
    }
}
