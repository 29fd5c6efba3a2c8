//! What is kept of a run beside its outcome, and replicas.

mod common;

use std::cell::Cell;

use colltune_amr::refine::Origin;
use colltune_amr::run::{Event, MeshRun};
use colltune_emulate::clock::Timer;
use colltune_emulate::cost::NoiseCosts;
use colltune_emulate::mesh::settings;
use colltune_emulate::noise::Noise;
use colltune_emulate::place::Placer;
use colltune_emulate::price::Choices;
use colltune_emulate::program::Phase;
use colltune_emulate::run::{Keep, Scenario, replicas, run};
use colltune_emulate::whatif;
use common::{SPHERE, a_machine, plain_costs, scenario, sphere, words};

/// A clock on which everything takes as long.
fn half_a_second(work: &mut dyn FnMut()) -> f64 {
    work();
    0.5
}

#[test]
fn a_policy_takes_what_the_callers_clock_says_and_without_one_what_the_costs_do() {
    let mut settings = sphere(8);
    let placer = Placer::from_name("lpt").unwrap();
    settings.placement = placer.option();
    let (mut costs, mut machine) = (plain_costs(&settings), a_machine(2));
    costs.phases.place_leaf_ns = 100.0;
    machine.scale = 2.0;
    let mut mesh_run = MeshRun::new(&settings, 8);
    mesh_run.start(None, &mut |_| {}).unwrap();
    let (mut n_placed, mut n_leaves) = (0u32, 0usize);
    let mut look = |event: Event| {
        if let Event::Placed { mesh, .. } = event {
            n_placed += 1;
            n_leaves += mesh.len();
        }
    };
    for step in 1..=6 {
        mesh_run.end_step(step, None, &mut look).unwrap();
    }
    assert!(n_placed > 0, "blocks are placed anew");
    let place_s = |timer: Option<Timer>| -> f64 {
        let scenario = Scenario {
            placer: Some(("lpt".to_owned(), placer.clone())),
            timer,
            ..scenario(&settings, 8, &costs, &machine)
        };
        let outcome = run(&scenario, Keep::SUMS).unwrap().outcome;
        outcome.phase_s(Phase::Place)
    };
    let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
    let of_costs = place_s(None);
    assert!(close(of_costs, 1e-7 * n_leaves as f64), "{of_costs}");
    // Half a second here is a whole one on a machine that takes twice as long.
    let by_clock = place_s(Some(&half_a_second));
    assert!(close(by_clock, f64::from(n_placed)), "{by_clock}");
}

/// Each placement takes a second longer than the one before it, on this clock: variants that were timed anew would differ.
#[test]
fn in_a_row_of_variants_a_policy_is_timed_once() {
    let mut settings = sphere(8);
    let placer = Placer::from_name("lpt").unwrap();
    settings.placement = placer.option();
    let (costs, machine) = (plain_costs(&settings), a_machine(2));
    let n_timed = Cell::new(0);
    let later_and_later = |work: &mut dyn FnMut()| {
        work();
        n_timed.set(n_timed.get() + 1);
        f64::from(n_timed.get())
    };
    let ring = Choices::from_text("allreduce=p2p:ring", &machine.learned).unwrap();
    let variants = [Choices::default(), ring, Choices::default()];
    let of = |timer: Option<Timer>| {
        let scenario = Scenario {
            placer: Some(("lpt".to_owned(), placer.clone())),
            timer,
            ..scenario(&settings, 8, &costs, &machine)
        };
        whatif::row(&scenario, &variants).unwrap()
    };
    let (by_costs, by_clock) = (of(None), of(Some(&later_and_later)));
    let n = n_timed.get();
    assert!(n > 1, "blocks are placed again and again: {n}");
    assert_eq!(by_clock[0], by_clock[2]);
    assert_ne!(by_clock[0], by_clock[1], "variants differ by themselves");
    // The first time is before the first step.
    let placed_s = f64::from(n * (n + 1) / 2 - 1);
    for (with, without) in by_clock.iter().zip(by_costs) {
        // Costs of no time for placing; what is on its way comes while blocks are placed, at most all that there is.
        assert!(
            (with - without - placed_s).abs() < without,
            "{with} {without}"
        );
    }
}

/// What the children of joined blocks send each other travels as blocks do, and no block changes its owner.
#[test]
fn moved_blocks_are_those_that_change_owners_and_none_that_are_joined() {
    // Round robin: children lie on other ranks than the block that they become.
    let line = format!("{SPHERE} --num_tsteps 8 --placement round-robin");
    let settings = settings(&words(&line), 8, 8).unwrap();
    let (costs, machine) = (plain_costs(&settings), a_machine(2));
    let mut mesh_run = MeshRun::new(&settings, 8);
    mesh_run.start(None, &mut |_| {}).unwrap();
    let (mut n_moved, mut n_shares) = (0, 0);
    let mut count = |event: Event| match event {
        Event::Migrated { mesh, owners } => {
            let pairs = mesh.owners().iter().zip(owners);
            n_moved += pairs.filter(|(from, to)| from != to).count() as u64;
        }
        Event::Adapted { old, new, origins } => {
            for (origin, &to) in origins.iter().zip(new.owners()) {
                if let Origin::Joined(first) = *origin {
                    let children = old.owners()[first..first + 8].iter();
                    n_shares += children.filter(|&&from| from != to).count();
                }
            }
        }
        _ => {}
    };
    for step in 1..=8 {
        mesh_run.end_step(step, None, &mut count).unwrap();
    }
    // Eight of them have the bytes of one block.
    assert!(n_shares >= 8, "blocks are joined: {n_shares}");
    assert!(n_moved > 0, "and blocks move");
    let outcome = run(&scenario(&settings, 8, &costs, &machine), Keep::SUMS).unwrap();
    assert_eq!(outcome.outcome.moved_blocks, n_moved);
}

