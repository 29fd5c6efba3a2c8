//! Ranks that only note which collective calls are made, so that the program's own code lists them.

use std::cell::RefCell;
use std::rc::Rc;

use colltune_amr::placement::factors;
use colltune_amr::ranks::{CollectiveKind, Numbers, Ranks, Request, Tag};
use colltune_amr::telemetry::Meeting;

use super::Call;

/// The first rank of a world, or of a part of it, that has no partner.
#[derive(Clone, Debug)]
pub struct Calls {
    n_ranks: usize,
    is_world: bool,
    made: Rc<RefCell<Vec<Call>>>,
}

impl Calls {
    pub fn new(n_ranks: usize) -> Calls {
        Calls {
            n_ranks,
            is_world: true,
            made: Rc::default(),
        }
    }

    /// The calls since this was last asked.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.made.borrow_mut())
    }

    fn note(&self, meeting: Meeting, bytes: usize) {
        self.made.borrow_mut().push(Call {
            meeting,
            bytes: bytes as u64,
            by_rank: None,
            n_ranks: self.n_ranks,
            is_counted: self.is_world,
        });
    }
}

/// Nothing travels here.
const SILENT: &str = "only collective calls are noted";

impl Ranks for Calls {
    fn rank(&self) -> usize {
        0
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn start_send(&self, _: usize, _: Tag, _: Vec<f64>) -> Request {
        unreachable!("{SILENT}")
    }

    fn start_receive(&self, _: usize, _: Tag, _: Vec<f64>) -> Request {
        unreachable!("{SILENT}")
    }

    fn send(&self, _: usize, _: Tag, _: &[f64]) {
        unreachable!("{SILENT}")
    }

    fn is_complete(&self, _: &Request) -> bool {
        true
    }

    fn finish(&self, _: Request) -> Vec<f64> {
        unreachable!("{SILENT}")
    }

    fn finish_any(&self, _: &mut Vec<Option<Request>>) -> Option<(usize, Vec<f64>)> {
        None
    }

    fn collective(&self, kind: CollectiveKind, numbers: Numbers) {
        self.note(kind.into(), numbers.bytes());
    }

    fn agree_max(&self, values: &mut [i32]) {
        self.note(Meeting::Agree, size_of_val(values));
    }

    fn allgather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.note(Meeting::Allgather, own.len());
        vec![own.to_vec(); self.n_ranks]
    }

    /// The parts of a bisection: as many as the next prime factor says.
    fn split(&self, _: usize) -> Box<dyn Ranks> {
        let parts = factors(self.n_ranks).first().copied().unwrap_or(1);
        Box::new(Calls {
            n_ranks: self.n_ranks / parts,
            is_world: false,
            made: Rc::clone(&self.made),
        })
    }
}
