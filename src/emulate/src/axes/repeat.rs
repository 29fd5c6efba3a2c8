//! Steps that are like the step before them are not gone through again.
//!
//! Where operations are the same and every rank begins as far from the others as it did then, a step takes what that
//! one took, to rounding: gates and exchanges know of differences of times alone.

use std::sync::Arc;

use super::Axes;
use crate::program::{Operation, Phase};

/// So far, as a share of the time that has passed, may rounding lead.
const ROUNDING: f64 = 1e-12;

/// Where ranks and ports stand, from the earliest rank on.
#[derive(Clone, Debug, PartialEq)]
struct Standing {
    ranks: Vec<f64>,
    ports: [Vec<f64>; 4],
}

/// A step that was gone through.
#[derive(Clone, Debug)]
struct Step {
    operations: Vec<Operation>,
    began: Standing,
    took: f64,
    spent: Vec<[f64; Phase::ALL.len()]>,
}

/// Remembers the last step.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    last: Option<Step>,
    /// Steps that were not gone through.
    pub n_skipped: u64,
}

impl Repeats {
    /// Goes through a step, or takes what the last one took; `act` lets an operation happen. Says how many operations,
    /// from the first, were not gone through.
    ///
    /// Errors: those of `act`.
    pub fn step<E>(
        &mut self,
        axes: &mut Axes,
        operations: &[Operation],
        mut act: impl FnMut(&mut Axes, &Operation) -> Result<(), E>,
    ) -> Result<usize, E> {
        if axes.cores.is_some() || axes.stops.is_some() {
            // Whose turn it is, and when the next stop comes, is in no standing.
            operations
                .iter()
                .try_for_each(|operation| act(axes, operation))?;
            return Ok(0);
        }
        let began = axes.standing();
        let same = self.last.as_ref().filter(|last| {
            let n = last.operations.len();
            n <= operations.len()
                && last
                    .operations
                    .iter()
                    .zip(operations)
                    .all(|(a, b)| is_same(a, b))
                && is_near(&last.began, &began, ROUNDING * axes.makespan())
        });
        if let Some(last) = same {
            let n = last.operations.len();
            axes.shift(last.took, &last.spent);
            self.n_skipped += 1;
            // What this step has beyond the last one: a refinement.
            for operation in &operations[n..] {
                act(axes, operation)?;
            }
            return Ok(n);
        }
        let (clock, spent) = (axes.earliest(), axes.spent.clone());
        for operation in operations {
            act(axes, operation)?;
        }
        // A step whose ranks end otherwise than they began is followed by one that is not like it.
        let ended = axes.standing();
        let stands = !operations.is_empty() && is_near(&began, &ended, ROUNDING * axes.makespan());
        self.last = stands.then(|| Step {
            operations: operations.to_vec(),
            began,
            took: axes.earliest() - clock,
            spent: axes
                .spent
                .iter()
                .zip(&spent)
                .map(|(now, before)| std::array::from_fn(|phase| now[phase] - before[phase]))
                .collect(),
        });
        Ok(0)
    }
}

fn is_near(a: &Standing, b: &Standing, by: f64) -> bool {
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= by);
    let mut ports = a.ports.iter().zip(&b.ports);
    near(&a.ranks, &b.ranks) && ports.all(|(a, b)| near(a, b))
}

/// Whether both do the same to every rank.
fn is_same(a: &Operation, b: &Operation) -> bool {
    match (a, b) {
        (Operation::Exchange(a), Operation::Exchange(b)) => Arc::ptr_eq(a, b),
        (
            Operation::Work { phase, time_ns },
            Operation::Work {
                phase: other,
                time_ns: others,
            },
        ) => phase == other && (Arc::ptr_eq(time_ns, others) || time_ns == others),
        (
            Operation::Alike { phase, time_ns },
            Operation::Alike {
                phase: other,
                time_ns: others,
            },
        ) => phase == other && time_ns == others,
        (Operation::Collective(a), Operation::Collective(b)) => a == b,
        _ => false,
    }
}

