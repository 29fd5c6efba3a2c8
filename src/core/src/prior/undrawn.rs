//! Which of a collective's variants are drawn in a cell where nothing is known, and why the others are not.
//!
//! Generation 0 is made of this, and `status --why` tells it: a variant is drawn where there is no reason against it.

use super::Prior;
use super::reason::Undrawn;
use crate::catalogue::{Facts, Variant};
use crate::library::Library;
use crate::settings::{LearnerKind, Reproducible, Settings};
use crate::space::{Block, Cell};
use crate::variant::Family;

/// What is drawn of one collective's variants where nothing is known.
pub struct FirstDraws<'a> {
    variants: &'a [Variant],
    names: Vec<String>,
    settings: &'a Settings,
    families: Vec<Family>,
    prior: Prior<'a>,
}

impl<'a> FirstDraws<'a> {
    pub fn new(
        variants: &'a [Variant],
        settings: &'a Settings,
        library: Library,
    ) -> FirstDraws<'a> {
        FirstDraws {
            variants,
            names: variants.iter().map(|one| one.name.to_string()).collect(),
            settings,
            families: settings.families_on(library),
            prior: Prior::new(variants, settings, library),
        }
    }

    /// The variants' names, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// By variant why it is not drawn in a cell of this block; `None`: it is.
    pub fn undrawn(&mut self, cell: &Cell, block: &Block) -> Vec<Option<Undrawn>> {
        let expected = match self.settings.learner {
            LearnerKind::Colltune => self.prior.undrawn(cell),
            // It draws whatever can run, however slow that is expected to be.
            LearnerKind::OmpiCollTune => vec![None; self.variants.len()],
        };
        let places = expected.into_iter().enumerate();
        let reasons =
            places.map(|(place, expected)| self.ruled_out(place, cell, block).or(expected));
        reasons.collect()
    }

    /// Why the site or the cell's calls rule a variant out, whatever it costs.
    fn ruled_out(&self, place: usize, cell: &Cell, block: &Block) -> Option<Undrawn> {
        let (variant, name) = (&self.variants[place], &self.names[place]);
        let family = variant.name.family;
        if variant.is_barred() {
            return Some(Undrawn::Barred);
        }
        if family != Family::Default && !self.families.contains(&family) {
            return Some(Undrawn::Family(family));
        }
        if self.settings.exclude.contains(name) || block.exclude.contains(name) {
            return Some(Undrawn::Excluded);
        }
        let (n_ranks, nodes) = (most_ranks(cell), most_nodes(cell));
        let largest = Facts {
            fixed_order: self.settings.reproducible == Reproducible::Fixed,
            ..Facts::usual(cell.collective, cell.bytes.last(), n_ranks, nodes)
        };
        let unmet = variant.never_met(&largest);
        unmet.map(Undrawn::Needs)
    }
}

/// The most ranks that a communicator of this cell can have.
fn most_ranks(cell: &Cell) -> u32 {
    least_u32(cell.nodes.last().saturating_mul(cell.ppn.last()))
}

/// The most nodes that it can have. Where they hold several ranks there are fewer of them than ranks.
fn most_nodes(cell: &Cell) -> u32 {
    let nodes = least_u32(cell.nodes.last());
    match cell.ppn.last() {
        1 => nodes,
        _ => nodes.min(u32::MAX / 2),
    }
}

