//! What is asked of a database.

use std::str::FromStr;

use colltune_core::collective::Collective;
use colltune_core::context::DataKey;

/// What the report is about; everything, where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// The library; `None`: the one with the most runs.
    pub library: Option<DataKey>,
    pub collective: Option<Collective>,
    /// Cells that hold this many nodes and ranks on each.
    pub shape: Option<Shape>,
    /// Cells that hold one of these message sizes; all, where there is none.
    pub bytes: Vec<u64>,
    /// Runs with this label.
    pub label: Option<String>,
    /// The layout whose data are kept from a learner, to see what it says of them.
    pub holdout: Option<Shape>,
}

/// A layout: so many nodes with so many ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub nodes: u32,
    pub ppn: u32,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Shape, String> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let parts = text.split_once('x');
        let shape = parts.and_then(|(nodes, ppn)| {
            Some(Shape {
                nodes: number(nodes)?,
                ppn: number(ppn)?,
            })
        });
        shape.ok_or_else(|| "allowed: nodes x ranks on each, as in 4x2".to_owned())
    }
}

impl Question {
    /// Whether a cell is asked for.
    pub fn holds(&self, cell: &colltune_core::space::Cell) -> bool {
        let of_shape = |shape: Shape| {
            cell.nodes.contains(shape.nodes.into()) && cell.ppn.contains(shape.ppn.into())
        };
        self.collective.is_none_or(|one| one == cell.collective)
            && self.shape.is_none_or(of_shape)
            && (self.bytes.is_empty() || self.bytes.iter().any(|&one| cell.bytes.contains(one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_nodes_by_ranks_and_nothing_else() {
        assert_eq!("4x2".parse(), Ok(Shape { nodes: 4, ppn: 2 }));
        for wrong in ["", "4", "0x2", "4x", "4x2x1", "axb"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }
}
