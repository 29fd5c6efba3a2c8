//! What is wrong with a query, said so that it can be put right: the place in it, and the names that were meant.

use colltune_core::spelling::{distance, nearest};
use rusqlite::Error;

use crate::error::QueryError;
use crate::functions::AGGREGATES;
use crate::table::Table;

/// Tables that there may be, with what brings them along.
pub const OF_DATABASES: [&str; 9] = [
    "records",
    "calls",
    "evidence",
    "runs",
    "run_collectives",
    "generations",
    "cells",
    "variants",
    "passed",
];
pub const OF_TELEMETRY: [&str; 8] = [
    "phases", "windows", "rounds", "messages", "partners", "blocks", "ranks", "spans",
];

/// Turns what SQLite says about a query over these tables into a sentence.
pub fn explain(error: Error, sql: &str, tables: &[Table]) -> QueryError {
    match error {
        Error::MultipleStatement => {
            let problem = "answer more than one query at a time: leave out what follows the `;`";
            QueryError::Sql(problem.to_owned())
        }
        Error::SqlInputError { msg, offset, .. } => {
            let place = usize::try_from(offset).ok();
            QueryError::Sql(said(&msg, place, sql, tables))
        }
        Error::SqliteFailure(code, message) => {
            let message = message.unwrap_or_else(|| code.to_string());
            match code.code {
                rusqlite::ErrorCode::AuthorizationForStatementDenied => changes(&message),
                rusqlite::ErrorCode::Unknown if message.ends_with("may not be modified") => {
                    changes(&message)
                }
                rusqlite::ErrorCode::Unknown => QueryError::Sql(said(&message, None, sql, tables)),
                rusqlite::ErrorCode::OutOfMemory => QueryError::Memory,
                _ => QueryError::Engine(message),
            }
        }
        Error::InvalidQuery => QueryError::Sql("find a query in what was given".to_owned()),
        error => QueryError::Engine(error.to_string()),
    }
}

fn changes(message: &str) -> QueryError {
    let what = "change anything: a query only reads what is there, as by SELECT, WITH and EXPLAIN";
    QueryError::Sql(format!("{what} ({message})"))
}

fn said(message: &str, place: Option<usize>, sql: &str, tables: &[Table]) -> String {
    let unknown = |what: &str| message.strip_prefix(what).map(str::trim);
    let (name, hint) = if let Some(name) = unknown("no such table:") {
        (Some(name), about_table(name, tables))
    } else if let Some(name) = unknown("no such column:") {
        (Some(name), about_column(name, sql, tables))
    } else if let Some(name) = unknown("no such function:") {
        (Some(name), about_function(name))
    } else {
        (None, String::new())
    };
    let place = place.or_else(|| find(sql, name?));
    let shown = place.map_or(String::new(), |place| marked(sql, place));
    let hint = if hint.is_empty() {
        hint
    } else {
        format!("; {hint}")
    };
    format!("understand the query: {message}{hint}{shown}")
}

/// The line of the query in which something is wrong, and a mark below the place.
fn marked(sql: &str, place: usize) -> String {
    let place = (0..=place.min(sql.len())).rev();
    let place = place.into_iter().find(|&place| sql.is_char_boundary(place));
    let place = place.unwrap_or(0);
    let begin = sql[..place].rfind('\n').map_or(0, |end| end + 1);
    let end = sql[place..].find('\n').map_or(sql.len(), |end| place + end);
    let before = sql[begin..place].chars().count();
    format!("\n  {}\n  {}^", &sql[begin..end], " ".repeat(before))
}

/// Where a name stands as a word.
fn find(sql: &str, name: &str) -> Option<usize> {
    let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let alone = |place: &usize| {
        let before = sql[..*place].chars().next_back();
        let after = sql[place + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    };
    let mut places = sql.match_indices(name).map(|(place, _)| place);
    places.find(alone)
}

fn about_table(name: &str, tables: &[Table]) -> String {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let known: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let is_there = |names: &[&str]| known.iter().any(|known| names.contains(known));
    if OF_DATABASES.contains(&bare) && !is_there(&OF_DATABASES) {
        return "it is a table of databases: name one with --db DIR".to_owned();
    }
    if OF_TELEMETRY.contains(&bare) {
        return match is_there(&OF_TELEMETRY) {
            false => "it is a table of telemetry: name its folder with --telemetry DIR".to_owned(),
            true => format!(
                "the telemetry has no files {bare}.*.parquet: that run did not record them. There are: {}",
                known.join(", ")
            ),
        };
    }
    let meant = meant(bare, known.iter().copied());
    format!("{meant}there are: {}", known.join(", "))
}

fn about_column(name: &str, sql: &str, tables: &[Table]) -> String {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let named = tables
        .iter()
        .filter(|table| find(sql, &table.name).is_some());
    let all: Vec<&str> = named
        .flat_map(|table| table.opened(&mut Vec::new()).columns.iter())
        .map(|(name, _)| name.as_str())
        .collect();
    let mut near = nearest(bare, all.iter().copied(), 3);
    near.dedup();
    match near.is_empty() {
        true => String::new(),
        false => format!("the nearest: {} (--schema prints all)", near.join(", ")),
    }
}

fn about_function(name: &str) -> String {
    let names = AGGREGATES.iter().map(|(name, ..)| *name);
    let usual = [
        "sum", "avg", "min", "max", "count", "round", "abs", "coalesce", "rank",
    ];
    let meant = meant(name, names.clone().chain(usual));
    let ours: Vec<&str> = names.collect();
    format!("{meant}beside SQLite's own there are: {}", ours.join(", "))
}

fn meant<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    let found = nearest(word, names, 1);
    let found = found.first().filter(|name| distance(word, name) <= 3);
    found.map_or(String::new(), |name| format!("was {name} meant? "))
}
