//! The table `files`: what is read, file by file, and what cannot be.

use std::path::{Path, PathBuf};

use colltune_db::partition;
use rusqlite::types::Value;

use crate::decoded::Domain::{Integer, Text};
use crate::made::{Field, Made, empty, text, whole};
use crate::parquet_file::ParquetFile;
use crate::queried::Queried;
use crate::relation::Named;
use crate::telemetry::{self, Folder};

/// A file as a row.
struct OfFile {
    folder: String,
    holds: String,
    path: PathBuf,
    bytes: u64,
    read: Result<ParquetFile, String>,
}

const FILES: &[Field<OfFile>] = &[
    Field::new("folder", Text, |file| text(&file.folder)),
    Field::new("holds", Text, |file| text(&file.holds)),
    Field::new("path", Text, |file| text(&file.path.display().to_string())),
    Field::new("bytes", Integer, |file| whole(file.bytes)),
    Field::new("rows", Integer, |file| {
        known(file, |read| Value::Integer(read.n_rows()))
    }),
    Field::new("row_groups", Integer, |file| {
        known(file, |read| whole(read.n_row_groups() as u64))
    }),
    Field::new("columns", Integer, |file| {
        known(file, |read| whole(read.columns().count() as u64))
    }),
    Field::new("created_by", Text, |file| {
        known(file, |read| text(read.created_by()))
    }),
    Field::new("problem", Text, |file| {
        let problem = file.read.as_ref().err();
        problem.map_or(Value::Null, |problem| text(problem))
    }),
];

fn known(file: &OfFile, value: fn(&ParquetFile) -> Value) -> Value {
    file.read.as_ref().map_or(Value::Null, value)
}

pub fn table(asked: Option<&Queried>, folders: &[Folder]) -> Named {
    let (asked, folders) = (asked.cloned(), folders.to_vec());
    let about = "one row per Parquet file that is asked, with what is wrong with it";
    Named::new("files", about, move |_| {
        let mut found = of_database(asked.as_ref());
        found.extend(telemetry::files(&folders));
        let mut relation = empty(&[], FILES);
        let n_rows = found.len() as u64;
        relation.fragments.push(Box::new(Made {
            constants: Vec::new(),
            fields: FILES,
            n_rows,
            make: move || Ok(found.iter().cloned().map(of_file).collect()),
        }));
        relation
    })
}

fn of_file((folder, holds, path): (String, String, PathBuf)) -> OfFile {
    OfFile {
        bytes: path.metadata().map_or(0, |metadata| metadata.len()),
        read: ParquetFile::open(&path),
        folder,
        holds,
        path,
    }
}

fn of_database(asked: Option<&Queried>) -> Vec<(String, String, PathBuf)> {
    let Some(asked) = asked else {
        return Vec::new();
    };
    let db = &asked.db;
    let folder = db.root().display().to_string();
    let mut all = Vec::new();
    let mut add = |holds: &str, place: &Path| {
        for path in partition::list(place).unwrap_or_default() {
            all.push((folder.clone(), holds.to_owned(), path));
        }
    };
    for key in &asked.keys {
        add("records", &db.data(key));
        add("evidence", &db.evidence(key));
    }
    add("runs", &db.runs());
    all
}
