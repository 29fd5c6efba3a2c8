//! Choices that hold for a whole run, for a library that reads its algorithms only when a job starts.
//!
//! Intel MPI takes `I_MPI_ADJUST_ALLREDUCE="1:0-2047;2:2048-2147483647"` from the environment and cannot be steered
//! afterwards. `colltune run` therefore draws one algorithm per collective and range of message sizes before the job
//! ([`draw`]), spells it for the library ([`adjustment`]) and for the shim ([`spell`], [`parse`]), which labels what
//! it records by it.

use std::collections::BTreeMap;

use bincode::{Decode, Encode};

use crate::bound::{bearable, reaches};
use crate::catalogue::{self, Steering, Variant};
use crate::collective::Collective;
use crate::library::Library;
use crate::model::{CellModel, Model, Source};
use crate::select::{Chooser, key, word};
use crate::space::Range;
use crate::variant::DEFAULT;

/// What the library runs instead of its own choice for messages of some sizes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Preset {
    pub collective: Collective,
    pub bytes: Range,
    /// A native variant of the library's catalogue.
    pub variant: String,
}

/// The largest size that a condition of `I_MPI_ADJUST_*` can name (2021.19 refuses more).
pub const BYTES_MAX: u64 = i32::MAX as u64;

/// Whether the library's conditions mean the same size as colltune's cells. Where they do not, or ranks do
/// not share a size, one choice holds for all sizes.
///
/// Source: counted messages of 4 ranks under conditions that change the algorithm between two sizes,
/// Intel MPI 2021.19. Gather, scatter, scan and exscan send the same messages with every algorithm there.
pub const fn knows_size(collective: Collective) -> bool {
    matches!(
        collective,
        Collective::Allreduce
            | Collective::Bcast
            | Collective::Allgather
            | Collective::Alltoall
            | Collective::Reduce
            | Collective::ReduceScatter
    )
}

/// Which choices a run begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Drawn by a seed with the probabilities of the library's own algorithms, `default` among them, for a job of so
    /// many ranks, where that is known.
    Drawn(u64, Option<u64>),
    /// The best known, for a job of so many ranks, where that is known.
    Best(Option<u64>),
}

/// One choice per collective and range of sizes, without those that fall on the library's own.
///
/// A job's shape is not known before it starts, so cells that differ in it alone speak together; those that
/// were measured speak for the others. `wanted` leaves collectives out.
pub fn draw(
    model: &Model,
    library: Library,
    choice: Choice,
    wanted: impl Fn(Collective) -> bool,
) -> Vec<Preset> {
    let mut presets: Vec<Preset> = Vec::new();
    for collective in Collective::ALL.into_iter().filter(|&one| wanted(one)) {
        let mut natives = catalogue::variants(library, collective);
        natives.retain(|variant| variant.own.is_none());
        let names: Vec<String> = natives.iter().map(|one| one.name.to_string()).collect();
        for (place, (bytes, cells)) in by_size(model, collective).into_iter().enumerate() {
            let weights = weights(&cells, (&natives, &names), (choice, bytes));
            let number = (collective.index() as u64) << 32 | place as u64;
            let drawn = match choice {
                Choice::Drawn(seed, _) => {
                    Chooser::new(&weights).draw(|| word(key(seed, 0, number), 0))
                }
                Choice::Best(_) => weights
                    .iter()
                    .max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a)))
                    .map(|(variant, _)| *variant),
            };
            let Some(variant) = drawn.and_then(|which| names.get(usize::from(which))) else {
                continue;
            };
            if catalogue::is_default(variant) || bytes.lo > BYTES_MAX {
                continue;
            }
            let before = presets.last_mut().filter(|last| {
                last.collective == collective
                    && last.variant == *variant
                    && last.bytes.hi == Some(bytes.lo)
            });
            match before {
                Some(before) => before.bytes.hi = bytes.hi,
                None => presets.push(Preset {
                    collective,
                    bytes,
                    variant: variant.clone(),
                }),
            }
        }
    }
    presets
}

