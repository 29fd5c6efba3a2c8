//! Other networks beside the one that a study assumes.

use colltune_core::algorithm::simulate::Link;

use crate::machine::Machine;

pub type Vary = fn(&mut Link);

/// Start-up times and times of bytes, halved and doubled.
pub const VARIATIONS: [(&str, Vary); 4] = [
    ("t_s halved", |link| link.latency_ns *= 0.5),
    ("t_s doubled", |link| link.latency_ns *= 2.0),
    ("t_c halved", |link| link.per_byte_ns *= 0.5),
    ("t_c doubled", |link| link.per_byte_ns *= 2.0),
];

/// What they are, in their order, as a row says it.
pub fn names() -> String {
    VARIATIONS.map(|(name, _)| name).join(", ")
}

/// The machine with each of the [`VARIATIONS`], in nodes and between.
pub fn varied(machine: &Machine) -> Vec<Machine> {
    let one = |(_, vary): &(&str, Vary)| {
        let mut machine = machine.clone();
        for link in [&mut machine.network.inside, &mut machine.network.between] {
            vary(link);
        }
        machine
    };
    VARIATIONS.iter().map(one).collect()
}
