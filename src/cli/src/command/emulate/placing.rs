//! What `run` and `whatif` are told of how blocks are placed.

use colltune_emulate::clock::Timer;

use super::study::seconds_of;

#[derive(clap::Args, Debug)]
pub struct Placing {
    /// Placing takes what each policy takes on this machine, times the other machine's scale, instead of the same
    /// for all: results differ from run to run
    #[arg(long)]
    pub time_placement: bool,
}

impl Placing {
    pub fn timer(&self) -> Option<Timer<'static>> {
        let timer: Timer = &seconds_of;
        self.time_placement.then_some(timer)
    }

    /// What placing takes in the results.
    pub fn priced_by(&self) -> &'static str {
        match self.time_placement {
            true => "this machine's clock",
            false => "leaves",
        }
    }
}
