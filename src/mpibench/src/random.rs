//! Random orders that are the same on every rank: functions of a seed, never of a generator's state.

use colltune_core::select::mix;

/// A permutation of `items` that depends on `seed` alone.
pub fn shuffled<T: Clone>(items: &[T], seed: u64) -> Vec<T> {
    let mut order = items.to_vec();
    for last in (1..order.len()).rev() {
        let other = mix(seed, last as u64) % (last as u64 + 1);
        order.swap(last, other as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_keep_every_item_and_differ_by_seed() {
        let items: Vec<u32> = (0..30).collect();
        let orders: Vec<_> = (0..10).map(|seed| shuffled(&items, seed)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, items);
        }
        assert_eq!(orders[3], shuffled(&items, 3));
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
