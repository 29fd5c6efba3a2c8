//! Every interleaving of small cases: no piece is overwritten before its last reader has it, none
//! is read before it is there, and nobody waits for ever.

use std::collections::HashSet;

use super::act::{Act, Kind, acts};

/// The smallest steps of a rank; waits and writes as [`Act`] promises them.
#[derive(Clone, Copy, Debug)]
enum Step {
    AwaitDone {
        ticket: u64,
    },
    AwaitFilled {
        rank: usize,
        ticket: u64,
    },
    AwaitCombined {
        rank: usize,
        ticket: u64,
    },
    /// The cell is in the writer's hands between the two.
    BeginWrite {
        ticket: u64,
    },
    EndWrite {
        ticket: u64,
    },
    Read {
        rank: usize,
        ticket: u64,
    },
    TellFilled {
        ticket: u64,
    },
    TellCombined {
        ticket: u64,
    },
    TellDone {
        ticket: u64,
    },
}

/// How often a rank tells that it is done.
#[derive(Clone, Copy, Debug)]
enum Telling {
    /// Of every piece.
    Each,
    /// Of every second one, as of short messages.
    Second,
}

struct Case {
    n: usize,
    cells: u64,
    /// By how many pieces a rank reuses a cell too early: none, but for a fault.
    early: u64,
    telling: Telling,
    calls: Vec<(Kind, u64)>,
}

fn steps(case: &Case, rank: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut first = 1;
    let others = || (0..case.n).filter(move |other| *other != rank);
    for &(kind, pieces) in &case.calls {
        let ticket_of = |piece: u64| first + piece;
        let visit = |act: Act| -> Result<(), ()> {
            match act {
                Act::Fill { piece } => {
                    let ticket = ticket_of(piece);
                    let write = [
                        Step::AwaitDone { ticket },
                        Step::BeginWrite { ticket },
                        Step::EndWrite { ticket },
                        Step::TellFilled { ticket },
                    ];
                    steps.extend(write);
                }
                Act::Take { piece, from } => {
                    let (rank, ticket) = (from, ticket_of(piece));
                    steps.extend([
                        Step::AwaitFilled { rank, ticket },
                        Step::Read { rank, ticket },
                    ]);
                }
                Act::Fold { piece } | Act::Combine { piece } => {
                    let ticket = ticket_of(piece);
                    for rank in others() {
                        steps.extend([
                            Step::AwaitFilled { rank, ticket },
                            Step::Read { rank, ticket },
                        ]);
                    }
                    if matches!(act, Act::Combine { .. }) {
                        steps.push(Step::TellCombined { ticket });
                    }
                }
                Act::Collect { piece } => {
                    let ticket = ticket_of(piece);
                    for rank in others() {
                        steps.extend([
                            Step::AwaitCombined { rank, ticket },
                            Step::Read { rank, ticket },
                        ]);
                    }
                }
                Act::Done { piece } => {
                    let ticket = ticket_of(piece);
                    match case.telling {
                        Telling::Second if !ticket.is_multiple_of(2) => {}
                        _ => steps.push(Step::TellDone { ticket }),
                    }
                }
            }
            Ok(())
        };
        acts(kind, rank, case.n, pieces, visit).unwrap();
        first += pieces;
    }
    steps
}

#[derive(Clone, Default)]
struct Rank {
    next: usize,
    filled: u64,
    combined: u64,
    done: u64,
    /// What lies in each cell; `None` while it is written.
    cells: Vec<Option<u64>>,
}

/// Whether the step may be taken, and the fault where it reads what is not there.
fn ready(case: &Case, ranks: &[Rank], own: usize, step: Step) -> bool {
    match step {
        Step::AwaitDone { ticket } => {
            let others = ranks.iter().enumerate().filter(|(rank, _)| *rank != own);
            others
                .map(|(_, rank)| rank.done)
                .all(|done| done + case.cells + case.early >= ticket)
        }
        Step::AwaitFilled { rank, ticket } => ranks[rank].filled >= ticket,
        Step::AwaitCombined { rank, ticket } => ranks[rank].combined >= ticket,
        _ => true,
    }
}

