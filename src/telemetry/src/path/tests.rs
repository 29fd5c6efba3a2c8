use super::*;
use crate::made::{Machine, Order};
use crate::rows::{Round, Window};
use crate::windows::tests::window;

/// A round that begins at `begin`, posts after 10, has copied after 20 more, has its last message at `last` and
/// unpacks it in 5.
fn round(rank: u32, k: u32, begin: i64, last: i64, from: Option<u32>) -> Round {
    Round {
        step: 1,
        round: k,
        rank,
        begin,
        posted: begin + 10,
        served: begin + 30,
        last,
        last_from: from,
        done: last + 5,
        ..Round::default()
    }
}

fn meeting(windows: &[(i64, i64)], rounds: u32) -> Meeting {
    let leave = windows.iter().map(|w| w.1).max().unwrap_or(0) + 50;
    let of = |(rank, &(begin, arrive)): (usize, &(i64, i64))| Window {
        rounds,
        compute: 1000,
        pack: 0,
        ..window(rank as u32, begin, arrive, leave)
    };
    Meeting {
        step: 1,
        window: 0,
        ranks: windows.iter().enumerate().map(of).collect(),
    }
}

fn ranks_of(path: &Path) -> Vec<u32> {
    let mut ranks: Vec<u32> = path.pieces.iter().map(|piece| piece.rank).collect();
    ranks.dedup();
    ranks
}

#[test]
fn a_message_that_was_there_already_keeps_the_path_on_its_rank() {
    let meeting = meeting(&[(0, 500), (0, 400)], 1);
    let rounds = [
        round(0, 0, 100, 131, Some(1)),
        round(1, 0, 90, 120, Some(0)),
    ];
    let path = critical(&meeting, &rounds, 2).expect("complete");
    assert_eq!(ranks_of(&path), [0]);
    assert_eq!(path.len(), 500, "the path leaves no time out");
    assert_eq!((path.send_first, path.overlap), (0, 0));
}

#[test]
fn a_message_that_was_waited_for_leads_to_its_sender_at_its_posting() {
    let meeting = meeting(&[(0, 500), (0, 450)], 1);
    // Rank 1 computes until 300; rank 0 has waited for it since 130.
    let rounds = [
        round(0, 0, 100, 330, Some(1)),
        round(1, 0, 300, 330, Some(0)),
    ];
    let path = critical(&meeting, &rounds, 2).expect("complete");
    assert_eq!(ranks_of(&path), [1, 0]);
    let parts: Vec<(Part, i64)> = path
        .pieces
        .iter()
        .map(|p| (p.part, p.end - p.begin))
        .collect();
    let expected = [
        (Part::Work, 300),
        (Part::Post, 10),
        (Part::Transit, 20),
        (Part::Unpack, 5),
        (Part::Work, 165),
    ];
    assert_eq!(parts, expected);
    assert_eq!(path.len(), 500);
    // 10 of packing and posting came before the message; 20 of waiting are the message itself.
    assert_eq!((path.send_first, path.overlap), (10, 20));
}

#[test]
fn a_window_with_two_rounds_has_three_ranks_at_most() {
    let meeting = meeting(&[(0, 900), (0, 800), (0, 700)], 2);
    let rounds = [
        round(0, 0, 50, 80, Some(2)),
        round(0, 1, 100, 600, Some(1)),
        round(1, 0, 60, 400, Some(2)),
        round(1, 1, 580, 610, Some(0)),
        round(2, 0, 380, 410, Some(0)),
        round(2, 1, 420, 450, Some(0)),
    ];
    let path = critical(&meeting, &rounds, 2).expect("complete");
    assert_eq!(ranks_of(&path), [2, 1, 0]);
    assert_eq!(path.len(), 900);
    assert_eq!(path.ranks().len(), 2 + 1);
}

