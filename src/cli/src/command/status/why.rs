//! `status --why VARIANT`: of one variant, in each cell, whether it is drawn, and why not.
//!
//! What rules it out before any training is the very rule that makes generation 0 ([`FirstDraws`]); what a training made of
//! it is what that training published.

mod jobs;

use std::collections::{BTreeMap, HashMap};

use colltune_core::account::JobSummary;
use colltune_core::catalogue::{self, is_default};
use colltune_core::collective::Collective;
use colltune_core::model::{SCHEMA, Source};
use colltune_core::prior::reason::Undrawn;
use colltune_core::prior::undrawn::FirstDraws;
use colltune_core::settings::Settings;
use colltune_core::space::Cell;
use colltune_core::spelling::nearest;
use colltune_db::Generation;
use colltune_models::statistics::{CellStatistics, Contrast};
use serde::Serialize;

use super::columns::{bytes_of, numbers_of};
use crate::published::is_known;
use colltune_output::aligned;
use colltune_output::failure::usage;
use jobs::LeftOut;

/// Names that are offered for one that there is not.
const SUGGESTED: usize = 3;

/// What is told of a variant in one library.
#[derive(Serialize)]
pub struct Report {
    schema: u32,
    library: String,
    generation: u64,
    variant: String,
    /// The cells that were asked for.
    cells: Vec<Told>,
    /// The other cells of the tuning space, summed up.
    others: Vec<Summed>,
    /// What the newest jobs left out, of so many.
    left_out: Vec<LeftOut>,
    jobs: usize,
}

/// What is told of it in one cell.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    cell: Cell,
    #[serde(flatten)]
    why: Why,
    /// With which probability a sampled call draws it.
    probability: f64,
    samples: u64,
}

/// What is told of it in several cells of one collective.
#[derive(Serialize)]
struct Summed {
    collective: Collective,
    cells: usize,
    #[serde(flatten)]
    why: Why,
}

/// Why a variant is drawn, or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The rule's name, for programs.
    rule: &'static str,
    #[serde(rename = "why")]
    text: String,
    /// The number that the rule is about, of which a sum tells the least and the most.
    #[serde(skip)]
    number: Option<f64>,
}

impl Report {
    /// Of the variant `name` in a library, in the cells that `is_asked` wants of those of which something is known.
    ///
    /// Errors: a variant that no collective of the library has, among those asked for.
    pub fn of(
        generation: &Generation,
        settings: &Settings,
        (name, collective): (&str, Option<Collective>),
        runs: &[JobSummary],
        is_asked: impl Fn(&CellStatistics) -> bool,
    ) -> anyhow::Result<Report> {
        let collectives = who_has(generation, name, collective)?;
        let left_out = jobs::left_out(runs, name, &collectives);
        let mut cells = Vec::new();
        let mut others: BTreeMap<(Collective, &'static str, String), Vec<Why>> = BTreeMap::new();
        for collective in collectives {
            let mut undrawn = of_cells(generation, settings, collective, name);
            let of_collective = generation.cells.iter();
            for cell in of_collective.filter(|cell| cell.cell.collective == collective) {
                let share = share(generation, &cell.cell, name);
                let why = Why::of(cell, name, share, undrawn(&cell.cell));
                if is_known(cell) && is_asked(cell) {
                    cells.push(Told {
                        cell: cell.cell,
                        probability: share.unwrap_or(0.0),
                        samples: cell.variant(name).map_or(0, |one| one.samples),
                        why,
                    });
                } else {
                    let key = (collective, why.rule, why.summed_as().to_owned());
                    others.entry(key).or_default().push(why);
                }
            }
        }
        let summed = |((collective, ..), all): ((Collective, _, _), Vec<Why>)| Summed {
            collective,
            cells: all.len(),
            why: Why::sum(&all),
        };
        let mut others: Vec<Summed> = others.into_iter().map(summed).collect();
        others.sort_by_key(|one| (one.collective, std::cmp::Reverse(one.cells)));
        Ok(Report {
            schema: SCHEMA,
            library: generation.key.to_string(),
            generation: generation.number,
            variant: name.to_owned(),
            cells,
            others,
            left_out,
            jobs: runs.len(),
        })
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "{} in {}, generation {}\n",
            self.variant, self.library, self.generation
        );
        let row = |told: &Told| {
            let cell = told.cell;
            let [nodes, ppn] = [cell.nodes, cell.ppn].map(numbers_of);
            let collective = cell.collective.to_string();
            vec![
                collective,
                bytes_of(cell.bytes),
                nodes,
                ppn,
                told.why.text.clone(),
            ]
        };
        let head = ["collective", "bytes", "nodes", "ppn", "why"].map(str::to_owned);
        if !self.cells.is_empty() {
            let rows = std::iter::once(head.to_vec()).chain(self.cells.iter().map(row));
            text.push_str(&aligned(&rows.collect::<Vec<_>>(), |_| true));
        }
        if !self.others.is_empty() {
            text.push_str(match self.cells.is_empty() {
                true => "in all cells:\n",
                false => "in the other cells of the tuning space:\n",
            });
            let head = ["collective", "cells", "why"].map(str::to_owned);
            let row = |one: &Summed| {
                let collective = one.collective.to_string();
                vec![collective, one.cells.to_string(), one.why.text.clone()]
            };
            let rows = std::iter::once(head.to_vec()).chain(self.others.iter().map(row));
            text.push_str(&aligned(&rows.collect::<Vec<_>>(), |column| column != 1));
        }
        text.push_str(&jobs::table(&self.left_out, self.jobs));
        text
    }
}

