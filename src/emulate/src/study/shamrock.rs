//! Distribution of patches in Shamrock (Beckingsale et al., LNCS 7587, 2013, figs 3 and 5 to 8).
//!
//! The paper has no mesh, no number of steps and no network. What stands for them was chosen before anything was run:
//!
//! - a square of 0.4 and a disc of diameter 0.2 in the middle of the domain, refined four times along both edges. The
//!   base grid has 1024 x 1024 cells in patches of 8 x 8. The asymmetric deck is one quadrant of it in as many cells.
//! - ghosts two cells deep and, both ways, one value of each coarse cell that a finer patch lies on, ten variables,
//!   bundled by partner. One allreduce of 8 bytes a step; nodes and links as the preset `hera`.
//! - patches that refinement makes are distributed, the base grid stays: by round robin in fig. 3 (as its text says),
//!   by chance weighted with load in figs 5, 6 and 8 (section 4), round robin from a level on in fig. 7.
//!
//! Two numbers are set: the time of a cell by the 268.98 s of computing, and the number of steps by the 19.96 s of
//! communication without distribution. Everything else is predicted.

mod patches;

mod times;

mod judge;

mod figures;

mod results;

use super::Size;
use super::finding::Study;
use super::variation::varied;
use crate::EmulateError;
use crate::machine::{Machine, preset};

use patches::{Deck, LEVELS, Patches};
use results::{CORES, Results};
use times::{Fitted, Times, times, typical};

/// Seconds of the symmetric deck on four cores without distribution: computing and communication.
const COMPUTE_S: f64 = 268.98;
const COMM_S: f64 = 19.96;

/// Runs the study; quickly, on half as many base cells along each side, with one seed.
///
/// Errors: a policy's.
pub fn run(size: Size) -> Result<Study, EmulateError> {
    let (root_level, seeds) = match size {
        Size::Full => (7, 5),
        Size::Quick => (6, 1),
    };
    let decks = [Deck::Symmetric, Deck::Asymmetric].map(|deck| Patches::new(deck, root_level));
    let machine = preset("hera")?;
    let results = measured(&decks, &machine, seeds)?;
    let others = varied(&machine);
    let others = others
        .iter()
        .map(|machine| measured(&decks, machine, seeds));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let cells = decks.each_ref().map(Patches::n_cells);
    Ok(Study {
        name: "shamrock",
        source: "Beckingsale et al., LNCS 7587, 2013: distribution of patches",
        columns: CORES.iter().map(u32::to_string).collect(),
        findings: judge::findings(&results, &others),
        figures: figures::figures(&results),
        assumptions: vec![
            format!("machine hera, {}", machine.source),
            format!(
                "{0} x {0} base cells, {LEVELS} levels above, {1} cells in all (symmetric) and {2} (asymmetric); \
                 geometry, layers and variables are this project's",
                patches::EDGE << root_level,
                cells[0],
                cells[1]
            ),
            format!(
                "set: {:.1} ns a cell and {:.0} steps, by 268.98 s and 19.96 s on four cores of one node",
                results.fitted.cell_ns, results.fitted.steps
            ),
            "the processor of figs 6 to 8 is as fast as that of fig. 3".to_owned(),
            format!("weighted random: medians of {seeds} seeds"),
            "communication is all that is not computing, waiting for others included".to_owned(),
            "with t_s or t_c halved or doubled, in nodes and between, both numbers are set anew"
                .to_owned(),
            "maintaining a distribution costs nothing here; the paper says that theirs does"
                .to_owned(),
        ],
    })
}

fn measured(decks: &[Patches; 2], machine: &Machine, seeds: u32) -> Result<Results, EmulateError> {
    let [symmetric, asymmetric] = decks;
    let fitted = fit(symmetric, machine)?;
    let one = |deck: &Patches, strategy: &str, ranks: u32| {
        typical(deck, strategy, seeds, ranks, machine, fitted)
    };
    let all = |deck: &Patches, strategy: &str| -> Result<Vec<Times>, EmulateError> {
        CORES.iter().map(|&n| one(deck, strategy, n)).collect()
    };
    let thresholds = |level: u32| all(asymmetric, &format!("level-threshold:{level}"));
    Ok(Results {
        fitted,
        fig_3: [
            one(symmetric, "none", 4)?,
            one(symmetric, "level-threshold:1", 4)?,
        ],
        fig_5: [
            one(asymmetric, "none", 4)?,
            one(asymmetric, "weighted-random", 4)?,
        ],
        fig_6: [all(symmetric, "none")?, all(symmetric, "weighted-random")?],
        fig_7: [
            all(asymmetric, "none")?,
            thresholds(4)?,
            thresholds(3)?,
            thresholds(2)?,
            thresholds(1)?,
        ],
        fig_8: all(symmetric, "model")?,
    })
}

/// The cell's time and the number of steps with which the symmetric deck on four cores, without distribution, computes
/// and communicates as long as the paper's.
fn fit(symmetric: &Patches, machine: &Machine) -> Result<Fitted, EmulateError> {
    let mut fitted = Fitted {
        cell_ns: 1.0,
        steps: 1.0,
    };
    // Where ranks are not quite alike, waiting depends on the cell's time.
    for _ in 0..20 {
        let run = times(symmetric, "none", 4, machine, fitted)?;
        fitted.steps *= COMM_S / run.mean_comm();
        let cells = symmetric.n_cells() as f64 / 4.0;
        fitted.cell_ns = 1e9 * COMPUTE_S / (fitted.steps * cells);
    }
    Ok(fitted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::variation::VARIATIONS;

    #[test]
    fn the_two_numbers_that_are_set_are_met_on_any_of_the_machines() {
        let symmetric = Patches::new(Deck::Symmetric, 4);
        let all = std::iter::once(None).chain(VARIATIONS.iter().map(Some));
        for variation in all {
            let mut machine = preset("hera").unwrap();
            if let Some((_, vary)) = variation {
                vary(&mut machine.network.inside);
            }
            let fitted = fit(&symmetric, &machine).unwrap();
            let run = times(&symmetric, "none", 4, &machine, fitted).unwrap();
            assert!((run.mean_compute() - COMPUTE_S).abs() < 1e-6);
            assert!((run.mean_comm() - COMM_S).abs() < 1e-6);
        }
    }

    #[test]
    fn distribution_costs_the_symmetric_deck_messages_and_spares_the_other_waiting() {
        let machine = preset("hera").unwrap();
        let decks = [Deck::Symmetric, Deck::Asymmetric].map(|deck| Patches::new(deck, 4));
        let fitted = fit(&decks[0], &machine).unwrap();
        let run = |deck: usize, name: &str| times(&decks[deck], name, 4, &machine, fitted).unwrap();
        assert!(run(0, "level-threshold:1").mean_comm() > run(0, "none").mean_comm());
        assert!(run(1, "weighted-random:1").worst_comm() < run(1, "none").worst_comm());
    }
}
