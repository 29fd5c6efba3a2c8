//! Why calls run the library's own choice, or variants are left out of their draws: what jobs count, and what is said.

use crate::variant::Family;

/// Where it is decided, and so which calls are counted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Job,
    /// All calls of a communicator, or those up to some moment.
    Communicator,
    /// Calls of a range of sizes of one collective on a communicator.
    Cell,
    /// Calls for which a variant was drawn or chosen.
    Call,
}

/// Whose variants it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Everybody,
    Library,
    Ours,
}

/// What is said of a cause.
pub struct Row {
    pub cause: Cause,
    /// For programs.
    pub name: &'static str,
    pub scope: Scope,
    pub whose: Whose,
    pub reason: &'static str,
    /// Empty where nothing is to be done.
    pub remedy: &'static str,
}

use Scope::{Call, Cell, Communicator, Job};
use Whose::{Everybody, Library, Ours};

macro_rules! causes {
    ($($cause:ident $name:literal $scope:ident $whose:ident $reason:literal $remedy:literal)*) => {
        /// A cause, by which a job counts the calls that it concerns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cause {
            $($cause),*
        }

        /// A row for each cause, in their order.
        pub const CAUSES: &[Row] = &[$(Row {
            cause: Cause::$cause,
            name: $name,
            scope: $scope,
            whose: $whose,
            reason: $reason,
            remedy: $remedy,
        }),*];
    };
}

causes! {
    Mode "mode" Job Everybody "the mode runs the library's own choice" "start jobs in `explore` or `exploit`"
    Intercommunicator "intercommunicator" Communicator Everybody "they are between two groups of ranks" ""
    Foreign "foreign" Communicator Everybody "their communicator has ranks of another job, or one that was spawned" ""
    Agreement "agreement" Communicator Everybody
        "the library reported an error when the ranks of their communicator agreed" ""
    Room "room" Communicator Everybody "a rank has no memory for decisions on their communicator"
        "raise `memory_per_rank_max`, or the limits of the process (`ulimit -v`, `ulimit -d`)"
    Switch "switch" Communicator Everybody "the site folder was switched off while the job ran"
        "`colltune publish SITE --on`"
    FewCalls "few-calls" Communicator Everybody "they came before the ranks of their communicator had agreed"
        "use communicators for more calls, or lower `setup_after`"
    Unpaid "unpaid" Communicator Everybody
        "agreements would have taken more than their share of the time, so ranks agree later and less is tried"
        "keep communicators for longer, or raise `explore_budget`"
    OneRank "one-rank" Cell Everybody "their communicator has one rank" ""
    Unlearned "unlearned" Cell Everybody
        "nothing is learned yet for this library, transport and set of algorithms that the user set"
        "`colltune status` shows what is; train on jobs like this one"
    Kept "kept" Cell Everybody "the library's own choice is the fastest that is known" ""
    Threads "threads" Cell Library "with MPI_THREAD_MULTIPLE the library cannot be told its algorithm"
        "ask MPI_Init_thread for less where the program needs less, or add families `node` and `p2p`"
    Steering "steering" Cell Library
        "the library lets nobody choose its algorithm: a rules file is in force, another component runs its \
         collectives, or its variables are not those of a known version"
        "unset the rules file, or disable the component (`OMPI_MCA_coll=^NAME`)"
    Deaths "deaths" Cell Everybody "the job goes on without ranks that die" "start it without fault tolerance"
    Device "device" Cell Everybody "a rank may have buffers in a device's memory"
        "`gpu = \"host-only\"` where collectives never have such buffers"
    Families "families" Cell Everybody "this job's `families` leave them out" "add the family"
    Bound "bound" Cell Everybody "on so many ranks they cost over 32 times as much as others" ""
    Reach "reach" Cell Everybody "the choice was measured on far fewer ranks, and nobody knows what it costs on so many"
        "train on jobs of this size"
    Hopeless "hopeless" Cell Everybody "two communicators of the job found them far too slow" ""
    Shape "shape" Cell Everybody "no call of these sizes on the communicator has what they need" ""
    Order "order" Cell Everybody "they add in another order than `reproducible = \"fixed\"` promises"
        "`reproducible = \"off\"` where the last bits may differ"
    Demoted "demoted" Cell Everybody "the choice was slower in this job than the library's own, which ran from there on"
        "train anew"
    Size "size" Cell Everybody "the model has no cell for their size, or they move nothing" ""
    Needs "needs" Call Everybody "they lack what the variant needs" "`colltune status --why VARIANT` says what"
    Strict "strict" Call Everybody "with `reproducible = \"strict\"` nothing else runs that may change a bit"
        "`reproducible = \"fixed\"`"
    Long "long" Call Everybody "their messages have 2 GiB or more" ""
    Elements "elements" Call Ours
        "our algorithms do not combine these elements by this operation, or an element is too long for shared memory" ""
    Preset "preset" Call Ours "what the library was told before the job may be its choice between the nodes" ""
    Lacking "lacking" Call Everybody "a rank lacks memory or a communicator for the variant"
        "raise `memory_per_rank_max`, or free communicators that are not used"
    Arguments "arguments" Call Ours "the variant cannot take their arguments" ""
}

impl Cause {
    pub const fn row(self) -> &'static Row {
        &CAUSES[self as usize]
    }

    /// That of a name; `None` of one that this version does not know.
    pub fn of_name(name: &str) -> Option<Cause> {
        let mut all = CAUSES.iter();
        all.find(|row| row.name == name).map(|row| row.cause)
    }

    /// Whether it is as it should be, and worth no sentence of its own.
    pub const fn is_usual(self) -> bool {
        matches!(self, Cause::Kept | Cause::OneRank | Cause::Shape)
    }

    /// Whether it may be why a variant of a family is not run.
    pub fn concerns(self, family: Family) -> bool {
        match self.row().whose {
            Everybody => true,
            Library => family == Family::Native,
            Ours => ![Family::Native, Family::Default].contains(&family),
        }
    }
}

/// Several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes(u32);

impl Causes {
    pub fn add(&mut self, cause: Cause) {
        self.0 |= 1 << cause as u32;
    }

    pub const fn has(self, cause: Cause) -> bool {
        self.0 & 1 << cause as u32 != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Cause> {
        let all = CAUSES.iter().map(|row| row.cause);
        all.filter(move |cause| self.has(*cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_name_alone_and_a_bit() {
        for row in CAUSES {
            assert_eq!(Cause::of_name(row.name), Some(row.cause));
        }
        let mut some = Causes::default();
        some.add(Cause::Arguments);
        some.add(Cause::Mode);
        assert!(some.iter().eq([Cause::Mode, Cause::Arguments]));
    }
}
