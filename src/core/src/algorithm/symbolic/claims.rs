//! Proving a row of the registry, and the numbers that its documentation promises.

use super::geometry::{Delivery, Fault, Geometry, Memory};
use super::postcondition::{self, Operands};
use super::world::{World, run};
use crate::algorithm::plan::Plan;
use crate::algorithm::program::Program;
use crate::algorithm::registry::{InPlace, Lengths, Parameter, Row};
use crate::algorithm::schedule::{Case, WINDOW};
use crate::need::Need;

/// Whether the row's schedule exists for that many ranks.
pub fn fits(row: &Row, n_ranks: usize) -> bool {
    row.fits(n_ranks)
}

fn operands(row: &Row) -> Operands {
    if row.needs.contains(&Need::Commutative) {
        Operands::AnyOrder
    } else {
        Operands::InRankOrder
    }
}

/// The programs of all ranks of one case.
pub fn programs(row: &Row, case: Case, memory: Memory) -> Vec<Program> {
    let blocks = row.pattern.blocks(case.n_ranks);
    let program = |rank| {
        let schedule = (row.schedule)(Case { rank, ..case });
        let plan = match memory {
            Memory::Separate => Plan::new(schedule),
            Memory::Shared => Plan::in_place(schedule, row.pattern, rank, case.root),
        };
        Program::new(&plan, blocks)
    };
    (0..case.n_ranks).map(program).collect()
}

/// Runs one case with blocks of the given lengths and compares the end with the postcondition.
pub fn verify(
    row: &Row,
    programs: &[Program],
    case: Case,
    blocks: &[u64],
    memory: Memory,
    delivery: Delivery,
) -> Result<World, Fault> {
    let geometry = Geometry {
        pattern: row.pattern,
        n_ranks: case.n_ranks,
        root: case.root,
        parts_per_block: programs[0].parts_per_block as usize,
        blocks,
        memory,
    };
    let world = run(programs, geometry, delivery)?;
    postcondition::check(&world, &geometry, operands(row))?;
    Ok(world)
}

/// The lengths of blocks to try: long ones, fewer elements than chunks, one element, none, and
/// for irregular rows all of that mixed.
fn block_lengths(row: &Row, case: Case, parts: usize) -> Vec<Vec<u64>> {
    let n_blocks = row.pattern.blocks(case.n_ranks);
    let parts = parts as u64;
    let mut lengths = vec![2 * parts + 1, parts.saturating_sub(1), 1, 0];
    lengths.dedup();
    let mut all: Vec<Vec<u64>> = lengths.iter().map(|&len| vec![len; n_blocks]).collect();
    if row.lengths == Lengths::Any && n_blocks > 1 {
        let mixed = |block| [3 * parts, 0, 1, parts + 1][(block * 7 + case.root) % 4];
        all.push((0..n_blocks).map(mixed).collect());
    }
    all
}

fn cases(row: &Row, n_ranks: usize, roots: &[usize]) -> Vec<Case> {
    let mut cases: Vec<Case> = roots
        .iter()
        .map(|&root| Case {
            root,
            ..Case::new(0, n_ranks)
        })
        .collect();
    for parameter in row.parameters {
        let vary = |case: &Case| -> Vec<Case> {
            let case = *case;
            match parameter {
                // More than a window of them where that is quick.
                Parameter::Segsize(..) => [1, 2, 5, 2 * WINDOW + 3]
                    .into_iter()
                    .filter(|&segments| segments <= 5 || case.n_ranks <= 6)
                    .map(|segments| Case { segments, ..case })
                    .collect(),
                Parameter::Radix(radixes) => {
                    let odd = [3].iter().chain(*radixes);
                    odd.map(|&radix| Case { radix, ..case }).collect()
                }
                Parameter::Window(_) => [1, 3].map(|window| Case { window, ..case }).to_vec(),
            }
        };
        cases = cases.iter().flat_map(vary).collect();
    }
    cases
}

/// Whether the long proof was asked for.
fn long() -> bool {
    std::env::var_os("COLLTUNE_LONG").is_some_and(|value| value == "1")
}

