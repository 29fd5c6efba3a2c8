//! Databases with a trained generation, as a site has them.

use std::path::{Path, PathBuf};

use colltune_core::catalogue;
use colltune_core::library::Library;
use colltune_core::model::{CellModel, Model, SCHEMA, Share, Source};
use colltune_core::space::{Cell, Range};

use crate::winners::Winners;

/// A database whose generation 1 has these winners, on any number of ranks per node.
pub fn database(library: Library, winners: &[(Range, Winners)], folder: &Path) -> PathBuf {
    let any = Range { lo: 1, hi: None };
    let (mut models, mut statistics, mut space) = (Vec::new(), Vec::new(), Vec::new());
    for (nodes, collective, steps) in winners.iter().flat_map(|(nodes, winners)| {
        winners
            .iter()
            .map(move |(collective, steps)| (nodes, collective, steps))
    }) {
        let bounds: Vec<Option<u64>> = steps
            .iter()
            .map(|(from, _)| Some(*from))
            .chain([None])
            .collect();
        for (pair, (lo, best)) in bounds.windows(2).zip(steps.iter()) {
            let cell = Cell {
                collective: *collective,
                bytes: Range {
                    lo: *lo,
                    hi: pair[1],
                },
                nodes: *nodes,
                ppn: any,
            };
            let variants = vec![Share {
                name: (*best).to_owned(),
                probability: 1.0,
            }];
            let mut known = serde_json::to_value(cell).expect("numbers and names");
            known["source"] = "measured".into();
            known["best"] = (*best).into();
            known["gain"] = 2.0.into();
            known["variants"] = serde_json::json!([{
                "name": best, "samples": 1000, "probability": 1.0,
                "time_ns": { "median": 1000.0, "lo": 900.0, "hi": 1100.0 },
                "contrast": { "gain": 2.0, "lo": 1.8, "hi": 2.2 },
                "replaces_default": !catalogue::is_default(best), "reason": "measured",
            }]);
            statistics.push(known);
            models.push(CellModel {
                cell,
                source: Source::Measured,
                best: (*best).to_owned(),
                gain: 1.0,
                native: None,
                measured_ranks: None,
                variants,
            });
        }
        space.push(serde_json::json!({
            "collective": collective, "bytes": bounds, "nodes": [nodes.lo, nodes.hi], "ppn": [1, null], "exclude": [],
        }));
    }
    let model = Model {
        schema: SCHEMA,
        library: library.to_string(),
        machine: "test".to_owned(),
        generation: 1,
        learner: Default::default(),
        cells: models,
    };
    model.check(library).expect("a sound model");
    let db = folder.join("db");
    let generation = db.join(library.to_string()).join("generations/000001");
    std::fs::create_dir_all(&generation).expect("the folder is ours");
    let cells =
        serde_json::json!({ "schema": 1, "generation": 1, "space": space, "cells": statistics });
    let meta = serde_json::json!({
        "schema": 1, "generation": 1, "library": library.to_string(), "machine": "test", "colltune_version": "0",
        "created_unix_ms": 0, "seed": 0, "runs": 1, "records": 1, "calls": 1, "cells_measured": 1, "jobs": [],
        "partitions": [], "settings": "", "learn_ms": 0, "checks": {},
    });
    let write =
        |path: PathBuf, text: String| std::fs::write(path, text).expect("the folder is ours");
    write(generation.join("probabilities.json"), model.to_json());
    write(generation.join("cells.json"), cells.to_string());
    write(generation.join("meta.json"), meta.to_string());
    write(
        db.join(library.to_string()).join("CURRENT"),
        "000001\n".to_owned(),
    );
    db
}