fn take(case: &Case, ranks: &mut [Rank], own: usize, step: Step) -> Result<(), String> {
    let place = |ticket: u64| (ticket % case.cells) as usize;
    match step {
        Step::BeginWrite { ticket } => ranks[own].cells[place(ticket)] = None,
        Step::EndWrite { ticket } => ranks[own].cells[place(ticket)] = Some(ticket),
        Step::TellFilled { ticket } => ranks[own].filled = ticket,
        Step::TellCombined { ticket } => ranks[own].combined = ticket,
        Step::TellDone { ticket } => ranks[own].done = ticket,
        Step::Read { rank, ticket } => {
            let found = ranks[rank].cells[place(ticket)];
            if found != Some(ticket) {
                return Err(format!(
                    "rank {own} wants {ticket} of {rank} and finds {found:?}"
                ));
            }
        }
        _ => {}
    }
    ranks[own].next += 1;
    Ok(())
}

/// Follows every interleaving; what a state is follows from how far each rank has come.
fn explore(case: &Case) -> Result<usize, String> {
    let programs: Vec<Vec<Step>> = (0..case.n).map(|rank| steps(case, rank)).collect();
    let fresh = Rank {
        cells: vec![Some(0); case.cells as usize],
        ..Rank::default()
    };
    let mut open = vec![vec![fresh; case.n]];
    let mut seen = HashSet::new();
    while let Some(state) = open.pop() {
        let places: Vec<usize> = state.iter().map(|rank| rank.next).collect();
        if !seen.insert(places) {
            continue;
        }
        let mut moved = false;
        for own in 0..case.n {
            let Some(&step) = programs[own].get(state[own].next) else {
                continue;
            };
            if ready(case, &state, own, step) {
                let mut next = state.clone();
                take(case, &mut next, own, step)?;
                open.push(next);
                moved = true;
            }
        }
        let ended = (0..case.n).all(|own| state[own].next == programs[own].len());
        if !moved && !ended {
            return Err("all ranks wait".to_owned());
        }
    }
    Ok(seen.len())
}

fn kinds() -> Vec<Kind> {
    vec![
        Kind::Bcast { root: 0 },
        Kind::Bcast { root: 1 },
        Kind::AllreduceWhole,
        Kind::AllreduceSliced,
        Kind::ReduceWhole { root: 0 },
        Kind::ReduceWhole { root: 1 },
        Kind::ReduceSliced { root: 1 },
        Kind::Exchange { givers: 3 },
        Kind::Exchange { givers: 1 },
        Kind::ReduceScatter { lanes: 1 },
        Kind::ReduceScatter { lanes: 2 },
        Kind::Gather { root: 1, lanes: 1 },
        Kind::Gather { root: 1, lanes: 2 },
        Kind::Gather { root: 0, lanes: 2 },
    ]
}

#[test]
fn two_ranks_never_read_a_wrong_piece_nor_wait_for_ever() {
    for first in kinds() {
        for second in kinds() {
            let calls = vec![(first, 3), (second, 2), (first, 1), (second, 3)];
            for (cells, telling) in [(2, Telling::Each), (3, Telling::Each), (4, Telling::Second)] {
                let calls = calls.clone();
                let case = Case {
                    n: 2,
                    cells,
                    early: 0,
                    telling,
                    calls,
                };
                let states = explore(&case).unwrap_or_else(|fault| {
                    panic!("{first:?} and {second:?} in {cells} cells, told {telling:?}: {fault}")
                });
                assert!(states > 50);
            }
        }
    }
}

#[test]
fn three_ranks_never_read_a_wrong_piece_nor_wait_for_ever() {
    for first in kinds() {
        for second in kinds() {
            let case = Case {
                n: 3,
                cells: 2,
                early: 0,
                telling: Telling::Each,
                calls: vec![(first, 1), (second, 2)],
            };
            explore(&case).unwrap_or_else(|fault| panic!("{first:?} and {second:?}: {fault}"));
        }
    }
}

#[test]
fn a_ring_that_is_reused_too_early_is_found_out() {
    for kind in kinds() {
        // The third piece goes where the first one lies.
        let explored = |early| {
            explore(&Case {
                n: 2,
                cells: 2,
                early,
                telling: Telling::Each,
                calls: vec![(kind, 3)],
            })
        };
        assert!(explored(0).is_ok(), "{kind:?}: {:?}", explored(0));
        let fault = explored(1).err().unwrap_or_default();
        assert!(fault.contains("wants 1"), "{kind:?}: {fault:?}");
    }
}
