//! `colltune-bench study`: published figures beside what comes of emulating them.

use std::path::PathBuf;

use anyhow::Context;
use colltune_emulate::study::{ALL, Size, Study, find};
use colltune_lab::emulate::{draw, seconds_of};

use colltune_output::{print, table, write};

/// Runs the study, writes it as JSON with its pictures, and prints the table.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let row = find(&args.name).expect("the parser knows the names");
    let study = (row.run)(size, Some(&seconds_of))
        .with_context(|| format!("run the study {}", row.name))?;
    let json = serde_json::to_string_pretty(&study)? + "\n";
    if let Some(folder) = &args.out {
        for figure in &study.figures {
            let name = format!("emulate-study-{}-{}.svg", study.name, figure.name);
            write(folder, &name, &draw::svg(figure)?)?;
        }
        write(folder, &format!("emulate-study-{}.json", study.name), &json)?;
    }
    print(&if args.json { json } else { in_columns(&study) })
}

#[derive(clap::Args, Debug)]
#[command(after_help = "\
A row is `reproduced` inside its tolerance, `shape only` where the order holds and the values do
not. Numbers that were set instead of predicted, and all assumptions, stand below the table.")]
pub struct Args {
    /// The study
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(ALL.iter().map(|row| row.name)))]
    name: String,
    /// A small one, to see that it runs
    #[arg(long)]
    quick: bool,
    /// Write the study as JSON, and its pictures as SVG, into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON instead of the table
    #[arg(long)]
    json: bool,
}

fn in_columns(study: &Study) -> String {
    let number = |value: &f64| format!("{value:.2}");
    let rows = study.findings.iter().map(|finding| {
        let paper = finding
            .paper
            .iter()
            .map(|value| value.as_ref().map_or_else(|| "-".to_owned(), number));
        vec![
            finding.id.to_owned(),
            finding.what.clone(),
            paper.collect::<Vec<_>>().join(" "),
            finding
                .ours
                .iter()
                .map(number)
                .collect::<Vec<_>>()
                .join(" "),
            finding.tolerance.clone(),
            finding.verdict.text().to_owned(),
            finding.note.clone(),
        ]
    });
    let header = ["id", "what", "paper", "ours", "tolerance", "verdict", "set"];
    let mut text = format!("{} ({})\n", study.source, study.columns.join(", "));
    text += &table(&header, &rows.collect::<Vec<_>>());
    for assumption in &study.assumptions {
        text += &format!("assumed: {assumption}\n");
    }
    text
}
