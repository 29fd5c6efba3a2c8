//! What `emulate run` tells, as a table, as JSON and as CSV.

use colltune_emulate::outcome::{Outcome, Priced};
use serde::Serialize;

use crate::emulate::placing::Told;
use colltune_output::{csv, table};

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) schema: u32,
    pub(super) machine: &'a str,
    /// What the machine's numbers are: measured, or assumed and why.
    pub(super) source: &'a str,
    /// Where the costs come from.
    pub(super) costs: &'a str,
    /// By whose rules collectives run that nothing was chosen for.
    pub(super) defaults: &'static str,
    /// As `--mesh` names it.
    pub(super) mesh: &'a str,
    /// Of the noise; none without it.
    pub(super) seed: Option<u64>,
    pub(super) ranks: usize,
    /// `axes` or `events`.
    pub(super) network: &'static str,
    /// What placing takes: by `leaves` of the mesh under every policy, or by `this machine's clock`.
    pub(super) placing: &'static str,
    /// Who is told how fast ranks are, with `--tell-speeds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) speeds: Option<Told>,
    pub(super) runs: Vec<Run>,
}

/// The run in the middle of its replicas, by its total.
#[derive(Serialize)]
pub(super) struct Run {
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    pub(super) replicas: Replicas,
}

/// Totals of all replicas.
#[derive(Serialize)]
pub(super) struct Replicas {
    pub(super) n: u64,
    /// Of the one that is told: with it, that run's times can be had again alone.
    pub(super) seed: Option<u64>,
    /// The least and the greatest total.
    pub(super) min_s: f64,
    pub(super) max_s: f64,
}

/// One number of one run.
#[derive(Serialize)]
struct Value<'a> {
    policy: &'a str,
    collective: &'a str,
    ranks: usize,
    what: String,
    value: f64,
    /// What the numbers of the machine are.
    source: &'a str,
}

impl Report<'_> {
    /// A number a line: what it is ends with its unit, `_s` for seconds.
    pub(super) fn in_csv(&self) -> anyhow::Result<String> {
        let source = self.source;
        let values = self.runs.iter().flat_map(|run| {
            let Run { outcome, replicas } = run;
            let phases = outcome.phases_s.iter();
            let phases = phases.map(|(name, seconds)| (format!("{name}_s"), *seconds));
            let sums = [
                ("total_s", outcome.total_s),
                ("min_s", replicas.min_s),
                ("max_s", replicas.max_s),
                ("makespan_over_mean", outcome.makespan_over_mean),
                ("lbr_percent", outcome.lbr),
                ("wait_share", outcome.sync_share),
                ("priced_measured_share", outcome.priced.measured),
                ("priced_regression_share", outcome.priced.regression),
                ("priced_simulated_share", outcome.priced.simulated),
                ("messages_same_rank", outcome.messages.same_rank as f64),
                ("messages_same_node", outcome.messages.same_node as f64),
                ("messages_remote", outcome.messages.remote as f64),
                ("moved_blocks", outcome.moved_blocks as f64),
            ];
            let sums = sums
                .into_iter()
                .map(|(what, value)| (what.to_owned(), value));
            sums.chain(phases).map(move |(what, value)| Value {
                policy: &outcome.policy,
                collective: &outcome.collective,
                ranks: outcome.ranks,
                what,
                value,
                source,
            })
        });
        csv(&values.collect::<Vec<_>>())
    }

    pub(super) fn in_columns(&self) -> String {
        let mut text = format!(
            "{} on {} ranks of {} ({}); costs: {}; default: {}\n",
            self.mesh, self.ranks, self.machine, self.source, self.costs, self.defaults
        );
        text.extend(self.speeds.iter().map(Told::line));
        let Some(first) = self.runs.first() else {
            return text;
        };
        let replicas = first.replicas.n > 1;
        if replicas {
            text += &format!(
                "{} replicas with other noise: the one in the middle\n",
                first.replicas.n
            );
        }
        let names = first.outcome.phases_s.iter().map(|(name, _)| name.as_str());
        let header: Vec<&str> = ["policy", "total s"]
            .into_iter()
            .chain(replicas.then_some(["min s", "max s"]).into_iter().flatten())
            .chain(["max/mean", "lbr %", "wait %"])
            .chain(names)
            .chain(["remote", "moved", "meas/regr/sim %"])
            .collect();
        let rows = self.runs.iter().map(|run| {
            let outcome = &run.outcome;
            let seconds = |seconds: f64| format!("{seconds:.4}");
            let mut row = vec![outcome.policy.clone(), seconds(outcome.total_s)];
            if replicas {
                row.extend([run.replicas.min_s, run.replicas.max_s].map(seconds));
            }
            row.push(format!("{:.3}", outcome.makespan_over_mean));
            row.push(format!("{:.1}", outcome.lbr));
            row.push(format!("{:.1}", 100.0 * outcome.sync_share));
            row.extend(outcome.phases_s.iter().map(|(_, value)| seconds(*value)));
            row.push(outcome.messages.remote.to_string());
            row.push(outcome.moved_blocks.to_string());
            row.push(prices(&outcome.priced));
            row
        });
        text += &table(&header, &rows.collect::<Vec<_>>());
        text
    }
}

