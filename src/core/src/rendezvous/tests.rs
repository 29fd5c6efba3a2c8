use super::*;

const IDENTITY: &str = "colltune 0.1.0 for Open MPI 4.1.4, settings 0123456789abcdef";

fn call(n_ranks: u32, groups: &[Vec<u32>]) -> (RollCall, usize) {
    let mut roll = RollCall::new(n_ranks, IDENTITY);
    let hellos: Vec<Hello> = groups
        .iter()
        .flat_map(|ranks| hellos(ranks, IDENTITY))
        .collect();
    let mut looked_up = 0;
    while let Some(lowest) = roll.next() {
        let Some(hello) = hellos.iter().find(|hello| hello.lowest == lowest) else {
            break;
        };
        roll.hear(&hello.text).expect("a hello of our own");
        looked_up += 1;
    }
    (roll, looked_up)
}

/// The ranks but rank 0, by a node for each.
fn groups(n_ranks: u32, node: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
    let mut groups = vec![Vec::new(); n_ranks as usize];
    (1..n_ranks).for_each(|rank| groups[node(rank) as usize].push(rank));
    groups.retain(|ranks| !ranks.is_empty());
    groups
}

#[test]
fn rank_0_finds_every_group_without_knowing_where_ranks_are() {
    for n in [2, 3, 7, 64, 1000, 4099] {
        let shapes: [(&str, Vec<Vec<u32>>); 4] = [
            ("blocks", groups(n, |rank| rank / 16)),
            ("round the nodes", groups(n, |rank| rank % n.div_ceil(16))),
            ("each alone", groups(n, |rank| rank)),
            (
                "drawn",
                groups(n, |rank| {
                    (crate::select::mix(7, rank.into()) % u64::from(n.div_ceil(16))) as u32
                }),
            ),
        ];
        for (shape, groups) in shapes {
            let (roll, looked_up) = call(n, &groups);
            assert_eq!(roll.next(), None, "{n} ranks, {shape}");
            let even = shape != "drawn";
            assert!(
                !even || looked_up == groups.len(),
                "{n} ranks, {shape}: {looked_up} look-ups"
            );
        }
    }
}

#[test]
fn the_lowest_rank_that_is_missing_is_named() {
    for missing in [1, 5, 15, 16, 17, 63] {
        let mut all = groups(64, |rank| rank / 16);
        all.iter_mut()
            .for_each(|ranks| ranks.retain(|rank| *rank != missing));
        let (roll, _) = call(64, &all);
        assert_eq!(roll.next(), Some(missing));
    }
}

#[test]
fn a_hello_fits_a_port_name_of_mpich() {
    let scattered: Vec<u32> = (1..60_000)
        .filter(|rank| crate::select::mix(3, *rank).is_multiple_of(5))
        .map(|rank| rank as u32)
        .collect();
    let hellos = hellos(&scattered, IDENTITY);
    assert!(hellos.len() > 1 && hellos.iter().all(|hello| hello.text.len() < 255));
    assert_eq!(
        call(60_000, std::slice::from_ref(&scattered)).0.next(),
        (1..).find(|rank| !scattered.contains(rank))
    );
}

#[test]
fn another_identity_and_nonsense_are_refused_with_the_rank() {
    let heard = |text: &str| RollCall::new(9, IDENTITY).hear(text);
    let other = heard("1-8 colltune 0.0.9").expect_err("another version");
    assert!(
        other.contains("rank 1") && other.contains("0.0.9"),
        "{other}"
    );
    for text in ["", "2-8", "1-9", "1-8/0", "8-1", "1-x", "1,,2", "-1"] {
        let answer = heard(&format!("{text} {IDENTITY}"));
        assert!(answer.is_err(), "{text:?}");
    }
    assert_eq!(heard(&format!("1-8 {IDENTITY}")), Ok(()));
}

#[test]
fn all_clients_together_keep_below_the_limit() {
    for n_clients in [1, 100, 128, 512, 65_536] {
        let mut pace = Pace::of(n_clients);
        // The first twenty pauses are the shortest.
        let spent: f64 = (0..20).map(|_| pace.pause().as_secs_f64()).sum();
        let rate = 20.0 / spent * f64::from(n_clients);
        let short = 20.0 / spent; // one client alone may ask quicker at first
        assert!(
            rate <= f64::from(LOOKUPS_PER_SECOND) * 1.01 || n_clients == 1 && short < 400.0,
            "{n_clients}: {rate}"
        );
        assert!(pace.pause() >= PAUSE_LAST);
    }
}

/// What a start costs the name server, and how long it takes behind the last rank's arrival.
struct Start {
    clients: u32,
    requests: u32,
    seconds: f64,
    busy: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    AskHere,
    SayHello,
    AskVerdict,
    Done,
}

