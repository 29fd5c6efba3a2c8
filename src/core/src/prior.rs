//! What is drawn before anything is known: not what another variant does as well, nor what is
//! hopeless, as is expected on this machine once it is calibrated ([`simulated`], by [`cost`]) or, where nothing was
//! measured, by its shape alone.
//!
//! A cell has few samples before its first training, and each variant more takes some from the
//! others. The rules look at the cell's bounds only, so that all its calls share the answer; what
//! they leave out can still be forced.

mod rivals;

pub mod alike;
pub mod cost;

pub mod place;
pub mod ratios;
pub mod reason;
pub mod simulated;

pub mod undrawn;

use std::collections::{BTreeMap, HashMap};

use crate::algorithm::registry::FixedOrder;
use crate::bound::{self, Extent};
use crate::catalogue::{Crossing, OnNodes, Own, Variant};
use crate::library::Library;
use crate::node::between::{self, Between};
use crate::settings::{Reproducible, Settings};
use crate::shape::Load;
use crate::space::Cell;
use place::Place;
use reason::Undrawn;
use rivals::{differs, least_ranks, most_ranks};

/// What a variant may cost by its shape beside another, at the least: the simulator, which a smaller factor is meant
/// for, knows the machine.
const SHAPES_FACTOR: f64 = 10.0;

/// The prior over one collective's variants.
pub struct Prior<'a> {
    variants: &'a [Variant],
    /// For each variant the sizes at which it is worth a try at all.
    sizes: Vec<(u64, u64)>,
    /// What costs more than so many times as much as another variant is hopeless.
    factor: f64,
    simulated: HashMap<Place, &'a BTreeMap<String, f64>>,
    hopeless: HashMap<(Extent, u32, u64, u64), Vec<bool>>,
    /// Whether operands have a fixed order: then few variants are left, and each is worth a try.
    fixed_order: bool,
}

impl<'a> Prior<'a> {
    /// The prior over `variants`, which are one collective's.
    pub fn new(variants: &'a [Variant], settings: &'a Settings, library: Library) -> Prior<'a> {
        let simulated = variants.first().and_then(|variant| {
            let of_library = settings.simulated.get(&library)?;
            Some(of_library.of(variant.collective))
        });
        Prior {
            variants,
            sizes: variants.iter().map(sizes).collect(),
            factor: settings.hopeless_factor_on(library),
            simulated: simulated.unwrap_or_default(),
            hopeless: HashMap::new(),
            fixed_order: settings.reproducible == Reproducible::Fixed
                && variants.iter().any(|one| one.collective.is_reduction()),
        }
    }

    /// By variant what is expected of it that keeps it from being drawn in a cell where it is possible; `None`: it is
    /// worth drawing.
    pub(crate) fn undrawn(&mut self, cell: &Cell) -> Vec<Option<Undrawn>> {
        if self.fixed_order {
            return vec![None; self.variants.len()];
        }
        let by_shape = self.hopeless(cell).to_vec();
        // The simulator has seen few ranks, and nothing of what runs over shared memory.
        let slower = self.simulated.get(&Place::of(cell));
        let ratio = |variant: &Variant| {
            let ratio = slower?.get(&variant.name.to_string()).copied()?;
            (ratio > self.factor).then_some(ratio)
        };
        let reason = |place: usize| {
            let (variant, (least, most)) = (&self.variants[place], self.sizes[place]);
            if let Some(ratio) = ratio(variant) {
                return Some(Undrawn::Calibration(ratio));
            }
            if by_shape[place] {
                return Some(Undrawn::Shape(self.factor_of_shapes()));
            }
            if cell.bytes.lo >= most || least > cell.bytes.last() {
                return Some(Undrawn::Sizes(least, most));
            }
            let is_another = match variant.own.as_ref().and_then(Own::crossing) {
                // A tree of two nodes is the same, whatever its radix.
                Some(Crossing::Schedule(own)) => own.values.radix == 2 || cell.nodes.last() > 2,
                _ => {
                    let schedule = variant.own.as_ref().and_then(Own::schedule);
                    schedule.is_none_or(|own| differs(own, cell))
                }
            };
            (!is_another).then_some(Undrawn::Alike)
        };
        (0..self.variants.len()).map(reason).collect()
    }

    fn factor_of_shapes(&self) -> f64 {
        self.factor.max(SHAPES_FACTOR)
    }

    /// By the least ranks and nodes of the cell: what is hopeless there is so with more.
    fn hopeless(&mut self, cell: &Cell) -> &[bool] {
        let least = |number: u64| u32::try_from(number.max(1)).unwrap_or(u32::MAX);
        let extent = Extent {
            n_ranks: least(least_ranks(cell)),
            nodes: least(cell.nodes.lo),
        };
        let most = most_ranks(cell);
        let key = (extent, most, cell.bytes.lo, cell.bytes.last());
        if !self.hopeless.contains_key(&key) {
            let sizes = bound::ends(cell.bytes);
            let loads: Vec<Option<[Load; 2]>> = self
                .variants
                .iter()
                .map(|variant| bound::loads(variant, extent, sizes))
                .collect();
            let factor = self.factor_of_shapes();
            let ranks = [extent.n_ranks, most];
            let found = bound::beyond_others(self.variants, &loads, factor, ranks, sizes[0]);
            self.hopeless.insert(key, found);
        }
        &self.hopeless[&key]
    }
}

