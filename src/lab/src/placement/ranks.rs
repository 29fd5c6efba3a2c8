//! What ranks are like: their speeds and their memory, as options.

use std::ops::RangeInclusive;
use std::str::FromStr;

use anyhow::ensure;

#[derive(clap::Args, Debug, Default)]
pub struct RankArgs {
    /// Speeds of some ranks, such as 16-31:0.25 for a quarter; the others have 1
    #[arg(long, value_delimiter = ',', value_name = "RANKS:SPEED", value_parser = speed)]
    pub speeds: Vec<OfRanks<f64>>,
}

#[derive(clap::Args, Debug, Default)]
pub struct MemoryArgs {
    /// Memory of each rank, or of some, such as 16-31:8000000; the others have no limit
    #[arg(long, value_delimiter = ',', value_name = "[RANKS:]BYTES", value_parser = bytes)]
    pub rank_memory: Vec<OfRanks<u64>>,
}

/// A value of a range of ranks; of all without one.
#[derive(Clone, Debug, PartialEq)]
pub struct OfRanks<T> {
    ranks: Option<RangeInclusive<u32>>,
    value: T,
}

impl RankArgs {
    /// One speed for each rank; none where all are alike.
    ///
    /// Errors: a rank that there is not.
    pub fn speeds(&self, n_ranks: u32) -> anyhow::Result<Option<Vec<f64>>> {
        spread("--speeds", &self.speeds, n_ranks, 1.0)
    }
}

impl MemoryArgs {
    /// The memory of each rank; none where nothing was said.
    ///
    /// Errors: a rank that there is not.
    pub fn of_ranks(&self, n_ranks: u32) -> anyhow::Result<Option<Vec<u64>>> {
        spread("--rank-memory", &self.rank_memory, n_ranks, u64::MAX)
    }
}

/// Later values take the place of earlier ones.
fn spread<T: Copy>(
    option: &str,
    given: &[OfRanks<T>],
    n_ranks: u32,
    usual: T,
) -> anyhow::Result<Option<Vec<T>>> {
    if given.is_empty() {
        return Ok(None);
    }
    let mut values = vec![usual; n_ranks as usize];
    for OfRanks { ranks, value } in given {
        let range = ranks.clone().unwrap_or(0..=n_ranks - 1);
        let last = *range.end();
        ensure!(
            last < n_ranks,
            "use {option}: rank {last} is none of {n_ranks} ranks, which are numbered from 0"
        );
        values[*range.start() as usize..=last as usize].fill(*value);
    }
    Ok(Some(values))
}

fn speed(text: &str) -> Result<OfRanks<f64>, String> {
    let read = read(text).filter(|of: &OfRanks<f64>| of.value.is_finite() && of.value > 0.0);
    read.filter(|of| of.ranks.is_some()).ok_or_else(|| {
        "RANK:SPEED or FIRST-LAST:SPEED with a speed above 0, such as 16-31:0.25".to_owned()
    })
}

fn bytes(text: &str) -> Result<OfRanks<u64>, String> {
    read(text)
        .ok_or_else(|| "BYTES, RANK:BYTES or FIRST-LAST:BYTES, such as 16-31:8000000".to_owned())
}

fn read<T: FromStr>(text: &str) -> Option<OfRanks<T>> {
    let (ranks, value) = match text.split_once(':') {
        Some((ranks, value)) => (Some(range(ranks)?), value),
        None => (None, text),
    };
    let value = value.parse().ok()?;
    Some(OfRanks { ranks, value })
}

fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok()?..=last.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spread_over_ranks_and_later_ones_win() {
        let args = RankArgs {
            speeds: ["0-2:0.5", "1:2"].map(|text| speed(text).unwrap()).to_vec(),
        };
        assert_eq!(args.speeds(4).unwrap(), Some(vec![0.5, 2.0, 0.5, 1.0]));
        assert_eq!(RankArgs::default().speeds(4).unwrap(), None);
        let memory = MemoryArgs {
            rank_memory: ["100", "3:7"].map(|text| bytes(text).unwrap()).to_vec(),
        };
        assert_eq!(memory.of_ranks(4).unwrap(), Some(vec![100, 100, 100, 7]));
    }

    #[test]
    fn what_is_no_speed_or_rank_is_refused_by_name() {
        for text in [
            "", "0.5", "1:", "1:0", "1:-1", "1:nan", "3-2:1", "a:1", "1-:2",
        ] {
            assert!(speed(text).is_err(), "{text}");
        }
        for text in ["", "x", "1:x", "1:-3", "2-1:5"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        let args = RankArgs {
            speeds: vec![speed("2-4:0.5").unwrap()],
        };
        let error = args.speeds(4).unwrap_err().to_string();
        assert!(
            error.contains("--speeds") && error.contains("rank 4"),
            "{error}"
        );
    }
}
