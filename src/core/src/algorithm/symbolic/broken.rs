//! The checker checked: schedules with one thing wrong, and the fault that each must be found by.

use super::geometry::{Delivery, Geometry, Memory, Wrong};
use super::postcondition::{self, Operands};
use super::world::{World, run};
use crate::algorithm::pattern::Pattern;
use crate::algorithm::plan::{Instruction, PartsRange, Plan};
use crate::algorithm::program::{Operation, Program};
use crate::algorithm::schedule::{Buffer, Order, Part, Schedule, Step, Temporary};

fn chunk(buffer: Buffer, index: usize) -> Part {
    Part::range(buffer, index, 1)
}

const IN: Buffer = Buffer::Input;
const OUT: Buffer = Buffer::Output;
const TEMPORARY: Buffer = Buffer::Temporary(0);

/// An allreduce of one chunk on two ranks, right: what rank 0 has is the first operand on both.
fn exchange(rank: usize) -> Vec<Step> {
    let peer = 1 - rank;
    let (held, received) = match rank {
        0 => (TEMPORARY, OUT),
        _ => (OUT, TEMPORARY),
    };
    vec![
        Step::copy(chunk(IN, 0), chunk(held, 0)),
        Step::send(peer, chunk(held, 0)),
        Step::receive(peer, chunk(received, 0)),
        Step::reduce(chunk(TEMPORARY, 0), chunk(OUT, 0), Order::SourceFirst),
    ]
}

fn plan(parts: usize, steps: Vec<Step>) -> Plan {
    Plan::new(Schedule::new(parts, steps.into_iter()).temporary(Temporary::whole(parts)))
}

fn check(plans: &[Plan], operands: Operands, delivery: Delivery) -> Result<World, Wrong> {
    let programs: Vec<Program> = plans.iter().map(|plan| Program::new(plan, 1)).collect();
    check_programs(&programs, operands, delivery)
}

fn check_programs(
    programs: &[Program],
    operands: Operands,
    delivery: Delivery,
) -> Result<World, Wrong> {
    let geometry = Geometry {
        pattern: Pattern::Allreduce,
        n_ranks: programs.len(),
        root: 0,
        parts_per_block: programs[0].parts_per_block as usize,
        blocks: &[5],
        memory: Memory::Separate,
    };
    let world = run(programs, geometry, delivery).map_err(|fault| fault.what)?;
    postcondition::check(&world, &geometry, operands).map_err(|fault| fault.what)?;
    Ok(world)
}

/// What the checker says of the right plans of both ranks after `harm` has been done to them.
fn verdict(harm: impl Fn(&mut Plan, usize), delivery: Delivery) -> Option<Wrong> {
    let mut plans: Vec<Plan> = (0..2).map(|rank| plan(1, exchange(rank))).collect();
    for (rank, plan) in plans.iter_mut().enumerate() {
        harm(plan, rank);
    }
    check(&plans, Operands::InRankOrder, delivery).err()
}

fn found(steps: impl Fn(usize) -> Vec<Step>) -> Option<Wrong> {
    let plans: Vec<Plan> = (0..2).map(|rank| plan(1, steps(rank))).collect();
    let verdict = check(&plans, Operands::InRankOrder, Delivery::InTime).err();
    for delivery in Delivery::ALL {
        let other = check(&plans, Operands::InRankOrder, delivery).err();
        assert_eq!(other.is_some(), verdict.is_some(), "{delivery:?}");
    }
    verdict
}

#[test]
fn the_right_one_passes() {
    assert_eq!(found(exchange), None);
}

#[test]
fn a_message_without_partner_is_found() {
    let no_receive = |rank: usize| {
        let mut steps = exchange(rank);
        if rank == 0 {
            steps.drain(2..);
        }
        steps
    };
    let plans: Vec<Plan> = (0..2).map(|rank| plan(1, no_receive(rank))).collect();
    let buffered = check(&plans, Operands::InRankOrder, Delivery::Buffered).err();
    assert_eq!(buffered, Some(Wrong::Unmatched));
    assert_eq!(found(no_receive), Some(Wrong::Deadlock));
    let no_send = |rank: usize| {
        let mut steps = exchange(rank);
        if rank == 0 {
            steps.remove(1);
        }
        steps
    };
    assert_eq!(found(no_send), Some(Wrong::Deadlock));
}

