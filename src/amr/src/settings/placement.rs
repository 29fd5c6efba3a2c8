//! Options of placement: process grid, policy, costs, and when blocks are placed anew.

use colltune_placement::{Policy, Trigger};

use super::Work;
use crate::cost::CostModel;
use crate::options::{Options, Refusal, WeighName};
use crate::placement::library::needs_links;
use crate::placement::rcb::{Axes, Rcb, Ties};

/// Who places blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum PlacementName {
    Rcb,
    Morton,
    Hilbert,
    Library(Policy),
}

impl PlacementName {
    /// Whether it does something with the speeds of ranks.
    pub fn heeds_speeds(&self) -> bool {
        matches!(self, PlacementName::Library(policy) if policy.heeds_speeds())
    }
}

impl std::fmt::Display for PlacementName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlacementName::Rcb => f.write_str("rcb"),
            PlacementName::Morton => f.write_str("morton"),
            PlacementName::Hilbert => f.write_str("hilbert"),
            PlacementName::Library(policy) => policy.fmt(f),
        }
    }
}

/// The process grid and whether it was derived: as near to a cube as the factors of `n_ranks` allow.
pub(super) fn process_grid(given: [Option<u32>; 3], n_ranks: usize) -> ([usize; 3], bool) {
    if given.iter().any(Option::is_some) {
        return (given.map(|n| n.unwrap_or(1) as usize), false);
    }
    let mut grid = [1; 3];
    for factor in crate::placement::factors(n_ranks) {
        let smallest = (0..3).min_by_key(|&d| grid[d]).expect("three axes");
        grid[smallest] *= factor;
    }
    grid.sort_unstable_by(|a, b| b.cmp(a));
    (grid, true)
}

pub(super) fn placement_name(options: &Options) -> Result<PlacementName, Refusal> {
    let mut named = Vec::new();
    if let Some(name) = &options.placement {
        named.push(named_placement(name, options)?);
    }
    let flags = [
        (options.rcb, PlacementName::Rcb),
        (options.morton, PlacementName::Morton),
        (
            options.hilbert || options.trunc_hilbert,
            PlacementName::Hilbert,
        ),
    ];
    named.extend(flags.into_iter().filter(|(set, _)| *set).map(|(_, n)| n));
    named.dedup();
    match (named.pop(), named.is_empty()) {
        (None, _) => Ok(PlacementName::Rcb),
        (Some(PlacementName::Library(_)), true) if options.compat => Err(Refusal::new(
            "--compat goes with miniAMR's placements only: rcb, morton and hilbert",
        )),
        (Some(name), true) => Ok(name),
        _ => Err(Refusal::new("several placements are named; give one")),
    }
}

fn named_placement(name: &str, options: &Options) -> Result<PlacementName, Refusal> {
    match name {
        "rcb" => return Ok(PlacementName::Rcb),
        "morton" => return Ok(PlacementName::Morton),
        "hilbert" => return Ok(PlacementName::Hilbert),
        _ => {}
    }
    let refuse = |what: &dyn std::fmt::Display| Refusal::new(format!("--placement {name}: {what}"));
    let policy: Policy = name.parse().map_err(|error| refuse(&error))?;
    if needs_links(&policy)
        && let Some(lacking) = lacks_links(options)
    {
        return Err(refuse(&format!(
            "this policy weighs messages against work: give {lacking}"
        )));
    }
    Ok(PlacementName::Library(policy))
}

/// What else has to be given where seconds of messages and of work are compared.
fn lacks_links(options: &Options) -> Option<&'static str> {
    match (&options.machine, options.weigh) {
        (None, _) => Some("--machine FILE, what messages cost (calibration.toml)"),
        (_, WeighName::Equal) => Some("--weigh measured, what blocks cost"),
        (Some(_), WeighName::Measured) => None,
    }
}

pub(super) fn trigger(options: &Options) -> Result<Option<Trigger>, Refusal> {
    let Some(name) = &options.balance_when else {
        return Ok(None);
    };
    let refuse = |what: String| Refusal::new(format!("--balance_when {name}: {what}"));
    if options.compat {
        return Err(refuse("--compat balances when miniAMR does".into()));
    }
    match name.parse().map_err(|error| refuse(format!("{error}")))? {
        Trigger::BreakEven => match lacks_links(options) {
            Some(lacking) => Err(refuse(format!(
                "moving is weighed against work: give {lacking}"
            ))),
            None => Ok(Some(Trigger::BreakEven)),
        },
        trigger => Ok(Some(trigger)),
    }
}

pub(super) fn cost(options: &Options, work: Work) -> Result<CostModel, Refusal> {
    let refuse = |what: String| Refusal::new(format!("--cost {}: {what}", options.cost));
    let cost = options.cost.parse().map_err(refuse)?;
    if cost == CostModel::Shock && work != Work::Euler {
        return Err(refuse("there are shocks with --physics euler only".into()));
    }
    if options.compat && options.weigh == WeighName::Measured {
        return Err(Refusal::new(
            "--weigh measured makes calls that --compat must not",
        ));
    }
    Ok(cost)
}

pub(super) fn rcb(
    options: &Options,
    placement: &PlacementName,
    processes: Option<[usize; 3]>,
) -> Rcb {
    let default = u8::from(*placement == PlacementName::Rcb);
    let reorder = options.reorder.unwrap_or(default);
    let axes = match processes {
        Some(_) if options.change_dir => Axes::Longest,
        Some(grid) if reorder == 1 => Axes::ByProcesses(grid),
        Some(grid) => Axes::Natural(grid),
        None => Axes::Longest,
    };
    let ties = if options.group_blocks {
        Ties::Together
    } else {
        Ties::ByOtherAxes
    };
    Rcb { axes, ties }
}