fn least_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::collective::Collective;
    use crate::model::Model;
    use crate::prior::place::Place;

    /// By name and first size what rules a variant of bcast out, in cells of these nodes and ranks per node.
    fn reasons(settings: &Settings, nodes: u64, ppn: u64) -> Vec<(String, u64, Undrawn)> {
        let library = "openmpi-4.1.4".parse().unwrap();
        let variants = catalogue::variants(library, Collective::Bcast);
        let mut first = FirstDraws::new(&variants, settings, library);
        let is_here = |cell: &Cell| {
            cell.collective == Collective::Bcast
                && cell.nodes.contains(nodes)
                && cell.ppn.contains(ppn)
        };
        let mut found = Vec::new();
        for (cell, block) in settings.space.cells().filter(|(cell, _)| is_here(cell)) {
            let undrawn = first.undrawn(&cell, block);
            let named = first.names().iter().cloned().zip(undrawn);
            found.extend(named.filter_map(|(name, why)| Some((name, cell.bytes.lo, why?))));
        }
        found
    }

    fn told(found: &[(String, u64, Undrawn)], name: &str, bytes: u64) -> String {
        let mut found = found.iter();
        let at = found.find(|(other, lo, _)| other == name && *lo == bytes);
        at.map_or("drawn".to_owned(), |(.., why)| why.to_string())
    }

    #[test]
    fn each_rule_is_told_in_its_words() {
        let text = "exclude = [\"native:binomial\"]\nfamilies = [\"native\", \"node\"]\n\
                    [[space]]\ncollective = \"bcast\"\nexclude = [\"native:chain\"]\n";
        let settings = Settings::from_toml(text).unwrap();
        let one = reasons(&settings, 1, 4);
        let many = reasons(&settings, 40, 4);
        for (found, name, bytes, expected) in [
            (&one, "default", 16, "drawn"),
            (&one, "native:basic_linear", 16, "drawn"),
            (
                &one,
                "native:binomial",
                16,
                "excluded by the site (`exclude` in colltune.toml)",
            ),
            (
                &one,
                "native:chain",
                16,
                "excluded by the site (`exclude` in colltune.toml)",
            ),
            (&one, "p2p:ring_of_no_such_name", 16, "drawn"),
            (
                &one,
                "p2p:binomial",
                16,
                "family p2p is off: `families` in colltune.toml leaves it out, or is not set and `colltune calibrate` has not run, or the learner \"ompicolltune\" draws the library's own alone",
            ),
            (
                &one,
                "native:scatter_allgather",
                1 << 16,
                "barred: the library's algorithm writes into a root's buffer",
            ),
            (
                &one,
                "node:shm+binomial",
                16,
                "needs several nodes, with several ranks on one of them",
            ),
            (
                &one,
                "native:pipeline:segsize=4KiB",
                16,
                "needs a message larger than one segment",
            ),
            (
                &many,
                "node:shm+chain:segsize=4KiB",
                16,
                "tried from 8KiB to below 64KiB",
            ),
        ] {
            assert_eq!(told(found, name, bytes), expected, "{name} {bytes}");
        }
        let rules: std::collections::BTreeSet<_> =
            many.iter().map(|(.., why)| why.rule()).collect();
        assert!(rules.contains("sizes"), "{rules:?}");
    }

    #[test]
    fn what_the_calibration_found_slow_is_told_with_its_ratio() {
        use crate::algorithm::simulate::Machine;
        use crate::prior::simulated::{Simulated, Work};
        let text = "[[space]]\ncollective = \"bcast\"\nbytes = [0, 256, \"inf\"]\n\
             nodes = [1, 8, \"inf\"]\nppn = [1, 2, \"inf\"]\n";
        let mut settings = Settings::from_toml(text).unwrap();
        settings
            .space
            .blocks
            .retain(|block| block.collective == Collective::Bcast);
        let library = "openmpi-4.1.4".parse().unwrap();
        let work = Work::new(&settings.space, library, &Machine::TYPICAL);
        let found = Simulated::new(library, (0..work.n_parts()).map(|part| work.part(part)));
        settings.simulated.insert(library, found);
        let slow = reasons(&settings, 8, 2);
        let by_calibration = |(name, bytes, why): &(String, u64, Undrawn)| match why {
            Undrawn::Calibration(ratio) => Some((name.clone(), *bytes, *ratio)),
            _ => None,
        };
        let (name, bytes, ratio) = slow.iter().find_map(by_calibration).expect("some are slow");
        assert_eq!(
            told(&slow, &name, bytes),
            format!("calibration: {ratio:.1}x the best")
        );
        let mut cells = settings.space.cells().map(|(cell, _)| cell);
        let cell = cells
            .find(|cell| cell.bytes.lo == bytes && cell.nodes.contains(8) && cell.ppn.contains(2));
        let place = Place::of(&cell.expect("the space has it"));
        assert_eq!(
            settings.simulated[&library].of(Collective::Bcast)[&place][&name],
            ratio
        );
    }

    #[test]
    fn a_variant_is_in_generation_0_exactly_where_nothing_is_told_against_it() {
        let settings = Settings::default();
        let library = "mpich-4.0.2".parse().unwrap();
        let model = Model::initial(&settings, library, "test");
        let known = Collective::ALL.map(|collective| catalogue::variants(library, collective));
        let mut first = known
            .each_ref()
            .map(|all| FirstDraws::new(all, &settings, library));
        for (entry, (cell, block)) in model.cells.iter().zip(settings.space.cells()) {
            let first = &mut first[cell.collective.index()];
            let undrawn = first.undrawn(&cell, block);
            for (name, why) in first.names().iter().zip(undrawn) {
                let is_drawn = entry.variants.iter().any(|share| share.name == *name);
                assert_eq!(is_drawn, why.is_none(), "{cell} {name} {why:?}");
            }
        }
    }
}
