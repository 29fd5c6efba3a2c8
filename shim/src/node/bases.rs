//! Where the places that a call's stages name lie in this rank's memory.

use colltune_core::node::map::NodeMap;
use colltune_core::node::stage::{Across, At, Buffer, Inside};

use super::elements::Elements;
use super::pieces::PhaseData;
use super::team;
use crate::arguments::View;
use crate::p2p::places::Places;

/// Where a rank's buffers begin.
#[derive(Clone, Copy)]
pub struct Bases {
    places: Places,
    spare: *mut u8,
}

impl Bases {
    /// The places of the call's data, and room of ours.
    #[inline]
    pub fn new(places: Places, spare: *mut u8) -> Bases {
        Bases { places, spare }
    }

    /// The address of a place.
    #[inline]
    pub fn at(&self, elements: &Elements, at: At) -> *mut u8 {
        let base = match at.buffer {
            Buffer::Input => self.places.input,
            Buffer::Output => self.places.output,
            Buffer::Spare => self.spare,
        };
        elements.at(base, at.unit)
    }

    /// Where a phase's data begin.
    #[inline]
    pub fn of_phase(&self, elements: &Elements, inside: &Inside) -> PhaseData {
        PhaseData {
            source: self.at(elements, inside.source),
            target: self.at(elements, inside.target),
        }
    }

    /// The collective among ranks of which one is on each node.
    pub fn part(
        &self,
        elements: &Elements,
        (map, view): (&NodeMap, &View),
        across: &Across,
    ) -> View {
        let given = across.given.map(|at| self.at(elements, at));
        let result = self.at(elements, across.result);
        team::part(map, view, across.units, (given, result))
    }
}
