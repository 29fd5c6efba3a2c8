//! What holds of every emulated run.

mod common;

use std::sync::Arc;

use colltune_amr::placement::Question;
use colltune_amr::placement::library::Told;
use colltune_amr::placement::topology::Topology;
use colltune_amr::run::{Event, MeshRun, chosen};
use colltune_amr::telemetry::Freight;
use colltune_emulate::axes::{Axes, Network};
use colltune_emulate::cost::{Costs, NoiseCosts, PhaseCosts};
use colltune_emulate::machine::{App, Machine};
use colltune_emulate::mesh::settings;
use colltune_emulate::noise::Noise;
use colltune_emulate::outcome::Outcome;
use colltune_emulate::place::Placer;
use colltune_emulate::program::{Exchange, Message, Operation, Phase};
use colltune_emulate::run::{Emulated, Keep, Scenario, SlowNode, run};
use colltune_placement::generate::Random;
use colltune_placement::published::Published;
use common::{SPHERE, a_machine, plain_costs, scenario, sphere, words};

const FREE: App = App {
    pack_message_ns: 0.0,
    pack_byte_ns: 0.0,
    unpack_message_ns: 0.0,
    unpack_byte_ns: 0.0,
    copy_byte_ns: 0.0,
};

fn work(times: &[f64]) -> Operation {
    Operation::Work {
        phase: Phase::Compute,
        time_ns: Arc::new(times.to_vec()),
    }
}

fn exchange(n_ranks: usize, messages: &[(u32, u32, u64)]) -> Operation {
    let message = |&(from, to, bytes): &(u32, u32, u64)| Message { from, to, bytes };
    let messages = messages.iter().map(message).collect();
    Operation::Exchange(Arc::new(Exchange::new(Freight::Ghost, n_ranks, messages)))
}

fn axes<'m>(machine: &'m Machine, n_ranks: usize, network: Network, all: &[Operation]) -> Axes<'m> {
    let mut axes = Axes::new(machine, n_ranks, &PhaseCosts::default(), network);
    for operation in all {
        axes.act(operation, &mut |_| unreachable!("no collectives here"));
    }
    axes.end();
    axes
}

/// Fig. 5 of Wu et al. 2011: the process that is done at `t1` waits for what the other, done at `t0`, sends it:
/// `T_c = (t0 + T_trans) - t1`.
#[test]
fn two_processes_wait_as_in_figure_5() {
    let mut machine = a_machine(1);
    machine.app = Some(FREE);
    let link = machine.network.between;
    for (t0, t1, bytes) in [(9e6, 4e6, 8000), (5e6, 5e6, 800), (4e6, 4.001e6, 80_000)] {
        let operations = [
            work(&[t0, t1]),
            exchange(2, &[(0, 1, bytes), (1, 0, bytes)]),
        ];
        for network in [Network::Axes, Network::Events] {
            let axes = axes(&machine, 2, network, &operations);
            let asks = if bytes as f64 >= link.rendezvous_bytes {
                2.0 * link.latency_ns
            } else {
                0.0
            };
            let transit = asks + link.latency_ns + bytes as f64 * link.per_byte_ns;
            let waits = |rank: usize| {
                axes.spent[rank][Phase::Transit as usize] + axes.spent[rank][Phase::Late as usize]
            };
            let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9 * 1e7;
            assert!(close(waits(1), (t0 + transit - t1).max(0.0)), "{network:?}");
            assert!(close(waits(0), (t1 + transit - t0).max(0.0)), "{network:?}");
            let late = axes.spent[1][Phase::Late as usize];
            assert!(
                close(late, (t0 - t1).max(0.0)),
                "what is waited before it was sent is late"
            );
        }
    }
}