#[test]
fn a_deadlock_under_rendezvous_is_found_though_buffers_would_hide_it() {
    // Each rank waits for its send before it posts its receive.
    let blocking = |plan: &mut Plan, _| {
        let is_send = |i: &Instruction| matches!(i, Instruction::Send { .. });
        let is_receive = |i: &Instruction| matches!(i, Instruction::Receive { .. });
        let at = |plan: &Plan, is: &dyn Fn(&Instruction) -> bool| {
            plan.instructions.iter().position(is).unwrap()
        };
        let receive = plan.instructions.remove(at(plan, &is_receive));
        let send = at(plan, &is_send);
        let Instruction::Send { request, .. } = plan.instructions[send] else {
            unreachable!()
        };
        let wait = Instruction::Wait { request };
        plan.instructions.retain(|instruction| *instruction != wait);
        plan.instructions
            .splice(send + 1..send + 1, [wait, receive]);
    };
    assert_eq!(verdict(blocking, Delivery::Buffered), None);
    for delivery in [
        Delivery::InTime,
        Delivery::LowestFirst,
        Delivery::HighestFirst,
    ] {
        assert_eq!(verdict(blocking, delivery), Some(Wrong::Deadlock));
    }
}

#[test]
fn ends_of_different_length_are_found() {
    let one_more = |rank: usize| {
        let peer = 1 - rank;
        let len = 1 + rank;
        vec![
            Step::copy(Part::range(IN, 0, 2), Part::range(OUT, 0, 2)),
            Step::send(peer, Part::range(OUT, 0, len)),
            Step::receive(peer, Part::range(TEMPORARY, 0, len)),
        ]
    };
    let plans: Vec<Plan> = (0..2).map(|rank| plan(2, one_more(rank))).collect();
    let verdict = check(&plans, Operands::InRankOrder, Delivery::InTime).err();
    assert_eq!(verdict, Some(Wrong::Length));
}

#[test]
fn messages_of_one_pair_that_cross_are_found() {
    // Chunks 0 and 1 of 5 elements are 3 and 2 long; the receiver expects them the other way.
    let crossed = |rank: usize| {
        let [first, second] = if rank == 0 { [0, 1] } else { [1, 0] };
        let peer = 1 - rank;
        vec![
            Step::copy(Part::range(IN, 0, 2), Part::range(OUT, 0, 2)),
            Step::send(peer, chunk(OUT, first)),
            Step::send(peer, chunk(OUT, second)),
            Step::receive(peer, chunk(TEMPORARY, first)),
            Step::receive(peer, chunk(TEMPORARY, second)),
        ]
    };
    let plans: Vec<Plan> = (0..2).map(|rank| plan(2, crossed(rank))).collect();
    let verdict = check(&plans, Operands::InRankOrder, Delivery::InTime).err();
    assert_eq!(verdict, Some(Wrong::Length));
}

#[test]
fn a_chunk_read_before_it_is_written_is_found() {
    let no_copy = |rank| exchange(rank).split_off(1);
    assert_eq!(found(no_copy), Some(Wrong::Undefined));
    // What a reduction consumed is undefined too.
    let consumed = |rank: usize| {
        let mut steps = exchange(rank);
        steps[3] = Step::reduce(chunk(TEMPORARY, 0), chunk(OUT, 0), Order::SourceLast);
        steps.push(Step::copy(chunk(TEMPORARY, 0), chunk(OUT, 0)));
        steps
    };
    assert_eq!(found(consumed), Some(Wrong::Undefined));
}

