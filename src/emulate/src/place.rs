//! Policies by their names: the library's and the mini-app's own.

use colltune_amr::placement::Question;
use colltune_amr::placement::library::Told;
use colltune_amr::placement::topology::Topology;
use colltune_amr::run::chosen;
use colltune_amr::settings::{PlacementName, Settings};
use colltune_placement::{Link, PlacementError, Policy};

use crate::EmulateError;
use crate::machine::Machine;

/// Who places blocks.
#[derive(Clone, Debug)]
pub enum Placer {
    /// The mini-app's: rcb, morton, hilbert.
    App(PlacementName),
    Library(Policy),
}

impl Placer {
    /// Reads a policy's name.
    ///
    /// Errors: the library's, which lists its policies.
    pub fn from_name(name: &str) -> Result<Placer, EmulateError> {
        Ok(match name {
            "rcb" => Placer::App(PlacementName::Rcb),
            "morton" => Placer::App(PlacementName::Morton),
            "hilbert" => Placer::App(PlacementName::Hilbert),
            _ => Placer::Library(name.parse::<Policy>()?),
        })
    }

    /// The policy of a run's options.
    pub fn of(settings: &Settings) -> Placer {
        match &settings.placement {
            PlacementName::Library(policy) => Placer::Library(policy.clone()),
            own => Placer::App(own.clone()),
        }
    }

    /// As the mini-app's option.
    pub fn option(&self) -> PlacementName {
        match self {
            Placer::App(name) => name.clone(),
            Placer::Library(policy) => PlacementName::Library(policy.clone()),
        }
    }

    /// Whether it does something with the speeds of ranks.
    pub fn heeds_speeds(&self) -> bool {
        self.option().heeds_speeds()
    }

    /// A rank for each leaf, by the function that the mini-app asks. Every policy gets the machine's nodes, as there.
    /// Speeds, one for each rank, go to policies that use them.
    ///
    /// Errors: the policy's.
    pub fn owners(
        &self,
        settings: &Settings,
        question: Question,
        machine: &Machine,
        speeds: Option<&[f64]>,
    ) -> Result<Vec<u32>, PlacementError> {
        let topology = topology(machine, question.n_ranks);
        let told = Told {
            topology: Some(&topology),
            speeds,
        };
        chosen(settings, &self.option(), question, told)
    }
}

/// The machine's nodes and links, as the mini-app knows them by `--ranks_per_node` and `--machine`.
fn topology(machine: &Machine, n_ranks: usize) -> Topology {
    let links = colltune_placement::Machine {
        same_node: link(&machine.network.inside),
        remote: link(&machine.network.between),
    };
    Topology {
        ranks: (0..n_ranks as u32).collect(),
        ranks_per_node: machine.shape.ppn,
        links: Some(links),
    }
}

/// Seconds, as costs are.
fn link(link: &colltune_core::algorithm::simulate::Link) -> Link {
    Link {
        latency: 1e-9 * (link.latency_ns + 2.0 * link.overhead_ns),
        per_byte: 1e-9 * link.per_byte_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placer_heeds_speeds_where_its_policy_does() {
        let mut n_heeding = 0;
        for row in colltune_placement::policy::TABLE {
            for argument in row.syntax.examples() {
                let policy: Policy = format!("{}{argument}", row.name).parse().unwrap();
                let is_told = policy.heeds_speeds();
                n_heeding += usize::from(is_told);
                assert_eq!(Placer::Library(policy).heeds_speeds(), is_told);
            }
        }
        assert!(n_heeding > 0);
    }

    #[test]
    fn unknown_policies_are_named_with_what_there_is() {
        for (name, words) in [
            ("lpd", ["lpd", "contiguous"]),
            ("published:lpd", ["published", "cdp"]),
            ("published:cplx:101", ["published", "cplx:0..100"]),
        ] {
            let error = Placer::from_name(name).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        for name in [
            "rcb",
            "lpt",
            "cplx:50",
            "published:cdp",
            "published:cplx:50",
        ] {
            Placer::from_name(name).unwrap();
        }
    }
}