/// Percent of the time of collectives whose prices were measured, predicted by a training, and simulated.
fn prices(priced: &Priced) -> String {
    let shares = [priced.measured, priced.regression, priced.simulated];
    shares
        .map(|share| format!("{:.0}", 100.0 * share))
        .join("/")
}

#[cfg(test)]
mod tests {
    use colltune_emulate::axes::{Axes, Network};
    use colltune_emulate::cost::PhaseCosts;
    use colltune_emulate::machine::preset;
    use colltune_emulate::outcome::Tally;

    use super::*;

    const SOURCE: &str = "assumed: as usual, more or less";

    /// Of two ranks that have not begun.
    fn report() -> Report<'static> {
        let machine = preset("hera").unwrap();
        let axes = Axes::new(&machine, 2, &PhaseCosts::default(), Network::Axes);
        let priced = Priced {
            measured: 0.25,
            regression: 0.0,
            simulated: 0.75,
        };
        let names = ("lpt".to_owned(), "default".to_owned());
        let outcome = Outcome::new(names, 1, &axes, &Tally::default(), priced);
        Report {
            schema: 1,
            machine: "made up",
            source: SOURCE,
            costs: "made up",
            defaults: "Open MPI up to 4.0",
            mesh: "four-spheres",
            seed: None,
            ranks: 2,
            network: "axes",
            placing: "leaves",
            speeds: None,
            runs: vec![Run {
                outcome,
                replicas: Replicas {
                    n: 1,
                    seed: None,
                    min_s: 0.0,
                    max_s: 0.0,
                },
            }],
        }
    }

    #[test]
    fn balance_sources_of_prices_and_what_the_machine_is_stand_in_the_csv() {
        let csv = report().in_csv().unwrap();
        let header = csv.lines().next();
        assert_eq!(header, Some("policy,collective,ranks,what,value,source"));
        for (what, expected) in [
            ("lbr_percent", 100.0),
            ("priced_measured_share", 0.25),
            ("priced_regression_share", 0.0),
            ("priced_simulated_share", 0.75),
        ] {
            let begin = format!("lpt,default,2,{what},");
            let rest = csv.lines().find_map(|line| line.strip_prefix(&*begin));
            let (value, source) = rest.expect(what).split_once(',').expect("two columns");
            let value: f64 = value.parse().expect("a number");
            assert_eq!(value, expected, "{what}");
            assert_eq!(source, format!("\"{SOURCE}\""));
        }
    }

    #[test]
    fn balance_sources_of_prices_and_what_the_machine_is_stand_in_the_table() {
        let table = report().in_columns();
        let words = |line: &str| -> Vec<String> {
            let words = line.split("  ").map(str::trim);
            let words = words.filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains(&format!("({SOURCE})")), "{table}");
        let (header, row) = (words(lines[1]), words(lines[2]));
        assert_eq!(header.len(), row.len(), "{table}");
        let of = |name: &str| header.iter().position(|word| word == name);
        assert_eq!(row[of("lbr %").expect("a column")], "100.0");
        assert_eq!(row[of("meas/regr/sim %").expect("a column")], "25/0/75");
    }
}
