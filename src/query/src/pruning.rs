//! Which parts of a table a condition can leave out unread.

use std::cmp::Ordering;

use rusqlite::types::{Value, ValueRef};

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    /// With each of several values.
    OneOf,
}

/// A condition that rows must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub attribute: usize,
    pub operator: Operator,
    /// One, but for [`Operator::OneOf`].
    pub values: Vec<Value>,
}

/// The least and the greatest value of a column in a part of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct MinMax {
    pub min: Value,
    pub max: Value,
}

impl MinMax {
    pub fn of(value: &Value) -> MinMax {
        let (min, max) = (value.clone(), value.clone());
        MinMax { min, max }
    }
}

impl Constraint {
    /// Whether rows within the bounds may meet it. What cannot be compared may.
    pub fn may_hold(&self, bounds: &MinMax) -> bool {
        let possible = |value: &Value| {
            let (Some(low), Some(high)) =
                (compare(&bounds.min, value), compare(&bounds.max, value))
            else {
                return true;
            };
            match self.operator {
                Operator::Equal | Operator::OneOf => low.is_le() && high.is_ge(),
                Operator::Less => low.is_lt(),
                Operator::AtMost => low.is_le(),
                Operator::Greater => high.is_gt(),
                Operator::AtLeast => high.is_ge(),
            }
        };
        self.values.iter().any(possible)
    }
}

/// Compares as SQLite does. `None` where that depends on more than the values: numbers with text, what is unknown.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(other)),
        (Value::Real(one), Value::Real(other)) => one.partial_cmp(other),
        (Value::Integer(one), Value::Real(other)) => whole_and_real(*one, *other),
        (Value::Real(one), Value::Integer(other)) => {
            whole_and_real(*other, *one).map(Ordering::reverse)
        }
        (Value::Text(one), Value::Text(other)) => Some(one.as_bytes().cmp(other.as_bytes())),
        _ => None,
    }
}

/// Exactly, since a whole number may have more digits than a real one.
fn whole_and_real(whole: i64, real: f64) -> Option<Ordering> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if real.is_nan() {
        return None;
    }
    if !(-END..END).contains(&real) {
        return Some(if real > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    let floor = real.floor();
    let fraction = if real > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    };
    Some(whole.cmp(&(floor as i64)).then(fraction))
}

/// A value of its own.
pub fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(operator: Operator, values: &[Value], min: Value, max: Value) -> bool {
        let constraint = Constraint {
            attribute: 0,
            operator,
            values: values.to_vec(),
        };
        constraint.may_hold(&MinMax { min, max })
    }

    #[test]
    fn only_what_can_hold_no_such_row_is_left_out() {
        use Operator::{AtLeast, AtMost, Equal, Greater, Less, OneOf};
        let may = |operator, value: i64| {
            let values = [Value::Integer(value)];
            may(operator, &values, Value::Integer(10), Value::Integer(20))
        };
        let holding = |operator| (9..=21).filter(|value| may(operator, *value)).collect();
        let expected: [(Operator, Vec<i64>); 6] = [
            (Equal, (10..=20).collect()),
            (OneOf, (10..=20).collect()),
            (Less, (11..=21).collect()),
            (AtMost, (10..=21).collect()),
            (Greater, (9..=19).collect()),
            (AtLeast, (9..=20).collect()),
        ];
        for (operator, values) in expected {
            let found: Vec<i64> = holding(operator);
            assert_eq!(found, values, "{operator:?}");
        }
    }

    #[test]
    fn one_of_several_values_is_enough_and_none_is_never() {
        let bounds = || (Value::Integer(10), Value::Integer(20));
        let (min, max) = bounds();
        let values = [Value::Integer(5), Value::Integer(12)];
        assert!(may(Operator::OneOf, &values, min, max));
        let (min, max) = bounds();
        assert!(!may(Operator::OneOf, &[], min, max));
    }

    #[test]
    fn what_is_not_comparable_may_hold_and_digits_are_not_lost() {
        let big = (1i64 << 53) + 1;
        let (low, high) = (Value::Integer(big), Value::Integer(i64::MAX));
        assert!(!may(
            Operator::Equal,
            &[Value::Real((1i64 << 53) as f64)],
            low.clone(),
            high.clone()
        ));
        assert!(!may(
            Operator::Greater,
            &[Value::Real(9.3e18)],
            low.clone(),
            high.clone()
        ));
        assert!(may(
            Operator::Greater,
            &[Value::Real(-9.3e18)],
            low.clone(),
            high.clone()
        ));
        for other in [
            Value::Text("5".to_owned()),
            Value::Null,
            Value::Real(f64::NAN),
        ] {
            assert!(may(Operator::Equal, &[other], low.clone(), high.clone()));
        }
        let text = |text: &str| Value::Text(text.to_owned());
        assert!(!may(
            Operator::Equal,
            &[text("scan")],
            text("allgather"),
            text("reduce")
        ));
    }
}
