//! Functions that SQLite lacks: statistics of groups, also over windows, and a few of numbers.

use std::collections::VecDeque;
use std::panic::{RefUnwindSafe, UnwindSafe};

use colltune_statistics as statistics;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

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
    let plain = |statistic: fn(&[f64]) -> Option<f64>| {
        Statistic(move |rows: Rows<'_>| statistic(&rows.firsts()))
    };
    let pairs = |statistic: fn(&[f64], &[f64]) -> Option<f64>| {
        Statistic(move |rows: Rows<'_>| statistic(&rows.firsts(), &rows.seconds()))
    };
    let deviation = plain(statistics::standard_deviation);
    connection.create_window_function("median", 1, flags, plain(median))?;
    connection.create_window_function("mad", 1, flags, plain(mad))?;
    connection.create_window_function("stddev", 1, flags, deviation)?;
    connection.create_window_function("geomean", 1, flags, plain(geometric_mean))?;
    connection.create_window_function("corr", 2, flags, pairs(statistics::pearson))?;
    connection.create_window_function("spearman", 2, flags, pairs(statistics::spearman))?;
    let quantile = Statistic(|rows: Rows<'_>| {
        let p = rows.0.front()?.1;
        let values = statistics::sorted(rows.firsts());
        (0.0..=1.0)
            .contains(&p)
            .then(|| statistics::quantile(&values, p))
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

// Of nothing, and of what has no logarithm, there is nothing to say, which SQL writes as NULL.

fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| statistics::median(values))
}

fn mad(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| statistics::mad(values))
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    let usable = !values.is_empty() && values.iter().all(|value| *value > 0.0);
    usable.then(|| statistics::geometric_mean(values))
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

    fn seconds(&self) -> Vec<f64> {
        self.0.iter().map(|(_, value)| *value).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_too_few_numbers_cannot_say_is_unknown() {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection).unwrap();
        let asked = |sql: &str| -> Option<f64> {
            let sql = format!("WITH t(x, y) AS (VALUES {sql}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        for nothing in [
            "(1, 1)) SELECT median(x) FROM t WHERE x > 1",
            "(1, 1)) SELECT mad(x) FROM t WHERE x > 1",
            "(1, 1)) SELECT geomean(x) FROM t WHERE x > 1",
            "(1, 1)) SELECT stddev(x) FROM t",
            "(1, 1)) SELECT corr(x, y) FROM t",
            "(1, 1), (1, 2)) SELECT corr(x, y) FROM t",
            "(1, 0), (2, 1)) SELECT geomean(y) FROM t",
            "(1, 1)) SELECT quantile(x, 1.1) FROM t",
            "(1, 1)) SELECT quantile(x, NULL) FROM t",
        ] {
            assert_eq!(asked(nothing), None, "{nothing}");
        }
        let values = "(1, 1), (2, 8), (4, 27), (8, 64), (100, 125))";
        for (of, is) in [
            ("median(x)", 4.0),
            ("mad(x)", 3.0),
            ("quantile(x, 0.625)", 6.0),
            ("spearman(x, y)", 1.0),
        ] {
            let found = asked(&format!("{values} SELECT {of} FROM t")).unwrap();
            assert!((found - is).abs() < 1e-12, "{of}: {found}");
        }
    }
}
