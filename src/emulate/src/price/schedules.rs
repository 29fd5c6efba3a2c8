//! By which schedules a variant is priced: ours by its own, a library's algorithm by those that it is like.

use colltune_core::algorithm::pattern::Pattern;
use colltune_core::algorithm::registry::{self, Row, Scheduled, Values};
use colltune_core::library::Product;
use colltune_core::prior::alike::{self, Share};
use colltune_core::variant::{Family, VariantName};

use super::node::NodeMemory;
use crate::EmulateError;

/// One of the schedules that follow one another.
#[derive(Clone, Copy)]
pub struct Part {
    pub row: Row,
    pub values: Values,
    share: Share,
}

impl Part {
    pub fn bytes(&self, bytes: u64, n_ranks: usize) -> u64 {
        self.share.of(bytes, n_ranks as u32)
    }
}

/// The schedules of a variant on so many ranks.
///
/// Errors: `UnknownVariant`; `Variant` that does not run on so many ranks.
pub fn parts(
    product: Product,
    pattern: Pattern,
    variant: &str,
    n_ranks: usize,
) -> Result<Vec<Part>, EmulateError> {
    let parts = match native(variant) {
        Some(name) => {
            let steps = alike::of_pattern(product, pattern, &name.algorithm);
            let steps = steps.ok_or_else(|| unknown(pattern, variant))?;
            let part = |step: &alike::Step| {
                let segsize = name.segsize.unwrap_or(0);
                let (row, values) = step.scheduled(segsize, n_ranks as u32)?;
                let share = step.bytes;
                Some(Part { row, values, share })
            };
            steps.iter().map(part).collect()
        }
        None => {
            let (row, values) = own(pattern, variant)?;
            let share = Share::Whole;
            let part = Part {
                row: *row,
                values,
                share,
            };
            row.fits(n_ranks).then(|| vec![part])
        }
    };
    parts.ok_or_else(|| EmulateError::Variant {
        variant: variant.to_owned(),
        ranks: n_ranks,
        reason: "it does not run on so many ranks".to_owned(),
    })
}

/// A schedule that a variant runs among so many ranks.
///
/// Errors: `Variant` that does not run on so many.
pub fn one(own: Scheduled, variant: &str, n_ranks: usize) -> Result<Vec<Part>, EmulateError> {
    let part = Part {
        row: *own.row(),
        values: own.values,
        share: Share::Whole,
    };
    match part.row.fits(n_ranks) {
        true => Ok(vec![part]),
        false => Err(EmulateError::Variant {
            variant: variant.to_owned(),
            ranks: n_ranks,
            reason: "what runs between the nodes does not run on so many".to_owned(),
        }),
    }
}

/// Whether there are schedules for a variant of that name.
///
/// Errors: `UnknownVariant`.
pub fn check(pattern: Pattern, variant: &str) -> Result<(), EmulateError> {
    match native(variant) {
        Some(name) if alike::algorithms(pattern).any(|known| known == name.algorithm) => Ok(()),
        Some(_) => Err(unknown(pattern, variant)),
        None => own(pattern, variant).map(|_| ()),
    }
}

fn native(variant: &str) -> Option<VariantName> {
    let name: VariantName = variant.parse().ok()?;
    (name.family == Family::Native).then_some(name)
}

fn own(pattern: Pattern, variant: &str) -> Result<(&'static Row, Values), EmulateError> {
    let all =
        || registry::rows(pattern).flat_map(|row| row.values().into_iter().map(move |v| (row, v)));
    let name = |(row, values): &(&'static Row, Values)| row.variant(*values).to_string();
    let whole = all().find(|found| name(found) == variant);
    // Without its parameters a name means the first of them.
    let begun = || {
        all().find(|found| {
            name(found)
                .split_once(variant)
                .is_some_and(|(before, rest)| {
                    before.is_empty() && rest.starts_with(':') && variant.contains(':')
                })
        })
    };
    whole
        .or_else(begun)
        .ok_or_else(|| unknown(pattern, variant))
}

fn unknown(pattern: Pattern, variant: &str) -> EmulateError {
    let ours = registry::rows(pattern)
        .flat_map(|row| row.values().into_iter().map(|v| row.variant(v).to_string()));
    let natives =
        alike::algorithms(pattern).map(|name| format!("{}:{name}", Family::Native.name()));
    let known: Vec<String> = ours.chain(natives).collect();
    let node = match NodeMemory::of(pattern, "node:shm") {
        Some(_) => ", node:shm, node:shm+ALGORITHM and node:lanes+ALGORITHM with one of ours",
        None => "",
    };
    EmulateError::UnknownVariant {
        collective: pattern.name(),
        name: variant.to_owned(),
        known: format!("default, {}{node}", known.join(", ")),
    }
}