/// Ranks of which `per_group` each found each other arrive within `skew_s`; a request occupies the one name server
/// for `service_s`, and is `trip_s` under way. A client asks again for missing names at its pace.
fn simulate(n_ranks: u32, per_group: u32, service_s: f64, trip_s: f64, skew_s: f64) -> Start {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let n_groups = n_ranks.div_ceil(per_group);
    let nanos = |seconds: f64| (seconds * 1e9) as u64;
    let (service, trip) = (nanos(service_s), nanos(trip_s));
    let arrival = |client: u32| crate::select::mix(11, client.into()) % nanos(skew_s).max(1);
    let mut paces = vec![Pace::of(n_groups); n_groups as usize + 1];
    paces[n_groups as usize] = Pace::of(1);
    // The clients are the groups, and behind them rank 0.
    let mut steps = vec![Step::AskHere; n_groups as usize + 1];
    let mut said_at = vec![u64::MAX; n_groups as usize];
    let (mut here_at, mut verdict_at, mut roll) = (u64::MAX, u64::MAX, 0);
    let mut queue: BinaryHeap<_> = (0..=n_groups)
        .map(|client| Reverse((arrival(client), client)))
        .collect();
    let (mut free_at, mut requests, mut occupied, mut end) = (0, 0, 0, 0);
    while let Some(Reverse((time, client))) = queue.pop() {
        let answered = time.max(free_at) + service;
        (free_at, requests, occupied) = (answered, requests + 1, occupied + service);
        let back = answered + trip;
        let pause = |pace: &mut Pace| back + pace.pause().as_nanos() as u64;
        let place = client as usize;
        let next = if client == n_groups {
            if here_at == u64::MAX {
                here_at = answered;
                Some(back)
            } else if roll == n_groups as usize {
                verdict_at = answered;
                None
            } else if said_at[roll] < answered {
                roll += 1;
                paces[place] = Pace::of(1);
                Some(back)
            } else {
                Some(pause(&mut paces[place]))
            }
        } else {
            let (found, then) = match steps[place] {
                Step::AskHere => (here_at < answered, Step::SayHello),
                Step::SayHello => (true, Step::AskVerdict),
                Step::AskVerdict | Step::Done => (verdict_at < answered, Step::Done),
            };
            if steps[place] == Step::SayHello {
                said_at[place] = answered;
            }
            if found {
                steps[place] = then;
            }
            match (found, then) {
                (true, Step::Done) => None,
                (true, _) => Some(back),
                (false, _) => Some(pause(&mut paces[place])),
            }
        };
        end = end.max(back);
        queue.extend(next.map(|time| Reverse((time, client))));
    }
    Start {
        clients: n_groups + 1,
        requests,
        seconds: (end - nanos(skew_s)) as f64 / 1e9,
        busy: occupied as f64 / end as f64,
    }
}

/// What the shim's handshake takes at the most by default: `HANDSHAKE_TIMEOUT` in `start/meet.rs`.
const TIME_OUT_S: f64 = 10.0;

/// Prints the simulated start of so many ranks, and gives its seconds.
fn seconds_of_start(n_ranks: u32, per_group: u32) -> f64 {
    let Start {
        clients,
        requests,
        seconds,
        busy,
    } = simulate(n_ranks, per_group, 20e-6, 50e-6, 0.5);
    println!(
        "{n_ranks:6} {per_group:10} {clients:8} {requests:9} {:11.0}% {seconds:8.2}",
        busy * 100.0
    );
    assert_eq!(clients, n_ranks / per_group + 1);
    assert!(busy < 0.9);
    seconds
}

const HEAD: &str = " ranks  per group  clients  requests  server busy  seconds";

/// docs/results/ quotes these lines: `cargo test -p colltune-core start_of -- --nocapture`.
#[test]
fn the_start_of_65_536_ranks_ends_far_below_the_time_out() {
    println!("{HEAD}");
    for (n_ranks, per_group, ceiling_s) in [
        (4096, 128, 0.1),
        (16_384, 128, 0.2),
        (65_536, 128, 0.5),
        (65_536, 16, TIME_OUT_S / 5.0),
    ] {
        let seconds = seconds_of_start(n_ranks, per_group);
        assert!(seconds < ceiling_s, "{n_ranks} {per_group}: {seconds} s");
    }
}

/// The last of those lines: such a job runs untuned.
#[test]
fn the_start_of_65_536_ranks_with_one_rank_a_node_runs_into_the_time_out() {
    println!("{HEAD}");
    let seconds = seconds_of_start(65_536, 1);
    assert!((TIME_OUT_S..30.0).contains(&seconds), "{seconds} s");
}
