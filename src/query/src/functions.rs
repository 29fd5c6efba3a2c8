//! Functions that SQLite lacks: statistics of groups, also over windows, and a few of numbers.

use std::collections::VecDeque;
use std::panic::{RefUnwindSafe, UnwindSafe};

use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

use crate::statistics;

/// Functions of groups, each with what it takes and what it gives.
pub const AGGREGATES: [(&str, &str, &str); 7] = [
    ("median", "x", "the median"),
    (
        "quantile",
        "x, p",
        "between two numbers linear; p is within 0 and 1",
    ),
    ("stddev", "x", "the standard deviation of a sample"),
    ("mad", "x", "the median distance from the median"),
    ("corr", "x, y", "Pearson's correlation"),
    ("spearman", "x, y", "Spearman's correlation"),
    ("geomean", "x", "the geometric mean of numbers above 0"),
];

type OfOne = fn(f64) -> f64;

/// Functions of one number.
const OF_ONE: [(&str, OfOne); 6] = [
    ("sqrt", f64::sqrt),
    ("exp", f64::exp),
    ("ln", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("floor", f64::floor),
];

pub fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let sorted = |statistic: fn(&[f64]) -> Option<f64>| {
        Statistic(move |rows: Rows<'_>| statistic(&rows.sorted()))
    };
    let plain = |statistic: fn(&[f64]) -> Option<f64>| {
        Statistic(move |rows: Rows<'_>| statistic(&rows.firsts()))
    };
    let pairs = |statistic: fn(&[(f64, f64)]) -> Option<f64>| {
        Statistic(move |rows: Rows<'_>| statistic(&rows.pairs()))
    };
    connection.create_window_function("median", 1, flags, sorted(statistics::median))?;
    connection.create_window_function("mad", 1, flags, sorted(statistics::mad))?;
    connection.create_window_function("stddev", 1, flags, plain(statistics::stddev))?;
    connection.create_window_function("geomean", 1, flags, plain(statistics::geomean))?;
    connection.create_window_function("corr", 2, flags, pairs(statistics::corr))?;
    connection.create_window_function("spearman", 2, flags, pairs(statistics::spearman))?;
    let quantile = Statistic(|rows: Rows<'_>| {
        let p = rows.0.front()?.1;
        statistics::quantile(&rows.sorted(), p)
    });
    connection.create_window_function("quantile", 2, flags, quantile)?;
    for (name, function) in OF_ONE {
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(number(context, 0)?.map(function))
        })?;
    }
    connection.create_scalar_function("pow", 2, flags, |context| {
        let (base, exponent) = (number(context, 0)?, number(context, 1)?);
        Ok(base
            .zip(exponent)
            .map(|(base, exponent)| base.powf(exponent)))
    })
}

/// A number of a row; `None` where it is unknown.
fn number(context: &Context<'_>, argument: usize) -> Result<Option<f64>> {
    match context.get_raw(argument) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(value) => Ok(Some(value as f64)),
        ValueRef::Real(value) => Ok(Some(value)),
        other => Err(Error::UserFunctionError(
            format!("a function of numbers was given {}", other.data_type()).into(),
        )),
    }
}

/// The rows of a group: what a function is given, twice where it takes one number. Rows with something unknown are
/// left out.
struct Rows<'a>(&'a VecDeque<(f64, f64)>);

impl Rows<'_> {
    fn firsts(&self) -> Vec<f64> {
        self.0.iter().map(|(value, _)| *value).collect()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut values = self.firsts();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    fn pairs(&self) -> Vec<(f64, f64)> {
        self.0.iter().copied().collect()
    }
}

/// A function of a group's rows.
struct Statistic<F>(F);

/// What a row gives: `None` where something of it is unknown.
fn pair(context: &Context<'_>) -> Result<Option<(f64, f64)>> {
    let first = number(context, 0)?;
    let second = match context.len() {
        1 => first,
        _ => number(context, 1)?,
    };
    Ok(first.zip(second))
}

type Collected = VecDeque<(f64, f64)>;

impl<F> Aggregate<Collected, Option<f64>> for Statistic<F>
where
    F: Fn(Rows<'_>) -> Option<f64> + RefUnwindSafe + UnwindSafe,
{
    fn init(&self, _: &mut Context<'_>) -> Result<Collected> {
        Ok(VecDeque::new())
    }

    fn step(&self, context: &mut Context<'_>, rows: &mut Collected) -> Result<()> {
        rows.extend(pair(context)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, rows: Option<Collected>) -> Result<Option<f64>> {
        Ok(rows.and_then(|rows| (self.0)(Rows(&rows))))
    }
}

impl<F> WindowAggregate<Collected, Option<f64>> for Statistic<F>
where
    F: Fn(Rows<'_>) -> Option<f64> + RefUnwindSafe + UnwindSafe,
{
    fn value(&self, rows: Option<&mut Collected>) -> Result<Option<f64>> {
        Ok(rows.and_then(|rows| (self.0)(Rows(rows))))
    }

    /// Rows leave a window in the order in which they came.
    fn inverse(&self, context: &mut Context<'_>, rows: &mut Collected) -> Result<()> {
        if pair(context)?.is_some() {
            rows.pop_front();
        }
        Ok(())
    }
}
