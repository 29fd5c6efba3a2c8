//! Collectives among ranks of which one is on each node.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::memory::{Case, Content, Found};
use super::run::{Rank, World};
use crate::algorithm::pattern::Pattern;
use crate::algorithm::plan::Plan;
use crate::algorithm::program::Program;
use crate::algorithm::registry::Scheduled;
use crate::algorithm::schedule::Order;
use crate::algorithm::symbolic::{Delivery, Geometry, Memory, Sum, run as run_programs};
use crate::catalogue::Crossing;
use crate::collective::Collective;
use crate::node::stage::{Across, Among, At, Stage};

/// For each unit of a member's result which units of whose contribution it is; `None` where it is no result.
pub type Origin = Vec<Option<Content>>;

/// What the members of a collective get, by what it promises; of a reduction that it is one result for all.
pub fn promised(collective: Collective, n: usize, root: usize, units: u64) -> Vec<Origin> {
    let blocks = match collective {
        Collective::Allgather | Collective::Alltoall => n as u64,
        _ => 1,
    };
    let sum = |unit: u64| {
        let operands = (0..n).map(|from| Sum::Of((from, unit)));
        operands.reduce(|sum, next| Sum::both(sum, next, Order::SourceFirst))
    };
    let sums: Vec<Option<Content>> = match collective.is_reduction() {
        true => (0..units).map(sum).collect(),
        false => Vec::new(),
    };
    let origin = |member: usize, unit: u64| -> Option<Content> {
        match collective {
            Collective::Allreduce => sums[unit as usize].clone(),
            Collective::Reduce => sums[unit as usize].clone().filter(|_| member == root),
            Collective::Bcast => Some(Sum::Of((root, unit))),
            Collective::Allgather => Some(Sum::Of(((unit / units) as usize, unit % units))),
            _ => {
                let own = member as u64 * units + unit % units;
                Some(Sum::Of(((unit / units) as usize, own)))
            }
        }
    };
    (0..n)
        .map(|member| {
            (0..blocks * units)
                .map(|unit| origin(member, unit))
                .collect()
        })
        .collect()
}

thread_local! {
    /// What they get of a schedule, by all that it depends on: many cases have the same ones.
    static SCHEDULED: RefCell<HashMap<String, Found<Rc<[Origin]>>>> = RefCell::default();
}

/// What they get of a schedule.
fn scheduled(
    schedule: Scheduled,
    (n, root): (usize, usize),
    (units, unit_bytes): (u64, u64),
) -> Found<Rc<[Origin]>> {
    let key = format!("{schedule:?} {n} {root} {units} {unit_bytes}");
    let known = SCHEDULED.with_borrow(|all| all.get(&key).cloned());
    known.unwrap_or_else(|| {
        let found = run_schedule(schedule, (n, root), (units, unit_bytes)).map(Rc::from);
        SCHEDULED.with_borrow_mut(|all| all.insert(key, found.clone()));
        found
    })
}

fn run_schedule(
    schedule: Scheduled,
    (n, root): (usize, usize),
    (units, unit_bytes): (u64, u64),
) -> Found<Vec<Origin>> {
    let row = schedule.row();
    let n_blocks = row.pattern.blocks(n);
    let programs: Vec<Program> = (0..n)
        .map(|rank| {
            let case = row.case(rank, n, root, schedule.values, units * unit_bytes);
            Program::new(&Plan::new((row.schedule)(case)), n_blocks)
        })
        .collect();
    let blocks = vec![units; n_blocks];
    let geometry = Geometry {
        pattern: row.pattern,
        n_ranks: n,
        root,
        parts_per_block: programs[0].parts_per_block as usize,
        blocks: &blocks,
        memory: Memory::Separate,
    };
    let world = run_programs(&programs, geometry, Delivery::Alternating)
        .map_err(|fault| format!("{}: {fault:?}", row.name))?;
    let starts: Vec<u64> = (0..geometry.total_chunks())
        .scan(0, |start, chunk| {
            let this = *start;
            *start += geometry.len(chunk);
            Some(this)
        })
        .collect();
    let own_block = row.pattern == Pattern::Allgather;
    let of_member = |member: usize| {
        let output = world.output(member);
        let mut origin = Origin::new();
        for (chunk, content) in output.iter().enumerate() {
            for unit in 0..geometry.len(chunk) {
                let from = content.as_ref().map(|content| {
                    let at = |from: usize| match own_block {
                        true => starts[content.chunk] - from as u64 * units,
                        false => starts[content.chunk],
                    };
                    let from = content.sum.replaced(&mut |from| {
                        let from = usize::from(*from);
                        Found::Ok(Sum::Of((from, at(from) + unit)))
                    });
                    from.expect("nothing can go wrong")
                });
                origin.push(from);
            }
        }
        origin
    };
    Ok((0..n).map(of_member).collect())
}

