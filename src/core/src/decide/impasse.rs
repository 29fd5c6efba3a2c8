//! What ends a job: a rank that cannot do what the others of its communicator are about to do.

use std::fmt;

use crate::collective::Collective;

/// Where a rank cannot go on with the others. It must not go on alone, since they would wait for it: the job ends
/// with this sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impasse {
    pub collective: Collective,
    /// The call's number on its communicator, from 1.
    pub call: u64,
    /// The communicator's number in the job; 0 before its set-up.
    pub comm: u64,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no memory for a collective's cells on this communicator.
    NoMemory,
    /// All ranks run a variant that cannot take this rank's arguments, which the library did not refuse.
    Arguments { variant: String },
}

impl fmt::Display for Impasse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Impasse {
            collective,
            call,
            comm,
            reason,
        } = self;
        write!(f, "{collective}, call {call} on communicator {comm}: ")?;
        match reason {
            Reason::NoMemory => f.write_str("there is no memory for what is known of its variants"),
            Reason::Arguments { variant } => write!(
                f,
                "the other ranks run {variant}, which cannot take the arguments of this rank"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_call_and_reason() {
        let impasse = Impasse {
            collective: Collective::Allgatherv,
            call: 12,
            comm: 3,
            reason: Reason::Arguments {
                variant: "p2p:ring".to_owned(),
            },
        };
        assert_eq!(
            impasse.to_string(),
            "allgatherv, call 12 on communicator 3: the other ranks run p2p:ring, which cannot take the arguments \
             of this rank"
        );
    }
}
