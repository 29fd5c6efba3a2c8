//! Legal calls that few programs make give what they give without the shim, whatever runs them.

use colltune_core::catalogue;
use colltune_core::collective::Collective;
use colltune_tests::{
    Job, Mpi, assert_ranks_agree, folder, job, on_each_library, read_log, runs_long, tool,
};

/// Runs every case of `corners.c`; returns how many calls ran another variant than `default`.
fn all_cases(job: Job, n_ranks: u32) -> usize {
    all_cases_said(job, n_ranks, "")
}

/// The same, where something has to be said on standard error.
fn all_cases_said(job: Job, n_ranks: u32, said: &str) -> usize {
    let log = folder();
    let outcome = job
        .env("COLLTUNE_SETUP_AFTER", "1")
        .env("MPIR_CVAR_COLLECTIVE_FALLBACK", "error")
        .log(log.path())
        .run("corners", &["1"]);
    outcome.succeeds().prints("ok\n");
    outcome.claim(
        outcome.stderr.contains(said),
        &format!("nobody says {said:?}"),
    );
    let log = read_log(log.path(), n_ranks);
    assert_ranks_agree(&log);
    let calls = log[0].iter();
    calls.filter(|call| call.variant != "default").count()
}

on_each_library! {
    fn corners_are_right_without_the_shim(mpi: Mpi) {
        job(3).mpi(mpi).run("corners", &["1"]).succeeds().prints("ok\n");
    }

    /// Whatever ranks agree on meanwhile is under the program's own rounding.
    fn corners_are_right_drawn_from_all_families(mpi: Mpi) {
        let db = folder();
        let drawn = job(3)
            .mpi(mpi)
            .preload()
            .preload_tool(tool(mpi, "upward"))
            .db(db.path())
            .mode("explore")
            .seed(1)
            .env("COLLTUNE_FAMILIES", "native,node,p2p")
            .env("COLLTUNE_EXPLORE_BUDGET", "1")
            .env("COLLTUNE_SAMPLES_PER_CELL", "100000");
        let ran = all_cases_said(drawn, 3, "rounded upwards");
        assert!(ran > 200, "only {ran} calls were steered: too few to show anything");
    }

    /// What a rank's own types, a null buffer or the rest of one once made wrong.
    fn corners_are_right_where_they_once_were_wrong(mpi: Mpi) {
        let alltoall = if mpi.is_openmpi() { "native:modified_bruck" } else { "native:brucks" };
        for allgather in ["p2p:ring", "p2p:bruck:radix=2"] {
            let force = format!(
                "scatter=p2p:linear:window=4;alltoall={alltoall};allgather={allgather};\
                 reduce_scatter_block=p2p:pairwise"
            );
            // MPICH spins, so that its odd rank costs more than it shows.
            let n_ranks = if mpi.is_openmpi() { 4 } else { 2 };
            let ran = all_cases(job(n_ranks).mpi(mpi).preload().force(&force), n_ranks);
            assert!(ran > 0, "{force}: nothing was steered");
        }
    }

    /// Long: the k-th variants of all collectives, for every k.
    fn corners_are_right_with_every_variant(mpi: Mpi) {
        if !runs_long() {
            return;
        }
        let columns = Collective::ALL.map(|collective| catalogue::variants(mpi.library(), collective));
        let longest = columns.iter().map(Vec::len).max().unwrap_or(0);
        for k in 1..longest {
            let kth = columns.iter().filter_map(|column| column.get(k));
            let parts: Vec<_> = kth.map(|variant| format!("{}={}", variant.collective, variant.name)).collect();
            all_cases(job(3).mpi(mpi).preload().force(&parts.join(";")), 3);
        }
    }
}

/// With places of 64 bits, which Open MPI's functions do not take yet. On 3 ranks: on one MPICH itself does not take
/// them in an allgatherv.
#[test]
fn blocks_at_absolute_addresses_are_no_null_buffer() {
    let Some(mpi) = Mpi::Mpich.installed() else {
        return;
    };
    job(3)
        .mpi(mpi)
        .run("absolute", &["4"])
        .succeeds()
        .prints("ok\n");
    let collectives = [
        Collective::Alltoallv,
        Collective::Allgatherv,
        Collective::Gatherv,
        Collective::Scatterv,
    ];
    let of_ours = collectives.map(|collective| {
        let all = catalogue::variants(mpi.library(), collective);
        let names = all.iter().map(|variant| variant.name.to_string());
        let is_ours = |name: &String| name.starts_with("p2p:") || name.starts_with("node:");
        names.filter(is_ours).collect::<Vec<_>>()
    });
    let most = of_ours.iter().map(Vec::len).max().unwrap_or(0);
    let mut ran = [0; 4];
    for k in 0..most {
        let kth = collectives.iter().zip(&of_ours);
        let parts =
            kth.filter_map(|(collective, names)| Some(format!("{collective}={}", names.get(k)?)));
        let (force, log) = (parts.collect::<Vec<_>>().join(";"), folder());
        let forced = job(3).mpi(mpi).preload().force(&force).log(log.path());
        let outcome = forced
            .env("COLLTUNE_SETUP_AFTER", "1")
            .run("absolute", &["6"]);
        outcome.succeeds().prints("ok\n");
        let log = read_log(log.path(), 3);
        assert_ranks_agree(&log);
        for (ran, collective) in ran.iter_mut().zip(collectives) {
            let calls = log[0]
                .iter()
                .filter(|call| call.collective == collective.to_string());
            *ran += calls.filter(|call| call.variant != "default").count();
        }
    }
    assert!(ran.iter().all(|ran| *ran >= 4), "of ours: {ran:?}");
}
