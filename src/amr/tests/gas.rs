//! The gas in whole runs on ranks in threads.

mod common;

use colltune_amr::checksum::Broken;
use colltune_amr::report::Summary;

use common::{bits, try_run as try_line};

fn try_run(n_ranks: usize, line: &str) -> Result<Summary, Broken> {
    try_line(n_ranks, &format!("--physics euler {line}"))
}

const BLAST: &str = "--problem sedov --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 3 \
    --sedov_centre .3 .4 .2 --refine_freq 4 --checksum_freq 1 --num_tsteps 40 --validate";

#[test]
fn a_blast_on_a_moving_mesh_ends_with_the_same_bits_on_any_ranks_and_conserves() {
    let one = try_run(1, BLAST).expect("a run");
    assert!(one.splits > 20 && one.joins > 0, "the mesh moves: {one:?}");
    assert!(
        one.checksum_drift_max < 1e-12 && one.shock.is_some(),
        "{one:?}"
    );
    for (n_ranks, placement) in [
        (2, "--morton"),
        (3, "--rcb"),
        (5, "--hilbert"),
        (8, "--rcb"),
    ] {
        let other = try_run(n_ranks, &format!("{BLAST} {placement}")).expect("a run");
        assert_eq!(bits(&one), bits(&other), "{n_ranks} ranks, {placement}");
    }
}

#[test]
fn a_missing_flux_correction_ends_every_rank_with_an_error() {
    let standing = "--nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 1 --refine_freq 0 \
        --sedov_centre 0 0 0 --checksum_freq 1 --num_tsteps 100000 --time 0.2";
    let whole = try_run(3, standing).expect("a run");
    assert!(whole.checksum_drift_max < 1e-12, "{whole:?}");
    let broken = try_run(3, &format!("{standing} --break_flux"));
    assert!(
        matches!(broken, Err(Broken::NotConserved { .. })),
        "{broken:?}"
    );
    // Nor does it pass where the last check lies before the last step.
    let unchecked = standing.replace("--checksum_freq 1", "--checksum_freq 100000");
    let broken = try_run(3, &format!("{unchecked} --break_flux"));
    let at_end = matches!(broken, Err(Broken::NotConserved { step, .. }) if step == whole.steps);
    assert!(at_end, "{broken:?}");
}

#[test]
fn the_shock_on_an_adaptive_mesh_is_within_two_percent_and_nearer_the_finer_the_cells() {
    let octant = "--sedov_centre 0 0 0 --npx 2 --npy 2 --npz 2 --refine_freq 4 --num_tsteps 100000 --time 0.35";
    let error = |(n, depth): (usize, u8)| {
        let line = format!("{octant} --nx {n} --ny {n} --nz {n} --num_refine {depth}");
        let summary = try_run(2, &line).expect("a run");
        summary.shock.expect("a shock").error.abs()
    };
    // 16, 32, 40 and 64 cells along the octant's edge where they are finest.
    let mut cases = vec![(8, 0), (8, 1), (10, 1)];
    if std::env::var_os("COLLTUNE_LONG").is_some() {
        cases.push((8, 2));
    }
    let errors: Vec<f64> = cases.into_iter().map(error).collect();
    assert!(errors[0] < 0.03, "{errors:?}");
    assert!(errors[1..].iter().all(|&error| error < 0.02), "{errors:?}");
    assert!(
        errors.is_sorted_by(|coarse, fine| fine < coarse),
        "{errors:?}"
    );
}

#[test]
fn uneven_costs_and_library_placements_by_measured_time_change_no_bit() {
    let ending = |line: &str, n_ranks: usize| {
        bits(&try_run(n_ranks, &format!("{BLAST} {line}")).expect("a run"))
    };
    let even = ending("", 1);
    for (line, n_ranks) in [
        ("--exchange blocking", 4),
        ("--exchange overlapped --cost shock", 3),
        ("--cost level --placement contiguous-optimal", 2),
        (
            "--cost random:7 --weigh measured --placement cplx:50 --balance_when every:2",
            3,
        ),
        (
            "--cost shock --weigh measured --placement lpt-swap --balance_when imbalance:0.2",
            5,
        ),
        (
            "--weigh measured --placement hilbert --balance_when mesh-change",
            2,
        ),
    ] {
        assert_eq!(even, ending(line, n_ranks), "{line}");
    }
}

/// Four, two and one root blocks, so that a block may be its own neighbour.
const PERIODIC: &str = "--boundary periodic --nx 4 --ny 4 --nz 4 --npx 4 --npy 2 --npz 1 --num_refine 2 \
    --refine_freq 4 --checksum_freq 1 --num_tsteps 60 --validate";

