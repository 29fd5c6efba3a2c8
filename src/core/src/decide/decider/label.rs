//! What a variant is judged by in a call, and what the call is recorded as.

use crate::catalogue::Facts;
use crate::decide::DEFAULT;
use crate::decide::agreed::Membership;
use crate::decide::call::{SharedCall, SharedDetails};
use crate::decide::decision::Chosen;
use crate::decide::rules::Rules;

use super::Decider;

impl Decider {
    /// The facts that needs are checked against.
    pub fn facts(&self, rules: &Rules, call: SharedCall, details: &SharedDetails) -> Facts {
        let Some(Membership {
            layout,
            ranks_by_node,
            even_nodes,
        }) = self.membership
        else {
            unreachable!("a variant is judged only behind the set-up");
        };
        Facts {
            n_ranks: layout.n_ranks,
            nodes: layout.nodes,
            message_bytes: call.bytes,
            count: details.count,
            commutative: details.commutative,
            builtin_op: details.builtin_op,
            in_place: details.in_place,
            ranks_by_node,
            equal_blocks: details.equal_blocks,
            plain_elements: details.plain_elements,
            even_nodes,
            fixed_order: rules.has_fixed_order(call.collective),
        }
    }

    /// What a call is recorded as: a preset of before the run stands for the library's own choice. `None` where it is
    /// unknown what ran, because the preset does not apply to the call.
    #[inline]
    pub fn label(
        &self,
        rules: &Rules,
        call: SharedCall,
        chosen: &Chosen,
        details: impl FnOnce() -> SharedDetails,
    ) -> Option<u16> {
        let told = self.cells.cell(call.collective, chosen.place).told;
        if chosen.variant != DEFAULT || told == DEFAULT {
            return Some(chosen.variant);
        }
        rules.label_of_default(call, told, &self.facts(rules, call, &details()))
    }
}