#[test]
fn a_chunk_touched_while_a_message_uses_it_is_found() {
    // No wait before the reduction: it reads what is being received.
    let early = |plan: &mut Plan, _| {
        let waits = |i: &Instruction| !matches!(i, Instruction::Wait { .. });
        let (work, waits): (Vec<_>, Vec<_>) = plan.instructions.iter().partition(|i| waits(i));
        plan.instructions = work.into_iter().chain(waits).collect();
    };
    for delivery in Delivery::ALL {
        assert_eq!(verdict(early, delivery), Some(Wrong::InUse));
    }
    // The wait for the send comes after the reduction that overwrites what it reads.
    let overwritten = |plan: &mut Plan, _| {
        let send = plan.instructions.iter().find_map(|i| match i {
            Instruction::Send { request, .. } => Some(*request),
            _ => None,
        });
        let wait = Instruction::Wait {
            request: send.unwrap(),
        };
        plan.instructions.retain(|instruction| *instruction != wait);
        plan.instructions.push(wait);
    };
    for delivery in Delivery::ALL {
        assert_eq!(verdict(overwritten, delivery), Some(Wrong::InUse));
    }
}

#[test]
fn contributions_missing_twice_or_in_the_wrong_order_are_found() {
    let missing = |rank| exchange(rank)[..3].to_vec();
    assert_eq!(found(missing), Some(Wrong::Postcondition));
    let twice = |rank: usize| {
        let mut steps = exchange(rank);
        steps.push(Step::reduce(
            chunk(IN, 0),
            chunk(OUT, 0),
            Order::SourceFirst,
        ));
        steps
    };
    assert_eq!(found(twice), Some(Wrong::Postcondition));
    let swapped = |rank: usize| {
        let mut steps = exchange(rank);
        steps[3] = Step::reduce(chunk(TEMPORARY, 0), chunk(OUT, 0), Order::SourceLast);
        steps
    };
    assert_eq!(found(swapped), Some(Wrong::Postcondition));
    let plans: Vec<Plan> = (0..2).map(|rank| plan(1, swapped(rank))).collect();
    assert!(check(&plans, Operands::AnyOrder, Delivery::InTime).is_ok());
}

/// All ranks exchange all they have, and then each combines it in an order of its own.
fn all_exchange(rank: usize, combine: impl Fn(&dyn Fn(usize) -> Part) -> Vec<Step>) -> Plan {
    let n = 4;
    // What other ranks have comes into temporaries, from the lowest on.
    let place = |other: usize| match other {
        own if own == rank => chunk(OUT, 0),
        other => chunk(
            Buffer::Temporary((other - usize::from(other > rank)) as u8),
            0,
        ),
    };
    let mut steps = vec![Step::copy(chunk(IN, 0), chunk(OUT, 0))];
    let others = (1..n).map(|distance| (rank + distance) % n);
    steps.extend(others.flat_map(|other| {
        [
            Step::receive(other, place(other)),
            Step::send(other, chunk(OUT, 0)),
        ]
    }));
    steps.extend(combine(&place));
    let schedule = Schedule::new(1, steps.into_iter()).window(n);
    Plan::new((1..n).fold(schedule, |schedule, _| {
        schedule.temporary(Temporary::whole(1))
    }))
}

/// Of four floats 1e6, -1e6, 1e-2, 1e-2 rank 0 has ((a + b) + c) + d, and rank 2 b + c first.
#[test]
fn ranks_that_associate_by_their_own_numbers_are_found_though_the_order_of_operands_is_right() {
    let nearest_first = |rank: usize| {
        all_exchange(rank, |place| {
            let others = (0..rank).rev().chain(rank + 1..4);
            let reduce = |d| Step::reduce(place(d), place(rank), Order::of_peer(d, rank));
            others.map(reduce).collect()
        })
    };
    let plans: Vec<Plan> = (0..4).map(nearest_first).collect();
    for operands in [Operands::InRankOrder, Operands::AnyOrder] {
        let verdict = check(&plans, operands, Delivery::InTime).err();
        assert_eq!(verdict, Some(Wrong::Association), "{operands:?}");
    }
    let from_the_lowest = |rank: usize| {
        all_exchange(rank, |place| {
            let combine = (1..4).map(|d| Step::reduce(place(d - 1), place(d), Order::SourceFirst));
            let result = (rank < 3).then(|| Step::copy(place(3), place(rank)));
            combine.chain(result).collect()
        })
    };
    let plans: Vec<Plan> = (0..4).map(from_the_lowest).collect();
    assert!(check(&plans, Operands::InRankOrder, Delivery::InTime).is_ok());
}

