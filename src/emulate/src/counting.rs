//! Sorting by numbers of ranks or nodes, which are small.

/// Sorts by a number below `n`; what has the same one keeps its order. `spare` is memory, reused.
///
/// Cost: a few passes over items and numbers, whatever the order was.
pub fn sort_by_number<T: Copy>(
    items: &mut [T],
    spare: &mut Vec<T>,
    n: usize,
    number: impl Fn(&T) -> u32,
) {
    // Where the next item of each number goes.
    let mut places = vec![0usize; n + 1];
    for item in items.iter() {
        places[number(item) as usize + 1] += 1;
    }
    for number in 0..n {
        places[number + 1] += places[number];
    }
    spare.clear();
    spare.extend_from_slice(items);
    for item in spare {
        let place = &mut places[number(item) as usize];
        items[*place] = *item;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_sorted_as_a_stable_sort_does() {
        let mut spare = Vec::new();
        for len in [0usize, 1, 7, 1000] {
            let items: Vec<(u32, usize)> = (0..len).map(|i| ((i * i % 13) as u32, i)).collect();
            let (mut ours, mut expected) = (items.clone(), items);
            sort_by_number(&mut ours, &mut spare, 13, |item| item.0);
            expected.sort_by_key(|item| item.0);
            assert_eq!(ours, expected, "{len} items");
        }
    }
}
