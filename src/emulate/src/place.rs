//! Policies by their names: the library's, the mini-app's own, and the published ones as their code behaves.

use colltune_amr::placement::Question;
use colltune_amr::placement::library::owners_on;
use colltune_amr::settings::{PlacementName, Settings};
use colltune_placement::policy::{Argument, Need};
use colltune_placement::published::Published;
use colltune_placement::{Link, PlacementError, Policy};

use crate::EmulateError;
use crate::machine::Machine;

/// Who places blocks.
#[derive(Clone, Debug)]
pub enum Placer {
    /// The mini-app's: rcb, morton, hilbert.
    App(PlacementName),
    Library(Policy),
    Published(Published),
}

impl Placer {
    /// Reads a policy's name.
    ///
    /// Errors: the library's, which lists its policies; `Policy` for a published one that does not exist.
    pub fn from_name(name: &str) -> Result<Placer, EmulateError> {
        match name {
            "rcb" => return Ok(Placer::App(PlacementName::Rcb)),
            "morton" => return Ok(Placer::App(PlacementName::Morton)),
            "hilbert" => return Ok(Placer::App(PlacementName::Hilbert)),
            _ => {}
        }
        match name.strip_prefix("published:") {
            Some(rest) => published(rest).map(Placer::Published).ok_or_else(|| {
                EmulateError::Policy {
                    policy: name.to_owned(),
                    reason: "there are published:baseline, published:cdp, published:cdpc:N, published:lpt and \
                             published:cplx:0..100"
                        .to_owned(),
                }
            }),
            None => Ok(Placer::Library(name.parse::<Policy>()?)),
        }
    }

    /// As the mini-app's option, where it has one.
    pub fn option(&self) -> Option<PlacementName> {
        match self {
            Placer::App(name) => Some(name.clone()),
            Placer::Library(policy) => Some(PlacementName::Library(policy.clone())),
            Placer::Published(_) => None,
        }
    }

    /// A rank for each leaf.
    ///
    /// Errors: the policy's.
    pub fn owners(
        &self,
        settings: &Settings,
        question: Question,
        machine: &Machine,
    ) -> Result<Vec<u32>, PlacementError> {
        match self {
            Placer::App(_) => Ok(settings.policy().place(question)),
            Placer::Library(policy) => {
                let links = colltune_placement::Machine {
                    same_node: link(&machine.network.inside),
                    remote: link(&machine.network.between),
                };
                // The mini-app knows neither nodes nor times, and its owners are to be found here too, matched to the
                // present ones as it matches them: only who asks for the machine is told of it.
                let asks = policy.row().needs.contains(&Need::Machine)
                    || *policy.argument() == Argument::Auto
                    || ["hierarchical", "grouplb"].contains(&policy.row().name);
                let machine = asks.then_some((machine.shape.ppn, links));
                owners_on(policy, question, settings.shape, machine)
            }
            // Their code orders blocks along the curve of the mesh: so does this app's.
            Placer::Published(policy) => policy
                .place(question.costs, question.n_ranks as u32)
                .ok_or(PlacementError::Value {
                    what: "the number of ranks",
                    value: question.n_ranks as f64,
                    reason: "is one that the published code refuses",
                }),
        }
    }
}

/// Seconds, as costs are.
fn link(link: &colltune_core::algorithm::simulate::Link) -> Link {
    Link {
        latency: 1e-9 * (link.latency_ns + 2.0 * link.overhead_ns),
        per_byte: 1e-9 * link.per_byte_ns,
    }
}

fn published(name: &str) -> Option<Published> {
    let number = |text: &str| text.parse::<u32>().ok();
    match name.split_once(':').unwrap_or((name, "")) {
        ("baseline", "") => Some(Published::Baseline),
        ("cdp", "") => Some(Published::Cdp),
        ("lpt", "") => Some(Published::Lpt),
        ("cdpc", ranks) => number(ranks).filter(|&n| n > 0).map(Published::Chunked),
        ("cplx", percent) => {
            let percent = number(percent).filter(|&x| x <= 100)?;
            Some(Published::Cplx(percent as u8))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_policies_are_named_with_what_there_is() {
        for (name, words) in [
            ("lpd", ["lpd", "contiguous"]),
            ("published:lpd", ["published:lpd", "published:cplx"]),
            (
                "published:cplx:101",
                ["published:cplx:101", "published:cdp"],
            ),
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
