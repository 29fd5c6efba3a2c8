//! Every interleaving of the steps of small cases: no piece is overwritten before its last reader has it, or read
//! before it is there, and no rank waits for ever.

use std::collections::HashSet;
use std::convert::Infallible;

use super::between::Turn;
use super::blocks::Blocks;
use super::kind::Kind;
use super::layout::{Cut, Flag};
use super::phase::{MemoryStep, Phase, Units};

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
    in_place: bool,
    fixed_order: bool,
    calls: Vec<(Kind, u64)>,
}

/// Units of a piece: several for each rank's slice.
const UNITS: u64 = 6;

/// A step, and the ticket of the first piece of its call.
type Numbered = (u64, MemoryStep);

fn steps(case: &Case, place: usize) -> Vec<Numbered> {
    let mut steps = Vec::new();
    let mut first = 1;
    for &(kind, pieces) in &case.calls {
        let units = pieces * UNITS;
        let phase = Phase {
            kind,
            blocks: Blocks::One,
            units,
            cut: Cut {
                units,
                units_per_piece: UNITS,
                pieces,
            },
            turn: Turn::Forth,
            place,
            n_here: case.n,
            in_place: case.in_place,
            holed: false,
            arriving: false,
            fixed_order: case.fixed_order.then_some(0),
        };
        for piece in 0..pieces {
            let Ok(()) = phase.steps(piece, &mut |step| {
                let done = Flag::Done;
                match (case.telling, step) {
                    (Telling::Second, MemoryStep::Tell { flag, piece })
                        if flag == done && !(first + piece).is_multiple_of(2) => {}
                    _ => steps.push((first, step)),
                }
                Ok::<(), Infallible>(())
            });
        }
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
    /// The ticket of what lies in each cell.
    cells: Vec<u64>,
}

impl Rank {
    fn told(&self, flag: Flag) -> u64 {
        match flag {
            Flag::Filled => self.filled,
            Flag::Combined => self.combined,
            Flag::Done | Flag::ShortDone => self.done,
        }
    }
}

/// Whether the step may be taken.
fn ready(case: &Case, ranks: &[Rank], own: usize, (first, step): Numbered) -> bool {
    match step {
        MemoryStep::AwaitRoom { piece } => {
            let others = ranks.iter().enumerate().filter(|(rank, _)| *rank != own);
            others
                .map(|(_, rank)| rank.done)
                .all(|done| done + case.cells + case.early >= first + piece)
        }
        MemoryStep::Await { of, flag, piece } => ranks[of].told(flag) >= first + piece,
        MemoryStep::Fold { piece, .. } => {
            let mut others = ranks.iter().enumerate().filter(|(rank, _)| *rank != own);
            others.all(|(_, rank)| rank.filled >= first + piece)
        }
        _ => true,
    }
}

/// Takes it, and says the fault where it reads a piece that is not there. That a rank writes a cell at once hides
/// nothing: a rank that could read in the middle could read behind it, too.
fn take(
    case: &Case,
    ranks: &mut [Rank],
    own: usize,
    (first, step): Numbered,
) -> Result<(), String> {
    let place = |ticket: u64| (ticket % case.cells) as usize;
    match step {
        MemoryStep::Copy {
            piece, from, into, ..
        }
        | MemoryStep::Combine {
            piece, from, into, ..
        } => {
            let ticket = first + piece;
            if let Units::Cell { of, .. } = from {
                let found = ranks[of].cells[place(ticket)];
                if found != ticket {
                    return Err(format!(
                        "rank {own} wants {ticket} of {of} and finds {found}"
                    ));
                }
                // Who has combined its own slice wants those of the others.
                if ranks[own].combined >= ticket && ranks[of].combined < ticket {
                    return Err(format!("rank {own} wants {ticket} of {of} combined"));
                }
            }
            if let Units::Cell { of, .. } = into {
                if of != own {
                    return Err(format!("rank {own} writes in a cell of {of}"));
                }
                ranks[own].cells[place(ticket)] = ticket;
            }
        }
        MemoryStep::Fold { piece, into, .. } => {
            let ticket = first + piece;
            for (of, rank) in ranks.iter().enumerate().filter(|(of, _)| *of != own) {
                let found = rank.cells[place(ticket)];
                if found != ticket {
                    return Err(format!(
                        "rank {own} wants {ticket} of {of} and finds {found}"
                    ));
                }
            }
            if matches!(into, Units::Cell { of, .. } if of != own) {
                return Err(format!("rank {own} writes in another one's cell"));
            }
        }
        MemoryStep::Tell { flag, piece } => {
            let told = match flag {
                Flag::Filled => &mut ranks[own].filled,
                Flag::Combined => &mut ranks[own].combined,
                Flag::Done | Flag::ShortDone => &mut ranks[own].done,
            };
            *told = first + piece;
        }
        MemoryStep::AwaitRoom { .. } | MemoryStep::Await { .. } | MemoryStep::Arrive { .. } => {}
    }
    ranks[own].next += 1;
    Ok(())
}

fn explore(case: &Case) -> Result<usize, String> {
    let programs: Vec<_> = (0..case.n).map(|rank| steps(case, rank)).collect();
    explore_programs(case, &programs)
}

/// Follows every interleaving; what a state is follows from how far each rank has come.
fn explore_programs(case: &Case, programs: &[Vec<Numbered>]) -> Result<usize, String> {
    let fresh = Rank {
        cells: vec![0; case.cells as usize],
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
                    in_place: cells == 2,
                    fixed_order: cells == 3,
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
            for fixed_order in [false, true] {
                let case = Case {
                    n: 3,
                    cells: 2,
                    early: 0,
                    telling: Telling::Each,
                    in_place: true,
                    fixed_order,
                    calls: vec![(first, 1), (second, 2)],
                };
                explore(&case).unwrap_or_else(|fault| panic!("{first:?} and {second:?}: {fault}"));
            }
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
                in_place: false,
                fixed_order: false,
                calls: vec![(kind, 3)],
            })
        };
        assert!(explored(0).is_ok(), "{kind:?}: {:?}", explored(0));
        let fault = explored(1).err().unwrap_or_default();
        assert!(fault.contains("wants 1"), "{kind:?}: {fault:?}");
    }
}

