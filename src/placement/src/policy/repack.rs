//! Whether few blocks fit on few ranks below a ceiling, by depth-first search.

/// The result of [`below`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Repacked {
    /// The rank of each block, in the order in which the costs were given.
    Found(Vec<u32>),
    /// No placement stays below the ceiling.
    Impossible,
    /// The search was given up.
    Unknown,
}

/// Looks for a placement of blocks on `ranks` whose loads are all below `ceiling`.
///
/// Shape: `descending` holds the costs from the largest to the smallest. `nodes` is how many
/// attempts to place a block are made at most, and is counted down.
pub(super) fn below(descending: &[f64], ranks: usize, ceiling: f64, nodes: &mut u32) -> Repacked {
    let mut search = Search {
        costs: descending,
        ceiling,
        loads: vec![0.0; ranks],
        owners: vec![0; descending.len()],
        slack: ceiling * ranks as f64 - descending.iter().sum::<f64>(),
        nodes,
    };
    match search.place(0) {
        Some(true) => Repacked::Found(search.owners),
        Some(false) => Repacked::Impossible,
        None => Repacked::Unknown,
    }
}

struct Search<'a> {
    costs: &'a [f64],
    ceiling: f64,
    loads: Vec<f64>,
    owners: Vec<u32>,
    /// How much may remain unused below the ceiling, on all ranks together.
    slack: f64,
    nodes: &'a mut u32,
}

impl Search<'_> {
    /// Places block `block` and all later ones; `None` when the nodes are used up.
    fn place(&mut self, block: usize) -> Option<bool> {
        let Some(&cost) = self.costs.get(block) else {
            return Some(true);
        };
        if self.wasted(block) > self.slack * (1.0 + 1e-9) {
            return Some(false);
        }
        for rank in 0..self.loads.len() {
            let load = self.loads[rank];
            // Ranks of equal load are interchangeable: the first of them stands for all.
            if load + cost >= self.ceiling || self.loads[..rank].contains(&load) {
                continue;
            }
            *self.nodes = self.nodes.checked_sub(1)?;
            self.loads[rank] = load + cost;
            self.owners[block] = rank as u32;
            if self.place(block + 1)? {
                return Some(true);
            }
            self.loads[rank] = load;
        }
        Some(false)
    }

    /// What ranks that are too full even for the smallest block leave unused.
    fn wasted(&self, block: usize) -> f64 {
        debug_assert!(block < self.costs.len());
        let smallest = self.costs[self.costs.len() - 1];
        let room = |load: &f64| self.ceiling - load;
        self.loads
            .iter()
            .map(room)
            .filter(|&room| room <= smallest)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    fn possible(costs: &[f64], loads: &mut [f64], ceiling: f64) -> bool {
        let Some((&first, rest)) = costs.split_first() else {
            return true;
        };
        (0..loads.len()).any(|rank| {
            loads[rank] += first;
            let found = loads[rank] < ceiling && possible(rest, loads, ceiling);
            loads[rank] -= first;
            found
        })
    }

    #[test]
    fn it_finds_a_placement_exactly_where_there_is_one() {
        let mut random = Random::new(8);
        let mut found = 0;
        for case in 0..3_000 {
            let (n, ranks) = (1 + random.below(8), 1 + random.below(4));
            let mut costs: Vec<f64> = (0..n).map(|_| random.below(30) as f64).collect();
            costs.sort_by(|a, b| b.total_cmp(a));
            let mean = costs.iter().sum::<f64>() / ranks as f64;
            let ceiling = mean.ceil() + random.below(6) as f64;
            let expected = possible(&costs, &mut vec![0.0; ranks], ceiling);
            match below(&costs, ranks, ceiling, &mut 1_000_000) {
                Repacked::Found(owners) => {
                    let mut loads = vec![0.0; ranks];
                    owners
                        .iter()
                        .zip(&costs)
                        .for_each(|(&o, c)| loads[o as usize] += c);
                    assert!(
                        expected && loads.iter().all(|&load| load < ceiling),
                        "case {case}"
                    );
                    found += 1;
                }
                other => assert!(!expected && other == Repacked::Impossible, "case {case}"),
            }
        }
        assert!((500..2_500).contains(&found), "{found}");
    }

    #[test]
    fn the_nodes_limit_the_search() {
        let costs: Vec<f64> = (0..40).map(|i| f64::from(2000 - 7 * i)).collect();
        let mean = costs.iter().sum::<f64>() / 7.0;
        let mut nodes = 1000;
        assert_eq!(below(&costs, 7, mean + 1e-3, &mut nodes), Repacked::Unknown);
        assert_eq!(nodes, 0);
    }
}
