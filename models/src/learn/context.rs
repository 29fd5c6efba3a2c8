//! What a training needs to know beside the evidence.

use colltune_core::collective::Collective;
use colltune_core::library::Library;
use colltune_core::model::Model;
use colltune_core::select::mix;
use colltune_core::settings::Settings;
use colltune_core::space::Cell;

use crate::evidence::Evidence;
use crate::spent::Spent;

/// What a training needs to know beside the evidence.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub settings: &'a Settings,
    pub library: Library,
    pub machine: &'a str,
    /// The number that the result will carry.
    pub generation: u64,
    pub seed: u64,
    /// What is in force; `None` before the first training.
    pub previous: Option<&'a Model>,
    /// How many runs that was learned from: runs from this one on are new, older ones have smaller numbers.
    pub runs_before: u32,
    /// Of the default's calls a half once more, for the negative control.
    pub copies: &'a [Evidence],
    /// What runs account for beside their records; `None` where they did not.
    pub spent: Option<&'a Spent>,
    /// What whole programs refuted.
    pub vetoes: &'a [Veto],
}

/// A choice with which a whole program was slower. The evidence from before is not handed to a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Veto {
    pub cell: Cell,
    pub variant: String,
}

impl<'a> Context<'a> {
    /// Of a first training, whose seed is 1.
    pub fn first(settings: &'a Settings, library: Library, machine: &'a str) -> Context<'a> {
        Context {
            settings,
            library,
            machine,
            generation: 1,
            seed: 1,
            previous: None,
            runs_before: 0,
            copies: &[],
            spent: None,
            vetoes: &[],
        }
    }
}

/// The number of a collective and cell for seeds.
pub(super) fn seed_of(seed: u64, collective: Collective, cell: usize) -> u64 {
    mix(seed, ((collective.index() as u64) << 32) | cell as u64)
}
