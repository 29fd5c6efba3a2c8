//! The tables of telemetry: a table for each kind of file, with the columns that its files have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::QueryError;
use crate::parquet_file::FilePart;
use crate::table::{Opened, TEXT, Table, text};

/// A folder that is asked, as it was named, with its files by table.
#[derive(Clone, Debug)]
pub struct Folder {
    name: String,
    files: BTreeMap<String, Vec<PathBuf>>,
}

impl Folder {
    /// Errors: `NoTelemetry` where there is no folder.
    pub fn open(path: &Path) -> Result<Folder, QueryError> {
        let entries = std::fs::read_dir(path).map_err(|_| QueryError::NoTelemetry {
            path: path.to_owned(),
        })?;
        let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for entry in entries.flatten() {
            if let Some(table) = entry.file_name().to_str().and_then(table) {
                files
                    .entry(table.to_owned())
                    .or_default()
                    .push(entry.path());
            }
        }
        files.values_mut().for_each(|paths| paths.sort_unstable());
        Ok(Folder {
            name: path.display().to_string(),
            files,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// The table of `NAME.parquet` and `NAME.GGGG.parquet`, where G counts groups of ranks.
fn table(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".parquet")?;
    let (name, group) = name.split_once('.').unwrap_or((name, ""));
    let is_name = name.starts_with(|sign: char| sign.is_ascii_lowercase())
        && name
            .chars()
            .all(|sign| sign.is_ascii_lowercase() || sign == '_');
    (is_name && group.chars().all(|sign| sign.is_ascii_digit())).then_some(name)
}

/// What a row of a table is, where that is known.
fn about(table: &str) -> &'static str {
    match table {
        "phases" => "time of each rank in each phase of each step",
        "windows" => "each rank between two blocking collectives of all ranks",
        "rounds" => "each rank's exchanges of messages",
        "messages" => "what each rank sent in each step, by kind",
        "partners" => "who sends what to whom in a step",
        "blocks" => "what each block cost its owner in each step",
        "ranks" => "where each rank ran, and what the system counted for it",
        "spans" => "when each stretch of a phase was",
        "epochs" => "which arms of levers ran for how long",
        _ => "telemetry",
    }
}

/// The tables of all folders; none of the files has been read yet.
pub fn tables(folders: &[Folder]) -> Vec<Table> {
    let mut names: Vec<&String> = folders.iter().flat_map(|one| one.files.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &String| {
        let (folders, wanted) = (folders.to_vec(), name.clone());
        Table::new(name, about(name), move |warnings| {
            // There is a table even where none of its files can be read.
            let mut table = Opened::new([("folder", TEXT)]);
            for (folder, _, path) in files(&folders)
                .into_iter()
                .filter(|(_, name, _)| *name == wanted)
            {
                let constants = vec![("folder", text(&folder))];
                let counting = None;
                warnings.extend(FilePart { path, counting }.add(&mut table, constants).err());
            }
            table
        })
    };
    names.into_iter().map(of).collect()
}

/// All files, each with the folder and table that it belongs to.
fn files(folders: &[Folder]) -> Vec<(String, String, PathBuf)> {
    let mut all = Vec::new();
    for folder in folders {
        for (table, paths) in &folder.files {
            for path in paths {
                all.push((folder.name.clone(), table.clone(), path.clone()));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_tables_by_their_names() {
        assert_eq!(table("phases.0003.parquet"), Some("phases"));
        assert_eq!(table("ranks.parquet"), Some("ranks"));
        for other in [
            ".phases.0003.parquet.unfinished",
            "phases.0003.csv",
            "phases.old.parquet",
            "PHASES.parquet",
            ".parquet",
            "a b.parquet",
        ] {
            assert_eq!(table(other), None, "{other}");
        }
    }
}
