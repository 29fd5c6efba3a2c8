//! Reading and printing the names of policies.

use std::fmt;
use std::str::FromStr;

use super::row::{Argument, Policy, Syntax};
use super::table::TABLE;
use crate::error::PlacementError;

impl Policy {
    /// The names of all policies with what may follow them, in the order of the table.
    pub fn names() -> Vec<String> {
        TABLE
            .iter()
            .map(|row| format!("{}{}", row.name, row.syntax.describe()))
            .collect()
    }
}

impl Syntax {
    /// How the argument is written in a list of policies.
    pub fn describe(&self) -> &'static str {
        match self {
            Syntax::Plain => "",
            Syntax::Count { .. } => "[:N]",
            Syntax::OptionalMax => "[:max=N]",
            Syntax::PercentOrAuto => ":0..100|auto",
            Syntax::OptionalRoots => "[:roots]",
            Syntax::OptionalRootsOrRaw => "[:roots|raw]",
            Syntax::Level { .. } => "[:N]",
            Syntax::Published => ":baseline|cdp|cdpc:N|lpt|cplx:0..100",
        }
    }

    /// Arguments of every kind that it takes, as they follow the name; none refuses a problem that the policy
    /// without it would take.
    pub fn examples(&self) -> &'static [&'static str] {
        match self {
            Syntax::Plain => &[""],
            Syntax::Count { .. } => &["", ":1", ":3"],
            Syntax::OptionalMax => &["", ":max=1000000"],
            Syntax::PercentOrAuto => &[":0", ":33", ":100", ":auto"],
            Syntax::OptionalRoots => &["", ":roots"],
            Syntax::OptionalRootsOrRaw => &["", ":roots", ":raw"],
            Syntax::Level { .. } => &["", ":0", ":3"],
            Syntax::Published => &[":baseline", ":cdp", ":cdpc:2", ":lpt", ":cplx:50"],
        }
    }

    /// What is allowed, for the message of an error.
    fn allowed(&self) -> &'static str {
        match self {
            Syntax::Plain => "it takes no argument",
            Syntax::Count { .. } => "it takes a number from 1",
            Syntax::OptionalMax => "it takes nothing or max=N with N from 1",
            Syntax::PercentOrAuto => "it takes a number from 0 to 100, or auto",
            Syntax::OptionalRoots => "it takes nothing or roots",
            Syntax::OptionalRootsOrRaw => "it takes nothing, roots or raw",
            Syntax::Level { .. } => "it takes a number from 0",
            Syntax::Published => "it takes baseline, cdp, cdpc:N, lpt or cplx:0..100",
        }
    }

    /// Reads an argument; `None` where it is not allowed.
    fn read(&self, text: Option<&str>) -> Option<Argument> {
        let count = |text: &str| digits(text).filter(|&n| n > 0);
        Some(match (self, text) {
            (Syntax::Plain | Syntax::OptionalMax, None) => Argument::None,
            (Syntax::Count { default }, None) => Argument::Count(*default),
            (Syntax::Count { .. }, Some(n)) => Argument::Count(count(n)?),
            (Syntax::OptionalMax, Some(max)) => Argument::Max(count(max.strip_prefix("max=")?)?),
            (Syntax::PercentOrAuto, Some("auto")) => Argument::Auto,
            (Syntax::PercentOrAuto, Some(x)) => {
                Argument::Percent(digits(x).filter(|&x| x <= 100)? as u8)
            }
            (Syntax::OptionalRoots | Syntax::OptionalRootsOrRaw, None) => Argument::None,
            (Syntax::OptionalRoots | Syntax::OptionalRootsOrRaw, Some("roots")) => Argument::Roots,
            (Syntax::OptionalRootsOrRaw, Some("raw")) => Argument::Raw,
            (Syntax::Published, Some(name)) => Argument::Published(name.parse().ok()?),
            (Syntax::Level { default }, None) => Argument::Count(*default),
            (Syntax::Level { .. }, Some(n)) => Argument::Count(digits(n)?),
            (Syntax::OptionalRoots | Syntax::OptionalRootsOrRaw, Some(_)) => return None,
            (Syntax::Plain, Some(_)) | (Syntax::PercentOrAuto | Syntax::Published, None) => {
                return None;
            }
        })
    }
}

/// The policies that this build was made without, for the message of an error.
fn left_out() -> String {
    let optional = [
        ("graphlb", "metis", cfg!(feature = "metis")),
        ("ilp", "ilp", cfg!(feature = "ilp")),
    ];
    let absent = optional.iter().filter(|(_, _, is_built)| !is_built);
    absent
        .map(|(policy, feature, _)| format!("; {policy} in builds with the feature {feature}"))
        .collect()
}

/// A number in plain digits: no sign, no space, no leading zero.
fn digits(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}

impl FromStr for Policy {
    type Err = PlacementError;

    fn from_str(name: &str) -> Result<Self, PlacementError> {
        let (head, tail) = match name.split_once(':') {
            Some((head, tail)) => (head, Some(tail)),
            None => (name, None),
        };
        let row = TABLE.iter().find(|row| row.name == head);
        let row = row.ok_or_else(|| PlacementError::UnknownPolicy {
            name: name.to_owned(),
            allowed: Policy::names().join(", ") + &left_out(),
        })?;
        let argument = row.syntax.read(tail);
        let argument = argument.ok_or_else(|| PlacementError::PolicyArgument {
            policy: row.name,
            argument: tail.unwrap_or("").to_owned(),
            allowed: row.syntax.allowed(),
        })?;
        Ok(Policy { row, argument })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        match &self.argument {
            Argument::None => Ok(()),
            Argument::Count(n) => write!(f, ":{n}"),
            Argument::Max(n) => write!(f, ":max={n}"),
            Argument::Percent(x) => write!(f, ":{x}"),
            Argument::Auto => f.write_str(":auto"),
            Argument::Roots => f.write_str(":roots"),
            Argument::Raw => f.write_str(":raw"),
            Argument::Published(policy) => write!(f, ":{}", policy.name()),
        }
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policy({self})")
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.row.name == other.row.name && self.argument == other.argument
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_from_the_name_that_it_prints() {
        for row in TABLE {
            for example in row.syntax.examples() {
                let policy: Policy = format!("{}{example}", row.name).parse().unwrap();
                assert_eq!(policy.to_string().parse::<Policy>().unwrap(), policy);
                assert_eq!(policy.row().name, row.name);
            }
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_ones() {
        let error = "ltp".parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains("\"ltp\"") && error.contains("lpt") && error.contains("contiguous"));
        for wrong in [
            "",
            ":",
            "LPT",
            "lpt:",
            "lpt:3",
            "contiguous-optimal:4",
            "contiguous-optimal:max=0",
            "contiguous-optimal:max=+4",
            "sfclb:raw",
            "published",
            "published:",
            "published:cdpc",
            "published:cdpc:0",
            "published:cplx:101",
            "published:lpt:1",
        ] {
            assert!(wrong.parse::<Policy>().is_err(), "{wrong}");
        }
    }
}
