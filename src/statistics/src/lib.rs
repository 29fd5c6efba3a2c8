//! Statistics of measured times, as everything that reports them counts: one quantile, one median, one interval.
//!
//! What `statrs` has is taken from there. Its quantile is another one (Hyndman and Fan's type 8), so [`order`] has that
//! of NumPy and DuckDB. Pure: random numbers have fixed seeds, so the same data give the same numbers.
#![forbid(unsafe_code)]

pub mod order;

pub mod moments;

pub mod correlation;

pub mod interval;

pub mod clock;

pub use correlation::{pearson, spearman};
pub use interval::{
    Interval, TrimmedMean, geometric_mean_over_rounds, lower_bound, median_difference,
    median_ratio, median_ratio_of_groups, ratios, trimmed_mean, upper_bound,
};
pub use moments::{geometric_mean, mean, standard_deviation, weighted_geometric_mean};
pub use order::{Spread, mad, median, quantile, sorted, spread};