#[test]
fn missing_and_contradicting_records_are_named() {
    let two = meeting(&[(0, 500), (0, 450)], 1);
    let known = round(0, 0, 100, 330, Some(1));
    let missing = critical(&two, &[known], 2).expect_err("rank 1's round");
    assert_eq!(missing.what, "round 0 of rank 1 is missing");
    let late = critical(&two, &[known, round(1, 0, 340, 360, Some(0))], 2);
    let late = late.expect_err("from the future").what;
    assert!(late.contains("before that had begun to post"), "{late}");
    // Posted first of several, it may arrive before all of them are posted.
    let early = critical(&two, &[known, round(1, 0, 325, 360, Some(0))], 2).expect("possible");
    assert_eq!((ranks_of(&early), early.len()), (vec![1, 0], 500));
    let stranger = round(0, 0, 100, 330, Some(7));
    let stranger = critical(&two, &[stranger], 2).expect_err("no such rank");
    assert!(stranger.what.contains("rank 7"), "{}", stranger.what);
    let mut uneven = meeting(&[(0, 500), (0, 450)], 1);
    uneven.ranks[1].rounds = 2;
    assert!(critical(&uneven, &[], 2).is_err());
}

/// Rounds in which any of several ranks may wait for any other: the theorem holds for all of them.
#[test]
fn no_path_has_more_ranks_than_rounds_allow() {
    let mut seed = 7u64;
    let mut draw = |end: i64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) % end as u64) as i64
    };
    for case in 0..500 {
        let (n, k_end) = (2 + draw(6) as u32, draw(5) as u32);
        let mut now = vec![0i64; n as usize];
        let mut rounds = Vec::new();
        for k in 0..k_end {
            now.iter_mut().for_each(|now| *now += draw(1000));
            let begins = now.clone();
            for rank in 0..n {
                let from = (rank + 1 + draw(i64::from(n) - 1) as u32) % n;
                let own = begins[rank as usize] + 30;
                let last = own.max(begins[from as usize] + 10 + draw(50));
                rounds.push(round(rank, k, begins[rank as usize], last, Some(from)));
                now[rank as usize] = last + 5;
            }
        }
        let ends: Vec<(i64, i64)> = now.iter().map(|now| (0, now + 1 + draw(1000))).collect();
        let path = critical(&meeting(&ends, k_end), &rounds, 2)
            .unwrap_or_else(|v| panic!("{case}: {v:?}"));
        assert!(path.ranks().len() <= k_end as usize + 1, "{case}: {path:?}");
        let end = ends.iter().map(|end| end.1).max();
        assert_eq!(Some(path.len()), end, "{case}: {path:?}");
        assert!(
            path.pieces.is_sorted_by_key(|piece| piece.begin),
            "{case}: {path:?}"
        );
    }
}

/// All paths of a machine that works in this order.
fn paths_of(machine: Machine, order: Order) -> Paths {
    of_run(&Machine { order, ..machine }.run(), &[])
}

#[test]
fn what_posting_first_would_save_is_seen_where_copies_come_first_and_is_gained_where_they_do_not() {
    let (mut gained, mut promised) = (0, 0);
    for seed in 0..300 {
        let machine = Machine {
            n_ranks: 2 + seed as u32 % 7,
            n_rounds: 1 + seed as u32 % 3,
            n_steps: 4,
            order: Order::SendsFirst,
            seed,
        };
        let sends = paths_of(machine, Order::SendsFirst);
        let copies = paths_of(machine, Order::CopiesFirst);
        assert_eq!((sends.violations.len(), copies.violations.len()), (0, 0));
        assert_eq!(
            sends.send_first, 0,
            "nothing comes before the messages: {machine:?}"
        );
        assert!(sends.len <= copies.len, "{machine:?}");
        // With one round the rest of the path is the same in both orders, so the promise is a bound.
        if machine.n_rounds == 1 {
            let gain = copies.len - sends.len;
            assert!(
                gain <= copies.send_first,
                "{machine:?}: {gain} {}",
                copies.send_first
            );
        }
        gained += copies.len - sends.len;
        promised += copies.send_first;
    }
    let kept = gained as f64 / promised as f64;
    // Other paths are often nearly as long.
    assert!(
        (0.2..=1.0).contains(&kept),
        "{kept} of what was promised is gained"
    );
}