/// The cells of each range of sizes that one choice holds for, ascending.
fn by_size(model: &Model, collective: Collective) -> Vec<(Range, Vec<&CellModel>)> {
    let mut groups: BTreeMap<Range, Vec<&CellModel>> = BTreeMap::new();
    for entry in &model.cells {
        if entry.cell.collective == collective {
            let bytes = match knows_size(collective) {
                true => entry.cell.bytes,
                false => Range { lo: 0, hi: None },
            };
            groups.entry(bytes).or_default().push(entry);
        }
    }
    groups.into_iter().collect()
}

/// A job whose number of ranks is not given may have so many.
const MANY_RANKS: u64 = 1 << 16;

/// The weight of each of the library's own algorithms, by its place; other variants count for nothing.
fn weights(
    cells: &[&CellModel],
    (natives, names): (&[Variant], &[String]),
    (choice, bytes): (Choice, Range),
) -> Vec<(u16, f64)> {
    // One rank alone has nothing to choose.
    let alone = |cell: &CellModel| cell.cell.nodes.last() == 1 && cell.cell.ppn.last() == 1;
    let measured = |cell: &CellModel| cell.source == Source::Measured && !alone(cell);
    let any = cells.iter().any(|cell| measured(cell));
    let mut weights: Vec<(u16, f64)> = (0..names.len()).map(|place| (place as u16, 0.0)).collect();
    let (Choice::Drawn(_, n_ranks) | Choice::Best(n_ranks)) = choice;
    let bearable = bearable(natives, n_ranks.unwrap_or(MANY_RANKS), bytes);
    let place_of = |name: &str| names.iter().position(|other| other == name);
    // `None` where its cost on so many ranks is unknown.
    let may_run = |name: &str| bearable[place_of(name)?];
    for cell in cells
        .iter()
        .filter(|cell| !alone(cell) && (!any || measured(cell)))
    {
        let mut add = |name: &str, weight: f64| {
            if let Some(place) = place_of(name) {
                weights[place].1 += weight;
            }
        };
        let measured_ranks = cell.cell.measured_ranks(cell.measured_ranks.unwrap_or(0));
        let is_near = n_ranks.map(|n_ranks| reaches(measured_ranks, n_ranks));
        match choice {
            // A whole job runs what is drawn. What may take many times as long on so many ranks leaves its share to the
            // library's choice.
            Choice::Drawn(..) => {
                let native = |name: &String| names.contains(name);
                let shares = cell.variants.iter().filter(|share| native(&share.name));
                let sum: f64 = shares.clone().map(|share| share.probability).sum();
                let sum = if sum > 0.0 { sum } else { 1.0 };
                for share in shares {
                    let may_run = may_run(&share.name).or(is_near) == Some(true);
                    let name = if may_run { &share.name } else { DEFAULT };
                    add(name, share.probability / sum);
                }
            }
            // Where an algorithm of ours is best, or the best on so many ranks is unknown, the library's choice runs.
            // In a job that may have any number of ranks, the best is preset if it is bearable on many.
            Choice::Best(_) => {
                let is_known = is_near.or_else(|| may_run(&cell.best)) == Some(true);
                let tells = is_known && names.contains(&cell.best);
                add(if tells { &cell.best } else { DEFAULT }, 1.0);
            }
        }
    }
    weights
}

/// Reads what [`spell`] wrote; `None` for anything else.
pub fn parse(text: &str) -> Option<Vec<Preset>> {
    let parts = text.split(';').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (place, variant) = part.split_once('=')?;
            let (collective, bytes) = place.split_once('[')?;
            let (lo, hi) = bytes.strip_suffix(')')?.split_once(',')?;
            let hi = match hi {
                "inf" => None,
                hi => Some(hi.parse().ok()?),
            };
            Some(Preset {
                collective: Collective::from_name(collective)?,
                bytes: Range {
                    lo: lo.parse().ok()?,
                    hi,
                },
                variant: variant.to_owned(),
            })
        })
        .collect()
}

