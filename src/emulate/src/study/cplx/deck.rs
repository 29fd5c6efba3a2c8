//! The four runs of table I, and their meshes.

use crate::mesh::shell::{Shell, shock_radius};

/// A run: a deck of the artifact, and its row of table I.
#[derive(Clone, Copy, Debug)]
pub struct Deck {
    pub n_ranks: usize,
    pub roots: [u32; 3],
    pub half: [f64; 3],
    /// Steps, and those of them that place blocks anew.
    pub n_steps: u64,
    pub n_placements: u64,
    pub n_blocks_final: u64,
}

/// Table I; domains as the artifact's decks have them, where one is twice as long along y.
pub const DECKS: [Deck; 4] = [
    Deck {
        n_ranks: 512,
        roots: [8, 8, 8],
        half: [1.0; 3],
        n_steps: 30_590,
        n_placements: 1_213,
        n_blocks_final: 2_080,
    },
    Deck {
        n_ranks: 1024,
        roots: [8, 8, 16],
        half: [1.0; 3],
        n_steps: 43_088,
        n_placements: 4_576,
        n_blocks_final: 3_824,
    },
    Deck {
        n_ranks: 2048,
        roots: [8, 16, 16],
        half: [1.0, 2.0, 1.0],
        n_steps: 43_042,
        n_placements: 4_699,
        n_blocks_final: 4_848,
    },
    Deck {
        n_ranks: 4096,
        roots: [16, 16, 16],
        half: [1.0; 3],
        n_steps: 53_459,
        n_placements: 9_392,
        n_blocks_final: 8_968,
    },
];

/// Where the blast begins, and when a run ends: the decks' `rinner` and `tlim`.
const RADIUS_START: f64 = 0.1;
const TIME_END: f64 = 0.5;
/// The decks' gas and energy.
const GAMMA: f64 = 5.0 / 3.0;
const ENERGY: f64 = 1e-2;

impl Deck {
    pub fn shell(&self) -> Shell {
        Shell {
            roots: self.roots,
            half: self.half,
            inwards: 1.0,
            outwards: 3.0,
        }
    }

    pub fn steps_per_epoch(&self) -> f64 {
        self.n_steps as f64 / self.n_placements as f64
    }

    /// The shock's radius in an epoch, from 0 on: it grows evenly from step to step, since the length of a step
    /// falls with the shock's speed.
    pub fn radius(&self, epoch: u64) -> f64 {
        let end = radius_end();
        let share = (epoch as f64 + 0.5) / self.n_placements as f64;
        RADIUS_START + share.min(1.0) * (end - RADIUS_START)
    }

    /// Blocks at the end of the run.
    pub fn n_blocks_at_end(&self) -> usize {
        self.shell().blocks(radius_end()).octants.len()
    }

    /// So many epochs in the middles of equal parts of the run; all of them if there are no more.
    pub fn sample(&self, n: u64) -> Vec<u64> {
        let n = n.min(self.n_placements);
        (0..n)
            .map(|i| (2 * i + 1) * self.n_placements / (2 * n))
            .collect()
    }
}

fn radius_end() -> f64 {
    shock_radius(GAMMA, ENERGY, TIME_END)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Shock, settings};

    #[test]
    fn a_sample_of_all_epochs_is_all_of_them_in_order() {
        for deck in DECKS {
            let all: Vec<u64> = (0..deck.n_placements).collect();
            assert_eq!(deck.sample(deck.n_placements), all);
            assert_eq!(deck.sample(u64::MAX), all);
            let some = deck.sample(7);
            assert_eq!(some.len(), 7);
            assert!(some.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn meshes_have_the_sizes_that_the_shell_was_chosen_by() {
        let found = DECKS.map(|deck| deck.n_blocks_at_end());
        assert_eq!(found, [1_968, 3_488, 4_512, 9_752]);
        assert!((radius_end() - 0.3475).abs() < 5e-4);
    }

    /// The mini-app's own deck, followed without its gas.
    #[test]
    fn the_deck_of_512_ranks_ends_in_the_mesh_of_table_1() {
        let line = ["colltune-amr", "--deck", "blast-512", "--num_tsteps", "10"];
        let words = colltune_amr::deck::expand(line.map(str::to_owned)).unwrap();
        let settings = settings(&words[1..], 512, 512).unwrap();
        let shock = Shock::new(&settings).unwrap();
        let counts: Vec<usize> = (1..=11).map(|step| shock.leaves(step).len()).collect();
        assert_eq!(counts[10], DECKS[0].n_blocks_at_end(), "{counts:?}");
        assert!(counts[0] < counts[10], "{counts:?}");
    }
}