#[test]
fn nobody_is_late_where_all_post_together() {
    let machine = a_machine(2);
    let messages: Vec<(u32, u32, u64)> = (0..8)
        .flat_map(|from| {
            (0..8)
                .filter(move |&to| to != from)
                .map(move |to| (from, to, 4096))
        })
        .collect();
    let operations = [work(&[1e6; 8]), exchange(8, &messages)];
    for network in [Network::Axes, Network::Events] {
        let axes = axes(&machine, 8, network, &operations);
        let transit: f64 = axes.spent.iter().map(|s| s[Phase::Transit as usize]).sum();
        assert!(transit > 0.0, "somebody waits for what is on its way");
        for spent in &axes.spent {
            assert_eq!(spent[Phase::Late as usize], 0.0, "{network:?}");
        }
    }
}

/// Random work and messages of random ranks.
fn random_operations(random: &mut Random, n: usize) -> Vec<Operation> {
    let mut all = Vec::new();
    for _ in 0..6 {
        let times: Vec<f64> = (0..n).map(|_| 1e5 * random.unit()).collect();
        all.push(work(&times));
        let mut messages: Vec<(u32, u32, u64)> = (0..3 * n)
            .map(|_| {
                let from = random.below(n) as u32;
                (
                    from,
                    random.below(n) as u32,
                    8 * random.below(4000) as u64 + 8,
                )
            })
            .filter(|(from, to, _)| from != to)
            .collect();
        messages.sort_unstable();
        messages.dedup_by_key(|message| (message.0, message.1));
        all.push(exchange(n, &messages));
    }
    all
}

#[test]
fn phases_sum_to_clocks() {
    let mut random = Random::new(11);
    for seed in 0..30 {
        let n = 2 + seed % 7;
        let operations = random_operations(&mut random, n);
        for (cores, network) in [
            (4.0, Network::Axes),
            (4.0, Network::Events),
            (1.0, Network::Events),
        ] {
            let mut machine = a_machine(4);
            machine.shape.cores_per_node = cores;
            machine.shape.switch_ns = 1500.0;
            let axes = axes(&machine, n, network, &operations);
            assert!(axes.gap() < 1e-9, "{}", axes.gap());
            assert!(axes.spent.iter().flatten().all(|&time| time >= 0.0));
        }
    }
}

#[test]
fn no_machine_that_is_faster_in_one_number_makes_a_run_slower() {
    let mut random = Random::new(12);
    type Change = fn(&mut Machine, f64);
    let numbers: [(&str, Change); 11] = [
        ("latency between", |m, f| m.network.between.latency_ns *= f),
        ("byte between", |m, f| m.network.between.per_byte_ns *= f),
        ("gap between", |m, f| m.network.between.gap_ns *= f),
        // The longer a message may be that goes without asking, the faster.
        ("rendezvous between", |m, f| {
            m.network.between.rendezvous_bytes /= f
        }),
        ("latency inside", |m, f| m.network.inside.latency_ns *= f),
        ("byte inside", |m, f| m.network.inside.per_byte_ns *= f),
        ("rendezvous inside", |m, f| {
            m.network.inside.rendezvous_bytes /= f
        }),
        ("pack", |m, f| m.app.as_mut().unwrap().pack_message_ns *= f),
        ("pack byte", |m, f| {
            m.app.as_mut().unwrap().pack_byte_ns *= f
        }),
        ("unpack", |m, f| {
            m.app.as_mut().unwrap().unpack_message_ns *= f
        }),
        ("unpack byte", |m, f| {
            m.app.as_mut().unwrap().unpack_byte_ns *= f
        }),
    ];
    let mut changes = [false; 11];
    for seed in 0..40 {
        let n = 2 + seed % 9;
        let operations = random_operations(&mut random, n);
        for ((name, change), changes) in numbers.into_iter().zip(&mut changes) {
            let time = |factor: f64| {
                let mut machine = a_machine(3);
                change(&mut machine, factor);
                axes(&machine, n, Network::Axes, &operations).makespan()
            };
            let (slow, usual, fast) = (time(3.0), time(1.0), time(0.2));
            assert!(
                fast <= usual && usual <= slow,
                "{name}: {fast} {usual} {slow}"
            );
            *changes |= fast < slow;
        }
    }
    let all = numbers.into_iter().zip(changes);
    let idle: Vec<&str> = all
        .filter(|(_, changes)| !changes)
        .map(|((name, _), _)| name)
        .collect();
    assert_eq!(idle, ["gap between"], "every message travels alone");
}

