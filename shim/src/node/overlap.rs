//! What a leader does for its node while it runs a schedule with the other leaders, as [`colltune_core::node::overlap`]
//! says.

use std::ffi::c_int;

use colltune_core::algorithm::program::Span;
use colltune_core::catalogue::Scheduled;
use colltune_core::node::between::turns;
use colltune_core::node::blocks::Blocks;
use colltune_core::node::overlap::{final_at, wanted};
use colltune_core::node::phase::Phase;
use colltune_core::node::stage::{Inside, overlapping};

use super::phases::{Phases, across_nodes};
use super::pieces::RunningPhase;
use super::team::Team;
use crate::p2p::Overlap;
use crate::p2p::places::ScheduledCall;

/// The phases of a node before and after those between the nodes; `None` where there is none.
pub struct NodePhases<'a, 'b, 'c> {
    pub combining: Option<RunningPhase<'a, 'b, 'c>>,
    pub giving: Option<RunningPhase<'a, 'b, 'c>>,
}

impl NodePhases<'_, '_, '_> {
    /// Runs the first to its end.
    pub fn combine_all(&mut self) {
        if let Some(combining) = &mut self.combining {
            while combining.step() {}
        }
    }

    /// Runs what is left of both, in order.
    pub fn finish(&mut self) -> Result<(), c_int> {
        let combined = self.combining.as_mut().map_or(Ok(()), RunningPhase::finish);
        let given = self.giving.as_mut().map_or(Ok(()), RunningPhase::finish);
        combined.and(given)
    }
}

impl Phases<'_, '_> {
    /// A leader's node combines what the schedule wants next, and gets what has come, piece by piece,
    /// while messages are under way. The steps of each rank in its node's memory are those of one phase
    /// after the other.
    ///
    /// # Safety
    /// As [`Phases::run`].
    pub(super) unsafe fn overlapped(&mut self, between: Scheduled) -> Result<(), c_int> {
        let call = self.call(self.own);
        let bases = self.bases();
        let input_is_output = call.in_place;
        let Phases {
            schedules,
            team,
            segment,
            view,
            elements,
            ..
        } = self;
        let Team { map, reach, .. } = &mut **team;
        let (map, elements, segment) = (&*map, &*elements, segment.as_deref());
        let cut = Blocks::One.cut(view.block, elements.unit_bytes);
        let (combined, comes) = turns(&between, map.node, map.nodes.len(), cut.pieces);
        let parts = overlapping(&call, map);
        let phase = |inside: Option<Inside<'static>>, turn| {
            let (segment, inside) = (segment?, inside?);
            let data = bases.of_phase(elements, &inside);
            let phase = Phase::new(
                &inside,
                (segment.place, segment.n_here),
                elements.unit_bytes,
            );
            let phase = Phase { turn, ..phase };
            // SAFETY: by the promise to `Phases::run` the places are the view's buffers or packed copies of them, and
            // every rank has room for the sum. A leader's output
            // is given on as it becomes final.
            Some(unsafe { RunningPhase::new(elements, segment, phase, data, None) })
        };
        let mut node = NodePhases {
            combining: phase(parts.combining, combined),
            giving: phase(parts.giving, comes),
        };
        let mut result = Ok(());
        if let Some(across) = parts.across {
            if input_is_output {
                // Messages would overwrite operands that are not combined yet.
                node.combine_all();
            }
            let part = bases.part(elements, (map, view), &across);
            let ranks = (reach, across.among, view.root);
            let here = (elements.world, segment);
            result = across_nodes(here, schedules, ranks, (between, &part), &mut node);
        }
        result.and(node.finish())
    }
}

impl Overlap for NodePhases<'_, '_, '_> {
    fn wanted(&mut self, call: &ScheduledCall, chunks: &Span) -> Result<(), c_int> {
        let Some(combining) = &mut self.combining else {
            return Ok(());
        };
        combining.step_to(wanted(combining.phase(), &call.lengths, chunks));
        combining.goes_on()
    }

    fn ended(&mut self, call: &ScheduledCall, at: usize) {
        let combined = self.combining.as_ref().is_none_or(RunningPhase::is_over);
        let Some(giving) = self.giving.as_mut().filter(|_| combined) else {
            return;
        };
        while let Some(units) = giving.next_units() {
            let is_final = final_at(call.program, &call.lengths, units) <= at as u32;
            if !is_final || !giving.has_room() {
                return;
            }
            giving.step();
        }
    }
}
