//! Time axes of emulated steps in the trace-event format: a host of each node, a thread of each rank.

use anyhow::Context;
use colltune_emulate::machine::Machine;
use colltune_emulate::run::Span;
use colltune_timeline::events::{Events, Slice, Track};
use serde::Serialize;

use super::pictures::file_of;

#[derive(Serialize)]
struct Arguments {
    detail: String,
}

/// The file's name and what it holds.
pub(super) fn of_run(
    policy: &str,
    machine: &Machine,
    n_ranks: usize,
    spans: &[Span],
) -> anyhow::Result<(String, String)> {
    let mut bytes = Vec::new();
    written(&mut bytes, policy, machine, n_ranks, spans).context("draw the time axes")?;
    let text = String::from_utf8(bytes).context("draw the time axes")?;
    Ok((file_of("timeline", policy, "json"), text))
}

fn written(
    out: &mut Vec<u8>,
    policy: &str,
    machine: &Machine,
    n_ranks: usize,
    spans: &[Span],
) -> std::io::Result<()> {
    // From 1: viewers keep 0 for what is idle.
    let process = |rank: u32| machine.node(rank) + 1;
    let track = |rank: u32| Track {
        process: process(rank),
        thread: rank,
    };
    let mut events = Events::new(out)?;
    let mut last = None;
    for rank in 0..n_ranks as u32 {
        let node = machine.node(rank);
        if last != Some(node) {
            events.process(process(rank), &format!("node {node}"))?;
            last = Some(node);
        }
        events.thread(track(rank), &format!("rank {rank}"), rank)?;
    }
    for span in spans {
        let begin_ns = span.begin_ns.round() as u64;
        events.slice(&Slice {
            track: track(span.rank),
            name: span.phase.name(),
            category: "emulated",
            begin_ns,
            duration_ns: span.end_ns.round() as u64 - begin_ns,
            arguments: Arguments {
                detail: format!("step {}", span.step),
            },
        })?;
    }
    let about = [
        ("emulated", format!("{policy} on {n_ranks} ranks")),
        ("machine", machine.name.clone()),
        ("source", machine.source.clone()),
    ];
    events.finish(&about).map(|_| ())
}

#[cfg(test)]
mod tests {
    use colltune_emulate::machine::preset;

    use super::*;

    #[test]
    fn a_time_line_says_what_its_machine_is() {
        let machine = preset("hera").unwrap();
        let (name, text) = of_run("lpt", &machine, 2, &[]).unwrap();
        assert_eq!(name, "emulate-timeline-lpt.json");
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        let said = file["otherData"]["source"].as_str();
        assert_eq!(said, Some(machine.source.as_str()));
        assert!(machine.source.starts_with("assumed: "));
    }
}
