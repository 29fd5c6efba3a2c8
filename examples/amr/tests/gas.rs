//! The gas in whole runs on ranks in threads.

mod common;

use colltune_amr::checksum::Broken;
use colltune_amr::report::Summary;

use common::try_run as try_line;

fn try_run(n_ranks: usize, line: &str) -> Result<Summary, Broken> {
    try_line(n_ranks, &format!("--physics euler {line}"))
}

const BLAST: &str = "--problem sedov --nx 4 --ny 4 --nz 4 --npx 2 --npy 2 --npz 2 --num_refine 3 \
    --sedov_centre .3 .4 .2 --refine_freq 4 --checksum_freq 1 --num_tsteps 40 --validate";

#[test]
fn a_blast_on_a_moving_mesh_ends_with_the_same_bits_on_any_ranks_and_conserves() {
    let bits = |summary: &Summary| {
        let shock = summary.shock.expect("a shock");
        let sums = summary.checksums.iter().map(|sum| sum.to_bits());
        let mesh = (&summary.mesh_hash, summary.splits, summary.joins);
        let end = (summary.steps, shock.radius.to_bits());
        format!("{:?} {mesh:?} {end:?}", sums.collect::<Vec<_>>())
    };
    let one = try_run(1, BLAST).expect("a run");
    assert!(one.splits > 20 && one.joins > 0, "the mesh moves: {one:?}");
    assert!(one.checksum_drift_max < 1e-12, "{one:?}");
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
    let bits = |line: &str, n_ranks: usize| {
        let summary = try_run(n_ranks, &format!("{BLAST} {line}")).expect("a run");
        let sums: Vec<u64> = summary.checksums.iter().map(|sum| sum.to_bits()).collect();
        (sums, summary.mesh_hash, summary.splits, summary.joins)
    };
    let even = bits("", 1);
    for (line, n_ranks) in [
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
        assert_eq!(even, bits(line, n_ranks), "{line}");
    }
}
