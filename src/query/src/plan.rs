//! How a table will be gone through, as it is told from SQLite's planner to the walk: as text.

use rusqlite::vtab::IndexConstraintOp;

use crate::pruning::Operator;

/// `None` for conditions that leave nothing out.
pub fn operator(found: &IndexConstraintOp) -> Option<Operator> {
    match found {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Some(Operator::Equal),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Some(Operator::Less),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Some(Operator::AtMost),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Some(Operator::Greater),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Some(Operator::AtLeast),
        _ => None,
    }
}

/// How a table will be gone through: which columns are needed, and which conditions come with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// A bit for each column; the last stands for all that follow, too.
    pub columns: u64,
    pub conditions: Vec<(usize, Operator)>,
}

const OPERATORS: [(char, Operator); 6] = [
    ('=', Operator::Equal),
    ('<', Operator::Less),
    ('l', Operator::AtMost),
    ('>', Operator::Greater),
    ('g', Operator::AtLeast),
    ('i', Operator::OneOf),
];

impl Plan {
    /// The columns that rows are looked up by.
    pub fn looked_up(&self) -> impl Iterator<Item = usize> {
        let equal = |(attribute, operator): &(usize, Operator)| {
            (*operator == Operator::Equal).then_some(*attribute)
        };
        self.conditions.iter().filter_map(equal)
    }

    /// A guess, by which SQLite orders the tables of a join.
    pub fn rows_found(&self, rows: f64) -> f64 {
        let share = |(_, operator): &(usize, Operator)| match operator {
            Operator::Equal => 0.01,
            _ => 0.5,
        };
        let share: f64 = self.conditions.iter().map(share).product();
        (rows * share).clamp(1.0, 1e15)
    }

    pub fn wants(&self, attribute: usize) -> bool {
        self.columns & (1 << attribute.min(63)) != 0
    }

    /// `5 0= 3<`: the columns as a hexadecimal number, then column and operator of each condition.
    pub fn to_text(&self) -> String {
        let condition = |(attribute, operator): &(usize, Operator)| {
            let sign = OPERATORS.iter().find(|(_, other)| other == operator);
            format!(" {attribute}{}", sign.map_or('=', |(sign, _)| *sign))
        };
        let conditions = self.conditions.iter().map(condition);
        format!("{:x}{}", self.columns, conditions.collect::<String>())
    }

    /// Inverse of [`Plan::to_text`].
    pub fn from_text(text: &str) -> Option<Plan> {
        let mut words = text.split(' ');
        let columns = u64::from_str_radix(words.next()?, 16).ok()?;
        let condition = |word: &str| {
            let sign = word.chars().last()?;
            let (_, operator) = OPERATORS.iter().find(|(other, _)| *other == sign)?;
            Some((word.strip_suffix(sign)?.parse().ok()?, *operator))
        };
        let conditions = words.map(condition).collect::<Option<_>>()?;
        Some(Plan {
            columns,
            conditions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_survives_being_text() {
        let plan = Plan {
            columns: u64::MAX - 4,
            conditions: OPERATORS
                .iter()
                .enumerate()
                .map(|(place, (_, operator))| (7 * place, *operator))
                .collect(),
        };
        assert_eq!(Plan::from_text(&plan.to_text()), Some(plan));
        assert_eq!(Plan::from_text(""), None);
        assert_eq!(Plan::from_text("5 3?"), None);
    }

    #[test]
    fn the_last_bit_stands_for_all_columns_that_follow() {
        let plan = |columns| Plan {
            columns,
            conditions: Vec::new(),
        };
        assert!(plan(1 << 63).wants(63) && plan(1 << 63).wants(90));
        assert!(!plan(1 << 62).wants(90) && !plan(5).wants(1));
    }
}