impl Axes<'_> {
    fn earliest(&self) -> f64 {
        self.clocks.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn standing(&self) -> Standing {
        let earliest = self.earliest();
        Standing {
            ranks: self.clocks.iter().map(|clock| clock - earliest).collect(),
            ports: self.ports.ahead_of(earliest),
        }
    }

    /// Lets every rank spend this, which takes all of them `took`.
    fn shift(&mut self, took: f64, spent: &[[f64; Phase::ALL.len()]]) {
        for clock in self.clocks.iter_mut().chain(&mut self.ready) {
            *clock += took;
        }
        self.ports.shift(took);
        for (sum, spent) in self.spent.iter_mut().zip(spent) {
            sum.iter_mut()
                .zip(spent)
                .for_each(|(sum, more)| *sum += more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::{Meeting, Network};
    use crate::cost::PhaseCosts;
    use crate::machine::preset;
    use crate::program::{Call, Exchange, Message};
    use colltune_amr::telemetry::{Freight, Meeting as Kind};

    const N: usize = 9;

    fn step(seed: u64, refines: bool) -> Vec<Operation> {
        let work = |scale: f64| Operation::Work {
            phase: Phase::Compute,
            time_ns: Arc::new(
                (0..N as u64)
                    .map(|rank| scale * (1 + (rank * seed) % 7) as f64)
                    .collect(),
            ),
        };
        let message = |rank: u64| Message {
            from: rank as u32,
            to: ((rank * 4 + 1 + seed) % N as u64) as u32,
            bytes: 1000 * (1 + rank * seed % 30),
        };
        let messages = (0..N as u64)
            .map(message)
            .filter(|m| m.from != m.to)
            .collect();
        let exchange = Arc::new(Exchange::new(Freight::Ghost, N, messages));
        let mut all = Vec::new();
        for _ in 0..3 {
            all.extend([Operation::Exchange(Arc::clone(&exchange)), work(1e4)]);
            all.push(Operation::Collective(Call::of_all(Kind::Allreduce, 8, N)));
            all.extend([Operation::Exchange(Arc::clone(&exchange)), work(5e3)]);
        }
        if refines {
            all.push(work(1e5));
        }
        all
    }

    #[test]
    fn steps_that_repeat_take_what_going_through_them_takes() {
        let mut machine = preset("hera").unwrap();
        machine.shape.ppn = 3;
        for network in [Network::Axes, Network::Events] {
            let costs = PhaseCosts::default();
            let axes = || Axes::new(&machine, N, &costs, network);
            let (mut whole, mut short, mut repeats) = (axes(), axes(), Repeats::default());
            for epoch in 1..4 {
                let (plain, last) = (step(epoch, false), step(epoch, true));
                for nth in 0..8 {
                    // Exchanges are the epoch's own, not equal ones.
                    let refining: Vec<Operation> = plain
                        .iter()
                        .chain(&last[last.len() - 1..])
                        .cloned()
                        .collect();
                    let operations = if nth == 7 { &refining } else { &plain };
                    let act = |axes: &mut Axes, operation: &Operation| {
                        axes.act(operation, &mut |_| Meeting::Gate(5e3));
                        Ok::<(), ()>(())
                    };
                    repeats.step(&mut short, operations, act).unwrap();
                    operations.iter().for_each(|o| act(&mut whole, o).unwrap());
                }
            }
            // Of eight steps the first two are gone through.
            assert_eq!(repeats.n_skipped, 3 * 6, "{network:?}");
            for rank in 0..N {
                let spent = &short.spent;
                let [long, short] = [&whole, &short].map(|axes| axes.clocks[rank]);
                assert!((long / short - 1.0).abs() < 1e-12, "{long} {short}");
                for (long, short) in whole.spent[rank].iter().zip(&spent[rank]) {
                    assert!((long - short).abs() < 1e-9 * whole.clocks[rank]);
                }
            }
            assert!(short.gap() < 1e-9);
        }
    }
}
