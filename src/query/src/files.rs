//! The table `files`: what is read, file by file, and what cannot be.

use std::path::PathBuf;
use std::rc::Rc;

use colltune_db::partition;
use rusqlite::types::Value;

use crate::database::Queried;
use crate::parquet_file::ParquetFile;
use crate::table::{Field, INTEGER, TEXT, Table, made, text, whole};
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
    Field("folder", TEXT, |file| text(&file.folder)),
    Field("holds", TEXT, |file| text(&file.holds)),
    Field("path", TEXT, |file| text(&file.path.display().to_string())),
    Field("bytes", INTEGER, |file| whole(file.bytes)),
    Field("rows", INTEGER, |file| {
        known(file, |read| Value::Integer(read.metadata().num_rows()))
    }),
    Field("row_groups", INTEGER, |file| {
        known(file, |read| whole(read.n_row_groups() as u64))
    }),
    Field("columns", INTEGER, |file| {
        known(file, |read| whole(read.columns().count() as u64))
    }),
    Field("created_by", TEXT, |file| {
        known(file, |read| {
            text(read.metadata().created_by().unwrap_or(""))
        })
    }),
    Field("problem", TEXT, |file| {
        let problem = file.read.as_ref().err();
        problem.map_or(Value::Null, |problem| text(problem))
    }),
];

fn known(file: &OfFile, value: fn(&ParquetFile) -> Value) -> Value {
    file.read.as_ref().map_or(Value::Null, value)
}

pub fn table(asked: Option<&Rc<Queried>>, folders: &[Folder]) -> Table {
    let (asked, folders) = (asked.cloned(), folders.to_vec());
    let about = "one row per Parquet file that is asked, with what is wrong with it";
    Table::new("files", about, move |_| {
        let mut found = asked.as_deref().map_or_else(Vec::new, of_database);
        found.extend(telemetry::files(&folders));
        made(FILES, move || Ok(found.clone().into_iter().map(of_file)))
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

fn of_database(asked: &Queried) -> Vec<(String, String, PathBuf)> {
    let db = &asked.db;
    let folder = db.root().display().to_string();
    let mut places = vec![("runs", db.runs())];
    for key in &asked.keys {
        places.extend([("records", db.data(key)), ("evidence", db.evidence(key))]);
    }
    let listed = |(holds, place): (&str, PathBuf)| {
        let (folder, holds) = (folder.clone(), holds.to_owned());
        let paths = partition::list(&place).unwrap_or_default().into_iter();
        paths.map(move |path| (folder.clone(), holds.clone(), path))
    };
    places.into_iter().flat_map(listed).collect()
}
