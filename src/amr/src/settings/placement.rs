//! Options of placement: process grid, policy, costs, and when blocks are placed anew.

use colltune_core::levers::split;
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

/// The arms of `tuned` or `tuned:ARM,...`: `usual` ones where none are named. None for any other value.
///
/// Errors: an arm that is named twice.
fn tuned_arms(option: &str, value: &str, usual: &[&str]) -> Result<Option<Vec<String>>, Refusal> {
    let named = match value.strip_prefix("tuned") {
        Some("") => return Ok(Some(usual.iter().map(|&arm| arm.to_owned()).collect())),
        Some(rest) => rest.strip_prefix(':'),
        None => None,
    };
    let Some(named) = named else { return Ok(None) };
    let arms = split(named, ',');
    let twice = |(nth, arm): &(usize, &String)| arms[..*nth].contains(arm);
    match arms.iter().enumerate().find(twice) {
        Some((_, arm)) => Err(Refusal::new(format!(
            "--{option} {value}: {arm} is named twice"
        ))),
        None => Ok(Some(arms)),
    }
}

/// The policies that a run may place blocks by, and whether a tuner chooses among them; the first is that of a run
/// without one.
pub(super) fn placements(options: &Options) -> Result<(Vec<PlacementName>, bool), Refusal> {
    let mut named = Vec::new();
    let mut is_tuned = false;
    if let Some(value) = &options.placement {
        let arms = tuned_arms("placement", value, usual_placements(options))?;
        is_tuned = arms.is_some();
        for name in arms.as_ref().unwrap_or(&vec![value.clone()]) {
            named.push(named_placement(name, options)?);
        }
    }
    let flags = [
        (options.rcb, PlacementName::Rcb),
        (options.morton, PlacementName::Morton),
        (
            options.hilbert || options.trunc_hilbert,
            PlacementName::Hilbert,
        ),
    ];
    let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, n)| n);
    let flags: Vec<PlacementName> = flags
        .filter(|name| is_tuned || !named.contains(name))
        .collect();
    let n_named = flags.len() + usize::from(!named.is_empty());
    named.extend(flags);
    if n_named > 1 {
        return Err(Refusal::new("several placements are named; give one"));
    }
    if named.is_empty() {
        named.push(PlacementName::Rcb);
    }
    let of_library = |name: &PlacementName| matches!(name, PlacementName::Library(_));
    if options.compat && named.iter().any(of_library) {
        return Err(Refusal::new(
            "--compat goes with miniAMR's placements only: rcb, morton and hilbert",
        ));
    }
    Ok((named, is_tuned))
}

/// What `tuned` chooses among. Policies that weigh messages are there where what these cost is known.
fn usual_placements(options: &Options) -> &'static [&'static str] {
    match (options.compat, lacks_links(options)) {
        (true, _) => &["rcb", "morton", "hilbert"],
        (false, Some(_)) => &[
            "rcb",
            "hilbert",
            "contiguous-optimal",
            "cplx:50",
            "lpt-swap",
        ],
        (false, None) => &[
            "rcb",
            "hilbert",
            "contiguous-optimal",
            "cplx:auto",
            "lpt-swap",
        ],
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

/// The triggers that may place anew, and whether a tuner chooses among them; `None`: at a refinement that asks.
pub(super) fn triggers(options: &Options) -> Result<(Vec<Option<Trigger>>, bool), Refusal> {
    let Some(value) = &options.balance_when else {
        return Ok((vec![None], false));
    };
    if options.compat {
        return Err(Refusal::new(format!(
            "--balance_when {value}: --compat balances when miniAMR does"
        )));
    }
    let usual: &[&str] = match lacks_links(options) {
        Some(_) => &[BY_REFINEMENT, "mesh-change", "imbalance:0.1"],
        None => &[BY_REFINEMENT, "mesh-change", "imbalance:0.1", "break-even"],
    };
    let arms = tuned_arms("balance_when", value, usual)?;
    let is_tuned = arms.is_some();
    let names = arms.unwrap_or_else(|| vec![value.clone()]);
    let triggers = names.iter().map(|name| trigger(name, options));
    Ok((triggers.collect::<Result<_, _>>()?, is_tuned))
}

/// The name that stands for no trigger: `--lb_opt` and `--inbalance` decide.
const BY_REFINEMENT: &str = "refinement";

pub(super) fn trigger_name(trigger: Option<Trigger>) -> String {
    trigger.map_or(BY_REFINEMENT.to_owned(), |trigger| trigger.to_string())
}

fn trigger(name: &str, options: &Options) -> Result<Option<Trigger>, Refusal> {
    let refuse = |what: String| Refusal::new(format!("--balance_when {name}: {what}"));
    if name == BY_REFINEMENT {
        return Ok(None);
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
    placements: &[PlacementName],
    processes: Option<[usize; 3]>,
) -> Rcb {
    let default = u8::from(placements.contains(&PlacementName::Rcb));
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
