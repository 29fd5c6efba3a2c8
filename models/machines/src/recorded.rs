//! Two machines that were measured: what each variant takes there is no simulator's word.
//!
//! The times and the calibrations are those by which the order of what is expected is tested
//! (`src/core/tests/measured_order.rs`); the first lines of `measured.csv` say how they were taken.

use std::collections::HashMap;
use std::sync::OnceLock;

use colltune_core::algorithm::simulate::Machine;
use colltune_core::calibration::Calibration;
use colltune_core::collective::Collective;

const MEASURED: &str = include_str!("../../../src/core/tests/data/measured.csv");
const CALIBRATIONS: [&str; 2] = [
    include_str!("../../../src/core/tests/data/node.toml"),
    include_str!("../../../src/core/tests/data/cluster.toml"),
];
/// Message sizes in bytes, of all five collectives.
pub const SIZES: [u64; 5] = [8, 64, 512, 4 << 10, 64 << 10];

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recorded {
    Node,
    Cluster,
}

impl Recorded {
    pub const ALL: [Recorded; 2] = [Recorded::Node, Recorded::Cluster];

    pub fn name(self) -> &'static str {
        match self {
            Recorded::Node => "node",
            Recorded::Cluster => "cluster",
        }
    }

    /// As its calibration has it.
    pub fn machine(self) -> Machine {
        let calibration = Calibration::from_toml(CALIBRATIONS[self as usize]);
        calibration.expect("it was recorded").machine()
    }

    /// What a variant takes, in ns; `None` where it was not measured.
    pub fn cost_ns(self, collective: Collective, bytes: u64, variant: &str) -> Option<f64> {
        let of = times().get(&(self, collective, bytes))?;
        of.get(variant).copied()
    }
}

/// By machine, collective and bytes, and then by the variant's name, ns.
type Times = HashMap<(Recorded, Collective, u64), HashMap<&'static str, f64>>;

fn times() -> &'static Times {
    static TIMES: OnceLock<Times> = OnceLock::new();
    TIMES.get_or_init(|| {
        let mut times = Times::new();
        let lines = MEASURED.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let fields: Vec<&'static str> = line.split(',').collect();
            let &[machine, collective, bytes, variant, ns] = fields.as_slice() else {
                panic!("{line}");
            };
            let named = |one: &Recorded| one.name() == machine;
            let machine = Recorded::ALL.into_iter().find(named).expect(line);
            let collective = Collective::from_name(collective).expect(line);
            let cell = (machine, collective, bytes.parse().expect(line));
            let of = times.entry(cell).or_default();
            of.insert(variant, ns.parse().expect(line));
        }
        times
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;
    use crate::site::Site;

    /// What is measured and no longer drawn under its name would be gone without a word.
    #[test]
    fn every_cell_has_a_default_and_many_of_the_variants_that_were_measured() {
        for machine in Recorded::ALL {
            let site = Site::new(Recipe::recorded(machine, 0.05), 1);
            assert_eq!(site.cells.len(), 25);
            for cell in &site.cells {
                let (collective, bytes) = (cell.shape.collective, cell.shape.message_bytes);
                let default = machine.cost_ns(collective, bytes, "default");
                assert_eq!(Some(cell.default_ns()), default, "{machine:?} {collective}");
                let arms = cell.n_arms();
                assert!(arms >= 14, "{machine:?} {collective} {bytes}: {arms}");
            }
        }
    }
}