#[test]
fn a_blast_in_a_periodic_domain_is_the_same_to_the_last_bit_wherever_it_begins_and_conserves() {
    let blast = |n_ranks: usize, more: &str| {
        let summary = try_run(n_ranks, &format!("{PERIODIC} {more}")).expect("a run");
        assert!(summary.checksum_drift_max < 1e-13, "{more}: {summary:?}");
        assert!(
            summary.splits > 20 && summary.joins > 0,
            "{more}: the mesh moves"
        );
        let sums: Vec<u64> = summary.checksums.iter().map(|sum| sum.to_bits()).collect();
        let blocks = summary.blocks_per_step;
        let mesh = (summary.splits, summary.joins, blocks.min, blocks.max);
        (sums, mesh, blocks.avg.to_bits())
    };
    let one = blast(1, "--sedov_centre .625 .75 .5");
    for (n_ranks, more) in [
        (1, "--sedov_centre .375 .25 .5"),
        (2, "--sedov_centre .125 .25 .5"),
        (4, "--sedov_centre .625 .25 .5 --placement hilbert"),
        (4, "--sedov_centre .875 .75 .5 --placement lpt-swap"),
    ] {
        assert_eq!(one, blast(n_ranks, more), "{n_ranks} ranks, {more}");
    }
}

#[test]
fn a_blast_in_a_stretched_domain_is_that_of_the_unit_cube() {
    // Lengths twice as large, times as long: energies are 2^5 times as large, pressures 2^2 times.
    let line = "--nx 8 --ny 8 --nz 8 --npx 2 --npy 2 --npz 2 --num_refine 1 --refine_freq 4 --num_tsteps 30";
    let unit = try_run(2, line).expect("a run");
    let wide = try_run(
        2,
        &format!("{line} --domain -1 -1 -1 1 1 1 --sedov_energy 32"),
    )
    .expect("a run");
    let (unit, wide) = (unit.shock.expect("a shock"), wide.shock.expect("a shock"));
    // The gas at rest has the same pressure in both, which is next to nothing.
    assert!(
        (wide.time / unit.time - 1.0).abs() < 1e-4,
        "{unit:?} {wide:?}"
    );
    assert!(
        (wide.radius / unit.radius - 2.0).abs() < 1e-3,
        "{unit:?} {wide:?}"
    );
    assert!(
        (wide.exact / unit.exact - 2.0).abs() < 1e-3,
        "{unit:?} {wide:?}"
    );
}

#[test]
fn the_published_blast_keeps_its_mass_and_energy() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let line = format!(
        "--deck {folder}/../../examples/amr/decks/blast-512.toml --nx 8 --ny 8 --nz 8 --npx 2 --npy 2 --npz 2"
    );
    let summary = try_run(2, &format!("{line} --checksum_freq 1 --num_tsteps 20")).expect("a run");
    assert!(summary.checksum_drift_max < 1e-13, "{summary:?}");
    // A domain of volume 8 with density 1; energy 0.01 and that of the gas at rest.
    let at_rest = 8.0 * 1e-5 / (5.0 / 3.0 - 1.0);
    for (sum, expected) in [(0, 8.0), (4, 0.01 + at_rest)] {
        let sum = summary.checksums[sum];
        assert!((sum / expected - 1.0).abs() < 1e-12, "{sum} and {expected}");
    }
    assert!(summary.splits > 8, "{summary:?}");
}

/// Two halves part, and hit the walls.
const PARTING: &str = "--problem rarefaction --nx 8 --ny 4 --nz 4 --npx 4 --npy 1 --npz 1 --num_refine 1 \
    --refine_freq 4 --checksum_freq 1 --num_tsteps 100000 --time 0.05 --validate";

#[test]
fn a_gas_near_vacuum_runs_to_its_end_on_any_ranks_with_the_same_bits_and_conserves() {
    // The usual double rarefaction, and one with a vacuum in its exact solution.
    for (speed, is_near_vacuum) in [(2, false), (12, true)] {
        let line = format!("{PARTING} --rarefaction_speed {speed}");
        let ending = |n_ranks: usize, placement: &str| {
            let summary = try_run(n_ranks, &format!("{line} {placement}")).expect("a run");
            assert!(summary.checksum_drift_max < 1e-14, "{speed}: {summary:?}");
            assert_eq!(summary.steps_redone > 0, is_near_vacuum, "{summary:?}");
            assert!(summary.splits > 0, "{summary:?}");
            (bits(&summary), summary.steps_redone)
        };
        let one = ending(1, "");
        for (n_ranks, placement) in [(3, "--hilbert"), (4, "--placement lpt-swap")] {
            assert_eq!(one, ending(n_ranks, placement), "{speed}: {n_ranks} ranks");
        }
    }
}

#[test]
fn by_default_a_shock_stays_on_the_finest_cells_and_without_a_margin_it_leaves_them() {
    let blast = |more: &str| {
        let line = "--nx 4 --ny 4 --nz 4 --npx 4 --npy 4 --npz 4 --num_refine 1 --refine_freq 5 \
            --sedov_centre 0 0 0 --num_tsteps 100 --validate";
        try_run(2, &format!("{line} {more}")).expect("a run")
    };
    let usual = blast("");
    assert!(usual.splits > 16 && usual.joins > 0, "{usual:?}");
    assert_eq!(usual.refined_late, 0, "{usual:?}");
    let without = blast("--refine_buffer 0");
    assert!(without.refined_late > 0, "{without:?}");
    // 0.8 times 5 are 4 cells: one block of 4.
    assert_eq!(usual.mesh_hash, blast("--refine_buffer 1").mesh_hash);
}
