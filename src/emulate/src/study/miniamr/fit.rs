//! The two scales that are set.

use super::script::{Scales, Script, Spent};
use crate::EmulateError;
use crate::machine::Machine;

/// Both scales, so that communication over calculation and the share of refinement are the paper's, or as near to them
/// as this network lets them come.
///
/// Errors: a collective's that has no price.
pub fn fit(script: &Script, machine: &Machine, paper: [f64; 3]) -> Result<Scales, EmulateError> {
    let mut scales = Scales::ASSUMED;
    let ratio = |spent: Spent| spent.comm / (spent.compute + spent.sums);
    scales.handling = solve(paper[1] / paper[0], |handling| {
        let scales = Scales { handling, ..scales };
        Ok(ratio(script.replay(machine, scales)?))
    })?;
    scales.refine = solve(paper[2], |refine| {
        Ok(script
            .replay(machine, Scales { refine, ..scales })?
            .shares()[2])
    })?;
    Ok(scales)
}

/// The least and the most that a scale can be.
const BOUNDS: [f64; 2] = [1e-4, 1e4];

/// Where a growing function has this value, by bisection of powers; a bound where it has it nowhere.
fn solve(
    wanted: f64,
    value: impl Fn(f64) -> Result<f64, EmulateError>,
) -> Result<f64, EmulateError> {
    let [mut low, mut high] = BOUNDS;
    // Powers to three in ten thousand.
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        match value(middle)? < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok((low * high).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::preset;
    use crate::study::miniamr::script::line;

    #[test]
    fn both_scales_are_met_where_the_network_lets_them() {
        let line = line("sphere-hits-block", 16, 2, 5, "");
        let script = Script::record(&line, 16).unwrap();
        let machine = preset("gemini").unwrap();
        let paper = [35.4, 62.0, 2.6];
        let scales = fit(&script, &machine, paper).unwrap();
        let shares = script.replay(&machine, scales).unwrap().shares();
        for (ours, paper) in shares.iter().zip(paper) {
            assert!((ours - paper).abs() < 0.05, "{shares:?}");
        }
        // Messages alone are more than that: as little work as there can be.
        let scales = fit(&script, &machine, [35.4, 64.0, 1e-9]).unwrap();
        let shares = script.replay(&machine, scales).unwrap().shares();
        assert!(
            scales.refine < 1.1e-4 && shares[2] > 0.01,
            "{scales:?} {shares:?}"
        );
    }
}
