//! Spanning trees over relative ranks: the root is 0.

/// What one rank of a tree knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub parent: Option<usize>,
    /// Relative ranks, the one with the largest subtree first.
    pub children: Vec<usize>,
}

/// The k-nomial tree: `v`'s parent is `v` with its lowest digit other than zero (to the base
/// `radix`) set to zero, so that a subtree is a range of ranks that begins with its root.
/// With radix 2 the binomial tree.
pub fn knomial(v: usize, n: usize, radix: usize) -> Node {
    assert!(v < n);
    assert!(radix >= 2);
    let mut children = Vec::new();
    let mut parent = None;
    let mut unit = 1;
    while unit < n {
        let digit = v / unit % radix;
        if digit != 0 {
            parent = Some(v - digit * unit);
            break;
        }
        children.extend((1..radix).map(|d| v + d * unit).filter(|&child| child < n));
        unit *= radix;
    }
    children.reverse();
    Node { parent, children }
}

/// The binomial tree whose distances double on the way down: `v`'s parent is `v` without its highest
/// bit, and its nearest child has the largest subtree. The mirror image of [`knomial`] with radix 2.
pub fn doubling(v: usize, n: usize) -> Node {
    assert!(v < n);
    let parent = v.checked_ilog2().map(|highest| v - (1 << highest));
    let first = v.checked_ilog2().map_or(0, |highest| highest + 1);
    let children = (first..usize::BITS).map_while(|bit| Some(v + (1 << bit)).filter(|&c| c < n));
    Node {
        parent,
        children: children.collect(),
    }
}

/// How many ranks the subtree of `v` in [`knomial`] has.
pub fn knomial_span(v: usize, n: usize, radix: usize) -> usize {
    if v == 0 {
        return n;
    }
    let mut unit = 1;
    while (v / unit).is_multiple_of(radix) {
        unit *= radix;
    }
    unit.min(n - v)
}

/// The chain: each rank hands on to the next.
pub fn chain(v: usize, n: usize) -> Node {
    Node {
        parent: v.checked_sub(1),
        children: Some(v + 1).into_iter().filter(|&child| child < n).collect(),
    }
}

/// So many chains of near-equal length, which all begin at the root.
pub fn chains(v: usize, n: usize, count: usize) -> Node {
    let (others, count) = (n - 1, count.clamp(1, n.max(2) - 1));
    let first = |chain: usize| 1 + chain * (others / count) + chain.min(others % count);
    let firsts = (0..count).map(first);
    let parent = v.checked_sub(1);
    if v == 0 {
        let children = firsts.filter(|&child| child < n).collect();
        return Node { parent, children };
    }
    let is_first = |rank: usize| firsts.clone().any(|first| first == rank);
    let next = Some(v + 1).filter(|&next| next < n && !is_first(next));
    Node {
        parent: if is_first(v) { Some(0) } else { parent },
        children: next.into_iter().collect(),
    }
}

/// The complete binary tree in level order.
pub fn binary(v: usize, n: usize) -> Node {
    Node {
        parent: v.checked_sub(1).map(|above| above / 2),
        children: [2 * v + 1, 2 * v + 2]
            .into_iter()
            .filter(|&child| child < n)
            .collect(),
    }
}

/// A node of the in-order binary tree, in absolute ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InOrder {
    pub parent: Option<usize>,
    /// The root of the ranks below this one in its range.
    pub below: Option<usize>,
    /// The root of the ranks above this one in its range.
    pub above: Option<usize>,
}

/// The binary tree with root `root` whose walk from left to right meets the ranks in order; below
/// the root every range is halved.
pub fn in_order(rank: usize, n: usize, root: usize) -> InOrder {
    let middle = |low: usize, high: usize| (low < high).then(|| low + (high - low) / 2);
    let (mut low, mut high, mut at, mut parent) = (0, n, root, None);
    while at != rank {
        parent = Some(at);
        if rank < at {
            high = at;
        } else {
            low = at + 1;
        }
        at = low + (high - low) / 2;
    }
    InOrder {
        parent,
        below: middle(low, at),
        above: middle(at + 1, high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tree_spans_all_ranks_and_parents_and_children_agree() {
        type Tree = fn(usize, usize) -> Node;
        let trees: [Tree; 7] = [
            doubling,
            |v, n| chains(v, n, 4),
            |v, n| knomial(v, n, 2),
            |v, n| knomial(v, n, 3),
            |v, n| knomial(v, n, 8),
            chain,
            binary,
        ];
        for tree in trees {
            for n in 1..70 {
                for v in 0..n {
                    let node = tree(v, n);
                    assert_eq!(node.parent.is_none(), v == 0);
                    assert!(node.parent.is_none_or(|parent| parent < v));
                    assert!(node.parent.is_none_or(|p| tree(p, n).children.contains(&v)));
                    assert!(node.children.iter().all(|&c| tree(c, n).parent == Some(v)));
                }
            }
        }
    }

    #[test]
    fn the_in_order_tree_meets_the_ranks_in_order_at_every_root() {
        fn walk(rank: usize, n: usize, root: usize, met: &mut Vec<usize>) {
            let node = in_order(rank, n, root);
            for (child, side) in [(node.below, 0), (Some(rank), 1), (node.above, 2)] {
                match (child, side) {
                    (Some(own), 1) => met.push(own),
                    (Some(child), _) => {
                        assert_eq!(in_order(child, n, root).parent, Some(rank));
                        walk(child, n, root, met);
                    }
                    (None, _) => {}
                }
            }
        }
        for n in 1..40 {
            for root in 0..n {
                let mut met = Vec::new();
                walk(root, n, root, &mut met);
                assert_eq!(met, (0..n).collect::<Vec<_>>());
            }
        }
    }
}