/// An operation that commutes is carried out with the source first. The largest of zeros of both signs, or of a number
/// and of what is none, still depends on which is the first operand.
#[test]
fn ranks_that_exchange_the_operands_of_what_commutes_are_found() {
    let crossed = |rank: usize| {
        let peer = 1 - rank;
        vec![
            Step::copy(chunk(IN, 0), chunk(OUT, 0)),
            Step::send(peer, chunk(OUT, 0)),
            Step::receive(peer, chunk(TEMPORARY, 0)),
            Step::reduce(
                chunk(TEMPORARY, 0),
                chunk(OUT, 0),
                Order::of_peer(peer, rank),
            ),
        ]
    };
    assert_eq!(found(crossed), Some(Wrong::Association));
}

#[test]
fn chunks_of_different_places_are_not_combined() {
    let misplaced = |_| {
        vec![
            Step::copy(Part::range(IN, 0, 5), Part::range(OUT, 0, 5)),
            Step::reduce(chunk(IN, 0), chunk(OUT, 1), Order::SourceFirst),
        ]
    };
    let plans: Vec<Plan> = (0..2).map(|rank| plan(5, misplaced(rank))).collect();
    let verdict = check(&plans, Operands::AnyOrder, Delivery::InTime).err();
    assert_eq!(verdict, Some(Wrong::Misplaced));
}

#[test]
fn what_does_not_exist_or_must_not_be_written_is_found() {
    let beyond = |_| vec![Step::copy(chunk(IN, 0), chunk(OUT, 1))];
    assert_eq!(found(beyond), Some(Wrong::Chunk));
    let no_buffer = |_| vec![Step::copy(chunk(IN, 0), chunk(Buffer::Temporary(1), 0))];
    assert_eq!(found(no_buffer), Some(Wrong::Chunk));
    let input = |_| {
        vec![
            Step::copy(chunk(IN, 0), chunk(OUT, 0)),
            Step::copy(chunk(OUT, 0), chunk(IN, 0)),
        ]
    };
    assert_eq!(found(input), Some(Wrong::InputWritten));
    let consumed_input = |_| {
        vec![
            Step::copy(chunk(IN, 0), chunk(OUT, 0)),
            Step::reduce(chunk(IN, 0), chunk(OUT, 0), Order::SourceLast),
        ]
    };
    assert_eq!(found(consumed_input), Some(Wrong::InputWritten));
    // What the root of a bcast gets back has the right content.
    let root_gets_back = |rank: usize| match rank {
        0 => vec![
            Step::send(1, chunk(OUT, 0)),
            Step::receive(1, chunk(OUT, 0)),
        ],
        _ => vec![
            Step::receive(0, chunk(OUT, 0)),
            Step::send(0, chunk(OUT, 0)),
        ],
    };
    let programs = [0, 1].map(|rank| Program::new(&plan(1, root_gets_back(rank)), 1));
    let bcast = Geometry {
        pattern: Pattern::Bcast,
        n_ranks: 2,
        root: 0,
        parts_per_block: 1,
        blocks: &[5],
        memory: Memory::Separate,
    };
    let verdict = run(&programs, bcast, Delivery::InTime).err();
    assert_eq!(verdict.map(|fault| fault.what), Some(Wrong::InputWritten));
    let itself = |rank| vec![Step::send(rank, chunk(IN, 0))];
    assert_eq!(found(itself), Some(Wrong::Peer));
    let nobody = |_| vec![Step::send(2, chunk(IN, 0))];
    assert_eq!(found(nobody), Some(Wrong::Peer));
}