/// Whether a rank reads in the cell that another one fills with a piece.
fn reads(steps: &[Numbered], filler: usize, filled: u64) -> bool {
    steps.iter().any(|(_, step)| match *step {
        MemoryStep::Copy { piece, from, .. } | MemoryStep::Combine { piece, from, .. } => {
            piece == filled && matches!(from, Units::Cell { of, .. } if of == filler)
        }
        _ => false,
    })
}

#[test]
fn a_wait_that_one_rank_leaves_out_is_found_out() {
    for kind in kinds() {
        let case = Case {
            n: 2,
            cells: 2,
            early: 0,
            telling: Telling::Each,
            in_place: false,
            fixed_order: false,
            calls: vec![(kind, 3)],
        };
        let all: Vec<_> = (0..case.n).map(|rank| steps(&case, rank)).collect();
        for rank in 0..case.n {
            for left_out in 0..all[rank].len() {
                let mut programs = all.clone();
                let step = programs[rank].remove(left_out);
                let found = explore_programs(&case, &programs);
                let matters = match step.1 {
                    // A rank that has heard of all slices knows that no rank reads in its cell any more.
                    MemoryStep::AwaitRoom { .. } if kind == (Kind::ReduceSliced { root: rank }) => {
                        false
                    }
                    // Nothing lay in the cells of the first pieces before.
                    MemoryStep::AwaitRoom { piece } => {
                        let lay_there = piece.checked_sub(case.cells);
                        lay_there.is_some_and(|piece| reads(&all[1 - rank], rank, piece))
                    }
                    // Others fill ahead, so who has seen more of one piece need not wait for the next.
                    MemoryStep::Await { piece, .. } => piece == 0,
                    _ => false,
                };
                assert!(
                    !matters || found.is_err(),
                    "{kind:?}: rank {rank} without {step:?}"
                );
            }
        }
    }
}