/// The collectives that have a variant of this name.
fn who_has(
    generation: &Generation,
    name: &str,
    wanted: Option<Collective>,
) -> anyhow::Result<Vec<Collective>> {
    let library = generation.library;
    let of = |collective: Collective| catalogue::find(library, collective, name).is_some();
    let asked = |collective: &Collective| wanted.is_none_or(|wanted| wanted == *collective);
    let collectives: Vec<Collective> = Collective::ALL.into_iter().filter(asked).collect();
    let having: Vec<Collective> = collectives.iter().copied().filter(|one| of(*one)).collect();
    if !having.is_empty() {
        return Ok(having);
    }
    let all = collectives
        .iter()
        .flat_map(|&one| catalogue::variants(library, one));
    let mut names: Vec<String> = all.map(|variant| variant.name.to_string()).collect();
    names.sort();
    names.dedup();
    let near = nearest(name, names.iter().map(String::as_str), SUGGESTED);
    let whose = wanted.map_or_else(String::new, |collective| format!("{collective} in "));
    Err(usage(format!(
        "tell why {name} is not drawn: {whose}{library} has no such variant; the nearest are {} (`colltune variants` \
         lists all)",
        near.join(", ")
    )))
}

/// What keeps a variant of a collective from being drawn before any training, cell by cell.
fn of_cells(
    generation: &Generation,
    settings: &Settings,
    collective: Collective,
    name: &str,
) -> impl FnMut(&Cell) -> Option<Undrawn> {
    let variants = catalogue::variants(generation.library, collective);
    let mut first = FirstDraws::new(&variants, settings, generation.library);
    let place = first.names().iter().position(|other| other == name);
    let mut cells = HashMap::new();
    for (cell, block) in settings
        .space
        .cells()
        .filter(|(cell, _)| cell.collective == collective)
    {
        let undrawn = first.undrawn(&cell, block);
        cells.insert(cell, place.and_then(|place| undrawn[place]));
    }
    // The space may have been cut otherwise since the training.
    move |cell| match cells.get(cell) {
        Some(undrawn) => *undrawn,
        None => {
            let mut other = cells.iter().filter(|(other, _)| other.overlaps(cell));
            other.next().and_then(|(_, undrawn)| *undrawn)
        }
    }
}

/// What the generation in force gives a variant of a cell's draws; `None` where it does not name it.
fn share(generation: &Generation, cell: &Cell, name: &str) -> Option<f64> {
    let Cell {
        collective,
        bytes,
        nodes,
        ppn,
    } = *cell;
    let mut entries = generation.model.cells.iter();
    let entry = entries.find(|one| one.cell.contains(collective, bytes.lo, nodes.lo, ppn.lo))?;
    let mut shares = entry.variants.iter();
    shares
        .find(|share| share.name == name)
        .map(|share| share.probability)
}

impl Why {
    fn new(rule: &'static str, text: impl Into<String>) -> Why {
        Why {
            rule,
            text: text.into(),
            number: None,
        }
    }