/// Whether there is a cell in which a variant is worth drawing where nothing is known.
pub fn is_ever_drawn(variant: &Variant) -> bool {
    let (least, most) = sizes(variant);
    least < most
}

/// The sizes at which a variant is worth a try: from so many bytes up to fewer than so many. Between nodes the
/// library's own choice is, wherever anything is.
fn sizes(variant: &Variant) -> (u64, u64) {
    let (tried, crossing) = match variant.own {
        Some(Own::Node(OnNodes::Lanes(crossing))) => (between::lanes(variant.collective), crossing),
        Some(Own::Node(OnNodes::Leaders(crossing))) => {
            (between::leaders(variant.collective), crossing)
        }
        Some(Own::Node(OnNodes::Reading)) => return (between::READING_LEAST, u64::MAX),
        Some(Own::Schedule(own)) if own.row().fixed_order == FixedOrder::Purpose => return (0, 0),
        _ => return (0, u64::MAX),
    };
    let is_meant = |row: &&Between| match crossing {
        Crossing::Schedule(own) => row.variant == own.row().variant(own.values).to_string(),
        Crossing::Library => true,
    };
    let meant = tried.iter().filter(is_meant).map(|row| row.sizes);
    meant
        .reduce(|(least, most), (lo, hi)| (least.min(lo), most.max(hi)))
        .unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::simulate::Machine;
    use crate::catalogue;
    use crate::collective::Collective;
    use crate::space::Range;
    use crate::variant::Family;

    fn drawn(collective: Collective, bytes: (u64, u64), nodes: (u64, u64)) -> Vec<String> {
        let range = |(lo, hi)| Range { lo, hi: Some(hi) };
        let cell = Cell {
            collective,
            bytes: range(bytes),
            nodes: range(nodes),
            ppn: range((1, 2)),
        };
        drawn_in(&Settings::default(), &cell)
    }

    fn drawn_in(settings: &Settings, cell: &Cell) -> Vec<String> {
        let library = "openmpi-4.1.4".parse().unwrap();
        let variants = catalogue::variants(library, cell.collective);
        let undrawn = Prior::new(&variants, settings, library).undrawn(cell);
        let named = variants.iter().zip(undrawn);
        let named = named.filter(|(_, undrawn)| undrawn.is_none());
        named.map(|(variant, _)| variant.name.to_string()).collect()
    }

    fn has(drawn: &[String], name: &str) -> bool {
        drawn.iter().any(|other| other == name)
    }

    #[test]
    fn a_ring_of_many_ranks_is_hopeless_for_a_short_message_alone() {
        let short = drawn(Collective::Allreduce, (64, 256), (513, 1025));
        assert!(!has(&short, "p2p:ring") && has(&short, "p2p:recursive_doubling"));
        let long = drawn(Collective::Allreduce, (1 << 22, 1 << 24), (513, 1025));
        assert!(has(&long, "p2p:ring"));
        let few = drawn(Collective::Allreduce, (64, 256), (5, 9));
        assert!(has(&few, "p2p:ring"));
        // That one needs an element for each rank.
        let short = drawn(Collective::Allreduce, (4096, 8192), (513, 1025));
        assert!(has(&short, "default") && !has(&short, "native:ring"));
        assert!(has(&long, "native:ring") && has(&few, "native:ring"));
    }

    #[test]
    fn what_the_simulator_found_decides_by_the_sites_factor() {
        let text = "[[space]]\ncollective = \"allreduce\"\nbytes = [0, 256, \"inf\"]\n\
             nodes = [1, 8, \"inf\"]\nppn = [1, 2, \"inf\"]\n";
        let mut settings = Settings::from_toml(text).unwrap();
        let blocks = &mut settings.space.blocks;
        blocks.retain(|block| block.collective == Collective::Allreduce);
        let (library, machine) = ("openmpi-4.1.4".parse().unwrap(), Machine::TYPICAL);
        let work = simulated::Work::new(&settings.space, library, &machine);
        let parts = (0..work.n_parts()).map(|part| work.part(part));
        let found = simulated::Simulated::new(library, parts);
        let mut cells = settings.space.cells().map(|(cell, _)| cell);
        let cell = cells
            .find(|cell| cell.bytes.lo == 0 && cell.nodes.lo == 8 && cell.ppn.lo == 2)
            .expect("the space has it");
        assert_eq!(
            settings.families_on(library),
            [Family::Native, Family::Node],
            "schedules are drawn where the simulator has sorted them out"
        );
        let ring = found.of(Collective::Allreduce)[&Place::of(&cell)]["p2p:ring"];
        settings.simulated.insert(library, found);
        let usual = settings.families_on(library);
        assert_eq!(usual, [Family::Native, Family::P2p, Family::Node]);
        settings.hopeless_factor = Some(ring - 0.1);
        let drawn = drawn_in(&settings, &cell);
        assert!(!has(&drawn, "p2p:ring") && has(&drawn, "p2p:recursive_doubling"));
        assert!(!has(&drawn, "native:ring"), "it sends the same messages");
        assert!(has(&drawn, "native:recursive_doubling"));
        settings.hopeless_factor = Some(ring + 0.1);
        let drawn = drawn_in(&settings, &cell);
        assert!(has(&drawn, "p2p:ring") && has(&drawn, "native:ring"));
    }

    #[test]
    fn every_schedule_between_nodes_that_is_worth_a_try_exists_and_is_tried() {
        for collective in Collective::ALL {
            let who = [
                ("shm", between::leaders(collective)),
                ("lanes", between::lanes(collective)),
            ];
            for (who, tried) in who {
                for row in tried {
                    let name = row.variant.replace("p2p:", &format!("node:{who}+"));
                    let bytes = if collective == Collective::Barrier {
                        0
                    } else {
                        row.sizes.0
                    };
                    assert!(
                        has(&drawn(collective, (bytes, bytes + 1), (4, 5)), &name),
                        "{collective} {name}"
                    );
                }
            }
        }
    }

    #[test]
    fn between_nodes_the_library_is_tried_with_its_own_choice_alone() {
        let by_library = |bytes| {
            let mut drawn = drawn(Collective::Allreduce, bytes, (4, 8));
            drawn.retain(|name| {
                name.starts_with("node:") && (name.contains("+default") || name.contains("+native"))
            });
            drawn
        };
        assert_eq!(by_library((64, 256)), ["node:shm+default"]);
        assert_eq!(
            by_library((1 << 18, 1 << 20)),
            ["node:shm+default", "node:lanes+default"]
        );
    }

    #[test]
    fn parameters_that_change_nothing_are_not_drawn() {
        let few = drawn(Collective::Bcast, (1 << 16, 1 << 18), (2, 4));
        assert!(has(&few, "p2p:knomial:radix=4") && !has(&few, "p2p:knomial:radix=8"));
        let tree = "node:shm+knomial:radix=8";
        let two = drawn(Collective::Bcast, (64, 256), (2, 3));
        assert!(has(&two, "node:shm+binomial") && !has(&two, tree));
        assert!(has(&drawn(Collective::Bcast, (64, 256), (3, 4)), tree));
        let more = drawn(Collective::Bcast, (1 << 16, 1 << 18), (5, 9));
        assert!(has(&more, "p2p:knomial:radix=8") && has(&more, "p2p:chain:segsize=4KiB"));
        let long = drawn(Collective::Bcast, (1 << 22, 1 << 24), (5, 9));
        assert!(!has(&long, "p2p:chain:segsize=4KiB") && has(&long, "p2p:chain:segsize=64KiB"));
    }

    #[test]
    fn something_of_our_own_is_drawn_in_every_cell_of_several_ranks() {
        for (cell, _) in crate::space::Space::default().cells() {
            let library = "mpich-4.0.2".parse().unwrap();
            let variants = catalogue::variants(library, cell.collective);
            let has_own = variants.iter().any(|variant| variant.own.is_some());
            if !has_own || cell.nodes.lo * cell.ppn.lo < 2 || cell.nodes.lo > 33 || cell.ppn.lo > 33
            {
                continue;
            }
            let settings = Settings::default();
            let undrawn = Prior::new(&variants, &settings, library).undrawn(&cell);
            let own = variants
                .iter()
                .zip(undrawn)
                .filter(|(variant, undrawn)| variant.own.is_some() && undrawn.is_none());
            assert!(own.count() > 0, "{cell}");
        }
    }
}