/// What exchanges on their own do not show: computing, and what is copied between blocks of one rank.
#[test]
fn no_machine_that_computes_or_copies_faster_makes_a_run_slower() {
    let line = words(&format!("{SPHERE} --num_tsteps 6 --stencil 27"));
    type Change = fn(&mut Machine, f64);
    let numbers: [(&str, Change); 2] = [
        ("computing", |m, f| m.scale *= f),
        ("copied byte", |m, f| {
            m.app.as_mut().unwrap().copy_byte_ns *= f
        }),
    ];
    for n_ranks in [1, 3, 8] {
        let settings = settings(&line, n_ranks, n_ranks).unwrap();
        let costs = plain_costs(&settings);
        for (name, change) in numbers {
            let time = |factor: f64| {
                let mut machine = a_machine(2);
                change(&mut machine, factor);
                let scenario = Scenario {
                    network: Network::Axes,
                    ..scenario(&settings, n_ranks, &costs, &machine)
                };
                run(&scenario, Keep::SUMS).unwrap().outcome.total_s
            };
            let (slow, usual, fast) = (time(3.0), time(1.0), time(0.2));
            let told = format!("{name} on {n_ranks}: {fast} {usual} {slow}");
            // Steps that are alike are not gone through again: rounding.
            let is_in_order = |a: f64, b: f64| a <= b * (1.0 + 1e-9);
            assert!(
                is_in_order(fast, usual) && is_in_order(usual, slow),
                "{told}"
            );
            // A rank alone never waits.
            assert!(n_ranks > 1 || (fast < usual && usual < slow), "{told}");
        }
    }
}

