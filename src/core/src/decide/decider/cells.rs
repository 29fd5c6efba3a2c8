//! The cells of a communicator, by collective: made at their first calls.

use std::collections::TryReserveError;

use crate::classify::CellsBySize;
use crate::collective::Collective;
use crate::decide::agreed::Membership;
use crate::decide::cell::CellState;
use crate::decide::rules::Rules;
use crate::decide::sizes::Sizes;

/// Those of all collectives that were called behind the set-up. Most never are, and programs have thousands of
/// communicators.
#[derive(Clone, Debug, Default)]
pub(super) struct Called {
    /// By collective the number in `cells`, and one more; 0 before its first call.
    numbers: [u8; Collective::ALL.len()],
    cells: Vec<Cells>,
}

impl Called {
    #[inline(always)]
    pub fn of(&self, collective: Collective) -> Option<&Cells> {
        let number = self.numbers[collective.index()];
        self.cells.get(usize::from(number).wrapping_sub(1))
    }

    #[inline(always)]
    pub fn of_mut(&mut self, collective: Collective) -> Option<&mut Cells> {
        let number = self.numbers[collective.index()];
        self.cells.get_mut(usize::from(number).wrapping_sub(1))
    }

    /// Those of a collective, made where there are none.
    pub fn make(
        &mut self,
        rules: &Rules,
        collective: Collective,
        membership: Membership,
    ) -> Result<&mut Cells, TryReserveError> {
        let number = &mut self.numbers[collective.index()];
        if *number == 0 {
            self.cells.try_reserve_exact(1)?;
            self.cells.push(Cells::new(rules, collective, membership)?);
            *number = self.cells.len() as u8;
        }
        Ok(&mut self.cells[usize::from(*number) - 1])
    }

    /// All that were called, by collective.
    pub fn states(&self) -> impl Iterator<Item = (Collective, &CellState)> {
        Collective::ALL.into_iter().flat_map(|collective| {
            let states = self.of(collective).map_or(&[][..], |cells| &cells.states);
            states.iter().map(move |cell| (collective, cell))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// What they hold, about.
    pub fn bytes(&self) -> u64 {
        let states = self.cells.iter().flat_map(|cells| &cells.states);
        (self.cells.len() * size_of::<Cells>()) as u64 + states.map(CellState::bytes).sum::<u64>()
    }

    /// The cell in which a call was chosen.
    #[inline]
    pub fn cell(&self, collective: Collective, place: usize) -> &CellState {
        let cells = self.of(collective);
        let Some(cell) = cells.and_then(|cells| cells.state(place)) else {
            unreachable!("a call is chosen only in a cell");
        };
        cell
    }

    #[inline]
    pub fn cell_mut(&mut self, collective: Collective, place: usize) -> &mut CellState {
        let cells = self.of_mut(collective);
        let Some(cell) = cells.and_then(|cells| cells.state_mut(place)) else {
            unreachable!("a call is chosen only in a cell");
        };
        cell
    }
}

/// The cells that calls of one collective fall into.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub by_size: CellsBySize,
    /// Of calls whose counts each rank knows for itself.
    pub sizes: Sizes,
    /// By place the number among `states`; [`UNMADE`] before the cell's first call. Most cells never have one.
    numbers: Vec<u32>,
    states: Vec<CellState>,
}

const UNMADE: u32 = u32::MAX;

impl Cells {
    fn new(
        rules: &Rules,
        collective: Collective,
        membership: Membership,
    ) -> Result<Cells, TryReserveError> {
        let layout = membership.layout;
        let by_size = CellsBySize::of(rules.terms.cells.cells(), collective, layout);
        let wanted = rules.wants_sizes(collective, by_size.cells(), membership);
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(by_size.cells().len())?;
        numbers.resize(by_size.cells().len(), UNMADE);
        Ok(Cells {
            by_size,
            sizes: if wanted {
                Sizes::wanted()
            } else {
                Sizes::default()
            },
            numbers,
            states: Vec::new(),
        })
    }

    #[inline(always)]
    pub fn state(&self, place: usize) -> Option<&CellState> {
        self.states.get(*self.numbers.get(place)? as usize)
    }

    #[inline(always)]
    pub fn state_mut(&mut self, place: usize) -> Option<&mut CellState> {
        self.states.get_mut(*self.numbers.get(place)? as usize)
    }

    /// Makes the state at a place by `new`, from the cell's place in the model.
    pub fn make(
        &mut self,
        place: usize,
        new: impl FnOnce(u32) -> Result<CellState, TryReserveError>,
    ) -> Result<(), TryReserveError> {
        if self.state(place).is_some() {
            return Ok(());
        }
        let state = new(self.by_size.cells()[place])?;
        self.states.try_reserve_exact(1)?;
        self.numbers[place] = self.states.len() as u32;
        self.states.push(state);
        Ok(())
    }
}