#[test]
fn requests_used_twice_or_never_waited_for_are_found() {
    let reused = |plan: &mut Plan, _| {
        for instruction in &mut plan.instructions {
            match instruction {
                Instruction::Receive { request, .. }
                | Instruction::Send { request, .. }
                | Instruction::Wait { request } => *request = 0,
                _ => {}
            }
        }
    };
    assert_eq!(verdict(reused, Delivery::InTime), Some(Wrong::Request));
    let forgotten = |plan: &mut Plan, _| {
        plan.n_requests += 1;
        let request = plan.n_requests as u32 - 1;
        let nothing = PartsRange { start: 0, len: 0 };
        let (to, from) = (1, 0);
        let post = match plan.instructions.iter().find_map(|i| match i {
            Instruction::Send { to, .. } => Some(*to),
            _ => None,
        }) {
            Some(peer) if peer == to => Instruction::Send {
                request,
                to,
                what: nothing,
            },
            _ => Instruction::Receive {
                request,
                from,
                into: nothing,
            },
        };
        plan.instructions.push(post);
    };
    assert_eq!(verdict(forgotten, Delivery::InTime), Some(Wrong::Request));
}

/// What the checker says of the right programs of both ranks after `harm` has been done to them.
fn verdict_on_programs(harm: impl Fn(&mut Program)) -> Option<Wrong> {
    let right = |rank| Program::new(&plan(1, exchange(rank)), 1);
    let mut programs: Vec<Program> = (0..2).map(right).collect();
    programs.iter_mut().for_each(harm);
    check_programs(&programs, Operands::InRankOrder, Delivery::InTime).err()
}

#[test]
fn what_compiling_a_plan_gets_wrong_is_found() {
    assert_eq!(verdict_on_programs(|_| {}), None);
    // One wait for all that stands too late.
    let late = |program: &mut Program| {
        let is_wait = |operation: &Operation| {
            matches!(operation, Operation::Wait { .. } | Operation::WaitAll)
        };
        program.operations.retain(|operation| !is_wait(operation));
        program.operations.push(Operation::WaitAll);
    };
    assert_eq!(verdict_on_programs(late), Some(Wrong::InUse));
    // The output is handed on before the reduction that completes it.
    let final_too_soon = |program: &mut Program| program.final_at[0] -= 1;
    assert_eq!(verdict_on_programs(final_too_soon), Some(Wrong::Late));
    // A temporary whose chunks are taken for others, of another length.
    let like_another = |program: &mut Program| {
        program.temporaries[0] = Temporary::Like {
            first: 1,
            chunks: 2,
        };
    };
    let right = |rank: usize| {
        let steps = vec![
            Step::copy(Part::range(IN, 0, 2), Part::range(OUT, 0, 2)),
            Step::copy(chunk(OUT, 0), chunk(TEMPORARY, 0)),
            Step::send(1 - rank, chunk(TEMPORARY, 0)),
            Step::receive(1 - rank, chunk(OUT, 0)),
        ];
        Program::new(&plan(2, steps), 1)
    };
    let mut programs: Vec<Program> = (0..2).map(right).collect();
    programs.iter_mut().for_each(like_another);
    let verdict = check_programs(&programs, Operands::AnyOrder, Delivery::InTime);
    assert!(matches!(
        verdict.err(),
        Some(Wrong::Misplaced | Wrong::Length | Wrong::Offset)
    ));
}

#[test]
fn a_barrier_that_one_rank_can_pass_alone_is_found() {
    let lone = |rank: usize| match rank {
        0 => vec![Step::send(1, crate::algorithm::schedule::Parts::None)],
        _ => vec![Step::receive(0, crate::algorithm::schedule::Parts::None)],
    };
    let program = |rank| Program::new(&plan(1, lone(rank)), 1);
    let programs: Vec<Program> = (0..2).map(program).collect();
    let geometry = Geometry {
        pattern: Pattern::Barrier,
        n_ranks: 2,
        root: 0,
        parts_per_block: 1,
        blocks: &[0],
        memory: Memory::Separate,
    };
    let world = run(&programs, geometry, Delivery::InTime).unwrap();
    let fault = postcondition::check(&world, &geometry, Operands::AnyOrder).unwrap_err();
    assert_eq!((fault.rank, fault.what), (0, Wrong::Postcondition));
}
