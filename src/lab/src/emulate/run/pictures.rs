//! Pictures of emulated runs: phases by policy, who sends how much to whom.

use colltune_emulate::machine::Machine;
use colltune_emulate::program::Phase;
use colltune_emulate::run::Emulated;
use colltune_emulate::study::{Figure, Picture};

use super::report::Report;
use crate::emulate::draw;
use crate::plot::{self, Bar};

/// As many ranks as a picture can show.
const RANKS_MAX: usize = 1024;

/// What pictures tell apart: no more than there are colours.
const GROUPS: [(&str, &[Phase]); 8] = [
    ("compute", &[Phase::Compute, Phase::Sum]),
    ("pack, copy", &[Phase::Pack, Phase::Copy, Phase::Unpack]),
    ("message on its way", &[Phase::Transit]),
    ("sender late", &[Phase::Late]),
    ("collective", &[Phase::Collective]),
    ("others late", &[Phase::Sync]),
    (
        "mesh, rest",
        &[Phase::Refine, Phase::Place, Phase::Migrate, Phase::Other],
    ),
    ("no core", &[Phase::Queue, Phase::Stopped]),
];

/// A policy's part of a file's name.
pub(super) fn file_of(what: &str, policy: &str, ending: &str) -> String {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() || "-_.".contains(letter) {
        true => letter,
        false => '-',
    };
    let policy: String = policy.chars().map(plain).collect();
    format!("emulate-{what}-{policy}.{ending}")
}

/// A title, and below it what the machine's numbers are.
fn titled(title: &str, machine: &str, source: &str) -> String {
    format!("{title}\nmachine {machine} ({source})")
}

/// Bars of all policies.
pub(super) fn phases(report: &Report) -> anyhow::Result<String> {
    let bars = report.runs.iter().map(|run| Bar {
        name: run.outcome.policy.clone(),
        parts: GROUPS
            .iter()
            .map(|(name, phases)| {
                let of = phases.iter().map(|&phase| run.outcome.phase_s(phase));
                (*name, of.sum())
            })
            .collect(),
    });
    let title = format!(
        "{} on {} ranks of {}: where the time goes",
        report.mesh, report.ranks, report.machine
    );
    let title = titled(&title, report.machine, report.source);
    plot::bars(&title, "s, mean over ranks", &bars.collect::<Vec<_>>())
}

/// The matrix of bytes, where it can be shown.
pub(super) fn matrix(
    policy: &str,
    machine: &Machine,
    n_ranks: usize,
    kept: &Emulated,
) -> anyhow::Result<Option<(String, String)>> {
    if n_ranks > RANKS_MAX {
        return Ok(None);
    }
    let mut values = vec![0; n_ranks * n_ranks];
    for (&(from, to), sent) in &kept.pairs {
        values[from as usize * n_ranks + to as usize] = sent.bytes;
    }
    let title = format!("Bytes between ranks, {policy}");
    let figure = Figure {
        name: "matrix".to_owned(),
        title: titled(&title, &machine.name, &machine.source),
        picture: Picture::Matrix {
            n: n_ranks,
            what: "bytes",
            values,
        },
    };
    Ok(Some((
        file_of("matrix", policy, "svg"),
        draw::svg(&figure)?,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_is_in_one_group() {
        for phase in Phase::ALL {
            let of = GROUPS.iter().filter(|(_, phases)| phases.contains(&phase));
            assert_eq!(of.count(), 1, "{phase:?}");
        }
        assert_eq!(
            file_of("matrix", "cplx:50", "svg"),
            "emulate-matrix-cplx-50.svg"
        );
    }
}
