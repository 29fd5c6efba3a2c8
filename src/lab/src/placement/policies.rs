//! `colltune-lab placement policies`: the table of policies.

use anyhow::Context;
use colltune_placement::policy::{Need, Row, TABLE};
use serde_json::json;

use colltune_output::{aligned, print};

/// Prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let text = match args.json {
        true => serde_json::to_string(&as_json()).context("write JSON")? + "\n",
        false => table(),
    };
    print(&text)
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
A name is written as it stands in the list: cplx:50, contiguous-optimal:max=4, sfclb:roots.
Costs and ranks are always known; `needs` says what a policy looks at besides.
graphlb needs a build with the feature metis, ilp one with the feature ilp.")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn as_json() -> serde_json::Value {
    let row = |row: &Row| {
        json!({
            "name": row.name, "syntax": format!("{}{}", row.name, row.syntax.describe()), "help": row.help,
            "needs": row.needs.iter().map(|&need| in_words(need)).collect::<Vec<_>>(), "source": row.source,
        })
    };
    json!({ "schema": 1, "policies": TABLE.iter().map(row).collect::<Vec<_>>() })
}

fn in_words(need: Need) -> &'static str {
    match need {
        Need::Mesh => "coordinates and levels",
        Need::Graph => "the neighbour graph",
        Need::Machine => "message times",
    }
}

fn table() -> String {
    let mut lines = Vec::new();
    for row in TABLE {
        let name = format!("{}{}", row.name, row.syntax.describe());
        let needs: Vec<_> = row.needs.iter().map(|&need| in_words(need)).collect();
        let needs = (!needs.is_empty()).then(|| format!("needs {}", needs.join(", ")));
        let source = (!row.source.is_empty()).then(|| row.source.to_owned());
        let said = std::iter::once(row.help.to_owned())
            .chain(needs)
            .chain(source);
        let first = std::iter::once(name).chain(std::iter::repeat(String::new()));
        lines.extend(first.zip(said).map(|(name, said)| vec![name, said]));
    }
    aligned(&lines, |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_listed_with_what_it_needs() {
        let text = table();
        for row in TABLE {
            assert!(text.contains(row.name) && text.contains(row.help));
            assert!(row.needs.iter().all(|&need| text.contains(in_words(need))));
        }
        assert_eq!(as_json()["policies"].as_array().unwrap().len(), TABLE.len());
    }
}
