//! The order of the gas on a mesh of two levels: an exact wave that crosses from one to the other and back.

mod common;

use common::try_run;

/// The mean error of the density on blocks of `n` cells to an edge: 4 x 4 x 4 of them, the middle ones refined.
fn error(n: usize, depth: u8) -> f64 {
    let line = format!(
        "--physics euler --problem wave --boundary periodic --refine_freq 0 --npx 4 --npy 4 --npz 4 \
         --nx {n} --ny {n} --nz {n} --num_refine {depth} --num_tsteps 100000 --time 0.05 --checksum_freq 1"
    );
    let summary = try_run(2, &line).expect("a run");
    assert!(summary.checksum_drift_max < 1e-13, "{summary:?}");
    assert_eq!(summary.splits, 8 * u64::from(depth));
    summary.wave.expect("an error").l1
}

#[test]
fn a_wave_across_levels_converges_with_the_second_order() {
    let errors = [6, 8, 12].map(|n| error(n, 1));
    assert!(
        errors.is_sorted_by(|coarse, fine| fine < coarse),
        "{errors:?}"
    );
    // From 24 to 48 coarse cells.
    let order = (errors[0] / errors[2]).log2();
    assert!(order > 1.8, "{errors:?}: {order}");
    // Finer cells in the middle help.
    let even = error(8, 0);
    assert!(
        errors[1] < even,
        "{} with and {even} without levels",
        errors[1]
    );
}