/// Runs a collective among some ranks, once they have all come to it; whether they have.
pub fn cross(world: &mut World, rank: usize, mine: Across) -> Found<bool> {
    let case = world.case;
    let map = world.ranks[rank].map;
    let root = map.node_of[case.root];
    let members: Vec<usize> = match mine.among {
        Among::Lane => map.lane(map.place).collect(),
        Among::Leaders => {
            let mut leaders: Vec<usize> = map.nodes.iter().map(|ranks| ranks[0]).collect();
            leaders[root] = case.root;
            leaders
        }
    };
    if !members.contains(&rank) {
        return Err(format!("rank {rank} is none of {members:?}"));
    }
    let next = members
        .iter()
        .map(|member| world.ranks[*member].left.front());
    let parts = next.map(|stage| match stage {
        Some(Stage::Across(part)) if part.among == mine.among => Some(*part),
        _ => None,
    });
    let Some(parts) = parts.collect::<Option<Vec<_>>>() else {
        return Ok(false);
    };
    if parts.iter().any(|part| part.units != mine.units) {
        return Err(format!("messages of different length among {members:?}"));
    }
    meet(case, &mut world.ranks, (&members, &parts), root)?;
    Ok(true)
}

fn meet(
    case: &Case,
    ranks: &mut [Rank],
    (members, parts): (&[usize], &[Across]),
    root: usize,
) -> Found<()> {
    let (n, units) = (members.len(), parts[0].units);
    let origins = match case.own.crossing() {
        Some(Crossing::Schedule(schedule)) => {
            scheduled(schedule, (n, root), (units, case.unit_bytes))?
        }
        _ => promised(case.collective, n, root, units).into(),
    };
    let given = |member: usize| {
        let part = parts[member];
        part.given.unwrap_or(match case.collective {
            Collective::Allgather => At {
                unit: part.result.unit + member as u64 * units,
                ..part.result
            },
            _ => part.result,
        })
    };
    let mut results = Vec::new();
    for origin in origins.iter() {
        let result = origin.iter().map(|unit| {
            let Some(unit) = unit else { return Ok(None) };
            // A leader's message may have holes, where other nodes have more ranks.
            if let (Collective::Allgather | Collective::Alltoall, Sum::Of((member, unit))) =
                (case.collective, unit)
            {
                return ranks[members[*member]].buffers.read(given(*member), *unit);
            }
            let given = unit.replaced(&mut |(member, unit)| {
                ranks[members[*member]].buffers.take(given(*member), *unit)
            });
            given.map(Some)
        });
        results.push(result.collect::<Found<Vec<_>>>()?);
    }
    let by_library = matches!(case.own.crossing(), Some(Crossing::Library));
    for (member, result) in results.into_iter().enumerate() {
        let rank = &mut ranks[members[member]];
        for (unit, content) in (0..).zip(result) {
            // What a rank gets nothing of it leaves alone.
            if case.collective == Collective::Reduce && member != root {
                continue;
            }
            // Of the schedules it is proved that they write nothing there; the library may.
            if case.collective == Collective::Bcast && member == root && !by_library {
                continue;
            }
            rank.buffers.write(parts[member].result, unit, content)?;
        }
        rank.left.pop_front();
    }
    Ok(())
}