/// Each rank's parts follow each other without a gap, and sum to what it spent, whoever shares a core or is stopped.
#[test]
fn time_axes_in_parts_are_the_whole_of_each_ranks_time() {
    let settings = settings(&words(&format!("{SPHERE} --num_tsteps 8")), 8, 8).unwrap();
    let costs = plain_costs(&settings);
    for (cores, stop_share) in [(2.0, 0.0), (1.0, 0.0), (2.0, 0.05), (1.0, 0.05)] {
        let mut machine = a_machine(2);
        machine.shape.cores_per_node = cores;
        let scenario = Scenario {
            noise: Some(Noise {
                costs: NoiseCosts {
                    step_cv: 0.1,
                    stop_share,
                    stop_ns: 5e4,
                    ..NoiseCosts::default()
                },
                seed: 3,
            }),
            ..scenario(&settings, 8, &costs, &machine)
        };
        let kept = |steps| {
            let keep = Keep {
                steps,
                ..Keep::SUMS
            };
            run(&scenario, keep).unwrap()
        };
        let (all, none) = (kept(Some((1, 8))), kept(None));
        assert_eq!(all.outcome, none.outcome, "who looks on changes nothing");
        assert!(none.spans.is_empty());
        for rank in 0..8 {
            let (mut at, mut spent) = (0.0, [0.0; Phase::ALL.len()]);
            for span in all.spans.iter().filter(|span| span.rank == rank) {
                assert!((span.begin_ns - at).abs() < 1.0, "{span:?} after {at}");
                spent[span.phase as usize] += span.end_ns - span.begin_ns;
                at = span.end_ns;
            }
            // What is behind the last step is no step's.
            assert!(at > 0.98 * all.clocks_ns[rank as usize], "{at}");
            let whole = all.spent_ns[rank as usize];
            for phase in [Phase::Compute, Phase::Late, Phase::Stopped] {
                let (parts, whole) = (spent[phase as usize], whole[phase as usize]);
                assert!(
                    (parts - whole).abs() < 1e-6 * at,
                    "{phase:?} of {rank}: {parts} {whole}"
                );
            }
        }
        let some = kept(Some((3, 4)));
        let of_those = all.spans.iter().filter(|span| (3..=4).contains(&span.step));
        assert_eq!(some.spans, of_those.copied().collect::<Vec<_>>());
    }
}

#[test]
fn what_two_ranks_sent_each_other_sums_to_the_messages_of_the_run() {
    let settings = sphere(8);
    let (costs, machine) = (plain_costs(&settings), a_machine(2));
    let keep = Keep {
        pairs: true,
        ..Keep::SUMS
    };
    let found = run(&scenario(&settings, 8, &costs, &machine), keep).unwrap();
    let messages = found.outcome.messages;
    let sum = |on_one_node: bool| {
        let pairs = found.pairs.iter();
        let of = pairs.filter(|((from, to), _)| (from / 2 == to / 2) == on_one_node);
        of.fold((0, 0), |(n, bytes), (_, sent)| {
            (n + sent.messages, bytes + sent.bytes)
        })
    };
    assert_eq!(sum(true), (messages.same_node, messages.same_node_bytes));
    assert_eq!(sum(false), (messages.remote, messages.remote_bytes));
    assert!(found.pairs.keys().all(|(from, to)| from != to));
}

#[test]
fn replicas_are_sorted_by_their_time_and_each_is_the_run_of_its_seed() {
    let settings = sphere(8);
    let (costs, machine) = (plain_costs(&settings), a_machine(2));
    let noise = Noise {
        costs: NoiseCosts {
            step_cv: 0.2,
            ..NoiseCosts::default()
        },
        seed: 7,
    };
    let scenario = Scenario {
        noise: Some(noise),
        ..scenario(&settings, 8, &costs, &machine)
    };
    let outcome = |scenario: &Scenario| Ok(run(scenario, Keep::SUMS)?.outcome);
    let all = replicas(&scenario, 5, outcome, |outcome| outcome.total_s).unwrap();
    assert!(
        all.windows(2)
            .all(|pair| pair[0].1.total_s < pair[1].1.total_s)
    );
    let mut seeds: Vec<u64> = all.iter().map(|(noise, _)| noise.unwrap().seed).collect();
    for (noise, found) in &all {
        let again = Scenario {
            noise: *noise,
            ..scenario.clone()
        };
        assert_eq!(*found, outcome(&again).unwrap());
    }
    seeds.sort_unstable();
    assert_eq!(seeds, [7, 8, 9, 10, 11]);
}
