//! Options of `run` and `whatif` on how blocks are placed, and what their reports say of it.

use colltune_emulate::clock::Timer;
use colltune_emulate::place::Placer;
use colltune_emulate::run::SlowNode;
use serde::Serialize;

use std::time::Instant;

#[derive(clap::Args, Debug)]
pub struct Placing {
    /// Placing takes what each policy takes on this machine, times the other machine's scale, instead of the same
    /// for all: results differ from run to run
    #[arg(long)]
    pub time_placement: bool,
    /// Let a node compute so many times as long, as in 3:4
    #[arg(long, value_name = "NODE:FACTOR", value_parser = slow)]
    slow: Option<(u32, f64)>,
    /// Tell policies that heed the speeds of ranks which node is slow; when blocks are placed anew does not change, nor
    /// do other policies, which are named
    #[arg(long, requires = "slow")]
    tell_speeds: bool,
}

impl Placing {
    pub fn timer(&self) -> Option<Timer<'static>> {
        let timer: Timer = &seconds_of;
        self.time_placement.then_some(timer)
    }

    /// What placing takes in the results.
    pub fn priced_by(&self) -> &'static str {
        match self.time_placement {
            true => "this machine's clock",
            false => "leaves",
        }
    }

    pub fn slow(&self) -> Option<SlowNode> {
        self.slow.map(|(node, factor)| SlowNode {
            node,
            factor,
            is_told: self.tell_speeds,
        })
    }

    /// Which policies know the speeds of ranks, where there are any.
    pub fn told(&self, names: &[String], placers: &[Placer]) -> Option<Told> {
        let of = |heeds: bool| {
            let all = names.iter().zip(placers);
            let some = all.filter(|(_, placer)| placer.heeds_speeds() == heeds);
            some.map(|(name, _)| name.clone()).collect()
        };
        self.tell_speeds.then(|| Told {
            told: of(true),
            unheeding: of(false),
        })
    }
}

/// Policies by what they do with the speeds of ranks.
#[derive(Debug, PartialEq, Serialize)]
pub struct Told {
    told: Vec<String>,
    /// Those that use no speeds, and place as without them.
    unheeding: Vec<String>,
}

impl Told {
    /// A line for the table.
    pub fn line(&self) -> String {
        let or_none = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        format!(
            "told how fast ranks are: {}; heeding no speeds: {}\n",
            or_none(&self.told),
            or_none(&self.unheeding)
        )
    }
}

fn slow(text: &str) -> Result<(u32, f64), String> {
    let pair = text.split_once(':').and_then(|(node, factor)| {
        let factor = factor
            .parse()
            .ok()
            .filter(|f: &f64| f.is_finite() && *f > 0.0)?;
        Some((node.parse().ok()?, factor))
    });
    pair.ok_or_else(|| "a node and a positive factor are needed, as in 3:4".to_owned())
}

/// Seconds that something takes.
pub fn seconds_of(run: &mut dyn FnMut()) -> f64 {
    let begun = Instant::now();
    run();
    begun.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_that_heed_no_speeds_are_named_beside_those_that_are_told() {
        let names = ["lpt", "rcb", "cplx:50", "cplx:auto", "published:lpt"].map(str::to_owned);
        let placers = names.clone().map(|name| Placer::from_name(&name).unwrap());
        let mut placing = Placing {
            time_placement: false,
            slow: Some((1, 4.0)),
            tell_speeds: false,
        };
        assert_eq!(placing.told(&names, &placers), None);
        placing.tell_speeds = true;
        let told = placing.told(&names, &placers).expect("told");
        assert_eq!(
            told.line(),
            "told how fast ranks are: lpt, cplx:50; heeding no speeds: rcb, cplx:auto, published:lpt\n"
        );
    }
}
