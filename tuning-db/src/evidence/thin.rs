//! Which runs newer ones of their kind make needless ([`thinning`]).
//!
//! What a run began as is its kind: owner, component, context and layout, so that what is rare is not lost. Ages count
//! every run of the kind of which a footer speaks, and footers keep all of them: so which runs stay depends neither on
//! when trainings came nor on what earlier ones removed.

use std::collections::BTreeMap;

use colltune_core::context::COLUMNS;
use colltune_core::select::mix;
use colltune_models::thinning;

use super::run::{Run, Stored};
use crate::check_word::check_word;

/// So many of the newest runs of a kind stay whole: `docs/results/2026-11-28-history.md` says why.
const WHOLE: usize = 128;
/// About so many runs of all kinds are learned from. Where there would be more, fewer of each kind stay whole.
const RUNS_MAX: f64 = 1536.0;

/// When a run began, its job, and its file and place.
type Aged<'a> = (u64, &'a str, [usize; 2]);
type Kind<'a> = (Option<u32>, &'a str, &'a [String; COLUMNS.len()], [u32; 3]);

fn kind(run: &Run) -> Kind<'_> {
    let layout = [run.ranks, run.nodes, run.ppn];
    (run.owner, &run.component, &run.context, layout)
}

/// Marks the runs that are thinned out, of those of which nothing else speaks.
pub(super) fn thin(files: &mut [Stored]) {
    let mut kinds: BTreeMap<Kind, Vec<Aged>> = BTreeMap::new();
    for (number, file) in files.iter().enumerate() {
        for (place, run) in file.runs.iter().enumerate() {
            if !file.superseded[place] {
                let one = (run.started_unix_ms, run.job.as_str(), [number, place]);
                kinds.entry(kind(run)).or_default().push(one);
            }
        }
    }
    let sizes: Vec<usize> = kinds.values().map(Vec::len).collect();
    let whole = whole(&sizes);
    let mut thinned = Vec::new();
    for mut runs in kinds.into_values() {
        runs.sort_unstable();
        for (newer, (_, job, at)) in runs.into_iter().rev().enumerate() {
            // The word by which shares of an owner's runs are drawn is another one.
            let word = mix(check_word(job.as_bytes()), 2);
            if !thinning::stays(word, newer, whole) {
                thinned.push(at);
            }
        }
    }
    for file in files.iter_mut() {
        file.thinned = file.runs.iter().map(|run| run.thinned).collect();
    }
    for [number, place] in thinned {
        files[number].thinned[place] = true;
    }
}

/// How many of the newest runs of each kind stay whole, where there are so many of each.
fn whole(sizes: &[usize]) -> usize {
    let runs = |whole: &usize| sizes.iter().map(|&n| thinning::expected(n, *whole)).sum();
    let fitting = (2..=WHOLE).rev().find(|whole| -> bool {
        let runs: f64 = runs(whole);
        runs <= RUNS_MAX
    });
    fitting.unwrap_or(1)
}

#[cfg(test)]
mod tests;
