//! Which records of a run are held somewhere: those need not be taken there again.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Half-open ranges of record numbers by rank, sorted, apart from each other, none empty.
///
/// Displays as `0,4,8@0-10000;12@0-500;12@700-900`: ranks that have a range in common share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<u32, Vec<(u64, u64)>>);

impl Coverage {
    pub fn add(&mut self, rank: u32, first: u64, end: u64) {
        if first >= end {
            return;
        }
        let ranges = self.0.entry(rank).or_default();
        ranges.push((first, end));
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for &(first, end) in ranges.iter() {
            match joined.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((first, end)),
            }
        }
        *ranges = joined;
    }

    pub fn join(&mut self, other: &Coverage) {
        for (&rank, ranges) in &other.0 {
            for &(first, end) in ranges {
                self.add(rank, first, end);
            }
        }
    }

    /// Whether one record is in it.
    pub fn has(&self, rank: u32, number: u64) -> bool {
        self.contains_range(rank, number, number.saturating_add(1))
    }

    pub fn contains_range(&self, rank: u32, first: u64, end: u64) -> bool {
        let ranges = self.0.get(&rank).map_or(&[][..], Vec::as_slice);
        first >= end
            || ranges
                .iter()
                .any(|range| range.0 <= first && end <= range.1)
    }

    pub fn contains(&self, other: &Coverage) -> bool {
        other
            .ranges()
            .all(|(rank, (first, end))| self.contains_range(rank, first, end))
    }

    /// How many records of a rank's trace are known: those behind the last range are new.
    pub fn end(&self, rank: u32) -> u64 {
        let last = self.0.get(&rank).and_then(|ranges| ranges.last());
        last.map_or(0, |range| range.1)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn ranges(&self) -> impl Iterator<Item = (u32, (u64, u64))> {
        let of_rank = |(&rank, ranges): (&u32, &'_ Vec<(u64, u64)>)| {
            let ranges = ranges.clone();
            ranges.into_iter().map(move |range| (rank, range))
        };
        self.0.iter().flat_map(of_rank)
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_range: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
        for (rank, range) in self.ranges() {
            by_range.entry(range).or_default().push(rank.to_string());
        }
        for (place, ((first, end), ranks)) in by_range.into_iter().enumerate() {
            let sign = if place == 0 { "" } else { ";" };
            write!(f, "{sign}{}@{first}-{end}", ranks.join(","))?;
        }
        Ok(())
    }
}

impl FromStr for Coverage {
    type Err = ();

    fn from_str(text: &str) -> Result<Coverage, ()> {
        let mut coverage = Coverage::default();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (ranks, range) = part.split_once('@').ok_or(())?;
            let (first, end) = range.split_once('-').ok_or(())?;
            let (first, end) = (first.parse().map_err(|_| ())?, end.parse().map_err(|_| ())?);
            for rank in ranks.split(',') {
                coverage.add(rank.parse().map_err(|_| ())?, first, end);
            }
        }
        Ok(coverage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_read_back_and_know_what_is_in_them() {
        let mut coverage = Coverage::default();
        for (rank, first, end) in [(0, 5, 9), (4, 0, 9), (0, 0, 5), (0, 20, 30), (1, 3, 3)] {
            coverage.add(rank, first, end);
        }
        assert_eq!(coverage.to_string(), "0,4@0-9;0@20-30");
        assert_eq!(coverage.to_string().parse(), Ok(coverage.clone()));
        assert!(coverage.has(0, 8) && !coverage.has(0, 9) && !coverage.has(2, 0));
        assert_eq!(
            (coverage.end(0), coverage.end(4), coverage.end(1)),
            (30, 9, 0)
        );
        let part: Coverage = "0@22-23;4@1-9".parse().unwrap();
        assert!(coverage.contains(&part) && !part.contains(&coverage));
        assert!(coverage.contains(&Coverage::default()));
        assert!("0@5".parse::<Coverage>().is_err() && "x@0-5".parse::<Coverage>().is_err());
        assert!("".parse::<Coverage>().unwrap().is_empty());
    }
}
