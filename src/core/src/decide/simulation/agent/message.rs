//! What an agent knows of a call: what all ranks share, and its own blocks.

use crate::collective::{Collective, MessageSize};
use crate::decide::Blocks;
use crate::decide::call::SharedCall;
use crate::decide::simulation::dice;
use crate::decide::simulation::script::Message;

pub(super) fn shared(collective: Collective, count: i64, type_bytes: Option<u64>) -> SharedCall {
    match collective.size() {
        _ if collective.agrees_on_size() => SharedCall::without_size(collective),
        MessageSize::Nothing => SharedCall::without_size(collective),
        MessageSize::Message | MessageSize::Block => {
            SharedCall::of_elements(collective, count, type_bytes)
        }
    }
}

/// What a rank's blocks in a call are.
pub(super) fn of_rank(message: &Message, seed: u64, rank: u32) -> Blocks {
    let bytes = message.count * message.type_bytes;
    let mean = bytes >> (dice(seed, 17, rank.into()) % 4);
    Blocks {
        mean,
        longest: mean + dice(seed, 18, rank.into()) % (mean + 1),
    }
}
