//! Messages and bytes of emulated steps are the program's own, to the last one.

mod common;

use std::collections::BTreeMap;
use std::time::Instant;

use colltune_amr::options;
use colltune_amr::ranks::threads;
use colltune_amr::settings::Settings;
use colltune_amr::telemetry::{Counting, Kind, Traffic};
use colltune_emulate::axes::Network;
use colltune_emulate::mesh::settings;
use colltune_emulate::program::{History, needs_cells};
use colltune_emulate::run::{Keep, Scenario, run};
use common::{GAS, SPHERE, a_machine, plain_costs, recorded, scenario, words};

type Counts = BTreeMap<(u64, u32, Kind), (u64, u64)>;

/// Emulates what was recorded, on as many ranks, and compares every step, rank and kind.
fn assert_alike(n_ranks: usize, line: &str) {
    let recorded = recorded(n_ranks, line);
    let settings = settings(&recorded.mesh.words, n_ranks, n_ranks).unwrap();
    // What was recorded ran on one node.
    let (costs, machine) = (plain_costs(&settings), a_machine(n_ranks as u32));
    let scenario = Scenario {
        history: match needs_cells(&settings) {
            true => History::Recorded(&recorded.mesh),
            false => History::Objects,
        },
        network: Network::Axes,
        ..scenario(&settings, n_ranks, &costs, &machine)
    };
    let emulated = run(&scenario, Keep::TRAFFIC).unwrap();
    let n_steps = recorded.mesh.steps.len() as u64;
    // Where cells decide, the mesh behind the last step is unknown.
    let last = if needs_cells(&settings) {
        n_steps - 1
    } else {
        n_steps
    };
    let mut found = Counts::new();
    for (step, by_rank) in (1..).zip(&emulated.traffic) {
        for (rank, traffic) in (0..).zip(by_rank) {
            for kind in Kind::ALL {
                let (messages, bytes) = traffic.of(kind);
                if (messages, bytes) != (0, 0) && step <= last {
                    found.insert((step, rank, kind), (messages, bytes));
                }
            }
        }
    }
    let mut expected = Counts::new();
    for row in recorded.messages.iter().filter(|row| row.step <= last) {
        expected.insert((row.step, row.rank, row.kind), (row.messages, row.bytes));
    }
    assert!(
        expected.len() as u64 >= 2 * n_steps * n_ranks as u64,
        "{line}: hardly anything was counted"
    );
    for (key, counts) in &expected {
        assert_eq!(found.get(key), Some(counts), "{line} on {n_ranks}: {key:?}");
    }
    assert_eq!(found.len(), expected.len(), "{line} on {n_ranks}");
}

#[test]
fn counts_of_stencils_equal_telemetry() {
    for n_ranks in 1..=8 {
        assert_alike(n_ranks, &format!("{SPHERE} --num_tsteps 9"));
    }
    for more in [
        "--placement lpt-swap",
        "--placement cplx:50",
        "--placement round-robin",
        "--placement contiguous",
        "--hilbert --comm_vars 2",
        "--stencil 27",
        "--stencil 27 --permute",
        "--code 1",
        "--send_faces",
        "--lb_opt 2",
        "--limit_move 25",
        "--balance_when every:3",
        "--refine_ghost --block_change 1",
        "--validate",
    ] {
        assert_alike(4, &format!("{SPHERE} --num_tsteps 8 {more}"));
    }
}

/// What each rank gave to collectives of the world and in blocks, from start to end.
fn whole_run(n_ranks: usize, line: &str) -> Vec<Traffic> {
    let words = format!("colltune-amr {line}");
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    threads::run(n_ranks, |ranks| {
        let counting = Counting::new(ranks);
        let options = options::parse(words.clone()).expect("a good line");
        let settings = Settings::new(options, n_ranks).unwrap_or_else(|r| panic!("{}", r.text));
        let done = colltune_amr::run::run(&counting, &settings, Instant::now(), &mut |_| {});
        done.unwrap_or_else(|broken| panic!("{broken}"));
        counting.traffic()
    })
}

/// Under `--compat` the process grid has as many places as there are ranks: 1 to 8.
const GRIDS: [[usize; 3]; 8] = [
    [1, 1, 1],
    [2, 1, 1],
    [3, 1, 1],
    [2, 2, 1],
    [5, 1, 1],
    [3, 2, 1],
    [7, 1, 1],
    [2, 2, 2],
];

/// Telemetry must not be recorded under `--compat`: what four more steps add is compared instead.
#[test]
fn what_steps_add_under_compat_is_the_programs_own() {
    for (n_ranks, [x, y, z]) in (1..).zip(GRIDS) {
        for more in ["--rcb", "--hilbert", "--morton --lb_opt 2"] {
            // Two root blocks at least along each axis.
            let [i, j, k] = [x, y, z].map(|n| (2 / n).max(1));
            let grid =
                format!("--npx {x} --npy {y} --npz {z} --init_x {i} --init_y {j} --init_z {k}");
            let line = |steps: u64| format!("{SPHERE} {grid} --compat {more} --num_tsteps {steps}");
            let [short, long] = [4, 8].map(|steps| whole_run(n_ranks, &line(steps)));
            let settings = settings(&words(&line(8)), n_ranks, n_ranks).unwrap();
            let (costs, machine) = (plain_costs(&settings), a_machine(2));
            let all = scenario(&settings, n_ranks, &costs, &machine);
            let emulated = run(&all, Keep::TRAFFIC).unwrap();
            for (rank, (long, short)) in long.iter().zip(&short).enumerate() {
                let added = long.since(short);
                let nothing = Traffic::default();
                let steps = emulated.traffic[4..].iter();
                let found = steps.fold(nothing, |sum, step| sum.and(&step[rank]));
                for kind in [Kind::Reduction, Kind::Metadata, Kind::Block] {
                    let what = format!("{more} on {n_ranks}, rank {rank}: {}", kind.name());
                    assert_eq!(found.of(kind), added.of(kind), "{what}");
                }
                assert!(added.of(Kind::Reduction).0 > 50, "calls were made");
            }
        }
    }
}

#[test]
fn counts_of_the_gas_equal_telemetry() {
    for n_ranks in 1..=8 {
        assert_alike(
            n_ranks,
            &format!("{GAS} --num_tsteps 9 --checksum_freq 3 --placement lpt"),
        );
    }
}

#[test]
fn telemetry_of_many_spans_is_gathered_in_the_programs_own_steps() {
    // Rows of four steps fill the memory for them: one agreement in step 5 more than in the others.
    let many =
        "--num_refine 0 --stages_per_ts 750 --comm_vars 1 --checksum_freq 0 --telemetry_spans";
    assert_alike(2, &format!("{SPHERE} {many} --num_tsteps 6"));
}
