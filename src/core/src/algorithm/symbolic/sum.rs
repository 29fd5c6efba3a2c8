//! What is combined with what, in which order and association.

use std::rc::Rc;

use crate::algorithm::schedule::Order;

/// Contributions of type `L`, and the operations that combine them. Two are equal where they are
/// the same tree of operations with the same first and second operands, so that results have the same bits
/// whatever the operation does: also one that rounds, and the largest of zeros of both signs or of what is no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sum<L> {
    Of(L),
    Both(Rc<Both<L>>),
}

/// An operation, as a rank carries it out: `order` says which of the two is the first operand. Where the operation
/// commutes the source is the first one, whatever `order` says: so two ranks have one result in both
/// cases if all three are alike.
#[derive(Debug, PartialEq, Eq)]
pub struct Both<L> {
    pub source: Sum<L>,
    pub target: Sum<L>,
    pub order: Order,
}

impl<L: Clone> Sum<L> {
    pub fn both(source: Sum<L>, target: Sum<L>, order: Order) -> Sum<L> {
        Sum::Both(Rc::new(Both {
            source,
            target,
            order,
        }))
    }

    /// The contributions, in the order of operands.
    pub fn operands(&self) -> Vec<L> {
        let (mut operands, mut left) = (Vec::new(), vec![self]);
        while let Some(sum) = left.pop() {
            match sum {
                Sum::Of(operand) => operands.push(operand.clone()),
                Sum::Both(both) => match both.order {
                    Order::SourceFirst => left.extend([&both.target, &both.source]),
                    Order::SourceLast => left.extend([&both.source, &both.target]),
                },
            }
        }
        operands
    }

    /// The same operations on something else, or the first error.
    pub fn replaced<M: Clone, E>(
        &self,
        with: &mut impl FnMut(&L) -> Result<Sum<M>, E>,
    ) -> Result<Sum<M>, E> {
        Ok(match self {
            Sum::Of(operand) => with(operand)?,
            Sum::Both(both) => {
                let (source, target) = (both.source.replaced(with)?, both.target.replaced(with)?);
                Sum::both(source, target, both.order)
            }
        })
    }
}
