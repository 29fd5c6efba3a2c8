//! One `[[object]]` table of a deck.

use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};

use crate::object::ARGUMENTS;

use super::problem::{Problem, Reason, nearest};

const KEYS: [&str; 6] = ["type", "bounce", "centre", "move", "size", "growth"];

/// Names of the shapes with their type's number; "solid" before a name adds 1.
const SHAPES: [(&str, f64); 11] = [
    ("rectangle", 0.0),
    ("spheroid", 2.0),
    ("hemispheroid +x", 4.0),
    ("hemispheroid -x", 6.0),
    ("hemispheroid +y", 8.0),
    ("hemispheroid -y", 10.0),
    ("hemispheroid +z", 12.0),
    ("hemispheroid -z", 14.0),
    ("cylinder x", 20.0),
    ("cylinder y", 22.0),
    ("cylinder z", 24.0),
];

const BOUNCES: [(&str, f64); 3] = [("leave", 0.0), ("centre", 1.0), ("edge", 2.0)];

/// The 14 numbers of an object; movement, growth and bounce are 0 where they are not given.
pub(super) fn numbers(
    table: &DeTable<'_>,
    whole: Range<usize>,
) -> Result<[f64; ARGUMENTS], Problem> {
    let unknown = table
        .iter()
        .find(|(key, _)| !KEYS.contains(&key.get_ref().as_ref()));
    if let Some((key, _)) = unknown {
        let name = key.get_ref().to_string();
        let hint = nearest(&name, KEYS)
            .map(|near| format!(" (did you mean `{near}`?)"))
            .unwrap_or_default();
        return Err((key.span(), Reason::UnknownKey { key: name, hint }));
    }
    let required = |key: &'static str, found: Option<[f64; 3]>| {
        found.ok_or((whole.clone(), Reason::Missing(key)))
    };
    let [kind, ..] = required("type", named(table, "type", kind_of)?)?;
    let bounce =
        named(table, "bounce", |text| lookup(&BOUNCES, text))?.map_or(0.0, |[bounce, ..]| bounce);
    let centre = required("centre", vector(table, "centre")?)?;
    let size = required("size", vector(table, "size")?)?;
    let moves = vector(table, "move")?.unwrap_or_default();
    let growth = vector(table, "growth")?.unwrap_or_default();
    let mut numbers = [0.0; ARGUMENTS];
    (numbers[0], numbers[1]) = (kind, bounce);
    for (place, vector) in [centre, moves, size, growth].iter().enumerate() {
        numbers[2 + 3 * place..][..3].copy_from_slice(vector);
    }
    Ok(numbers)
}

fn kind_of(text: &str) -> Option<f64> {
    match text.strip_prefix("solid ") {
        Some(shape) => lookup(&SHAPES, shape).map(|kind| kind + 1.0),
        None => lookup(&SHAPES, text),
    }
}

fn lookup(names: &[(&str, f64)], text: &str) -> Option<f64> {
    names
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, number)| *number)
}

/// A number or a name for one; in the first of three places.
fn named(
    table: &DeTable<'_>,
    key: &'static str,
    number_of: impl Fn(&str) -> Option<f64>,
) -> Result<Option<[f64; 3]>, Problem> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let number = match value.get_ref() {
        DeValue::String(text) => number_of(text).ok_or_else(|| {
            let names: Vec<&str> = if key == "type" {
                SHAPES.map(|(name, _)| name).to_vec()
            } else {
                BOUNCES.map(|(name, _)| name).to_vec()
            };
            let solid = if key == "type" {
                ", each with \"solid\" before it if wanted"
            } else {
                ""
            };
            let problem = format!("{text:?} is none of {}{solid}", names.join(", "));
            (
                value.span(),
                Reason::Refused {
                    key: key.to_owned(),
                    problem,
                },
            )
        }),
        other => float(other).ok_or_else(|| {
            let (takes, given) = ("a number or a name", other.type_str());
            (
                value.span(),
                Reason::WrongKind {
                    key: key.to_owned(),
                    takes,
                    given,
                },
            )
        }),
    };
    number.map(|number| Some([number, 0.0, 0.0]))
}

/// Three numbers, or one for all three axes.
fn vector(table: &DeTable<'_>, key: &'static str) -> Result<Option<[f64; 3]>, Problem> {
    let Some(value) = table.get(key) else {
        return Ok(None);
    };
    let numbers = match value.get_ref() {
        DeValue::Array(array) => {
            floats(array).and_then(|numbers| <[f64; 3]>::try_from(numbers).ok())
        }
        other => float(other).map(|number| [number; 3]),
    };
    numbers.map(Some).ok_or_else(|| {
        let (takes, given) = ("a number or three", value.get_ref().type_str());
        (
            value.span(),
            Reason::WrongKind {
                key: key.to_owned(),
                takes,
                given,
            },
        )
    })
}

fn floats(array: &DeArray<'_>) -> Option<Vec<f64>> {
    array.iter().map(|value| float(value.get_ref())).collect()
}

fn float(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}
