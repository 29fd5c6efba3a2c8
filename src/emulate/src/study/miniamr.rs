//! miniAMR beside CTH (Vaughan & Barrett, IEEE Cluster 2015, table I and figs 5 to 9).
//!
//! The paper has neither sizes of objects nor of blocks, and of the machine one number: the stencil's 475.4 Mflop/s.
//! What stands for the rest was chosen before anything was run:
//!
//! - the decks `sphere-hits-block` and `four-spheres` on as many root blocks as ranks, 32 variables, blocks of 8^3
//!   cells, and a check of the sums in every tenth stage of twenty. That makes 64 reductions a step where the paper
//!   has 62. The depth of refinement is the one whose number of blocks is nearest to the paper's (248 a rank on 16
//!   ranks, 669 on 128).
//! - objects move half a finest cell a step, as in miniAMR's runs for a time and about as far as an explicit code
//!   such as CTH may let them. The mesh follows every fifth step, miniAMR's default. Runs begin at fifteen of the
//!   decks' forty steps.
//! - an update is seven operations at the paper's rate, a sum one; nodes and links are the preset `gemini`. There is
//!   one message for each partner and axis, packed, unpacked and copied as part of communication, as miniAMR counts
//!   them. Refinement's messages and calls are as `--compat` makes them, without those of the bisection itself.
//!
//! Two scales are set on the first deck, on 128 ranks: what a byte takes that is packed, unpacked or copied, by
//! communication over calculation (64.0 over 35.4), and what a value takes in refinement, by its share (0.6 %).
//! Everything else is predicted.

mod matrix;

mod tally;

mod script;

mod fit;

mod figures;

mod judge;

mod results;

use super::Size;
use super::finding::Study;
use super::variation::varied;
use crate::EmulateError;
use crate::machine::{Machine, preset};

use results::{DECKS, LAST_RANKS, MODIFIED, OnNetwork, RANKS, Results, SPHERE_BLOCK, Scaled};
use script::{REFINE_FREQ, Script};

/// Runs the study; quickly, with fewer steps, one level less, and up to 128 ranks.
///
/// Errors: the program's.
pub fn run(size: Size) -> Result<Study, EmulateError> {
    let machine = preset("gemini")?;
    let results = measured(size, &machine)?;
    let last = results.own.scaled[0]
        .last()
        .map_or(0, |scaled| scaled.ranks);
    Ok(Study {
        name: "miniamr",
        source: "Vaughan & Barrett, IEEE Cluster 2015: calculation, communication, refinement",
        columns: vec!["as each row says".to_owned()],
        findings: judge::findings(&results),
        figures: figures::figures(&results),
        assumptions: vec![
            format!("machine gemini, {}", machine.source),
            format!(
                "decks of this project, refined {} and {} times by the paper's numbers of blocks; blocks of 8^3 cells",
                results.depths[0], results.depths[1]
            ),
            format!(
                "set: {:.2} times what the machine's handling of bytes and {:.2} times what refinement is assumed to take",
                results.own.scales.handling, results.own.scales.refine
            ),
            format!("weak scaling ends at {last} ranks; the paper's goes to 131072"),
            "calculation holds reductions and waiting in them, as the paper's does".to_owned(),
            "with t_s or t_c halved or doubled, in nodes and between, both scales are set anew"
                .to_owned(),
        ],
    })
}

/// Weak scaling: ranks by deck, as far as minutes and a few gigabytes go, from one refinement to the next; then the steps
/// of the runs on [`RANKS`].
fn sizes(size: Size) -> ([&'static [usize]; 2], u64) {
    match size {
        Size::Full => ([&[16, 128, 1024, 8192, 32_768], &[16, 128, 1024, 8192]], 20),
        Size::Quick => ([&[16, 128], &[16, 128]], 10),
    }
}

fn measured(size: Size, machine: &Machine) -> Result<Results, EmulateError> {
    let less = u32::from(size == Size::Quick);
    let mut depths = [0; 2];
    for (depth, deck) in depths.iter_mut().zip(&DECKS) {
        *depth = script::depth(deck, less)?;
    }
    let (all_ranks, steps) = sizes(size);
    let record = |i: usize, ranks: usize, steps: u64, more: &str| {
        let line = script::line(DECKS[i].name, ranks, depths[i], steps, more);
        Script::record(&line, ranks)
    };
    let of_deck = |i: usize| -> Result<[Script; 2], EmulateError> {
        Ok([
            record(i, RANKS, steps, "")?,
            record(i, RANKS, steps, MODIFIED)?,
        ])
    };
    let scripts = [of_deck(0)?, of_deck(1)?];
    let others = varied(machine);
    let machines: Vec<&Machine> = std::iter::once(machine).chain(&others).collect();
    let on_each = machines.iter().map(|machine| on_network(&scripts, machine));
    let mut on_each = on_each.collect::<Result<Vec<_>, _>>()?;
    for (i, ranks_of_deck) in all_ranks.into_iter().enumerate() {
        for &ranks in ranks_of_deck {
            // Of many ranks a script is large: it is run on all networks, and dropped.
            let script = record(i, ranks, REFINE_FREQ, "")?;
            for (on, machine) in on_each.iter_mut().zip(&machines) {
                on.scaled[i].push(Scaled {
                    ranks,
                    blocks_per_rank: script.blocks_per_rank,
                    spent: script.replay(machine, on.scales)?,
                });
            }
        }
    }
    let last_ranks = match size {
        Size::Full => LAST_RANKS,
        Size::Quick => 1024,
    };
    let others = on_each.split_off(1);
    Ok(Results {
        last_mesh: (
            last_ranks,
            script::blocks_per_rank(DECKS[0].name, last_ranks, depths[0])?,
        ),
        own: on_each.swap_remove(0),
        others,
        scripts,
        depths,
    })
}

/// The runs on [`RANKS`], and the scales, which are set on each network anew.
fn on_network(scripts: &[[Script; 2]; 2], machine: &Machine) -> Result<OnNetwork, EmulateError> {
    let scales = fit::fit(&scripts[0][0], machine, SPHERE_BLOCK)?;
    Ok(OnNetwork {
        scales,
        spent: [
            scripts[0][0].replay(machine, scales)?,
            scripts[1][0].replay(machine, scales)?,
        ],
        modified: scripts[1][1].replay(machine, scales)?,
        scaled: [Vec::new(), Vec::new()],
    })
}