#[test]
fn equal_inputs_give_equal_bytes_of_output_on_any_number_of_threads() {
    let emulated = |policy: &str| {
        let mut settings = sphere(8);
        let placer = Placer::from_name(policy).unwrap();
        settings.placement = placer.option();
        let costs = plain_costs(&settings);
        let machine = a_machine(2);
        let noise = NoiseCosts {
            block_cv: 0.1,
            step_cv: 0.1,
            rank_cv: 0.02,
            spike_share: 0.01,
            spike_factor: 3.0,
            pace_cv: 0.02,
            window_cv: 0.03,
            stop_share: 0.05,
            stop_ns: 5e4,
        };
        let all = Scenario {
            placer: Some((policy.to_owned(), placer)),
            noise: Some(Noise {
                costs: noise,
                seed: 5,
            }),
            ..scenario(&settings, 8, &costs, &machine)
        };
        serde_json::to_string(&run(&all, Keep::SUMS).unwrap().outcome).unwrap()
    };
    let policies = ["contiguous", "lpt", "cplx:50", "rcb", "contiguous", "lpt"];
    let alone: Vec<String> = policies.iter().map(|policy| emulated(policy)).collect();
    assert_eq!(alone[0], alone[4]);
    assert_ne!(alone[0], alone[1], "policies differ");
    for n_threads in [2, 3, 6] {
        let together: Vec<String> = std::thread::scope(|scope| {
            let chunks = policies.chunks(policies.len().div_ceil(n_threads));
            let threads: Vec<_> = chunks
                .map(|some| scope.spawn(|| some.iter().map(|p| emulated(p)).collect::<Vec<_>>()))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(alone, together, "{n_threads}");
    }
}

/// Ranks with as much to do each wait for each other where their paces change from one collective to the next, though
/// no policy is slower in the whole.
#[test]
fn paces_that_change_within_a_step_make_ranks_wait() {
    let settings = sphere(8);
    let (costs, machine) = (plain_costs(&settings), a_machine(2));
    let waited = |window_cv: f64| {
        let noise = Noise {
            costs: NoiseCosts {
                window_cv,
                ..NoiseCosts::default()
            },
            seed: 3,
        };
        let scenario = Scenario {
            noise: Some(noise),
            ..scenario(&settings, 8, &costs, &machine)
        };
        run(&scenario, Keep::SUMS).unwrap().outcome.sync_share
    };
    let shares = [0.0, 0.1, 0.3].map(waited);
    assert!(shares.is_sorted_by(|a, b| a < b), "{shares:?}");
}

/// The mesh of a run whose owners the mini-app chooses, and that of one whose owners the emulator does.
#[test]
fn every_policy_gives_the_owners_that_the_mini_app_gives() {
    // Three root blocks in a row: the order of roots is not the curve's.
    let line = SPHERE.replace("--npx 2 --npy 2 --npz 2", "--npx 3 --npy 2 --npz 1");
    let n_ranks = 6;
    let published: Published = "cplx:50".parse().unwrap();
    let (mut n_moves, mut by_leaves) = (0, 0);
    for policy in [
        "published:baseline",
        "published:cdp",
        "published:cplx:50",
        "published:lpt",
        "z-order",
        "cplx:25",
        "lpt",
        "rcb",
    ] {
        let line = format!("{line} --num_tsteps 12 --placement {policy}");
        let settings = settings(&words(&line), n_ranks, n_ranks).unwrap();
        let placer = Placer::from_name(policy).unwrap();
        // One node, as a mesh without its run has.
        let machine = a_machine(n_ranks as u32);
        let ours = |question: Question| placer.owners(&settings, question, &machine, None);
        let mut app = MeshRun::new(&settings, n_ranks);
        let mut emulated = MeshRun::with_chooser(&settings, n_ranks, Box::new(ours));
        for step in 0..=12 {
            for run in [&mut app, &mut emulated] {
                match step {
                    0 => run.start(None, &mut |_| {}).unwrap(),
                    step => run
                        .end_step(step, None, &mut |event| {
                            n_moves += u64::from(matches!(event, Event::Migrated { .. }));
                        })
                        .unwrap(),
                }
            }
            let owners = app.mesh.owners();
            assert_eq!(owners, emulated.mesh.owners(), "{policy}, step {step}");
            // Root by root, which is no curve, the published code would have other neighbours on a rank.
            let ones = vec![1.0; owners.len()];
            let along = published.place(&ones, n_ranks as u32).unwrap();
            by_leaves += u64::from(policy == "published:cplx:50" && along == owners);
        }
    }
    assert!(n_moves > 0);
    assert_eq!(by_leaves, 0, "the order of the leaves is not asked for");
}

/// Nodes matter to every policy, as its answer is matched to where blocks are: the emulator tells what the app knows.
#[test]
fn policies_that_ask_for_no_nodes_are_told_them_as_in_the_mini_app() {
    let n_ranks = 8;
    let machine = a_machine(2);
    let nodes: Vec<u64> = (0..n_ranks as u64).map(|rank| rank / 2).collect();
    let topology = Topology::new(&nodes, None);
    let mut n_others = 0;
    for policy in ["lpt", "lpt-swap", "round-robin", "cplx:50"] {
        let line = format!("{SPHERE} --num_tsteps 12 --placement {policy}");
        let settings = settings(&words(&line), n_ranks, n_ranks).unwrap();
        let told = Told {
            topology: Some(&topology),
            speeds: None,
        };
        let app = |question: Question| chosen(&settings, &settings.placement, question, told);
        let placer = Placer::from_name(policy).unwrap();
        let ours = |question: Question| placer.owners(&settings, question, &machine, None);
        let mut app = MeshRun::with_chooser(&settings, n_ranks, Box::new(app));
        let mut emulated = MeshRun::with_chooser(&settings, n_ranks, Box::new(ours));
        let mut untold = MeshRun::new(&settings, n_ranks);
        for run in [&mut app, &mut emulated, &mut untold] {
            run.start(None, &mut |_| {}).unwrap();
        }
        for step in 1..=12 {
            for run in [&mut app, &mut emulated, &mut untold] {
                run.end_step(step, None, &mut |_| {}).unwrap();
            }
            assert_eq!(app.mesh.owners(), emulated.mesh.owners(), "{policy}");
            n_others += usize::from(app.mesh.owners() != untold.mesh.owners());
        }
    }
    assert!(n_others > 0, "nodes made no difference");
}

/// One of four nodes takes four times as long. Policies that know give it less to do; those that use no speeds place as before.
#[test]
fn a_policy_that_is_told_of_a_slow_node_gives_it_less_and_others_place_as_ever() {
    let n_ranks = 8;
    let line = words(&format!("{SPHERE} --num_tsteps 12"));
    let machine = a_machine(2);
    let of = |policy: &str, slow: Option<SlowNode>| -> Emulated {
        let mut settings = settings(&line, n_ranks, n_ranks).unwrap();
        let placer = Placer::from_name(policy).unwrap();
        settings.placement = placer.option();
        // Messages are short beside it.
        let costs = Costs::uniform(settings.work, 100.0);
        let scenario = Scenario {
            placer: Some((policy.to_owned(), placer)),
            slow,
            ..scenario(&settings, n_ranks, &costs, &machine)
        };
        run(&scenario, Keep::SUMS).unwrap()
    };
    let slow = |is_told| {
        Some(SlowNode {
            node: 1,
            factor: 4.0,
            is_told,
        })
    };
    for policy in ["contiguous", "lpt", "lpt-swap", "cplx:50"] {
        let [healthy, unaware, told] = [None, slow(false), slow(true)].map(|slow| of(policy, slow));
        let total_s = |run: &Emulated| run.outcome.total_s;
        let times = [&healthy, &told, &unaware].map(total_s);
        println!("{policy}: healthy, told, unaware {times:?}");
        assert!(
            times[0] < times[1] && times[1] < 0.8 * times[2],
            "{policy}: {times:?}"
        );
    }
    for policy in ["rcb", "published:lpt", "round-robin"] {
        let [unaware, told] = [false, true].map(|is_told| of(policy, slow(is_told)).outcome);
        assert_eq!(unaware, told, "{policy}");
    }
    let nowhere = SlowNode {
        node: 4,
        factor: 4.0,
        is_told: true,
    };
    let settings = settings(&line, n_ranks, n_ranks).unwrap();
    let costs = plain_costs(&settings);
    let lpt = Placer::from_name("lpt").unwrap();
    let scenario = Scenario {
        placer: Some(("lpt".to_owned(), lpt)),
        slow: Some(nowhere),
        ..scenario(&settings, n_ranks, &costs, &machine)
    };
    let error = run(&scenario, Keep::SUMS)
        .err()
        .expect("there is no node 4");
    assert!(error.to_string().contains("node 4"), "{error}");
}

/// A uniform grid on ranks that divide its blocks.
#[test]
fn uniform_costs_on_ranks_that_divide_the_blocks_need_no_waiting_for_late_ones() {
    let line = "--nx 4 --ny 4 --nz 4 --npx 4 --npy 4 --npz 4 --num_refine 0 --num_tsteps 3 --num_vars 2 \
                --stages_per_ts 2 --checksum_freq 1";
    for n_ranks in [2, 4, 8, 16] {
        let settings = settings(&words(line), n_ranks, n_ranks).unwrap();
        let costs = plain_costs(&settings);
        let mut machine = a_machine(4);
        // No messages of different lengths or distances: links that cost nothing.
        machine.app = Some(FREE);
        for link in [&mut machine.network.inside, &mut machine.network.between] {
            (link.latency_ns, link.per_byte_ns, link.gap_ns) = (0.0, 0.0, 0.0);
        }
        let Emulated { spent_ns, .. } =
            run(&scenario(&settings, n_ranks, &costs, &machine), Keep::SUMS).unwrap();
        for spent in spent_ns {
            assert!(spent[Phase::Compute as usize] > 0.0);
            assert_eq!(spent[Phase::Sync as usize], 0.0, "{n_ranks}");
            assert_eq!(spent[Phase::Late as usize], 0.0, "{n_ranks}");
        }
    }
}

/// Each end of an allreduce needs every start, so a gate and a followed schedule differ by less than the call's time.
#[test]
fn as_many_cores_as_ranks_are_no_sharing_and_fewer_take_longer() {
    let settings = sphere(8);
    let costs = plain_costs(&settings);
    let outcome = |cores: f64| -> Outcome {
        let mut machine = a_machine(4);
        machine.shape.cores_per_node = cores;
        run(&scenario(&settings, 8, &costs, &machine), Keep::SUMS)
            .unwrap()
            .outcome
    };
    let own = outcome(4.0);
    assert_eq!(own.phase_s(Phase::Queue), 0.0);
    assert_eq!(outcome(8.0), own);
    let (half, one) = (outcome(2.0), outcome(1.0));
    assert!(half.phase_s(Phase::Queue) > 0.0);
    assert!(own.total_s < half.total_s && half.total_s < one.total_s);
    let computed = 8.0 * own.phase_s(Phase::Compute);
    assert!(one.total_s >= computed / 2.0, "two cores have all the work");
}

/// With a core for itself a rank takes messages while it waits; ranks that share one have to do all of it one after another.
#[test]
fn short_messages_cost_ranks_that_share_a_core_what_both_ends_have_to_do() {
    let n_rounds = 50;
    let rounds = vec![exchange(4, &[(0, 2, 8), (1, 3, 8), (2, 0, 8), (3, 1, 8)]); n_rounds];
    let ends = |cores: f64, overhead_ns: f64| {
        let mut machine = a_machine(2);
        machine.app = Some(FREE);
        machine.shape.cores_per_node = cores;
        let link = &mut machine.network.between;
        (link.overhead_ns, link.gap_ns) = (overhead_ns, 0.0);
        axes(&machine, 4, Network::Events, &rounds).makespan()
    };
    assert_eq!(ends(2.0, 0.0), ends(2.0, 1e6), "a core each");
    let later = ends(1.0, 1e6) - ends(1.0, 0.0);
    // Two ranks of a core send and take one message each.
    let work = n_rounds as f64 * 2.0 * (1e6 + 1e6);
    assert!((later / work - 1.0).abs() < 0.05, "{later} for {work}");
}

#[test]
fn more_ranks_than_blocks_are_refused_with_both_numbers() {
    let settings = settings(&words(&format!("{SPHERE} --num_tsteps 6")), 2, 4096).unwrap();
    let costs = plain_costs(&settings);
    let machine = a_machine(4);
    let error = run(&scenario(&settings, 4096, &costs, &machine), Keep::SUMS);
    let error = error.err().expect("too many ranks").to_string();
    assert!(
        error.contains("4096 ranks") && error.contains("blocks"),
        "{error}"
    );
}

/// One message goes at the pace of a pair, what queues behind it at that of a network under load.
#[test]
fn a_network_under_load_lets_queues_through_more_slowly_and_single_messages_as_ever() {
    let ends = |congestion: f64, operations: &[Operation]| {
        let mut machine = a_machine(1);
        machine.app = Some(FREE);
        machine.congestion = congestion;
        let axes = axes(&machine, 3, Network::Events, operations);
        axes.clocks.iter().copied().fold(0.0, f64::max)
    };
    let bytes = 1_000_000;
    let transfer = bytes as f64 * a_machine(1).network.between.per_byte_ns;
    let one = || exchange(3, &[(0, 1, bytes)]);
    let apart = [one(), work(&[1.1 * transfer, 0.0, 0.0]), one()];
    assert_eq!(ends(1.0, &apart), ends(2.0, &apart));
    let two = [exchange(3, &[(0, 1, bytes), (0, 2, bytes)])];
    let later = ends(2.0, &two) - ends(1.0, &two);
    assert!(
        (later / transfer - 1.0).abs() < 1e-6,
        "{later} for {transfer}"
    );
}

/// Inside a node only the two ranks copy: a long message moves while both wait, and keeps its sender.
#[test]
fn long_messages_inside_a_node_move_while_both_ranks_wait() {
    let mut machine = a_machine(2);
    machine.app = Some(FREE);
    let link = machine.network.inside;
    let (early, late, bytes) = (4e6, 9e6, 1_000_000u64);
    let copied = bytes as f64 * link.per_byte_ns;
    let operations = |messages: &[(u32, u32, u64)]| [work(&[late, early]), exchange(2, messages)];
    let ends = |messages: &[(u32, u32, u64)]| {
        let axes = axes(&machine, 2, Network::Events, &operations(messages));
        (axes.clocks.clone(), axes.spent.clone())
    };
    let (clocks, spent) = ends(&[(0, 1, bytes), (1, 0, bytes)]);
    let end = late + 3.0 * link.latency_ns + copied;
    assert!(clocks.iter().all(|clock| (clock - end).abs() < 1.0));
    // Who comes last still has to copy what has been there for long.
    assert!(spent[0][Phase::Transit as usize] >= copied);
    assert_eq!(spent[0][Phase::Late as usize], 0.0);
    assert!((spent[1][Phase::Late as usize] - (late - early)).abs() < 1.0);
    // One that only sends is kept until its receiver has come and copied.
    let (clocks, spent) = ends(&[(1, 0, bytes)]);
    assert!((clocks[1] - (late + copied)).abs() < 1.0);
    assert!((spent[1][Phase::Late as usize] - (late - early)).abs() < 1.0);
    // A short one leaves at once.
    let (clocks, _) = ends(&[(1, 0, 64)]);
    assert_eq!(clocks[1], early);
}

#[test]
fn stops_keep_the_mean_of_the_work_and_make_others_wait() {
    let mut machine = a_machine(2);
    machine.app = Some(FREE);
    let step = [work(&[1e6, 1e6]), exchange(2, &[(0, 1, 8), (1, 0, 8)])];
    let after = |share: f64| {
        let mut axes = Axes::new(&machine, 2, &PhaseCosts::default(), Network::Events);
        let costs = NoiseCosts {
            stop_share: share,
            stop_ns: 5e5,
            ..NoiseCosts::default()
        };
        axes.interrupt(Noise { costs, seed: 7 });
        for operation in step.iter().cycle().take(2 * 4000) {
            axes.act(operation, &mut |_| unreachable!("no collectives here"));
        }
        axes.end();
        assert!(axes.gap() < 1e-9);
        axes
    };
    let (never, stopped) = (after(0.0), after(0.05));
    let of = |axes: &Axes, phase: Phase| axes.spent[0][phase as usize];
    assert_eq!(of(&never, Phase::Stopped), 0.0);
    assert_eq!(of(&never, Phase::Late), 0.0);
    let worked = of(&stopped, Phase::Compute) + of(&stopped, Phase::Stopped);
    // Some 400 stops of half a step each: four of their standard errors.
    assert!((worked / of(&never, Phase::Compute) - 1.0).abs() < 0.01);
    // A rank waits whenever the other one was stopped and it was not.
    let waits = of(&stopped, Phase::Late);
    let others: f64 = stopped.spent[1][Phase::Stopped as usize];
    assert!(
        waits > 0.8 * others && waits < 1.2 * others,
        "{waits} {others}"
    );
}