/// `allreduce[0,2048)=native:ring;bcast[0,inf)=native:binomial`.
pub fn spell(presets: &[Preset]) -> String {
    let parts = presets.iter().map(|preset| {
        let Range { lo, hi } = preset.bytes;
        let hi = hi.map_or("inf".to_owned(), |hi| hi.to_string());
        format!("{}[{lo},{hi})={}", preset.collective, preset.variant)
    });
    parts.collect::<Vec<_>>().join(";")
}

/// The name of the library's variable for a collective.
pub fn variable(collective: Collective) -> String {
    format!("I_MPI_ADJUST_{}", collective.name().to_uppercase())
}

/// The value of [`variable`] that makes the library run the presets of a collective; `None` without any.
pub fn adjustment(presets: &[Preset], library: Library, collective: Collective) -> Option<String> {
    let own = presets.iter().filter(|one| one.collective == collective);
    let parts = own.filter_map(|preset| {
        let variant = catalogue::find(library, collective, &preset.variant)?;
        let Steering::Intel { preset: number } = variant.steering else {
            return None;
        };
        let (first, last) = (preset.bytes.lo, preset.bytes.last().min(BYTES_MAX));
        Some(match (first, last) {
            (0, BYTES_MAX) => number.to_string(),
            _ => format!("{number}:{first}-{last}"),
        })
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(";"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::Settings;

    fn library() -> Library {
        "intel-2021.19.0".parse().unwrap()
    }

    fn initial() -> Model {
        Model::initial(&Settings::default(), library(), "test")
    }

    #[test]
    fn what_is_spelled_is_read() {
        let presets = draw(&initial(), library(), Choice::Drawn(1, Some(8)), |_| true);
        assert!(presets.len() > 20, "{presets:?}");
        assert_eq!(parse(&spell(&presets)), Some(presets));
        assert_eq!(parse(""), Some(Vec::new()));
        for text in ["allreduce", "allreduce=x", "other[0,1)=x", "bcast[0,x)=y"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_size_has_one_choice_and_seeds_differ() {
        let model = initial();
        let mut seen = BTreeMap::<String, usize>::new();
        for seed in 0..200 {
            let presets = draw(&model, library(), Choice::Drawn(seed, Some(8)), |_| true);
            for pair in presets.windows(2) {
                assert!(
                    pair[0].collective < pair[1].collective
                        || pair[0].bytes.hi.is_some_and(|hi| hi <= pair[1].bytes.lo)
                );
            }
            let here = presets
                .iter()
                .find(|one| one.collective == Collective::Allreduce && one.bytes.contains(64));
            let name = here.map_or(DEFAULT.to_owned(), |one| one.variant.clone());
            *seen.entry(name).or_default() += 1;
        }
        let known = catalogue::variants(library(), Collective::Allreduce);
        let native = known.iter().filter(|one| one.own.is_none()).count();
        assert_eq!(seen.len(), native, "{seen:?}");
        // Alike likely before any training, but for what is hopeless on some numbers of ranks.
        seen.retain(|name, _| !matches!(name.as_str(), "native:ring" | "native:rabenseifner"));
        assert!(seen.values().all(|&times| times >= 20), "{seen:?}");
    }

    #[test]
    fn the_best_known_is_said_in_the_librarys_words() {
        let mut model = initial();
        for entry in &mut model.cells {
            if entry.cell.collective == Collective::Allreduce && entry.cell.bytes.lo < 64 {
                entry.source = Source::Measured;
                entry.best = "native:rabenseifner".to_owned();
            }
            if entry.cell.collective == Collective::Barrier {
                entry.best = "native:dissemination".to_owned();
            }
            if entry.cell.collective == Collective::Bcast {
                entry.best = "p2p:binomial".to_owned();
            }
        }
        let presets = draw(&model, library(), Choice::Best(Some(8)), |_| true);
        let said = |collective| adjustment(&presets, library(), collective);
        let first = model.cells.iter().map(|entry| entry.cell);
        let end = first
            .filter(|cell| cell.collective == Collective::Allreduce && cell.bytes.lo < 64)
            .filter_map(|cell| cell.bytes.hi)
            .max()
            .unwrap();
        assert_eq!(
            said(Collective::Allreduce),
            Some(format!("2:0-{}", end - 1))
        );
        assert_eq!(said(Collective::Barrier).as_deref(), Some("1"));
        assert_eq!(said(Collective::Bcast), None);
        let none = draw(&model, library(), Choice::Best(Some(8)), |_| false);
        assert!(none.is_empty());
    }

    #[test]
    fn what_was_measured_on_a_few_ranks_is_told_to_no_job_on_more_than_four_times_as_many() {
        let mut model = initial();
        for entry in &mut model.cells {
            entry.source = Source::Predicted;
            let cell = entry.cell;
            if cell.collective == Collective::Barrier && cell.nodes.lo == 1 && cell.ppn.contains(8)
            {
                entry.source = Source::Measured;
                entry.best = "native:dissemination".to_owned();
                entry.measured_ranks = Some(8);
            }
        }
        let told = |n_ranks| draw(&model, library(), Choice::Best(n_ranks), |_| true).len();
        assert_eq!([None, Some(8), Some(32)].map(told), [1; 3]);
        assert_eq!([33, 10_000].map(|n_ranks| told(Some(n_ranks))), [0; 2]);
    }

    #[test]
    fn a_job_that_may_have_any_number_of_ranks_is_told_only_what_is_bearable_on_many() {
        for (best, n_told) in [
            ("native:bruck", 1),
            ("native:ring", 0),
            // The cost of these is unknown.
            ("native:knomial", 0),
            ("native:topology_aware_gatherv+bcast", 0),
        ] {
            let mut model = initial();
            for entry in &mut model.cells {
                entry.source = Source::Predicted;
                let cell = entry.cell;
                if cell.collective == Collective::Allgather
                    && cell.nodes.lo == 1
                    && cell.ppn.contains(8)
                    && cell.bytes.contains(8)
                {
                    entry.source = Source::Measured;
                    entry.best = best.to_owned();
                    entry.measured_ranks = Some(8);
                }
            }
            let told = |n_ranks| draw(&model, library(), Choice::Best(n_ranks), |_| true).len();
            assert_eq!(told(Some(8)), 1, "{best}");
            assert_eq!(told(None), n_told, "{best}");
        }
    }

    /// What is ever drawn of a collective for short messages.
    fn drawn(model: &Model, n_ranks: Option<u64>, collective: Collective) -> BTreeSet<String> {
        let draw_one = |seed| {
            draw(model, library(), Choice::Drawn(seed, n_ranks), |one| {
                one == collective
            })
        };
        let short = |all: Vec<Preset>| all.into_iter().find(|one| one.bytes.contains(8));
        let names = (0..300).map(|seed| short(draw_one(seed)).map(|one| one.variant));
        names
            .map(|name| name.unwrap_or(DEFAULT.to_owned()))
            .collect()
    }

    #[test]
    fn nothing_is_drawn_on_thousands_of_ranks_that_may_take_many_times_as_long_there() {
        let mut measured = initial();
        for entry in &mut measured.cells {
            let cell = entry.cell;
            let is_few = cell.nodes.lo == 1 && cell.ppn.contains(8);
            if is_few {
                entry.source = Source::Measured;
                entry.measured_ranks = Some(8);
            }
        }
        for model in [&initial(), &measured] {
            for collective in [
                Collective::Allgather,
                Collective::Bcast,
                Collective::Barrier,
            ] {
                let few = drawn(model, Some(8), collective);
                assert!(few.len() > 3, "{collective} {few:?}");
                for n_ranks in [Some(4096), Some(1 << 20), None] {
                    let many = drawn(model, n_ranks, collective);
                    assert!(many.contains(DEFAULT), "{collective} {n_ranks:?} {many:?}");
                    let linear = |name: &&String| name.contains("linear") || name.ends_with("ring");
                    assert_eq!(many.iter().find(linear), None, "{collective} {n_ranks:?}");
                }
            }
            // Something is tried all the same.
            let many = drawn(model, Some(4096), Collective::Allgather);
            assert!(many.len() > 1, "{many:?}");
        }
    }
}