    fn of(cell: &CellStatistics, name: &str, share: Option<f64>, undrawn: Option<Undrawn>) -> Why {
        let ruled_out = |undrawn: Undrawn| Why {
            number: match undrawn {
                Undrawn::Calibration(ratio) => Some(ratio),
                _ => None,
            },
            ..Why::new(undrawn.rule(), undrawn.to_string())
        };
        match (share, undrawn) {
            // A job's own settings confine what it draws of the families.
            (_, Some(undrawn @ Undrawn::Family(_))) => ruled_out(undrawn),
            (Some(share), _) if share > 0.0 => Why::drawn(cell, name, share, undrawn),
            (_, Some(undrawn)) if undrawn.is_final() => ruled_out(undrawn),
            _ => Why::learned(cell, name, share).unwrap_or_else(|| match undrawn {
                Some(undrawn) => ruled_out(undrawn),
                None => Why::new(
                    "new",
                    "from the next training on: the settings have changed since the last",
                ),
            }),
        }
    }

    /// Of what is drawn.
    fn drawn(cell: &CellStatistics, name: &str, share: f64, undrawn: Option<Undrawn>) -> Why {
        let percent = 100.0 * share;
        let mut text = format!("drawn with {percent:.2} %");
        let sampled = cell.variant(name).filter(|one| one.samples > 0);
        match (undrawn, sampled) {
            _ if is_default(name) => {}
            (Some(undrawn), _) => text.push_str(&format!(", although {undrawn}")),
            (None, Some(one)) if !one.reason.is_empty() => {
                text.push_str(&format!("; {}", one.reason))
            }
            (None, None) if cell.source == Source::Measured => text.push_str(", never sampled yet"),
            (None, _) => {}
        }
        Why {
            number: Some(percent),
            ..Why::new("drawn", text)
        }
    }

    /// Of what a training no longer draws, by what it published; `None` where it says nothing.
    fn learned(cell: &CellStatistics, name: &str, share: Option<f64>) -> Option<Why> {
        let ended = match cell.settled.as_str() {
            "" => String::new(),
            why => format!("; exploring has ended: {why}"),
        };
        let listed = cell.variant(name);
        match listed.and_then(|one| one.contrast.map(|contrast| (one, contrast))) {
            Some((one, contrast)) if one.samples > 0 => {
                let compared = against_default(contrast);
                return Some(match contrast.gain < 1.0 {
                    true => Why::new("worse", format!("worse: {compared}{ended}")),
                    false => Why::new(
                        "behind",
                        format!("behind {}: {compared}; {}{ended}", cell.best, one.reason),
                    ),
                });
            }
            Some((_, contrast)) if cell.source == Source::Predicted => {
                let compared = against_default(contrast);
                return Some(Why::new("predicted", format!("predicted: {compared}")));
            }
            Some(_) if !ended.is_empty() => {
                return Some(Why::new("ended", format!("never sampled{ended}")));
            }
            _ => {}
        }
        // A training lists with 0 what it has drawn in vain.
        (share == Some(0.0) && cell.source == Source::Measured && listed.is_none()).then(|| {
            Why::new(
                "silent",
                "no call could run it: it was drawn, and never ran",
            )
        })
    }

    /// What a sum's parts have in common.
    fn summed_as(&self) -> &str {
        match self.number {
            Some(_) => "",
            None => &self.text,
        }
    }

    /// Several of one rule, which tell the least and the most of their number.
    fn sum(all: &[Why]) -> Why {
        let numbers = || all.iter().filter_map(|one| one.number);
        let least = numbers().fold(f64::INFINITY, f64::min);
        let most = numbers().fold(0.0, f64::max);
        let first = all[0].clone();
        let text = match first.rule {
            _ if all.iter().all(|one| one.text == first.text) => first.text.clone(),
            "calibration" => format!("calibration: {least:.1}x to {most:.1}x the best"),
            "drawn" => format!("drawn with {least:.2} % to {most:.2} %"),
            _ => first.text.clone(),
        };
        Why { text, ..first }
    }
}

/// How long it takes beside the default, with the interval.
fn against_default(Contrast { gain, lo, hi }: Contrast) -> String {
    let time = |gain: f64| 1.0 / gain.max(1e-4);
    format!(
        "{:.2}x the default's time [{:.2}, {:.2}]",
        time(gain),
        time(hi),
        time(lo)
    )
}

#[cfg(test)]
mod tests;
