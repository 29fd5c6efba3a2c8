//! Open MPI's rules as JSON, which 6.0 reads: the same rules as [`openmpi`] writes, with both ends of each range.
//!
//! The library takes the first match; both bounds are inclusive, and a missing one is open. Names of
//! collectives are those that its parser takes, with underscores.
//! Source: Open MPI's main branch, `coll_tuned_dynamic_file.c`, `docs/tuning-apps/tuned_dynamic_file_schema.json`.

use colltune_core::collective::Collective;
use colltune_core::library::Library;
use serde_json::{Map, Value, json};

use super::notes::Notes;
use super::openmpi::{self, Block};
use super::plan::JobShape;
use crate::published::Published;

/// Writes the rules of every collective that departs from the default.
pub fn rules_file(
    published: &Published,
    library: Library,
    shape: Option<JobShape>,
    notes: &mut Notes,
) -> String {
    let mut collectives = Map::new();
    for collective in Collective::ALL {
        let blocks = openmpi::blocks(published, library, collective, shape, notes);
        let rules = rules(&blocks);
        if !rules.is_empty() {
            notes.exported.insert(collective.name().to_owned());
            collectives.insert(collective.name().to_owned(), rules.into());
        }
    }
    openmpi::warn(published, library, notes);
    if library.version.0 < 6 {
        notes.warnings.push(format!(
            "The winners were measured on {library}. The numbers of its algorithms mean the same in Open MPI 6, but for \
             allgather's 2, whose radix is 6's to choose."
        ));
    }
    let file = json!({ "rule_file_version": 3, "module": "tuned", "collectives": collectives });
    format!("{file:#}\n")
}

/// One entry for each range of ranks with rules of its own.
fn rules(blocks: &[Block]) -> Vec<Value> {
    let ends = blocks.iter().skip(1).map(|next| Some(next.ranks.first - 1));
    let ranges = blocks.iter().zip(ends.chain([None]));
    ranges
        .filter_map(|(block, last)| {
            let rules = by_size(block);
            let mut entry = json!({ "comm_size_min": block.ranks.first, "rules": rules });
            if let Some(last) = last {
                entry["comm_size_max"] = last.into();
            }
            (!rules.is_empty()).then_some(entry)
        })
        .collect()
}

/// The library's own choice needs no rule: what matches none is left to it.
fn by_size(block: &Block) -> Vec<Value> {
    let ends = block.lines.iter().skip(1).map(|next| Some(next.0 - 1));
    let ranges = block.lines.iter().zip(ends.chain([None]));
    ranges
        .filter(|((_, algorithm, ..), _)| *algorithm != 0)
        .map(|(&(first, algorithm, fanout, segsize), last)| {
            let mut rule = json!({
                "msg_size_min": first, "alg": algorithm, "faninout": fanout, "seg_size": segsize
            });
            if let Some(last) = last {
                rule["msg_size_max"] = last.into();
            }
            rule
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::plan::tests::{BOUNDARIES, Row, published};

    const LIBRARY: &str = "openmpi-5.0.11";

    fn table(rows: &[Row]) -> (Value, Notes) {
        let mut notes = Notes::default();
        let library = LIBRARY.parse().unwrap();
        let text = rules_file(&published(LIBRARY, rows), library, None, &mut notes);
        (serde_json::from_str(&text).unwrap(), notes)
    }

    /// Looks a call up as the library documents it: first match, inclusive bounds, each optional.
    fn lookup(file: &Value, collective: &str, ranks: u64, measure: u64) -> (u64, u64) {
        let matches = |value: u64, entry: &Value, what: &str| {
            let bound = |end: &str| entry.get(format!("{what}_{end}")).and_then(Value::as_u64);
            bound("min").is_none_or(|min| min <= value)
                && bound("max").is_none_or(|max| value <= max)
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let entries = list(&file["collectives"][collective]);
        let block = entries
            .iter()
            .find(|entry| matches(ranks, entry, "comm_size"));
        let rules = block.map_or_else(Vec::new, |block| list(&block["rules"]));
        let rule = rules.iter().find(|rule| matches(measure, rule, "msg_size"));
        let number = |name: &str| rule.map_or(0, |rule| rule[name].as_u64().unwrap());
        (number("alg"), number("seg_size"))
    }

    #[test]
    fn every_boundary_is_kept_at_both_sides() {
        let any = (1, None);
        let anywhere = (
            Collective::ReduceScatter,
            (0, None),
            any,
            any,
            "native:ring",
        );
        let (file, notes) = table(&[&BOUNDARIES[..], &[anywhere]].concat());
        assert_eq!(file["rule_file_version"], 3);
        for ranks in [2, 3, 8, 100, 512] {
            let at = |bytes: u64| lookup(&file, "allgather", ranks, bytes * ranks).0;
            let found = [at(0), at(1023), at(1024), at(4095), at(4096), at(1 << 30)];
            assert_eq!(found, [4, 4, 0, 0, 2, 2], "{ranks} ranks");
        }
        for ranks in [3, 8, 100, 513, 1 << 20] {
            assert_eq!(lookup(&file, "bcast", ranks, 32768), (2, 0));
            assert_eq!(lookup(&file, "bcast", ranks, 32769), (2, 32768));
            assert_eq!(lookup(&file, "reduce_scatter", ranks, 1 << 40), (3, 0));
        }
        assert_eq!(
            lookup(&file, "bcast", 2, 0),
            (0, 0),
            "chain needs more than two ranks"
        );
        assert_eq!(lookup(&file, "allreduce", 8, 0), (0, 0));
        assert!(notes.warnings.iter().any(|text| text.contains(LIBRARY)));
    }

    #[test]
    fn a_table_without_winners_is_readable_and_says_nothing() {
        let any = (1, None);
        let (file, notes) = table(&[(Collective::Bcast, (0, None), any, any, "default")]);
        assert_eq!(file["collectives"], json!({}));
        assert!(notes.exported.is_empty());
    }
}
