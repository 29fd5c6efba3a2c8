//! One `[[object]]` table of a deck.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

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

/// An object; movement, growth and bounce are 0 where they are not given.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectTable {
    #[serde(rename = "type", deserialize_with = "kind")]
    kind: f64,
    #[serde(default, deserialize_with = "bounce")]
    bounce: f64,
    #[serde(deserialize_with = "axes")]
    centre: [f64; 3],
    #[serde(default, rename = "move", deserialize_with = "axes")]
    velocity: [f64; 3],
    #[serde(deserialize_with = "axes")]
    size: [f64; 3],
    #[serde(default, deserialize_with = "axes")]
    growth: [f64; 3],
}

impl ObjectTable {
    /// Those that follow `--object`.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> {
        let axes = [self.centre, self.velocity, self.size, self.growth];
        let first = [self.kind, self.bounce].into_iter();
        first.chain(axes.into_iter().flatten())
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a name")]
enum NumberOrName {
    Number(f64),
    Name(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or three")]
enum OneOrThree {
    One(f64),
    Three([f64; 3]),
}

fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let kind_of = |text: &str| match text.strip_prefix("solid ") {
        Some(shape) => lookup(&SHAPES, shape).map(|kind| kind + 1.0),
        None => lookup(&SHAPES, text),
    };
    let names = SHAPES.map(|(name, _)| name).join(", ");
    let names = format!("{names}, each with \"solid\" before it if wanted");
    named(from, kind_of, &names)
}

fn bounce<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let names = BOUNCES.map(|(name, _)| name).join(", ");
    named(from, |text| lookup(&BOUNCES, text), &names)
}

fn lookup(names: &[(&str, f64)], text: &str) -> Option<f64> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, number)| *number)
}

/// A number, or one of the names for one.
fn named<'de, D: Deserializer<'de>>(
    from: D,
    number_of: impl Fn(&str) -> Option<f64>,
    names: &str,
) -> Result<f64, D::Error> {
    match NumberOrName::deserialize(from)? {
        NumberOrName::Number(number) => Ok(number),
        NumberOrName::Name(text) => {
            number_of(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is none of {names}")))
        }
    }
}

/// Three numbers, or one for all three axes.
fn axes<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 3], D::Error> {
    Ok(match OneOrThree::deserialize(from)? {
        OneOrThree::One(number) => [number; 3],
        OneOrThree::Three(numbers) => numbers,
    })
}
