//! A call of one of our own variants, as it is handed to the family that runs it.

use colltune_core::collective::Collective;

use crate::arguments::Arguments;

/// `own` says how: any of our variants, a schedule, a way over the nodes or a composition.
#[derive(Clone, Copy)]
pub struct OwnCall<O> {
    pub collective: Collective,
    /// The variant's place in the trace's header.
    pub variant: u16,
    pub own: O,
    pub bytes: u64,
    pub arguments: Arguments,
}

impl<O> OwnCall<O> {
    /// The same call, to be run in another way or in a narrower sense of its own.
    pub fn by<P>(&self, own: P) -> OwnCall<P> {
        OwnCall {
            collective: self.collective,
            variant: self.variant,
            own,
            bytes: self.bytes,
            arguments: self.arguments,
        }
    }
}