/// Proves the row at every size to 17 with every root and at chosen larger ones to 64, or to 33 where a root holds the
/// blocks of all ranks for all; with `COLLTUNE_LONG=1` at every size to 64 with every root.
///
/// # Panics
/// At the first fault, naming the case.
pub fn prove(row: &Row) {
    let sizes: Vec<usize> = if long() {
        (1..=64).collect()
    } else {
        (1..=17).chain([24, 31, 32, 33, 63, 64]).collect()
    };
    // That takes most of the time of all proofs.
    let most = match row.needs.contains(&Need::FewRanks) && !long() {
        true => 33,
        false => 64,
    };
    let mut proved = 0;
    for n_ranks in sizes.into_iter().filter(|&n| n <= most && fits(row, n)) {
        let roots: Vec<usize> = match row.pattern.has_root() {
            false => vec![0],
            true if n_ranks <= 17 || long() => (0..n_ranks).collect(),
            true => vec![0, n_ranks / 2 - 1, n_ranks - 1],
        };
        for (index, case) in cases(row, n_ranks, &roots).into_iter().enumerate() {
            prove_case(row, case, index);
            proved += 1;
        }
    }
    assert!(proved > 5, "{}: no size fits the row's needs", row.name);
}

fn prove_case(row: &Row, case: Case, index: usize) {
    prove_memory(row, case, index, Memory::Separate);
    if row.in_place == InPlace::Shared {
        prove_memory(row, case, index, Memory::Shared);
    }
}

fn prove_memory(row: &Row, case: Case, index: usize, memory: Memory) {
    let programs = programs(row, case, memory);
    let lengths = block_lengths(row, case, programs[0].parts_per_block as usize);
    for (nth, blocks) in lengths.iter().enumerate() {
        // The long message meets every order where that is quick, the rest take turns.
        let every = nth == 0 && case.n_ranks <= if long() { 17 } else { 9 };
        let turn = Delivery::ALL[(index + nth) % Delivery::ALL.len()];
        for delivery in Delivery::ALL.into_iter().filter(|&d| every || d == turn) {
            let verdict = verify(row, &programs, case, blocks, memory, delivery);
            if let Err(fault) = verdict {
                panic!(
                    "{:?} {}: {case:?}, {blocks:?} elements, {memory:?}, {delivery:?}: {fault:?}",
                    row.pattern, row.name
                );
            }
        }
    }
}

/// One case at its end: a message of `elements` elements in every block.
///
/// # Panics
/// At a fault, naming the case.
pub fn ended(row: &Row, case: Case, elements: u64) -> World {
    let programs = programs(row, case, Memory::Separate);
    let blocks = vec![elements; row.pattern.blocks(case.n_ranks)];
    let (memory, delivery) = (Memory::Separate, Delivery::InTime);
    let verdict = verify(row, &programs, case, &blocks, memory, delivery);
    verdict.unwrap_or_else(|fault| panic!("{}: {case:?}: {fault:?}", row.name))
}

/// What one case costs: a message of `elements` elements in every block, and every number that a
/// documentation may promise.
pub fn cost(row: &Row, case: Case, elements: u64) -> Cost {
    let world = ended(row, case, elements);
    let most = |per_rank: &[u64]| per_rank.iter().copied().max().unwrap_or(0);
    Cost {
        rounds: world.rounds as usize,
        messages: world.messages.iter().copied().max().unwrap_or(0),
        elements: most(&world.elements),
        reduced: most(&world.reduced),
        all_messages: world.messages.iter().sum(),
        all_elements: world.elements.iter().sum(),
    }
}

/// See [`World`]; `messages`, `elements` and `reduced` are those of the rank that has most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub rounds: usize,
    pub messages: usize,
    pub elements: u64,
    pub reduced: u64,
    pub all_messages: usize,
    pub all_elements: u64,
}

/// ceil(log_radix(n)).
pub fn log_ceil(n: usize, radix: usize) -> usize {
    let mut reach = 1;
    let mut rounds = 0;
    while reach < n {
        reach *= radix;
        rounds += 1;
    }
    rounds
}
