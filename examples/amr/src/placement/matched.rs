//! A policy of this app whose answers are matched to the present owners, as those of the library are.

use crate::placement::library::matched;
use crate::placement::{Placement, Question};
use crate::shape::BlockShape;

/// A policy, and the shape of the blocks whose messages it is matched by.
pub struct Matched {
    pub policy: Box<dyn Placement>,
    pub shape: BlockShape,
}

impl Placement for Matched {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn place(&self, question: Question) -> Vec<u32> {
        let owners = self.policy.place(question);
        // What the library refuses to look at, such as owners of a job with more ranks, stays as it is.
        matched(question, self.shape, &owners).unwrap_or(owners)
    }
}
